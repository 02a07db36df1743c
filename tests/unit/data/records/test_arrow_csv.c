/* Arrow's columns as CSV: values of each type, missing ones, offsets, and what is refused. */
#include <math.h>
#include <string.h>

#include "data/records/arrow_csv.h"
#include "tests/support/cmocka.h"

/* A column of n rows from `offset` on; `valid` NULL: none is missing. */
typedef struct Column {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[3];
} Column;

static void init(Column *column, const char *format, const uint8_t *valid, const void *values,
                 const void *data)
{
    *column = (Column) {
        .schema = { .format = format, .name = "x" },
        .array = { .length = 2, .null_count = valid != NULL, .n_buffers = 3 },
        .buffers = { valid, values, data },
    };
    column->array.buffers = column->buffers;
}

/* Row `row` of a table of one column. */
static void check_row(Column *column, int64_t row, const char *want)
{
    struct ArrowSchema *schemas[] = { &column->schema },
                       schema = { .format = "+s", .n_children = 1, .children = schemas };
    struct ArrowArray *arrays[] = { &column->array },
                      batch = { .n_children = 1, .children = arrays };
    KilnText text = { 0 };

    kiln_arrow_csv_row(&schema, &batch, row, &text);
    if (strcmp(text.data, want) != 0)
        fail_msg("%s: \"%s\", want \"%s\"", column->schema.format, text.data, want);
    kiln_text_release(&text);
}

static void check(const char *format, const void *values, const char *first, const char *second)
{
    Column column;

    init(&column, format, NULL, values, NULL);
    check_row(&column, 0, first);
    column.array.offset = 1;
    check_row(&column, 0, second);
}

static void test_numbers(void **unused)
{
    (void)unused;
    check("c", (const int8_t[]) { -128, 5 }, "-128\n", "5\n");
    check("C", (const uint8_t[]) { 255, 0 }, "255\n", "0\n");
    check("s", (const int16_t[]) { -32768, 9 }, "-32768\n", "9\n");
    check("S", (const uint16_t[]) { 65535, 9 }, "65535\n", "9\n");
    check("i", (const int32_t[]) { INT32_MIN, 9 }, "-2147483648\n", "9\n");
    check("I", (const uint32_t[]) { UINT32_MAX, 9 }, "4294967295\n", "9\n");
    check("l", (const int64_t[]) { INT64_MIN, 9 }, "-9223372036854775808\n", "9\n");
    check("L", (const uint64_t[]) { UINT64_MAX, 9 }, "18446744073709551615\n", "9\n");
    check("f", (const float[]) { 0.1f, 16777217.0f }, "0.1\n", "16777216\n");
    check("g", (const double[]) { 0.1, 1e300 }, "0.1\n", "1e+300\n");
    check("g", (const double[]) { (double)NAN, (double)-INFINITY }, "\"\"\n", "-inf\n");
    check("b", (const uint8_t[]) { 2 }, "false\n", "true\n");
}

static void test_decimals(void **unused)
{
    (void)unused;
    check("d:9,3,32", (const int32_t[]) { -1234567, 5 }, "-1234.567\n", "0.005\n");
    check("d:18,0,64", (const int64_t[]) { 42, -7 }, "42\n", "-7\n");
    check("d:38,2", (const int64_t[]) { 0, 0, -1, -1 }, "0.00\n", "-0.01\n");
    check("d:38,2", (const int64_t[]) { 0, 1, -100, -1 }, "184467440737095516.16\n", "-1.00\n");
}

static void test_times(void **unused)
{
    (void)unused;
    check("tdD", (const int32_t[]) { 0, -1 }, "1970-01-01\n", "1969-12-31\n");
    check("tdD", (const int32_t[]) { 19782, -719162 }, "2024-02-29\n", "0001-01-01\n");
    check("tdm", (const int64_t[]) { 86400000, -86400000 }, "1970-01-02\n", "1969-12-31\n");
    check("tss:", (const int64_t[]) { 86400, -1 }, "1970-01-02\n", "1969-12-31T23:59:59\n");
    check("tsm:UTC", (const int64_t[]) { 1, -1 }, "1970-01-01T00:00:00.001\n",
          "1969-12-31T23:59:59.999\n");
    check("tsu:", (const int64_t[]) { 1000000, 1 }, "1970-01-01T00:00:01\n",
          "1970-01-01T00:00:00.000001\n");
    check("tsn:", (const int64_t[]) { 1, 86400000000000 }, "1970-01-01T00:00:00.000000001\n",
          "1970-01-02\n");
    check("tts", (const int32_t[]) { 3661, 0 }, "01:01:01\n", "00:00:00\n");
    check("ttu", (const int64_t[]) { 3661000005, 0 }, "01:01:01.000005\n", "00:00:00\n");
}

static void test_texts(void **unused)
{
    const uint8_t second_missing = 1;
    Column column, values;

    (void)unused;
    init(&column, "u", NULL, (const int32_t[]) { 0, 4, 9 }, "a,b\"line\n");
    check_row(&column, 0, "\"a,b\"\"\"\n");
    check_row(&column, 1, "\"line\n\"\n");
    init(&column, "U", &second_missing, (const int64_t[]) { 0, 2, 5 },
         "\xc3\xbc"
         "abc");
    check_row(&column, 0, "\xc3\xbc\n");
    check_row(&column, 1, "\"\"\n");
    init(&values, "u", NULL, (const int32_t[]) { 0, 3, 8 }, "redgreen");
    init(&column, "c", &second_missing, (const int8_t[]) { 1, 0 }, NULL);
    column.schema.dictionary = &values.schema;
    column.array.dictionary = &values.array;
    check_row(&column, 0, "green\n");
    check_row(&column, 1, "\"\"\n");
    init(&column, "n", NULL, NULL, NULL);
    column.array.n_buffers = 0;
    check_row(&column, 0, "\"\"\n");
}

static KilnStatus header_of(const char *format, const char *dictionary, KilnText *text,
                            KilnError *err)
{
    struct ArrowSchema values = { .format = dictionary, .name = "" };
    struct ArrowSchema columns[] = {
        { .format = "l", .name = "a \"b\"" },
        { .format = format, .name = "c", .dictionary = dictionary != NULL ? &values : NULL }
    };
    struct ArrowSchema *list[] = { &columns[0], &columns[1] },
                       schema = { .format = "+s", .n_children = 2, .children = list };

    return kiln_arrow_csv_header(&schema, text, err);
}

static void test_header(void **unused)
{
    static const struct {
        const char *format, *dictionary, *says;
    } refused[] = {
        { "+l", NULL, "lists" },      { "+w:3", NULL, "lists" },       { "+s", NULL, "structs" },
        { "+m", NULL, "maps" },       { "z", NULL, "bytes" },          { "w:16", NULL, "bytes" },
        { "tDs", NULL, "durations" }, { "d:76,2,256", NULL, "38" },    { "e", NULL, "half" },
        { "i", "z", "bytes" },        { "tiM", NULL, "another type" },
    };
    KilnText text = { 0 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(header_of("tsu:UTC", NULL, &text, &err), KILN_OK);
    assert_int_equal(header_of("i", "u", &text, &err), KILN_OK);
    assert_string_equal(text.data, "\"a \"\"b\"\"\",c\n\"a \"\"b\"\"\",c\n");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(header_of(refused[i].format, refused[i].dictionary, &text, &err),
                         KILN_E_FORMAT);
        if (strstr(err.text, "column \"c\" has ") == NULL ||
            strstr(err.text, refused[i].says) == NULL)
            fail_msg("%s: %s", refused[i].format, err.text);
    }
    kiln_text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_times),   cmocka_unit_test(test_texts),
        cmocka_unit_test(test_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
