/* Boxes follow their image: the pixels of a rectangle are where its box says, after any transform.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "kiln/images/box_sets.h"
#include "tests/support/components/built_component.h"

enum { FILE_HEIGHT = 60, FILE_WIDTH = 80, HEIGHT = 96, WIDTH = 112, SEEDS = 20 };

static const float truth[] = { 20, 12, 52, 36, 1, 0, 500, 70, 50, 80, 60, 0, 0, 100 };

/* A grey image with a white rectangle at the first box. */
static void draw(uint8_t *pixels)
{
    for (int64_t y = 0; y < FILE_HEIGHT; y++)
        for (int64_t x = 0; x < FILE_WIDTH; x++)
            pixels[y * FILE_WIDTH + x] = x >= 20 && x < 52 && y >= 12 && y < 36 ? 255 : 0;
}

/* The rectangle around bright pixels. */
static void bright(const float *image, float ret[4])
{
    ret[0] = ret[1] = 1e6f;
    ret[2] = ret[3] = 0.0f;
    for (int64_t i = 0; i < (int64_t)HEIGHT * WIDTH; i++) {
        const float x = (float)(i % WIDTH), y = (float)(i / WIDTH);

        if (image[i] < 0.5f)
            continue;
        ret[0] = fminf(ret[0], x);
        ret[1] = fminf(ret[1], y);
        ret[2] = fmaxf(ret[2], x + 1.0f);
        ret[3] = fmaxf(ret[3], y + 1.0f);
    }
}

static void check_transform(const char *name, char *const *options, size_t n)
{
    static float image[HEIGHT * WIDTH], boxes[3 * KILN_BOX_COLUMNS];
    static uint8_t pixels[FILE_HEIGHT * FILE_WIDTH];
    float frame[KILN_FRAME_COLUMNS], want[4];
    Built built;
    KilnError err = { 0 };

    if (build_words(&built, KILN_KIND_TRANSFORM, name, options, n, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    const KilnImageForm form = { .channels = 1,
                                 .height = HEIGHT,
                                 .width = WIDTH,
                                 .transforms = &built.instance,
                                 .n_transforms = 1 };
    const KilnRawValue value = { .name = "image",
                                 .type = KILN_RAW_ARRAY,
                                 .dtype = KILN_U8,
                                 .shape = KILN_SHAPE(FILE_HEIGHT, FILE_WIDTH),
                                 .data = pixels };
    draw(pixels);
    assert_int_equal(kiln_box_check_transforms(&form, &err), KILN_OK);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        KilnRng rng;

        kiln_rng_init(&rng, seed, KILN_RNG_AUGMENT, 0, 0);
        if (kiln_box_image_read(&form, &value, truth, 2, 3, true, &rng, image, boxes, frame, &err) <
            0)
            fail_msg("%s: %s", name, err.text);
        bright(image, want);
        for (int i = 0; i < 4 && boxes[2] > 0.0f; i++)
            if (!(fabsf(boxes[i] - want[i]) <= 2.0f))
                fail_msg("%s, seed %d: side %d is %g, the pixels' is %g", name, (int)seed, i,
                         (double)boxes[i], (double)want[i]);
        assert_true(boxes[KILN_BOX_CLASS] == 1.0f && boxes[KILN_BOX_AREA] == 500.0f);
        assert_memory_equal(boxes + KILN_BOX_FILE, truth, 4 * sizeof(float));
        assert_true(boxes[2 * KILN_BOX_COLUMNS + KILN_BOX_CLASS] == -1.0f);
        assert_true(frame[KILN_FRAME_SIZE] == FILE_WIDTH && frame[KILN_FRAME_SIZE + 1] == 60.0f);
    }
    built_free(&built);
}

static void test_follows(void **unused)
{
    char *vertical[] = { "vertical=true" }, *crop[] = { "size=[96,112]", "scale=[0.3,1]" };
    char *moves[] = { "translate=[0.2,0.2]", "scale=[0.7,1.3]" };
    char *resize[] = { "size=[96,112]" };

    (void)unused;
    check_transform("flip", NULL, 0);
    check_transform("flip", vertical, 1);
    check_transform("affine", moves, 2);
    check_transform("random_resized_crop", crop, 2);
    check_transform("resize", resize, 1);
    check_transform("color_jitter", NULL, 0);
}

static void test_refuses(void **unused)
{
    Built built;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(build_words(&built, KILN_KIND_TRANSFORM, "rand_augment", NULL, 0, &err),
                     KILN_OK);
    const KilnImageForm form = { .transforms = &built.instance, .n_transforms = 1 };
    assert_int_equal(kiln_box_check_transforms(&form, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "rand_augment"));
    built_free(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows),
        cmocka_unit_test(test_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
