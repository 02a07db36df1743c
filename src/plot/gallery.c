/* Images in rows, with captions. */
#ifdef KILN_WITH_CAIRO

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plot/canvas.h"

enum {
    MARGIN = 16,
    GAP = 12,
    CAPTION = 18,
    LINE = 14,
    TITLE = 26,
    FONT = 11,
    LEAST = 96,
    LARGEST = 4096
};

typedef struct Layout {
    const KilnPlotGallery *what;
    int scale; /* screen pixels for one of an image */
    double width, height;
} Layout;

static size_t rows_of(const KilnPlotGallery *what, size_t part)
{
    const size_t columns = (size_t)what->columns;

    return (what->parts[part].n + columns - 1) / columns;
}

static double title_of(const KilnPlotGallery *what, size_t part)
{
    return what->parts[part].title != NULL ? TITLE : 0.0;
}

/* A row of images, with what is below it. */
static double row_of(const Layout *layout, size_t part)
{
    const KilnPlotRows *rows = &layout->what->parts[part];
    bool two = false;

    for (size_t i = 0; i < rows->n; i++)
        two = two ||
              (rows->images[i].caption != NULL && strchr(rows->images[i].caption, '\n') != NULL);
    return layout->height + CAPTION + (two ? LINE : 0) + GAP;
}

static void draw_caption(KilnCanvas *canvas, const char *caption, double x, double y)
{
    const char *second = strchr(caption, '\n');
    char first[256];

    kiln_canvas_grey(canvas, 0.15);
    snprintf(first, sizeof(first), "%.*s", (int)strcspn(caption, "\n"), caption);
    kiln_canvas_text(canvas, x, y, (KilnAnchor) { 0.5, 0.0 }, first);
    if (second != NULL)
        kiln_canvas_text(canvas, x, y + LINE, (KilnAnchor) { 0.5, 0.0 }, second + 1);
}

/* Normalized pixels have no known range. */
static void fill(uint8_t *to, int stride, const float *from, const KilnPlotGallery *what)
{
    const int64_t n = (int64_t)what->height * what->width * what->channels;
    float low = INFINITY, high = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        low = fminf(low, from[i]);
        high = fmaxf(high, from[i]);
    }
    const float scale = high > low ? 255.0f / (high - low) : 0.0f;
    for (int64_t y = 0; y < what->height; y++)
        for (int64_t x = 0; x < what->width; x++) {
            const float *pixel = from + (y * what->width + x) * what->channels;
            uint32_t rgb = 0;

            for (int c = 0; c < 3; c++) {
                const float value = (pixel[what->channels == 3 ? c : 0] - low) * scale + 0.5f;

                rgb = rgb << 8 | (value > 0.0f ? (uint32_t)value : 0u);
            }
            memcpy(to + y * stride + x * 4, &rgb, sizeof(rgb));
        }
}

static KilnStatus draw_image(KilnCanvas *canvas, const Layout *layout, const KilnPlotImage *image,
                             double x, double y, KilnError *err)
{
    const KilnPlotGallery *what = layout->what;
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, what->width,
                                                          what->height);

    if (cairo_surface_status(surface) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(surface);
        return kiln_error_nomem(err, (size_t)what->width * (size_t)what->height * 4);
    }
    fill(cairo_image_surface_get_data(surface), cairo_image_surface_get_stride(surface),
         image->data, what);
    cairo_surface_mark_dirty(surface);
    cairo_save(canvas->cr);
    cairo_translate(canvas->cr, x, y);
    cairo_scale(canvas->cr, layout->scale, layout->scale);
    cairo_set_source_surface(canvas->cr, surface, 0.0, 0.0);
    cairo_pattern_set_filter(cairo_get_source(canvas->cr), CAIRO_FILTER_NEAREST);
    cairo_paint(canvas->cr);
    cairo_restore(canvas->cr);
    cairo_surface_destroy(surface);
    if (image->caption != NULL)
        draw_caption(canvas, image->caption, x + layout->width / 2.0, y + layout->height + 4.0);
    return KILN_OK;
}

static KilnStatus draw_part(KilnCanvas *canvas, const Layout *layout, size_t part, double top,
                            KilnError *err)
{
    const KilnPlotGallery *what = layout->what;
    const KilnPlotRows *rows = &what->parts[part];
    const size_t columns = (size_t)what->columns;
    KilnStatus status = KILN_OK;

    if (rows->title != NULL) {
        kiln_canvas_font(canvas, FONT + 3, true);
        kiln_canvas_grey(canvas, 0.0);
        kiln_canvas_text(canvas, MARGIN, top, (KilnAnchor) { 0.0, 0.0 }, rows->title);
    }
    kiln_canvas_font(canvas, FONT, false);
    top += title_of(what, part);
    for (size_t i = 0; i < rows->n && status >= 0; i++)
        status = draw_image(canvas, layout, &rows->images[i],
                            MARGIN + (double)(i % columns) * (layout->width + GAP),
                            top + (double)(i / columns) * row_of(layout, part), err);
    return status;
}

/* Small images are enlarged by a whole number, to be seen and to have room for captions. */
static Layout lay_out(const KilnPlotGallery *what)
{
    const int scale = what->width < LEAST ? (LEAST + what->width - 1) / what->width : 1;

    return (Layout) {
        .what = what,
        .scale = scale,
        .width = (double)what->width * scale,
        .height = (double)what->height * scale,
    };
}

KilnStatus kiln_plot_gallery(const char *path, const KilnPlotGallery *gallery, KilnError *err)
{
    KilnCanvas canvas = { 0 };

    if (gallery->columns < 1 || gallery->width < 1 || gallery->height < 1 ||
        gallery->width > LARGEST || gallery->height > LARGEST ||
        (gallery->channels != 1 && gallery->channels != 3))
        return kiln_error_set(err, KILN_E_RANGE, "a gallery of %d columns of images [%d, %d, %d]",
                              gallery->columns, gallery->height, gallery->width, gallery->channels);
    const Layout layout = lay_out(gallery);
    double height = 2 * MARGIN, top = MARGIN;
    for (size_t i = 0; i < gallery->n_parts; i++)
        height += title_of(gallery, i) + (double)rows_of(gallery, i) * row_of(&layout, i);
    const double width = 2 * MARGIN + gallery->columns * (layout.width + GAP) - GAP;
    KilnStatus status = kiln_canvas_init(&canvas, (int)fmin(width, 1e6), (int)fmin(height, 1e6),
                                         err);
    for (size_t i = 0; i < gallery->n_parts && status >= 0; i++) {
        status = draw_part(&canvas, &layout, i, top, err);
        top += title_of(gallery, i) + (double)rows_of(gallery, i) * row_of(&layout, i);
    }
    if (status >= 0)
        status = kiln_canvas_save(&canvas, path, err);
    kiln_canvas_release(&canvas);
    return status;
}

#else
typedef int kiln_plot_left_out; /* ISO C wants a declaration in every file */
#endif
