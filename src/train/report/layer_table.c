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
    float least_lr, most_lr; /* factors on the learning rate of what trains; most 0: nothing does */
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

/* The factors on the learning rate of the parameters directly below a layer's path. */
static void add_rates(const KilnTrainer *trainer, const char *path, Row *row)
{
    const size_t length = strlen(path);

    for (size_t i = 0; i < trainer->params->count; i++) {
        const KilnParam *param = trainer->params->items[i];

        if (!param->trained || param->frozen || strncmp(param->name, path, length) != 0 ||
            param->name[length] != '.' || strchr(param->name + length + 1, '.') != NULL)
            continue;
        for (size_t k = 0; k < trainer->n_optimizers; k++) {
            const float rate = kiln_segments_lr_scale(&trainer->optimizers[k].segments, param);

            if (!kiln_optimizer_has(&trainer->optimizers[k], param) || !(rate > 0.0f))
                continue;
            row->least_lr = row->most_lr > 0.0f && row->least_lr < rate ? row->least_lr : rate;
            row->most_lr = row->most_lr > rate ? row->most_lr : rate;
        }
    }
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
        add_rates(trainer, layer->path, row);
    }
    return n;
}

/* ---- Columns ------------------------------------------------------------------------------ */

enum { TRAINED = 4, FLOPS, LR, COLUMNS, CELL = KILN_TABLE_CELL };

static void row_cells(const Row *row, KilnTextCells cells)
{
    char number[KILN_UNIT_TEXT];

    for (int i = 0; i < COLUMNS; i++)
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
        snprintf(cells[FLOPS], CELL, "%s", kiln_quantity_text(row->flops, number));
    if (row->most_lr > row->least_lr)
        snprintf(cells[LR], CELL, "%.3g-%.3g", (double)row->least_lr, (double)row->most_lr);
    else if (row->most_lr > 0.0f)
        snprintf(cells[LR], CELL, "%.3g", (double)row->most_lr);
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

/* The column of learning rates is left out when all are the optimizer's. */
static bool one_rate(const Row *rows, size_t n)
{
    bool one = true;

    for (size_t i = 0; i < n; i++)
        one = one && (!(rows[i].most_lr > 0.0f) ||
                      (!(rows[i].least_lr < 1.0f) && !(rows[i].most_lr > 1.0f)));
    return one;
}

char *kiln_trainer_layer_table(const KilnTrainer *trainer, int64_t max_depth, int width)
{
    /* The end of a path tells layers apart, so paths are cut at their start. */
    KilnTextTable table = {
        .n = COLUMNS,
        .columns = { { .title = "layer", .rank = KILN_TABLE_KEPT, .shrinks = true },
                     { .title = "operation", .rank = 1 },
                     { .title = "output", .rank = 4 },
                     { .title = "parameters", .rank = KILN_TABLE_KEPT, .number = true },
                     { .title = "trained", .rank = 3, .number = true },
                     { .title = "FLOPs a step", .rank = 2, .number = true },
                     { .title = "lr", .rank = 3, .number = true } },
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
    if (one_rate(rows, n))
        table.columns[LR].width = 0;
    kiln_text_table_fit(&table, width);
    kiln_text_table_put_titles(&table, &text);
    for (size_t i = 0; i < n; i++) {
        row_cells(&rows[i], cells);
        kiln_text_table_put(&table, &text, cells);
    }
    free(rows);
    return kiln_text_take(&text);
}
