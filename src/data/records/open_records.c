/* Opens files of rows, and finds their columns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/system/file.h"
#include "base/text.h"
#include "data/records/records_internal.h"
#include "data/records/row_scan.h"
#include "kiln/array.h"

const KilnChoice kiln_record_formats[11] = {
    { "auto", KILN_RECORDS_AUTO },
    { "csv", KILN_RECORDS_CSV },
    { "tsv", KILN_RECORDS_TSV },
    { "jsonl", KILN_RECORDS_JSONL },
    { "lines", KILN_RECORDS_LINES },
    { "labeled", KILN_RECORDS_LABELED },
    { "parallel", KILN_RECORDS_PARALLEL },
    { "folders", KILN_RECORDS_FOLDERS },
    { "conll", KILN_RECORDS_CONLL },
    { "label_first", KILN_RECORDS_LABEL_FIRST },
    { 0 },
};

const KilnChoice kiln_text_encodings[4] = {
    { "utf-8", KILN_UTF8 },
    { "latin-1", KILN_LATIN1 },
    { "utf-8-or-latin-1", KILN_UTF8_OR_LATIN1 },
    { 0 },
};

/* ---- Columns -------------------------------------------------------------------------------- */

KilnStatus kiln_records_add_column(KilnRecords *records, const char *name, size_t n, KilnError *err)
{
    char *copy = malloc(n + 1);

    if (copy == NULL ||
        !KILN_RESERVE(records->columns, records->columns_capacity, records->n_columns + 1)) {
        free(copy);
        return kiln_error_nomem(err, n);
    }
    memcpy(copy, name, n);
    copy[n] = '\0';
    records->columns[records->n_columns++] = copy;
    return KILN_OK;
}

static KilnStatus add_columns(KilnRecords *records, const char *const *names, size_t n,
                              KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_records_add_column(records, names[i], strlen(names[i]), err);
    return status;
}

/* ---- Opening ----------------------------------------------------------------------------------
 */

static KilnRowKind kind_of(KilnRecordFormat format)
{
    switch (format) {
    case KILN_RECORDS_CSV:
        return KILN_ROW_QUOTED;
    case KILN_RECORDS_CONLL:
        return KILN_ROW_BLOCK;
    case KILN_RECORDS_LINES:
    case KILN_RECORDS_PARALLEL:
        return KILN_ROW_LINE;
    default:
        return KILN_ROW_NONBLANK;
    }
}

/* The columns of the first row: names of CSV and TSV, keys of JSON, a count of CoNLL. */
static KilnStatus add_header_columns(KilnRecords *records, const KilnRecordsPart *part,
                                     KilnError *err)
{
    KilnRecord record = { 0 };
    size_t first[] = { 0 }, *columns = NULL;
    KilnString text = kiln_part_row(part, 0);
    KilnRow row = { .records = records, .columns = first, .record = &record };
    KilnStatus status = kiln_record_clear(&record, 1, err);

    if (status >= 0)
        status = kiln_row_check_bytes(records, &text, part->index.starts[0], &record, err);
    row.text = text.data;
    row.length = text.length;
    const size_t n = status >= 0 ? kiln_row_split(&row) : 0;
    if (status >= 0 && (columns = calloc(n + 1, sizeof(*columns))) == NULL)
        status = kiln_error_nomem(err, n);
    for (size_t i = 0; i < n && status >= 0; i++)
        columns[i] = i;
    if (status >= 0)
        status = kiln_record_clear(&record, n, err);
    row.columns = columns;
    row.n = n;
    if (status >= 0) {
        (void)kiln_row_split(&row);
        status = kiln_record_finish(&record, n, err);
    }
    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_records_add_column(records, record.fields[i].data, record.fields[i].length,
                                         err);
    free(columns);
    kiln_record_release(&record);
    return status >= 0 ? status : kiln_error_prefix(err, "%s:1: ", part->file.path);
}

/* The same of a header. A column without a name, such as the row numbers that pandas and R write
 * first, is called column1. */
static KilnStatus add_named_columns(KilnRecords *records, const KilnRecordsPart *part,
                                    KilnError *err)
{
    const bool keys = records->format == KILN_RECORDS_JSONL; /* which can be empty */
    KilnStatus status = add_header_columns(records, part, err);

    for (size_t i = 0; i < records->n_columns && status >= 0 && !keys; i++) {
        char name[32];

        if (records->columns[i][0] != '\0')
            continue;
        snprintf(name, sizeof(name), "column%zu", i + 1);
        free(records->columns[i]);
        records->columns[i] = kiln_strdup(name);
        if (records->columns[i] == NULL)
            return kiln_error_nomem(err, sizeof(name));
    }
    return status;
}

/* The first line is no JSON: perhaps the file is one object. */
static KilnStatus check_whole_object(const KilnRecordsPart *part, KilnError *err)
{
    const KilnMappedFile *file = &part->file;
    const size_t size = file->size - file->begin;
    const char *key, *found = "KEY";
    json_t *root = !part->is_list && size <= KILN_RECORDS_ROW_MAX
                       ? json_loadb(file->data + file->begin, size, 0, NULL)
                       : NULL,
           *value;

    if (!json_is_object(root)) {
        json_decref(root);
        return KILN_OK; /* the row's error says it */
    }
    json_object_foreach(root, key, value)
    {
        if (json_is_object(json_array_get(value, 0)))
            found = key;
    }
    kiln_error_set(err, KILN_E_FORMAT,
                   "%s: one JSON object; expected a list of objects, or an object in each line. If "
                   "its rows are in \"%s\": jq '.\"%s\"' %s >rows.json",
                   file->path, found, found, file->path);
    json_decref(root);
    return KILN_E_FORMAT;
}

static KilnStatus add_json_keys(KilnRecords *records, const KilnRecordsPart *part, KilnError *err)
{
    const KilnString row = kiln_json_trimmed(kiln_part_row(part, 0));
    json_t *root = json_loadb(row.data, row.length, JSON_REJECT_DUPLICATES, NULL), *value;
    KilnStatus status = root != NULL ? KILN_OK : check_whole_object(part, err);
    const char *key;

    if (root != NULL && json_is_object(root))
        json_object_foreach(root, key, value)
        {
            if (status >= 0)
                status = kiln_records_add_column(records, key, strlen(key), err);
        }
    json_decref(root);
    return status;
}

static KilnStatus add_number_columns(KilnRecords *records, const KilnRecordsPart *part,
                                     KilnError *err)
{
    const KilnString row = kiln_part_row(part, 0);
    const size_t n = kiln_block_columns(records, row);
    KilnStatus status = KILN_OK;
    char name[24];

    for (size_t i = 0; i < n && status >= 0; i++) {
        snprintf(name, sizeof(name), "%zu", i);
        status = kiln_records_add_column(records, name, strlen(name), err);
    }
    return status;
}

/* The columns, from what the spec says or the first file has. */
static KilnStatus find_columns(KilnRecords *records, const KilnRecordsSpec *spec, bool header,
                               KilnError *err)
{
    static const char *const labeled[] = { "label", "text" };
    const KilnRecordsPart *part = records->parts;

    switch (records->format) {
    case KILN_RECORDS_LINES:
        return add_columns(records, labeled + 1, 1, err);
    case KILN_RECORDS_LABELED:
    case KILN_RECORDS_LABEL_FIRST:
    case KILN_RECORDS_FOLDERS:
        return add_columns(records, labeled, 2, err);
    case KILN_RECORDS_JSONL:
        return part->index.count > 0 ? add_json_keys(records, part, err) : KILN_OK;
    case KILN_RECORDS_PARALLEL:
        for (size_t i = 0; i < spec->n_paths && spec->columns == NULL; i++) {
            const KilnString ending = kiln_path_ending(spec->paths[i]);
            const KilnStatus status = kiln_records_add_column(records, ending.data, ending.length,
                                                              err);

            if (status < 0)
                return status;
        }
        break;
    default:
        break;
    }
    if (spec->columns != NULL && !header)
        return add_columns(records, spec->columns, spec->n_columns, err);
    if (records->format == KILN_RECORDS_PARALLEL)
        return KILN_OK;
    if (part->index.count == 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: is empty", part->file.path);
    return records->format == KILN_RECORDS_CONLL ? add_number_columns(records, part, err)
                                                 : add_named_columns(records, part, err);
}

static void free_columns(KilnRecords *records)
{
    for (size_t i = 0; i < records->n_columns; i++)
        free(records->columns[i]);
    free(records->columns);
}

/* Each file of CSV and TSV begins with the same header. */
static KilnStatus check_header(const KilnRecords *records, const KilnRecordsPart *part,
                               KilnError *err)
{
    KilnRecords found = { .format = records->format,
                          .encoding = records->encoding,
                          .delimiter = records->delimiter };
    KilnStatus status = part->index.count > 0 ? add_named_columns(&found, part, err) : KILN_OK;
    bool same = found.n_columns == records->n_columns;

    for (size_t i = 0; i < found.n_columns && same; i++)
        same = strcmp(found.columns[i], records->columns[i]) == 0;
    free_columns(&found);
    if (status >= 0 && !same)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s:1: its header differs from that of %s",
                                part->file.path, records->parts[0].file.path);
    return status;
}

static KilnStatus check_parallel(const KilnRecords *records, KilnError *err)
{
    const KilnRecordsPart *first = &records->parts[0];

    if (records->n_columns != records->n_parts)
        return kiln_error_set(err, KILN_E_RANGE, "columns: %zu names for %zu parallel files",
                              records->n_columns, records->n_parts);
    for (size_t i = 1; i < records->n_parts; i++)
        if (records->parts[i].index.count != first->index.count)
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s has %lld lines, but %s has %lld; parallel files need the "
                                  "same number",
                                  first->file.path, (long long)first->index.count,
                                  records->parts[i].file.path,
                                  (long long)records->parts[i].index.count);
    return KILN_OK;
}

/* Number the rows of all files. */
static KilnStatus count_rows(KilnRecords *records, bool header, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (records->format == KILN_RECORDS_PARALLEL) {
        records->count = records->parts[0].index.count;
        return check_parallel(records, err);
    }
    for (size_t i = 0; i < records->n_parts && status >= 0; i++) {
        KilnRecordsPart *part = &records->parts[i];

        if (header && i > 0)
            status = check_header(records, part, err);
        part->first_row = records->count;
        part->header = header && part->index.count > 0 ? 1 : 0;
        records->count += part->index.count - part->header;
    }
    return status;
}

static KilnStatus map_files(KilnRecords *records, const KilnRecordsSpec *spec, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < spec->n_paths && status >= 0; i++)
        status = kiln_mapped_file_open(&records->parts[records->n_parts++].file, spec->paths[i],
                                       spec->cache, spec->poll, err);
    return status;
}

static KilnStatus find_rows(KilnRecords *records, const KilnRecordsSpec *spec, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < spec->n_paths && status >= 0; i++) {
        KilnRecordsPart *part = &records->parts[i];

        part->is_list = records->format == KILN_RECORDS_JSONL && kiln_is_json_list(&part->file);
        status = kiln_row_index_open(&part->index, &part->file,
                                     part->is_list ? KILN_ROW_ITEM : kind_of(records->format),
                                     records->delimiter, spec->cache, spec->poll, err);
    }
    return status;
}

/* Whether the first row of CSV or TSV is a header: without names for the columns, or if it has all
 * of them. */
static KilnStatus find_header(const KilnRecords *records, const KilnRecordsSpec *spec, bool *ret,
                              KilnError *err)
{
    KilnRecords found = { .format = records->format,
                          .encoding = records->encoding,
                          .delimiter = records->delimiter };
    const char *there = NULL, *lacking = NULL;

    *ret = (records->format == KILN_RECORDS_CSV || records->format == KILN_RECORDS_TSV) &&
           records->parts[0].index.count > 0;
    if (!*ret || spec->columns == NULL)
        return KILN_OK;
    KilnStatus status = add_header_columns(&found, &records->parts[0], err);
    for (size_t c = 0; c < spec->n_columns && status >= 0; c++) {
        bool is_there = false;

        for (size_t i = 0; i < found.n_columns; i++)
            is_there = is_there || strcmp(found.columns[i], spec->columns[c]) == 0;
        *(is_there ? &there : &lacking) = spec->columns[c];
    }
    free_columns(&found);
    *ret = lacking == NULL;
    if (status >= 0 && there != NULL && lacking != NULL)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s:1: has \"%s\", but not \"%s\", so it may be a header of other "
                                "names or the first row; if it is a header, set columns=null and "
                                "the options for the names of columns; if not, give columns other "
                                "names",
                                records->parts[0].file.path, there, lacking);
    return status;
}

static KilnStatus open_files(KilnRecords *records, const KilnRecordsSpec *spec, KilnError *err)
{
    bool header = false;
    KilnStatus status = map_files(records, spec, err);

    if (status < 0)
        return status;
    if (records->format == KILN_RECORDS_AUTO)
        records->format = kiln_records_infer_format(spec, &records->parts[0].file);
    records->delimiter = spec->delimiter != 0                  ? spec->delimiter
                         : records->format == KILN_RECORDS_CSV ? ','
                         : records->format == KILN_RECORDS_TSV ? '\t'
                                                               : '\0';
    status = find_rows(records, spec, err);
    if (status >= 0)
        status = find_header(records, spec, &header, err);
    if (status >= 0)
        status = find_columns(records, spec, header, err);
    return status >= 0 ? count_rows(records, header, err) : status;
}

static KilnStatus open_folders(KilnRecords *records, const KilnRecordsSpec *spec, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < spec->n_paths && status >= 0; i++)
        status = kiln_records_add_folders(records, spec->paths[i], err);
    return status >= 0 ? find_columns(records, spec, false, err) : status;
}

KilnStatus kiln_records_open(const KilnRecordsSpec *spec, KilnRecords **ret, KilnError *err)
{
    KilnRecords *records = calloc(1, sizeof(*records));
    KilnStatus status = KILN_OK;

    if (records == NULL)
        return kiln_error_nomem(err, sizeof(*records));
    records->format = spec->format;
    if (spec->format == KILN_RECORDS_AUTO && kiln_is_dir(spec->paths[0]))
        records->format = KILN_RECORDS_FOLDERS;
    records->encoding = spec->encoding;
    records->parts = calloc(spec->n_paths, sizeof(*records->parts));
    if (records->parts == NULL)
        status = kiln_error_nomem(err, spec->n_paths * sizeof(*records->parts));
    if (status >= 0)
        status = records->format == KILN_RECORDS_FOLDERS ? open_folders(records, spec, err)
                                                         : open_files(records, spec, err);
    if (status < 0)
        kiln_records_close(records);
    else
        *ret = records;
    return status;
}

KilnRecordFormat kiln_records_format(const KilnRecords *records)
{
    return records->format;
}

bool kiln_records_has_header(const KilnRecords *records)
{
    return records->n_parts > 0 && records->parts[0].header > 0;
}

size_t kiln_records_columns(const KilnRecords *records, const char *const **ret)
{
    *ret = (const char *const *)records->columns;
    return records->n_columns;
}

void kiln_records_close(KilnRecords *records)
{
    if (records == NULL)
        return;
    for (size_t i = 0; i < records->n_parts; i++) {
        kiln_row_index_release(&records->parts[i].index);
        kiln_mapped_file_close(&records->parts[i].file);
    }
    for (int64_t i = 0; i < records->count && records->class_files != NULL; i++)
        free(records->class_files[i].path);
    for (size_t i = 0; i < records->n_class_names; i++)
        free(records->class_names[i]);
    free(records->class_names);
    free(records->class_files);
    free_columns(records);
    free(records->parts);
    free(records);
}
