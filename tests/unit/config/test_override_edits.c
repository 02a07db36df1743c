/* Overrides that edit lists, replace mappings, count from the end, or are plain text. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/config_tree.h"

static const TreeFile files[] = {
    { "config.yaml", "defaults: [model: mlp, _self_]\n"
                     "tags: [a, b, 1]\nnone: null\nlr: 0.1\nother: ${tags}\n"
                     "nested: [[1, 2], {k: v}]\nroot: /data\nfree: x\n" },
    { "model/mlp.yaml", "depth: 3\nwidths: {first: 1, last: 2}\n" },
    { NULL, NULL },
};

static bool is_text(void *ctx, const KilnConfig *config, const char *key)
{
    (void)ctx;
    (void)config;
    return strcmp(key, "root") == 0;
}

static const KilnComposeHooks hooks = { .is_text = is_text };
static Tree tree;

static int make_tree(void **unused)
{
    (void)unused;
    tree = tree_make(files);
    return 0;
}

static int remove_tree(void **unused)
{
    (void)unused;
    tree_remove(&tree);
    return 0;
}

/* Messages, or the explanation of `key`; owned by the caller. */
static char *explain(const char *const *arguments, const char *key)
{
    KilnConfig *config = NULL;
    char *messages = NULL, *text = NULL;
    KilnError err = { 0 };

    if (tree_compose(&tree, &hooks, arguments, &config, &messages) < 0)
        return messages;
    free(messages);
    if (kiln_config_explain(config, key, &text, &err) < 0)
        fail_msg("%s: %s", key, err.text);
    kiln_config_free(config);
    return text;
}

static void check(const char *const *arguments, const char *key, const char *want)
{
    char *got = explain(arguments, key);

    if (strstr(got, want) == NULL)
        fail_msg("%s: got '%s', want '...%s...'", arguments[0], got, want);
    free(got);
}

#define ARGUMENTS(...)                                                                             \
    (const char *[])                                                                               \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void test_append(void **unused)
{
    (void)unused;
    check(ARGUMENTS("tags+=c"), "tags",
          "tags: [a, b, 1, c]\n  set to  [a, b, 1, c]  argument 1 `tags+=c`\n"
          "  over    [a, b, 1]  ");
    check(ARGUMENTS("tags+=[c,d]", "tags+=[[e]]"), "tags", "[a, b, 1, c, ...]");
    check(ARGUMENTS("tags+=[c,d]", "tags+=[[e]]"), "tags[5]", "tags[5]: [e]");
    check(ARGUMENTS("tags=extend_list(c,[d])"), "tags[4]", "tags[4]: [d]");
    check(ARGUMENTS("none+=x"), "none", "none: [x]");
    check(ARGUMENTS("other+=x"), "other", "other: [a, b, 1, x]");
    check(ARGUMENTS("nested.0+=3"), "nested[0]", "nested[0]: [1, 2, 3]");
    check(ARGUMENTS("lr+=1"), "", "`lr+=1`: lr is a number, not a list (");
    check(ARGUMENTS("model+=1"), "", "`model+=1`: model is a mapping, not a list (");
    check(ARGUMENTS("model+=1"), "", "to add a key write +model.NAME=...");
    check(ARGUMENTS("tagz+=1"), "", "did you mean 'tags'? Or to add a new list write +tagz=[...]");
    check(ARGUMENTS("model/x+=1"), "", "'model/x' is written like a group");
    check(ARGUMENTS("tags+=1,2"), "", "tags has several values, but a single run takes one");
}

static void test_remove(void **unused)
{
    (void)unused;
    check(ARGUMENTS("tags-=a"), "tags", "tags: [b, 1]\n  set to  [b, 1]     argument 1 `tags-=a`");
    check(ARGUMENTS("tags-=[1,a]"), "tags", "tags: [b]");
    check(ARGUMENTS("tags+=[a,a]", "tags-=a"), "tags", "tags: [b, 1]");
    check(ARGUMENTS("nested-=[[1,2]]"), "nested", "nested: [{...}]");
    check(ARGUMENTS("tags-='1'"), "", "`tags-='1'`: tags has no item 1 to remove");
    check(ARGUMENTS("none-=a"), "", "none has no item a to remove");
    check(ARGUMENTS("model-=depth"), "", "to delete a key write ~model.NAME");
}

static void test_replace(void **unused)
{
    (void)unused;
    check(ARGUMENTS("model:={units:5}"), "model",
          "model: {units: 5}\n  set to  {units: 5}                 argument 1 `model:={units:5}`\n"
          "  over    {depth: 3, widths: {...}}  ");
    check(ARGUMENTS("model.widths:=[1]"), "model.widths", "model.widths: [1]");
    check(ARGUMENTS("tags:={a:1}"), "tags.a", "tags.a: 1");
    check(ARGUMENTS("lr:=0.5"), "lr", "lr: 0.5");
    check(ARGUMENTS("lrr:=0.5"), "", "did you mean 'lr'? Or to add a new key write +lrr=0.5");
    check(ARGUMENTS("model.widths={third: 3}"), "",
          "model.widths has no key 'third'; to add a new key write +model.widths={third: 3}, or to "
          "replace what is there model.widths:={third: 3}");
    check(ARGUMENTS("model={units:5}"), "", "model has no key 'units'"); /* what = does */
}

static void test_from_the_end(void **unused)
{
    (void)unused;
    check(ARGUMENTS("tags.-1=z"), "tags", "tags: [a, b, z]");
    check(ARGUMENTS("tags.-3=z"), "tags[0]", "tags[0]: z");
    check(ARGUMENTS("~tags.-2"), "tags", "tags: [a, 1]");
    check(ARGUMENTS("nested.-1.k=w"), "nested[1].k", "nested[1].k: w");
    check(ARGUMENTS("nested.-2.-1=w"), "nested[0]", "nested[0]: [1, w]");
    check(ARGUMENTS("tags.-4=z"), "",
          "tags is a list of 3 items, '-4' is none of them (the first is 0, the last -1)");
    check(ARGUMENTS("model.-1=z"), "", "model has no key '-1'");
}

static void test_plain_text(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "root=/data/a=b,c", "root: /data/a=b,c\n" },
        { "root= a;b ", "root: a;b\n" },
        { "root=it's", "root: it's\n" },
        { "root=photo(1).png", "root: photo(1).png\n" },
        { "root=a,b", "root: a,b\n" },
        { "root=${lr}/x=1", "root: 0.1/x=1\n" },
        { "root=a\\=b", "root: a=b\n" }, /* one value, which is read */
        { "++root=a=b", "root: a=b\n" },
        { "root='a'=b", "'=' after quoted text" },
        { "root=[a=b]", "column 8: '=' in a value must be quoted" },
        { "root=choice(a,b)", "root has several values" },
        { "root=int(x)", "'x' is not a valid int" },
        { "free=a=b", "argument 1 `free=a=b`: column 7: '=' in a value must be quoted" },
        { "free=a,b", "free has several values" },
        { "model=a=b", "argument 1 `model=a=b`: column 8: '=' in a value must be quoted" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        check(ARGUMENTS(cases[i].text), "root", cases[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),     cmocka_unit_test(test_remove),
        cmocka_unit_test(test_replace),    cmocka_unit_test(test_from_the_end),
        cmocka_unit_test(test_plain_text),
    };

    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
