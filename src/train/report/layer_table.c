/* The layers of the network as a table of text. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "train/trainer.h"

/* ---- Rows ------------------------------------------------------------------------------- */

/* A layer, or several that are one at this depth. */
typedef struct Row {
    const KilnLayerInfo *last;
    size_t length; /* of the path, the last layer's beginning */
    int64_t layers, parameters, trained;
    double flops;
} Row;

/* How much of a path names what is at most `depth` deep; -1: all. */
static size_t cut(const char *path, int64_t depth)
{
    const char *at = path;

    if (depth < 0)
        return strlen(path);
    for (int64_t i = 0; i < depth && *at != '\0'; i++)
        at += strcspn(at + 1, ".") + 1;
    return (size_t)(at - path);
}

/* The row of that path; what was seen before may come again. */
static Row *row_of(Row *rows, size_t *n, const KilnLayerInfo *layer, size_t length)
{
    for (size_t i = 0; i < *n; i++)
        if (rows[i].length == length && strncmp(rows[i].last->path, layer->path, length) == 0)
            return &rows[i];
    rows[*n] = (Row) { .length = length };
    return &rows[(*n)++];
}

static size_t sum_up(const KilnTrainer *trainer, int64_t max_depth, Row *rows)
{
    size_t n = 0;

    for (size_t i = 0; i < trainer->n_layers; i++) {
        const KilnLayerInfo *layer = &trainer->layers[i];
        Row *row = row_of(rows, &n, layer, cut(layer->path, max_depth));

        row->last = layer;
        row->layers++;
        row->parameters += layer->parameters;
        row->trained += layer->trained;
        row->flops += layer->flops + layer->flops_backward;
    }
    return n;
}

/* ---- Columns ------------------------------------------------------------------------------ */

/* Columns of text; numbers stand at the right of theirs. Two spaces between. */
enum { OPERATION = 1, OUTPUT = 2, FIRST_NUMBER = 3, TRAINED = 4, FLOPS = 5, COLUMNS = 6 };
enum { GAP = 2, NARROWEST = 12, CELL = 256 };

typedef struct Cells {
    char text[COLUMNS][CELL];
} Cells;

static int columns_of(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void put(Cells *cells, int column, const char *text)
{
    size_t length = strlen(text) < CELL ? strlen(text) : CELL - 1;

    memcpy(cells->text[column], text, length);
    cells->text[column][length] = '\0';
}

static Cells head_cells(void)
{
    static const char *const names[] = { "layer",      "operation", "output",
                                         "parameters", "trained",   "FLOPs a step" };
    Cells cells = { 0 };

    for (int i = 0; i < COLUMNS; i++)
        put(&cells, i, names[i]);
    return cells;
}

static Cells row_cells(const Row *row)
{
    char shape[KILN_SHAPE_TEXT], number[KILN_UNIT_TEXT];
    Cells cells = { 0 };

    put(&cells, 0, row->last->path);
    if (row->length < CELL)
        cells.text[0][row->length] = '\0';
    if (row->layers == 1)
        put(&cells, 1, row->last->op);
    put(&cells, 2, kiln_shape_text(&row->last->output, shape, sizeof(shape)));
    if (row->parameters > 0) {
        put(&cells, 3, kiln_commas_text(row->parameters, number));
        put(&cells, TRAINED, kiln_commas_text(row->trained, number));
    }
    if (row->flops > 0.0)
        put(&cells, 5, kiln_quantity_text(row->flops, number));
    return cells;
}

static void widen(int widths[COLUMNS], const Cells *cells)
{
    for (int i = 0; i < COLUMNS; i++)
        if (columns_of(cells->text[i]) > widths[i])
            widths[i] = columns_of(cells->text[i]);
}

static int sum_of(const int widths[COLUMNS])
{
    int sum = -GAP;

    for (int i = 0; i < COLUMNS; i++)
        sum += widths[i] > 0 ? widths[i] + GAP : 0;
    return sum;
}

/* Where the page is too narrow, the path of the layer is cut in front: its end tells
 * layers apart. Where that is not enough, columns go. A column of width 0 is left out. */
static void fit(int width, int widths[COLUMNS])
{
    static const int less_wanted[] = { OPERATION, FLOPS, TRAINED, OUTPUT };
    const int least = widths[0] < NARROWEST ? widths[0] : NARROWEST;

    for (size_t i = 0; i < KILN_COUNT(less_wanted); i++)
        if (sum_of(widths) - widths[0] + least > width)
            widths[less_wanted[i]] = 0;
    if (sum_of(widths) > width)
        widths[0] -= sum_of(widths) - width;
    if (widths[0] < least)
        widths[0] = least;
}

static void put_row(KilnText *text, const int widths[COLUMNS], const Cells *cells)
{
    for (int i = 0; i < COLUMNS; i++) {
        const char *cell = cells->text[i];
        const int pad = widths[i] - columns_of(cell);

        if (widths[i] == 0)
            continue;
        kiln_text_printf(text, "%*s", i >= FIRST_NUMBER && pad > 0 ? pad : 0, "");
        kiln_text_printf(text, "%s%s", pad < 0 ? "<" : "", pad < 0 ? cell - pad + 1 : cell);
        kiln_text_printf(text, "%*s", i < FIRST_NUMBER && pad > 0 ? pad : 0, "");
        kiln_text_append(text, i + 1 < COLUMNS ? "  " : "");
    }
    while (text->length > 0 && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
    kiln_text_append(text, "\n");
}

/* ---- The table ------------------------------------------------------------------------------ */

/* Nothing is said of what is trained while that is everything. */
static bool all_trained(const Row *rows, size_t n)
{
    bool all = true;

    for (size_t i = 0; i < n; i++)
        all = all && rows[i].trained == rows[i].parameters;
    return all;
}

char *kiln_trainer_layer_table(const KilnTrainer *trainer, int64_t max_depth, int width)
{
    Row *rows = calloc(trainer->n_layers + 1, sizeof(*rows));
    const Cells head = head_cells();
    int widths[COLUMNS] = { 0 };
    KilnText text = { 0 };

    if (rows == NULL)
        return NULL;
    const size_t n = sum_up(trainer, max_depth, rows);
    widen(widths, &head);
    for (size_t i = 0; i < n; i++) {
        const Cells cells = row_cells(&rows[i]);

        widen(widths, &cells);
    }
    if (all_trained(rows, n))
        widths[TRAINED] = 0;
    fit(width, widths);
    put_row(&text, widths, &head);
    for (size_t i = 0; i < n; i++) {
        const Cells cells = row_cells(&rows[i]);

        put_row(&text, widths, &cells);
    }
    free(rows);
    return kiln_text_take(&text);
}
