/* Reading one scalar as the value of one option. */
#include <stdlib.h>
#include <string.h>

#include "schema/bind.h"
#include "schema/field_value.h"
#include "schema/table.h"
#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

static void test_read(void **unused)
{
    static const struct {
        const char *field, *yaml, *error; /* NULL: fine */
    } cases[] = {
        { "flag", "true", NULL },
        { "flag", "yes", NULL },
        { "flag", "'true'", "expected true or false, got \"true\"" },
        { "flag", "1", "expected true or false, got 1" },
        { "flag", "null", "expected true or false, got null" },
        { "count", "7", NULL },
        { "count", "+7", NULL },
        { "count", "-5", NULL },
        { "count", "1_0", NULL },
        { "count", "-6", "expected an integer from -5 to 1000, got -6" },
        { "count", "99999999999999999999",
          "expected an integer from -5 to 1000, got 99999999999999999999" },
        { "count", "1e3", "expected an integer, got" },
        { "count", "1.0", "expected an integer, got 1.0" },
        { "count", "'7'", "expected an integer, got \"7\"" },
        { "count", "seven", "expected an integer, got \"seven\"" },
        { "count", "7x", "expected an integer, got \"7x\"" },
        { "count", "", "expected an integer, got null" },
        { "count", "[1]", "expected an integer, got a list" },
        { "count", "{a: 1}", "expected an integer, got a mapping" },
        { "count", "???", "required value missing (a count)" },
        { "rate", "0.25", NULL },
        { "rate", "1", NULL },
        { "rate", "1e-3", NULL },
        { "rate", ".inf", NULL },
        { "rate", ".nan", "expected a number of at least 0, got" },
        { "rate", "-0.5", "expected a number of at least 0, got -0.5" },
        { "rate", "fast", "expected a number, got \"fast\"" },
        { "rate", "'0.1'", "expected a number, got \"0.1\"" },
        { "rate", "0.1abc", "expected a number, got \"0.1abc\"" },
        { "rate", "true", "expected a number, got true" },
        { "label", "x y", NULL },
        { "label", "7", NULL },
        { "label", "true", NULL },
        { "label", "''", NULL },
        { "label", "'null'", NULL },
        { "label", "null", "expected text, got null" },
        { "label", "[a]", "expected text, got a list" },
        { "note", "null", NULL },
        { "note", "~", NULL },
        { "note", "", NULL },
        { "file", "null", "expected a path, got null" },
        { "spare", "null", NULL },
        { "spare", "{}", "expected a path or null, got a mapping" },
        { "mode", "max", NULL },
        { "mode", "maxx", "expected one of min, max, got \"maxx\"; did you mean \"max\"?" },
        { "mode", "1", "expected one of min, max, got 1" },
        { "mode", "null", "expected one of min, max, got null" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnArena arena = { 0 };
        KilnConfigNode *node;
        KilnValue value;
        KilnError err = { 0 };

        assert_int_equal(kiln_node_parse(&arena, cases[i].yaml, "case", &node, &err), KILN_OK);
        const KilnField *field = kiln_table_find(toy_all_fields, cases[i].field);
        assert_non_null(field);
        KilnStatus status = kiln_value_read(field, node, &value, &err);
        if ((status == KILN_OK) != (cases[i].error == NULL) ||
            (status < 0 && strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0))
            fail_msg("%s: %s: %d %s", cases[i].field, cases[i].yaml, status, err.text);
        kiln_arena_release(&arena);
    }
}

static void test_long_text_is_cut_between_characters(void **unused)
{
    KilnConfigNode node = { .kind = KILN_NODE_SCALAR, .scalar = KILN_SCALAR_STR };
    char text[200], got[KILN_GOT_TEXT];

    (void)unused;
    text[0] = 'x';
    for (size_t i = 0; i < 60; i++)
        memcpy(text + 1 + 2 * i, "é", 2);
    text[121] = '\0';
    node.text = text;
    kiln_value_got(&node, got, sizeof(got));
    assert_int_equal(strlen(got), 1 + 59 + 3 + 1);
    assert_true(kiln_ends_with(got, "é...\""));
}

typedef struct Quantities {
    KilnQuantity any, count, fast;
    KilnQuantity *maybe;
} Quantities;

static const KilnField quantity_fields[] = {
    KILN_FIELD_QUANTITY(Quantities, any, "1.0",
                        KILN_ALLOW_COUNT | KILN_ALLOW_FRACTION | KILN_ALLOW_DURATION, "any"),
    KILN_FIELD_QUANTITY(Quantities, count, "1", KILN_ALLOW_COUNT, "a count"),
    KILN_FIELD_QUANTITY(Quantities, fast, "false", KILN_ALLOW_COUNT | KILN_ALLOW_BOOL,
                        "or a switch"),
    KILN_FIELD_QUANTITY_OPT(Quantities, maybe, "null", KILN_ALLOW_DURATION, "maybe a time"),
    KILN_FIELD_END,
};

/* 1 is a count, 1.0 a fraction, 1s a duration. */
static void test_quantities(void **unused)
{
    static const struct {
        const char *field, *yaml;
        KilnStatus status;
        KilnQuantityUnit of;
        double value;
        const char *text;
    } cases[] = {
        { "any", "3", KILN_OK, KILN_QUANTITY_COUNT, 3, NULL },
        { "any", "1", KILN_OK, KILN_QUANTITY_COUNT, 1, NULL },
        { "any", "1.0", KILN_OK, KILN_QUANTITY_FRACTION, 1, NULL },
        { "any", "0.25", KILN_OK, KILN_QUANTITY_FRACTION, 0.25, NULL },
        { "any", "90s", KILN_OK, KILN_QUANTITY_DURATION, 90, NULL },
        { "any", "00:00:00:01", KILN_OK, KILN_QUANTITY_DURATION, 1, NULL },
        { "any", "'00:15:00'", KILN_OK, KILN_QUANTITY_DURATION, 900, NULL },
        { "any", "1.5", KILN_E_RANGE, 0, 0, "a fraction from 0.0 to 1.0 (0.25) or a duration" },
        { "any", "-1", KILN_E_RANGE, 0, 0, "a count (3), a fraction" },
        { "any", "'3'", KILN_E_TYPE, 0, 0, "got \"3\"" },
        { "any", "true", KILN_E_TYPE, 0, 0, "got true" },
        { "any", "much", KILN_E_TYPE, 0, 0, "got \"much\"" },
        { "count", "2", KILN_OK, KILN_QUANTITY_COUNT, 2, NULL },
        { "count", "0.5", KILN_E_TYPE, 0, 0, "expected a count (3), got 0.5" },
        { "fast", "true", KILN_OK, KILN_QUANTITY_COUNT, 1, NULL },
        { "fast", "false", KILN_OK, KILN_QUANTITY_COUNT, 0, NULL },
        { "fast", "7", KILN_OK, KILN_QUANTITY_COUNT, 7, NULL },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnArena arena = { 0 };
        KilnConfigNode *node;
        KilnValue value = { 0 };
        KilnError err = { 0 };

        assert_int_equal(kiln_node_parse(&arena, cases[i].yaml, "case", &node, &err), KILN_OK);
        KilnStatus status = kiln_value_read(kiln_table_find(quantity_fields, cases[i].field), node,
                                            &value, &err);
        if (status != cases[i].status ||
            (cases[i].text != NULL && strstr(err.text, cases[i].text) == NULL))
            fail_msg("%s: %s: status %d: %s", cases[i].field, cases[i].yaml, status, err.text);
        if (status >= 0 &&
            (value.integer != (int64_t)cases[i].of || value.number != cases[i].value))
            fail_msg("%s: %s: %lld, %g", cases[i].field, cases[i].yaml, (long long)value.integer,
                     value.number);
        kiln_arena_release(&arena);
    }
}

static void test_quantities_of(void **unused)
{
    (void)unused;
    assert_int_equal(kiln_quantity_of((KilnQuantity) { KILN_QUANTITY_COUNT, 3 }, 7), 3);
    assert_int_equal(kiln_quantity_of((KilnQuantity) { KILN_QUANTITY_COUNT, 9 }, 7), 7);
    assert_int_equal(kiln_quantity_of((KilnQuantity) { KILN_QUANTITY_FRACTION, 1.0 }, 7), 7);
    assert_int_equal(kiln_quantity_of((KilnQuantity) { KILN_QUANTITY_FRACTION, 0.4 }, 7), 2);
    assert_int_equal(kiln_quantity_of((KilnQuantity) { KILN_QUANTITY_FRACTION, 0.1 }, 7), 0);
    assert_int_equal(kiln_quantity_of((KilnQuantity) { KILN_QUANTITY_DURATION, 3 }, 7), -1);
}

static void test_quantities_are_loaded(void **unused)
{
    KilnArena arena = { 0 };
    KilnConfigNode *node;
    KilnError err = { 0 };
    void *options = NULL;

    (void)unused;
    assert_int_equal(
        kiln_table_check(quantity_fields, KILN_COUNT(quantity_fields), sizeof(Quantities), &err),
        KILN_OK);
    assert_int_equal(
        kiln_node_parse(&arena, "{any: 0.3, fast: true, maybe: 1h}", "case", &node, &err), KILN_OK);
    if (kiln_bind(NULL, node, "x", quantity_fields, sizeof(Quantities), &options, &err) < 0)
        fail_msg("%s", err.text);
    const Quantities *got = options;
    assert_int_equal(got->any.of, KILN_QUANTITY_FRACTION);
    assert_true(got->any.value == 0.3);
    assert_int_equal(got->count.of, KILN_QUANTITY_COUNT);
    assert_true(got->count.value == 1.0);
    assert_true(got->fast.value == 1.0);
    assert_true(got->maybe->of == KILN_QUANTITY_DURATION && got->maybe->value == 3600.0);
    kiln_options_free(quantity_fields, sizeof(Quantities), options);
    kiln_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_quantities_of),
        cmocka_unit_test(test_quantities_are_loaded),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_long_text_is_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
