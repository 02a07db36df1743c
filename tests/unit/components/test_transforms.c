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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crop),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_resize),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
