/* The picture of a step's memory: the block over the calls, each value where it lies
 * and as long as it does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/graph/svg.h"

/* The frame's distance from the picture's sides. */
static const double left = 86.0, right = 30.0, above = 70.0, below = 46.0;

typedef struct Chart {
    const KilnStepView *view;
    double x, y, width, height; /* of the frame */
    double bytes;               /* at its upper side */
} Chart;

static double x_of(const Chart *chart, double call)
{
    return chart->x + call / (double)chart->view->n_calls * chart->width;
}

static double y_of(const Chart *chart, double bytes)
{
    return chart->y + chart->height - bytes / chart->bytes * chart->height;
}

/* Forward, gradients and update as bands behind everything. */
static void put_phases(KilnText *svg, const Chart *chart)
{
    static const char *const tints[] = { "#f4f7fb", "#fbf6f0", "#fbf9e6" };
    const KilnStepView *view = chart->view;

    for (size_t i = 0, end; i < view->n_calls; i = end) {
        KilnStepPhase phase = kiln_step_phase(&view->calls[i]);

        for (end = i; end < view->n_calls && kiln_step_phase(&view->calls[end]) == phase; end++)
            ;
        double from = x_of(chart, (double)i), to = x_of(chart, (double)end);
        kiln_text_printf(svg,
                         "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                         "fill=\"%s\"/>\n",
                         from, chart->y, to - from, chart->height, tints[phase]);
        if (to - from > 60.0)
            kiln_text_printf(svg,
                             "<text x=\"%.1f\" y=\"%.1f\" class=\"small\" "
                             "text-anchor=\"middle\">%s</text>\n",
                             (from + to) / 2.0, chart->y + chart->height + 18.0,
                             kiln_step_phase_name(phase));
    }
}

static void put_scale(KilnText *svg, const Chart *chart)
{
    char text[KILN_UNIT_TEXT];

    for (int i = 0; i <= 4; i++) {
        double bytes = chart->bytes * i / 4.0;

        kiln_text_printf(svg,
                         "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                         "stroke=\"#c8ccd2\" stroke-width=\"0.6\"/>\n"
                         "<text x=\"%.1f\" y=\"%.1f\" class=\"small\" "
                         "text-anchor=\"end\">%s</text>\n",
                         chart->x, y_of(chart, bytes), chart->x + chart->width, y_of(chart, bytes),
                         chart->x - 8.0, y_of(chart, bytes) + 4.0, kiln_bytes_text(bytes, text));
    }
}

static void put_pieces(KilnText *svg, const Chart *chart)
{
    const KilnStepView *view = chart->view;
    size_t n = kiln_plan_pieces(view->plan, NULL, 0);
    KilnPiece *pieces = calloc(n + 1, sizeof(*pieces));
    char text[KILN_UNIT_TEXT];

    if (pieces == NULL) {
        svg->failed = true;
        return;
    }
    (void)kiln_plan_pieces(view->plan, pieces, n);
    for (size_t i = 0; i < n; i++) {
        const KilnPiece *piece = &pieces[i];
        const KilnCallReport *call = &view->calls[piece->first];
        double x = x_of(chart, piece->first),
               y = y_of(chart, (double)(piece->offset + piece->bytes));

        kiln_text_printf(svg,
                         "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.2f\" fill=\"%s\" "
                         "class=\"piece\"><title>",
                         x, y, x_of(chart, piece->last + 1) - x,
                         y_of(chart, (double)piece->offset) - y, kiln_svg_colour(call));
        kiln_svg_text(svg, call->layer, 100);
        kiln_text_char(svg, ' ');
        kiln_svg_text(svg, call->op, 100);
        kiln_text_printf(svg, ": %s, calls %d to %d</title></rect>\n",
                         kiln_bytes_text((double)piece->bytes, text), piece->first, piece->last);
    }
    free(pieces);
}

/* What is in use at each call, as a line over the pieces, and where that is most. */
static void put_use(KilnText *svg, const Chart *chart)
{
    const KilnStepView *view = chart->view;
    size_t most = 0, at = 0;
    char text[KILN_UNIT_TEXT];

    kiln_text_append(svg, "<path fill=\"none\" stroke=\"#1b1f24\" stroke-width=\"1.4\" d=\"");
    for (size_t i = 0; i < view->n_calls; i++) {
        size_t bytes = kiln_plan_occupied(view->plan, i);

        if (bytes > most) {
            most = bytes;
            at = i;
        }
        kiln_text_printf(svg, "%c%.1f %.1f H%.1f ", i == 0 ? 'M' : 'L', x_of(chart, (double)i),
                         y_of(chart, (double)bytes), x_of(chart, (double)i + 1.0));
    }
    kiln_text_append(svg, "\"/>\n");
    double x = x_of(chart, (double)at + 0.5), y = y_of(chart, (double)most);
    bool late = at > view->n_calls / 2;
    kiln_text_printf(svg,
                     "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#1b1f24\"/>\n"
                     "<text x=\"%.1f\" y=\"%.1f\" class=\"label\" text-anchor=\"%s\">most in use: "
                     "%s at call %zu, ",
                     x, y, x + (late ? -8.0 : 8.0), y - 8.0, late ? "end" : "start",
                     kiln_bytes_text((double)most, text), at);
    kiln_svg_text(svg, view->calls[at].op, 40);
    kiln_text_append(svg, "</text>\n");
}

void kiln_svg_memory(KilnText *svg, const KilnStepView *view, double y, double width)
{
    Chart chart = {
        .view = view,
        .x = left,
        .y = y + above,
        .width = width - left - right,
        .height = KILN_SVG_MEMORY_HEIGHT - above - below,
        .bytes = (double)kiln_plan_bytes(view->plan),
    };
    char text[KILN_UNIT_TEXT];

    if (chart.bytes <= 0.0 || view->n_calls == 0)
        return;
    kiln_text_printf(svg,
                     "<text x=\"%.1f\" y=\"%.1f\" class=\"title\">Memory of the step: one block "
                     "of %s</text>\n",
                     left, y + 18.0, kiln_bytes_text(chart.bytes, text));
    kiln_text_printf(svg,
                     "<text x=\"%.1f\" y=\"%.1f\" class=\"small\">every value where it lies and "
                     "as long as it is needed, over the calls of the step; the line is the sum of "
                     "what is in use</text>\n",
                     left, y + 35.0);
    put_phases(svg, &chart);
    put_scale(svg, &chart);
    put_pieces(svg, &chart);
    put_use(svg, &chart);
}
