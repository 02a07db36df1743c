/* Files of sparse rows, with their side files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/text.h"
#include "kiln/array.h"
#include "kiln/files/libsvm.h"

static const size_t only_column = 0; /* of lines */

/* The rows while they grow. */
typedef struct Reader {
    const KilnLibsvmSpec *spec;
    KilnLibsvm *to;
    size_t starts_capacity, values_capacity, indices_capacity, labels_capacity, lines_capacity;
    size_t queries_capacity;
    KilnLibsvmRow row;
    KilnRecord record;
    int64_t with_query, with_weight; /* rows that have one */
} Reader;

/* ---- Rows -------------------------------------------------------------------------- */

static bool is_blank(KilnString line)
{
    size_t i = 0;

    while (i < line.length && strchr(" \t\r\n\v\f", line.data[i]) != NULL)
        i++;
    return i == line.length || line.data[i] == '#';
}

static bool reserve(Reader *reader, size_t n_values)
{
    KilnLibsvm *to = reader->to;
    const size_t rows = (size_t)to->n + 1, values = (size_t)to->starts[to->n] + n_values + 1;

    return KILN_RESERVE(to->starts, reader->starts_capacity, rows + 1) &&
           KILN_RESERVE(to->labels, reader->labels_capacity, rows) &&
           KILN_RESERVE(to->lines, reader->lines_capacity, rows) &&
           KILN_RESERVE(to->queries, reader->queries_capacity, rows) &&
           KILN_RESERVE(to->values, reader->values_capacity, values) &&
           KILN_RESERVE(to->indices, reader->indices_capacity, values);
}

static KilnStatus append(Reader *reader, int64_t line, KilnError *err)
{
    const KilnLibsvmRow *row = &reader->row;
    KilnLibsvm *to = reader->to;
    const size_t n = (size_t)row->n;

    if (!reserve(reader, n))
        return kiln_error_nomem(err, n * sizeof(float));
    const int64_t start = to->starts[to->n];
    if (n > 0) {
        memcpy(to->indices + start, row->indices, n * sizeof(*to->indices));
        memcpy(to->values + start, row->values, n * sizeof(*to->values));
        to->largest = row->indices[n - 1] > to->largest ? row->indices[n - 1] : to->largest;
        to->least = to->least < 0 || row->indices[0] < to->least ? row->indices[0] : to->least;
    }
    to->labels[to->n] = row->label;
    to->queries[to->n] = row->has_query ? row->query : -1;
    to->lines[to->n] = line;
    reader->with_query += row->has_query;
    to->starts[++to->n] = start + row->n;
    return KILN_OK;
}

static KilnStatus check_row(Reader *reader, KilnError *err)
{
    KilnStatus status = kiln_libsvm_parse(reader->record.fields[0], &reader->row, err);

    if (status >= 0 && !reader->row.has_label)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "the row has no label; expected LABEL INDEX:VALUE "
                              "...");
    return status;
}

static void count_skipped(KilnLibsvm *to, const char *place, const KilnError *why)
{
    if (to->n_skipped++ > 0)
        return;
    snprintf(to->example, sizeof(to->example), "%s", place);
    snprintf(to->reason, sizeof(to->reason), "%.500s", why->text);
}

/* Read one line; a bad one is left out, if the spec says so. */
static KilnStatus read_line(Reader *reader, int64_t line, KilnError *why, KilnError *err)
{
    KilnLibsvm *to = reader->to;
    char place[512];
    KilnStatus status = kiln_records_read(to->records, line, &only_column, 1, &reader->record, err);

    if (status < 0)
        return status;
    if (is_blank(reader->record.fields[0]))
        return KILN_OK;
    status = check_row(reader, why);
    if (status >= 0)
        return append(reader, line, err);
    if (status == KILN_E_NOMEM)
        return kiln_error_nomem(err, 1);
    kiln_records_location(to->records, line, place, sizeof(place));
    if (reader->spec->on_error == KILN_ON_ERROR_SKIP) {
        count_skipped(to, place, why);
        return KILN_OK;
    }
    return kiln_error_set(err, KILN_E_FORMAT, "%s: %s (on_error=skip leaves such rows out)", place,
                          why->text);
}

static KilnStatus read_lines(Reader *reader, KilnError *err)
{
    const int64_t n = kiln_records_count(reader->to->records);
    KilnError *why = malloc(sizeof(*why));
    KilnStatus status = why != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*why));

    for (int64_t i = 0; i < n && status >= 0; i++) {
        status = kiln_poll_check(reader->spec->poll, "reading rows", i, n, err);
        if (status >= 0)
            status = read_line(reader, i, why, err);
    }
    free(why);
    return status;
}

/* ---- Side files ----------------------------------------------------------------------- */

/* The path of a side file that exists; NULL: none. Owned by the caller. */
static char *side_path(const char *path, const char *ending)
{
    KilnText text = { 0 };
    size_t length = strlen(path);

    if (kiln_ends_with(path, ".gz") || kiln_ends_with(path, ".zst"))
        length -= kiln_ends_with(path, ".gz") ? 3 : 4;
    kiln_text_append_n(&text, path, length);
    kiln_text_append(&text, ending);
    char *side = kiln_text_take(&text);
    if (side != NULL && access(side, R_OK) == 0)
        return side;
    free(side);
    return NULL;
}

/* The numbers of a side file of all files, each called `use` with. */
typedef KilnStatus UseNumber(Reader *reader, double number, KilnError *err);

static KilnStatus read_number(Reader *reader, const KilnRecords *records, int64_t line,
                              UseNumber *use, KilnError *err)
{
    char place[512], word[64];
    double number = 0.0;
    KilnStatus status = kiln_records_read(records, line, &only_column, 1, &reader->record, err);

    if (status < 0 || is_blank(reader->record.fields[0]))
        return status;
    const KilnString text = reader->record.fields[0];
    snprintf(word, sizeof(word), "%.*s", (int)(text.length < 63 ? text.length : 63), text.data);
    word[strcspn(word, " \t\r")] = '\0';
    if (kiln_parse_f64(word, &number, NULL) < 0 || number < 0.0)
        status = kiln_error_set(err, KILN_E_FORMAT, "\"%s\" is no number from 0", word);
    else
        status = use(reader, number, err);
    return status >= 0
               ? status
               : kiln_error_prefix(
                     err, "%s: ", kiln_records_location(records, line, place, sizeof(place)));
}

static KilnStatus read_side(Reader *reader, const char *path, UseNumber *use, KilnError *err)
{
    KilnRecords *records = NULL;
    const KilnRecordsSpec spec = {
        .paths = &path, .n_paths = 1, .format = KILN_RECORDS_LINES, .poll = reader->spec->poll
    };
    KilnStatus status = kiln_records_open(&spec, &records, err);

    for (int64_t i = 0; status >= 0 && i < kiln_records_count(records); i++)
        status = read_number(reader, records, i, use, err);
    kiln_records_close(records);
    return status;
}

/* The next rows belong to the next query. */
static KilnStatus use_query(Reader *reader, double number, KilnError *err)
{
    KilnLibsvm *to = reader->to;
    const int64_t first = reader->with_query;
    const int32_t query = first > 0 ? to->queries[first - 1] + 1 : 0;

    if (number != (double)(int64_t)number || number < 1.0)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "a query has %g rows; expected a whole number "
                              "from 1",
                              number);
    if (first + (int64_t)number > to->n)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "the queries have more rows than the %lld there "
                              "are",
                              (long long)to->n);
    for (int64_t i = 0; i < (int64_t)number; i++)
        to->queries[reader->with_query++] = query;
    return KILN_OK;
}

static KilnStatus use_weight(Reader *reader, double number, KilnError *err)
{
    KilnLibsvm *to = reader->to;

    if (reader->with_weight >= to->n)
        return kiln_error_set(err, KILN_E_FORMAT, "there are more weights than the %lld rows",
                              (long long)to->n);
    to->weights[reader->with_weight++] = (float)number;
    return KILN_OK;
}

/* Read the side files of all files; *ret_n: how many of them have one. */
static KilnStatus read_sides(Reader *reader, const char *ending, UseNumber *use, size_t *ret_n,
                             KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < reader->spec->n_paths && status >= 0; i++) {
        char *path = side_path(reader->spec->paths[i], ending);

        if (path == NULL)
            continue;
        status = read_side(reader, path, use, err);
        free(path);
        ++*ret_n;
    }
    if (status >= 0 && *ret_n > 0 && *ret_n < reader->spec->n_paths)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "only %zu of %zu files have a file %s beside "
                              "them",
                              *ret_n, reader->spec->n_paths, ending);
    return status;
}

static KilnStatus check_count(const Reader *reader, const char *what, int64_t count, KilnError *err)
{
    const KilnLibsvm *to = reader->to;

    if (count == to->n)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_FORMAT, "%s: %s for %lld of %lld rows%s",
                          reader->spec->paths[0], what, (long long)count, (long long)to->n,
                          to->n_skipped > 0 ? "; side files count bad rows, too, so on_error=skip "
                                              "does not work with them"
                                            : "");
}

static KilnStatus read_queries(Reader *reader, KilnError *err)
{
    KilnLibsvm *to = reader->to;
    const bool in_rows = reader->with_query > 0;
    size_t n = 0;
    KilnStatus status = KILN_OK;

    if (!in_rows)
        status = read_sides(reader, ".query", use_query, &n, err);
    if (status >= 0 && !in_rows && n == 0)
        status = read_sides(reader, ".group", use_query, &n, err);
    if (status < 0)
        return status;
    if (in_rows || n > 0)
        return check_count(reader, "there are queries", reader->with_query, err);
    free(to->queries);
    to->queries = NULL;
    return KILN_OK;
}

static KilnStatus read_weights(Reader *reader, KilnError *err)
{
    KilnLibsvm *to = reader->to;
    size_t n = 0;

    to->weights = malloc((size_t)to->n * sizeof(*to->weights) + 1);
    if (to->weights == NULL)
        return kiln_error_nomem(err, (size_t)to->n * sizeof(*to->weights));
    KilnStatus status = read_sides(reader, ".weight", use_weight, &n, err);
    if (status >= 0 && n > 0)
        return check_count(reader, "there are weights", reader->with_weight, err);
    free(to->weights);
    to->weights = NULL;
    return status;
}

/* ---- All of it -------------------------------------------------------------------------- */

KilnStatus kiln_libsvm_read(const KilnLibsvmSpec *spec, KilnLibsvm *ret, KilnError *err)
{
    Reader reader = { .spec = spec, .to = ret };
    const KilnRecordsSpec files = { .paths = spec->paths,
                                    .n_paths = spec->n_paths,
                                    .format = KILN_RECORDS_LINES,
                                    .cache = spec->cache,
                                    .poll = spec->poll };

    *ret = (KilnLibsvm) { .least = -1, .largest = -1 };
    if (!KILN_RESERVE(ret->starts, reader.starts_capacity, 1))
        return kiln_error_nomem(err, sizeof(*ret->starts));
    KilnStatus status = kiln_records_open(&files, &ret->records, err);
    if (status >= 0)
        status = read_lines(&reader, err);
    if (status >= 0 && ret->n == 0)
        status = kiln_error_set(err, KILN_E_MISSING, "%s: no row can be used", spec->paths[0]);
    if (status >= 0)
        status = read_queries(&reader, err);
    if (status >= 0)
        status = read_weights(&reader, err);
    kiln_libsvm_row_release(&reader.row);
    kiln_record_release(&reader.record);
    return status;
}

void kiln_libsvm_release(KilnLibsvm *rows)
{
    free(rows->starts);
    free(rows->indices);
    free(rows->values);
    free(rows->labels);
    free(rows->queries);
    free(rows->weights);
    free(rows->lines);
    kiln_records_close(rows->records);
    *rows = (KilnLibsvm) { 0 };
}

void kiln_libsvm_left_out(const KilnLibsvm *rows, KilnSplit split,
                          void (*add)(void *ctx, const KilnOmission *omission), void *ctx)
{
    char what[32];

    snprintf(what, sizeof(what), "%s rows", kiln_split_name(split));
    if (rows->n_skipped > 0)
        add(ctx, &(KilnOmission) { .count = rows->n_skipped,
                                   .what = what,
                                   .example = rows->example,
                                   .reason = rows->reason });
}
