/* Horizontal bars, one below the other, with a label before each and its value after it. */
#ifdef KILN_WITH_CAIRO

#include <math.h>
#include <stdio.h>

#include "plot/canvas.h"

enum { MOST = 200, ROW = 22, BAR = 14, LENGTH = 420, MARGIN = 16, FONT = 12, TITLE = 15, GAP = 6 };

typedef struct Bars {
    const KilnPlotBars *what;
    KilnCanvas canvas;
    double left, top, largest;
} Bars;

static double value_of(const KilnPlotBar *bar)
{
    return isfinite(bar->value) && bar->value > 0.0 ? bar->value : 0.0;
}

/* Room for the labels is measured on a canvas of no use otherwise. */
static KilnStatus lay_out(Bars *bars, KilnError *err)
{
    const KilnPlotBars *what = bars->what;
    double widest = 0.0;
    KilnStatus status = kiln_canvas_init(&bars->canvas, 1, 1, err);

    if (status < 0)
        return status;
    kiln_canvas_font(&bars->canvas, FONT, false);
    for (size_t i = 0; i < what->n; i++) {
        widest = fmax(widest, kiln_canvas_text_width(&bars->canvas, what->bars[i].label));
        bars->largest = fmax(bars->largest, value_of(&what->bars[i]));
    }
    kiln_canvas_release(&bars->canvas);
    bars->left = MARGIN + ceil(fmin(widest, 2.0 * LENGTH)) + GAP;
    bars->top = MARGIN + (what->title != NULL ? TITLE + 2 * GAP : 0);
    return kiln_canvas_init(&bars->canvas, (int)bars->left + LENGTH + 80 + MARGIN,
                            (int)bars->top + (int)what->n * ROW + MARGIN, err);
}

static void draw_bar(Bars *bars, size_t i)
{
    const KilnPlotBar *bar = &bars->what->bars[i];
    const double y = bars->top + (double)i * ROW, middle = y + ROW / 2.0;
    const double length = bars->largest > 0.0 ? LENGTH * value_of(bar) / bars->largest : 0.0;
    char text[32];

    kiln_canvas_colour(&bars->canvas, 0);
    cairo_rectangle(bars->canvas.cr, bars->left, y + (ROW - BAR) / 2.0, length, BAR);
    cairo_fill(bars->canvas.cr);
    kiln_canvas_grey(&bars->canvas, 0.15);
    kiln_canvas_text(&bars->canvas, bars->left - GAP, middle, (KilnAnchor) { 1.0, 0.5 },
                     bar->label);
    snprintf(text, sizeof(text), "%.4g", bar->value);
    kiln_canvas_text(&bars->canvas, bars->left + length + GAP, middle, (KilnAnchor) { 0.0, 0.5 },
                     text);
}

static void draw(Bars *bars)
{
    const KilnPlotBars *what = bars->what;

    kiln_canvas_font(&bars->canvas, FONT, false);
    for (size_t i = 0; i < what->n; i++)
        draw_bar(bars, i);
    if (what->title == NULL)
        return;
    kiln_canvas_grey(&bars->canvas, 0.0);
    kiln_canvas_font(&bars->canvas, TITLE, true);
    kiln_canvas_text(&bars->canvas, bars->left, MARGIN, (KilnAnchor) { 0.0, 0.0 }, what->title);
}

KilnStatus kiln_plot_bars(const char *path, const KilnPlotBars *what, KilnError *err)
{
    Bars bars = { .what = what };

    if (what->n > MOST)
        return kiln_error_set(err, KILN_E_RANGE, "a picture of %zu bars: at most %d are possible",
                              what->n, (int)MOST);
    KilnStatus status = lay_out(&bars, err);
    if (status >= 0) {
        draw(&bars);
        status = kiln_canvas_save(&bars.canvas, path, err);
    }
    kiln_canvas_release(&bars.canvas);
    return status;
}

#else
typedef int kiln_plot_left_out; /* ISO C wants a declaration in every file */
#endif
