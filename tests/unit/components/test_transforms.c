/* The built-in transforms. */
#include <math.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"

typedef struct Transform {
    Built built;
    KilnImage image, scratch;
    KilnRng rng;
} Transform;

/* Build a transform and an image of h x w x c whose value i is i. */
static void transform_open(Transform *t, const char *name, const char *options, int64_t h,
                           int64_t w, int64_t c)
{
    KilnError err = { 0 };

    *t = (Transform) { 0 };
    if (build_yaml(&t->built, KILN_KIND_TRANSFORM, name, options, &err) < 0)
        fail_msg("%s", err.text);
    kiln_rng_init(&t->rng, 3, KILN_RNG_AUGMENT, 0, 0);
    assert_int_equal(kiln_image_resize_buffer(&t->image, h, w, c, NULL), KILN_OK);
    for (int64_t i = 0; i < h * w * c; i++)
        t->image.data[i] = (float)i;
}

/* As the image reader does. */
static KilnStatus transform_apply(Transform *t, bool training, KilnError *err)
{
    const KilnTransformOps *ops = kiln_instance_component(t->built.instance)->ops.transform;
    const int64_t size[3] = { t->image.height, t->image.width, t->image.channels };
    const KilnImage before = t->image;
    KilnImageWindow window = { 0 };

    if (ops->window == NULL)
        return ops->apply(t->built.instance, &t->image, &t->scratch, &t->rng, training, err);
    KilnStatus status = ops->window(t->built.instance, size, &t->rng, training, &window, err);
    if (status >= 0)
        status = kiln_image_scale_part(&t->image, &window, &t->scratch, err);
    if (status < 0)
        return status;
    t->image = t->scratch;
    t->scratch = before;
    return KILN_OK;
}

static void transform_close(Transform *t)
{
    kiln_image_release(&t->image);
    kiln_image_release(&t->scratch);
    built_free(&t->built);
}

static void test_crop(void **unused)
{
    bool seen[5 * 5] = { false };
    int places = 0;
    KilnError err = { 0 };
    Transform t;

    (void)unused;
    for (int round = 0; round < 400; round++) {
        /* 4 x 4 with two black pixels around, windows of 4 x 4: 25 places. */
        transform_open(&t, "crop", "size: [4, 4], padding: 2", 4, 4, 2);
        kiln_rng_init(&t.rng, (uint64_t)round, KILN_RNG_AUGMENT, 0, 0);
        assert_int_equal(transform_apply(&t, true, &err), KILN_OK);
        assert_int_equal(t.image.height, 4);
        bool found = false;
        for (int place = 0; place < 25 && !found; place++) {
            found = true;
            for (int i = 0; i < 32; i++) {
                int y = i / 8 + place / 5 - 2, x = i / 2 % 4 + place % 5 - 2;
                bool inside = y >= 0 && y < 4 && x >= 0 && x < 4;
                float want = inside ? (float)((y * 4 + x) * 2 + i % 2) : 0.0f;

                found = found && t.image.data[i] == want;
            }
            if (found) {
                places += !seen[place];
                seen[place] = true;
            }
        }
        assert_true(found);
        transform_close(&t);
    }
    assert_int_equal(places, 25);
    /* The middle otherwise. */
    transform_open(&t, "crop", "size: [2]", 5, 4, 1);
    assert_int_equal(transform_apply(&t, false, &err), KILN_OK);
    assert_float_equal(t.image.data[0], 5.0f, 0);
    assert_float_equal(t.image.data[3], 10.0f, 0);
    assert_int_equal(t.image.width, 2);
    /* Now 2 x 2 again: nothing to cut, and too small for more. */
    assert_int_equal(transform_apply(&t, true, &err), KILN_OK);
    assert_float_equal(t.image.data[0], 5.0f, 0);
    transform_close(&t);
    transform_open(&t, "crop", "size: [6, 2]", 5, 4, 1);
    assert_int_equal(transform_apply(&t, false, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "put a resize before the crop"));
    transform_close(&t);
}

static void test_flip(void **unused)
{
    static const float mirrored[] = { 4, 5, 2, 3, 0, 1, 10, 11, 8, 9, 6, 7 };
    int flips = 0;
    Transform t;

    (void)unused;
    for (int round = 0; round < 200; round++) {
        transform_open(&t, "flip", "", 2, 3, 2);
        kiln_rng_init(&t.rng, (uint64_t)round, KILN_RNG_AUGMENT, 0, 0);
        assert_int_equal(transform_apply(&t, true, NULL), KILN_OK);
        if (t.image.data[0] != 0.0f) {
            flips++;
            for (int i = 0; i < 12; i++)
                assert_true(t.image.data[i] == mirrored[i]);
        }
        transform_close(&t);
    }
    assert_in_range(flips, 70, 130);
    transform_open(&t, "flip", "p: 1", 2, 3, 2);
    assert_int_equal(transform_apply(&t, false, NULL), KILN_OK);
    assert_true(t.image.data[0] == 0.0f);
    transform_close(&t);
}

static void test_normalize(void **unused)
{
    Transform t;

    (void)unused;
    transform_open(&t, "normalize", "mean: [1, 2, 3], std: [2]", 2, 2, 3);
    assert_int_equal(transform_apply(&t, false, NULL), KILN_OK);
    for (int i = 0; i < 12; i++)
        assert_float_equal(t.image.data[i], ((float)i - (float)(i % 3 + 1)) / 2.0f, 1e-6f);
    transform_close(&t);
    /* The statistics of the data, where a datamodule computes them. */
    KilnError err = { 0 };
    transform_open(&t, "normalize", "", 2, 2, 3);
    const KilnTransformOps *ops = kiln_instance_component(t.built.instance)->ops.transform;
    assert_true(ops->needs_statistics(t.built.instance));
    assert_int_equal(transform_apply(&t, false, &err), KILN_E_MISSING);
    assert_non_null(strstr(err.text, "set mean and std"));
    assert_int_equal(ops->set_statistics(t.built.instance, (double[]) { 1, 2, 3 },
                                         (double[]) { 2, 0, 4 }, 3, NULL),
                     KILN_OK);
    assert_int_equal(transform_apply(&t, false, NULL), KILN_OK);
    assert_float_equal(t.image.data[3], 1.0f, 1e-6f);
    assert_float_equal(t.image.data[4], 2.0f, 1e-6f);
    assert_float_equal(t.image.data[5], 0.5f, 1e-6f);
    transform_close(&t);
    transform_open(&t, "normalize", "mean: [1, 2, 3], std: [2]", 2, 2, 1);
    assert_int_equal(transform_apply(&t, false, NULL), KILN_E_SHAPE);
    transform_close(&t);
}

static void test_resize(void **unused)
{
    KilnImage want = { 0 };
    Transform t;

    (void)unused;
    transform_open(&t, "resize", "size: [3, 5]", 7, 4, 2);
    assert_int_equal(kiln_image_scale(&t.image, 3, 5, &want, NULL), KILN_OK);
    assert_int_equal(transform_apply(&t, true, NULL), KILN_OK);
    assert_int_equal(t.image.height, 3);
    assert_int_equal(t.image.width, 5);
    assert_memory_equal(t.image.data, want.data, 30 * sizeof(float));
    kiln_image_release(&want);
    transform_close(&t);
}

/* What is outside of an image. */
static void test_padding(void **unused)
{
    static const struct {
        const char *mode;
        float first[4]; /* of the first row */
    } cases[] = {
        { "zeros", { 0, 0, 0, 0 } },
        { "edge", { 0, 0, 0, 1 } },
        { "reflect", { 8, 7, 6, 7 } },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char options[64];
        Transform t;

        snprintf(options, sizeof(options), "size: 7, padding: 2, padding_mode: %s", cases[i].mode);
        transform_open(&t, "crop", options, 3, 3, 1);
        assert_int_equal(transform_apply(&t, false, NULL), KILN_OK);
        for (int k = 0; k < 4; k++)
            assert_float_equal(t.image.data[k], cases[i].first[k], 0);
        assert_float_equal(t.image.data[2 * 7 + 2], 0, 0);
        assert_float_equal(t.image.data[3 * 7 + 4], 5, 0);
        transform_close(&t);
    }
}

static void test_keep_ratio(void **unused)
{
    int64_t size[3] = { 30, 50, 3 }, any[3] = { -1, -1, 3 };
    Transform t;

    (void)unused;
    transform_open(&t, "resize", "size: 20, keep_ratio: true", 30, 50, 1);
    const KilnTransformOps *ops = kiln_instance_component(t.built.instance)->ops.transform;
    assert_int_equal(ops->shape(t.built.instance, size, NULL), KILN_OK);
    assert_true(size[0] == 20 && size[1] == 33);
    assert_int_equal(ops->shape(t.built.instance, any, NULL), KILN_OK);
    assert_true(any[0] == -1 && any[1] == -1);
    assert_int_equal(transform_apply(&t, true, NULL), KILN_OK);
    assert_true(t.image.height == 20 && t.image.width == 33);
    transform_close(&t);
}

/* An image of 0..1 that is not flat. */
static void fill_image(KilnImage *image)
{
    for (int64_t i = 0; i < image->height * image->width * image->channels; i++)
        image->data[i] = (float)(i * 37 % 101) / 100.0f;
}

/* Each random transform: the same numbers give the same image, others another one; outside of
 * training, and with p = 0, nothing changes; sizes stay, and colors are colors. */
static void test_random_transforms(void **unused)
{
    static const struct {
        const char *name, *options;
        bool has_p;
    } cases[] = {
        { "flip", "vertical: true, p: 1", true },
        { "rotation", "degrees: 30, fill: 0.5", false },
        { "rotation", "degrees: 180, interpolation: bilinear", false },
        { "affine",
          "degrees: 10, translate: [0.2, 0.1], scale: [0.8, 1.2], shear: [-5, 5, -10, 10]", false },
        { "perspective", "p: 1", true },
        { "color_jitter", "brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1", true },
        { "color_jitter", "hue: 0.5", true },
        { "grayscale", "p: 1", true },
        { "gaussian_blur", "kernel_size: 5", true },
        { "erasing", "p: 1", true },
        { "erasing", "p: 1, value: 0.25, scale: [0.5, 0.5], ratio: [1, 1]", true },
        { "rand_augment", "", false },
        { "rand_augment", "num_ops: 5, magnitude: 30, interpolation: bilinear", false },
        { "trivial_augment", "", false },
    };
    enum { H = 9, W = 12, COUNT = H * W * 3, ROUNDS = 60 };
    float before[COUNT], first[COUNT];

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        int changed = 0;

        for (int round = 0; round < ROUNDS; round++) {
            for (int repeat = 0; repeat < 2; repeat++) {
                KilnError err = { 0 };
                Transform t;

                transform_open(&t, cases[i].name, cases[i].options, H, W, 3);
                fill_image(&t.image);
                memcpy(before, t.image.data, sizeof(before));
                kiln_rng_init(&t.rng, (uint64_t)round, KILN_RNG_AUGMENT, 0, 0);
                if (transform_apply(&t, true, &err) < 0)
                    fail_msg("%s: %s", cases[i].name, err.text);
                assert_true(t.image.height == H && t.image.width == W && t.image.channels == 3);
                for (int k = 0; k < COUNT; k++)
                    assert_true(t.image.data[k] >= -1e-6f && t.image.data[k] <= 1.000001f);
                if (repeat == 1)
                    assert_memory_equal(first, t.image.data, sizeof(first));
                memcpy(first, t.image.data, sizeof(first));
                transform_close(&t);
            }
            changed += memcmp(first, before, sizeof(before)) != 0;
        }
        if (changed < ROUNDS * 3 / 4)
            fail_msg("%s %s: %d of %d images changed", cases[i].name, cases[i].options, changed,
                     ROUNDS);
        for (int off = 0; off < 2; off++) {
            char options[160];
            Transform t;

            snprintf(options, sizeof(options), "%s%s", cases[i].options,
                     off == 1 && cases[i].has_p ? ", p: 0" : "");
            if (off == 1 && (!cases[i].has_p || strstr(cases[i].options, "p: 1") != NULL))
                continue;
            transform_open(&t, cases[i].name, options, H, W, 3);
            fill_image(&t.image);
            assert_int_equal(transform_apply(&t, off == 1, NULL), KILN_OK);
            assert_memory_equal(before, t.image.data, sizeof(before));
            transform_close(&t);
        }
    }
}

static void test_random_resized_crop(void **unused)
{
    const int64_t size[3] = { 60, 100, 3 };
    double areas = 0.0;
    KilnImageWindow window = { 0 };
    Transform t;

    (void)unused;
    transform_open(&t, "random_resized_crop", "size: [16, 24]", 2, 2, 1);
    const KilnTransformOps *ops = kiln_instance_component(t.built.instance)->ops.transform;
    for (int round = 0; round < 1000; round++) {
        kiln_rng_init(&t.rng, (uint64_t)round, KILN_RNG_AUGMENT, 0, 0);
        assert_int_equal(ops->window(t.built.instance, size, &t.rng, true, &window, NULL), KILN_OK);
        assert_true(window.to_height == 16 && window.to_width == 24);
        assert_true(window.top >= 0 && window.top + window.height <= 60);
        assert_true(window.left >= 0 && window.left + window.width <= 100);
        const double ratio = (double)window.width / (double)window.height;
        assert_true(ratio > 0.7 && ratio < 1.42);
        areas += (double)(window.height * window.width) / 6000.0;
    }
    assert_true(areas > 360 && areas < 460); /* those above 0.8 do not fit */
    /* The middle, of the ratio of the size: 0.875 of the shorter side. */
    assert_int_equal(ops->window(t.built.instance, size, &t.rng, false, &window, NULL), KILN_OK);
    assert_true(window.height == 52 && window.width == 79);
    assert_true(window.top == 4 && window.left == 10);
    transform_close(&t);
    /* A strip in which no part of these ratios fits: the middle of the nearest ratio. */
    const int64_t strip[3] = { 2, 400, 3 };
    transform_open(&t, "random_resized_crop", "size: 8, scale: [0.9, 1]", 2, 2, 1);
    assert_int_equal(ops->window(t.built.instance, strip, &t.rng, true, &window, NULL), KILN_OK);
    assert_true(window.height == 2 && window.width == 3 && window.left == 198);
    transform_close(&t);
}

static void test_center_crop(void **unused)
{
    KilnError err = { 0 };
    Transform t;

    (void)unused;
    transform_open(&t, "center_crop", "size: 2", 5, 4, 1);
    assert_int_equal(transform_apply(&t, true, &err), KILN_OK);
    assert_float_equal(t.image.data[0], 9.0f, 0); /* 1.5 is rounded to 2, as torchvision does */
    assert_float_equal(t.image.data[3], 14.0f, 0);
    transform_close(&t);
    transform_open(&t, "center_crop", "size: [6, 2]", 5, 4, 1);
    assert_int_equal(transform_apply(&t, true, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "an image of 5 x 4 is smaller than 6 x 2"));
    transform_close(&t);
}

static void test_wrong_options(void **unused)
{
    static const struct {
        const char *name, *options, *words;
    } cases[] = {
        { "random_resized_crop", "size: 4, scale: [1, 0.5]", "scale: expected two numbers" },
        { "random_resized_crop", "size: 4, ratio: [1]", "ratio: expected two numbers" },
        { "affine", "translate: [1]", "translate: expected two numbers [x, y]" },
        { "affine", "scale: [2, 1]", "scale: expected two numbers [from, to]" },
        { "affine", "shear: [1, 2, 3]", "shear: expected [from, to], or [x from" },
        { "gaussian_blur", "kernel_size: 4", "kernel_size: expected an odd number" },
        { "gaussian_blur", "kernel_size: 3, sigma: [2, 1]", "sigma: expected two numbers" },
        { "erasing", "scale: [0.5]", "scale: expected two numbers" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        Built built = { 0 };

        if (build_yaml(&built, KILN_KIND_TRANSFORM, cases[i].name, cases[i].options, &err) >= 0 ||
            strstr(err.text, cases[i].words) == NULL)
            fail_msg("%s %s: %s", cases[i].name, cases[i].options, err.text);
        built_free(&built);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crop),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_keep_ratio),
        cmocka_unit_test(test_random_transforms),
        cmocka_unit_test(test_random_resized_crop),
        cmocka_unit_test(test_center_crop),
        cmocka_unit_test(test_wrong_options),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
