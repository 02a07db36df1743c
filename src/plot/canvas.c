/* cairo's surfaces and texts. */
#ifdef KILN_WITH_CAIRO

#include "plot/canvas.h"

#include <math.h>

enum { LARGEST = 8192 };

KilnStatus kiln_plot_supported(KilnError *err)
{
    (void)err;
    return KILN_OK;
}

KilnStatus kiln_canvas_init(KilnCanvas *canvas, int width, int height, KilnError *err)
{
    *canvas = (KilnCanvas) { 0 };
    if (width < 1 || height < 1 || width > LARGEST || height > LARGEST)
        return kiln_error_set(err, KILN_E_RANGE,
                              "a picture of %d × %d pixels: 1 to %d each way are possible", width,
                              height, (int)LARGEST);
    *canvas = (KilnCanvas) {
        .surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height),
        .width = width,
        .height = height,
    };
    canvas->cr = cairo_create(canvas->surface);
    if (cairo_status(canvas->cr) != CAIRO_STATUS_SUCCESS)
        return kiln_error_nomem(err, (size_t)width * (size_t)height * 4);
    cairo_set_source_rgb(canvas->cr, 1.0, 1.0, 1.0);
    cairo_paint(canvas->cr);
    return KILN_OK;
}

KilnStatus kiln_canvas_save(KilnCanvas *canvas, const char *path, KilnError *err)
{
    cairo_status_t status = cairo_status(canvas->cr);

    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_write_to_png(canvas->surface, path);
    if (status == CAIRO_STATUS_SUCCESS)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_IO, "%s: the picture can't be written: %s", path,
                          cairo_status_to_string(status));
}

void kiln_canvas_release(KilnCanvas *canvas)
{
    if (canvas->cr != NULL)
        cairo_destroy(canvas->cr);
    if (canvas->surface != NULL)
        cairo_surface_destroy(canvas->surface);
    *canvas = (KilnCanvas) { 0 };
}

void kiln_canvas_grey(KilnCanvas *canvas, double level)
{
    cairo_set_source_rgb(canvas->cr, level, level, level);
}

void kiln_canvas_colour(KilnCanvas *canvas, size_t i)
{
    static const double colours[][3] = {
        { 0.00, 0.45, 0.70 }, { 0.84, 0.37, 0.00 }, { 0.00, 0.62, 0.45 }, { 0.80, 0.47, 0.65 },
        { 0.90, 0.62, 0.00 }, { 0.34, 0.71, 0.91 }, { 0.40, 0.40, 0.40 }, { 0.75, 0.70, 0.10 },
    };
    const double *c = colours[i % KILN_COUNT(colours)];

    cairo_set_source_rgb(canvas->cr, c[0], c[1], c[2]);
}

void kiln_canvas_shade(KilnCanvas *canvas, double shade, double alpha)
{
    static const double colours[][3] = {
        { 0.267, 0.005, 0.329 }, { 0.229, 0.322, 0.546 }, { 0.128, 0.567, 0.551 },
        { 0.369, 0.789, 0.383 }, { 0.853, 0.880, 0.200 },
    };
    const size_t last = KILN_COUNT(colours) - 1;
    const double at = fmin(fmax(shade, 0.0), 1.0) * (double)last;
    const size_t i = at < (double)last ? (size_t)at : last - 1;
    const double part = at - (double)i;
    double c[3];

    for (int k = 0; k < 3; k++)
        c[k] = (1.0 - part) * colours[i][k] + part * colours[i + 1][k];
    cairo_set_source_rgba(canvas->cr, c[0], c[1], c[2], alpha);
}

void kiln_canvas_font(KilnCanvas *canvas, double size, bool bold)
{
    cairo_select_font_face(canvas->cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(canvas->cr, size);
}

void kiln_plot_load_fonts(void)
{
    static const double sizes[] = { 11.0, 12.0, 13.0, 15.0 }; /* that pictures use */
    KilnCanvas canvas = { 0 };
    KilnError err;

    if (kiln_canvas_init(&canvas, 800, 500, &err) >= 0)
        for (size_t i = 0; i < 2 * KILN_COUNT(sizes); i++) {
            kiln_canvas_font(&canvas, sizes[i / 2], i % 2 != 0);
            kiln_canvas_text(&canvas, 0.0, 0.0, (KilnAnchor) { 0.0, 0.0 },
                             "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789 "
                             ".,:;-+/%()_");
        }
    kiln_canvas_release(&canvas);
}

double kiln_canvas_text_width(KilnCanvas *canvas, const char *text)
{
    cairo_text_extents_t extents;

    cairo_text_extents(canvas->cr, text, &extents);
    return extents.x_advance;
}

/* Heights are those of the font, so that the texts of a row stand on one line. */
void kiln_canvas_text(KilnCanvas *canvas, double x, double y, KilnAnchor anchor, const char *text)
{
    cairo_font_extents_t font;

    cairo_font_extents(canvas->cr, &font);
    double height = font.ascent - font.descent;
    cairo_move_to(canvas->cr, x - anchor.x * kiln_canvas_text_width(canvas, text),
                  y + (1.0 - anchor.y) * height);
    cairo_show_text(canvas->cr, text);
    cairo_new_path(canvas->cr); /* the text leaves a point that the next line would begin at */
}

void kiln_canvas_text_up(KilnCanvas *canvas, double x, double y, const char *text)
{
    cairo_save(canvas->cr);
    cairo_translate(canvas->cr, x, y);
    cairo_rotate(canvas->cr, -acos(-1.0) / 2.0);
    kiln_canvas_text(canvas, 0.0, 0.0, (KilnAnchor) { 0.5, 0.5 }, text);
    cairo_restore(canvas->cr);
}

void kiln_canvas_line(KilnCanvas *canvas, double x0, double y0, double x1, double y1)
{
    cairo_set_line_width(canvas->cr, 1.0);
    cairo_move_to(canvas->cr, floor(x0) + 0.5, floor(y0) + 0.5);
    cairo_line_to(canvas->cr, floor(x1) + 0.5, floor(y1) + 0.5);
    cairo_stroke(canvas->cr);
}

#else
typedef int kiln_plot_left_out; /* ISO C wants a declaration in every file */
#endif
