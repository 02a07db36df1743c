/* The picture of a planned step: a row for each group of layers, what is computed
 * forward at the left, its gradients at the right, which go back up. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/graph/svg.h"

/* ---- Kinds -------------------------------------------------------------------------- */

typedef struct Kind {
    const char *colour, *name;
    const char *words[12]; /* parts of operations' names */
} Kind;

/* The first that fits; the last one fits all. */
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

static const Kind *kind_of(const KilnCallReport *call)
{
    for (size_t i = 0; i < KILN_COUNT(kinds); i++)
        for (size_t k = 0; k < KILN_COUNT(kinds[i].words) && kinds[i].words[k] != NULL; k++)
            if (strstr(call->op, kinds[i].words[k]) != NULL)
                return &kinds[i];
    return &kinds[KILN_COUNT(kinds) - 1];
}

const char *kiln_svg_colour(const KilnCallReport *call)
{
    return kind_of(call)->colour;
}

const char *kiln_svg_kind(size_t i, const char **ret_name)
{
    if (i >= KILN_COUNT(kinds))
        return NULL;
    *ret_name = kinds[i].name;
    return kinds[i].colour;
}

void kiln_svg_text(KilnText *svg, const char *text, int most)
{
    int n = 0;

    for (const char *p = text; *p != '\0'; p++) {
        bool begins = ((unsigned char)*p & 0xC0) != 0x80;

        if (begins && ++n > most) {
            kiln_text_append(svg, "…");
            return;
        }
        switch (*p) {
        case '&':
            kiln_text_append(svg, "&amp;");
            break;
        case '<':
            kiln_text_append(svg, "&lt;");
            break;
        case '>':
            kiln_text_append(svg, "&gt;");
            break;
        case '"':
            kiln_text_append(svg, "&quot;");
            break;
        default:
            kiln_text_char(svg, *p);
        }
    }
}

/* ---- Where things stand ----------------------------------------------------------------- */

enum { MOST_LINES = 14, OP_CHARACTERS = 34 };

static const double box_width = 440.0, forward_x = 86.0, between = 90.0, margin = 86.0;
static const double line_height = 17.0, head_height = 24.0, row_gap = 26.0, top = 118.0;

/* A line in a box: a call, or several of one operation. */
typedef struct Line {
    const KilnCallReport *call;
    double seconds;
    int count;
} Line;

typedef struct Box {
    Line lines[MOST_LINES];
    int n_lines;
    int left_out;
    double x, y, height; /* height 0: there is none */
} Box;

typedef struct Picture {
    const KilnStepView *view;
    KilnStepPhase only;
    KilnText *svg;
    Box *boxes[2];   /* per group: forward; gradients and update */
    double slowest;  /* of all lines */
    double width, y; /* y: below all rows */
} Picture;

static int side_of(KilnStepPhase phase)
{
    return phase == KILN_STEP_FORWARD ? 0 : 1;
}

/* A box with more calls than lines joins those of one name. */
static void add_line(Box *box, const KilnCallReport *call, bool join)
{
    double seconds = kiln_call_seconds(call);

    for (int i = 0; join && i < box->n_lines; i++)
        if (strcmp(box->lines[i].call->op, call->op) == 0) {
            box->lines[i].seconds += seconds;
            box->lines[i].count++;
            return;
        }
    if (box->n_lines == MOST_LINES)
        box->left_out++;
    else
        box->lines[box->n_lines++] = (Line) { .call = call, .seconds = seconds, .count = 1 };
}

static void fill_boxes(Picture *picture)
{
    const KilnStepView *view = picture->view;

    for (size_t i = 0; i < view->n_calls; i++) {
        const KilnCallReport *call = &view->calls[i];
        const KilnCallGroup *group = &view->groups[view->group[i]];
        KilnStepPhase phase = kiln_step_phase(call);
        int calls = phase == KILN_STEP_FORWARD
                        ? group->calls[KILN_STEP_FORWARD]
                        : group->calls[KILN_STEP_BACKWARD] + group->calls[KILN_STEP_UPDATE];

        if (picture->only == KILN_STEP_PHASES || picture->only == phase)
            add_line(&picture->boxes[side_of(phase)][view->group[i]], call, calls > MOST_LINES);
    }
    for (size_t g = 0; g < view->n_groups; g++)
        for (int side = 0; side < 2; side++)
            for (int k = 0; k < picture->boxes[side][g].n_lines; k++)
                picture->slowest = fmax(picture->slowest, picture->boxes[side][g].lines[k].seconds);
}

static double height_of(const Box *box)
{
    int lines = box->n_lines + (box->left_out > 0);

    return lines > 0 ? head_height + lines * line_height + 8.0 : 0.0;
}

static void place_row(Picture *picture, size_t group)
{
    double tallest = 0.0;

    for (int side = 0; side < 2; side++) {
        Box *box = &picture->boxes[side][group];

        box->x = forward_x + side * (box_width + between);
        box->y = picture->y;
        box->height = height_of(box);
        tallest = fmax(tallest, box->height);
    }
    if (tallest > 0.0)
        picture->y += tallest + row_gap;
}

/* Gradients end at the top, so that the update of the parameters stands there. */
static void place_boxes(Picture *picture)
{
    const KilnStepView *view = picture->view;

    picture->y = top;
    for (int update = 1; update >= 0; update--)
        for (size_t g = 0; g < view->n_groups; g++)
            if ((view->groups[g].calls[KILN_STEP_FORWARD] +
                     view->groups[g].calls[KILN_STEP_BACKWARD] ==
                 0) == (update == 1))
                place_row(picture, g);
}

/* ---- Boxes -------------------------------------------------------------------------- */

static void put_line(Picture *picture, const Box *box, const Line *line, double y)
{
    KilnText *svg = picture->svg;
    const KilnCallReport *call = line->call;
    double share = picture->slowest > 0.0 ? line->seconds / picture->slowest : 0.0;
    char shape[KILN_SHAPE_TEXT], time[KILN_UNIT_TEXT], bytes[KILN_UNIT_TEXT];

    kiln_text_printf(svg,
                     "<g><title>%s %s, %s in %s, %s</title><rect x=\"%.1f\" y=\"%.1f\" "
                     "width=\"%.1f\" height=\"%.1f\" fill=\"%s\" opacity=\"0.45\"/><rect "
                     "x=\"%.1f\" y=\"%.1f\" width=\"3\" height=\"%.1f\" fill=\"%s\"/>",
                     kiln_shape_text(&call->shape, shape, sizeof(shape)),
                     kiln_dtype_name(call->dtype), kiln_bytes_text((double)call->bytes, bytes),
                     call->in_block ? "the block" : "a place of its own",
                     call->blocked ? "blocked order" : "plain order", box->x + 5.0, y + 1.5,
                     fmax(share * (box_width - 10.0), 0.0), line_height - 3.0,
                     kiln_svg_colour(call), box->x + 2.0, y + 1.5, line_height - 3.0,
                     kiln_svg_colour(call));
    kiln_text_printf(svg, "<text x=\"%.1f\" y=\"%.1f\">", box->x + 10.0, y + 12.5);
    kiln_svg_text(svg, call->op, OP_CHARACTERS);
    if (line->count > 1)
        kiln_text_printf(svg, " ×%d", line->count);
    kiln_text_printf(svg,
                     "</text><text x=\"%.1f\" y=\"%.1f\" class=\"shape\" "
                     "text-anchor=\"end\">%s</text><text x=\"%.1f\" y=\"%.1f\" "
                     "text-anchor=\"end\">%s</text></g>\n",
                     box->x + box_width - 66.0, y + 12.5, shape, box->x + box_width - 8.0, y + 12.5,
                     kiln_seconds_text(line->seconds, time));
}

static void put_box(Picture *picture, size_t group, int side)
{
    const Box *box = &picture->boxes[side][group];
    const KilnCallGroup *named = &picture->view->groups[group];
    KilnText *svg = picture->svg;
    double seconds = 0.0, y = box->y + head_height;
    char time[KILN_UNIT_TEXT];

    if (box->height <= 0.0)
        return;
    for (int i = 0; i < box->n_lines; i++)
        seconds += box->lines[i].seconds;
    kiln_text_printf(svg,
                     "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"5\" "
                     "class=\"box\"/>\n<text x=\"%.1f\" y=\"%.1f\" class=\"label\">",
                     box->x, box->y, box_width, box->height, box->x + 10.0, box->y + 17.0);
    kiln_svg_text(svg, named->name, 44);
    kiln_text_printf(svg,
                     "</text><text x=\"%.1f\" y=\"%.1f\" class=\"label\" text-anchor=\"end\">%s "
                     "<tspan class=\"small\">%.1f%%</tspan></text>\n",
                     box->x + box_width - 8.0, box->y + 17.0, kiln_seconds_text(seconds, time),
                     picture->view->seconds > 0.0 ? 100.0 * seconds / picture->view->seconds : 0.0);
    for (int i = 0; i < box->n_lines; i++, y += line_height)
        put_line(picture, box, &box->lines[i], y);
    if (box->left_out > 0)
        kiln_text_printf(svg, "<text x=\"%.1f\" y=\"%.1f\" class=\"small\">and %d more</text>\n",
                         box->x + 10.0, y + 12.5, box->left_out);
}

/* ---- Edges -------------------------------------------------------------------------- */

/* Whether a box stands between two in their column. */
static bool is_between(const Picture *picture, int side, const Box *a, const Box *b)
{
    double low = fmin(a->y, b->y), high = fmax(a->y, b->y);

    for (size_t g = 0; g < picture->view->n_groups; g++) {
        const Box *box = &picture->boxes[side][g];

        if (box->height > 0.0 && box->y > low && box->y < high)
            return true;
    }
    return false;
}

/* Neighbours are joined straight, others around what is between. */
static void put_edge(Picture *picture, int from_side, int to_side, size_t from, size_t to)
{
    const Box *a = &picture->boxes[from_side][from], *b = &picture->boxes[to_side][to];
    KilnText *svg = picture->svg;
    bool down = b->y > a->y;

    if (a->height <= 0.0 || b->height <= 0.0 || (from_side != to_side && from != to))
        return;
    if (from_side != to_side) { /* what the gradients need of the forward pass */
        kiln_text_printf(svg, "<path class=\"kept\" d=\"M%.1f %.1f H%.1f\"/>\n", a->x + box_width,
                         a->y + 14.0, b->x - 6.0);
        return;
    }
    if (!is_between(picture, from_side, a, b)) {
        kiln_text_printf(svg, "<path class=\"edge\" d=\"M%.1f %.1f V%.1f\"/>\n",
                         a->x + box_width / 2.0, down ? a->y + a->height : a->y,
                         down ? b->y - 7.0 : b->y + b->height + 7.0);
        return;
    }
    double span = fabs(b->y - a->y), out = fmin(24.0 + span / 14.0, margin - 10.0);
    double x = from_side == 0 ? a->x : a->x + box_width, bend = from_side == 0 ? x - out : x + out;
    double y1 = a->y + a->height / 2.0, y2 = b->y + b->height / 2.0;
    kiln_text_printf(svg,
                     "<path class=\"edge\" d=\"M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n", x,
                     y1, bend, y1, bend, y2, from_side == 0 ? x - 7.0 : x + 7.0, y2);
}

/* Every pair of boxes between which a value goes, once. */
static void put_edges(Picture *picture)
{
    const KilnStepView *view = picture->view;
    size_t n = 2 * view->n_groups;
    unsigned char *drawn = calloc(n * n + 1, 1);

    picture->svg->failed |= drawn == NULL;
    for (size_t i = 0; drawn != NULL && i < view->n_calls; i++) {
        const KilnCallReport *call = &view->calls[i];
        int to = side_of(kiln_step_phase(call));

        for (int k = 0; k < call->n_from; k++) {
            if (call->from[k] < 0)
                continue;
            int from = side_of(kiln_step_phase(&view->calls[call->from[k]]));
            size_t a = (size_t)view->group[call->from[k]], b = (size_t)view->group[i];
            size_t pair = (2 * a + (size_t)from) * n + 2 * b + (size_t)to;

            if ((a != b || from != to) && drawn[pair] == 0)
                put_edge(picture, from, to, a, b);
            drawn[pair] = 1;
        }
    }
    free(drawn);
}

/* ---- The whole ---------------------------------------------------------------------- */

static void put_head(const Picture *picture)
{
    static const char *const sides[] = { "forward", "gradients and update" };
    KilnText *svg = picture->svg;
    double x = forward_x;
    const char *name, *colour;

    kiln_text_printf(svg, "<text x=\"%.1f\" y=\"34\" class=\"title\">", forward_x);
    kiln_svg_text(svg, picture->view->title, 200);
    kiln_text_append(svg, "</text>\n");
    for (size_t i = 0; (colour = kiln_svg_kind(i, &name)) != NULL; i++) {
        kiln_text_printf(svg,
                         "<rect x=\"%.1f\" y=\"52\" width=\"12\" height=\"12\" rx=\"2\" "
                         "fill=\"%s\"/><text x=\"%.1f\" y=\"62.5\">%s</text>\n",
                         x, colour, x + 17.0, name);
        x += 36.0 + 6.3 * (double)strlen(name);
    }
    for (int side = 0; side < 2; side++)
        kiln_text_printf(svg,
                         "<text x=\"%.1f\" y=\"%.1f\" class=\"label\" "
                         "text-anchor=\"middle\">%s</text>\n",
                         forward_x + side * (box_width + between) + box_width / 2.0, top - 16.0,
                         sides[side]);
}

static void put_start(const Picture *picture, double height)
{
    kiln_text_printf(
        picture->svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\">\n"
        "<style>text{font:12px 'DejaVu Sans',Verdana,sans-serif;fill:#1b1f24}"
        ".title{font-size:15px;font-weight:bold}.label{font-weight:bold}"
        ".small{font-size:11px;font-weight:normal;fill:#57606a}.shape{fill:#57606a;font-size:11px}"
        ".box{fill:#fff;stroke:#aab2bd}.edge{fill:none;stroke:#57606a;stroke-width:1.4;"
        "marker-end:url(#arrow)}.kept{fill:none;stroke:#aab2bd;stroke-dasharray:4 3;"
        "marker-end:url(#arrow)}.piece{stroke:#fff;stroke-width:0.4;opacity:0.85}</style>\n"
        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"3\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
        "fill=\"#57606a\"/></marker></defs>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fcfcfd\"/>\n",
        picture->width, height, picture->width, height);
}

void kiln_step_svg(const KilnStepView *view, KilnStepPhase only, KilnText *svg)
{
    Picture picture = { .view = view, .only = only, .svg = svg };

    picture.width = forward_x + 2.0 * box_width + between + margin;
    for (int side = 0; side < 2; side++)
        picture.boxes[side] = calloc(view->n_groups + 1, sizeof(Box));
    if (picture.boxes[0] == NULL || picture.boxes[1] == NULL) {
        svg->failed = true;
    } else {
        fill_boxes(&picture);
        place_boxes(&picture);
        put_start(&picture, picture.y + KILN_SVG_MEMORY_HEIGHT + 20.0);
        put_head(&picture);
        put_edges(&picture);
        for (size_t g = 0; g < view->n_groups; g++)
            for (int side = 0; side < 2; side++)
                put_box(&picture, g, side);
        kiln_svg_memory(svg, view, picture.y + 10.0, picture.width);
        kiln_text_append(svg, "</svg>\n");
    }
    free(picture.boxes[0]);
    free(picture.boxes[1]);
}
