/* Parallel coordinates: upright axes side by side, with a line through them for each point. */
#ifdef KILN_WITH_CAIRO

#include <math.h>
#include <stdlib.h>

#include "plot/canvas.h"
#include "plot/scale_axis.h"

enum {
    MOST = 64,
    FONT = 12,
    TITLE = 15,
    MARGIN = 18,
    HEIGHT = 360,
    NEAREST = 110, /* of two axes */
    WIDEST = 170,
    LABELS = 90, /* room for ticks right of the last axis, and labels at both sides */
    LABEL = 24,  /* above an axis, a row */
    NONE = 26,   /* below an axis, where points without a value pass */
    TICK = 4
};

typedef struct Parallel {
    const KilnPlotParallel *what;
    KilnCanvas canvas;
    KilnPlotAxis *axes; /* [n_scales] */
    bool has_none;
    bool two_rows; /* of labels, which would run into each other in one */
    size_t *order; /* points, the best last */
    double left, step, top, bottom;
} Parallel;

/* ---- Layout -------------------------------------------------------------------------------- */

static double x_of(const Parallel *parallel, size_t axis)
{
    return parallel->left + (double)axis * parallel->step;
}

static bool lacks(const Parallel *parallel, size_t axis, size_t point)
{
    return !kiln_plot_axis_takes(&parallel->axes[axis], parallel->what->scales[axis].values[point]);
}

static double y_of(const Parallel *parallel, size_t axis, size_t point)
{
    const KilnPlotScale *scale = &parallel->what->scales[axis];

    return lacks(parallel, axis, point)
               ? parallel->bottom + NONE
               : kiln_plot_axis_pixel(&parallel->axes[axis],
                                      scale->values[point] + kiln_plot_scale_spread(scale, point));
}

/* Measured on a canvas of no use otherwise. */
static bool has_wide_label(const Parallel *parallel)
{
    KilnCanvas canvas;
    bool has = false;

    if (kiln_canvas_init(&canvas, 1, 1, NULL) >= 0) {
        kiln_canvas_font(&canvas, FONT, true);
        for (size_t i = 0; i < parallel->what->n_scales; i++) {
            const char *label = parallel->what->scales[i].label;

            has |= label != NULL && kiln_canvas_text_width(&canvas, label) > parallel->step - 10.0;
        }
    }
    kiln_canvas_release(&canvas);
    return has;
}

static KilnStatus lay_out(Parallel *parallel, KilnError *err)
{
    const KilnPlotParallel *what = parallel->what;
    const size_t gaps = what->n_scales > 1 ? what->n_scales - 1 : 1;

    parallel->axes = calloc(what->n_scales, sizeof(*parallel->axes));
    parallel->order = calloc(what->n + 1, sizeof(*parallel->order));
    if (parallel->axes == NULL || parallel->order == NULL)
        return kiln_error_nomem(err, what->n * sizeof(*parallel->order));
    parallel->step = fmin(fmax(800.0 / (double)gaps, NEAREST), WIDEST);
    parallel->left = MARGIN + LABELS / 2.0;
    parallel->two_rows = has_wide_label(parallel);
    parallel->top = MARGIN + (what->title != NULL ? TITLE + 10 : 0) +
                    (parallel->two_rows ? 1.7 : 1.0) * LABEL;
    parallel->bottom = parallel->top + HEIGHT;
    for (size_t i = 0; i < what->n_scales; i++) {
        kiln_plot_scale_axis(&what->scales[i], what->n, 6, &parallel->axes[i]);
        parallel->axes[i].from = parallel->bottom;
        parallel->axes[i].to = parallel->top;
        for (size_t k = 0; k < what->n; k++)
            parallel->has_none |= lacks(parallel, i, k);
    }
    return kiln_canvas_init(&parallel->canvas, (int)(x_of(parallel, gaps) + LABELS) + MARGIN,
                            (int)parallel->bottom + (parallel->has_none ? NONE : 0) + MARGIN + FONT,
                            err);
}

/* Worst first, by insertion into buckets of shades: equal ones keep their order. */
static void sort_points(Parallel *parallel)
{
    enum { BUCKETS = 256 };
    const KilnPlotParallel *what = parallel->what;
    size_t n = 0;

    for (int bucket = BUCKETS - 1; bucket >= 0; bucket--)
        for (size_t i = 0; i < what->n; i++)
            if ((int)(fmin(fmax(what->shades[i], 0.0), 1.0) * (BUCKETS - 1)) == bucket)
                parallel->order[n++] = i;
}

/* ---- Drawing -------------------------------------------------------------------------------- */

static void draw_line(Parallel *parallel, size_t point, bool best)
{
    const KilnPlotParallel *what = parallel->what;
    cairo_t *cr = parallel->canvas.cr;

    cairo_new_path(cr);
    for (size_t i = 0; i < what->n_scales; i++) {
        const double x = x_of(parallel, i), y = y_of(parallel, i, point);
        const double half = parallel->step / 2.0;

        if (i == 0)
            cairo_move_to(cr, x, y);
        else /* a soft curve, which the eye follows through an axis */
            cairo_curve_to(cr, x - half, y_of(parallel, i - 1, point), x - half, y, x, y);
    }
    kiln_canvas_shade(&parallel->canvas, what->shades[point],
                      best ? 1.0 : 0.75 - 0.45 * what->shades[point]);
    cairo_set_line_width(cr, best ? 3.0 : 1.3);
    cairo_stroke(cr);
}

/* A text on white, so that lines below it don't hide it. */
static void put_text(KilnCanvas *canvas, double x, double y, KilnAnchor anchor, const char *text)
{
    const double width = kiln_canvas_text_width(canvas, text);

    cairo_set_source_rgba(canvas->cr, 1.0, 1.0, 1.0, 0.75);
    cairo_rectangle(canvas->cr, x - anchor.x * width - 1.0, y - FONT / 2.0 - 1.0, width + 2.0,
                    FONT + 2.0);
    cairo_fill(canvas->cr);
    kiln_canvas_grey(canvas, 0.15);
    kiln_canvas_text(canvas, x, y, anchor, text);
}

static void draw_axis(Parallel *parallel, size_t i)
{
    KilnCanvas *canvas = &parallel->canvas;
    const KilnPlotScale *scale = &parallel->what->scales[i];
    const KilnPlotAxis *axis = &parallel->axes[i];
    const double x = x_of(parallel, i);
    bool any_lacks = false;

    kiln_canvas_grey(canvas, 0.3);
    kiln_canvas_line(canvas, x, axis->from, x, axis->to);
    for (size_t k = 0; k < axis->n_ticks; k++) {
        const double y = kiln_plot_axis_pixel(axis, axis->ticks[k]);

        kiln_canvas_grey(canvas, 0.3);
        kiln_canvas_line(canvas, x, y, x + TICK, y);
        put_text(canvas, x + TICK + 3, y, (KilnAnchor) { 0.0, 0.5 }, axis->labels[k]);
    }
    for (size_t k = 0; k < parallel->what->n; k++)
        any_lacks |= lacks(parallel, i, k);
    if (any_lacks)
        put_text(canvas, x + TICK + 3, parallel->bottom + NONE, (KilnAnchor) { 0.0, 0.5 }, "none");
    kiln_canvas_font(canvas, FONT, true);
    kiln_canvas_grey(canvas, 0.0);
    if (scale->label != NULL)
        kiln_canvas_text(canvas, x,
                         parallel->top - LABEL / 2.0 - 2.0 -
                             (parallel->two_rows && i % 2 == 1 ? 0.7 * LABEL : 0.0),
                         (KilnAnchor) { 0.5, 0.5 }, scale->label);
    kiln_canvas_font(canvas, FONT, false);
}

KilnStatus kiln_plot_parallel(const char *path, const KilnPlotParallel *what, KilnError *err)
{
    Parallel parallel = { .what = what };

    if (what->n_scales == 0 || what->n_scales > MOST)
        return kiln_error_set(err, KILN_E_RANGE, "a picture of %zu axes: 1 to %d are possible",
                              what->n_scales, (int)MOST);
    KilnStatus status = lay_out(&parallel, err);
    if (status >= 0) {
        kiln_canvas_font(&parallel.canvas, TITLE, true);
        kiln_canvas_grey(&parallel.canvas, 0.0);
        if (what->title != NULL)
            kiln_canvas_text(&parallel.canvas, MARGIN, MARGIN, (KilnAnchor) { 0.0, 0.0 },
                             what->title);
        kiln_canvas_font(&parallel.canvas, FONT, false);
        sort_points(&parallel);
        for (size_t i = 0; i < what->n; i++)
            draw_line(&parallel, parallel.order[i], i + 1 == what->n);
        for (size_t i = 0; i < what->n_scales; i++)
            draw_axis(&parallel, i);
        status = kiln_canvas_save(&parallel.canvas, path, err);
    }
    kiln_canvas_release(&parallel.canvas);
    free(parallel.axes);
    free(parallel.order);
    return status;
}

#else
typedef int kiln_plot_left_out; /* ISO C wants a declaration in every file */
#endif
