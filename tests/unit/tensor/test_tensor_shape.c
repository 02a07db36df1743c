/* Shapes and element types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "kiln/tensor.h"

static void test_count(void **unused)
{
    const struct {
        KilnShape shape;
        int64_t want;
    } cases[] = {
        { KILN_SCALAR, 1 },
        { KILN_SHAPE(7), 7 },
        { KILN_SHAPE(2, 3, 4, 5, 6, 7), 5040 },
        { KILN_SHAPE(3, 0, 2), 0 },
        { KILN_SHAPE(-1, 2), -1 },
        { KILN_SHAPE(INT64_MAX), INT64_MAX },
        { KILN_SHAPE(INT64_MAX, 2), -1 },
        { KILN_SHAPE(INT64_MAX, 2, 0), -1 },
        { KILN_SHAPE(INT64_C(1) << 32, INT64_C(1) << 32), -1 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        assert_int_equal(kiln_shape_count(&cases[i].shape), cases[i].want);
}

static void test_equal(void **unused)
{
    KilnShape a = KILN_SHAPE(2, 3), b = KILN_SHAPE(2, 3), c = KILN_SHAPE(2, 3, 1),
              d = KILN_SHAPE(3, 2);

    (void)unused;
    b.dim[2] = 9; /* not an axis */
    assert_true(kiln_shape_equal(&a, &b));
    assert_false(kiln_shape_equal(&a, &c));
    assert_false(kiln_shape_equal(&a, &d));
    assert_true(kiln_shape_equal(&KILN_SCALAR, &KILN_SCALAR));
}

static void test_text(void **unused)
{
    KilnShape longest = { .rank = KILN_MAX_RANK };
    char text[KILN_SHAPE_TEXT], small[5];

    (void)unused;
    assert_string_equal(kiln_shape_text(&KILN_SCALAR, text, sizeof(text)), "[]");
    assert_string_equal(kiln_shape_text(&KILN_SHAPE(2, 30, -1), text, sizeof(text)), "[2, 30, -1]");
    assert_string_equal(kiln_shape_text(&KILN_SHAPE(2, 30), small, sizeof(small)), "[2, ");
    for (int i = 0; i < KILN_MAX_RANK; i++)
        longest.dim[i] = INT64_MAX;
    kiln_shape_text(&longest, text, sizeof(text));
    assert_int_equal(text[0], '[');
    assert_true(strlen(text) < sizeof(text));
}

static void test_dtypes(void **unused)
{
    const struct {
        KilnDType dtype;
        size_t size;
        const char *name;
    } cases[] = {
        { KILN_F32, 4, "f32" }, { KILN_I32, 4, "i32" }, { KILN_U8, 1, "u8" },
        { KILN_I64, 8, "i64" }, { KILN_F64, 8, "f64" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        assert_int_equal(kiln_dtype_size(cases[i].dtype), cases[i].size);
        assert_string_equal(kiln_dtype_name(cases[i].dtype), cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_dtypes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
