/* Operations on images against values recorded from torchvision (tests/record/image_ops.py). */
#include <math.h>
#include <string.h>

#include "kiln/images/image_ops.h"
#include "tests/data/image_ops.h"
#include "tests/support/cmocka.h"

static KilnImage image, scratch;

static void swap(void)
{
    const KilnImage before = image;

    image = scratch;
    scratch = before;
}

static void warp(KilnWarp map, KilnImageFilter filter, float fill)
{
    assert_int_equal(kiln_image_warp(&image, &map, filter, fill, &scratch, NULL), KILN_OK);
    swap();
}

static KilnWarp affine(KilnAffine affine)
{
    return kiln_affine_warp(&affine, IMAGE_HEIGHT, IMAGE_WIDTH);
}

static KilnWarp perspective(void)
{
    static const double from[4][2] = { { 0, 0 }, { 10, 0 }, { 10, 7 }, { 0, 7 } };
    static const double to[4][2] = { { 2, 1 }, { 9, 0 }, { 10, 6 }, { 1, 7 } };
    KilnWarp map = { 0 };

    assert_true(kiln_perspective_warp(from, to, &map));
    return map;
}

static void part(int64_t top, int64_t left, int64_t height, int64_t width, int64_t to_height,
                 int64_t to_width, KilnImageFilter filter)
{
    const KilnImageWindow window = { top, left, height, width, to_height, to_width, filter };

    assert_int_equal(kiln_image_scale_part(&image, &window, &scratch, NULL), KILN_OK);
    swap();
}

static void augment(KilnAugment operation, double magnitude)
{
    assert_int_equal(
        kiln_image_augment(operation, magnitude, KILN_FILTER_NEAREST, 0.0f, &image, &scratch, NULL),
        KILN_OK);
}

static void soften(void)
{
    for (int i = 0; i < IMAGE_HEIGHT * IMAGE_WIDTH * 3; i++)
        image.data[i] = image.data[i] * 0.5f + 0.2f;
}

static bool apply(const char *name)
{
#define CASE(text, call)                                                                           \
    if (strcmp(name, text) == 0)                                                                   \
        return (call), true;
    const KilnAffine turned = {
        .angle = 25, .translate = { 2, -1 }, .scale = 1.25, .shear = { 10, -5 }
    };
    CASE("flip", kiln_image_flip(&image, false))
    CASE("flip_vertical", kiln_image_flip(&image, true))
    CASE("affine_nearest", warp(affine(turned), KILN_FILTER_NEAREST, 0.5f))
    CASE("affine_bilinear", warp(affine(turned), KILN_FILTER_BILINEAR, 0.5f))
    CASE("affine_center",
         warp(affine((KilnAffine) {
                  .angle = -70, .scale = 0.7, .shear = { 0, 20 }, .center = { 3 - 5.5, 2 - 4 } }),
              KILN_FILTER_BILINEAR, 0.0f))
    CASE("rotate_bilinear",
         warp(affine((KilnAffine) { .angle = -33, .scale = 1 }), KILN_FILTER_BILINEAR, 1.0f))
    CASE("perspective", warp(perspective(), KILN_FILTER_BILINEAR, 0.25f))
    CASE("brightness", kiln_image_adjust_brightness(&image, 1.7f))
    CASE("contrast_less", kiln_image_adjust_contrast(&image, 0.4f))
    CASE("contrast_more", kiln_image_adjust_contrast(&image, 1.9f))
    CASE("saturation_less", kiln_image_adjust_saturation(&image, 0.3f))
    CASE("saturation_more", kiln_image_adjust_saturation(&image, 2.5f))
    CASE("hue_up", kiln_image_adjust_hue(&image, 0.31f))
    CASE("hue_down", kiln_image_adjust_hue(&image, -0.45f))
    CASE("grayscale", kiln_image_grayscale(&image))
    CASE("invert", kiln_image_invert(&image))
    CASE("solarize", kiln_image_solarize(&image, 0.6f))
    CASE("posterize", kiln_image_posterize(&image, 3))
    CASE("autocontrast", (soften(), kiln_image_autocontrast(&image)))
    CASE("equalize", kiln_image_equalize(&image))
    CASE("sharper", (void)!kiln_image_adjust_sharpness(&image, 2.3f, &scratch, NULL))
    CASE("softer", (void)!kiln_image_adjust_sharpness(&image, 0.2f, &scratch, NULL))
    CASE("blur_3", (void)!kiln_image_gaussian_blur(&image, 3, 0.7, &scratch, NULL))
    CASE("blur_7", (void)!kiln_image_gaussian_blur(&image, 7, 2.1, &scratch, NULL))
    CASE("part_bilinear", part(1, 2, 6, 7, 4, 9, KILN_FILTER_BILINEAR))
    CASE("part_bicubic", part(0, 3, 8, 8, 5, 3, KILN_FILTER_BICUBIC))
    CASE("part_bicubic_up", part(2, 0, 3, 11, 10, 13, KILN_FILTER_BICUBIC))
    CASE("part_nearest", part(1, 1, 7, 9, 5, 12, KILN_FILTER_NEAREST))
    CASE("augment_shear_x", augment(KILN_AUGMENT_SHEAR_X, 0.28))
    CASE("augment_shear_y", augment(KILN_AUGMENT_SHEAR_Y, -0.4))
    CASE("augment_translate_x", augment(KILN_AUGMENT_TRANSLATE_X, 2.9))
    CASE("augment_translate_y", augment(KILN_AUGMENT_TRANSLATE_Y, -1.6))
    CASE("augment_rotate", augment(KILN_AUGMENT_ROTATE, 27))
    CASE("augment_brightness", augment(KILN_AUGMENT_BRIGHTNESS, -0.35))
    CASE("augment_color", augment(KILN_AUGMENT_COLOR, 0.8))
    CASE("augment_contrast", augment(KILN_AUGMENT_CONTRAST, -0.6))
    CASE("augment_sharpness", augment(KILN_AUGMENT_SHARPNESS, 0.9))
    CASE("augment_posterize", augment(KILN_AUGMENT_POSTERIZE, 2))
    CASE("augment_solarize", augment(KILN_AUGMENT_SOLARIZE, 0.35))
    CASE("augment_autocontrast", augment(KILN_AUGMENT_AUTOCONTRAST, 0))
    CASE("augment_equalize", augment(KILN_AUGMENT_EQUALIZE, 0))
#undef CASE
    return false;
}

static void load_image(void)
{
    assert_int_equal(kiln_image_resize_buffer(&image, IMAGE_HEIGHT, IMAGE_WIDTH, 3, NULL), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(image_values); i++)
        image.data[i] = (float)image_values[i] / 65535.0f;
}

/* Bicubic values are cut to 0..1 in the recording alone. */
static float cut(float value)
{
    return fminf(fmaxf(value, 0.0f), 1.0f);
}

static void test_torchvision(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < KILN_COUNT(image_ops); k++) {
        load_image();
        if (!apply(image_ops[k].name))
            fail_msg("%s: no such case", image_ops[k].name);
        assert_int_equal(image.height, image_ops[k].height);
        assert_int_equal(image.width, image_ops[k].width);
        for (int64_t i = 0; i < image.height * image.width * 3; i++) {
            const float want = (float)image_ops[k].values[i] / 65535.0f;

            if (!(fabsf(cut(image.data[i]) - want) < 4e-5f))
                fail_msg("%s: value %d is %g, want %g", image_ops[k].name, (int)i,
                         (double)image.data[i], (double)want);
        }
    }
}

/* Grey images, and those too small for a neighborhood. */
static void test_small(void **unused)
{
    KilnError err = { 0 };

    (void)unused;
    for (int64_t channels = 1; channels <= 3; channels += 2) {
        assert_int_equal(kiln_image_resize_buffer(&image, 1, 1, channels, NULL), KILN_OK);
        for (int op = 0; op < KILN_AUGMENT_COUNT; op++) {
            for (int64_t c = 0; c < channels; c++)
                image.data[c] = 0.5f;
            augment((KilnAugment)op, 1.0);
            assert_true(image.height == 1 && image.channels == channels);
            assert_true(image.data[0] >= 0.0f && image.data[0] <= 1.0f);
        }
        image.data[0] = 0.25f;
        kiln_image_flip(&image, false);
        kiln_image_adjust_hue(&image, 0.2f);
        assert_true(channels == 3 || image.data[0] == 0.25f);
        assert_int_equal(kiln_image_gaussian_blur(&image, 3, 1, &scratch, &err), KILN_E_SHAPE);
    }
}

static int release(void **unused)
{
    (void)unused;
    kiln_image_release(&image);
    kiln_image_release(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchvision),
        cmocka_unit_test(test_small),
    };

    return cmocka_run_group_tests(tests, NULL, release);
}
