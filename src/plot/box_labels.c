/* Boxes with labels over a picture. */
#ifdef KILN_WITH_CAIRO

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "plot/canvas.h"

static const double least_font = 11.0, pixels_of_a_font = 45.0; /* of the picture's shorter side */

/* cairo's pixels are numbers 0xRRGGBB. */
static void read_pixels(KilnCanvas *canvas, const KilnPicture *picture)
{
    uint8_t *data = cairo_image_surface_get_data(canvas->surface);
    const int stride = cairo_image_surface_get_stride(canvas->surface);

    for (int64_t y = 0; y < picture->height; y++)
        for (int64_t x = 0; x < picture->width; x++) {
            const uint8_t *from = picture->pixels + (y * picture->row + x) * 3;
            const uint32_t rgb = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];

            memcpy(data + y * stride + x * 4, &rgb, sizeof(rgb));
        }
    cairo_surface_mark_dirty(canvas->surface);
}

static void write_pixels(KilnCanvas *canvas, const KilnPicture *picture)
{
    const uint8_t *data;
    const int stride = cairo_image_surface_get_stride(canvas->surface);

    cairo_surface_flush(canvas->surface);
    data = cairo_image_surface_get_data(canvas->surface);
    for (int64_t y = 0; y < picture->height; y++)
        for (int64_t x = 0; x < picture->width; x++) {
            uint8_t *to = picture->pixels + (y * picture->row + x) * 3;
            uint32_t rgb;

            memcpy(&rgb, data + y * stride + x * 4, sizeof(rgb));
            for (int c = 0; c < 3; c++)
                to[c] = (uint8_t)(rgb >> (16 - 8 * c));
        }
}

/* Black on light colours, white on dark ones. */
static void contrast(KilnCanvas *canvas)
{
    double r, g, b, a;

    if (cairo_pattern_get_rgba(cairo_get_source(canvas->cr), &r, &g, &b, &a) ==
        CAIRO_STATUS_SUCCESS)
        kiln_canvas_grey(canvas, 0.299 * r + 0.587 * g + 0.114 * b > 0.55 ? 0.0 : 1.0);
}

static void draw_label(KilnCanvas *canvas, const KilnPlotBox *box, double line)
{
    cairo_font_extents_t font;

    cairo_font_extents(canvas->cr, &font);
    const double height = font.ascent + font.descent;
    const double width = kiln_canvas_text_width(canvas, box->label) + height / 2.0;
    const double above = box->box[1] - line / 2.0 - height;
    const double y = fmax(above >= 0.0 ? above : box->box[1], 0.0);
    const double x = fmax(fmin(box->box[0] - line / 2.0, canvas->width - width), 0.0);

    cairo_rectangle(canvas->cr, x, y, width, height);
    cairo_fill(canvas->cr);
    contrast(canvas);
    cairo_move_to(canvas->cr, x + height / 4.0, y + font.ascent);
    cairo_show_text(canvas->cr, box->label);
    cairo_new_path(canvas->cr);
}

/* Sides lie on whole pixels, which keeps their colour. */
static void draw_box(KilnCanvas *canvas, const KilnPlotBox *box, double line)
{
    const double middle = fmod(line, 2.0) / 2.0; /* of a line of an odd number of pixels */
    double at[4];

    for (int i = 0; i < 4; i++)
        at[i] = round(box->box[i]) + middle;
    kiln_canvas_colour(canvas, box->colour);
    cairo_set_line_width(canvas->cr, line);
    cairo_rectangle(canvas->cr, at[0], at[1], at[2] - at[0], at[3] - at[1]);
    cairo_stroke(canvas->cr);
    if (box->label != NULL)
        draw_label(canvas, box, line);
}

KilnStatus kiln_plot_boxes(const KilnPicture *picture, const KilnPlotBox *boxes, size_t n,
                           KilnError *err)
{
    KilnCanvas canvas = { 0 };
    const double side = (double)(picture->height < picture->width ? picture->height
                                                                  : picture->width);
    const double font = fmax(least_font, side / pixels_of_a_font);
    KilnStatus status = kiln_canvas_init(&canvas, (int)fmin((double)picture->width, 1e6),
                                         (int)fmin((double)picture->height, 1e6), err);

    if (status >= 0) {
        read_pixels(&canvas, picture);
        kiln_canvas_font(&canvas, font, false);
        for (size_t i = 0; i < n; i++)
            draw_box(&canvas, &boxes[i], floor(font / 5.0));
        if (cairo_status(canvas.cr) == CAIRO_STATUS_SUCCESS)
            write_pixels(&canvas, picture);
        else
            status = kiln_error_set(err, KILN_E_FORMAT, "the boxes can't be drawn: %s",
                                    cairo_status_to_string(cairo_status(canvas.cr)));
    }
    kiln_canvas_release(&canvas);
    return status;
}

#else
typedef int kiln_plot_left_out; /* ISO C wants a declaration in every file */
#endif
