/* Interpolation and resolvers, and parts of a config as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/composed.h"
#include "config/provenance/error_list.h"
#include "config/provenance/error_origin.h"
#include "tests/support/cmocka.h"
#include "tests/support/config_tree.h"

static const TreeFile files[] = {
    { "config.yaml", "a: 1\n"
                     "b: {c: text, d: 2.5, e: '${.d}', up: '${..a}', list: [x, '${a}', '${.0}']}\n"
                     "name: c\n"
                     "pure: ${b.c}\n"
                     "chain: ${pure}\n"
                     "in_text: x-${a}-${b.d}-${flag}-${none}\n"
                     "flag: yes\n"
                     "none: null\n"
                     "small: 0.00001\n"
                     "float_text: =${small}\n"
                     "nested: ${b.${name}}\n"
                     "index: ${b.list[1]}\n"
                     "dotted: ${b.list.2}\n"
                     "brackets: ${[b][c]}\n"
                     "whole: ${b.list}\n"
                     "through: ${alias.c}\n"
                     "alias: ${b}\n"
                     "escaped: \\${a}\n"
                     "two: \\\\${a}\n"
                     "three: \\\\\\${a}\n"
                     "dollar: $a {x}\n"
                     "must: ???\n"
                     "needs: x-${must}\n"
                     "below: ${must.x}\n"
                     "named: '${b.${must}}${b.${must}:1}'\n"
                     "select: ${oc.select:nope,${a}}\n"
                     "select_null: ${oc.select:nope}\n"
                     "decode: ${oc.decode:'[1,{k:${a}}]'}\n"
                     "create: ${oc.create:[1,x]}\n"
                     "keys: ${oc.dict.keys:b}\n"
                     "values: ${oc.dict.values:vals}\n"
                     "vals: {p: '${a}', q: [3]}\n"
                     "env: ${oc.env:KILN_TEST_ENV}\n"
                     "env_default: ${oc.env:KILN_TEST_UNSET, a b }\n"
                     "env_typed: ${oc.decode:${oc.env:KILN_TEST_ENV}}\n"
                     "old: ${oc.deprecated:a}\n"
                     "job: ${hydra:job.config_name}-${kiln.job.name}\n"
                     "year: ${now:%Y}\n" },
    { NULL, NULL },
};

static KilnConfig *compose(const Tree *tree)
{
    KilnConfig *config = NULL;
    char *messages = NULL;

    if (tree_compose(tree, NULL, NULL, &config, &messages) < 0)
        fail_msg("%s", messages);
    free(messages);
    return config;
}

static void test_text(void **unused)
{
    static const struct {
        const char *key, *want;
    } cases[] = {
        { "b.e", "2.5" },           { "b.up", "1" },           { "b.list[2]", "x" },
        { "pure", "text" },         { "chain", "text" },       { "in_text", "x-1-2.5-True-None" },
        { "float_text", "=1e-05" }, { "nested", "text" },      { "index", "1" },
        { "dotted", "x" },          { "brackets", "text" },    { "through", "text" },
        { "alias.d", "2.5" },       { "whole[1]", "1" },       { "escaped", "${a}" },
        { "two", "\\1" },           { "three", "\\${a}" },     { "dollar", "$a {x}" },
        { "select", "1" },          { "select_null", "null" }, { "env", "8080" },
        { "env_default", "a b" },   { "env_typed", "8080" },   { "old", "1" },
        { "job", "config-train" },
    };
    Tree tree = tree_make(files);
    KilnConfig *config = compose(&tree);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *text = NULL;
        KilnError err = { 0 };

        if (kiln_config_text(config, cases[i].key, &text, &err) < 0)
            fail_msg("%s: %s", cases[i].key, err.text);
        if (strcmp(text, cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].key, text, cases[i].want);
        free(text);
    }
    kiln_config_free(config);
    tree_remove(&tree);
}

static void test_yaml(void **unused)
{
    static const struct {
        const char *key;
        bool resolve;
        const char *want;
    } cases[] = {
        { "decode", true, "- 1\n- k: 1\n" },
        { "create", true, "- 1\n- x\n" },
        { "keys", true, "- c\n- d\n- e\n- up\n- list\n" },
        { "values", true, "- 1\n- [3]\n" },
        { "whole", true, "- x\n- 1\n- x\n" },
        { "whole", false, "${b.list}\n" },
        { "needs", true, "???\n" },
        { "below", true, "???\n" },
        { "named", true, "???\n" },
        { "env", true, "'8080'\n" },
        { "env_typed", true, "8080\n" },
        { "flag", true, "true\n" },
        { "b.list", false, "- x\n- ${a}\n- ${.0}\n" },
    };
    Tree tree = tree_make(files);
    KilnConfig *config = compose(&tree);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *text = NULL;
        KilnError err = { 0 };

        if (kiln_config_yaml(config, cases[i].key, cases[i].resolve, &text, &err) < 0)
            fail_msg("%s: %s", cases[i].key, err.text);
        assert_string_equal(text, cases[i].want);
        free(text);
    }
    kiln_config_free(config);
    tree_remove(&tree);
}

static void test_errors(void **unused)
{
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        { "a: ${nmae}\nname: 1\n", "config.yaml:1:4: a: ${nmae}: there is no key 'nmae'; did you "
                                   "mean 'name'?" },
        { "m: {width: 1}\na: ${m.with}\n", "did you mean 'm.width'?" },
        { "l: [1, 2]\na: ${l[5]}\n", "there is no 'l[5]': the list has 2 items" },
        { "a: ${b}\nb: ${c}\nc: ${a}\n", "a cycle of interpolations" },
        { "a: x${a}\n", "a cycle of interpolations" },
        { "a: {b: '${a}'}\n", "contains itself through interpolations" },
        { "a: ${.....x}\n", "the dots lead above the top" },
        { "a: ${}\n", "an interpolation without a name" },
        { "a: ${b\n", "is not closed by '}'" },
        { "a: ${oc.evn:X}\n", "there is no resolver 'oc.evn' (did you mean oc.env?)" },
        { "a: ${oc.env:KILN_TEST_UNSET}\n", "the environment variable KILN_TEST_UNSET is not set" },
        { "a: ${oc.env:}\n", "oc.env got 0 arguments" },
        { "x: 1\na: ${oc.dict.keys:x}\n", "'x' must be a mapping, but is an integer" },
        { "a: ${oc.decode:'[1'}\n", "oc.decode: in '[1'" },
        { "a: ${oc.create:1}\n", "oc.create: expected a list" },
        { "a: ${oc.create:yes}\n", "oc.create: expected a list" },
        { "a: ${b}\nb: ${oops}\n", "config.yaml:1:4: a: ${oops}: there is no key 'oops'" },
        { "a: ${b}\nb: ${oops}\n", "through " },
        { "a: ${kiln:job.nmae}\n", "did you mean 'job.name'?" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Tree tree = tree_make((TreeFile[]) { { "config.yaml", cases[i].yaml }, { NULL, NULL } });
        char *got = tree_yaml(&tree, NULL, true);

        if (strstr(got, cases[i].want) == NULL)
            fail_msg("%s: got '%s', want '%s'", cases[i].yaml, got, cases[i].want);
        free(got);
        tree_remove(&tree);
    }
}

/* Expansions without an end are errors, soon. */
static void test_bombs(void **unused)
{
    char text[4096] = "a0: xxxxxxxxxx\n", list[4096] = "a0: [1, 2, 3]\n", line[512];
    const char *const bombs[] = { text, list };

    (void)unused;
    for (int i = 0; i < 12; i++) {
        snprintf(line, sizeof(line), "a%d: '${a%d}${a%d}${a%d}${a%d}${a%d}${a%d}'\n", i + 1, i, i,
                 i, i, i, i);
        strncat(text, line, sizeof(text) - strlen(text) - 1);
        snprintf(line, sizeof(line), "a%d: ['${a%d}', '${a%d}', '${a%d}', '${a%d}']\n", i + 1, i, i,
                 i, i);
        strncat(list, line, sizeof(list) - strlen(list) - 1);
    }
    for (size_t i = 0; i < KILN_COUNT(bombs); i++) {
        Tree tree = tree_make((TreeFile[]) { { "config.yaml", bombs[i] }, { NULL, NULL } });
        char *got = tree_yaml(&tree, NULL, true);

        if (strstr(got, "more than") == NULL && strstr(got, "too large") == NULL)
            fail_msg("%.300s", got);
        free(got);
        tree_remove(&tree);
    }
}

static void test_where(void **unused)
{
    Tree tree = tree_make(
        (TreeFile[]) { { "config.yaml", "lr: 0.1\nmid: ${lr}\nrate: ${mid}\n" }, { NULL, NULL } });
    const char *const overrides[] = { "lr=fast", NULL };
    KilnConfig *config = NULL;
    char *messages = NULL, where[512] = "", want[512];
    const KilnConfigNode *value = NULL, *node;

    (void)unused;
    assert_int_equal(tree_compose(&tree, NULL, overrides, &config, &messages), KILN_OK);
    node = kiln_node_find(kiln_config_root(config), "rate");
    assert_int_equal(kiln_config_resolve(config, node, &value, NULL), KILN_OK);
    assert_string_equal(value->text, "fast");
    kiln_node_where(config, node, value, where, sizeof(where));
    snprintf(want, sizeof(want),
             "from argument 1 `lr=fast`, through ${mid} in %s/config.yaml:3:7 and ${lr} in "
             "%s/config.yaml:2:6",
             tree.dir, tree.dir);
    assert_string_equal(where, want);
    assert_string_equal(kiln_node_path(config, node), "rate");
    kiln_config_free(config);
    free(messages);
    tree_remove(&tree);
}

static const TreeFile more[] = {
    { "config.yaml", "new: 1\nold: ${oc.deprecated:new}\n"
                     "older: ${oc.deprecated:new,'$OLD_KEY went, $NEW_KEY came; $X'}\n"
                     "silent: ${oc.deprecated:new,''}\n"
                     "list: [a, '${new}', {k: '${new}'}]\n"
                     "last: ${list[-1].k}\nfirst: ${list.-3}\nbefore: ${list[-4]}\n"
                     "text: x${list}\nround: ['${round}']\n"
                     "keys: ${oc.dict.keys:''}\nnumber: ${oc.create:'1'}\n"
                     "wrong: ${oc.deprecated:new,[1]}\n" },
    { NULL, NULL },
};

static void test_more_values(void **unused)
{
    static const struct {
        const char *key, *want;
    } cases[] = {
        { "last", "1\n" },
        { "first", "a\n" },
        { "text", "x[''a'', 1, {''k'': 1}]" },
        { "before",
          "T/config.yaml:8:9: before: ${list[-4]}: there is no 'list[-4]': the list has 3 "
          "items" },
        { "round", "contains itself" },
        { "number", "oc.create: expected a list, a mapping or YAML text of one, got '1'" },
        { "wrong", "oc.deprecated: the message must be text, not a list" },
    };
    Tree tree = tree_make(more);
    KilnConfig *config = compose(&tree);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        char *text = NULL, *p;

        if (kiln_config_yaml(config, cases[i].key, true, &text, &err) < 0)
            text = kiln_strdup(err.text);
        assert_non_null(text);
        while ((p = strstr(text, tree.dir)) != NULL) {
            *p = 'T';
            memmove(p + 1, p + strlen(tree.dir), strlen(p + strlen(tree.dir)) + 1);
        }
        if (strstr(text, cases[i].want) == NULL)
            fail_msg("%s: got %s, want %s", cases[i].key, text, cases[i].want);
        free(text);
    }
    kiln_config_free(config);
    tree_remove(&tree);
}

static void test_warnings(void **unused)
{
    Tree tree = tree_make(more);
    KilnConfig *config = compose(&tree);
    KilnErrors *errors = NULL;
    char *text = NULL;

    (void)unused;
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    for (int i = 0; i < 2; i++) { /* once for each place */
        assert_int_equal(kiln_config_yaml(config, "old", true, &text, NULL), KILN_OK);
        assert_string_equal(text, "1\n");
        free(text);
        assert_int_equal(kiln_config_yaml(config, "older", true, &text, NULL), KILN_OK);
        free(text);
        assert_int_equal(kiln_config_yaml(config, "silent", true, &text, NULL), KILN_OK);
        free(text);
        kiln_config_warnings(config, errors);
    }
    assert_int_equal(kiln_errors_count(errors), 3);
    assert_int_equal(kiln_errors_failures(errors), 0);
    assert_non_null(
        strstr(kiln_errors_text(errors, 0), "config.yaml:2:6: 'old' is deprecated; use 'new'"));
    assert_non_null(
        strstr(kiln_errors_text(errors, 1), "config.yaml:3:8: older went, new came; $X"));
    kiln_errors_free(errors);
    kiln_config_free(config);
    tree_remove(&tree);
}

/* The request's environment precedes the process's, also for a variable that is not set in it; what
 * was used is recorded once. */
static void test_environment(void **unused)
{
    static const TreeFile tree_files[] = {
        { "config.yaml", "a: ${oc.env:KILN_TEST_ENV}-${oc.env:KILN_TEST_UNSET}\n"
                         "b: ${oc.env:KILN_TEST_ENV_2,other}-${oc.env:KILN_TEST_UNSET}\n" },
        { NULL, NULL },
    };
    Tree tree = tree_make(tree_files);
    const char *const environment[] = { "KILN_TEST_UNSET=x=y", "KILN_TEST_ENV_2", NULL };
    const KilnComposeRequest request = { .config_path = tree.dir, .environment = environment };
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    char *text = NULL;
    KilnText used = { 0 };

    (void)unused;
    setenv("KILN_TEST_ENV_2", "set", 1);
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    assert_int_equal(kiln_config_compose(&request, NULL, &config, errors), KILN_OK);
    assert_int_equal(kiln_config_text(config, "a", &text, NULL), KILN_OK);
    assert_string_equal(text, "8080-x=y");
    free(text);
    assert_int_equal(kiln_config_text(config, "b", &text, NULL), KILN_OK);
    assert_string_equal(text, "other-x=y");
    free(text);
    for (const KilnVariable *v = *config->variables; v != NULL; v = v->next)
        kiln_text_printf(&used, "%s=%s ", v->name, v->value != NULL ? v->value : "-");
    assert_string_equal(used.data, "KILN_TEST_ENV=8080 KILN_TEST_UNSET=x=y KILN_TEST_ENV_2=- ");
    kiln_text_release(&used);
    kiln_errors_free(errors);
    kiln_config_free(config);
    tree_remove(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_values), cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_text),        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_errors),      cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_where),       cmocka_unit_test(test_environment),
    };

    setenv("KILN_TEST_ENV", "8080", 1);
    unsetenv("KILN_TEST_UNSET");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
