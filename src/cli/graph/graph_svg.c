/* `kiln graph --svg`: draws a step's memory. Time runs to the right, call by call, addresses in the
 * block run upwards, and a value is a rectangle over the calls that need it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graph/graph_view.h"
#include "kiln/tools/clock.h"

/* ---- Kinds of operations ------------------------------------------------------------- */

typedef struct Kind {
    const char *colour, *name;
    const char *words[12]; /* parts of operations' names */
} Kind;

/* The first match counts; the last entry matches everything. */
static const Kind kinds[] = {
    { "#eeca3b", "updates", { "_update", "increment" } },
    { "#8d96a3",
      "layout, movement",
      { "reorder", "permute", "transpose", "concat", "slice", "gather", "reshape", "copy" } },
    { "#4c78a8",
      "products, convolutions",
      { "conv", "matmul", "linear", "attention", "lstm", "gru" } },
    { "#54a24b", "normalization", { "norm" } },
    { "#b279a2", "pooling", { "pool" } },
    { "#e45756",
      "losses, metrics",
      { "cross_entropy", "softmax", "argmax", "equal", "loss", "mean", "nll" } },
    { "#f58518", "elementwise, sums", { "" } },
};

static const char *colour_of(const KilnCallReport *call)
{
    for (size_t i = 0; i < KILN_COUNT(kinds); i++)
        for (size_t k = 0; k < KILN_COUNT(kinds[i].words) && kinds[i].words[k] != NULL; k++)
            if (strstr(call->op, kinds[i].words[k]) != NULL)
                return kinds[i].colour;
    return kinds[KILN_COUNT(kinds) - 1].colour;
}

/* ---- The chart ------------------------------------------------------------------------ */

static const double width = 1142.0, height = 560.0;
/* The frame's distance from the picture's sides. */
static const double left = 86.0, right = 30.0, above = 130.0, below = 40.0;

typedef struct Chart {
    const KilnStepView *view;
    KilnText *svg;
    double bytes; /* at the top of the frame */
} Chart;

static double x_of(const Chart *chart, double call)
{
    return left + call / (double)chart->view->n_calls * (width - left - right);
}

static double y_of(const Chart *chart, double bytes)
{
    return height - below - bytes / chart->bytes * (height - above - below);
}

/* Appends text with XML's special characters escaped. */
static void put_text(KilnText *svg, const char *text)
{
    static const char special[] = "&<>\"";
    static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;" };

    for (; *text != '\0'; text++) {
        const char *at = strchr(special, *text);

        if (at != NULL)
            kiln_text_append(svg, entities[at - special]);
        else
            kiln_text_char(svg, *text);
    }
}

/* The picture's title and a legend of colours. */
static void put_head(const Chart *chart)
{
    double x = left;
    char text[KILN_UNIT_TEXT];

    kiln_text_printf(chart->svg, "<text x=\"%.1f\" y=\"34\" class=\"title\">", left);
    put_text(chart->svg, chart->view->title);
    kiln_text_append(chart->svg, "</text>\n");
    for (size_t i = 0; i < KILN_COUNT(kinds); i++) {
        kiln_text_printf(chart->svg,
                         "<rect x=\"%.1f\" y=\"52\" width=\"12\" height=\"12\" rx=\"2\" "
                         "fill=\"%s\"/><text x=\"%.1f\" y=\"62.5\">%s</text>\n",
                         x, kinds[i].colour, x + 17.0, kinds[i].name);
        x += 36.0 + 6.3 * (double)strlen(kinds[i].name);
    }
    kiln_text_printf(chart->svg,
                     "<text x=\"%.1f\" y=\"92\" class=\"small\">memory of the step, one block of "
                     "%s: each value at its address, from the call that makes it to the last one "
                     "that reads it; the line is the sum in use</text>\n",
                     left, kiln_bytes_text(chart->bytes, text));
}

/* Forward, backward and update as bands in the background. */
static void put_phases(const Chart *chart)
{
    static const char *const tints[] = { "#f4f7fb", "#fbf6f0", "#fbf9e6" };
    const KilnStepView *view = chart->view;

    for (size_t i = 0, end; i < view->n_calls; i = end) {
        KilnStepPhase phase = kiln_step_phase(&view->calls[i]);

        for (end = i; end < view->n_calls && kiln_step_phase(&view->calls[end]) == phase; end++)
            ;
        double from = x_of(chart, (double)i), to = x_of(chart, (double)end);
        kiln_text_printf(chart->svg,
                         "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                         "fill=\"%s\"/>\n",
                         from, above, to - from, height - above - below, tints[phase]);
        if (to - from > 60.0)
            kiln_text_printf(chart->svg,
                             "<text x=\"%.1f\" y=\"%.1f\" class=\"small\" "
                             "text-anchor=\"middle\">%s</text>\n",
                             (from + to) / 2.0, height - below + 18.0, kiln_step_phase_name(phase));
    }
}

static void put_scale(const Chart *chart)
{
    char text[KILN_UNIT_TEXT];

    for (int i = 0; i <= 4; i++) {
        double bytes = chart->bytes * i / 4.0, y = y_of(chart, bytes);

        kiln_text_printf(chart->svg,
                         "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                         "stroke=\"#c8ccd2\" stroke-width=\"0.6\"/>\n"
                         "<text x=\"%.1f\" y=\"%.1f\" class=\"small\" "
                         "text-anchor=\"end\">%s</text>\n",
                         left, y, width - right, y, left - 8.0, y + 4.0,
                         kiln_bytes_text(bytes, text));
    }
}

/* A rectangle for each value; pointing at it shows its layer, operation, size and time. */
static void put_pieces(const Chart *chart)
{
    const KilnStepView *view = chart->view;
    size_t n = kiln_plan_pieces(view->plan, NULL, 0);
    KilnPiece *pieces = calloc(n + 1, sizeof(*pieces));
    char text[KILN_UNIT_TEXT], time[KILN_UNIT_TEXT];

    if (pieces == NULL) {
        chart->svg->failed = true;
        return;
    }
    (void)kiln_plan_pieces(view->plan, pieces, n);
    for (size_t i = 0; i < n; i++) {
        const KilnPiece *piece = &pieces[i];
        const KilnCallReport *call = &view->calls[piece->first];
        double x = x_of(chart, piece->first),
               y = y_of(chart, (double)(piece->offset + piece->bytes));

        kiln_text_printf(chart->svg,
                         "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.2f\" fill=\"%s\" "
                         "class=\"piece\"><title>",
                         x, y, x_of(chart, piece->last + 1) - x,
                         y_of(chart, (double)piece->offset) - y, colour_of(call));
        put_text(chart->svg, view->groups[view->group[piece->first]].name);
        kiln_text_char(chart->svg, ' ');
        put_text(chart->svg, call->op);
        kiln_text_printf(chart->svg, ": %s, calls %d to %d, made in %s</title></rect>\n",
                         kiln_bytes_text((double)piece->bytes, text), piece->first, piece->last,
                         kiln_seconds_text(kiln_call_seconds(call), time));
    }
    free(pieces);
}

/* The bytes in use at each call as a line, with a dot at the peak. */
static void put_use(const Chart *chart)
{
    const KilnStepView *view = chart->view;
    KilnText *svg = chart->svg;
    size_t peak = 0, at = 0;
    char text[KILN_UNIT_TEXT];

    kiln_text_append(svg, "<path fill=\"none\" stroke=\"#1b1f24\" stroke-width=\"1.4\" d=\"");
    for (size_t i = 0; i < view->n_calls; i++) {
        size_t bytes = kiln_plan_occupied(view->plan, i);

        if (bytes > peak) {
            peak = bytes;
            at = i;
        }
        kiln_text_printf(svg, "%c%.1f %.1f H%.1f ", i == 0 ? 'M' : 'L', x_of(chart, (double)i),
                         y_of(chart, (double)bytes), x_of(chart, (double)i + 1.0));
    }
    double x = x_of(chart, (double)at + 0.5), y = y_of(chart, (double)peak);
    bool late = at > view->n_calls / 2;
    kiln_text_printf(svg,
                     "\"/>\n<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#1b1f24\"/>\n"
                     "<text x=\"%.1f\" y=\"%.1f\" class=\"label\" text-anchor=\"%s\">peak: %s at "
                     "call %zu, ",
                     x, y, x + (late ? -8.0 : 8.0), y - 8.0, late ? "end" : "start",
                     kiln_bytes_text((double)peak, text), at);
    put_text(svg, view->calls[at].op);
    kiln_text_append(svg, "</text>\n");
}

void kiln_step_svg(const KilnStepView *view, KilnText *svg)
{
    Chart chart = { .view = view, .svg = svg, .bytes = (double)kiln_plan_bytes(view->plan) };

    kiln_text_printf(svg,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                     "viewBox=\"0 0 %.0f %.0f\">\n"
                     "<style>text{font:12px 'DejaVu Sans',Verdana,sans-serif;fill:#1b1f24}"
                     ".title{font-size:15px;font-weight:bold}.label{font-weight:bold}"
                     ".small{font-size:11px;fill:#57606a}"
                     ".piece{stroke:#fff;stroke-width:0.4;opacity:0.85}</style>\n"
                     "<rect width=\"100%%\" height=\"100%%\" fill=\"#fcfcfd\"/>\n",
                     width, height, width, height);
    put_head(&chart);
    if (chart.bytes > 0.0 && view->n_calls > 0) {
        put_phases(&chart);
        put_scale(&chart);
        put_pieces(&chart);
        put_use(&chart);
    }
    kiln_text_append(svg, "</svg>\n");
}
