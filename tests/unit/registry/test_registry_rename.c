/* Former names of options: accepted with a warning that names the line. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

#define ROOT "task: {_target_: toy}\nmodel: {_target_: net}\nlr: 0.1\nlogger: {a: {_target_: rich, "

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

typedef struct Result {
    KilnConfig *config;
    char *messages; /* warnings begin with "warning: " */
    size_t warnings, failures;
} Result;

/* Composed and checked; released with drop. */
static Result compose(const char *yaml, const char *override, const char *more)
{
    const char *overrides[] = { override, more, NULL };
    KilnErrors *errors = NULL;
    Result result = { 0 };
    KilnText text = { 0 };

    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    KilnStatus status = compose_yaml(yaml, overrides, registry, toy_root(), &result.config, errors);
    if (status == KILN_OK)
        status = kiln_config_check(result.config, registry, errors);
    for (size_t i = 0; i < kiln_errors_count(errors); i++) {
        bool warning = kiln_errors_is_warning(errors, i);

        kiln_text_printf(&text, "%s%s\n", warning ? "warning: " : "", kiln_errors_text(errors, i));
        *(warning ? &result.warnings : &result.failures) += 1;
    }
    assert_int_equal(status<0, result.failures> 0);
    kiln_errors_free(errors);
    result.messages = kiln_text_take(&text);
    assert_non_null(result.messages);
    return result;
}

static void drop(Result *result)
{
    kiln_config_free(result->config);
    free(result->messages);
}

static void test_accepted(void **unused)
{
    static const struct {
        const char *yaml, *first, *second, *key, *value, *warning;
    } cases[] = {
        { ROOT "time_limit: 5m}}\n", NULL, NULL, "logger.a.timeout", "5m", "config.yaml:4:30: " },
        { ROOT "window: {size: 3}}}\n", NULL, NULL, "logger.a.window.length", "3",
          "yaml:4:39: logger.a.window.size is now logger.a.window.length: since 0.2\n" },
        { ROOT "stages: [{title: x}]}}\n", NULL, NULL, "logger.a.stages[0].name", "x",
          ": logger.a.stages[0].title is now logger.a.stages[0].name: since 0.2\n" },
        { ROOT "named: {k: {title: x}}}}\n", NULL, NULL, "logger.a.named.k.name", "x",
          ": logger.a.named.k.title is now logger.a.named.k.name: since 0.2\n" },
        { ROOT "span: 5}}\n", NULL, NULL, "logger.a.window.length", "5",
          ": logger.a.span is now logger.a.window.length: since 0.3\n" },
        { ROOT "span: 5, window: {shape: x}}}\n", NULL, NULL, "logger.a.window.length", "5",
          ": logger.a.span is now logger.a.window.length: since 0.3\n" },
        { ROOT "span: 5}}\n", "logger.a.window.length=6", NULL, "logger.a.window.length", "6",
          ": logger.a.span is now logger.a.window.length: since 0.3\n" },
        { ROOT "}}\n", "logger.a.time_limit=7s", NULL, "logger.a.timeout", "7s",
          "warning: argument 1 `logger.a.time_limit=7s`: logger.a.time_limit is now "
          "logger.a.timeout: it may be longer than a day\n" },
        { ROOT "}}\n", "++logger.a.time_limit=7s", NULL, "logger.a.timeout", "7s",
          "warning: argument 1" },
        { ROOT "}}\n", "logger.a.window.size=7", NULL, "logger.a.window.length", "7",
          "warning: argument 1" },
        { ROOT "}}\n", "logger.a={time_limit:7s}", NULL, "logger.a.timeout", "7s",
          "warning: argument 1" },
        { ROOT "}}\n", "++logger.b={_target_:rich,time_limit:7s}", NULL, "logger.b.timeout", "7s",
          "`: logger.b.time_limit is now logger.b.timeout" },
        /* Arguments come after files, whichever name they use. */
        { ROOT "timeout: 1s}}\n", "logger.a.time_limit=7s", NULL, "logger.a.timeout", "7s",
          "warning: argument 1" },
        { ROOT "time_limit: 1s}}\n", "logger.a.timeout=7s", NULL, "logger.a.timeout", "7s",
          "config.yaml:4:30: " },
        { ROOT "time_limit: 1s}}\n", "logger.a.time_limit=7s", "logger.a.timeout=8s",
          "logger.a.timeout", "8s", "warning: argument 1" },
        { ROOT "timeout: 1s}}\n", "~logger.a.time_limit", NULL, "logger.a.timeout", "90s",
          "warning: argument 1" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Result result = compose(cases[i].yaml, cases[i].first, cases[i].second);
        const KilnConfigNode *node =
            result.failures == 0 ? kiln_node_find(kiln_config_root(result.config), cases[i].key)
                                 : NULL;

        if (node == NULL || strcmp(node->text, cases[i].value) != 0 ||
            strstr(result.messages, cases[i].warning) == NULL || result.warnings == 0)
            fail_msg("case %zu: %s is %s\n%s", i, cases[i].key, node != NULL ? node->text : "none",
                     result.messages);
        assert_null(kiln_node_find(kiln_config_root(result.config), "logger.a.time_limit"));
        drop(&result);
    }
}

static void test_one_warning_for_one_place(void **unused)
{
    Result result = compose(ROOT "time_limit: 5m}}\n", "logger.a.limit=3", "+logger.b=rich");

    (void)unused;
    assert_int_equal(result.warnings, 1);
    drop(&result);
}

static void test_both_names(void **unused)
{
    Result result = compose(ROOT "timeout: 1s, time_limit: 5m}}\n", NULL, NULL);

    (void)unused;
    if (strstr(result.messages, "yaml:4:43: logger.a.time_limit is now timeout, and both are "
                                "given; keep only the new one\n  timeout from /tmp/") == NULL ||
        strstr(result.messages, "config.yaml:4:39\n") == NULL)
        fail_msg("%s", result.messages);
    drop(&result);
}

/* What is only referred to is not known to be a table's when names are moved. */
static void test_through_a_reference(void **unused)
{
    Result result = compose(ROOT "window: \"${w}\"}}\nw: {size: 3}\n", NULL, NULL);

    (void)unused;
    if (strstr(result.messages, "yaml:5:5: logger.a.window.size: it is now \"length\": since 0.2\n"
                                "  through ${w} in ") == NULL)
        fail_msg("%s", result.messages);
    drop(&result);
}

static void test_the_key_keeps_its_history(void **unused)
{
    Result result = compose(ROOT "time_limit: 5m}}\n", "logger.a.time_limit=7s", NULL);
    const KilnConfigNode *node = kiln_node_find(kiln_config_root(result.config),
                                                "logger.a.timeout");

    (void)unused;
    assert_string_equal(node->text, "7s");
    assert_string_equal(node->replaced->text, "5m");
    assert_string_equal(node->replaced->replaced->text, "90s");
    assert_null(node->replaced->replaced->replaced);
    drop(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_one_warning_for_one_place),
        cmocka_unit_test(test_both_names),
        cmocka_unit_test(test_through_a_reference),
        cmocka_unit_test(test_the_key_keeps_its_history),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
