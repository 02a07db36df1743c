/* The tools of datamodules of text lines: characters as classes, which a checkpoint keeps; texts
 * and images that can't be lines; pixels as columns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/images/line_images.h"
#include "tests/support/data/data_fixture.h"

static KilnString string(const char *text)
{
    return (KilnString) { text, strlen(text) };
}

static void open(KilnLineImages *lines, const char *fitted)
{
    const KilnDataContext context = { .stage = KILN_STAGE_FIT, .fitted = fitted };
    KilnError err = { 0 };

    *lines = (KilnLineImages) { 0 };
    kiln_line_images_init(lines, 16, 100);
    if (kiln_line_images_open(lines, &context, &err) < 0)
        fail_msg("%s", err.text);
}

static KilnStatus check(const KilnLineImages *lines, const char *text, bool collecting,
                        const char *says)
{
    KilnError err = { 0 };
    const KilnStatus status = kiln_line_images_check(lines, string(text), 10, collecting, &err);

    if (strstr(err.text, says) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", says, err.text);
    return status;
}

static void test_characters(void **unused)
{
    static const char *const names[] = { "<blank>", " ", "a", "b", "\xc3\xa9" };
    static const int32_t want[] = { 4, 1, 2, 2 };
    int32_t classes[4] = { 0 };
    char *text = NULL;
    void *data[KILN_LINE_FEATURES] = { [KILN_LINE_CHARACTERS] = classes, [KILN_LINE_TEXT] = &text };
    KilnSample sample = { .data = data };
    KilnLineImages lines;
    KilnError err = { 0 };

    (void)unused;
    open(&lines, NULL);
    assert_int_equal(kiln_line_images_collect(&lines, string("ba b"), &err), KILN_OK);
    assert_int_equal(kiln_line_images_collect(&lines, string("\xc3\xa9"), &err), KILN_OK);
    assert_int_equal(kiln_line_images_ready(&lines, &err), KILN_OK);
    assert_int_equal(lines.characters.n, 4);
    for (size_t i = 0; i < KILN_COUNT(names); i++)
        assert_string_equal(lines.names[i], names[i]);
    assert_int_equal(kiln_line_images_count(string("\xc3\xa9 aa")), 4);
    assert_int_equal(kiln_line_images_write(&lines, "\xc3\xa9 aa", &sample, &err), KILN_OK);
    assert_memory_equal(classes, want, sizeof(want));
    assert_string_equal(text, "\xc3\xa9 aa");
    free(text);
    kiln_line_images_release(&lines);
}

static void test_texts_that_are_refused(void **unused)
{
    KilnLineImages lines;
    KilnError err = { 0 };

    (void)unused;
    open(&lines, NULL);
    assert_int_equal(kiln_line_images_collect(&lines, string("ab"), &err), KILN_OK);
    assert_int_equal(check(&lines, "", true, "the text is empty"), KILN_E_MISSING);
    assert_int_equal(check(&lines, "a\nb", true, "a control character (0x0a)"), KILN_E_TYPE);
    assert_int_equal(check(&lines, "\xc3\xa9", true, ""), KILN_OK);
    assert_int_equal(check(&lines, "\xc3\xa9", false, "the character \"\xc3\xa9\""), KILN_E_KEY);
    assert_int_equal(check(&lines, "aaaaaaaaaa", false, ""), KILN_OK);
    assert_int_equal(check(&lines, "aaaaaaaaaaa", false, "only 10 pixels wide"), KILN_E_RANGE);
    kiln_line_images_release(&lines);
}

/* A checkpoint's characters stay what they are. */
static void test_checkpoint(void **unused)
{
    KilnLineImages lines;
    KilnError err = { 0 };

    (void)unused;
    fixture_put("characters.txt", " \na\n\xc3\xa9\n", 7);
    open(&lines, fixture_path("."));
    assert_int_equal(kiln_line_images_collect(&lines, string("b"), &err), KILN_OK);
    assert_int_equal(kiln_line_images_ready(&lines, &err), KILN_OK);
    assert_int_equal(lines.characters.n, 3);
    assert_string_equal(lines.names[1], " ");
    assert_int_equal(check(&lines, "b", true, "the character \"b\""), KILN_E_KEY);
    assert_int_equal(check(&lines, "\xc3\xa9 a", true, ""), KILN_OK);
    kiln_line_images_release(&lines);

    const KilnDataContext predict = { .stage = KILN_STAGE_PREDICT };
    lines = (KilnLineImages) { 0 };
    assert_int_equal(kiln_line_images_open(&lines, &predict, &err), KILN_E_MISSING);
}

static void test_images(void **unused)
{
    /* 2 rows of 4 pixels, to 4 rows of 8: black on the left half */
    const float pixels[] = { 0, 0, 1, 1, 0, 0, 1, 1 };
    const int64_t shape[] = { 2, 4 };
    const KilnRawValue value = { .type = KILN_RAW_ARRAY,
                                 .data = pixels,
                                 .dtype = KILN_F32,
                                 .shape = { 2, { shape[0], shape[1] } } };
    KilnLineImages lines = { 0 };
    KilnError err = { 0 };
    float line[8][4];
    int64_t width = 0;

    (void)unused;
    kiln_line_images_init(&lines, 4, 100);
    assert_int_equal(kiln_line_images_width(&lines, 2, 4, &width, &err), KILN_OK);
    assert_int_equal(width, 8);
    if (kiln_line_images_read(&lines, &value, 0, width, line[0], &err) < 0)
        fail_msg("%s", err.text);
    for (int y = 0; y < 4; y++) {
        assert_true(fabsf(line[0][y] - 1.0f) < 1e-6f);
        assert_true(fabsf(line[7][y]) < 1e-6f);
        assert_true(line[3][y] > line[4][y]);
    }
    assert_int_equal(kiln_line_images_width(&lines, 400, 10, &width, &err), KILN_OK);
    assert_int_equal(width, 4);
    assert_int_equal(kiln_line_images_width(&lines, 4, 101, &width, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "expected at most 100"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_texts_that_are_refused),
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_images),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
