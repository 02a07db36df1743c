/* Composing: defaults lists, packages, overrides, several errors at once. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "config/defaults/group_files.h"
#include "tests/support/cmocka.h"
#include "tests/support/config_tree.h"

static const TreeFile files[] = {
    { "config.yaml", "defaults:\n"
                     "  - net: small\n"
                     "  - opt@train.opt: sgd\n"
                     "  - optional local: mine\n"
                     "  - _self_\n"
                     "lr: 0.1\n"
                     "tags: [a, b]\n"
                     "train: {epochs: 3, opt: {nesterov: true}}\n"
                     "net: {width: 8}\n" },
    { "net/small.yaml", "width: 4\ndepth: 1\n" },
    { "net/large.yaml", "defaults:\n  - small\n  - /extra@_here_: x\n  - _self_\n"
                        "depth: 9\nhead: {dim: '${net.width}'}\n" },
    { "opt/sgd.yaml", "name: sgd\nlr: ${lr}\n" },
    { "opt/adam.yaml", "name: adam\nlr: ${lr}\nbetas: [0.9, 0.999]\n" },
    { "extra/x.yaml", "x: 1\n" },
    { "exp/one.yaml", "# @package _global_\ndefaults:\n  - override /net: large\n"
                      "lr: 0.5\ntrain: {epochs: 7}\n" },
    { "exp/two.yaml", "# @package _global_\ndefaults:\n  - one\n"
                      "  - override /opt@train.opt: adam\n  - _self_\nlr: 0.9\n" },
    { NULL, NULL },
};

typedef struct Case {
    const char *overrides[4];
    const char *want;
} Case;

static void check(const Case *cases, size_t n, bool whole)
{
    Tree tree = tree_make(files);

    for (size_t i = 0; i < n; i++) {
        char *got = tree_yaml(&tree, cases[i].overrides, true);

        if (whole ? strcmp(got, cases[i].want) != 0 : strstr(got, cases[i].want) == NULL)
            fail_msg("case %zu %s: got\n%s\nwant\n%s", i,
                     cases[i].overrides[0] != NULL ? cases[i].overrides[0] : "-", got,
                     cases[i].want);
        free(got);
    }
    tree_remove(&tree);
}

static void test_whole(void **unused)
{
    static const Case cases[] = {
        { { NULL },
          "net:\n  width: 8\n  depth: 1\n"
          "train:\n  opt:\n    name: sgd\n    lr: 0.1\n    nesterov: true\n"
          "  epochs: 3\nlr: 0.1\ntags:\n  - a\n  - b\n" },
        { { "+exp=two", NULL },
          "net:\n  width: 8\n  depth: 9\n  x: 1\n  head:\n    dim: 8\n"
          "train:\n  opt:\n    name: adam\n    lr: 0.9\n    betas: [0.9, 0.999]\n"
          "    nesterov: true\n  epochs: 7\nlr: 0.9\ntags:\n  - a\n  - b\n" },
    };

    (void)unused;
    check(cases, KILN_COUNT(cases), true);
}

static void test_parts(void **unused)
{
    static const Case cases[] = {
        { { "net=large", NULL }, "  width: 8\n  depth: 9\n  x: 1\n  head:\n    dim: 8\n" },
        { { "opt@train.opt=adam", "train.opt.betas.1=0.5", NULL }, "betas: [0.9, 0.5]\n" },
        { { "+opt@second=adam", NULL }, "second:\n  name: adam\n" },
        { { "~net", "lr=1", NULL }, "tags:\n  - a\n  - b\nnet:\n  width: 8\n" },
        { { "~opt@train.opt", NULL }, "train:\n  epochs: 3\n" },
        { { "net=[small,large]", NULL }, "  depth: 9\n" },
        { { "lr=1e-5", NULL }, "lr: 1.0e-05\ntags" },
        { { "tags=[]", NULL }, "tags: []\n" },
        { { "tags.0='x, y'", NULL }, "tags:\n  - x, y\n  - b\n" },
        { { "+net.new={a:1}", "net.new.a=2", NULL }, "  new:\n    a: 2\n" },
        { { "++net.new.deep.x=1", NULL }, "  new:\n    deep:\n      x: 1\n" },
        { { "~tags", NULL }, "lr: 0.1\n" },
        { { "~lr=0.1", "train.opt.lr=2", NULL }, "    lr: 2\n" },
        { { "net={width:3}", NULL }, "net:\n  width: 3\n  depth: 1\n" },
        { { "++net={width:3,more:1}", NULL }, "  width: 3\n  depth: 1\n  more: 1\n" },
        { { "lr=${train.epochs}", NULL }, "lr: 3\n" },
        { { "lr='${train.epochs}-x'", NULL }, "lr: '3-x'\n" },
        { { "kiln.job.name=j", "+k=${hydra:job.name}", NULL }, "k: j\n" },
        { { "net=large", "+k=${kiln:runtime.choices.net}", NULL }, "k: large\n" },
    };

    (void)unused;
    check(cases, KILN_COUNT(cases), false);
}

static void test_errors(void **unused)
{
    static const Case cases[] = {
        { { "net=smal", NULL },
          "argument 1 `net=smal`: net: there is no option 'smal'; did you mean 'small'? "
          "options of net: large, small (searched T and what ships with kiln)\n" },
        { { "nte=small", NULL },
          "argument 1 `nte=small`: the config has no key 'nte'; did you mean 'net'? Or to "
          "add a new key write +nte=small\n" },
        { { "net.widht=3", NULL },
          "argument 1 `net.widht=3`: net has no key 'widht'; did you mean 'net.width'? Or "
          "to add a new key write +net.widht=3\n" },
        { { "epochs=3", NULL }, "the config has no key 'epochs'; did you mean 'train.epochs'?" },
        { { "lr.x=3", NULL }, "argument 1 `lr.x=3`: lr is a number, it has no key 'x'\n" },
        { { "train.opt.lr.x=3", NULL }, "train.opt.lr refers to another node (${lr})" },
        { { "tags.7=3", NULL }, "tags is a list of 2 items, '7' is none of them" },
        { { "tags={a:1}", NULL },
          "tags: a mapping cannot be merged into a list (from T/config.yaml" },
        { { "net=[1]", NULL }, "there is no config 'net/1'" },
        { { "+lr=3", NULL },
          "argument 1 `+lr=3`: lr is there already (from T/config.yaml:6:5); "
          "to change it write lr=3, to set it whether it is there or not "
          "++lr=3\n" },
        { { "~lr=3", NULL }, "lr has another value (0.1), so it is kept" },
        { { "+net=large", NULL },
          "argument 1 `+net=large`: group 'net' is selected already, as 'small'; 'net=large' "
          "changes "
          "the selection, '+net=[large]' adds to it" },
        { { "~nope", NULL }, "argument 1 `~nope`: the config has no key 'nope'" },
        { { "~lr", "lr=3", NULL }, "no key 'lr' (argument 1 `~lr` removed it)" },
        { { "exp=one", NULL },
          "argument 1 `exp=one`: group 'exp' is not in the defaults list (it "
          "has net, opt@train.opt, local); to add it write +exp=one\n" },
        { { "opt=adam", NULL },
          "group 'opt' is not in the defaults list; did you mean "
          "opt@train.opt?" },
        { { "nope@x=1", NULL }, "there is no group 'nope'" },
        { { "nope/x=1", NULL }, "there is no group 'nope/x'" },
        { { "net=null", NULL }, "~group removes a group" },
        { { "++net=small", NULL }, "add a group with +" },
        { { "lr=1,2", NULL }, "argument 1 `lr=1,2`: lr has several values" },
        { { "lr=range(3)", NULL }, "but a single run takes one" },
        { { "net=small,large", NULL }, "but a single run takes one" },
        { { "kiln.job.chdir=perhaps", NULL },
          "argument 1 `kiln.job.chdir=perhaps`: kiln.job.chdir: expected true, false or null" },
        { { "hydra/launcher=nosuch", NULL }, "there is no option 'nosuch'; options of" },
        { { "lr=[", "net.widht=1", "nope=2", NULL }, "argument 3 `nope=2`" },
        { { "net=smal", "net.width=1", "nope=2", NULL }, "argument 3 `nope=2`" },
    };

    (void)unused;
    check(cases, KILN_COUNT(cases), false);
}

/* Keys that are missing because a file is not available are not reported again. */
static void test_no_followers(void **unused)
{
    Tree tree = tree_make(files);
    char *got = tree_yaml(&tree, (const char *[]) { "net=smal", "net.nope=1", NULL }, true);

    (void)unused;
    assert_non_null(strstr(got, "argument 1"));
    assert_null(strstr(got, "argument 2"));
    free(got);
    tree_remove(&tree);
}

static void test_bad_files(void **unused)
{
    static const struct {
        const char *path, *text, *want;
    } cases[] = {
        { "config.yaml", "a: [1\n", "T/config.yaml:1:4: this [ is not closed" },
        { "config.yaml", "b: 1\na: {x: ${b}}\n",
          "T/config.yaml:2:9: inside [...] and {...} an interpolation must be quoted" },
        { "config.yaml", "hello\n",
          "T/config.yaml:1:1: expected a mapping (key: value), got text" },
        { "config.yaml", "- 1\n", "T/config.yaml: a list cannot be the whole config" },
        { "config.yaml", "defaults: {net: small}\n",
          "T/config.yaml:1:11: defaults: expected a list like" },
        { "config.yaml", "defaults:\n  - net: small\n  - net: no\n",
          "T/config.yaml:3:10: defaults: net: expected the name of an option" },
        { "config.yaml", "defaults:\n  - net: ?\?\?\n",
          "T/config.yaml:2:10: net: select an option: net=OPTION; options of net: "
          "large, small" },
        { "config.yaml", "defaults:\n  - ent: small\n",
          "T/config.yaml:2:5: there is no group 'ent'; did you mean 'net'?" },
        { "config.yaml", "defaults:\n  - override net: small\n  - opt: sgd\n",
          "T/config.yaml:3:5: defaults: 'opt' comes after 'override net'" },
        { "config.yaml", "defaults:\n  - opt: sgd\n  - override nope: x\n",
          "T/config.yaml:3:5: group 'nope' is not in the defaults list" },
        { "config.yaml", "defaults:\n  - net: small\n  - net: large\n",
          "group 'net' is selected twice" },
        { "config.yaml", "defaults:\n  - _self_\n  - _self_\n", "_self_ is there twice" },
        { "config.yaml", "defaults:\n  - config\n", "'config' includes itself" },
        { "config.yaml", "defaults:\n  - exp/cycle\n", "'exp/cycle2' includes itself" },
        { "config.yaml", "defaults:\n  - opt: [sgd, 1]\n", "expected the name of an option" },
        { "config.yaml", "defaults:\n  - net: small\n  - opt: ${nett}\n",
          "there is no key 'nett'; did you mean 'net'?" },
        { "config.yaml", "defaults:\n  - _self_\n  - opt@list: sgd\nlist: [1]\n",
          "list: a mapping cannot be merged into a list (from T/config.yaml:4:7)" },
        { "config.yaml", "hydra: 5\n", "T/config.yaml:1:8: kiln: expected a mapping" },
        { "config.yaml", "defaults:\n  - exp/bad\n",
          "T/exp/bad.yaml:1:1: header '# @package a b'" },
        { "config.yaml", "defaults:\n  - exp/searchpath\n",
          "kiln.searchpath can be set only in the primary config" },
        { "other.yaml", "a: 1\n", NULL },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Tree tree = tree_make(files);
        char *got;

        tree_write(&tree, "exp/cycle.yaml", "defaults: [cycle2]\n", 19);
        tree_write(&tree, "exp/cycle2.yaml", "defaults: [/exp/cycle2]\n", 24);
        tree_write(&tree, "exp/bad.yaml", "# @package a b\n", 15);
        tree_write(&tree, "exp/searchpath.yaml", "# @package _global_\nkiln: {searchpath: [x]}\n",
                   44);
        tree_write(&tree, cases[i].path, cases[i].text, strlen(cases[i].text));
        got = tree_yaml(&tree, NULL, false);
        if (cases[i].want != NULL && strstr(got, cases[i].want) == NULL)
            fail_msg("%s: got '%s', want '%s'", cases[i].text, got, cases[i].want);
        free(got);
        tree_remove(&tree);
    }
}

static void test_odd_files(void **unused)
{
    Tree tree = tree_make((TreeFile[]) { { "m/config.yaml/x", "" }, { NULL, NULL } });
    KilnComposeRequest request = { .config_path = "/nonexistent" };
    static const char *const names[] = { "m/config", "absent", "garbage" };
    char garbage[600];
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;
    char *messages;

    (void)unused;
    for (size_t i = 0; i < sizeof(garbage); i++)
        garbage[i] = (char)(i * 7919 % 251);
    tree_write(&tree, "garbage.yaml", garbage, sizeof(garbage));
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        assert_int_equal(kiln_errors_new(&errors), KILN_OK);
        request = (KilnComposeRequest) { .config_path = tree.dir, .config_name = names[i] };
        assert_true(kiln_config_compose(&request, NULL, &config, errors) < 0);
        assert_int_equal(kiln_errors_count(errors), 1);
        kiln_errors_free(errors);
    }
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    request = (KilnComposeRequest) { .config_path = "/nonexistent" };
    assert_int_equal(kiln_config_compose(&request, NULL, &config, errors), KILN_E_IO);
    messages = tree_messages(&tree, errors);
    assert_string_equal(messages, "--config-path: there is no folder '/nonexistent'\n");
    free(messages);
    kiln_errors_free(errors);
    assert_null(config);
    tree_remove(&tree);
}

/* A config made for Hydra, with its node's name. */
static void test_foreign(void **unused)
{
    Tree tree = tree_make((TreeFile[]) {
        { "config.yaml", "defaults:\n  - override hydra/job_logging: colorlog\n"
                         "  - override hydra/launcher: mine\n"
                         "hydra: {run: {dir: 'out/${name}'}, job: {name: j}}\nname: n\n"
                         "where: ${hydra:run.dir}\nalso: ${hydra.job.name}\n" },
        { "hydra/launcher/mine.yaml", "queue: q\n" },
        { NULL, NULL } });
    const char *const overrides[] = { "hydra.run.dir=x/${name}", "name=m", NULL };
    char *got = tree_yaml(&tree, overrides, true), *own = NULL, *messages = NULL;
    KilnConfig *config = NULL;

    (void)unused;
    assert_string_equal(got, "name: m\nwhere: x/m\nalso: j\n");
    free(got);
    assert_int_equal(tree_compose(&tree, NULL, overrides, &config, &messages), KILN_OK);
    assert_int_equal(kiln_config_yaml(config, "kiln.launcher", true, &own, NULL), KILN_OK);
    assert_string_equal(own, "queue: q\n");
    free(own);
    assert_int_equal(kiln_config_yaml(config, "hydra.overrides", true, &own, NULL), KILN_OK);
    assert_string_equal(own, "kiln:\n  - hydra.run.dir=x/${name}\ntask:\n  - name=m\n");
    free(own);
    free(messages);
    kiln_config_free(config);
    tree_remove(&tree);
}

static void test_search_path(void **unused)
{
    Tree tree = tree_make(files);
    Tree more = tree_make((TreeFile[]) { { "net/huge.yaml", "depth: 99\n" },
                                         { "net/small.yaml", "shadowed: 1\n" },
                                         { NULL, NULL } });
    const char *dirs[] = { more.dir, NULL };
    KilnComposeRequest request = { .config_path = tree.dir,
                                   .config_dirs = dirs,
                                   .overrides = (const char *[]) { "net=huge", NULL } };
    KilnConfig *config = NULL;
    char **names = NULL, *text = NULL;
    size_t count = 0;

    (void)unused;
    assert_int_equal(kiln_config_compose(&request, NULL, &config, NULL), KILN_OK);
    assert_int_equal(kiln_config_text(config, "net.depth", &text, NULL), KILN_OK);
    assert_string_equal(text, "99");
    free(text);
    kiln_config_free(config);
    request.overrides = NULL;
    assert_int_equal(kiln_config_compose(&request, NULL, &config, NULL), KILN_OK);
    assert_int_equal(kiln_config_text(config, "net.depth", &text, NULL), KILN_OK);
    assert_string_equal(text, "1"); /* the first folder's small */
    free(text);
    kiln_config_free(config);
    assert_int_equal(kiln_group_options(&request, NULL, "opt", false, &names, &count, NULL),
                     KILN_OK);
    assert_true(count >= 2); /* and what ships */
    assert_string_equal(names[0], "adam");
    kiln_names_free(names, count);
    tree_remove(&tree);
    tree_remove(&more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_parts),
        cmocka_unit_test(test_errors),    cmocka_unit_test(test_no_followers),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_odd_files),
        cmocka_unit_test(test_foreign),   cmocka_unit_test(test_search_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
