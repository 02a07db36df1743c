/* Reads rows of open records by number. */
#include "kiln/files/text_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/records/records_internal.h"
#include "data/records/row_scan.h"
#include "kiln/array.h"

KilnString kiln_part_row(const KilnRecordsPart *part, int64_t i)
{
    const int64_t *starts = part->index.starts;
    const KilnString row = { part->file.data + starts[i], (size_t)(starts[i + 1] - starts[i]) };

    return part->is_list ? kiln_item_text(row) : row;
}

/* ISO-8859-1 has the first 256 code points. */
static KilnString convert_latin1(KilnString text, KilnText *to)
{
    kiln_text_clear(to);
    for (size_t i = 0; i < text.length; i++) {
        const unsigned char c = (unsigned char)text.data[i];

        if (c >= 0x80)
            kiln_text_char(to, (char)(0xc0 | c >> 6));
        kiln_text_char(to, (char)(c < 0x80 ? c : (0x80 | (c & 0x3f))));
    }
    return (KilnString) { to->data, to->length };
}

KilnStatus kiln_row_check_bytes(const KilnRecords *records, KilnString *text, int64_t offset,
                                KilnRecord *record, KilnError *err)
{
    if (text->length > KILN_RECORDS_ROW_MAX)
        return kiln_error_set(err, KILN_E_FORMAT, "the row has %zu bytes; at most %d are read",
                              text->length, KILN_RECORDS_ROW_MAX);
    const char *nul = text->length > 0 ? memchr(text->data, '\0', text->length) : NULL;
    if (nul != NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "byte %lld of the file is NUL; expected text",
                              (long long)(offset + (nul - text->data)));
    const size_t good = records->encoding != KILN_LATIN1 ? kiln_utf8_check(text->data, text->length)
                                                         : 0;
    if (records->encoding == KILN_LATIN1 ||
        (records->encoding == KILN_UTF8_OR_LATIN1 && good < text->length)) {
        *text = convert_latin1(*text, &record->converted);
        return record->converted.failed ? kiln_error_nomem(err, text->length) : KILN_OK;
    }
    if (good < text->length)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "byte %lld of the file (0x%02x) is not UTF-8; convert the file, or "
                              "set encoding=latin-1 if it is ISO-8859-1",
                              (long long)(offset + (int64_t)good), (unsigned char)text->data[good]);
    return KILN_OK;
}

KilnStatus kiln_record_clear(KilnRecord *record, size_t n, KilnError *err)
{
    kiln_text_clear(&record->text);
    kiln_text_append(&record->text, "");
    if (!KILN_RESERVE(record->fields, record->capacity, n + 1) || record->text.failed)
        return kiln_error_nomem(err, n * sizeof(*record->fields));
    memset(record->fields, 0, (n + 1) * sizeof(*record->fields));
    return KILN_OK;
}

KilnStatus kiln_record_finish(KilnRecord *record, size_t n, KilnError *err)
{
    if (record->text.failed)
        return kiln_error_nomem(err, record->text.capacity);
    for (size_t i = 0; i < n; i++)
        record->fields[i].data = record->text.data + (size_t)(uintptr_t)record->fields[i].data;
    return KILN_OK;
}

/* A whole line, without its end. */
static void give_line(KilnRow *row, size_t column)
{
    const char *newline = row->length > 0 ? memchr(row->text, '\n', row->length) : NULL;
    size_t n = newline != NULL ? (size_t)(newline - row->text) : row->length;

    n -= n > 0 && row->text[n - 1] == '\r';
    kiln_row_begin(row, column);
    kiln_text_append_n(&row->record->text, row->text, n);
    kiln_row_end(row, column);
}

static KilnStatus read_format(KilnRow *row, KilnError *err)
{
    switch (row->records->format) {
    case KILN_RECORDS_JSONL:
        return kiln_row_read_json(row, err);
    case KILN_RECORDS_LABELED:
    case KILN_RECORDS_LABEL_FIRST:
        return kiln_row_read_labeled(row, err);
    case KILN_RECORDS_CONLL:
        return kiln_row_read_block(row, err);
    case KILN_RECORDS_LINES:
        give_line(row, 0);
        return KILN_OK;
    default:
        return kiln_row_read_delimited(row, err);
    }
}

/* Read wanted columns of row i of a part, with the place in messages. */
static KilnStatus read_part_row(const KilnRecordsPart *part, int64_t i, KilnRow *row,
                                KilnError *err)
{
    KilnString text = kiln_part_row(part, i);
    KilnStatus status = kiln_row_check_bytes(row->records, &text, part->index.starts[i],
                                             row->record, err);

    if (status >= 0) {
        row->text = text.data;
        row->length = text.length;
        status = read_format(row, err);
    }
    return status >= 0
               ? status
               : kiln_error_prefix(err, "%s:%lld: ", part->file.path,
                                   (long long)(kiln_row_index_line(&part->index, &part->file, i) +
                                               row->line_error));
}

static const KilnRecordsPart *find_part(const KilnRecords *records, int64_t row)
{
    size_t low = 0, high = records->n_parts;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (records->parts[middle].first_row <= row)
            low = middle;
        else
            high = middle;
    }
    return &records->parts[low];
}

/* Line `row` of each wanted file. */
static KilnStatus read_parallel(const KilnRecords *records, int64_t row, const size_t *columns,
                                size_t n, KilnRecord *record, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++) {
        const KilnRecordsPart *part = &records->parts[columns[i]];
        KilnString text = kiln_part_row(part, row);

        status = kiln_row_check_bytes(records, &text, part->index.starts[row], record, err);
        if (status < 0) {
            (void)kiln_error_prefix(err, "%s:%lld: ", part->file.path, (long long)row + 1);
            break;
        }
        KilnRow line = { .text = text.data,
                         .length = text.length,
                         .columns = &columns[i],
                         .n = 1,
                         .record = &(KilnRecord) { .fields = &record->fields[i],
                                                   .text = record->text } };
        give_line(&line, columns[i]);
        record->text = line.record->text;
    }
    return status;
}

enum { FOLDER_LABEL, FOLDER_TEXT };

static KilnStatus read_class_file(const KilnRecords *records, int64_t row, const size_t *columns,
                                  size_t n, KilnRecord *record, KilnError *err)
{
    const KilnClassFile *file = &records->class_files[row];
    KilnRow all = { .records = records, .columns = columns, .n = n, .record = record };
    char *content = NULL;
    size_t size = 0;
    KilnStatus status = kiln_file_read(file->path, KILN_RECORDS_ROW_MAX, &content, &size, err);

    if (status < 0)
        return status;
    KilnString text = { content, size };
    if (size >= 3 && memcmp(content, "\xef\xbb\xbf", 3) == 0)
        text = (KilnString) { content + 3, size - 3 };
    status = kiln_row_check_bytes(records, &text, text.data - content, record, err);
    if (status < 0) {
        (void)kiln_error_prefix(err, "%s: ", file->path);
    } else {
        kiln_row_begin(&all, FOLDER_LABEL);
        kiln_text_append(&record->text, file->class_name);
        kiln_row_end(&all, FOLDER_LABEL);
        kiln_row_begin(&all, FOLDER_TEXT);
        kiln_text_append_n(&record->text, text.data, text.length);
        kiln_row_end(&all, FOLDER_TEXT);
    }
    free(content);
    return status;
}

KilnStatus kiln_records_read(const KilnRecords *records, int64_t row, const size_t *columns,
                             size_t n, KilnRecord *ret, KilnError *err)
{
    const char *path; /* of parallel files the first */
    KilnStatus status = kiln_record_clear(ret, n, err);

    if (status < 0)
        return status;
    if (records->format == KILN_RECORDS_FOLDERS) {
        path = records->class_files[row].path;
        status = read_class_file(records, row, columns, n, ret, err);
    } else if (records->format == KILN_RECORDS_PARALLEL) {
        path = records->parts[0].file.path;
        status = read_parallel(records, row, columns, n, ret, err);
    } else {
        const KilnRecordsPart *part = find_part(records, row);
        KilnRow wanted = { .records = records, .columns = columns, .n = n, .record = ret };

        path = part->file.path;
        status = read_part_row(part, row - part->first_row + part->header, &wanted, err);
    }
    if (status >= 0)
        status = kiln_record_finish(ret, n, err);
    if (status >= 0)
        ret->fields[n] = (KilnString) { path, strlen(path) };
    return status;
}

void kiln_record_append_path(const KilnRecord *record, size_t n, size_t column, const char *root,
                             KilnText *to)
{
    const KilnString path = record->fields[column], file = record->fields[n];
    size_t folder = file.length;

    while (folder > 0 && file.data[folder - 1] != '/')
        folder--;
    if (path.length == 0 || path.data[0] != '/') {
        if (root != NULL)
            kiln_text_printf(to, "%s/", root);
        else
            kiln_text_append_n(to, file.data, folder);
    }
    kiln_text_append_n(to, path.data, path.length);
}

void kiln_record_release(KilnRecord *record)
{
    free(record->fields);
    kiln_text_release(&record->text);
    kiln_text_release(&record->converted);
    *record = (KilnRecord) { 0 };
}

bool kiln_record_next_item(KilnString *list, KilnString *ret)
{
    if (list->length == 0)
        return false;
    const char *end = memchr(list->data, KILN_RECORDS_ITEM_END, list->length);
    const size_t n = end != NULL ? (size_t)(end - list->data) : list->length;
    const size_t used = end != NULL ? n + 1 : n;

    *ret = (KilnString) { list->data, n };
    *list = (KilnString) { list->data + used, list->length - used };
    return true;
}

const char *kiln_records_location(const KilnRecords *records, int64_t row, char *ret, size_t size)
{
    if (records->format == KILN_RECORDS_FOLDERS) {
        snprintf(ret, size, "%s", records->class_files[row].path);
        return ret;
    }
    const bool parallel = records->format == KILN_RECORDS_PARALLEL;
    const KilnRecordsPart *part = parallel ? &records->parts[0] : find_part(records, row);
    const int64_t i = parallel ? row : row - part->first_row + part->header;

    snprintf(ret, size, "%s:%lld", part->file.path,
             (long long)kiln_row_index_line(&part->index, &part->file, i));
    return ret;
}

int64_t kiln_records_count(const KilnRecords *records)
{
    return records->count;
}

KilnStatus kiln_records_column(const KilnRecords *records, const char *name, size_t *ret,
                               KilnError *err)
{
    const char *const *names = (const char *const *)records->columns;
    const char *nearest = kiln_nearest(name, names, records->n_columns);
    KilnText all = { 0 };
    size_t n = 0;

    for (size_t i = records->n_columns; i-- > 0;)
        if (strcmp(names[i], name) == 0) {
            *ret = i;
            n++;
        }
    if (n == 1)
        return KILN_OK;
    if (n > 1)
        return kiln_error_set(err, KILN_E_KEY,
                              "%s:1: two columns are called \"%s\"; rename one of them",
                              records->n_parts > 0 ? records->parts[0].file.path : "folders", name);
    kiln_text_printf(&all, "%s: no column \"%s\"",
                     records->n_parts > 0 ? records->parts[0].file.path : "folders", name);
    if (nearest != NULL)
        kiln_text_printf(&all, " (did you mean \"%s\"?)", nearest);
    kiln_text_append(&all, "; columns:");
    for (size_t i = 0; i < records->n_columns; i++)
        kiln_text_printf(&all, "%s %s", i > 0 ? "," : "", names[i]);
    return kiln_text_to_error(&all, KILN_E_KEY, err);
}
