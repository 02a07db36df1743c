/* Charts: the curves and their colours in the picture, ticks, unusual values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kiln.h"
#include "kiln/plot.h"
#include "plot/axis.h"

static char path[64];

static int make_file(void **unused)
{
    (void)unused;
    snprintf(path, sizeof(path), "/tmp/kiln-plot-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int remove_file(void **unused)
{
    (void)unused;
    return unlink(path);
}

/* Pixels of a colour in the rectangle from (x0, y0) up to, without, (x1, y1). */
static int64_t count(const KilnImage *image, double r, double g, double b, const int64_t at[4])
{
    int64_t n = 0;

    for (int64_t y = at[1]; y < at[3]; y++)
        for (int64_t x = at[0]; x < at[2]; x++) {
            const float *pixel = image->data + (y * image->width + x) * 3;

            n += fabs((double)pixel[0] - r) < 0.02 && fabs((double)pixel[1] - g) < 0.02 &&
                 fabs((double)pixel[2] - b) < 0.02;
        }
    return n;
}

static KilnImage draw(const KilnChart *chart)
{
    KilnImage image = { 0 };
    KilnError err = { 0 };

    if (kiln_plot_chart(path, chart, &err) < 0 ||
        kiln_image_read(path, &(KilnPngForm) { .channels = 3 }, &image, &err) < 0)
        fail_msg("%s", err.text);
    return image;
}

#define BLUE 0.00, 0.45, 0.70
#define ORANGE 0.84, 0.37, 0.00
#define GREEN 0.00, 0.62, 0.45

static void test_curves(void **unused)
{
    double x[100], low[100], high[100];
    KilnPlotLine lines[] = { { .x = x, .y = low, .n = 100 }, { .x = x, .y = high, .n = 100 } };
    const KilnChart chart = { .title = "loss",
                              .x_label = "step",
                              .lines = lines,
                              .n_lines = 2,
                              .width = 640,
                              .height = 400 };

    (void)unused;
    for (int i = 0; i < 100; i++) {
        x[i] = i;
        low[i] = i % 10 == 5 ? (double)NAN : 1.0;
        high[i] = 2.0;
    }
    KilnImage image = draw(&chart);
    assert_int_equal(image.width, 640);
    assert_int_equal(image.height, 400);
    /* Each goes from one side to the other, the larger one above; nothing is outside of the axes.
     */
    assert_true(count(&image, BLUE, (const int64_t[]) { 60, 200, 600, 400 }) > 500);
    assert_int_equal(count(&image, BLUE, (const int64_t[]) { 0, 0, 640, 200 }), 0);
    assert_true(count(&image, ORANGE, (const int64_t[]) { 60, 0, 600, 200 }) > 500);
    assert_int_equal(count(&image, ORANGE, (const int64_t[]) { 0, 200, 640, 400 }), 0);
    assert_int_equal(count(&image, GREEN, (const int64_t[]) { 0, 0, 640, 400 }), 0);
    assert_int_equal(count(&image, ORANGE, (const int64_t[]) { 0, 0, 640, 30 }), 0);
    kiln_image_release(&image);
    /* With labels there is a legend, which has each colour on the other's side, too. */
    lines[0].label = "train/loss";
    lines[1].label = "val/loss";
    image = draw(&chart);
    assert_true(count(&image, BLUE, (const int64_t[]) { 0, 0, 640, 200 }) +
                    count(&image, ORANGE, (const int64_t[]) { 0, 200, 640, 400 }) >
                20);
    kiln_image_release(&image);
}

/* Many points in a column of pixels: its lowest and its highest are to be seen. */
static void test_many_points(void **unused)
{
    enum { N = 200000 };
    double *x = calloc(2 * N, sizeof(*x)), *y = x + N;
    const KilnPlotLine line = { .x = x, .y = y, .n = N };
    const KilnChart chart = { .lines = &line, .n_lines = 1, .width = 640, .height = 400 };
    const int64_t middle[] = { 0, 100, 640, 300 }, above[] = { 0, 50, 640, 60 };
    const int64_t below[] = { 0, 330, 640, 340 };

    (void)unused;
    assert_non_null(x);
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = 0.001 * (i % 7);
    }
    y[N / 3] = 1.0;
    y[2 * N / 3] = -1.0;
    KilnImage image = draw(&chart);
    assert_true(count(&image, BLUE, middle) > 500);
    assert_in_range(count(&image, BLUE, above), 5, 40);
    assert_in_range(count(&image, BLUE, below), 5, 40);
    kiln_image_release(&image);
    free(x);
}

static void test_odd_values(void **unused)
{
    const double x[] = { 1.0, 10.0, 100.0 }, y[] = { (double)NAN, (double)INFINITY, -1.0 };
    KilnPlotLine line = { .label = "a", .x = x, .y = y, .n = 3 };
    KilnChart chart = { .lines = &line, .n_lines = 1, .log_x = true, .log_y = true };
    KilnError err = { 0 };
    KilnImage image;

    (void)unused;
    image = draw(&chart); /* nothing that a logarithm can show */
    assert_int_equal(image.width, 800);
    kiln_image_release(&image);
    chart.n_lines = 0;
    image = draw(&chart);
    kiln_image_release(&image);
    line.n = 1;
    line.y = x;
    chart.n_lines = 1;
    line.label = NULL;
    image = draw(&chart); /* a single point can be seen */
    assert_true(count(&image, BLUE, (const int64_t[]) { 0, 0, 800, 500 }) > 8);
    kiln_image_release(&image);
    chart.width = 1 << 20;
    assert_int_equal(kiln_plot_chart(path, &chart, &err), KILN_E_RANGE);
    chart.width = 0;
    assert_int_equal(kiln_plot_chart("/nonexistent/x.png", &chart, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "/nonexistent/x.png"));
}

/* Points are dark to light by their shade; values that can't be shown are left out. */
static void test_panels_and_parallel_axes(void **unused)
{
    static const char *const names[] = { "cnn", "an option with a very long name" };
    const double x[] = { 1.0, 10.0, (double)NAN, 100.0 }, kind[] = { 0.0, 1.0, 1.0, (double)NAN };
    const double y[] = { 3.0, 1.0, 2.0, (double)INFINITY }, shades[] = { 1.0, 0.0, 0.5, 0.7 };
    const KilnPlotScale scales[] = {
        { .label = "lr", .log = true, .values = x },
        { .label = "model", .names = names, .n_names = 2, .values = kind },
        { .label = "a label that is wider than the room above its axis", .values = y },
    };
    KilnPlotPanels panels = { .title = "t",
                              .y = scales[2],
                              .xs = scales,
                              .n_panels = 2,
                              .n = 4,
                              .shades = shades,
                              .mark = 1,
                              .steps = y,
                              .steps_label = "best" };
    KilnPlotParallel parallel = { .scales = scales, .n_scales = 3, .n = 4, .shades = shades };
    KilnError err = { 0 };
    KilnImage image = { 0 };

    (void)unused;
    if (kiln_plot_panels(path, &panels, &err) < 0 ||
        kiln_image_read(path, &(KilnPngForm) { .channels = 3 }, &image, &err) < 0)
        fail_msg("%s", err.text);
    const int64_t whole[] = { 0, 0, image.width, image.height };
    assert_true(count(&image, 0.84, 0.37, 0.00, whole) > 20); /* the ring, the line */
    kiln_image_release(&image);
    if (kiln_plot_parallel(path, &parallel, &err) < 0 ||
        kiln_image_read(path, &(KilnPngForm) { .channels = 3 }, &image, &err) < 0)
        fail_msg("%s", err.text);
    const int64_t all[] = { 0, 0, image.width, image.height };
    assert_true(count(&image, 0.267, 0.005, 0.329, all) > 300); /* the best line, on top */
    kiln_image_release(&image);
    parallel.n = panels.n = 0; /* only axes */
    panels.steps = NULL;
    assert_int_equal(kiln_plot_panels(path, &panels, &err), KILN_OK);
    assert_int_equal(kiln_plot_parallel(path, &parallel, &err), KILN_OK);
    parallel.n_scales = panels.n_panels = 0;
    assert_int_equal(kiln_plot_panels(path, &panels, &err), KILN_E_RANGE);
    assert_int_equal(kiln_plot_parallel(path, &parallel, &err), KILN_E_RANGE);
}

/* A row whose samples are all taken for one class is dark there and white elsewhere. */
static void test_confusion(void **unused)
{
    const char *const labels[] = { "cat", "dog" };
    const double values[] = { 5.0, 0.0, (double)NAN, 3.0 };
    KilnConfusion confusion = { .title = "val", .labels = labels, .values = values, .n = 2 };
    KilnImage image = { 0 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_plot_confusion(path, &confusion, &err), KILN_OK);
    assert_int_equal(kiln_image_read(path, &(KilnPngForm) { .channels = 3 }, &image, &err),
                     KILN_OK);
    const int64_t whole[] = { 0, 0, image.width, image.height };
    /* Two cells of 44 by 44 pixels, less their lines and numbers. */
    const int64_t dark = count(&image, 0.0, 0.45, 0.70, whole);
    assert_in_range(dark, 2 * 43 * 43 * 9 / 10, 2 * 44 * 44);
    kiln_image_release(&image);
    confusion.n = 0;
    assert_int_equal(kiln_plot_confusion(path, &confusion, &err), KILN_E_RANGE);
    confusion.n = 65;
    assert_int_equal(kiln_plot_confusion(path, &confusion, &err), KILN_E_RANGE);
}

/* Images of 48 pixels are drawn twice as large, one part below the other. */
static void test_gallery(void **unused)
{
    float black_white[48 * 48], colours[3] = { 0.0f, 1.0f, 0.0f };
    KilnPlotImage images[3] = { { black_white, "a" }, { black_white, NULL }, { black_white, "c" } };
    const KilnPlotRows parts[] = { { "right", images, 2 }, { NULL, images + 2, 1 } };
    KilnPlotGallery gallery = {
        .parts = parts, .n_parts = 2, .height = 48, .width = 48, .channels = 1, .columns = 2
    };
    KilnImage image = { 0 };
    KilnError err = { 0 };

    (void)unused;
    for (int i = 0; i < 48 * 48; i++)
        black_white[i] = i < 24 * 48 ? -3.0f : 7.0f;
    assert_int_equal(kiln_plot_gallery(path, &gallery, &err), KILN_OK);
    assert_int_equal(kiln_image_read(path, &(KilnPngForm) { .channels = 3 }, &image, &err),
                     KILN_OK);
    assert_int_equal(image.width, 2 * 16 + 2 * 96 + 12);
    const int64_t first[] = { 16, 16 + 26, 16 + 96, 16 + 26 + 96 };
    assert_int_equal(count(&image, 0.0, 0.0, 0.0, first), 96 * 48);
    assert_int_equal(count(&image, 1.0, 1.0, 1.0, first), 96 * 48);
    const int64_t height = image.height;
    kiln_image_release(&image);
    images[0].caption = "a\nb";
    assert_int_equal(kiln_plot_gallery(path, &gallery, &err), KILN_OK);
    assert_int_equal(kiln_image_read(path, &(KilnPngForm) { .channels = 3 }, &image, &err),
                     KILN_OK);
    assert_true(image.height > height && image.height <= height + 20);
    const int64_t second[] = { 16, 16 + 26 + 96 + 18, 16 + 96, 16 + 26 + 96 + 18 + 14 };
    assert_true(count(&image, 1.0, 1.0, 1.0, second) < 96 * 14);
    kiln_image_release(&image);
    images[0].data = colours;
    gallery.height = gallery.width = 1;
    gallery.channels = 3;
    images[1].data = images[2].data = colours;
    assert_int_equal(kiln_plot_gallery(path, &gallery, &err), KILN_OK);
    assert_int_equal(kiln_image_read(path, &(KilnPngForm) { .channels = 3 }, &image, &err),
                     KILN_OK);
    assert_int_equal(count(&image, 0.0, 1.0, 0.0, first), 96 * 96);
    kiln_image_release(&image);
    gallery.channels = 2;
    assert_int_equal(kiln_plot_gallery(path, &gallery, &err), KILN_E_RANGE);
}

static void test_ticks_of_whole_numbers(void **unused)
{
    KilnPlotAxis axis = { .whole = true, .min = 16.0, .max = 18.0, .from = 0.0, .to = 1.0 };

    (void)unused;
    kiln_plot_axis_finish(&axis, 8);
    assert_int_equal(axis.n_ticks, 3);
    assert_string_equal(axis.labels[1], "17");
}

/* The ring around a point is drawn. */
static void test_mark(void **unused)
{
    const double x[] = { 0.0, 1.0, 2.0 }, y[] = { 0.0, 3.0, 1.0 };
    KilnPlotLine line = { .x = x, .y = y, .n = 3, .mark = 1 };
    const KilnChart chart = { .lines = &line, .n_lines = 1 };
    int64_t white[2];

    (void)unused;
    for (int i = 0; i < 2; i++) {
        KilnImage image = { 0 };
        KilnError err = { 0 };

        line.marks = i == 1;
        assert_int_equal(kiln_plot_chart(path, &chart, &err), KILN_OK);
        assert_int_equal(kiln_image_read(path, &(KilnPngForm) { .channels = 3 }, &image, &err),
                         KILN_OK);
        const int64_t all[] = { 0, 0, image.width, image.height };
        white[i] = count(&image, 1.0, 1.0, 1.0, all);
        kiln_image_release(&image);
    }
    assert_true(white[1] < white[0]);
}

static void expect_ticks(bool log, double min, double max, const char *want)
{
    KilnPlotAxis axis = { .log = log, .min = min, .max = max, .from = 0.0, .to = 1.0 };
    char text[512] = "";

    kiln_plot_axis_finish(&axis, 6);
    for (size_t i = 0; i < axis.n_ticks; i++) {
        strncat(text, i > 0 ? " " : "", sizeof(text) - strlen(text) - 1);
        strncat(text, axis.labels[i], sizeof(text) - strlen(text) - 1);
    }
    assert_string_equal(text, want);
}

static void test_ticks(void **unused)
{
    (void)unused;
    expect_ticks(false, 0.0, 1.0, "0 0.2 0.4 0.6 0.8 1");
    expect_ticks(false, -3.0, 2.0, "-3 -2 -1 0 1 2");
    expect_ticks(false, 1234.0, 5678.0, "2000 3000 4000 5000");
    expect_ticks(false, 2.0, 2.0, "1.8 1.9 2 2.1 2.2");
    expect_ticks(false, (double)NAN, (double)NAN, "0 0.2 0.4 0.6 0.8 1");
    expect_ticks(true, 1e-3, 10.0, "0.001 0.01 0.1 1 10");
    expect_ticks(true, 1e-40, 1e40, "1e-40 1e-26 1e-12 100 1e+16 1e+30");
    expect_ticks(true, 2.0, 8.0, "2 5");
}

/* How many pixels of a rectangle of `picture` have this colour. */
static int64_t coloured(const KilnPicture *picture, const uint8_t rgb[3], const int64_t at[4])
{
    int64_t n = 0;

    for (int64_t y = at[1]; y < at[3]; y++)
        for (int64_t x = at[0]; x < at[2]; x++)
            n += memcmp(picture->pixels + (y * picture->row + x) * 3, rgb, 3) == 0;
    return n;
}

static void test_boxes(void **unused)
{
    enum { HEIGHT = 100, WIDTH = 120, ROW = 130 };
    static uint8_t pixels[HEIGHT * ROW * 3];
    static const uint8_t blue[] = { 0, 115, 179 }, orange[] = { 215, 94, 0 }, grey[] = { 7, 7, 7 };
    const KilnPicture picture = { .pixels = pixels, .height = HEIGHT, .width = WIDTH, .row = ROW };
    const KilnPlotBox boxes[] = {
        { .box = { 10, 40, 60, 90 }, .label = "cat 0.50", .colour = 0 },
        { .box = { 80, 2, 400, 60 }, .colour = 9 }, /* orange again */
    };
    KilnError err = { 0 };

    (void)unused;
    memset(pixels, 7, sizeof(pixels));
    if (kiln_plot_boxes(&picture, boxes, 2, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(coloured(&picture, blue, (int64_t[]) { 9, 39, 11, 91 }), 2 * 52);
    assert_int_equal(coloured(&picture, blue, (int64_t[]) { 9, 89, 61, 91 }), 2 * 52);
    assert_int_equal(coloured(&picture, grey, (int64_t[]) { 11, 41, 59, 89 }), 48 * 48);
    const int64_t label[] = { 9, 27, 61, 39 };
    assert_true(coloured(&picture, blue, label) > 200);
    assert_true(52 * 12 - coloured(&picture, blue, label) - coloured(&picture, grey, label) > 50);
    assert_int_equal(coloured(&picture, orange, (int64_t[]) { 79, 1, WIDTH, 3 }), 2 * 41);
    assert_int_equal(coloured(&picture, grey, (int64_t[]) { WIDTH, 0, ROW, HEIGHT }), 10 * HEIGHT);
    /* A label that has no room above its box is in it; one that is too wide begins in view. */
    const KilnPlotBox wide = { .box = { 100, 0, 119, 50 }, .label = "a label with many words" };
    memset(pixels, 7, sizeof(pixels));
    assert_int_equal(kiln_plot_boxes(&picture, &wide, 1, &err), KILN_OK);
    assert_true(coloured(&picture, blue, (int64_t[]) { 0, 0, 99, 12 }) > 300);
    const KilnPicture large = { .pixels = pixels, .height = 1, .width = 10000, .row = 10000 };
    assert_int_equal(kiln_plot_boxes(&large, NULL, 0, &err), KILN_E_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_curves, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_many_points, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_odd_values, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_panels_and_parallel_axes, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_confusion, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_gallery, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_mark, make_file, remove_file),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_ticks_of_whole_numbers),
        cmocka_unit_test(test_ticks),
    };
    KilnError err = { 0 };

    if (kiln_plot_supported(&err) < 0) {
        printf("skip: %s\n", err.text);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
