/* Opens the files of a split, and reads their rows as cells. */
#include "data/table/source.h"

#include <stdlib.h>

#include <jansson.h>

#include "base/text.h"
#include "data/records/records_internal.h"
#include "kiln/array.h"

/* ---- Files ----------------------------------------------------------------------------------- */

static KilnStatus delimiter_of(const KilnTableSource *source, char *ret, KilnError *err)
{
    if (source->delimiter != NULL && strlen(source->delimiter) != 1)
        return kiln_error_set(err, KILN_E_RANGE, "delimiter: \"%s\" is not one character of ASCII",
                              source->delimiter);
    *ret = source->delimiter != NULL ? source->delimiter[0] : '\0';
    return KILN_OK;
}

static KilnStatus check_format(const KilnRecords *records, const char *path, KilnError *err)
{
    const KilnRecordFormat format = kiln_records_format(records);
    const char *const *names = NULL;
    const size_t n = kiln_records_columns(records, &names);

    if (format != KILN_RECORDS_CSV && format != KILN_RECORDS_TSV && format != KILN_RECORDS_JSONL)
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "%s: is read as %s, which is no table; expected .csv, .tsv, .json or .jsonl "
            "(also .gz or .zst after that) or .parquet, or set format",
            path, kiln_record_formats[format].name);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return kiln_error_set(err, KILN_E_KEY,
                                      "%s:1: two columns are called \"%s\"; rename one of them",
                                      path, names[i]);
    return KILN_OK;
}

static KilnStatus open_records(const KilnTableSource *source, char *const *paths, size_t n,
                               const KilnPoll *poll, KilnRecords **ret, KilnError *err)
{
    KilnRecordsSpec spec = {
        .paths = (const char *const *)paths,
        .n_paths = n,
        .format = source->format,
        .columns = source->n_names > 0 ? source->names : NULL,
        .n_columns = source->n_names,
        .encoding = source->encoding,
        .cache = source->cache,
        .poll = poll,
        .fallback = KILN_RECORDS_CSV,
    };
    KilnRecords *records = NULL;
    KilnStatus status = delimiter_of(source, &spec.delimiter, err);

    if (status >= 0)
        status = kiln_records_open(&spec, &records, err);
    if (status >= 0)
        status = check_format(records, paths[0], err);
    if (status < 0)
        kiln_records_close(records);
    else
        *ret = records;
    return status;
}

/* ---- Names of columns ------------------------------------------------------------------------ */

static KilnStatus add_name(KilnNames *names, const char *name, KilnError *err)
{
    char *copy = kiln_strdup(name);

    if (copy == NULL || !KILN_RESERVE(names->list, names->capacity, names->n + 1)) {
        free(copy);
        return kiln_error_nomem(err, strlen(name));
    }
    names->list[names->n++] = copy;
    return KILN_OK;
}

void kiln_names_release(KilnNames *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i]);
    free(names->list);
    *names = (KilnNames) { 0 };
}

enum { KEY_ROWS = 1000 }; /* of JSON, that are looked at */

static bool has_name(const KilnNames *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

/* The keys of the first rows. */
static KilnStatus add_keys(const KilnRecords *records, KilnNames *names, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int64_t row = 0; row < records->parts[0].index.count && row < KEY_ROWS; row++) {
        const KilnString text = kiln_part_row(&records->parts[0], row);
        json_t *root = json_loadb(text.data, text.length, JSON_REJECT_DUPLICATES, NULL), *value;
        const char *key;

        if (json_is_object(root))
            json_object_foreach(root, key, value)
            {
                if (status >= 0 && !has_name(names, key))
                    status = add_name(names, key, err);
            }
        json_decref(root);
    }
    return status;
}

/* JSON's columns are only those that the records know: those of the first row. The others are added
 * to them. */
static KilnStatus names_of_records(KilnRecords *records, const KilnTableSource *source,
                                   KilnNames *ret, KilnError *err)
{
    const char *const *names = NULL;
    const size_t n = kiln_records_columns(records, &names);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++)
        status = add_name(ret, names[i], err);
    if (kiln_records_format(records) != KILN_RECORDS_JSONL || source->n_names > 0)
        return status;
    if (status >= 0)
        status = add_keys(records, ret, err);
    for (size_t i = n; i < ret->n && status >= 0; i++)
        status = kiln_records_add_column(records, ret->list[i], strlen(ret->list[i]), err);
    return status;
}

/* ---- Rows of files --------------------------------------------------------------------------- */

/* Where each column of the source belongs. */
static KilnStatus find_places(const KilnNames *names, const KilnSourceColumns *columns,
                              int64_t **ret, KilnError *err)
{
    int64_t *places = malloc((names->n + 1) * sizeof(*places));

    if (places == NULL)
        return kiln_error_nomem(err, names->n * sizeof(*places));
    for (size_t i = 0; i < names->n; i++) {
        places[i] = -1;
        for (size_t c = 0; c < columns->n; c++)
            if (columns->wanted[c] && strcmp(columns->list[c].name, names->list[i]) == 0)
                places[i] = (int64_t)c;
    }
    *ret = places;
    return KILN_OK;
}

/* The columns that the source has. */
static bool *present_columns(const int64_t *places, size_t n_places, size_t n_columns)
{
    bool *has = calloc(n_columns + 1, sizeof(*has));

    for (size_t i = 0; i < n_places && has != NULL; i++)
        if (places[i] >= 0)
            has[places[i]] = true;
    return has;
}

static KilnStatus drop_bad(const KilnCellReader *reader, KilnCells *cells, const uint8_t *bad,
                           const KilnTableSink *sink, KilnError *err)
{
    KilnError *why = malloc(sizeof(*why));
    KilnStatus status = why != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*why));

    for (int64_t row = 0; row < cells->n_rows && status >= 0; row++)
        if (bad[row]) {
            (void)kiln_cell_reader_why(reader, row, why);
            status = sink->bad_row(sink->ctx, why, err);
        }
    free(why);
    if (status >= 0)
        kiln_cells_drop(cells, bad);
    return status;
}

static KilnStatus read_records(KilnOpenSource *opened, const KilnSourceColumns *columns,
                               const KilnCellRules *rules, const KilnPoll *poll,
                               const KilnTableSink *sink, KilnCells *ret, KilnError *err)
{
    const int64_t n = kiln_records_count(opened->records);
    int64_t *places = NULL;
    bool *has = NULL;
    uint8_t *bad = calloc((size_t)n + 1, 1);
    KilnStatus status = bad != NULL ? find_places(&opened->names, columns, &places, err)
                                    : kiln_error_nomem(err, (size_t)n);

    if (status >= 0 && (has = present_columns(places, opened->names.n, columns->n)) == NULL)
        status = kiln_error_nomem(err, columns->n);
    if (status >= 0)
        status = kiln_cells_init(ret, n, columns->n, has, err);
    const KilnCellReader reader = { .records = opened->records,
                                    .rules = rules,
                                    .columns = columns->list,
                                    .n_columns = columns->n,
                                    .places = places,
                                    .n_places = opened->names.n,
                                    .poll = poll };
    if (status >= 0)
        status = kiln_cell_reader_run(&reader, ret, bad, err);
    if (status >= 0)
        status = drop_bad(&reader, ret, bad, sink, err);
    free(places);
    free(has);
    free(bad);
    return status;
}

/* ---- Rows of a query ------------------------------------------------------------------------- */

typedef struct Query {
    KilnNames *names; /* are added here; NULL: they are known */
    const KilnSourceColumns *columns;
    const KilnCellRules *rules;
    const int64_t *places;
    KilnCells *cells;
    int64_t capacity;
    int64_t rows; /* of all files */
} Query;

static KilnStatus add_query_name(void *ctx, const char *name, KilnError *err)
{
    Query *query = ctx;

    if (query->names == NULL)
        return KILN_OK;
    if (has_name(query->names, name))
        return kiln_error_set(err, KILN_E_KEY,
                              "query: two columns are called \"%s\"; name one of them by AS", name);
    return add_name(query->names, name, err);
}

static KilnStatus add_query_row(void *ctx, const KilnString *values, size_t n, KilnError *err)
{
    Query *query = ctx;
    KilnCells *cells = query->cells;

    if (cells->n_rows == query->capacity) {
        const KilnStatus status = kiln_cells_reserve(cells, query->capacity * 2 + 1024, err);

        if (status < 0)
            return status;
        query->capacity = query->capacity * 2 + 1024;
    }
    for (size_t i = 0; i < n; i++) {
        const int64_t place = query->places[i];

        if (place >= 0 && !kiln_cell_of_text(query->rules, query->columns->list[place].as_text,
                                             &query->columns->list[place].dictionary, values[i],
                                             &cells->cells[place][cells->n_rows]))
            return kiln_error_nomem(err, values[i].length);
    }
    cells->rows[cells->n_rows++] = query->rows++;
    return KILN_OK;
}

static KilnStatus run_query(const KilnTableSource *source, const KilnOpenSource *opened,
                            Query *query, const KilnPoll *poll, KilnError *err)
{
    const KilnQueryRows rows = { .ctx = query,
                                 .add_column = add_query_name,
                                 .add_row = query->names == NULL ? add_query_row : NULL };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < opened->n_paths && status >= 0; i++)
        status = kiln_query_run(opened->paths[i], source->query, &rows, poll, err);
    return status;
}

static KilnStatus read_query(const KilnTableSource *source, KilnOpenSource *opened,
                             const KilnSourceColumns *columns, const KilnCellRules *rules,
                             const KilnPoll *poll, KilnCells *ret, KilnError *err)
{
    int64_t *places = NULL;
    bool *has = NULL;
    KilnStatus status = find_places(&opened->names, columns, &places, err);

    if (status >= 0 && (has = present_columns(places, opened->names.n, columns->n)) == NULL)
        status = kiln_error_nomem(err, columns->n);
    if (status >= 0)
        status = kiln_cells_init(ret, 0, columns->n, has, err);
    Query query = { .columns = columns, .rules = rules, .places = places, .cells = ret };
    if (status >= 0)
        status = run_query(source, opened, &query, poll, err);
    free(places);
    free(has);
    return status;
}

/* ---- Either ---------------------------------------------------------------------------------- */

KilnStatus kiln_source_open(const KilnTableSource *source, char *const *paths, size_t n_paths,
                            const KilnPoll *poll, KilnOpenSource *ret, KilnError *err)
{
    *ret = (KilnOpenSource) { .paths = paths, .n_paths = n_paths };
    if (source->query == NULL) {
        KilnStatus status = open_records(source, paths, n_paths, poll, &ret->records, err);

        return status >= 0 ? names_of_records(ret->records, source, &ret->names, err) : status;
    }
    Query query = { .names = &ret->names };
    const KilnOpenSource first = { .paths = paths, .n_paths = 1 };
    return run_query(source, &first, &query, poll, err);
}

KilnStatus kiln_source_read(const KilnTableSource *source, KilnOpenSource *opened,
                            const KilnSourceColumns *columns, const KilnCellRules *rules,
                            const KilnPoll *poll, const KilnTableSink *sink, KilnCells *ret,
                            KilnError *err)
{
    return opened->records != NULL ? read_records(opened, columns, rules, poll, sink, ret, err)
                                   : read_query(source, opened, columns, rules, poll, ret, err);
}

const char *kiln_source_place(const KilnOpenSource *opened, int64_t row, char *ret, size_t size)
{
    if (opened->records != NULL)
        return kiln_records_location(opened->records, row, ret, size);
    snprintf(ret, size, "%s: row %lld of the query", opened->paths[0], (long long)row + 1);
    return ret;
}

void kiln_source_close(KilnOpenSource *opened)
{
    kiln_records_close(opened->records);
    kiln_names_release(&opened->names);
    *opened = (KilnOpenSource) { 0 };
}
