/* Boxes follow their image: the pixels of a rectangle are where its box says, after any transform.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "kiln/images/box_sets.h"
#include "kiln/images/image_ops.h"
#include "tests/data/moved_boxes.h"
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

static void check_transform(const char *name, char *const *options, size_t n, bool letterbox)
{
    static float image[HEIGHT * WIDTH], boxes[3 * KILN_BOX_COLUMNS];
    static uint8_t pixels[FILE_HEIGHT * FILE_WIDTH];
    float frame[KILN_FRAME_COLUMNS], want[4];
    Built built;
    KilnError err = { 0 };

    if (build_words(&built, KILN_KIND_TRANSFORM, name, options, n, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    const KilnBoxForm form = { .image = { .channels = 1,
                                          .height = HEIGHT,
                                          .width = WIDTH,
                                          .transforms = &built.instance,
                                          .n_transforms = 1 },
                               .letterbox = letterbox };
    const KilnBoxTruth rows = { .rows = truth, .n = 2 };
    const KilnBoxSample to = { .image = image, .boxes = boxes, .frame = frame, .most = 3 };
    const KilnRawValue value = { .name = "image",
                                 .type = KILN_RAW_ARRAY,
                                 .dtype = KILN_U8,
                                 .shape = KILN_SHAPE(FILE_HEIGHT, FILE_WIDTH),
                                 .data = pixels };
    draw(pixels);
    assert_int_equal(kiln_box_check_transforms(&form.image, &err), KILN_OK);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        KilnRng rng;

        kiln_rng_init(&rng, seed, KILN_RNG_AUGMENT, 0, 0);
        if (kiln_box_image_read(&form, &value, &rows, true, &rng, &to, &err) < 0)
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
    char *resize[] = { "size=[96,112]" }, *padded[] = { "size=[96,112]", "padding=20" };
    char *turns[] = { "degrees=90", "scale=[0.5,0.5]" }, *blur[] = { "kernel_size=3" };

    (void)unused;
    for (int letterbox = 0; letterbox < 2; letterbox++) {
        check_transform("flip", NULL, 0, letterbox);
        check_transform("flip", vertical, 1, letterbox);
        check_transform("affine", moves, 2, letterbox);
        check_transform("affine", turns, 2, letterbox);
        check_transform("random_resized_crop", crop, 2, letterbox);
        check_transform("resize", resize, 1, letterbox);
        check_transform("center_crop", resize, 1, letterbox);
        check_transform("crop", padded, 2, letterbox);
        check_transform("color_jitter", NULL, 0, letterbox);
        check_transform("gaussian_blur", blur, 1, letterbox);
    }
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

/* The warp of a recorded transform. */
static KilnWarp warp_of(int kind, const double *numbers, int64_t height, int64_t width)
{
    const double right = MOVED_WIDTH - 1, bottom = MOVED_HEIGHT - 1;
    const double corners[4][2] = { { 0, 0 }, { right, 0 }, { right, bottom }, { 0, bottom } };
    KilnWarp ret = { .matrix = { { 1.0 }, { 0.0, 1.0 }, { 0.0, 0.0, 1.0 } } };
    double to[4][2];

    switch (kind) {
    case AFFINE:
        return kiln_affine_warp(&(KilnAffine) { .angle = numbers[0],
                                                .translate = { numbers[1], numbers[2] },
                                                .scale = numbers[3],
                                                .shear = { numbers[4], numbers[5] } },
                                height, width);
    case PERSPECTIVE:
        memcpy(to, numbers, sizeof(to));
        assert_true(kiln_perspective_warp(corners, to, &ret));
        return ret;
    case FLIP:
        ret.matrix[(int)numbers[0]][(int)numbers[0]] = -1.0;
        ret.matrix[(int)numbers[0]][2] = (double)(numbers[0] > 0.0 ? height : width);
        return ret;
    default:
        ret.matrix[0][0] = numbers[3] / (double)width;
        ret.matrix[1][1] = numbers[2] / (double)height;
        ret.matrix[0][2] = numbers[1];
        ret.matrix[1][2] = numbers[0];
        return ret;
    }
}

static void test_torchvision(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(moved); i++) {
        const KilnWarp warp = warp_of(moved[i].kind, moved[i].numbers, moved[i].height,
                                      moved[i].width);

        for (int k = 0; k < MOVED_BOXES; k++) {
            float box[4];

            kiln_box_move(&warp, moved_boxes[k], moved[i].height, moved[i].width, box);
            for (int side = 0; side < 4; side++)
                if (!(fabs((double)box[side] - moved[i].boxes[k][side]) <= 1e-4))
                    fail_msg("%s, box %d: side %d is %g, torchvision's is %g", moved[i].name, k,
                             side, (double)box[side], moved[i].boxes[k][side]);
        }
    }
}

/* A wide image in a frame of another shape: its pixels keep their proportions, between grey. */
static void test_letterbox(void **unused)
{
    static uint8_t white[20 * 40];
    static const float part[] = { 0.25f, 0.5f, 0.75f, 1, 2, 0, 0.25f };
    const KilnBoxForm form = { .image = { .channels = 1, .height = 64, .width = 64 },
                               .letterbox = true };
    const KilnRawValue value = { .name = "image",
                                 .type = KILN_RAW_ARRAY,
                                 .dtype = KILN_U8,
                                 .shape = KILN_SHAPE(20, 40),
                                 .data = white };
    const KilnBoxTruth one = { .rows = part, .n = 1, .relative = true };
    static float image[64 * 64];
    float boxes[KILN_BOX_COLUMNS], frame[KILN_FRAME_COLUMNS];
    const KilnBoxSample to = { .image = image, .boxes = boxes, .frame = frame, .most = 1 };
    static const float want[] = { 16, 32, 48, 48, 2, 0, 200, 10, 10, 30, 20 };
    static const float want_frame[] = { 0.625f, 0.625f, 0, -10, 40, 20 };
    KilnRng rng = { 0 };
    KilnError err = { 0 };

    (void)unused;
    memset(white, 255, sizeof(white));
    if (kiln_box_image_read(&form, &value, &one, false, &rng, &to, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 64 * 64; i++)
        assert_true(fabsf(image[i] - (i / 64 >= 16 && i / 64 < 48 ? 1.0f : 114.0f / 255.0f)) <
                    1e-6f);
    for (int i = 0; i < KILN_BOX_COLUMNS; i++)
        assert_true(fabsf(boxes[i] - want[i]) < 1e-4f);
    for (int i = 0; i < KILN_FRAME_COLUMNS; i++)
        assert_true(fabsf(frame[i] - want_frame[i]) < 1e-5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_torchvision),
        cmocka_unit_test(test_letterbox),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
