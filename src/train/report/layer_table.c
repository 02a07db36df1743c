/* kiln_trainer_layer_table (kiln/trainer.h): the network's layers as a text table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_table.h"
#include "kiln/tools/clock.h"
#include "train/trainer.h"

/* ---- Rows ------------------------------------------------------------------------------- */

/* One layer, or several layers that share a path at this depth. */
typedef struct Row {
    const KilnLayerInfo *last;
    size_t length; /* of the row's path, a prefix of last->path */
    int64_t layers, parameters, trained;
    double flops;
} Row;

/* The length of a path's first `depth` names; -1: all. */
static size_t prefix_length(const char *path, int64_t depth)
{
    const char *at = path;

    if (depth < 0)
        return strlen(path);
    for (int64_t i = 0; i < depth && *at != '\0'; i++)
        at += strcspn(at + 1, ".") + 1;
    return (size_t)(at - path);
}

/* Find or add the row of that path. */
static Row *find_row(Row *rows, size_t *n, const KilnLayerInfo *layer, size_t length)
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
        Row *row = find_row(rows, &n, layer, prefix_length(layer->path, max_depth));

        row->last = layer;
        row->layers++;
        row->parameters += layer->parameters;
        row->trained += layer->trained;
        row->flops += layer->flops + layer->flops_backward;
    }
    return n;
}

/* ---- Columns ------------------------------------------------------------------------------ */

enum { TRAINED = 4, CELL = KILN_TABLE_CELL };

static void row_cells(const Row *row, KilnTextCells cells)
{
    char number[KILN_UNIT_TEXT];

    for (int i = 0; i < 6; i++)
        cells[i][0] = '\0';
    snprintf(cells[0], CELL, "%.*s", (int)row->length, row->last->path);
    if (row->layers == 1)
        snprintf(cells[1], CELL, "%s", row->last->op);
    kiln_shape_text(&row->last->output, cells[2], CELL);
    if (row->parameters > 0) {
        snprintf(cells[3], CELL, "%s", kiln_commas_text(row->parameters, number));
        snprintf(cells[TRAINED], CELL, "%s", kiln_commas_text(row->trained, number));
    }
    if (row->flops > 0.0)
        snprintf(cells[5], CELL, "%s", kiln_quantity_text(row->flops, number));
}

/* ---- The table ------------------------------------------------------------------------------ */

/* The column of trained parameters is left out when all are trained. */
static bool all_trained(const Row *rows, size_t n)
{
    bool all = true;

    for (size_t i = 0; i < n; i++)
        all = all && rows[i].trained == rows[i].parameters;
    return all;
}

char *kiln_trainer_layer_table(const KilnTrainer *trainer, int64_t max_depth, int width)
{
    /* The end of a path tells layers apart, so paths are cut at their start. */
    KilnTextTable table = {
        .n = 6,
        .columns = { { .title = "layer", .rank = KILN_TABLE_KEPT, .shrinks = true },
                     { .title = "operation", .rank = 1 },
                     { .title = "output", .rank = 4 },
                     { .title = "parameters", .rank = KILN_TABLE_KEPT, .number = true },
                     { .title = "trained", .rank = 3, .number = true },
                     { .title = "FLOPs a step", .rank = 2, .number = true } },
    };
    Row *rows = calloc(trainer->n_layers + 1, sizeof(*rows));
    KilnTextCells cells = { 0 };
    KilnText text = { 0 };

    if (rows == NULL)
        return NULL;
    const size_t n = sum_up(trainer, max_depth, rows);
    kiln_text_table_measure(&table, cells);
    for (size_t i = 0; i < n; i++) {
        row_cells(&rows[i], cells);
        kiln_text_table_measure(&table, cells);
    }
    if (all_trained(rows, n))
        table.columns[TRAINED].width = 0;
    kiln_text_table_fit(&table, width);
    kiln_text_table_put_titles(&table, &text);
    for (size_t i = 0; i < n; i++) {
        row_cells(&rows[i], cells);
        kiln_text_table_put(&table, &text, cells);
    }
    free(rows);
    return kiln_text_take(&text);
}
