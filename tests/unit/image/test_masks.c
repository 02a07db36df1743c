/* Images with masks: the values of palettes and grey files, equal transforms of both, scaling. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "image/read.h"
#include "kiln/images/image_masks.h"
#include "tests/support/cmocka.h"
#include "tests/support/components/built_component.h"

enum { HEIGHT = 9, WIDTH = 11, CLASSES = 5, ROUNDS = 100 };

static const char folder[] = "build/test-masks";

static uint8_t pixel(int64_t i)
{
    return (uint8_t)(1 + (7 * i + i * i) % 250); /* never the black of padding */
}

static void write_grey(const char *path, const uint8_t *pixels, int64_t height, int64_t width)
{
    KilnError err = { 0 };
    uint8_t *png = NULL;
    size_t size = 0;

    assert_int_equal(kiln_png_encode(pixels, height, width, 1, &png, &size, &err), KILN_OK);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(png, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(png);
}

/* An image whose grey values tell the classes of its mask. */
static int write_files(void **unused)
{
    uint8_t image[HEIGHT * WIDTH], mask[HEIGHT * WIDTH];

    (void)unused;
    for (int64_t i = 0; i < HEIGHT * WIDTH; i++) {
        image[i] = pixel(i);
        mask[i] = image[i] % CLASSES;
    }
    (void)mkdir(folder, 0777);
    (void)mkdir("build/test-masks/images", 0777);
    (void)mkdir("build/test-masks/masks", 0777);
    write_grey("build/test-masks/images/a.png", image, HEIGHT, WIDTH);
    write_grey("build/test-masks/masks/a.PNG", mask, HEIGHT, WIDTH);
    write_grey("build/test-masks/masks/b.png", mask, HEIGHT, WIDTH);
    return 0;
}

static int remove_files(void **unused)
{
    (void)unused;
    (void)remove("build/test-masks/images/a.png");
    (void)remove("build/test-masks/masks/a.PNG");
    (void)remove("build/test-masks/masks/b.png");
    (void)remove("build/test-masks/images");
    (void)remove("build/test-masks/masks");
    (void)remove(folder);
    return 0;
}

static void scan(KilnMaskPairs *pairs)
{
    KilnError err = { 0 };

    if (kiln_mask_pairs_scan("build/test-masks/images", "build/test-masks/masks", NULL, pairs,
                             &err) < 0)
        fail_msg("%s", err.text);
}

static void test_pairs(void **unused)
{
    KilnMaskPairs pairs = { 0 };
    KilnError err = { 0 };

    (void)unused;
    scan(&pairs);
    assert_int_equal(pairs.images.count, 1);
    assert_string_equal(pairs.images.paths[0], "build/test-masks/images/a.png");
    assert_string_equal(pairs.masks[0], "build/test-masks/masks/a.PNG");
    assert_int_equal(pairs.no_images->count, 1);
    assert_string_equal(pairs.no_images->example, "build/test-masks/masks/b.png");
    kiln_mask_pairs_release(&pairs);
    assert_int_equal(kiln_mask_pairs_scan("build/test-masks/masks", "build/test-masks/images", NULL,
                                          &pairs, &err),
                     KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "masks/b.png has no mask"));
}

/* Random flips and crops move the classes with their pixels; what comes from outside has none. */
static void test_equal_transforms(void **unused)
{
    char size[] = "size=[7,8]", padding[] = "padding=3";
    char *const options[] = { size, padding };
    const int64_t shape[] = { 7, 8, 1 };
    float image[7 * 8];
    int32_t mask[7 * 8];
    int outside = 0, moved = 0;
    KilnError err = { 0 };
    Built crop, flip;
    KilnMaskPairs pairs = { 0 };

    (void)unused;
    if (build_words(&crop, KILN_KIND_TRANSFORM, "crop", options, 2, &err) < 0 ||
        build_words(&flip, KILN_KIND_TRANSFORM, "flip", NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
    KilnInstance *const transforms[] = { crop.instance, flip.instance };
    const KilnImageForm form = {
        .channels = 1, .height = -1, .width = -1, .transforms = transforms, .n_transforms = 2
    };
    const KilnMaskForm masks = { .image = &form, .n_classes = CLASSES };
    assert_int_equal(kiln_mask_check_transforms(&form, &err), KILN_OK);
    scan(&pairs);
    for (int round = 0; round < ROUNDS; round++) {
        KilnRng rng;

        kiln_rng_init(&rng, 1, KILN_RNG_AUGMENT, 0, (uint64_t)round);
        if (kiln_mask_pair_read(&masks, &pairs, 0, shape, true, &rng, image, mask, &err) < 0)
            fail_msg("%s", err.text);
        for (int i = 0; i < 7 * 8; i++) {
            const int value = (int)(image[i] * 255.0f + 0.5f);

            assert_int_equal(mask[i], value == 0 ? KILN_MASK_IGNORED : value % CLASSES);
            outside += value == 0;
        }
        moved += (int)(image[0] * 255.0f + 0.5f) != pixel(0);
    }
    assert_true(outside > 0 && moved > ROUNDS / 2);
    kiln_mask_pairs_release(&pairs);
    built_free(&crop);
    built_free(&flip);
}

/* A transform that takes a part and scales it takes the same of both. */
static void test_equal_parts(void **unused)
{
    char size[] = "size=[7,8]", nearest[] = "interpolation=nearest";
    char *const options[] = { size, nearest };
    const int64_t shape[] = { 7, 8, 1 };
    float image[7 * 8];
    int32_t mask[7 * 8];
    int moved = 0;
    KilnError err = { 0 };
    Built part, middle;
    KilnMaskPairs pairs = { 0 };

    (void)unused;
    if (build_words(&part, KILN_KIND_TRANSFORM, "random_resized_crop", options, 2, &err) < 0 ||
        build_words(&middle, KILN_KIND_TRANSFORM, "center_crop", options, 1, &err) < 0)
        fail_msg("%s", err.text);
    for (int training = 0; training < 2; training++) {
        KilnInstance *const transforms[] = { training ? part.instance : middle.instance };
        const KilnImageForm form = {
            .channels = 1, .height = -1, .width = -1, .transforms = transforms, .n_transforms = 1
        };
        const KilnMaskForm masks = { .image = &form, .n_classes = CLASSES };

        assert_int_equal(kiln_mask_check_transforms(&form, &err), KILN_OK);
        scan(&pairs);
        for (int round = 0; round < ROUNDS; round++) {
            KilnRng rng;

            kiln_rng_init(&rng, 1, KILN_RNG_AUGMENT, 0, (uint64_t)round);
            if (kiln_mask_pair_read(&masks, &pairs, 0, shape, training, &rng, image, mask, &err) <
                0)
                fail_msg("%s", err.text);
            for (int i = 0; i < 7 * 8; i++)
                assert_int_equal(mask[i], (int)(image[i] * 255.0f + 0.5f) % CLASSES);
            moved += training && (int)(image[0] * 255.0f + 0.5f) != pixel(0);
        }
        kiln_mask_pairs_release(&pairs);
    }
    assert_true(moved > ROUNDS / 2);
    built_free(&part);
    built_free(&middle);
}

/* Write masks[0] as an image of that EXIF orientation is seen, and masks[1] as it is stored. */
static void write_oriented(const char *path, const KilnImage *upright, const char *masks[2])
{
    const int64_t n = upright->height * upright->width;
    uint8_t *seen = malloc((size_t)n), *stored = malloc((size_t)n);
    KilnImageHead head;
    KilnError err = { 0 };

    assert_true(seen != NULL && stored != NULL);
    if (kiln_image_file_head(path, 0, &head, &err) < 0)
        fail_msg("%s", err.text);
    for (int64_t y = 0; y < upright->height; y++)
        for (int64_t x = 0; x < upright->width; x++) {
            const int64_t i = y * upright->width + x;

            seen[i] = (uint8_t)(upright->data[i] * 255.0f + 0.5f) % CLASSES;
            stored[kiln_image_stored_pixel(head.orientation, head.height, head.width, y, x)] =
                seen[i];
        }
    write_grey(masks[0], seen, upright->height, upright->width);
    write_grey(masks[1], stored, head.height, head.width);
    free(seen);
    free(stored);
}

/* An image is turned by its EXIF orientation; its mask is, too, or lies as the image is seen. */
static void test_orientation(void **unused)
{
    static const char *masks[2] = { "build/test-masks/masks/seen.png",
                                    "build/test-masks/masks/stored.png" };
    const KilnPngForm grey = { .channels = 1 };
    const KilnImageForm form = { .channels = 1, .height = -1, .width = -1 };

    (void)unused;
    for (int orientation = 1; orientation <= 8; orientation++)
        for (int stored = 0; stored < 2; stored++) {
            char path[64];
            const char *paths[] = { path };
            const KilnMaskPairs pairs = { .images = { .count = 1, .paths = paths },
                                          .masks = &masks[stored] };
            const KilnMaskForm how = { .image = &form,
                                       .n_classes = CLASSES,
                                       .as_stored = stored == 1 };
            KilnImage upright = { 0 };
            KilnError err = { 0 };
            KilnRng rng;

            snprintf(path, sizeof(path), "tests/data/formats/oriented_%d.jpg", orientation);
            if (kiln_image_read(path, &grey, &upright, &err) < 0)
                fail_msg("%s", err.text);
            write_oriented(path, &upright, masks);
            const int64_t shape[] = { upright.height, upright.width, 1 };
            const int64_t n = shape[0] * shape[1];
            float *image = malloc((size_t)n * sizeof(*image));
            int32_t *mask = malloc((size_t)n * sizeof(*mask));
            assert_true(image != NULL && mask != NULL);
            kiln_rng_init(&rng, 1, KILN_RNG_AUGMENT, 0, 0);
            if (kiln_mask_pair_read(&how, &pairs, 0, shape, false, &rng, image, mask, &err) < 0)
                fail_msg("%s", err.text);
            for (int64_t i = 0; i < n; i++)
                assert_int_equal(mask[i], (int)(image[i] * 255.0f + 0.5f) % CLASSES);
            free(image);
            free(mask);
            kiln_image_release(&upright);
        }
    (void)remove(masks[0]);
    (void)remove(masks[1]);
}

/* Scaled to twice the size: each class four times, none invented. */
static void test_nearest(void **unused)
{
    const KilnImageForm form = { .channels = 1, .height = 2 * HEIGHT, .width = 2 * WIDTH };
    const KilnMaskForm masks = { .image = &form, .n_classes = CLASSES };
    const int64_t shape[] = { 2 * HEIGHT, 2 * WIDTH, 1 };
    float image[4 * HEIGHT * WIDTH];
    int32_t mask[4 * HEIGHT * WIDTH];
    KilnMaskPairs pairs = { 0 };
    KilnError err = { 0 };
    KilnRng rng;

    (void)unused;
    scan(&pairs);
    kiln_rng_init(&rng, 1, KILN_RNG_AUGMENT, 0, 0);
    if (kiln_mask_pair_read(&masks, &pairs, 0, shape, false, &rng, image, mask, &err) < 0)
        fail_msg("%s", err.text);
    for (int y = 0; y < 2 * HEIGHT; y++)
        for (int x = 0; x < 2 * WIDTH; x++)
            assert_int_equal(mask[y * 2 * WIDTH + x], pixel(y / 2 * WIDTH + x / 2) % CLASSES);
    kiln_mask_pairs_release(&pairs);
}

/* Palettes and grey values of fewer than 8 bits are read as they are, not as colours or scaled. */
static void test_values(void **unused)
{
    static const struct {
        const char *path;
        int most;
        KilnStatus status;
    } files[] = {
        { "tests/data/images/grey1.png", 1, KILN_OK },
        { "tests/data/images/grey2.png", 3, KILN_OK },
        { "tests/data/images/grey4_adam7.png", 15, KILN_OK },
        { "tests/data/images/palette4.png", 15, KILN_OK },
        { "tests/data/images/grey16.png", 0, KILN_E_FORMAT },
        { "tests/data/images/rgb8.png", 0, KILN_E_FORMAT },
        { "tests/data/images/bad_data_cut.png", 0, KILN_E_FORMAT },
        { "tests/data/images/bad_jpeg.png", 0, KILN_E_FORMAT },
        { "tests/data/images/no_such_file.png", 0, KILN_E_IO },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(files); i++) {
        int64_t height = 0, width = 0, size[3];
        uint8_t *values = NULL;
        int most = 0;
        KilnError err = { 0 };
        KilnStatus status = kiln_mask_read_png(files[i].path, 0, &values, &height, &width, &err);

        if (status != files[i].status)
            fail_msg("%s: status %d: %s", files[i].path, status, err.text);
        if (status < 0) {
            assert_non_null(strstr(err.text, files[i].path));
            continue;
        }
        assert_int_equal(kiln_image_png_size(files[i].path, 0, size, &err), KILN_OK);
        assert_true(height == size[0] && width == size[1]);
        for (int64_t k = 0; k < height * width; k++)
            most = values[k] > most ? values[k] : most;
        assert_true(most > 0 && most <= files[i].most);
        free(values);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),       cmocka_unit_test(test_equal_transforms),
        cmocka_unit_test(test_equal_parts), cmocka_unit_test(test_orientation),
        cmocka_unit_test(test_nearest),     cmocka_unit_test(test_values),
    };

    return cmocka_run_group_tests(tests, write_files, remove_files);
}
