/* !append, !remove, !replace and !delete in files: their effect and their messages. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/config_tree.h"

static const char base[] = "defaults: [opt: sgd, _self_, exp: null]\ntags: [a, b]\nplain: 1\n"
                           "ref: ${tags}\nnone: null\n";
static const char sgd[] = "lr: 0.1\nmomentum: 0.9\nbetas: [1, 2]\nnest: {a: 1, b: {c: 2}}\n";

/* The config as YAML, or the messages, with `text` as experiment. */
static char *with_experiment(const char *text)
{
    TreeFile files[] = {
        { "config.yaml", base }, { "opt/sgd.yaml", sgd }, { "exp/e.yaml", text }, { NULL, NULL }
    };
    const char *const overrides[] = { "exp=e", NULL };
    Tree tree = tree_make(files);
    char *yaml = tree_yaml(&tree, overrides, false);

    tree_remove(&tree);
    return yaml;
}

#define GLOBAL "# @package _global_\n"

static void test_marks(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { GLOBAL "tags: !append [c]\n", "tags:\n  - a\n  - b\n  - c\n" },
        { GLOBAL "tags: !append\n  - c\n  - {x: 1}\n", "  - b\n  - c\n  - x: 1\n" },
        { GLOBAL "tags: !append c\n", "  - b\n  - c\n" },
        { GLOBAL "tags: !append 3\n", "  - b\n  - 3\n" },
        { GLOBAL "tags: !append {x: 1}\n", "  - b\n  - x: 1\n" },
        { GLOBAL "new: !append [1]\nnone: !append [2]\n", "none: [2]\nnew: [1]\n" },
        { GLOBAL "new: !append 1\n", "new: [1]\n" },
        { GLOBAL "deep: {er: !append [1]}\n", "deep:\n  er: [1]\n" },
        { GLOBAL "ref: !append [c]\n", "ref:\n  - a\n  - b\n  - c\n" },
        { GLOBAL "tags: !remove [a]\n", "tags:\n  - b\n" },
        { GLOBAL "tags: !remove a\n", "tags:\n  - b\n" },
        { GLOBAL "tags: !remove [a, b]\n", "tags: []\n" },
        { GLOBAL "opt: {betas: !remove [2]}\n", "  betas: [1]\n" },
        { GLOBAL "opt: !replace {k: 1}\n", "opt:\n  k: 1\ntags" },
        { GLOBAL "opt: !replace\n  k: 1\n  l: 2\n", "opt:\n  k: 1\n  l: 2\ntags" },
        { GLOBAL "opt: !replace [1]\ntags: !replace x\n", "opt: [1]\ntags: x\n" },
        { GLOBAL "opt: {nest: {b: !replace {}}}\n", "  nest:\n    a: 1\n    b: {}\n" },
        { GLOBAL "opt:\n  momentum: !delete\n", "  lr: 0.1\n  betas: [1, 2]\n" },
        { GLOBAL "tags: !delete\n", "c: 2\nplain: 1\n" },
        { "# @package opt.nest\n--- !replace\nk: 1\n", "  nest:\n    k: 1\n" },
        { "# @package opt.betas\n--- !append\n- 3\n", "  betas: [1, 2, 3]\n" },
        { "# @package opt\nmomentum: !delete\n", "  lr: 0.1\n  betas: [1, 2]\n" },
        { GLOBAL "x: &x !append [c]\ntags: *x\n", "tags:\n  - a\n  - b\n  - c\n" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *got = with_experiment(cases[i].text);

        if (strstr(got, cases[i].want) == NULL)
            fail_msg("%s\n--- gave\n%s", cases[i].text, got);
        free(got);
    }
}

static void test_mistakes(void **unused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { GLOBAL "tags: !remove [bb]\n", "T/exp/e.yaml:2:7: tags has no item bb to remove; did "
                                         "you mean 'b'?\n" },
        { GLOBAL "tags: !remove [123]\n", "tags has no item 123 to remove; it has a, b\n" },
        { GLOBAL "plain: !append [1]\n", "T/exp/e.yaml:2:8: plain is an integer, not a list (from "
                                         "T/config.yaml:3:8); only lists can be appended to and "
                                         "removed from\n" },
        { GLOBAL "opt: {momentm: !delete }\n", "T/exp/e.yaml:2:16: opt.momentm: no value "
                                               "to !delete; did you mean 'opt.momentum'?\n" },
        { GLOBAL "zzzzzz: !remove [1]\n", "zzzzzz: no value to !remove; a new key needs no tag\n" },
        { GLOBAL "new: {x: {y: !delete }}\n", "T/exp/e.yaml:2:14: new.x.y: no value to !delete\n" },
        { GLOBAL "tags: !delete x\n", "tag !delete takes no value" },
        { GLOBAL "tags: !delete [x]\n", "tag !delete takes no value" },
        { GLOBAL "tags: [!append x]\n",
          "tag !append belongs after a key; nothing is merged inside a list" },
        { GLOBAL "tags: [{x: !delete }]\n",
          "tag !delete belongs after a key; nothing is merged inside a list" },
        { GLOBAL "!append tags: x\n", "tag !append belongs after the key's colon" },
        { GLOBAL "tags: !extend [x]\n", "tag !extend does not fit a list; a config has !append" },
        { GLOBAL "tags: !extend x\n", "tag !extend is not known; a config has !append" },
        { GLOBAL "defaults: !append [opt: sgd]\n", "defaults: !append can't stand here" },
        { GLOBAL "--- !replace\nx: 1\n", "!replace cannot apply to the whole config" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *got = with_experiment(cases[i].text);

        if (strstr(got, cases[i].want) == NULL)
            fail_msg("%s\n--- gave\n%s", cases[i].text, got);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_mistakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
