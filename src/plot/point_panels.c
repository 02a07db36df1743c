/* Points in panels: one value over several others. */
#ifdef KILN_WITH_CAIRO

#include <math.h>

#include "plot/canvas.h"
#include "plot/scale_axis.h"

enum {
    MOST = 64,
    FONT = 12,
    TITLE = 15,
    MARGIN = 16,
    GAP = 18,
    PANEL_WIDTH = 260,
    PANEL_HEIGHT = 240,
    ONE_WIDTH = 760,
    ONE_HEIGHT = 380,
    COLUMNS = 4,
    BELOW = 46, /* ticks and label */
    TICK = 4
};

typedef struct Panels {
    const KilnPlotPanels *what;
    KilnCanvas canvas;
    KilnPlotAxis y;
    double left, top, width, height; /* of the first panel */
    size_t columns, rows;
} Panels;

/* ---- Layout -------------------------------------------------------------------------------- */

/* Room for the ticks of the vertical axis is measured on a canvas of no use otherwise. */
static KilnStatus lay_out(Panels *panels, KilnError *err)
{
    const KilnPlotPanels *what = panels->what;
    double widest = 0.0;
    KilnStatus status = kiln_canvas_init(&panels->canvas, 1, 1, err);

    if (status < 0)
        return status;
    kiln_canvas_font(&panels->canvas, FONT, false);
    kiln_plot_scale_axis(&what->y, what->n, 6, &panels->y);
    for (size_t i = 0; i < panels->y.n_ticks; i++)
        widest = fmax(widest, kiln_canvas_text_width(&panels->canvas, panels->y.labels[i]));
    kiln_canvas_release(&panels->canvas);
    panels->columns = what->n_panels < COLUMNS ? what->n_panels : COLUMNS;
    panels->rows = (what->n_panels + panels->columns - 1) / panels->columns;
    panels->width = what->n_panels == 1 ? ONE_WIDTH : PANEL_WIDTH;
    panels->height = what->n_panels == 1 ? ONE_HEIGHT : PANEL_HEIGHT;
    panels->left = MARGIN + (what->y.label != NULL ? 1.8 * FONT : 0.0) + ceil(widest) + TICK + 4;
    panels->top = MARGIN + (what->title != NULL ? TITLE + 12 : 0);
    return kiln_canvas_init(
        &panels->canvas,
        (int)(panels->left + (double)panels->columns * (panels->width + GAP)) - GAP + 2 * MARGIN,
        (int)(panels->top + (double)panels->rows * (panels->height + BELOW)) + MARGIN, err);
}

/* ---- Axes ------------------------------------------------------------------------------------ */

static void draw_y(Panels *panels, const KilnPlotAxis *x, bool labels)
{
    KilnCanvas *canvas = &panels->canvas;

    for (size_t i = 0; i < panels->y.n_ticks; i++) {
        const double y = kiln_plot_axis_pixel(&panels->y, panels->y.ticks[i]);

        kiln_canvas_grey(canvas, 0.9);
        kiln_canvas_line(canvas, x->from, y, x->to, y);
        kiln_canvas_grey(canvas, 0.25);
        if (labels)
            kiln_canvas_text(canvas, x->from - TICK - 2, y, (KilnAnchor) { 1.0, 0.5 },
                             panels->y.labels[i]);
    }
}

/* Labels that would run into each other are left out. */
static void draw_x(Panels *panels, const KilnPlotAxis *x, const char *label)
{
    KilnCanvas *canvas = &panels->canvas;
    double free_from = x->from - GAP / 2.0;

    for (size_t i = 0; i < x->n_ticks; i++) {
        const double at = kiln_plot_axis_pixel(x, x->ticks[i]);
        const double half = kiln_canvas_text_width(canvas, x->labels[i]) / 2.0;

        kiln_canvas_grey(canvas, 0.9);
        kiln_canvas_line(canvas, at, panels->y.from, at, panels->y.to);
        kiln_canvas_grey(canvas, 0.25);
        if (at - half < free_from)
            continue;
        kiln_canvas_text(canvas, at, panels->y.from + TICK + 2, (KilnAnchor) { 0.5, 0.0 },
                         x->labels[i]);
        free_from = at + half + 6.0;
    }
    kiln_canvas_grey(canvas, 0.1);
    if (label != NULL)
        kiln_canvas_text(canvas, (x->from + x->to) / 2.0, panels->y.from + TICK + 2 + 1.5 * FONT,
                         (KilnAnchor) { 0.5, 0.0 }, label);
    kiln_canvas_grey(canvas, 0.5);
    kiln_canvas_line(canvas, x->from, panels->y.from, x->to, panels->y.from);
    kiln_canvas_line(canvas, x->from, panels->y.from, x->from, panels->y.to);
}

/* ---- Points ---------------------------------------------------------------------------------- */

static bool is_shown(const Panels *panels, const KilnPlotScale *scale, const KilnPlotAxis *x,
                     size_t point)
{
    return kiln_plot_axis_takes(x, scale->values[point]) &&
           kiln_plot_axis_takes(&panels->y, panels->what->y.values[point]);
}

static void draw_point(Panels *panels, const KilnPlotScale *scale, const KilnPlotAxis *x,
                       size_t point)
{
    const KilnPlotPanels *what = panels->what;
    cairo_t *cr = panels->canvas.cr;

    if (!is_shown(panels, scale, x, point))
        return;
    const double at =
        kiln_plot_axis_pixel(x, scale->values[point] + kiln_plot_scale_spread(scale, point));
    const double y = kiln_plot_axis_pixel(&panels->y, what->y.values[point]);
    cairo_arc(cr, at, y, 3.6, 0.0, 2.0 * acos(-1.0));
    kiln_canvas_shade(&panels->canvas, what->shades != NULL ? what->shades[point] : 0.3, 0.85);
    cairo_fill(cr);
    if (point != what->mark)
        return;
    kiln_canvas_colour(&panels->canvas, 1);
    cairo_set_line_width(cr, 2.0);
    cairo_arc(cr, at, y, 7.0, 0.0, 2.0 * acos(-1.0));
    cairo_stroke(cr);
}

static void draw_steps(Panels *panels, const KilnPlotScale *scale, const KilnPlotAxis *x)
{
    const double *steps = panels->what->steps;
    cairo_t *cr = panels->canvas.cr;
    double y = 0.0;
    bool begun = false;

    kiln_canvas_colour(&panels->canvas, 1);
    cairo_set_line_width(cr, 2.0);
    for (size_t i = 0; i < panels->what->n; i++) {
        if (!kiln_plot_axis_takes(x, scale->values[i]) ||
            !kiln_plot_axis_takes(&panels->y, steps[i]))
            continue;
        const double at = kiln_plot_axis_pixel(x, scale->values[i]);
        if (begun)
            cairo_line_to(cr, at, y);
        y = kiln_plot_axis_pixel(&panels->y, steps[i]);
        cairo_line_to(cr, at, y);
        begun = true;
    }
    if (begun)
        cairo_line_to(cr, x->to, y);
    cairo_stroke(cr);
}

/* What the line and the points are, right above the panel. */
static void draw_legend(Panels *panels)
{
    KilnCanvas *canvas = &panels->canvas;
    const double right = panels->left + panels->width, y = panels->top - 10.0;
    const double text = kiln_canvas_text_width(canvas, panels->what->steps_label);

    kiln_canvas_colour(canvas, 1);
    cairo_set_line_width(canvas->cr, 2.0);
    cairo_move_to(canvas->cr, right - text - 34.0, y);
    cairo_line_to(canvas->cr, right - text - 8.0, y);
    cairo_stroke(canvas->cr);
    kiln_canvas_grey(canvas, 0.1);
    kiln_canvas_text(canvas, right, y, (KilnAnchor) { 1.0, 0.5 }, panels->what->steps_label);
}

/* ---- The picture ------------------------------------------------------------------------------
 */

static void draw_panel(Panels *panels, size_t i)
{
    const KilnPlotPanels *what = panels->what;
    const KilnPlotScale *scale = &what->xs[i];
    const size_t column = i % panels->columns, row = i / panels->columns;
    const double left = panels->left + (double)column * (panels->width + GAP);
    const double top = panels->top + (double)row * (panels->height + BELOW);
    KilnPlotAxis x;

    kiln_plot_scale_axis(scale, what->n, what->n_panels == 1 ? 10 : 5, &x);
    x.from = left;
    x.to = left + panels->width;
    panels->y.from = top + panels->height;
    panels->y.to = top;
    draw_y(panels, &x, column == 0);
    draw_x(panels, &x, scale->label);
    kiln_canvas_grey(&panels->canvas, 0.1);
    if (column == 0 && what->y.label != NULL)
        kiln_canvas_text_up(&panels->canvas, MARGIN + FONT / 2.0, top + panels->height / 2.0,
                            what->y.label);
    for (size_t point = 0; point < what->n; point++)
        if (point != what->mark)
            draw_point(panels, scale, &x, point);
    if (what->steps != NULL)
        draw_steps(panels, scale, &x);
    if (what->mark < what->n)
        draw_point(panels, scale, &x, what->mark);
}

KilnStatus kiln_plot_panels(const char *path, const KilnPlotPanels *what, KilnError *err)
{
    Panels panels = { .what = what };

    if (what->n_panels == 0 || what->n_panels > MOST)
        return kiln_error_set(err, KILN_E_RANGE, "a picture of %zu panels: 1 to %d are possible",
                              what->n_panels, (int)MOST);
    KilnStatus status = lay_out(&panels, err);
    if (status >= 0) {
        kiln_canvas_font(&panels.canvas, TITLE, true);
        kiln_canvas_grey(&panels.canvas, 0.0);
        if (what->title != NULL)
            kiln_canvas_text(&panels.canvas, panels.left, MARGIN, (KilnAnchor) { 0.0, 0.0 },
                             what->title);
        kiln_canvas_font(&panels.canvas, FONT, false);
        for (size_t i = 0; i < what->n_panels; i++)
            draw_panel(&panels, i);
        if (what->steps != NULL && what->steps_label != NULL)
            draw_legend(&panels);
        status = kiln_canvas_save(&panels.canvas, path, err);
    }
    kiln_canvas_release(&panels.canvas);
    return status;
}

#else
typedef int kiln_plot_left_out; /* ISO C wants a declaration in every file */
#endif
