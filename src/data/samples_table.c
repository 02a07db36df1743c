/* Makes a table of a set's samples. */
#include "kiln/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* Of one table; the arena has all that it points to. */
typedef struct OwnedTable {
    KilnTable table; /* first: kiln_table_free gets its address */
    KilnArena arena;
} OwnedTable;

/* One feature of the samples. */
typedef struct Part {
    const KilnFeature *feature;
    int64_t n;   /* its columns; 0: the table has none of them */
    void **data; /* of each column */
    void *value; /* of one sample */
} Part;

/* ---- Columns ------------------------------------------------------------------------ */

static int64_t count_columns(const KilnDataset *dataset, const KilnFeature *feature)
{
    const unsigned of_table = KILN_ROW | KILN_VECTOR | KILN_LABEL | KILN_TEXT;

    return (feature->content & of_table) == 0 || feature->varies ||
                   !kiln_dataset_has(dataset, feature->name)
               ? 0
               : kiln_shape_count(&feature->shape);
}

/* Allocate column i of a feature; its name is "x", or "x.0", "x.1", ... */
static KilnColumn make_column(OwnedTable *owned, Part *part, int64_t i)
{
    const KilnFeature *feature = part->feature;
    const bool text = feature->content == KILN_TEXT;
    const size_t size = text ? sizeof(char *) : kiln_dtype_size(feature->dtype);
    const char *name = feature->columns != NULL ? feature->columns[i].name : feature->name;

    part->data[i] = kiln_arena_alloc(&owned->arena, (size_t)owned->table.n_rows * size + 1);
    return (KilnColumn) {
        .name = feature->columns != NULL || feature->shape.rank == 0
                    ? kiln_arena_strdup(&owned->arena, name)
                    : kiln_arena_printf(&owned->arena, "%s.%lld", name, (long long)i),
        .dtype = feature->dtype,
        .data = text ? NULL : part->data[i],
        .texts = text ? part->data[i] : NULL,
    };
}

/* Allocate all columns, and room for one sample. */
static void make_columns(OwnedTable *owned, const KilnDataSpec *spec, const KilnDataset *dataset,
                         Part *parts)
{
    KilnColumn *columns;
    size_t n = 0;

    for (size_t f = 0; f < spec->n_features; f++) {
        parts[f].feature = &spec->features[f];
        parts[f].n = count_columns(dataset, &spec->features[f]);
        parts[f].data = kiln_arena_alloc(&owned->arena, (size_t)parts[f].n * sizeof(void *) + 1);
        parts[f].value = kiln_arena_alloc(&owned->arena, (size_t)parts[f].n * sizeof(void *) + 1);
        n += (size_t)parts[f].n;
    }
    columns = kiln_arena_alloc(&owned->arena, n * sizeof(*columns) + 1);
    owned->table =
        (KilnTable) { .n_rows = dataset->count, .columns = columns, .n_columns = n, .label = n };
    for (size_t f = 0; f < spec->n_features && !owned->arena.failed; f++) {
        if (strcmp(spec->features[f].name, "label") == 0 && parts[f].n == 1)
            owned->table.label = (size_t)(columns - owned->table.columns);
        for (int64_t i = 0; i < parts[f].n && !owned->arena.failed; i++)
            *columns++ = make_column(owned, &parts[f], i);
    }
}

/* ---- Rows --------------------------------------------------------------------------- */

/* Store the value of a sample in its columns; of a text, a copy. */
static void put_value(OwnedTable *owned, const Part *part, int64_t row)
{
    const size_t size = kiln_dtype_size(part->feature->dtype);

    if (part->feature->content == KILN_TEXT) {
        char **text = part->value;

        if (*text != NULL)
            ((char **)part->data[0])[row] = kiln_arena_strdup(&owned->arena, *text);
        free(*text);
        *text = NULL;
        return;
    }
    for (int64_t i = 0; i < part->n; i++)
        memcpy((char *)part->data[i] + (size_t)row * size,
               (const char *)part->value + (size_t)i * size, size);
}

static KilnStatus read_rows(OwnedTable *owned, const KilnDataSpec *spec, const KilnDataset *dataset,
                            const Part *parts, KilnSample *sample, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int64_t row = 0; row < dataset->count && status >= 0; row++) {
        KilnRng rng;

        kiln_rng_init(&rng, 0, KILN_RNG_AUGMENT, 0, (uint64_t)row);
        status = dataset->get(dataset->ctx, row, &rng, sample, err);
        for (size_t f = 0; f < spec->n_features; f++)
            if (parts[f].n > 0) /* also after an error: it frees texts */
                put_value(owned, &parts[f], row);
    }
    return status;
}

KilnStatus kiln_table_new(const KilnDataSpec *spec, const KilnDataset *dataset, KilnTable **ret,
                          KilnError *err)
{
    OwnedTable *owned = calloc(1, sizeof(*owned));
    Part *parts = calloc(spec->n_features + 1, sizeof(*parts));
    void **data = calloc(spec->n_features + 1, sizeof(*data));
    int64_t *lengths = calloc(spec->n_features + 1, sizeof(*lengths));
    KilnSample sample = { .data = data, .lengths = lengths };
    KilnStatus status = owned != NULL && parts != NULL && data != NULL && lengths != NULL
                            ? KILN_OK
                            : kiln_error_nomem(err, spec->n_features * sizeof(*parts));

    if (status >= 0) {
        make_columns(owned, spec, dataset, parts);
        for (size_t f = 0; f < spec->n_features; f++)
            data[f] = parts[f].n > 0 ? parts[f].value : NULL;
        if (!owned->arena.failed)
            status = read_rows(owned, spec, dataset, parts, &sample, err);
        if (status >= 0 && owned->arena.failed)
            status = kiln_error_nomem(err, kiln_arena_bytes(&owned->arena));
    }
    free(parts);
    free(data);
    free(lengths);
    if (status < 0) {
        kiln_table_free((KilnTable *)owned);
        return status;
    }
    *ret = &owned->table;
    return KILN_OK;
}

void kiln_table_free(KilnTable *table)
{
    OwnedTable *owned = (OwnedTable *)table;

    if (owned != NULL)
        kiln_arena_release(&owned->arena);
    free(owned);
}
