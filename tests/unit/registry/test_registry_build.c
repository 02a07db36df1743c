/* Building components from a config tree, and freeing them. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

typedef struct Counted {
    KilnInstance *inner;
    bool fail;
} Counted;

static const KilnField counted_fields[] = {
    KILN_FIELD_COMPONENT_OPT(Counted, inner, KILN_KIND_MODEL, "null", "a network within"),
    KILN_FIELD_BOOL(Counted, fail, "false", "refuse"),
    KILN_FIELD_END,
};

static int started, released;
static char order[256];

static KilnStatus counted_init(KilnInstance *self, KilnError *err)
{
    const Counted *opts = kiln_opts(self);
    const unsigned char *state = kiln_state(self);

    started++;
    for (int i = 0; i < 24; i++)
        assert_int_equal(state[i], 0);
    snprintf(order + strlen(order), sizeof(order) - strlen(order), "%s ", kiln_instance_path(self));
    return opts->fail ? kiln_error_set(err, KILN_E_RANGE, "asked to fail") : KILN_OK;
}

static void counted_release(KilnInstance *self)
{
    assert_non_null(kiln_opts(self));
    assert_non_null(kiln_state(self));
    released++;
}

static const KilnComponent counted = {
    .kind = KILN_KIND_MODEL,
    .name = "counted",
    .summary = "Counts",
    KILN_FIELDS(counted_fields),
    .opts_size = sizeof(Counted),
    .state_size = 24,
    .init = counted_init,
    .release = counted_release,
    .ops.model = &toy_model_ops,
};

static KilnRegistry *registry;

static int setup(void **unused)
{
    static const KilnComponent *const list[] = { &counted, NULL };

    (void)unused;
    registry = toy_registry_new();
    return kiln_registry_insert(registry, list, NULL);
}

static int teardown(void **unused)
{
    (void)unused;
    kiln_registry_free(registry);
    return 0;
}

static KilnConfig *compose(const char *yaml)
{
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;

    started = released = 0;
    order[0] = '\0';
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    if (compose_yaml(yaml, NULL, registry, toy_root(), &config, errors) < 0)
        fail_msg("%s", errors_join(errors));
    kiln_errors_free(errors);
    return config;
}

static void test_children(void **unused)
{
    KilnConfig *config = compose("lr: 0.25\n"
                                 "model: {_target_: net, depth: 5}\n"
                                 "task:\n"
                                 "  _target_: toy\n"
                                 "  teacher: ${model}\n"
                                 "  transforms: [flip, transform/wide, {_target_: flip, p: 1}]\n"
                                 "  hooks: {b: quiet, none: null, a: {_target_: all, count: 9}}\n");
    KilnInstance *task = NULL;
    KilnError err = { 0 };

    (void)unused;
    if (kiln_config_build(config, "task", registry, KILN_KIND_MODULE, &task, &err) < 0)
        fail_msg("%s", err.text);
    const ToyTask *opts = kiln_opts(task);
    assert_ptr_equal(kiln_instance_component(task), &toy_task);
    assert_string_equal(kiln_instance_name(task), "toy");
    assert_string_equal(kiln_instance_path(task), "task");
    assert_null(kiln_state(task)); /* it declares no state_size */

    const ToyNet *net = kiln_opts(opts->model), *teacher = kiln_opts(opts->teacher);
    assert_int_equal(net->depth, 5);
    assert_int_equal(teacher->depth, 5);
    assert_ptr_not_equal(opts->model, opts->teacher);
    assert_string_equal(kiln_instance_path(opts->model), "task.model");
    assert_string_equal(kiln_instance_path(opts->teacher), "task.teacher");
    const ToySgd *sgd = kiln_opts(opts->optimizer);
    assert_true(sgd->lr == 0.25);
    assert_true(sgd->nesterov);

    assert_int_equal(opts->transforms_count, 3);
    assert_ptr_equal(kiln_instance_component(opts->transforms[1]), &toy_wide_transform);
    assert_true(((const ToyFlip *)kiln_opts(opts->transforms[0]))->p == 0.5);
    assert_true(((const ToyFlip *)kiln_opts(opts->transforms[2]))->p == 1.0);
    assert_string_equal(kiln_instance_path(opts->transforms[2]), "task.transforms[2]");
    assert_int_equal(opts->hooks_count, 2);
    assert_string_equal(kiln_instance_path(opts->hooks[0]), "task.hooks.b");
    assert_null(kiln_opts(opts->hooks[0])); /* no options */
    assert_int_equal(((const ToyAll *)kiln_opts(opts->hooks[1]))->count, 9);
    kiln_instance_free(task);
    kiln_config_free(config);
}

static void test_children_in_structs(void **unused)
{
    KilnConfig *config = compose("f: {_target_: flip, p: 0.25}\n"
                                 "a:\n"
                                 "  _target_: rich\n"
                                 "  filters: [flip, flip]\n"
                                 "  stages: [{name: x, filter: \"${f}\"}, {name: y}]\n"
                                 "  named: {k: {name: z, filter: flip}}\n"
                                 "b: {_target_: rich, filters: []}\n"
                                 "c: {_target_: rich, maybe_count: 3}\n");
    KilnInstance *a = NULL, *b = NULL, *c = NULL;
    KilnError err = { 0 };

    (void)unused;
    if (kiln_config_build(config, "a", registry, KILN_KIND_LOGGER, &a, &err) < 0 ||
        kiln_config_build(config, "b", registry, KILN_KIND_LOGGER, &b, &err) < 0)
        fail_msg("%s", err.text);
    const ToyRich *rich = kiln_opts(a);
    assert_int_equal(rich->filters_count, 2);
    assert_string_equal(kiln_instance_path(rich->filters[1]), "a.filters[1]");
    assert_string_equal(kiln_instance_path(rich->stages[0].filter), "a.stages[0].filter");
    assert_true(((const ToyFlip *)kiln_opts(rich->stages[0].filter))->p == 0.25);
    assert_null(rich->stages[1].filter);
    assert_string_equal(kiln_instance_path(rich->named[0].value.filter), "a.named.k.filter");
    rich = kiln_opts(b);
    assert_non_null(rich->filters); /* empty is not null */
    assert_int_equal(rich->filters_count, 0);
    /* Who builds without checking gets the cross-check all the same. */
    assert_int_equal(kiln_config_build(config, "c", registry, KILN_KIND_LOGGER, &c, &err),
                     KILN_E_RANGE);
    assert_non_null(strstr(err.text, "c.window.length: 8 is more than maybe_count, 3"));
    kiln_instance_free(a);
    kiln_instance_free(b);
    kiln_config_free(config);
}

static void test_children_come_first(void **unused)
{
    KilnConfig *config =
        compose("a: {_target_: counted, inner: {_target_: counted, inner: counted}}\n");
    KilnInstance *a = NULL;
    KilnError err = { 0 };

    (void)unused;
    if (kiln_config_build(config, "a", registry, KILN_KIND_MODEL, &a, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(order, "a.inner.inner a.inner a ");
    kiln_instance_free(a);
    assert_int_equal(started, 3);
    assert_int_equal(released, 3);
    kiln_config_free(config);
}

static void test_failure_releases_everything(void **unused)
{
    static const struct {
        const char *yaml, *want;
        int started;
    } cases[] = {
        { "a: {_target_: counted, fail: true, inner: counted}\n", "a: asked to fail", 2 },
        { "a: {_target_: counted, inner: {_target_: counted, fail: true}}\n",
          "a.inner: asked to fail", 1 },
        { "a: {_target_: counted, inner: {_target_: net, depth: 19}}\n",
          "a.inner: depth 19 is none of 18, 34, 50", 0 },
        { "a: {_target_: counted, inner: {_target_: wide}}\n",
          "a.inner.width: required value missing (features)", 0 },
        { "a: {_target_: counted, inner: {_target_: nest, inner: 3}}\n",
          "a.inner.inner: expected a model (a name, or a mapping with _target_) or null, got 3",
          0 },
        { "a: {_target_: counted, inner: {depth: 3}}\n", "a.inner: a mapping without _target_", 0 },
        { "a: {_target_: counted, inner: [1]}\n",
          "a.inner: expected a model (a name, or a mapping with _target_) or null, got a list", 0 },
        { "a: {_target_: nest, inner: \"${a}\"}\n", "more than 32 components within components",
          0 },
        { "a: flip\n", "a: there is no model \"flip\"", 0 },
        { "b: 1\n", "a: there is no model to build", 0 },
        { "a: null\n", "a: there is no model to build", 0 },
        { "a: {_target_: toy}\n", "there is no model \"toy\"", 0 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnConfig *config = compose(cases[i].yaml);
        KilnInstance *a = NULL;
        KilnError err = { 0 };

        assert_true(kiln_config_build(config, "a", registry, KILN_KIND_MODEL, &a, &err) < 0);
        if (a != NULL || strstr(err.text, cases[i].want) == NULL)
            fail_msg("%s gave %s", cases[i].yaml, err.text);
        assert_int_equal(started, cases[i].started);
        assert_int_equal(released, started);
        kiln_config_free(config);
    }
}

/* Ten doublings in each of which a network holds the next twice. */
static void test_doubling_is_bounded(void **unused)
{
    KilnText yaml = { 0 };

    (void)unused;
    for (int i = 0; i < 20; i++)
        kiln_text_printf(&yaml, "m%d: {_target_: nest, inner: \"${m%d}\", other: \"${m%d}\"}\n", i,
                         i + 1, i + 1);
    kiln_text_append(&yaml, "m20: {_target_: net}\n");
    KilnConfig *config = compose(yaml.data);
    KilnInstance *a = NULL;
    KilnError err = { 0 };
    assert_int_equal(kiln_config_build(config, "m0", registry, KILN_KIND_MODEL, &a, &err),
                     KILN_E_RANGE);
    assert_non_null(strstr(err.text, "10000 in all"));
    kiln_config_free(config);
    kiln_text_release(&yaml);
}

static void test_maps(void **unused)
{
    KilnConfig *config = compose("callbacks: {x: quiet, y: null, z: {_target_: all}}\nbad: [1]\n"
                                 "worse: {x: quiet, y: {_target_: all, count: z}}\n");
    KilnInstance **list = NULL;
    size_t n = 7;
    KilnError err = { 0 };

    (void)unused;
    if (kiln_config_build_map(config, "callbacks", registry, KILN_KIND_CALLBACK, &list, &n, &err) <
        0)
        fail_msg("%s", err.text);
    assert_int_equal(n, 2);
    assert_string_equal(kiln_instance_path(list[1]), "callbacks.z");
    kiln_instances_free(list, n);
    assert_int_equal(
        kiln_config_build_map(config, "absent", registry, KILN_KIND_CALLBACK, &list, &n, &err),
        KILN_OK);
    assert_int_equal(n, 0);
    kiln_instances_free(list, n);
    n = 7;
    assert_int_equal(
        kiln_config_build_map(config, "bad", registry, KILN_KIND_CALLBACK, &list, &n, &err),
        KILN_E_TYPE);
    assert_int_equal(
        kiln_config_build_map(config, "worse", registry, KILN_KIND_CALLBACK, &list, &n, &err),
        KILN_E_TYPE);
    assert_non_null(strstr(err.text, "worse.y.count: expected an integer"));
    assert_int_equal(n, 7);
    kiln_config_free(config);
}

static void test_options_of_sections(void **unused)
{
    KilnConfig *config = compose("trainer: {max_epochs: 7}\nseed: ${s}\ns: 5\nlist: [1]\n");
    void *options = NULL;
    KilnError err = { 0 };

    (void)unused;
    if (kiln_config_options(config, "trainer", toy_trainer_fields, sizeof(ToyTrainer), &options,
                            &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(((ToyTrainer *)options)->max_epochs, 7);
    kiln_options_free(toy_trainer_fields, sizeof(ToyTrainer), options);
    if (kiln_config_options(config, "", toy_root_fields, sizeof(ToyRoot), &options, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(((ToyRoot *)options)->seed, 5);
    assert_null(((ToyRoot *)options)->task);
    kiln_options_free(toy_root_fields, sizeof(ToyRoot), options);
    assert_int_equal(kiln_config_options(config, "absent", toy_trainer_fields, sizeof(ToyTrainer),
                                         &options, &err),
                     KILN_OK);
    assert_int_equal(((ToyTrainer *)options)->max_epochs, 10);
    kiln_options_free(toy_trainer_fields, sizeof(ToyTrainer), options);
    assert_int_equal(
        kiln_config_options(config, "list", toy_trainer_fields, sizeof(ToyTrainer), &options, &err),
        KILN_E_TYPE);
    kiln_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_children_in_structs),
        cmocka_unit_test(test_children_come_first),
        cmocka_unit_test(test_failure_releases_everything),
        cmocka_unit_test(test_doubling_is_bounded),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_options_of_sections),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
