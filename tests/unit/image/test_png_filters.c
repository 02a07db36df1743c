/* PNG files with each filter of rows: the pixels that libpng wrote, whole and in parts. */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/image.h"
#include "tests/support/cmocka.h"

enum { HEIGHT = 19, WIDTH = 23 };

static const char path[] = "build/test-png-filters.png";

static uint8_t sample(int64_t y, int64_t x, int64_t c, int64_t samples)
{
    if (samples % 2 == 0 && c == samples - 1)
        return 255; /* opaque */
    return (uint8_t)(y * y * 3 + x * 11 + c * 71 + x * y % 17 * 13);
}

/* Write an image of 1 to 4 samples a pixel. libpng jumps back here if it fails. */
static void write_file(int samples, int filters)
{
    static const int types[] = { 0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                 PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA };
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    FILE *file = fopen(path, "wb");
    uint8_t row[WIDTH * 4];

    assert_true(info != NULL && file != NULL);
    if (setjmp(png_jmpbuf(png)) != 0)
        fail_msg("libpng does not write %d samples with filters %d", samples, filters);
    png_init_io(png, file);
    png_set_IHDR(png, info, WIDTH, HEIGHT, 8, types[samples], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, filters);
    png_set_compression_buffer_size(png, 200); /* many chunks */
    png_write_info(png, info);
    for (int64_t y = 0; y < HEIGHT; y++) {
        for (int64_t x = 0; x < WIDTH; x++)
            for (int64_t c = 0; c < samples; c++)
                row[x * samples + c] = sample(y, x, c, samples);
        png_write_row(png, row);
    }
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(file), 0);
}

static void check(int samples, int filters)
{
    const int64_t channels = samples < 3 ? 1 : 3;
    const KilnPngForm form = { .channels = channels };
    KilnImage image = { 0 };
    KilnError err = { 0 };

    write_file(samples, filters);
    if (kiln_image_read(path, &form, &image, &err) < 0)
        fail_msg("%d samples, filters %d: %s", samples, filters, err.text);
    for (int64_t y = 0; y < HEIGHT; y++)
        for (int64_t x = 0; x < WIDTH; x++)
            for (int64_t c = 0; c < channels; c++)
                if (image.data[(y * WIDTH + x) * channels + c] !=
                    (float)sample(y, x, c, samples) / 255.0f)
                    fail_msg("%d samples, filters %d: pixel %d, %d", samples, filters, (int)y,
                             (int)x);
    kiln_image_release(&image);
}

static void test_filters(void **unused)
{
    static const int filters[] = { PNG_FILTER_NONE, PNG_FILTER_SUB,   PNG_FILTER_UP,
                                   PNG_FILTER_AVG,  PNG_FILTER_PAETH, PNG_ALL_FILTERS };

    (void)unused;
    for (int samples = 1; samples <= 4; samples++)
        for (size_t i = 0; i < KILN_COUNT(filters); i++)
            check(samples, filters[i]);
    assert_int_equal(remove(path), 0);
}

/* A byte changed anywhere is damage that is found, or changes nothing. */
static void test_damage(void **unused)
{
    const KilnPngForm form = { .channels = 3 };
    KilnImage image = { 0 };
    uint8_t data[8192];

    (void)unused;
    write_file(3, PNG_ALL_FILTERS);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(data, 1, sizeof(data), file);
    assert_int_equal(fclose(file), 0);
    assert_true(size > 100 && size < sizeof(data));
    for (size_t i = 8; i < size; i++) {
        KilnError err = { 0 };

        data[i] ^= 0x55;
        if (kiln_image_read_bytes(data, size, "x.png", &form, &image, &err) < 0)
            assert_non_null(strstr(err.text, "x.png: "));
        else
            for (int64_t k = 0; k < HEIGHT * WIDTH; k++)
                assert_true(image.data[3 * k] ==
                            (float)sample(k / WIDTH, k % WIDTH, 0, 3) / 255.0f);
        data[i] ^= 0x55;
    }
    kiln_image_release(&image);
    assert_int_equal(remove(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
