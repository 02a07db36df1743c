/* Images: every kind of PNG, damaged ones, writing, scaling, finding files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "kiln/image.h"
#include "tests/data/images/expected.h"

#define IMAGES "tests/data/images/"

static char scratch[] = "/tmp/kiln-test-image-XXXXXX";

static int make_scratch(void **unused)
{
    (void)unused;
    return mkdtemp(scratch) == NULL;
}

static int remove_scratch(void **unused)
{
    (void)unused;
    return kiln_path_remove(scratch, NULL) < 0;
}

/* A path below the scratch folder, valid until the next call. */
static const char *below(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    return path;
}

static void put(const char *name, const void *data, size_t size)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void read_or_fail(const char *path, int64_t channels, KilnImage *image)
{
    KilnError err = { 0 };

    if (kiln_image_read(path, &(KilnPngForm) { .channels = channels }, image, &err) < 0)
        fail_msg("%s: %s", path, err.text);
}

static void test_kinds(void **unused)
{
    KilnImage image = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(kinds); i++) {
        const int pixels = KIND_HEIGHT * KIND_WIDTH;
        const float *want = kinds[i].rgb;
        int64_t size[3] = { 0 };
        char path[256];

        snprintf(path, sizeof(path), IMAGES "%s.png", kinds[i].name);
        assert_int_equal(kiln_image_size(path, 0, size, NULL), KILN_OK);
        assert_int_equal(size[0], KIND_HEIGHT);
        assert_int_equal(size[1], KIND_WIDTH);
        assert_int_equal(size[2], kinds[i].channels);
        read_or_fail(path, 3, &image);
        assert_int_equal(image.height, KIND_HEIGHT);
        assert_int_equal(image.width, KIND_WIDTH);
        assert_int_equal(image.channels, 3);
        for (int k = 0; k < 3 * pixels; k++)
            if (!(fabsf(image.data[k] - want[k]) < 1e-6f))
                fail_msg("%s: value %d is %g, want %g", path, k, (double)image.data[k],
                         (double)want[k]);
        read_or_fail(path, 1, &image);
        assert_int_equal(image.channels, 1);
        for (int k = 0; k < pixels; k++) {
            const float *p = want + 3 * k;
            float luma = 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2];

            if (!(fabsf(image.data[k] - luma) < 1e-6f))
                fail_msg("%s: grey value %d is %g, want %g", path, k, (double)image.data[k],
                         (double)luma);
        }
    }
    kiln_image_release(&image);
}

static void test_damaged(void **unused)
{
    static const struct {
        const char *name;
        const char *words; /* in the message */
        bool size_too;     /* the header alone tells */
    } cases[] = {
        { "bad_empty", "the file is empty", true },
        { "bad_text", "begins with \"Not an image, on\"", true },
        { "bad_jpeg", "damaged JPEG: no frame header", true },
        { "bad_signature_only", "ends after 8 bytes", true },
        { "bad_header_cut", "ends after 20 bytes", true },
        { "bad_header_crc", "CRC error", true },
        { "bad_data_cut", "the file ends before the image does", false },
        { "bad_data_crc", "damaged PNG: IDAT", false },
        { "bad_no_end", "the file ends before the image does", false },
        { "bad_huge", "100000 x 100000 pixels", true },
        { "bad_lie", "can't hold the 16000 x 16000 pixels", false },
        { "bad_zero_width", "damaged PNG", true },
        { "bad_too_few_rows", "damaged PNG", false },
        { "bad_no_palette", "damaged PNG", false },
    };
    KilnImage image = { 0 };
    const KilnPngForm form = { .channels = 3, .max_pixels = INT64_C(1) << 28 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        int64_t size[3] = { -7, -7, -7 };
        char path[256];

        snprintf(path, sizeof(path), IMAGES "%s.png", cases[i].name);
        KilnStatus got = kiln_image_read(path, &form, &image, &err);
        if (got != KILN_E_FORMAT || strstr(err.text, cases[i].words) == NULL ||
            strncmp(err.text, path, strlen(path)) != 0)
            fail_msg("%s: status %d: %s", path, got, err.text);
        got = kiln_image_size(path, form.max_pixels, size, &err);
        if (got != (cases[i].size_too ? KILN_E_FORMAT : KILN_OK))
            fail_msg("%s: size: status %d: %s", path, got, err.text);
        assert_true(got == KILN_OK || size[0] == -7);
    }
    kiln_image_release(&image);
}

static void test_not_files(void **unused)
{
    KilnImage image = { 0 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(
        kiln_image_read(IMAGES "none.png", &(KilnPngForm) { .channels = 3 }, &image, &err),
        KILN_E_IO);
    assert_non_null(strstr(err.text, "none.png: No such file"));
    assert_int_equal(kiln_image_read(IMAGES, &(KilnPngForm) { .channels = 3 }, &image, &err),
                     KILN_E_IO);
    assert_non_null(strstr(err.text, "folder"));
    assert_int_equal(
        kiln_image_read(IMAGES "rgb8.png", &(KilnPngForm) { .channels = 2 }, &image, &err),
        KILN_E_RANGE);
    assert_null(image.data);
}

/* Every shortened file and every flipped bit of some kinds: refused or read,
 * never more (the sanitizers watch). */
static void test_mutations(void **unused)
{
    static const char *const names[] = { "rgb8", "grey2_trns_adam7", "palette4_trns",
                                         "rgb_alpha16" };
    KilnImage image = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        size_t size;
        char *data, path[256];

        snprintf(path, sizeof(path), IMAGES "%s.png", names[i]);
        assert_int_equal(kiln_file_read(path, 1 << 20, &data, &size, NULL), KILN_OK);
        for (size_t n = 0; n < size; n++) {
            KilnError err = { 0 };

            put("cut.png", data, n);
            if (kiln_image_read(below("cut.png"), &(KilnPngForm) { .channels = 3 }, &image, &err) !=
                KILN_E_FORMAT)
                fail_msg("%s cut to %zu bytes was read: %s", path, n, err.text);
        }
        for (size_t bit = 0; bit < 8 * size; bit += 3) {
            data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
            put("flip.png", data, size);
            data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
            KilnStatus got = kiln_image_read(below("flip.png"), &(KilnPngForm) { .channels = 1 },
                                             &image, NULL);
            assert_true(got == KILN_OK || got == KILN_E_FORMAT);
        }
        free(data);
    }
    kiln_image_release(&image);
}

static void test_write(void **unused)
{
    static const float values[] = { 0.0f,  1.0f, 0.5f,       -3.0f, 7.0f, 0.2f,
                                    0.25f, NAN,  1.0f / 255, 0.1f,  0.9f, 0.999f };
    static const float want[] = { 0, 255, 128, 0, 255, 51, 64, 0, 1, 26, 230, 255 };
    KilnImage back = { 0 };
    KilnError err = { 0 };

    (void)unused;
    for (int64_t channels = 1; channels <= 3; channels += 2) {
        float data[12];
        KilnImage image = { .height = 2, .width = 6 / channels, .channels = channels };

        image.data = memcpy(data, values, sizeof(data));
        assert_int_equal(kiln_image_write_png(below("out.png"), &image, &err), KILN_OK);
        read_or_fail(below("out.png"), channels, &back);
        assert_int_equal(back.width, image.width);
        for (int64_t i = 0; i < 2 * 6; i++)
            assert_float_equal(back.data[i] * 255.0f, want[i], 1e-3f);
    }
    KilnImage two = { .height = 1, .width = 1, .channels = 2, .data = back.data };
    assert_int_equal(kiln_image_write_png(below("two.png"), &two, &err), KILN_E_SHAPE);
    two.channels = 1;
    assert_int_equal(kiln_image_write_png(below("no/folder.png"), &two, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "no/folder.png"));
    kiln_image_release(&back);
}

static void test_scale(void **unused)
{
    float data[KILN_COUNT(scale_source)];
    KilnImage from = { .height = SCALE_HEIGHT, .width = SCALE_WIDTH, .channels = 3 }, to = { 0 };

    (void)unused;
    from.data = memcpy(data, scale_source, sizeof(data));
    for (size_t i = 0; i < KILN_COUNT(scaled); i++) {
        int height = scaled[i].height, width = scaled[i].width;

        assert_int_equal(kiln_image_scale(&from, height, width, &to, NULL), KILN_OK);
        assert_int_equal(to.height, height);
        assert_int_equal(to.width, width);
        for (int k = 0; k < height * width * 3; k++)
            if (!(fabsf(to.data[k] - scaled[i].values[k]) < 1e-5f))
                fail_msg("to %d x %d: value %d is %g, want %g", height, width, k,
                         (double)to.data[k], (double)scaled[i].values[k]);
    }
    assert_int_equal(kiln_image_scale(&from, 0, 4, &to, NULL), KILN_E_RANGE);
    kiln_image_release(&to);
}

static void test_buffer(void **unused)
{
    KilnImage image = { 0 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_image_resize_buffer(&image, 4, 5, 3, &err), KILN_OK);
    float *data = image.data;
    assert_int_equal(kiln_image_resize_buffer(&image, 2, 2, 1, &err), KILN_OK);
    assert_ptr_equal(image.data, data); /* memory is kept */
    assert_int_equal(kiln_image_resize_buffer(&image, INT64_MAX, INT64_MAX, 3, &err), KILN_E_RANGE);
    assert_int_equal(kiln_image_resize_buffer(&image, 2, -1, 3, &err), KILN_E_RANGE);
    assert_int_equal(image.height, 2);
    kiln_image_release(&image);
    kiln_image_release(NULL);
}

/* ---- Sets ------------------------------------------------------------------------------ */

static void make_tree(const char *const *files)
{
    assert_int_equal(kiln_path_remove(below("tree"), NULL), KILN_OK);
    assert_int_equal(kiln_dir_make(below("tree"), NULL), KILN_OK);
    for (; *files != NULL; files++) {
        char path[512];
        char *slash;

        snprintf(path, sizeof(path), "%s/tree/%s", scratch, *files);
        slash = strrchr(path, '/');
        *slash = '\0';
        assert_int_equal(kiln_dir_make(path, NULL), KILN_OK);
        *slash = '/';
        if (slash[1] != '\0') /* "x/" is an empty folder */
            put(path + strlen(scratch) + 1, "", 0);
    }
}

/* Every kind of file, interlaced ones too, has the bytes of an image that is scaled as a whole. */
static void test_read_scaled(void **unused)
{
    static const int64_t sizes[][2] = { { 1, 1 },
                                        { 2, 3 },
                                        { 3, KIND_WIDTH },
                                        { KIND_HEIGHT, KIND_WIDTH },
                                        { 2 * KIND_HEIGHT + 1, 3 * KIND_WIDTH } };
    KilnImage whole = { 0 }, want = { 0 }, got = { 0 };
    KilnError err = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(kinds) * KILN_COUNT(sizes); i++) {
        const int64_t *size = sizes[i % KILN_COUNT(sizes)], channels = i % 2 == 0 ? 3 : 1;
        const KilnPngForm form = { .channels = channels, .height = size[0], .width = size[1] };
        char path[256];

        snprintf(path, sizeof(path), IMAGES "%s.png", kinds[i / KILN_COUNT(sizes)].name);
        read_or_fail(path, channels, &whole);
        assert_int_equal(kiln_image_scale(&whole, size[0], size[1], &want, &err), KILN_OK);
        assert_int_equal(kiln_image_read(path, &form, &got, &err), KILN_OK);
        assert_int_equal(got.height, size[0]);
        assert_int_equal(got.width, size[1]);
        assert_int_equal(got.channels, channels);
        assert_memory_equal(got.data, want.data,
                            (size_t)(size[0] * size[1] * channels) * sizeof(*got.data));
    }
    kiln_image_release(&whole);
    kiln_image_release(&want);
    kiln_image_release(&got);
}

static void test_pixel_limit(void **unused)
{
    const int64_t pixels = KIND_HEIGHT * KIND_WIDTH;
    KilnPngForm form = { .channels = 3, .height = 1, .width = 1, .max_pixels = pixels };
    KilnImage image = { 0 };
    KilnError err = { 0 };
    int64_t size[3];

    (void)unused;
    assert_int_equal(kiln_image_read(IMAGES "rgb8.png", &form, &image, &err), KILN_OK);
    form.max_pixels--;
    assert_int_equal(kiln_image_read(IMAGES "rgb8.png", &form, &image, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "in all are read (datamodule.max_pixels)"));
    assert_int_equal(kiln_image_size(IMAGES "rgb8.png", pixels, size, &err), KILN_OK);
    assert_int_equal(kiln_image_size(IMAGES "rgb8.png", pixels - 1, size, &err), KILN_E_FORMAT);
    kiln_image_release(&image);
}

static void list_omission(void *ctx, const KilnOmission *omission)
{
    char *text = ctx;

    snprintf(text + strlen(text), 512 - strlen(text), "%d %s %s: %s\n", (int)omission->count,
             omission->what, omission->example + strlen(below("tree")) + 1, omission->reason);
}

static void assert_left_out(const KilnImageSet *set, const char *want)
{
    char text[512] = "";

    kiln_image_set_left_out(set, list_omission, text);
    assert_string_equal(text, want);
}

static void test_scan(void **unused)
{
    static const char *const train[] = { "b/2.png",    "b/10.PNG", "b/.hidden.png", "b/notes.txt",
                                         "a/x.png",    ".git/y",   "Z/1.png",       "readme.md",
                                         "a/.tmp/o.c", "b/3.GIF",  "a/1.gif",       "b/4.gif",
                                         "a/odd",      NULL };
    static const char *const val[] = { "b/7.png", "a/1.png", NULL };
    static const char *const names[] = { "Z/1.png", "a/x.png", "b/10.PNG", "b/2.png" };
    static const int32_t labels[] = { 0, 1, 2, 2 };
    KilnImageSet set = { 0 }, more = { 0 };
    KilnError err = { 0 };

    (void)unused;
    make_tree(train);
    if (kiln_image_set_scan(below("tree"), NULL, NULL, &set, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(set.n_classes, 3);
    assert_string_equal(set.classes[0], "Z");
    assert_string_equal(set.classes[2], "b");
    assert_int_equal(set.count, 4);
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        assert_string_equal(set.paths[i] + strlen(below("tree")) + 1, names[i]);
        assert_int_equal(set.labels[i], labels[i]);
    }
    assert_left_out(
        &set, "1 files readme.md: not in the folder of a class\n"
              "3 .gif files a/1.gif: only .png, .jpg, .jpeg and .webp files are read\n"
              "1 files without an ending a/odd: only .png, .jpg, .jpeg and .webp files are read\n"
              "1 .txt files b/notes.txt: only .png, .jpg, .jpeg and .webp files are read\n");
    /* Another folder with the classes of the first, one of them missing. */
    make_tree(val);
    assert_int_equal(kiln_image_set_scan(below("tree"), &set, NULL, &more, &err), KILN_OK);
    assert_int_equal(more.n_classes, 3);
    assert_int_equal(more.count, 2);
    assert_int_equal(more.labels[0], 1);
    assert_int_equal(more.labels[1], 2);
    kiln_image_set_release(&set);
    assert_string_equal(more.classes[0], "Z"); /* its own copy */
    kiln_image_set_release(&more);
}

static void test_scan_errors(void **unused)
{
    static const struct {
        const char *files[4];
        const char *words;
    } cases[] = {
        { { "x.png", NULL }, "no classes: expected one folder per class" },
        { { "a/1.png", "b/", NULL }, "tree/b: no image in this class; the folder is empty" },
        { { "a/1.png", "b/2.gif", NULL }, "only others like \"2.gif\"" },
        { { "a/1.png", "b/3.png", "b/deep/2.png", NULL }, "b/deep: a folder inside a class" },
        { { "cat/1.png", "dgo/1.png", NULL },
          "\"dgo\" is not among the 2 classes of the training "
          "set; is it \"dog\"?" },
    };
    static const char *const known_classes[] = { "cat", "dog" };
    static const KilnImageSet known = { .n_classes = 2, .classes = known_classes };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnImageSet set = { .count = -7 };
        KilnError err = { 0 };

        make_tree(cases[i].files);
        KilnStatus got = kiln_image_set_scan(
            below("tree"), i + 1 == KILN_COUNT(cases) ? &known : NULL, NULL, &set, &err);
        if (got != KILN_E_FORMAT || strstr(err.text, cases[i].words) == NULL)
            fail_msg("case %zu: status %d: %s", i, got, err.text);
        assert_int_equal(set.count, -7);
    }
}

static bool stop(void *ctx, const char *what, int64_t done, int64_t total)
{
    (void)done;
    (void)total;
    *(const char **)ctx = what;
    return true;
}

static void test_searches_stop(void **unused)
{
    static const char *const files[] = { "a/1.png", "b/2.png", NULL };
    const char *what = NULL;
    const KilnPoll poll = { stop, &what };
    KilnImageSet set = { .count = -7 };
    KilnError err = { 0 };

    (void)unused;
    make_tree(files);
    assert_int_equal(kiln_image_set_scan(below("tree"), NULL, &poll, &set, &err),
                     KILN_E_INTERRUPTED);
    assert_string_equal(err.text, "interrupted while finding images");
    assert_string_equal(what, "finding images");
    assert_int_equal(set.count, -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),       cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_not_files),   cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_write),       cmocka_unit_test(test_scale),
        cmocka_unit_test(test_buffer),      cmocka_unit_test(test_scan),
        cmocka_unit_test(test_scan_errors), cmocka_unit_test(test_searches_stop),
        cmocka_unit_test(test_read_scaled), cmocka_unit_test(test_pixel_limit),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
