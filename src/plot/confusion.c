/* A confusion matrix: cells as dark as their share of their row. */
#ifdef KILN_WITH_CAIRO

#include <math.h>
#include <stdio.h>

#include "plot/canvas.h"

enum { MOST = 64, CELL = 44, CELL_SMALL = 22, MARGIN = 16, FONT = 12, TITLE = 15, GAP = 6 };

typedef struct Grid {
    const KilnConfusion *what;
    KilnCanvas canvas;
    double left, top, cell;
} Grid;

static double value_at(const KilnConfusion *what, size_t row, size_t column)
{
    const double value = what->values[row * what->n + column];

    return isfinite(value) && value > 0.0 ? value : 0.0;
}

static double row_sum(const KilnConfusion *what, size_t row)
{
    double sum = 0.0;

    for (size_t i = 0; i < what->n; i++)
        sum += value_at(what, row, i);
    return sum;
}

/* Counts as they are, shares with two digits. */
static void format_value(double value, char *text, size_t size)
{
    if (value >= 1e5)
        snprintf(text, size, "%.0fk", value * 1e-3);
    else if (value == floor(value))
        snprintf(text, size, "%.0f", value);
    else
        snprintf(text, size, value < 1.0 ? "%.2f" : "%.1f", value);
}

static void draw_cell(Grid *grid, size_t row, size_t column)
{
    const double value = value_at(grid->what, row, column), sum = row_sum(grid->what, row);
    const double share = sum > 0.0 ? value / sum : 0.0;
    const double x = grid->left + (double)column * grid->cell;
    const double y = grid->top + (double)row * grid->cell;
    char text[32];

    /* From white to the first colour of charts. */
    cairo_set_source_rgb(grid->canvas.cr, 1.0 - share, 1.0 - 0.55 * share, 1.0 - 0.30 * share);
    cairo_rectangle(grid->canvas.cr, x, y, grid->cell, grid->cell);
    cairo_fill(grid->canvas.cr);
    if (value <= 0.0 || grid->cell < CELL)
        return;
    format_value(value, text, sizeof(text));
    kiln_canvas_grey(&grid->canvas, share > 0.5 ? 1.0 : 0.15);
    kiln_canvas_text(&grid->canvas, x + grid->cell / 2.0, y + grid->cell / 2.0,
                     (KilnAnchor) { 0.5, 0.5 }, text);
}

static void draw_lines(Grid *grid)
{
    const double size = grid->cell * (double)grid->what->n;

    kiln_canvas_grey(&grid->canvas, 0.85);
    for (size_t i = 0; i <= grid->what->n; i++) {
        const double at = (double)i * grid->cell;

        kiln_canvas_line(&grid->canvas, grid->left, grid->top + at, grid->left + size,
                         grid->top + at);
        kiln_canvas_line(&grid->canvas, grid->left + at, grid->top, grid->left + at,
                         grid->top + size);
    }
}

static void draw_labels(Grid *grid)
{
    const KilnConfusion *what = grid->what;
    const double size = grid->cell * (double)what->n;

    kiln_canvas_grey(&grid->canvas, 0.15);
    for (size_t i = 0; i < what->n; i++) {
        const double at = ((double)i + 0.5) * grid->cell;

        kiln_canvas_text(&grid->canvas, grid->left - GAP, grid->top + at, (KilnAnchor) { 1.0, 0.5 },
                         what->labels[i]);
        cairo_save(grid->canvas.cr);
        cairo_translate(grid->canvas.cr, grid->left + at, grid->top + size + GAP);
        cairo_rotate(grid->canvas.cr, -acos(-1.0) / 2.0);
        kiln_canvas_text(&grid->canvas, 0.0, 0.0, (KilnAnchor) { 1.0, 0.5 }, what->labels[i]);
        cairo_restore(grid->canvas.cr);
    }
}

static double widest_label(Grid *grid)
{
    double widest = 0.0;

    for (size_t i = 0; i < grid->what->n; i++)
        widest = fmax(widest, kiln_canvas_text_width(&grid->canvas, grid->what->labels[i]));
    return ceil(widest);
}

/* Room for the labels is measured on a canvas of no use otherwise. */
static KilnStatus lay_out(Grid *grid, KilnError *err)
{
    const KilnConfusion *what = grid->what;
    KilnStatus status = kiln_canvas_init(&grid->canvas, 1, 1, err);

    if (status < 0)
        return status;
    kiln_canvas_font(&grid->canvas, FONT, false);
    const double label = widest_label(grid);
    kiln_canvas_release(&grid->canvas);
    grid->cell = what->n <= 32 ? CELL : CELL_SMALL;
    grid->left = MARGIN + FONT + 2 * GAP + label + GAP;
    grid->top = MARGIN + (what->title != NULL ? TITLE + 2 * GAP : 0);
    const double size = grid->cell * (double)what->n;
    return kiln_canvas_init(&grid->canvas, (int)(grid->left + size + MARGIN),
                            (int)(grid->top + size + 3 * GAP + label + FONT + MARGIN), err);
}

static void draw(Grid *grid)
{
    const KilnConfusion *what = grid->what;
    const double size = grid->cell * (double)what->n;

    kiln_canvas_font(&grid->canvas, FONT, false);
    for (size_t row = 0; row < what->n; row++)
        for (size_t column = 0; column < what->n; column++)
            draw_cell(grid, row, column);
    draw_lines(grid);
    draw_labels(grid);
    kiln_canvas_grey(&grid->canvas, 0.35);
    kiln_canvas_text(&grid->canvas, grid->left + size / 2.0, grid->canvas.height - MARGIN,
                     (KilnAnchor) { 0.5, 1.0 }, "predicted");
    kiln_canvas_text_up(&grid->canvas, MARGIN + FONT / 2.0, grid->top + size / 2.0, "true");
    if (what->title == NULL)
        return;
    kiln_canvas_grey(&grid->canvas, 0.0);
    kiln_canvas_font(&grid->canvas, TITLE, true);
    kiln_canvas_text(&grid->canvas, grid->left, MARGIN, (KilnAnchor) { 0.0, 0.0 }, what->title);
}

KilnStatus kiln_plot_confusion(const char *path, const KilnConfusion *confusion, KilnError *err)
{
    Grid grid = { .what = confusion };

    if (confusion->n < 1 || confusion->n > MOST)
        return kiln_error_set(err, KILN_E_RANGE, "a matrix of %zu classes: 1 to %d are possible",
                              confusion->n, (int)MOST);
    KilnStatus status = lay_out(&grid, err);
    if (status >= 0) {
        draw(&grid);
        status = kiln_canvas_save(&grid.canvas, path, err);
    }
    kiln_canvas_release(&grid.canvas);
    return status;
}

#else
typedef int kiln_plot_left_out; /* ISO C wants a declaration in every file */
#endif
