/* The same image as a file, its bytes and an array of pixels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "kiln/image.h"
#include "tests/support/cmocka.h"

static KilnRawValue array_of(KilnDType dtype, KilnShape shape, const void *data)
{
    return (KilnRawValue) {
        .name = "image", .type = KILN_RAW_ARRAY, .dtype = dtype, .shape = shape, .data = data
    };
}

static void read_as(const KilnRawValue *value, int64_t channels, int64_t size, KilnImage *ret)
{
    const KilnPngForm form = { .channels = channels, .height = size, .width = size };
    KilnError err = { 0 };

    if (kiln_image_read_raw(value, &form, ret, &err) < 0)
        fail_msg("%s", err.text);
}

static void assert_same(const KilnImage *a, const KilnImage *b)
{
    assert_true(a->height == b->height && a->width == b->width && a->channels == b->channels);
    assert_memory_equal(a->data, b->data,
                        (size_t)(a->height * a->width * a->channels) * sizeof(float));
}

static void test_file_and_bytes(void **unused)
{
    static const char *const files[] = { "grey8.png", "rgb_alpha8.png", "palette2_trns.png",
                                         "rgb16_adam7.png" };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(files); i++) {
        char path[256], *data = NULL;
        size_t size = 0;
        KilnImage a = { 0 }, b = { 0 };

        snprintf(path, sizeof(path), "tests/data/images/%s", files[i]);
        assert_int_equal(kiln_file_read(path, 1 << 20, &data, &size, NULL), KILN_OK);
        const KilnRawValue file = { .name = "image", .type = KILN_RAW_PATH, .text = path };
        const KilnRawValue bytes = {
            .name = "image", .type = KILN_RAW_BYTES, .data = data, .bytes = size
        };
        for (int64_t scaled = 0; scaled <= 6; scaled += 6) {
            read_as(&file, 3, scaled, &a);
            read_as(&bytes, 3, scaled, &b);
            assert_same(&a, &b);
        }
        kiln_image_release(&a);
        kiln_image_release(&b);
        free(data);
    }
}

/* Pixels of 1 to 4 samples as a PNG of them is read. */
static void test_array(void **unused)
{
    uint8_t pixels[5 * 7 * 4];
    float floats[5 * 7 * 4];

    (void)unused;
    for (size_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = (uint8_t)(37 * i);
        floats[i] = (float)pixels[i] / 255.0f;
    }
    for (int64_t samples = 1; samples <= 3; samples += 2) {
        uint8_t *png = NULL;
        size_t size = 0;
        KilnImage a = { 0 }, b = { 0 }, c = { 0 };
        const KilnShape shape = KILN_SHAPE(5, 7, samples);
        const KilnRawValue u8 = array_of(KILN_U8, shape, pixels);
        const KilnRawValue f32 = array_of(KILN_F32, shape, floats);

        assert_int_equal(kiln_png_encode(pixels, 5, 7, samples, &png, &size, NULL), KILN_OK);
        const KilnRawValue file = { .type = KILN_RAW_BYTES, .data = png, .bytes = size };
        for (int64_t channels = 1; channels <= 3; channels += 2)
            for (int64_t scaled = 0; scaled <= 4; scaled += 4) {
                read_as(&file, channels, scaled, &a);
                read_as(&u8, channels, scaled, &b);
                read_as(&f32, channels, scaled, &c);
                assert_same(&a, &b);
                assert_same(&a, &c);
            }
        kiln_image_release(&a);
        kiln_image_release(&b);
        kiln_image_release(&c);
        free(png);
    }
}

static void test_errors(void **unused)
{
    static const float nan_at[4] = { 0, 1, NAN, 0 };
    static const uint8_t bytes[20] = "not a PNG at all";
    const struct {
        KilnRawValue value;
        KilnStatus status;
        const char *want;
    } cases[] = {
        { array_of(KILN_F32, KILN_SHAPE(2, 2), nan_at), KILN_E_NUMERIC,
          "image: row 1 of the image has a value that is not a finite number" },
        { array_of(KILN_I32, KILN_SHAPE(1, 1), nan_at), KILN_E_SHAPE,
          "image: an array i32 [1, 1] is no image; expected [height, width, channels]" },
        { array_of(KILN_U8, KILN_SHAPE(1, 1, 5), bytes), KILN_E_SHAPE, "is no image" },
        { array_of(KILN_U8, KILN_SHAPE(4), bytes), KILN_E_SHAPE, "is no image" },
        { array_of(KILN_U8, KILN_SHAPE(0, 4), bytes), KILN_E_SHAPE, "is no image" },
        { array_of(KILN_U8, KILN_SHAPE(1 << 20, 1 << 10), bytes), KILN_E_FORMAT,
          "at most 89478485" },
        { { .name = "image", .type = KILN_RAW_BYTES, .data = bytes, .bytes = 20 },
          KILN_E_FORMAT,
          "image: not an image: it begins with \"not a PNG" },
        { { .name = "image", .type = KILN_RAW_BYTES, .data = bytes },
          KILN_E_FORMAT,
          "image: the file is empty" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        const KilnPngForm form = { .channels = 1 };
        KilnImage image = { 0 };
        KilnError err = { 0 };

        assert_int_equal(kiln_image_read_raw(&cases[i].value, &form, &image, &err),
                         cases[i].status);
        if (strstr(err.text, cases[i].want) == NULL)
            fail_msg("%s: %s", cases[i].want, err.text);
        kiln_image_release(&image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_and_bytes),
        cmocka_unit_test(test_array),
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
