/* Lines over axes. */
#ifdef KILN_WITH_CAIRO

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot/axis.h"
#include "plot/canvas.h"

enum { WIDTH = 800, HEIGHT = 500, FONT = 13, MARGIN = 14, TICK = 5, MARKERS = 24 };

/* A line as it is drawn, in pixels. */
typedef struct Curve {
    double *x, *y;
    size_t n;
} Curve;

typedef struct Chart {
    const KilnChart *what;
    KilnCanvas canvas;
    KilnPlotAxis x, y;
    Curve *curves; /* [what->n_lines] */
} Chart;

/* ---- Layout ------------------------------------------------------------------------------- */

static void fit_ranges(Chart *chart)
{
    chart->x = (KilnPlotAxis) { .log = chart->what->log_x, .min = NAN, .max = NAN };
    chart->y = (KilnPlotAxis) { .log = chart->what->log_y, .min = NAN, .max = NAN };
    for (size_t i = 0; i < chart->what->n_lines; i++) {
        const KilnPlotLine *line = &chart->what->lines[i];

        for (size_t j = 0; j < line->n; j++)
            if (kiln_plot_axis_takes(&chart->x, line->x[j]) &&
                kiln_plot_axis_takes(&chart->y, line->y[j])) {
                kiln_plot_axis_include(&chart->x, line->x[j]);
                kiln_plot_axis_include(&chart->y, line->y[j]);
            }
    }
}

/* Steps and epochs, say. */
static bool all_whole(const KilnChart *what)
{
    for (size_t i = 0; i < what->n_lines; i++)
        for (size_t j = 0; j < what->lines[i].n; j++)
            if (isfinite(what->lines[i].x[j]) && what->lines[i].x[j] != rint(what->lines[i].x[j]))
                return false;
    return true;
}

/* A little air, so that no line runs along the frame. */
static void add_air(KilnPlotAxis *axis)
{
    double air = 0.04 * (axis->max - axis->min);

    if (axis->log) {
        double factor = pow(axis->max / axis->min, 0.04);

        axis->min /= factor;
        axis->max *= factor;
    } else {
        axis->min -= air;
        axis->max += air;
    }
}

static void lay_out(Chart *chart)
{
    double widest = 0.0;

    fit_ranges(chart);
    chart->x.whole = all_whole(chart->what);
    if (!isnan(chart->y.min))
        add_air(&chart->y);
    kiln_plot_axis_finish(&chart->x, 8);
    kiln_plot_axis_finish(&chart->y, 6);
    for (size_t i = 0; i < chart->y.n_ticks; i++)
        widest = fmax(widest, kiln_canvas_text_width(&chart->canvas, chart->y.labels[i]));
    chart->x.from = MARGIN + (chart->what->y_label != NULL ? 1.8 * FONT : 0.0) + widest + TICK + 4;
    chart->x.to = chart->canvas.width - 1.8 * MARGIN;
    chart->y.from = chart->canvas.height - MARGIN - 1.6 * FONT -
                    (chart->what->x_label != NULL ? 1.8 * FONT : 0.0);
    chart->y.to = MARGIN + (chart->what->title != NULL ? 2.0 * FONT : 0.0);
}

/* ---- Thinning ------------------------------------------------------------------------------- */

static bool shown(const Chart *chart, const KilnPlotLine *line, size_t i)
{
    return kiln_plot_axis_takes(&chart->x, line->x[i]) &&
           kiln_plot_axis_takes(&chart->y, line->y[i]);
}

/* The points from `first` on that fall into one column of pixels were appended: keep the first, the
 * lowest, the highest and the last. It looks as with all of them (M4: Jugel and others, "M4: a
 * visualization-oriented time series data aggregation", VLDB 2014). */
static void thin_column(Curve *curve, size_t first)
{
    size_t low = first, high = first, n = first;

    for (size_t i = first; i < curve->n; i++) {
        low = curve->y[i] < curve->y[low] ? i : low;
        high = curve->y[i] > curve->y[high] ? i : high;
    }
    for (size_t i = first; i < curve->n; i++)
        if (i == first || i == low || i == high || i == curve->n - 1) {
            curve->x[n] = curve->x[i];
            curve->y[n++] = curve->y[i];
        }
    curve->n = n;
}

static KilnStatus make_curve(const Chart *chart, const KilnPlotLine *line, Curve *curve,
                             KilnError *err)
{
    size_t column = 0;

    curve->x = malloc((2 * line->n + 1) * sizeof(*curve->x));
    if (curve->x == NULL)
        return kiln_error_nomem(err, 2 * line->n * sizeof(*curve->x));
    curve->y = curve->x + line->n;
    for (size_t i = 0; i < line->n; i++) {
        if (!shown(chart, line, i))
            continue;
        double x = kiln_plot_axis_pixel(&chart->x, line->x[i]);

        if (curve->n > 0 && floor(x) != floor(curve->x[column])) {
            thin_column(curve, column);
            column = curve->n;
        }
        curve->x[curve->n] = x;
        curve->y[curve->n++] = kiln_plot_axis_pixel(&chart->y, line->y[i]);
    }
    thin_column(curve, column);
    return KILN_OK;
}

static KilnStatus make_curves(Chart *chart, KilnError *err)
{
    size_t n = chart->what->n_lines;
    KilnStatus status = KILN_OK;

    chart->curves = calloc(n + 1, sizeof(*chart->curves));
    if (chart->curves == NULL)
        return kiln_error_nomem(err, (n + 1) * sizeof(*chart->curves));
    for (size_t i = 0; i < n && status >= 0; i++)
        status = make_curve(chart, &chart->what->lines[i], &chart->curves[i], err);
    return status;
}

static void free_curves(Chart *chart)
{
    for (size_t i = 0; chart->curves != NULL && i < chart->what->n_lines; i++)
        free(chart->curves[i].x);
    free(chart->curves);
}

/* ---- Drawing -------------------------------------------------------------------------------- */

static void draw_axes(Chart *chart)
{
    KilnCanvas *canvas = &chart->canvas;

    for (size_t i = 0; i < chart->x.n_ticks; i++) {
        double x = kiln_plot_axis_pixel(&chart->x, chart->x.ticks[i]);

        kiln_canvas_grey(canvas, 0.9);
        kiln_canvas_line(canvas, x, chart->y.from, x, chart->y.to);
        kiln_canvas_grey(canvas, 0.25);
        kiln_canvas_text(canvas, x, chart->y.from + TICK + 2, (KilnAnchor) { 0.5, 0.0 },
                         chart->x.labels[i]);
    }
    for (size_t i = 0; i < chart->y.n_ticks; i++) {
        double y = kiln_plot_axis_pixel(&chart->y, chart->y.ticks[i]);

        kiln_canvas_grey(canvas, 0.9);
        kiln_canvas_line(canvas, chart->x.from, y, chart->x.to, y);
        kiln_canvas_grey(canvas, 0.25);
        kiln_canvas_text(canvas, chart->x.from - TICK, y, (KilnAnchor) { 1.0, 0.5 },
                         chart->y.labels[i]);
    }
    kiln_canvas_grey(canvas, 0.4);
    kiln_canvas_line(canvas, chart->x.from, chart->y.from, chart->x.to, chart->y.from);
    kiln_canvas_line(canvas, chart->x.from, chart->y.from, chart->x.from, chart->y.to);
}

static void draw_titles(Chart *chart)
{
    KilnCanvas *canvas = &chart->canvas;
    double middle_x = (chart->x.from + chart->x.to) / 2.0;
    double middle_y = (chart->y.from + chart->y.to) / 2.0;

    kiln_canvas_grey(canvas, 0.1);
    if (chart->what->x_label != NULL)
        kiln_canvas_text(canvas, middle_x, canvas->height - MARGIN, (KilnAnchor) { 0.5, 1.0 },
                         chart->what->x_label);
    if (chart->what->y_label != NULL)
        kiln_canvas_text_up(canvas, MARGIN + 0.5 * FONT, middle_y, chart->what->y_label);
    if (chart->what->title != NULL) {
        kiln_canvas_font(canvas, FONT + 2, true);
        kiln_canvas_text(canvas, middle_x, MARGIN, (KilnAnchor) { 0.5, 0.0 }, chart->what->title);
        kiln_canvas_font(canvas, FONT, false);
    }
}

/* Few points are marked, so that one of them alone can be seen. */
static void draw_curve(Chart *chart, const Curve *curve)
{
    cairo_t *cr = chart->canvas.cr;

    cairo_set_line_width(cr, 1.8);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    for (size_t i = 0; i < curve->n; i++)
        cairo_line_to(cr, curve->x[i], curve->y[i]);
    cairo_stroke(cr);
    for (size_t i = 0; curve->n <= MARKERS && i < curve->n; i++) {
        cairo_arc(cr, curve->x[i], curve->y[i], 3.0, 0.0, 2.0 * acos(-1.0));
        cairo_fill(cr);
    }
}

static void draw_mark(Chart *chart, const KilnPlotLine *line)
{
    cairo_t *cr = chart->canvas.cr;

    if (!line->marks || line->mark >= line->n || !shown(chart, line, line->mark))
        return;
    cairo_arc(cr, kiln_plot_axis_pixel(&chart->x, line->x[line->mark]),
              kiln_plot_axis_pixel(&chart->y, line->y[line->mark]), 7.0, 0.0, 2.0 * acos(-1.0));
    cairo_set_line_width(cr, 2.0);
    cairo_stroke(cr);
}

/* How much of a curve lies in a rectangle, in pieces of its segments. */
static size_t pieces_inside(const Curve *curve, const double box[4])
{
    enum { PIECES = 16 };
    size_t inside = 0;

    for (size_t i = 1; i < curve->n; i++)
        for (int piece = 0; piece <= PIECES; piece++) {
            double x = curve->x[i - 1] + (curve->x[i] - curve->x[i - 1]) * piece / PIECES;
            double y = curve->y[i - 1] + (curve->y[i] - curve->y[i - 1]) * piece / PIECES;

            inside += x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3];
        }
    return inside;
}

/* The corner in which the least of the lines lies. */
static void place_legend(const Chart *chart, double width, double height, double *ret_x,
                         double *ret_y)
{
    const double xs[] = { chart->x.to - width - 6, chart->x.from + 6 };
    const double ys[] = { chart->y.to + 6, chart->y.from - height - 6 };
    size_t fewest = SIZE_MAX;

    for (int corner = 0; corner < 4; corner++) {
        double left = xs[corner % 2], top = ys[corner / 2];
        const double box[4] = { left, top, left + width, top + height };
        size_t inside = 0;

        for (size_t i = 0; i < chart->what->n_lines; i++)
            inside += pieces_inside(&chart->curves[i], box);
        if (inside < fewest) {
            fewest = inside;
            *ret_x = left;
            *ret_y = top;
        }
    }
}

static void draw_legend(Chart *chart)
{
    KilnCanvas *canvas = &chart->canvas;
    double widest = 0.0, x = 0.0, y = 0.0;
    size_t n = 0;

    for (size_t i = 0; i < chart->what->n_lines; i++) {
        const char *label = chart->what->lines[i].label;

        if (label == NULL)
            continue;
        widest = fmax(widest, kiln_canvas_text_width(canvas, label));
        n++;
    }
    if (n == 0)
        return;
    double width = widest + 46, height = 1.5 * FONT * (double)n + 8;
    place_legend(chart, width, height, &x, &y);
    cairo_set_source_rgba(canvas->cr, 1.0, 1.0, 1.0, 0.85);
    cairo_rectangle(canvas->cr, x, y, width, height);
    cairo_fill_preserve(canvas->cr);
    kiln_canvas_grey(canvas, 0.8);
    cairo_set_line_width(canvas->cr, 1.0);
    cairo_stroke(canvas->cr);
    y += 4 + 0.75 * FONT;
    for (size_t i = 0; i < chart->what->n_lines; i++) {
        if (chart->what->lines[i].label == NULL)
            continue;
        kiln_canvas_colour(canvas, i);
        cairo_set_line_width(canvas->cr, 2.5);
        cairo_move_to(canvas->cr, x + 8, y);
        cairo_line_to(canvas->cr, x + 30, y);
        cairo_stroke(canvas->cr);
        kiln_canvas_grey(canvas, 0.1);
        kiln_canvas_text(canvas, x + 37, y, (KilnAnchor) { 0.0, 0.5 }, chart->what->lines[i].label);
        y += 1.5 * FONT;
    }
}

KilnStatus kiln_plot_chart(const char *path, const KilnChart *what, KilnError *err)
{
    Chart chart = { .what = what };
    KilnStatus status = kiln_canvas_init(&chart.canvas, what->width > 0 ? what->width : WIDTH,
                                         what->height > 0 ? what->height : HEIGHT, err);

    if (status >= 0) {
        kiln_canvas_font(&chart.canvas, FONT, false);
        lay_out(&chart);
        status = make_curves(&chart, err);
    }
    if (status >= 0) {
        draw_axes(&chart);
        draw_titles(&chart);
        for (size_t i = 0; i < what->n_lines; i++) {
            kiln_canvas_colour(&chart.canvas, i);
            draw_curve(&chart, &chart.curves[i]);
            draw_mark(&chart, &what->lines[i]);
        }
        draw_legend(&chart);
        status = kiln_canvas_save(&chart.canvas, path, err);
    }
    free_curves(&chart);
    kiln_canvas_release(&chart.canvas);
    return status;
}

#else
typedef int kiln_plot_left_out; /* ISO C wants a declaration in every file */
#endif
