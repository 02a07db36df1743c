/* Options tables as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schema/help.h"
#include "toy_components.h"

static void test_aligned(void **unused)
{
    static const char want[] = "  model.width  int 1..100  required  features\n"
                               "  model.name   text        wide      a name\n";
    KilnText text = { 0 };

    (void)unused;
    kiln_help_table(&text, toy_wide_fields, "model.", 2);
    assert_string_equal(text.data, want);
    kiln_text_release(&text);
}

static void test_types(void **unused)
{
    static const char *const want[] = {
        "flag",
        "bool",
        "count",
        "int -5..1000",
        "float >= 0",
        "text or null",
        "path",
        "path or null",
        "min|max",
        "list of int 0..100",
        "list of float -1..1",
        "list of text",
        "[1, 2]",
    };
    KilnText text = { 0 };

    (void)unused;
    kiln_help_table(&text, toy_all_fields, "", 0);
    for (size_t i = 0; i < KILN_COUNT(want); i++)
        if (strstr(text.data, want[i]) == NULL)
            fail_msg("no \"%s\" in\n%s", want[i], text.data);
    kiln_text_clear(&text);
    kiln_help_table(&text, toy_task_fields, "", 0);
    assert_non_null(strstr(text.data, "list of transform"));
    assert_non_null(strstr(text.data, "map of callback"));
    assert_non_null(strstr(text.data, "model or null"));
    kiln_text_clear(&text);
    kiln_help_table(&text, NULL, "", 0);
    assert_int_equal(text.length, 0);
    kiln_text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
