/* Cells of tables: numbers exactly as strtod reads them, missing values, dates, scaling. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../data/quantile_transform.h"
#include "data/table/table_internal.h"
#include "kiln/rng.h"
#include "tests/support/cmocka.h"

static KilnString string_of(const char *text)
{
    return (KilnString) { text, strlen(text) };
}

static const char *const missing[] = { "?", "NA", "-999" };

static KilnCellValue value_of(const char *text, bool as_text)
{
    KilnCellRules rules;

    kiln_cell_rules_init(&rules, '.', missing, 3);
    return kiln_cell_value(&rules, string_of(text), as_text);
}

static void check_number(const char *text)
{
    double got = -7.0;
    const double want = strtod(text, NULL);

    if (!kiln_number_is(string_of(text), '.', &got) || got != want || signbit(got) != signbit(want))
        fail_msg("\"%s\": %.17g, want %.17g", text, got, want);
}

static void test_numbers(void **unused)
{
    static const char *const texts[] = {
        "0",
        "-0.0",
        "1",
        "+1.5",
        ".5",
        "5.",
        "1e3",
        "1E-3",
        "123456789012345678901234567890",
        "0.000000000000000000000000000001234",
        "9007199254740993",
        "9007199254740992.5",
        "1.7976931348623157e308",
        "4.9e-324",
        "2.2250738585072011e-308",
        "0.1",
        "0.3",
        "179769313486231570000000000000000000000",
        "00000000000000000000000000.25",
        "1e-400",
        "9223372036854775807",
        "18446744073709551615",
        "99999999999999999999",
    };
    KilnRng rng;
    char text[64];

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(texts); i++)
        check_number(texts[i]);
    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, 0);
    for (int i = 0; i < 200000; i++) {
        const double value =
            ((double)kiln_rng_u32(&rng) + (double)kiln_rng_u32(&rng) / 4294967296.0) *
            pow(10.0, (double)kiln_rng_below(&rng, 50) - 30.0);

        snprintf(text, sizeof(text), "%.*g", 1 + (int)kiln_rng_below(&rng, 19), value);
        check_number(text);
        snprintf(text, sizeof(text), "-%.*f", (int)kiln_rng_below(&rng, 12), value);
        if (strlen(text) < sizeof(text) - 1)
            check_number(text);
    }
}

/* Numbers next to the middle of two doubles, with up to 19 digits, where rounding is decided by the
 * last bits; and powers of ten up to the ends of what is read without strtod, and after them. */
static void test_rounding(void **unused)
{
    KilnRng rng;
    char text[64], digits[32];

    (void)unused;
    kiln_rng_init(&rng, 2, KILN_RNG_USER, 0, 0);
    for (int i = 0; i < 300000; i++) {
        const uint64_t whole = (uint64_t)kiln_rng_u32(&rng) << 21 | kiln_rng_u32(&rng) >> 11;
        const double low = (double)(whole | UINT64_C(1) << 52);
        const int exponent = (int)kiln_rng_below(&rng, 80) - 40;

        /* low + 0.5 has 16 digits and ".5"; scaled by a power of two it is a middle, too */
        snprintf(digits, sizeof(digits), "%.0f", low);
        snprintf(text, sizeof(text), "%s.5", digits);
        check_number(text);
        snprintf(text, sizeof(text), "%s.%d", digits, 49 + (int)kiln_rng_below(&rng, 3));
        check_number(text);
        snprintf(text, sizeof(text), "%.0f", ldexp(low, 1 + (int)kiln_rng_below(&rng, 3)) + 1.0);
        check_number(text);
        snprintf(text, sizeof(text), "%se%d", digits, exponent);
        check_number(text);
        snprintf(text, sizeof(text), "%.17ge%d", low / 3.0 * pow(2.0, -60.0), exponent / 2);
        if (strchr(text, 'e') == strrchr(text, 'e'))
            check_number(text);
    }
}

static void test_no_numbers(void **unused)
{
    static const char *const texts[] = { "",    "-",    ".",     "1e999", "-1e999", "1,5", "abc",
                                         "1 2", "0x10", "1_000", "nan",   "inf",    "--1", "1e" };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(texts); i++) {
        double got;

        if (kiln_number_is(string_of(texts[i]), '.', &got))
            fail_msg("\"%s\" is read as %g", texts[i], got);
    }
    double got = 0.0;
    assert_true(kiln_number_is(string_of("1,5"), ',', &got) && got == 1.5);
}

static void test_values(void **unused)
{
    (void)unused;
    assert_int_equal(value_of("", false).kind, KILN_VALUE_MISSING);
    assert_int_equal(value_of("  ", false).kind, KILN_VALUE_MISSING);
    assert_int_equal(value_of(" ? ", false).kind, KILN_VALUE_MISSING);
    assert_int_equal(value_of("NA", true).kind, KILN_VALUE_MISSING);
    assert_int_equal(value_of("-999", false).kind, KILN_VALUE_MISSING);
    assert_int_equal(value_of("NAN", false).kind, KILN_VALUE_TEXT);
    assert_int_equal(value_of(" 12 ", false).kind, KILN_VALUE_NUMBER);
    assert_int_equal(value_of("12", true).kind, KILN_VALUE_TEXT);
    const KilnCellValue text = value_of(" a b\r", false);
    assert_int_equal(text.text.length, 3);
    assert_memory_equal(text.text.data, "a b", 3);
}

static void test_dates(void **unused)
{
    static const struct {
        const char *text;
        double days, weekday, hour, day;
    } dates[] = {
        { "1970-01-01", 0, 3, 0, 1 },
        { "2000-02-29", 11016, 1, 0, 29 },
        { "1969/12/31", -1, 2, 0, 31 },
        { "2026-11-25T12:30", 20782.0 + 12.5 / 24.0, 2, 12.5, 25 },
        { "2026-11-25 12:30:36.5Z", 20782.0 + (12.5 + 36.5 / 3600.0) / 24.0, 2,
          12.5 + 36.5 / 3600.0, 25 },
        { "2026-11-25T12:30+02:00", 20782.0 + 10.5 / 24.0, 2, 10.5, 25 },
        { "2024-03-01T01:30+02:00", 19782.0 + 23.5 / 24.0, 3, 23.5, 29 },
        { "2024-12-31T20:00-05:00", 20089.0 + 1.0 / 24.0, 2, 1.0, 1 },
    };
    static const char *const none[] = { "2001-02-29", "2000-13-01",  "2000-1-1",         "20000101",
                                        "2000-01/01", "2000-01-01x", "2000-01-01T25:00", "" };
    double parts[KILN_DATE_PARTS];

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(dates); i++) {
        if (!kiln_date_read(string_of(dates[i].text), parts))
            fail_msg("%s is no date", dates[i].text);
        assert_true(fabs(parts[KILN_DATE_TIME] - dates[i].days) < 1e-9);
        assert_true(parts[KILN_DATE_WEEKDAY] == dates[i].weekday);
        assert_true(fabs(parts[KILN_DATE_HOUR] - dates[i].hour) < 1e-9);
        assert_true(parts[KILN_DATE_DAY] == dates[i].day);
    }
    for (size_t i = 0; i < KILN_COUNT(none); i++)
        if (kiln_date_read(string_of(none[i]), parts))
            fail_msg("%s is a date", none[i]);
}

static void test_dictionary(void **unused)
{
    KilnDictionary dictionary = { 0 };
    char text[16];

    (void)unused;
    assert_int_equal(kiln_dictionary_find(&dictionary, string_of("a")), -1);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            snprintf(text, sizeof(text), "n%d", i);
            assert_int_equal(kiln_dictionary_add(&dictionary, string_of(text)), i);
        }
    assert_int_equal(kiln_dictionary_find(&dictionary, string_of("n4999")), 4999);
    assert_int_equal(kiln_dictionary_find(&dictionary, string_of("n5000")), -1);
    kiln_dictionary_release(&dictionary);
}

/* Values of Python's statistics.NormalDist().inv_cdf. */
static void test_normal_quantile(void **unused)
{
    static const double cases[][2] = {
        { 0.5, 0.0 },
        { 0.975, 1.9599639845400536 },
        { 0.1, -1.2815515655446004 },
        { 1e-7, -5.199337582192817 },
        { 1e-15, -7.941345326170997 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        assert_true(fabs(kiln_normal_quantile(cases[i][0]) - cases[i][1]) < 1e-12);
}

static double scaled(const KilnTableNumber *number, KilnTableScaling scaling, double value)
{
    kiln_scaling_apply(number, scaling, &value, 1);
    return value;
}

static void test_quantiles_are_those_of_sklearn(void **unused)
{
    enum { TRAIN = KILN_COUNT(quantile_train), QUANTILES = KILN_COUNT(quantile_expected) };
    KilnTableNumber number = { .part = -1 };
    double values[TRAIN];

    (void)unused;
    memcpy(values, quantile_train, sizeof(values));
    assert_int_equal(kiln_scaling_fit(&number, KILN_SCALING_QUANTILE, values, TRAIN, 1, 0, NULL),
                     KILN_OK);
    assert_int_equal(number.n_quantiles, QUANTILES);
    for (size_t i = 0; i < QUANTILES; i++)
        assert_true(fabs(number.quantiles[i] - quantile_expected[i]) < 1e-2);
    memcpy(number.quantiles, quantile_expected, sizeof(quantile_expected));
    for (size_t i = 0; i < KILN_COUNT(quantile_queries); i++) {
        const double got = scaled(&number, KILN_SCALING_QUANTILE, quantile_queries[i]);

        if (fabs(got - quantile_values[i]) > 1e-6)
            fail_msg("%g: %.9g, want %.9g", quantile_queries[i], got, quantile_values[i]);
    }
    assert_true(isnan(scaled(&number, KILN_SCALING_QUANTILE, (double)NAN)));
    free(number.quantiles);
}

static void test_standard(void **unused)
{
    double values[] = { 1.0, 2.0, 3.0, 4.0 }, same[] = { 5.0, 5.0 };
    KilnTableNumber number = { .part = -1 };

    (void)unused;
    assert_int_equal(kiln_scaling_fit(&number, KILN_SCALING_STANDARD, values, 4, 1, 0, NULL),
                     KILN_OK);
    assert_true(fabs(scaled(&number, KILN_SCALING_STANDARD, 4.0) - 1.5 / sqrt(1.25)) < 1e-12);
    assert_int_equal(kiln_scaling_fit(&number, KILN_SCALING_STANDARD, same, 2, 1, 0, NULL),
                     KILN_OK);
    assert_true(scaled(&number, KILN_SCALING_STANDARD, 5.0) == 0.0);
}

/* XXH3 modulo the buckets, by xxhash's own program: a checkpoint's ids must never change. */
static void test_hashed_ids(void **unused)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } cases[] = { { "Bonn", UINT64_C(11713876680318677064) },
                  { "", UINT64_C(3244421341483603138) },
                  { "42", UINT64_C(1303733993043075473) },
                  { "\303\266", UINT64_C(2354209948087273117) } };
    static const int64_t buckets[] = { 1, 1000, 10000000, INT32_MAX - KILN_ID_FIRST };

    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t b = 0; b < sizeof(buckets) / sizeof(buckets[0]); b++) {
            const KilnTableColumn column = { .kind = KILN_COLUMN_CATEGORY, .buckets = buckets[b] };

            assert_int_equal(kiln_table_id(&column, string_of(cases[i].text)),
                             (int64_t)(cases[i].hash % (uint64_t)buckets[b]) + KILN_ID_FIRST);
            assert_int_equal(kiln_table_n_ids(&column), buckets[b] + KILN_ID_FIRST);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_dictionary),
        cmocka_unit_test(test_normal_quantile),
        cmocka_unit_test(test_quantiles_are_those_of_sklearn),
        cmocka_unit_test(test_standard),
        cmocka_unit_test(test_hashed_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
