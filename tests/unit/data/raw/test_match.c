/* Which raw value is for which field, and numbers as another type. */
#include <math.h>
#include <string.h>

#include "kiln/raw.h"
#include "tests/support/cmocka.h"

static const KilnRawField one[] = {
    { .name = "image", .types = KILN_RAW_PATH | KILN_RAW_BYTES, .help = "a picture" },
    { .name = "weight", .types = KILN_RAW_NUMBER, .optional = true },
};
static const KilnRawField two[] = {
    { .name = "source", .types = KILN_RAW_TEXT },
    { .name = "target", .types = KILN_RAW_TEXT },
};

static KilnRawValue text(const char *name, const char *value)
{
    return (KilnRawValue) { .name = name, .type = KILN_RAW_TEXT, .text = value };
}

static void test_order(void **unused)
{
    const KilnRawValue values[] = { text("target", "b"), text("source", "a") };
    const KilnRawValue path = { .type = KILN_RAW_PATH, .text = "x.png" };
    KilnRawValue got[2];

    (void)unused;
    assert_int_equal(kiln_raw_match(two, 2, &(KilnRawSample) { values, 2 }, got, NULL), KILN_OK);
    assert_string_equal(got[0].text, "a");
    assert_string_equal(got[1].text, "b");
    /* Without a name it is the only required one; an optional one may be absent. */
    assert_int_equal(kiln_raw_match(one, 2, &(KilnRawSample) { &path, 1 }, got, NULL), KILN_OK);
    assert_string_equal(got[0].name, "image");
    assert_string_equal(got[0].text, "x.png");
    assert_int_equal(got[1].type, 0);
}

static void test_errors(void **unused)
{
#define TWO "; expected source (text), target (text)"
#define ONE "; expected image (path or bytes: a picture), weight (number; optional)"
    const struct {
        const KilnRawField *fields;
        KilnRawValue values[3];
        size_t n;
        KilnStatus status;
        const char *message;
    } cases[] = {
        { two, { text("source", "") }, 1, KILN_E_MISSING, "target is missing" TWO },
        { two, { { 0 } }, 0, KILN_E_MISSING, "source is missing" TWO },
        { two,
          { text("source", ""), text("source", "") },
          2,
          KILN_E_RANGE,
          "source: the field has two values" TWO },
        { two,
          { text("sorce", "") },
          1,
          KILN_E_KEY,
          "no field is named \"sorce\"; is it \"source\"?" TWO },
        { two,
          { text(NULL, "") },
          1,
          KILN_E_KEY,
          "a value has no name, and there are several fields" TWO },
        { one, { text("image", "") }, 1, KILN_E_TYPE, "image: the value is a text" ONE },
        { one,
          { { .name = "image" } },
          1,
          KILN_E_TYPE,
          "image: the value is a value of no known type" ONE },
        { one,
          { { .type = KILN_RAW_NUMBER } },
          1,
          KILN_E_TYPE,
          "image: the value is a number" ONE },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        const KilnRawSample raw = { cases[i].values, cases[i].n };
        KilnRawValue got[2];
        KilnError err = { 0 };

        assert_int_equal(kiln_raw_match(cases[i].fields, 2, &raw, got, &err), cases[i].status);
        assert_string_equal(err.text, cases[i].message);
    }
}

static void test_convert(void **unused)
{
    const float floats[] = { 1.0f, -2.0f, 3.5f };
    const uint8_t bytes[] = { 0, 7, 255 };
    const KilnRawValue f32 = { .name = "x",
                               .type = KILN_RAW_ARRAY,
                               .data = floats,
                               .dtype = KILN_F32,
                               .shape = KILN_SHAPE(3) };
    const KilnRawValue u8 = {
        .name = "x", .type = KILN_RAW_ARRAY, .data = bytes, .dtype = KILN_U8, .shape = KILN_SHAPE(3)
    };
    KilnRawValue number = { .name = "x", .type = KILN_RAW_NUMBER, .number = 41.0 };
    int32_t integers[3];
    float back[3];
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_raw_convert(&u8, KILN_F32, back, &err), KILN_OK);
    assert_true(back[1] == 7.0f && back[2] == 255.0f);
    assert_int_equal(kiln_raw_convert(&f32, KILN_F32, back, &err), KILN_OK);
    assert_memory_equal(back, floats, sizeof(floats));
    assert_int_equal(kiln_raw_convert(&number, KILN_I32, integers, &err), KILN_OK);
    assert_int_equal(integers[0], 41);
    assert_int_equal(kiln_raw_convert(&f32, KILN_I32, integers, &err), KILN_E_RANGE);
    assert_string_equal(err.text, "x: element 2 is 3.5, which is no i32; expected whole numbers");
    for (size_t i = 0; i < 3; i++) {
        const double bad[] = { 256.0, -1.0, (double)NAN };
        uint8_t byte;

        number.number = bad[i];
        assert_int_equal(kiln_raw_convert(&number, KILN_U8, &byte, &err), KILN_E_RANGE);
        assert_non_null(strstr(err.text, "expected whole numbers of 0 to 255"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_convert),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
