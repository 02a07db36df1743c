/* Where values were set: explain, origins, defaults layers, group overrides. */
#include <stdlib.h>
#include <string.h>

#include "config/compose.h"
#include "config/defaults/group_files.h"
#include "config/provenance/error_list.h"
#include "config/provenance/origins_file.h"
#include "config/yaml/output.h"
#include "config/tree/edit.h"
#include "config/tree/tree.h"
#include "base/system/file.h"
#include "tests/support/cmocka.h"
#include "tests/support/config_tree.h"

static const TreeFile files[] = {
    { "config.yaml", "defaults:\n  - net: a\n  - _self_\nlr: 0.1\nrate: ${lr}\n"
                     "net: {width: 8}\ntags: [x, 'a, b']\n" },
    { "net/a.yaml", "width: 4\nkind: a\n" },
    { NULL, NULL },
};

/* Defaults of a net: what an options table would lay. */
static KilnStatus defaults_layer(void *ctx, KilnConfig *config, KilnErrors *errors)
{
    KilnArena *arena = kiln_config_arena(config);
    KilnConfigNode *defaults = NULL;
    KilnOrigin origin = { .source = "default of net/a" };
    KilnError err = { 0 };
    KilnStatus status = kiln_node_parse(arena, "{width: 1, depth: 2, opt: {x: 1}}", origin.source,
                                        &defaults, &err);

    ++*(int *)ctx;
    if (status >= 0)
        status = kiln_node_add_default(config, kiln_config_root(config), "net", origin, defaults,
                                       &err);
    return status < 0 ? kiln_errors_add(errors, &err) : KILN_OK;
}

static bool option(void *ctx, KilnConfig *config, const char *group, const char *name,
                   const char **ret_yaml, const char **ret_source)
{
    (void)ctx;
    (void)config;
    if (strcmp(group, "net") != 0 || strcmp(name, "plug") != 0)
        return false;
    *ret_yaml = "_target_: plug\n";
    *ret_source = "plugin plug";
    return true;
}

static const char *options(void *ctx, const char *group, size_t i)
{
    (void)ctx;
    return strcmp(group, "net") == 0 && i == 0 ? "plug" : NULL;
}

static char *without_dir(const Tree *tree, char *text)
{
    size_t n = strlen(tree->dir);
    char *p;

    while ((p = strstr(text, tree->dir)) != NULL) {
        *p = 'T';
        memmove(p + 1, p + n, strlen(p + n) + 1);
    }
    return text;
}

static void test_explain(void **unused)
{
    static const struct {
        const char *key, *want;
    } cases[] = {
        { "lr", "lr: 0.5\n"
                "  set to  0.5  argument 2 `lr=0.5`\n"
                "  over    0.3  argument 1 `lr=0.3`\n"
                "  over    0.1  T/config.yaml:4:5\n" },
        { "rate", "rate: 0.5\n"
                  "  set to  ${lr}  T/config.yaml:5:7\n"
                  "    lr: 0.5\n"
                  "      set to  0.5  argument 2 `lr=0.5`\n"
                  "      over    0.3  argument 1 `lr=0.3`\n"
                  "      over    0.1  T/config.yaml:4:5\n" },
        { "net", "net.width: 8\n"
                 "  set to  8  T/config.yaml:6:14\n"
                 "  over    4  T/net/a.yaml:1:8\n"
                 "  over    1  default of net/a\n"
                 "net.kind: a\n"
                 "  set to  a  T/net/a.yaml:2:7\n"
                 "net.depth: 3\n"
                 "  set to  3  argument 3 `net.depth=3`\n"
                 "  over    2  default of net/a\n"
                 "net.opt.x: 1\n"
                 "  set to  1  default of net/a\n" },
        { "tags.1", "tags: [x, 'a, b']\n"
                    "  set to  [x, 'a, b']  T/config.yaml:7:7\n" },
    };
    Tree tree = tree_make(files);
    const char *const overrides[] = { "lr=0.3", "lr=0.5", "net.depth=3", NULL };
    int layers = 0;
    KilnComposeHooks hooks = { .ctx = &layers, .defaults_layer = defaults_layer };
    KilnConfig *config = NULL;
    char *messages = NULL, *text = NULL;
    KilnError err = { 0 };

    (void)unused;
    if (tree_compose(&tree, &hooks, overrides, &config, &messages) < 0)
        fail_msg("%s", messages);
    assert_int_equal(layers, 1); /* scalars over scalars need no new layer */
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        assert_int_equal(kiln_config_explain(config, cases[i].key, &text, &err), KILN_OK);
        assert_string_equal(without_dir(&tree, text), cases[i].want);
        free(text);
    }
    assert_int_equal(kiln_config_explain(config, "nte", &text, &err), KILN_E_KEY);
    assert_string_equal(err.text, "there is no key 'nte'; did you mean 'net'?");
    assert_int_equal(kiln_config_explain(config, "width", &text, &err), KILN_E_KEY);
    assert_string_equal(err.text, "there is no key 'width'; did you mean 'net.width'?");
    assert_int_equal(kiln_config_explain(config, "net.kind.x", &text, &err), KILN_E_KEY);
    assert_int_equal(kiln_config_explain(config, "tags.2", &text, &err), KILN_E_KEY);
    free(messages);
    kiln_config_free(config);
    tree_remove(&tree);
}

static bool other_component(void *ctx, const char *from, const char *to)
{
    (void)ctx; /* net/a and net/b are known */
    return strcmp(from, to) != 0 && strlen(from) == 1 && strlen(to) == 1;
}

static const TreeFile targets[] = {
    { "config.yaml", "defaults: [net: a, _self_, exp: null]\n" },
    { "net/a.yaml", "_target_: a\nwidth: 4\nopt: {x: 1, y: 2}\nlist: [1]\n" },
    { "exp/same.yaml", "# @package _global_\nnet: {_target_: a, width: 5}\n" },
    { "exp/free.yaml", "# @package _global_\nnet: {_target_: free.B, width: 5}\n" },
    { "exp/b.yaml", "# @package _global_\nnet: {_target_: b, width: 5, opt: {x: 3}}\n" },
    { NULL, NULL },
};

static void test_changed_target(void **unused)
{
    static const struct {
        const char *overrides[4], *want;
    } cases[] = {
        { { "exp=same" }, "_target_: a\nwidth: 5\nopt:\n  x: 1\n  y: 2\nlist: [1]\n" },
        { { "exp=free" }, "_target_: free.B\nwidth: 5\nopt:\n  x: 1\n  y: 2\nlist: [1]\n" },
        { { "exp=b" }, "_target_: b\nwidth: 5\nopt:\n  x: 3\n" },
        { { "net._target_=b" }, "_target_: b\n" },
        { { "net._target_=free.B" },
          "_target_: free.B\nwidth: 4\nopt:\n  x: 1\n  y: 2\nlist: [1]\n" },
        { { "net.opt.x=9", "net.width=2", "net._target_=b" },
          "_target_: b\nwidth: 2\nopt:\n  x: 9\n" },
        { { "net={_target_: b, depth: 3}" }, "_target_: b\ndepth: 3\n" },
        { { "exp=b", "net._target_=a" }, "_target_: a\n" },
    };
    Tree tree = tree_make(targets);
    KilnComposeHooks hooks = { .other_component = other_component };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnConfig *config = NULL;
        char *messages = NULL, *text = NULL;

        if (tree_compose(&tree, &hooks, cases[i].overrides, &config, &messages) < 0)
            fail_msg("%s", messages);
        free(messages);
        assert_int_equal(kiln_config_yaml(config, "net", false, &text, NULL), KILN_OK);
        assert_string_equal(text, cases[i].want);
        free(text);
        kiln_config_free(config);
    }
    tree_remove(&tree);
}

static void test_explain_dropped(void **unused)
{
    static const struct {
        const char *key, *want;
    } cases[] = {
        { "net.list", "net.list: not there\n"
                      "  dropped      T/exp/b.yaml:2:17: _target_ changed from a to b\n"
                      "  over    [1]  T/net/a.yaml:4:7\n" },
        { "net", "net._target_: b\n"
                 "  set to  b  T/exp/b.yaml:2:17\n"
                 "  over    a  T/net/a.yaml:1:11\n"
                 "net.width: 5\n"
                 "  set to  5  T/exp/b.yaml:2:27\n"
                 "  over    4  T/net/a.yaml:2:8\n"
                 "net.opt.x: 3\n"
                 "  set to  3  T/exp/b.yaml:2:39\n"
                 "  over    1  T/net/a.yaml:3:10\n"
                 "net.list: not there\n"
                 "  dropped      T/exp/b.yaml:2:17: _target_ changed from a to b\n"
                 "  over    [1]  T/net/a.yaml:4:7\n"
                 "net.opt.y: not there\n"
                 "  dropped    T/exp/b.yaml:2:17: _target_ changed from a to b\n"
                 "  over    2  T/net/a.yaml:3:16\n" },
    };
    Tree tree = tree_make(targets);
    KilnComposeHooks hooks = { .other_component = other_component };
    const char *const overrides[] = { "exp=b", NULL };
    KilnConfig *config = NULL;
    char *messages = NULL, *text = NULL;

    (void)unused;
    assert_int_equal(tree_compose(&tree, &hooks, overrides, &config, &messages), KILN_OK);
    free(messages);
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        assert_int_equal(kiln_config_explain(config, cases[i].key, &text, NULL), KILN_OK);
        assert_string_equal(without_dir(&tree, text), cases[i].want);
        free(text);
    }
    kiln_config_free(config);
    tree_remove(&tree);
}

static void test_defaults_layers(void **unused)
{
    Tree tree = tree_make(files);
    const char *const overrides[] = { "+net.new={a:1}", "net._target_=x", "~net.depth", NULL };
    int layers = 0;
    KilnComposeHooks hooks = { .ctx = &layers, .defaults_layer = defaults_layer };
    KilnConfig *config = NULL;
    char *messages = NULL;

    (void)unused;
    assert_int_equal(tree_compose(&tree, &hooks, overrides, &config, &messages), KILN_E_KEY);
    assert_non_null(strstr(messages, "net has no key '_target_'"));
    assert_int_equal(layers, 3); /* at first, after the mapping, after the deletion */
    free(messages);
    tree_remove(&tree);
}

static void test_options_without_files(void **unused)
{
    Tree tree = tree_make(files);
    KilnComposeHooks hooks = { .option = option, .options = options };
    const char *const overrides[] = { "net=plug", NULL };
    const char *const wrong[] = { "net=plugg", NULL };
    KilnComposeRequest request = { .config_path = tree.dir };
    KilnConfig *config = NULL;
    char *messages = NULL, *text = NULL, **names = NULL;
    size_t count = 0;
    bool found = false;

    (void)unused;
    assert_int_equal(tree_compose(&tree, &hooks, overrides, &config, &messages), KILN_OK);
    free(messages);
    assert_int_equal(kiln_config_explain(config, "net._target_", &text, NULL), KILN_OK);
    assert_string_equal(text, "net._target_: plug\n  set to  plug  plugin plug\n");
    free(text);
    kiln_config_free(config);
    assert_true(tree_compose(&tree, &hooks, wrong, &config, &messages) < 0);
    assert_non_null(strstr(messages, "did you mean 'plug'?"));
    free(messages);
    assert_int_equal(kiln_group_options(&request, &hooks, "net", false, &names, &count, NULL),
                     KILN_OK);
    for (size_t i = 0; i < count; i++)
        found |= strcmp(names[i], "plug") == 0;
    assert_true(found);
    kiln_names_free(names, count);
    tree_remove(&tree);
}

static void test_run_files(void **unused)
{
    Tree tree = tree_make(files);
    const char *const overrides[] = { "lr=0.5", "tags=['1',\"it's\"]", NULL };
    KilnConfig *config = NULL;
    char *messages = NULL, *text = NULL;

    (void)unused;
    assert_int_equal(tree_compose(&tree, NULL, overrides, &config, &messages), KILN_OK);
    free(messages);
    assert_int_equal(kiln_config_overrides_yaml(config, &text, NULL), KILN_OK);
    assert_string_equal(text, "- lr=0.5\n- tags=['1',\"it's\"]\n");
    free(text);
    assert_int_equal(kiln_config_origins_yaml(config, NULL, &text, NULL), KILN_OK);
    assert_string_equal(without_dir(&tree, text),
                        "net.width:\n"
                        "  - {value: 8, from: 'T/config.yaml:6:14'}\n"
                        "  - {value: 4, from: 'T/net/a.yaml:1:8'}\n"
                        "net.kind:\n"
                        "  - {value: 'a', from: 'T/net/a.yaml:2:7'}\n"
                        "lr:\n"
                        "  - {value: 0.5, from: 'argument 1 `lr=0.5`'}\n"
                        "  - {value: 0.1, from: 'T/config.yaml:4:5'}\n"
                        "rate:\n"
                        "  - {value: '${lr}', from: 'T/config.yaml:5:7', refers: ['lr']}\n"
                        "tags:\n"
                        "  - {value: ['1', 'it''s'], from: 'argument 2 `tags=[''1'',\"it''s\"]`'}\n"
                        "  - {value: ['x', 'a, b'], from: 'T/config.yaml:7:7'}\n");
    free(text);
    assert_int_equal(kiln_config_own_yaml(config, &text, NULL), KILN_OK);
    assert_non_null(strstr(text, "kiln:\n"));
    assert_non_null(strstr(text, "    task:\n      - lr=0.5\n"));
    assert_non_null(strstr(text, "      net: a\n"));
    free(text);
    assert_string_equal(kiln_config_selection(config, 0)->key, "net");
    assert_string_equal(kiln_config_selection(config, 0)->option, "a");
    assert_null(kiln_config_selection(config, 1));
    kiln_config_free(config);
    tree_remove(&tree);
}

/* A file used twice does not share its values. */
static void test_used_twice(void **unused)
{
    Tree tree =
        tree_make((TreeFile[]) { { "config.yaml", "defaults:\n  - net@a: m\n  - net@b: m\n" },
                                 { "net/m.yaml", "x: {y: 1}\n" },
                                 { NULL, NULL } });
    char *got = tree_yaml(&tree, (const char *[]) { "a.x.y=2", NULL }, false);

    (void)unused;
    assert_string_equal(got, "a:\n  x:\n    y: 2\nb:\n  x:\n    y: 1\n");
    free(got);
    tree_remove(&tree);
}

/* What is put into a composed config: in place of a value, beside one, and in a copy of a mapping
 * that other keys refer to. */
static void test_put(void **unused)
{
    Tree tree = tree_make((TreeFile[]) {
        { "config.yaml", "data: {type: auto, kinds: '${mine}', none: {}}\nmine: {a: 1}\n" },
        { NULL, NULL } });
    KilnConfig *config = NULL;
    char *text = NULL, *messages = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(tree_compose(&tree, NULL, NULL, &config, &messages), KILN_OK);
    free(messages);
    assert_int_equal(kiln_config_put(config, "data", "type", "number", "from x", &err), KILN_OK);
    assert_int_equal(kiln_config_put(config, "data.kinds", "b.c", "2", "from x", &err), KILN_OK);
    assert_int_equal(kiln_config_put(config, "data.kinds", "a", "3", "from x", &err), KILN_OK);
    assert_int_equal(kiln_config_put(config, "data.none", "<<", "4", "from x", &err), KILN_OK);
    assert_int_equal(kiln_config_yaml(config, NULL, true, &text, &err), KILN_OK);
    assert_string_equal(text, "data:\n  type: number\n  kinds:\n    a: 3\n    b.c: 2\n  none:\n"
                              "    '<<': 4\nmine:\n  a: 1\n");
    free(text);
    assert_int_equal(kiln_config_explain(config, "data.type", &text, &err), KILN_OK);
    assert_non_null(strstr(text, "set to  number  from x\n  over    auto    "));
    free(text);
    assert_int_equal(kiln_config_put(config, "data.nothing", "a", "1", "x", &err), KILN_E_KEY);
    assert_string_equal(err.text, "data.nothing: the config has no such mapping");
    assert_int_equal(kiln_config_put(config, "data.type", "a", "1", "x", &err), KILN_E_KEY);
    kiln_config_free(config);
    tree_remove(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_changed_target),
        cmocka_unit_test(test_explain_dropped),
        cmocka_unit_test(test_defaults_layers),
        cmocka_unit_test(test_options_without_files),
        cmocka_unit_test(test_run_files),
        cmocka_unit_test(test_used_twice),
        cmocka_unit_test(test_put),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
