/* From the bytes of a row to its columns, for formats whose rows are lines. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "data/records/records_internal.h"

/* While a row is read, the data of a field is its offset in record->text, which may move;
 * kiln_records_read makes pointers of them. */
void kiln_row_begin(KilnRow *row, size_t column)
{
    for (size_t i = 0; i < row->n; i++)
        if (row->columns[i] == column)
            row->record->fields[i].data = (const char *)(uintptr_t)row->record->text.length;
}

void kiln_row_end(KilnRow *row, size_t column)
{
    for (size_t i = 0; i < row->n; i++)
        if (row->columns[i] == column)
            row->record->fields[i].length = row->record->text.length -
                                            (size_t)(uintptr_t)row->record->fields[i].data;
}

static bool is_wanted(const KilnRow *row, size_t column)
{
    for (size_t i = 0; i < row->n; i++)
        if (row->columns[i] == column)
            return true;
    return false;
}

static void give(KilnRow *row, size_t column, const char *text, size_t n)
{
    kiln_row_begin(row, column);
    if (is_wanted(row, column))
        kiln_text_append_n(&row->record->text, text, n);
    kiln_row_end(row, column);
}

/* ---- CSV and TSV ---------------------------------------------------------------------------- */

/* Append the quoted field at `at`, without its quotes; returns where it ends. */
static size_t append_quoted(KilnRow *row, size_t at, bool wanted)
{
    const char *text = row->text;

    for (at++; at < row->length; at++) {
        const char *quote = memchr(text + at, '"', row->length - at);
        const size_t end = quote != NULL ? (size_t)(quote - text) : row->length;
        const bool doubled = end + 1 < row->length && text[end + 1] == '"';

        if (wanted)
            kiln_text_append_n(&row->record->text, text + at, end - at + doubled);
        if (!doubled)
            return end < row->length ? end + 1 : end;
        at = end + 1;
    }
    return row->length;
}

/* The end of the field that continues at `at` without quotes. */
static size_t plain_end(const KilnRow *row, size_t at)
{
    while (at < row->length && row->text[at] != row->records->delimiter && row->text[at] != '\n' &&
           !(row->text[at] == '\r' && (at + 1 == row->length || row->text[at + 1] == '\n')))
        at++;
    return at;
}

size_t kiln_row_split(KilnRow *row)
{
    const KilnRecords *records = row->records;
    size_t at = 0, column = 0;

    for (;; at++) {
        const bool wanted = is_wanted(row, column);

        kiln_row_begin(row, column);
        if (records->format == KILN_RECORDS_CSV && at < row->length && row->text[at] == '"')
            at = append_quoted(row, at, wanted);
        const size_t end = plain_end(row, at);
        if (wanted)
            kiln_text_append_n(&row->record->text, row->text + at, end - at);
        kiln_row_end(row, column);
        column++;
        at = end;
        if (at >= row->length || row->text[at] != records->delimiter)
            return column;
    }
}

KilnStatus kiln_row_read_delimited(KilnRow *row, KilnError *err)
{
    const size_t n = kiln_row_split(row);

    if (n != row->records->n_columns)
        return kiln_error_set(err, KILN_E_FORMAT, "the row has %zu column%s; expected %zu", n,
                              n == 1 ? "" : "s", row->records->n_columns);
    return KILN_OK;
}

/* ---- JSON lines -------------------------------------------------------------------------------
 */

static KilnStatus append_json(KilnRow *row, const json_t *value, const char *key, KilnError *err)
{
    KilnText *text = &row->record->text;

    if (json_is_string(value)) {
        kiln_text_append_n(text, json_string_value(value), json_string_length(value));
        return KILN_OK;
    }
    if (json_is_number(value) || json_is_boolean(value)) {
        char *number = json_dumps(value, JSON_ENCODE_ANY);

        if (number == NULL)
            return kiln_error_nomem(err, 64);
        kiln_text_append(text, number);
        free(number);
        return KILN_OK;
    }
    return kiln_error_set(err, KILN_E_TYPE, "\"%s\" is %s; expected a text, a number or a list",
                          key, json_is_object(value) ? "an object" : "a list in a list");
}

static KilnStatus append_list(KilnRow *row, const json_t *list, const char *key, KilnError *err)
{
    KilnStatus status = KILN_OK;
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const size_t before = row->record->text.length;

        status = append_json(row, item, key, err);
        if (status >= 0 && row->record->text.length > before &&
            memchr(row->record->text.data + before, KILN_RECORDS_ITEM_END,
                   row->record->text.length - before) != NULL)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "an item of \"%s\" has the character U+001F, which ends items",
                                    key);
        if (status < 0)
            break;
        kiln_text_char(&row->record->text, KILN_RECORDS_ITEM_END);
    }
    return status;
}

static KilnStatus give_member(KilnRow *row, const json_t *root, size_t column, KilnError *err)
{
    const char *key = row->records->columns[column];
    const json_t *value = json_object_get(root, key);
    KilnStatus status;

    if (value == NULL || json_is_null(value))
        return kiln_error_set(err, KILN_E_MISSING, "\"%s\" is missing", key);
    kiln_row_begin(row, column);
    status = json_is_array(value) ? append_list(row, value, key, err)
                                  : append_json(row, value, key, err);
    kiln_row_end(row, column);
    return status;
}

KilnString kiln_json_trimmed(KilnString text)
{
    while (text.length > 0 && strchr(" \t\r\n", text.data[text.length - 1]) != NULL)
        text.length--;
    return text;
}

KilnStatus kiln_row_read_json(KilnRow *row, KilnError *err)
{
    const KilnString text = kiln_json_trimmed((KilnString) { row->text, row->length });
    json_error_t why;
    json_t *root = json_loadb(text.data, text.length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                              &why);
    KilnStatus status = KILN_OK;

    if (root == NULL)
        row->line_error = why.line > 0 ? why.line - 1 : 0;
    if (root == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "not JSON: %s, in column %d", why.text,
                              why.column);
    if (!json_is_object(root))
        status = kiln_error_set(err, KILN_E_FORMAT, "not a JSON object; expected {\"%s\": ...}",
                                row->records->n_columns > 0 ? row->records->columns[0] : "text");
    for (size_t i = 0; i < row->n && status >= 0; i++)
        status = give_member(row, root, row->columns[i], err);
    json_decref(root);
    return status;
}

/* ---- Lines that begin with labels ---------------------------------------------------------------
 */

enum { LABEL_COLUMN, TEXT_COLUMN };

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_spaces(const KilnRow *row, size_t at)
{
    while (at < row->length && is_space(row->text[at]))
        at++;
    return at;
}

static size_t word_end(const KilnRow *row, size_t at)
{
    while (at < row->length && !is_space(row->text[at]))
        at++;
    return at;
}

static bool has_prefix(const KilnRow *row, size_t at)
{
    const size_t n = sizeof(KILN_LABEL_PREFIX) - 1;

    return row->length - at >= n && memcmp(row->text + at, KILN_LABEL_PREFIX, n) == 0;
}

KilnStatus kiln_row_read_labeled(KilnRow *row, KilnError *err)
{
    const bool wanted = is_wanted(row, LABEL_COLUMN);
    size_t at = skip_spaces(row, 0), end = word_end(row, at);

    if (row->records->format == KILN_RECORDS_LABELED && !has_prefix(row, at))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "the line does not begin with " KILN_LABEL_PREFIX
                              "; format=label_first takes the first word of lines as their label");
    if (row->records->format == KILN_RECORDS_LABEL_FIRST) {
        give(row, LABEL_COLUMN, row->text + at, end - at);
    } else {
        kiln_row_begin(row, LABEL_COLUMN);
        for (; has_prefix(row, at); at = skip_spaces(row, end)) {
            end = word_end(row, at);
            if (!wanted)
                continue;
            kiln_text_append_n(&row->record->text, row->text + at + sizeof(KILN_LABEL_PREFIX) - 1,
                               end - at - (sizeof(KILN_LABEL_PREFIX) - 1));
            kiln_text_char(&row->record->text, KILN_RECORDS_ITEM_END);
        }
        kiln_row_end(row, LABEL_COLUMN);
    }
    at = skip_spaces(row, end);
    end = row->length;
    while (end > at && is_space(row->text[end - 1]))
        end--;
    give(row, TEXT_COLUMN, row->text + at, end - at);
    return KILN_OK;
}
