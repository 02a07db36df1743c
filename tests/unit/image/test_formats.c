/* Image files of every format: their pixels, parts of them, orientation, and damaged ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/system/file.h"
#include "image/read.h"
#include "tests/support/cmocka.h"

#define FILES "tests/data/formats/"

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), FILES "%s", name);
    return path;
}

static void read_or_fail(const char *name, int64_t channels, KilnImage *image)
{
    KilnError err = { 0 };

    if (kiln_image_read(path_of(name), &(KilnPngForm) { .channels = channels }, image, &err) < 0)
        fail_msg("%s", err.text);
}

/* The largest difference; images of different sizes fail. */
static float distance(const KilnImage *a, const KilnImage *b)
{
    float most = 0.0f;

    assert_int_equal(a->height, b->height);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->channels, b->channels);
    for (int64_t i = 0; i < a->height * a->width * a->channels; i++)
        most = fmaxf(most, fabsf(a->data[i] - b->data[i]));
    return most;
}

static bool can_read(const char *name)
{
#ifdef KILN_TEST_WITHOUT_WEBP
    return strstr(name, ".webp") == NULL;
#else
    (void)name;
    return true;
#endif
}

/* What Pillow reads, within what its and this machine's libraries round differently. */
static void test_kinds(void **unused)
{
    static const char *const names[] = {
        "rgb_444.jpg",        "rgb_422.jpg",        "rgb_420.jpg",    "rgb_progressive.jpg",
        "rgb_arithmetic.jpg", "rgb_restart.jpg",    "grey.jpg",       "grey_progressive.jpg",
        "cmyk.jpg",           "one_pixel.jpg",      "rgb_lossy.webp", "rgb_lossless.webp",
        "rgba_lossy.webp",    "rgba_lossless.webp", "one_pixel.webp",
    };
    KilnImage image = { 0 }, want = { 0 }, grey = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        char png[128];
        int64_t size[3];

        if (!can_read(names[i]))
            continue;
        snprintf(png, sizeof(png), "%s.png", names[i]);
        read_or_fail(names[i], 3, &image);
        read_or_fail(png, 3, &want);
        if (distance(&image, &want) > 1.51f / 255.0f)
            fail_msg("%s: off by %g / 255", names[i], (double)(255 * distance(&image, &want)));
        assert_int_equal(kiln_image_size(path_of(names[i]), 0, size, NULL), KILN_OK);
        assert_int_equal(size[0], image.height);
        assert_int_equal(size[1], image.width);
        assert_int_equal(size[2], strncmp(names[i], "grey", 4) == 0 ? 1 : 3);
        read_or_fail(names[i], 1, &image);
        read_or_fail(png, 1, &grey);
        if (distance(&image, &grey) > 2.5f / 255.0f)
            fail_msg("%s: grey is off by %g / 255", names[i],
                     (double)(255 * distance(&image, &grey)));
    }
    kiln_image_release(&image);
    kiln_image_release(&want);
    kiln_image_release(&grey);
}

static KilnStatus take_window(void *ctx, const int64_t size[3], KilnImageWindow *ret,
                              KilnError *err)
{
    (void)size;
    (void)err;
    *ret = *(const KilnImageWindow *)ctx;
    return KILN_OK;
}

static void read_window(const char *name, KilnImageWindow *window, KilnImage *ret)
{
    const KilnRawValue value = { .type = KILN_RAW_PATH, .text = path_of(name) };
    KilnError err = { 0 };

    if (kiln_image_read_part(&value, &(KilnPngForm) { .channels = 3 },
                             &(KilnImageSelect) { .window = take_window, .ctx = window }, ret,
                             &err) < 0)
        fail_msg("%s", err.text);
}

/* A part that is decoded alone has the bytes of the same part of the whole image. */
static void test_windows(void **unused)
{
    static const char *const names[] = { "large_420.jpg", "large_progressive.jpg", "rgb_422.jpg",
                                         "rgba_lossless.webp", "rgb_444.jpg.png" };
    static const KilnImageFilter filters[] = { KILN_FILTER_BILINEAR, KILN_FILTER_BICUBIC,
                                               KILN_FILTER_NEAREST };
    KilnImage whole = { 0 }, want = { 0 }, got = { 0 };
    KilnRng rng;

    (void)unused;
    kiln_rng_init(&rng, 5, KILN_RNG_AUGMENT, 0, 0);
    for (size_t i = 0; i < 40 * KILN_COUNT(names); i++) {
        const char *name = names[i % KILN_COUNT(names)];

        if (!can_read(name))
            continue;
        read_or_fail(name, 3, &whole);
        KilnImageWindow window = {
            .height = 1 + kiln_rng_below(&rng, (uint32_t)whole.height),
            .width = 1 + kiln_rng_below(&rng, (uint32_t)whole.width),
            .filter = filters[i % 3],
        };
        window.top = kiln_rng_below(&rng, (uint32_t)(whole.height - window.height) + 1);
        window.left = kiln_rng_below(&rng, (uint32_t)(whole.width - window.width) + 1);
        /* Never a quarter: then a JPEG is decoded smaller. */
        window.to_height = window.height / 3 + 1 + kiln_rng_below(&rng, 60);
        window.to_width = window.width / 3 + 1 + kiln_rng_below(&rng, 60);
        assert_int_equal(kiln_image_scale_part(&whole, &window, &want, NULL), KILN_OK);
        read_window(name, &window, &got);
        if (distance(&got, &want) != 0.0f)
            fail_msg("%s: %d x %d at %d, %d is off by %g", name, (int)window.height,
                     (int)window.width, (int)window.top, (int)window.left,
                     (double)distance(&got, &want));
    }
    kiln_image_release(&whole);
    kiln_image_release(&want);
    kiln_image_release(&got);
}

/* Decoded at 1/2, 1/4 or 1/8 where that leaves two pixels or more for each of the result. */
static void test_small(void **unused)
{
    static const KilnImageWindow windows[] = {
        { .height = 180, .width = 260, .to_height = 45, .to_width = 65 },
        { .height = 180, .width = 260, .to_height = 20, .to_width = 30 },
        { .height = 180, .width = 260, .to_height = 9, .to_width = 13 },
        { .top = 31, .left = 77, .height = 103, .width = 121, .to_height = 20, .to_width = 20 },
        { .top = 77, .left = 139, .height = 103, .width = 121, .to_height = 1, .to_width = 1 },
    };
    KilnImage whole = { 0 }, want = { 0 }, got = { 0 };

    (void)unused;
    for (size_t i = 0; i < 2 * KILN_COUNT(windows); i++) {
        const char *name = i % 2 == 0 ? "large_420.jpg" : "large_progressive.jpg";
        KilnImageWindow window = windows[i / 2];

        read_or_fail(name, 3, &whole);
        assert_int_equal(kiln_image_scale_part(&whole, &window, &want, NULL), KILN_OK);
        read_window(name, &window, &got);
        if (distance(&got, &want) > 8.0f / 255.0f)
            fail_msg("%s, window %zu: off by %g / 255", name, i / 2,
                     255.0 * (double)distance(&got, &want));
    }
    kiln_image_release(&whole);
    kiln_image_release(&want);
    kiln_image_release(&got);
}

static void test_orientation(void **unused)
{
    static const char *const endings[] = { "png", "jpg", "webp" };
    KilnImageWindow window = {
        .top = 2, .left = 5, .height = 6, .width = 8, .to_height = 3, .to_width = 4
    };
    KilnImage upright = { 0 }, want = { 0 }, got = { 0 };

    (void)unused;
    read_or_fail("upright.png", 3, &upright);
    for (int i = 0; i < 24; i++) {
        const char *ending = endings[i / 8];
        const float most = (strcmp(ending, "jpg") == 0 ? 6.0f : 0.01f) / 255.0f;
        char name[32];
        int64_t size[3];

        snprintf(name, sizeof(name), "oriented_%d.%s", i % 8 + 1, ending);
        if (!can_read(name))
            continue;
        read_or_fail(name, 3, &got);
        if (distance(&got, &upright) > most)
            fail_msg("%s is not upright", name);
        assert_int_equal(kiln_image_size(path_of(name), 0, size, NULL), KILN_OK);
        assert_int_equal(size[0], upright.height);
        assert_int_equal(size[1], upright.width);
        assert_int_equal(kiln_image_scale_part(&upright, &window, &want, NULL), KILN_OK);
        read_window(name, &window, &got);
        if (distance(&got, &want) > most)
            fail_msg("%s: another part", name);
    }
    kiln_image_release(&upright);
    kiln_image_release(&want);
    kiln_image_release(&got);
}

static void test_damaged(void **unused)
{
    static const struct {
        const char *name, *words;
    } cases[] = {
        { "only_soi.jpg", "damaged JPEG: no frame header" },
        { "header_cut.jpg", "damaged JPEG: no frame header" },
        { "no_scan.jpg", "damaged JPEG: " },
        { "cut.jpg", "the file ends before the image does" },
        { "no_end.jpg", "the file ends before the image does" },
        { "cut_with_end.jpg", "premature end of data segment" },
        { "progressive_cut.jpg", "the file ends before the image does" },
        { "huge.jpg", "65535 x 65535 pixels; at most" },
        { "lie.jpg", "can't hold the 9000 x 9000 pixels" },
        { "zero.jpg", "an image of 0 x 53 pixels" },
        { "no_tables.jpg", "damaged JPEG: " },
        { "scans.jpg", "more than 500 scans" },
        { "twelve_bits.jpg", "a JPEG of 12 bits per sample" },
        { "lossless.jpg", "a lossless or hierarchical JPEG (SOF3)" },
        { "header_cut.webp", "damaged WebP" },
        { "cut.webp", "the file ends before the image does" },
        { "animation.webp", "a WebP animation" },
        { "other.gif", "a GIF image; expected a PNG, JPEG or WebP" },
    };
    KilnImage image = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        char name[64];

        snprintf(name, sizeof(name), "bad/%s", cases[i].name);
        if (!can_read(name))
            continue;
        KilnStatus got = kiln_image_read(path_of(name), &(KilnPngForm) { .channels = 3 }, &image,
                                         &err);
        if (got != KILN_E_FORMAT || strstr(err.text, cases[i].words) == NULL ||
            strncmp(err.text, path_of(name), strlen(path_of(name))) != 0)
            fail_msg("%s: status %d: %s", name, got, err.text);
    }
    kiln_image_release(&image);
}

/* Every shortened file is refused, and every flipped bit is read or refused, whole and in part (the
 * sanitizers watch). */
static void test_mutations(void **unused)
{
    static const char *const names[] = { "rgb_420.jpg",        "rgb_progressive.jpg",
                                         "rgb_arithmetic.jpg", "cmyk.jpg",
                                         "rgb_lossy.webp",     "rgba_lossless.webp",
                                         "oriented_6.png" };
    const KilnPngForm form = { .channels = 3, .max_pixels = 1 << 20 };
    KilnImageWindow window = { .height = 3, .width = 2, .to_height = 2, .to_width = 2 };
    const KilnImageSelect select = { .window = take_window, .ctx = &window };
    KilnImage image = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        size_t size;
        char *data;

        if (!can_read(names[i]))
            continue;
        assert_int_equal(kiln_file_read(path_of(names[i]), 1 << 20, &data, &size, NULL), KILN_OK);
        for (size_t n = 0; n < size; n++)
            if (kiln_image_read_bytes(data, n, "cut", &form, &image, NULL) != KILN_E_FORMAT)
                fail_msg("%s cut to %zu of %zu bytes was read", names[i], n, size);
        for (size_t bit = 0; bit < 8 * size; bit += 5) {
            data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
            const KilnRawValue value = {
                .name = "flip", .type = KILN_RAW_BYTES, .data = data, .bytes = size
            };
            KilnStatus got = kiln_image_read_raw(&value, &form, &image, NULL);
            assert_true(got == KILN_OK || got == KILN_E_FORMAT);
            got = kiln_image_read_part(&value, &form, &select, &image, NULL);
            assert_true(got == KILN_OK || got == KILN_E_FORMAT);
            data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
        }
        free(data);
    }
    kiln_image_release(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),   cmocka_unit_test(test_windows),
        cmocka_unit_test(test_small),   cmocka_unit_test(test_orientation),
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_mutations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
