/* Growable text, JSON for it, and the clock. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "kiln/tools/clock.h"
#include "kiln/tools/text.h"

static void test_text_grows_and_is_taken(void **unused)
{
    KilnText text = { 0 };

    (void)unused;
    for (int i = 0; i < 1000; i++)
        kiln_text_printf(&text, "%d,", i);
    assert_int_equal(text.length, 10 * 2 + 90 * 3 + 900 * 4);
    kiln_text_clear(&text);
    assert_string_equal(text.data, "");
    kiln_text_append(&text, "ab");
    kiln_text_append_n(&text, "cdef", 1);
    kiln_text_char(&text, '!');
    char *taken = kiln_text_take(&text);
    assert_string_equal(taken, "abc!");
    assert_null(text.data);
    free(taken);

    taken = kiln_text_take(&text);
    assert_string_equal(taken, "");
    free(taken);
    text.failed = true;
    kiln_text_json_string(&text, "lost");
    assert_null(kiln_text_take(&text));
    assert_false(text.failed);
}

static void test_json_string(void **unused)
{
    static const struct {
        const char *value, *json;
    } cases[] = {
        { "", "\"\"" },
        { "train/loss", "\"train/loss\"" },
        { "a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\"" },
        { "\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"" },
        { "\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\"" },
        { "größe 大 🙂", "\"größe 大 🙂\"" },
        { "\xff", "\"\xef\xbf\xbd\"" },                                 /* never in UTF-8 */
        { "a\xe5\xa4z", "\"a\xef\xbf\xbd\xef\xbf\xbdz\"" },             /* cut off */
        { "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },                 /* longer than needed */
        { "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, /* a surrogate */
        { "\xef\xbf\xbd", "\"\xef\xbf\xbd\"" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnText text = { 0 };

        kiln_text_json_string(&text, cases[i].value);
        assert_string_equal(text.data, cases[i].json);
        json_t *read = json_loadb(text.data, text.length, JSON_DECODE_ANY, NULL);
        assert_non_null(read);
        json_decref(read);
        kiln_text_release(&text);
    }
}

static void test_json_number(void **unused)
{
    static const struct {
        double value;
        const char *json;
    } cases[] = {
        { 0, "0.0" },
        { -0.0, "-0.0" },
        { 100, "100.0" },
        { 0.1, "0.1" },
        { 1e-5, "1e-05" },
        { 1.0 / 3, "0.3333333333333333" },
        { 1e300, "1e+300" },
        { 5e-324, "5e-324" },
        { -1.7976931348623157e308, "-1.7976931348623157e+308" },
        { NAN, "null" },
        { INFINITY, "null" },
        { -INFINITY, "null" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnText text = { 0 };

        kiln_text_json_number(&text, cases[i].value);
        assert_string_equal(text.data, cases[i].json);
        json_t *read = json_loadb(text.data, text.length, JSON_DECODE_ANY, NULL);
        if (isfinite(cases[i].value))
            assert_true(json_real_value(read) == cases[i].value);
        else
            assert_true(json_is_null(read));
        json_decref(read);
        kiln_text_release(&text);
    }
}

static void test_clock_and_units(void **unused)
{
    const double before = kiln_clock();
    char buf[KILN_UNIT_TEXT];

    (void)unused;
    assert_true(before > 0.0 && kiln_clock() >= before);
    assert_string_equal(kiln_bytes_text(512, buf), "512 B");
    assert_string_equal(kiln_bytes_text(1.5 * 1024 * 1024, buf), "1.50 MiB");
    assert_string_equal(kiln_quantity_text(983, buf), "983");
    assert_string_equal(kiln_quantity_text(11173962, buf), "11.2 M");
    assert_string_equal(kiln_seconds_text(3.4e-3, buf), "3.40 ms");
    assert_string_equal(kiln_seconds_text(3900, buf), "1 h 5 min");
    assert_string_equal(kiln_seconds_text(INFINITY, buf), "no end");
    assert_string_equal(kiln_clock_text(40.6, buf), "0:41");
    assert_string_equal(kiln_clock_text(3900, buf), "1:05:00");
    assert_string_equal(kiln_clock_text(51 * 3600, buf), "2d03h");
    assert_string_equal(kiln_commas_text(-11173962, buf), "-11,173,962");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_grows_and_is_taken),
        cmocka_unit_test(test_json_string),
        cmocka_unit_test(test_json_number),
        cmocka_unit_test(test_clock_and_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
