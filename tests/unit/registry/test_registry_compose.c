/* The defaults layer: options tables below a composed tree. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

static KilnRegistry *registry;

static int setup(void **unused)
{
    (void)unused;
    registry = toy_registry_new();
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    kiln_registry_free(registry);
    return 0;
}

/* A composed tree, or a failed test. */
static KilnConfig *compose(const char *yaml, const char *const *overrides)
{
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;

    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    if (compose_yaml(yaml, overrides, registry, toy_root(), &config, errors) < 0)
        fail_msg("%s", errors_join(errors));
    kiln_errors_free(errors);
    return config;
}

static void text_is(const KilnConfig *config, const char *key, const char *want)
{
    const KilnConfigNode *node = kiln_node_find(kiln_config_root(config), key);

    if (node == NULL || node->kind != KILN_NODE_SCALAR)
        fail_msg("%s is not there", key);
    assert_string_equal(node->text, want);
}

static bool has(const KilnConfig *config, const char *key)
{
    return kiln_node_find(kiln_config_root(config), key) != NULL;
}

#define ROOT "task: {_target_: toy}\nmodel: {_target_: net}\nlr: 0.1\n"

static void test_defaults_are_there(void **unused)
{
    KilnConfig *config = compose(ROOT, NULL);

    (void)unused;
    text_is(config, "seed", "42");
    text_is(config, "trainer.max_epochs", "10");
    text_is(config, "kiln.run.max_epochs", "10");
    text_is(config, "model.depth", "18");
    text_is(config, "task.model", "${model}");
    text_is(config, "task.optimizer._target_", "sgd");
    text_is(config, "task.optimizer.lr", "${lr}");
    text_is(config, "task.optimizer.nesterov", "true"); /* the task's, above sgd's own */
    const KilnConfigNode *depth = kiln_node_find(kiln_config_root(config), "model.depth");
    assert_int_equal(depth->layer, KILN_LAYER_DEFAULT);
    assert_string_equal(depth->origin.source, "default of model/net");
    assert_int_equal(depth->origin.line, 0);
    kiln_config_free(config);
}

static void test_history_ends_in_the_default(void **unused)
{
    const char *overrides[] = { "model.depth=50", "model.depth=34", NULL };
    KilnConfig *config = compose("task: toy\nmodel: {_target_: net, depth: 3}\nlr: 1\n", overrides);
    const KilnConfigNode *depth = kiln_node_find(kiln_config_root(config), "model.depth");

    (void)unused;
    assert_string_equal(depth->text, "34");
    assert_string_equal(depth->replaced->text, "50");
    assert_string_equal(depth->replaced->replaced->text, "3");
    assert_string_equal(depth->replaced->replaced->replaced->text, "18");
    assert_null(depth->replaced->replaced->replaced->replaced);
    kiln_config_free(config);
}

static void test_plain_names(void **unused)
{
    const char *overrides[] = { "task.model=wide",     "task.optimizer=sgd",
                                "task.optimizer.lr=7", "task.transforms=[flip,{_target_:flip,p:1}]",
                                "+callbacks.a=all",    NULL };
    KilnConfig *config = compose(ROOT, overrides);

    (void)unused;
    text_is(config, "task.model._target_", "wide");
    text_is(config, "task.optimizer._target_", "sgd");
    text_is(config, "task.optimizer.lr", "7");
    text_is(config, "task.model.name", "wide");
    text_is(config, "task.transforms[0]._target_", "flip");
    text_is(config, "task.transforms[0].p", "0.5");
    text_is(config, "task.transforms[1].p", "1");
    text_is(config, "callbacks.a.count", "3");
    kiln_config_free(config);
}

static void test_required_options_are_missing(void **unused)
{
    const char *overrides[] = { "task.model=wide", NULL };
    KilnConfig *config = compose(ROOT, overrides);
    const KilnConfigNode *width = kiln_node_find(kiln_config_root(config), "task.model.width");

    (void)unused;
    assert_non_null(width);
    assert_int_equal(width->scalar, KILN_SCALAR_MISSING);
    kiln_config_free(config);
}

static void test_another_target_takes_its_defaults_along(void **unused)
{
    const char *overrides[] = { "model.depth=50", "model._target_=model/wide", "model.width=9",
                                NULL };
    KilnConfig *config = compose(ROOT, overrides);

    (void)unused;
    text_is(config, "model.depth", "50"); /* written: the check will name it */
    assert_false(has(config, "model.dropout"));
    text_is(config, "model.width", "9");
    text_is(config, "model.name", "wide");
    assert_null(kiln_node_find(kiln_config_root(config), "model.depth")->replaced);
    kiln_config_free(config);
}

static void test_a_removed_option_falls_back(void **unused)
{
    const char *overrides[] = { "model.depth=3", "~model.depth", "~trainer", NULL };
    KilnConfig *config = compose(ROOT, overrides);

    (void)unused;
    text_is(config, "model.depth", "18");
    text_is(config, "trainer.max_epochs", "10");
    kiln_config_free(config);
}

static void test_a_target_by_interpolation(void **unused)
{
    static const char yaml[] = "task: {_target_: toy}\nwhich: model/net\n"
                               "model: {_target_: \"${which}\"}\nlr: 1\n";
    const char *overrides[] = { "which=model/wide", NULL };
    KilnConfig *config = compose(yaml, NULL);

    (void)unused;
    text_is(config, "model.depth", "18");
    kiln_config_free(config);
    config = compose(yaml, overrides);
    assert_false(has(config, "model.depth"));
    text_is(config, "model.name", "wide");
    kiln_config_free(config);
}

#define RICH ROOT "logger: {a: {_target_: rich, "

static void test_nested_defaults_are_there(void **unused)
{
    const char *overrides[] = { "logger.a.window.pad.left=3", "logger.a.extra={length:5}",
                                "logger.a.extra.pad.right=2", NULL };
    KilnConfig *config = compose(RICH "window: {shape: hann}}}\n", overrides);

    (void)unused;
    text_is(config, "logger.a.window.shape", "hann");
    text_is(config, "logger.a.window.length", "8");
    text_is(config, "logger.a.window.pad.left", "3");
    text_is(config, "logger.a.window.pad.right", "null");
    text_is(config, "logger.a.extra.length", "5");
    text_is(config, "logger.a.extra.pad.left", "1");
    text_is(config, "logger.a.extra.pad.right", "2");
    text_is(config, "logger.a.counts.two", "2");
    const KilnConfigNode *left = kiln_node_find(kiln_config_root(config),
                                                "logger.a.window.pad.left");
    assert_string_equal(left->replaced->text, "1");
    assert_null(left->replaced->replaced);
    kiln_config_free(config);
}

static void test_a_removed_nested_option_falls_back(void **unused)
{
    const char *overrides[] = { "~logger.a.window.length", NULL };
    KilnConfig *config = compose(RICH "window: {length: 3}}}\n", overrides);

    (void)unused;
    text_is(config, "logger.a.window.length", "8");
    kiln_config_free(config);
}

/* The nested defaults go with the component that they are of. */
static void test_nested_defaults_go(void **unused)
{
    const char *overrides[] = { "model.window={shape:hann}", "model._target_=net", NULL };
    KilnConfig *config = compose("task: toy\nlr: 1\nmodel: {_target_: logger/rich}\n", overrides);

    (void)unused;
    text_is(config, "model.window.shape", "hann"); /* written: the check will name it */
    assert_false(has(config, "model.window.length"));
    assert_false(has(config, "model.window.pad"));
    assert_false(has(config, "model.timeout"));
    kiln_config_free(config);
}

static void test_components_in_structs(void **unused)
{
    KilnConfig *config = compose(RICH "stages: [{name: x, filter: flip}]}}\n", NULL);

    (void)unused;
    text_is(config, "logger.a.stages[0].filter._target_", "flip");
    text_is(config, "logger.a.stages[0].filter.p", "0.5");
    kiln_config_free(config);
}

static void test_an_unknown_target_is_reported_before_what_follows(void **unused)
{
    const char *overrides[] = { "model._target_=model/netx", "model.width=5", NULL };
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;

    (void)unused;
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    assert_true(compose_yaml(ROOT, overrides, registry, toy_root(), &config, errors) < 0);
    assert_null(config);
    assert_true(kiln_errors_count(errors) >= 2);
    assert_non_null(strstr(kiln_errors_text(errors, 0), "model: there is no model \"netx\""));
    kiln_errors_free(errors);
}

/* model=wide without a file: the registry's component is the option. */
static void test_components_are_group_options(void **unused)
{
    static const char yaml[] = "defaults:\n  - model: net\n  - task: toy\n  - _self_\nlr: 1\n";
    const char *overrides[] = { "model=wide", "model.width=3", NULL };
    KilnConfig *config = compose(yaml, NULL);

    (void)unused;
    text_is(config, "model._target_", "model/net");
    text_is(config, "model.depth", "18");
    text_is(config, "task._target_", "module/toy");
    kiln_config_free(config);
    config = compose(yaml, overrides);
    text_is(config, "model._target_", "model/wide");
    text_is(config, "model.width", "3");
    kiln_config_free(config);

    const char *typo[] = { "model=wied", NULL };
    KilnErrors *errors = NULL;
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    assert_true(compose_yaml(yaml, typo, registry, toy_root(), &config, errors) < 0);
    char *text = errors_join(errors);
    if (strstr(text, "wide") == NULL)
        fail_msg("%s", text);
    free(text);
    kiln_errors_free(errors);
}

static const KilnField endless_fields[] = {
    KILN_FIELD_COMPONENT(ToyNest, inner, KILN_KIND_MODEL, "{_target_: endless}", "itself"),
    KILN_FIELD_END,
};

static const KilnComponent endless = {
    .kind = KILN_KIND_MODEL,
    .name = "endless",
    .summary = "Contains itself by default",
    KILN_FIELDS(endless_fields),
    .opts_size = sizeof(ToyNest),
    .ops.model = &toy_model_ops,
};

static void test_endless_defaults(void **unused)
{
    static const KilnComponent *const list[] = { &endless, NULL };
    const char *overrides[] = { "model._target_=endless", NULL };
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;

    (void)unused;
    assert_int_equal(kiln_registry_insert(registry, list, NULL), KILN_OK);
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    assert_true(compose_yaml(ROOT, overrides, registry, toy_root(), &config, errors) < 0);
    assert_non_null(strstr(kiln_errors_text(errors, 0), "components within components"));
    kiln_errors_free(errors);
}

static void test_a_foreign_tree_stays_as_it_is(void **unused)
{
    KilnConfig *config = compose("a: {b: 1}\n", NULL);

    (void)unused;
    assert_false(has(config, "seed"));
    assert_false(has(config, "trainer"));
    text_is(config, "a.b", "1");
    kiln_config_free(config);
}

static void test_without_registry(void **unused)
{
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;

    (void)unused;
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    assert_int_equal(
        compose_yaml("model: {_target_: torch.nn.Linear}\n", NULL, NULL, NULL, &config, errors),
        KILN_OK);
    assert_false(has(config, "trainer"));
    kiln_config_free(config);
    kiln_errors_free(errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_there),
        cmocka_unit_test(test_history_ends_in_the_default),
        cmocka_unit_test(test_plain_names),
        cmocka_unit_test(test_required_options_are_missing),
        cmocka_unit_test(test_another_target_takes_its_defaults_along),
        cmocka_unit_test(test_a_removed_option_falls_back),
        cmocka_unit_test(test_a_target_by_interpolation),
        cmocka_unit_test(test_nested_defaults_are_there),
        cmocka_unit_test(test_a_removed_nested_option_falls_back),
        cmocka_unit_test(test_nested_defaults_go),
        cmocka_unit_test(test_components_in_structs),
        cmocka_unit_test(test_an_unknown_target_is_reported_before_what_follows),
        cmocka_unit_test(test_components_are_group_options),
        cmocka_unit_test(test_a_foreign_tree_stays_as_it_is),
        cmocka_unit_test(test_without_registry),
        cmocka_unit_test(test_endless_defaults), /* last: changes the registry */
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
