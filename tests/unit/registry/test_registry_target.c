/* Looking up components by kind and name, and by _target_. */
#include <string.h>

#include "registry/builtin.h"
#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

static void test_sorted(void **unused)
{
    KilnRegistry *registry = toy_registry_new();

    (void)unused;
    assert_int_equal(kiln_registry_count(registry), KILN_COUNT(toy_components) - 1);
    for (size_t i = 1; i < kiln_registry_count(registry); i++) {
        const KilnComponent *a = kiln_registry_at(registry, i - 1),
                            *b = kiln_registry_at(registry, i);

        assert_true(a->kind < b->kind || (a->kind == b->kind && strcmp(a->name, b->name) < 0));
        assert_ptr_equal(kiln_registry_find(registry, b->kind, b->name), b);
    }
    assert_null(kiln_registry_at(registry, KILN_COUNT(toy_components) - 1));
    assert_null(kiln_registry_find(registry, KILN_KIND_MODEL, "flip"));
    assert_null(kiln_registry_find(registry, KILN_KIND_MODEL, ""));
    kiln_registry_free(registry);
}

static void test_target(void **unused)
{
    static const struct {
        const char *target;
        KilnKind kind;
        const KilnComponent *want;
        const char *error;
    } cases[] = {
        { "model/net", KILN_KIND_MODEL, &toy_net, NULL },
        { "model/net", KILN_KIND_ANY, &toy_net, NULL },
        { "net", KILN_KIND_MODEL, &toy_net, NULL },
        { "net", KILN_KIND_ANY, &toy_net, NULL },
        { "wide", KILN_KIND_MODEL, &toy_wide, NULL },
        { "wide", KILN_KIND_TRANSFORM, &toy_wide_transform, NULL },
        { "wide", KILN_KIND_ANY, NULL,
          "\"wide\" is the name of a model and of a transform: write model/wide or "
          "transform/wide" },
        { "netx", KILN_KIND_MODEL, NULL,
          "there is no model \"netx\"; did you mean \"net\"?\n  there are: nest, net, wide" },
        { "sgd", KILN_KIND_MODEL, NULL,
          "there is no model \"sgd\", it is an optimizer\n  there are: nest, net, wide" },
        { "optimizer/sgd", KILN_KIND_MODEL, NULL,
          "expected a model, got \"optimizer/sgd\", which is an optimizer" },
        { "model/flip", KILN_KIND_ANY, NULL,
          "there is no model \"flip\", it is a transform\n  there are: nest, net, wide" },
        { "modle/net", KILN_KIND_ANY, NULL,
          "\"modle/net\": there is no kind of components named \"modle\"; did you mean "
          "\"model/net\"?" },
        { "torch.optim.SGD", KILN_KIND_ANY, NULL,
          "there is no component \"torch.optim.SGD\"; kiln list shows all; "
          "--plugin FILE.so adds those of a plugin" },
        { "flipp", KILN_KIND_ANY, NULL, "there is no component \"flipp\"; did you mean \"flip\"?" },
        { "", KILN_KIND_MODEL, NULL,
          "there is no model \"\"\n  there are: nest, net, wide; "
          "--plugin FILE.so adds those of a plugin" },
        { "/", KILN_KIND_MODEL, NULL, "\"/\": there is no kind of components named \"\"" },
    };
    KilnRegistry *registry = toy_registry_new();

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        const KilnComponent *got = NULL;
        KilnError err = { 0 };
        KilnStatus status = kiln_registry_target(registry, cases[i].target, cases[i].kind, &got,
                                                 &err);

        if (got != cases[i].want || (status == KILN_OK) != (got != NULL) ||
            (cases[i].error != NULL && strcmp(err.text, cases[i].error) != 0))
            fail_msg("%s: %s", cases[i].target, err.text);
    }
    kiln_registry_free(registry);
}

static void test_add_is_all_or_nothing(void **unused)
{
    static const KilnComponent extra = { .kind = KILN_KIND_LOGGER, .name = "extra" };
    static const KilnComponent *const list[] = { &extra, &toy_flip, NULL };
    KilnRegistry *registry = toy_registry_new();
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_registry_insert(registry, list, &err), KILN_E_PLUGIN);
    assert_non_null(strstr(err.text, "transform/flip is registered already"));
    assert_int_equal(kiln_registry_count(registry), KILN_COUNT(toy_components) - 1);
    assert_null(kiln_registry_find(registry, KILN_KIND_LOGGER, "extra"));
    assert_ptr_equal(kiln_registry_find(registry, KILN_KIND_TRANSFORM, "flip"), &toy_flip);
    kiln_registry_free(registry);
}

/* What is refused in a plugin must not be in the program itself. */
static void test_built_in_components_are_sound(void **unused)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    size_t n = 0;

    (void)unused;
    for (; kiln_builtin_components[n] != NULL; n++)
        if (kiln_component_check(kiln_builtin_components[n], &err) < 0)
            fail_msg("%s", err.text);
    if (kiln_registry_new(&registry, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_registry_count(registry), n);
    kiln_registry_free(registry);
    kiln_registry_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sorted),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_add_is_all_or_nothing),
        cmocka_unit_test(test_built_in_components_are_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
