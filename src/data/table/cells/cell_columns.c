/* The memory of a table's cells. */
#include <stdlib.h>

#include "data/table/table_internal.h"

/* Columns are in one block, without huge pages: it is written once, cell after cell, and a page
 * that the kernel has just cleared is still in the cache if it is small. Rows are written cell by
 * cell, so columns must not begin in the same set of a cache, whose sets repeat after 4 KiB or
 * more: then each cell would push out another one.
 */
enum { LINE = 64, SETS_REPEAT = 4096, SKEW = 3 * LINE };

static size_t column_bytes(int64_t n_rows)
{
    const size_t bytes = ((size_t)n_rows + 1) * sizeof(KilnCell);

    return (bytes + SETS_REPEAT - 1) / SETS_REPEAT * SETS_REPEAT + SKEW;
}

KilnStatus kiln_cells_init(KilnCells *cells, int64_t n_rows, size_t n_columns, const bool *has,
                           KilnError *err)
{
    size_t at = 0;

    *cells = (KilnCells) { .n_rows = n_rows, .n_columns = n_columns };
    for (size_t c = 0; c < n_columns; c++)
        at += has == NULL || has[c];
    const size_t bytes = at * column_bytes(n_rows);
    cells->block = calloc(1, bytes);
    cells->cells = calloc(n_columns + 1, sizeof(*cells->cells));
    cells->rows = malloc(((size_t)n_rows + 1) * sizeof(*cells->rows));
    if (cells->block == NULL || cells->cells == NULL || cells->rows == NULL)
        return kiln_error_nomem(err, bytes);
    at = 0;
    for (size_t c = 0; c < n_columns; c++)
        if (has == NULL || has[c])
            cells->cells[c] =
                (KilnCell *)(void *)((char *)cells->block + at++ * column_bytes(n_rows));
    for (int64_t i = 0; i < n_rows; i++)
        cells->rows[i] = i;
    return KILN_OK;
}

KilnStatus kiln_cells_reserve(KilnCells *cells, int64_t room, KilnError *err)
{
    bool *has = calloc(cells->n_columns + 1, sizeof(*has));
    KilnCells more = { 0 };

    for (size_t c = 0; c < cells->n_columns && has != NULL; c++)
        has[c] = cells->cells[c] != NULL;
    KilnStatus status = has != NULL ? kiln_cells_init(&more, room, cells->n_columns, has, err)
                                    : kiln_error_nomem(err, cells->n_columns);
    free(has);
    if (status < 0) {
        kiln_cells_release(&more);
        return status;
    }
    more.n_rows = cells->n_rows;
    memcpy(more.rows, cells->rows, (size_t)cells->n_rows * sizeof(*more.rows));
    for (size_t c = 0; c < cells->n_columns; c++)
        if (cells->cells[c] != NULL)
            memcpy(more.cells[c], cells->cells[c], (size_t)cells->n_rows * sizeof(KilnCell));
    kiln_cells_release(cells);
    *cells = more;
    return KILN_OK;
}

void kiln_cells_release(KilnCells *cells)
{
    free(cells->block);
    free(cells->cells);
    free(cells->rows);
    *cells = (KilnCells) { 0 };
}

void kiln_cells_drop(KilnCells *cells, const uint8_t *bad)
{
    int64_t n = 0;

    for (int64_t i = 0; i < cells->n_rows; i++) {
        if (bad[i])
            continue;
        if (n < i) {
            cells->rows[n] = cells->rows[i];
            for (size_t c = 0; c < cells->n_columns; c++)
                if (cells->cells[c] != NULL)
                    cells->cells[c][n] = cells->cells[c][i];
        }
        n++;
    }
    cells->n_rows = n;
}
