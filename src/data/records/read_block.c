/* Rows of CoNLL files: a token per line with tags beside it. */
#include <string.h>

#include "data/records/records_internal.h"

/* A line of the block. */
typedef struct Line {
    const char *text;
    size_t length;
    char delimiter; /* 0: runs of spaces */
} Line;

static bool is_blank(const Line *line)
{
    for (size_t i = 0; i < line->length; i++)
        if (line->text[i] != ' ' && line->text[i] != '\t')
            return false;
    return true;
}

/* The next line of *at; false: the block has ended. */
static bool next_line(const KilnRow *row, size_t *at, Line *ret)
{
    if (*at >= row->length)
        return false;
    const char *text = row->text + *at, *newline = memchr(text, '\n', row->length - *at);
    size_t length = newline != NULL ? (size_t)(newline - text) : row->length - *at;
    char delimiter = row->records->delimiter;

    *at += length + 1;
    length -= length > 0 && text[length - 1] == '\r';
    if (delimiter == 0 && memchr(text, '\t', length) != NULL)
        delimiter = '\t';
    *ret = (Line) { text, length, delimiter == ' ' ? 0 : delimiter };
    return !is_blank(ret);
}

/* The field at *at; false: there is none left. */
static bool next_field(const Line *line, size_t *at, KilnString *ret)
{
    size_t begin = *at, end;

    if (line->delimiter == 0)
        while (begin < line->length && line->text[begin] == ' ')
            begin++;
    if (begin > line->length || (line->delimiter == 0 && begin == line->length))
        return false;
    const char *found = memchr(line->text + begin, line->delimiter == 0 ? ' ' : line->delimiter,
                               line->length - begin);
    end = found != NULL ? (size_t)(found - line->text) : line->length;
    *ret = (KilnString) { line->text + begin, end - begin };
    *at = end + 1;
    return true;
}

static size_t count_fields(const Line *line)
{
    KilnString field;
    size_t at = 0, n = 0;

    while (next_field(line, &at, &field))
        n++;
    return n;
}

static KilnStatus check_line(const KilnRow *row, const Line *line, size_t expected, KilnError *err)
{
    KilnString field;
    const size_t n = count_fields(line);
    size_t at = 0;

    if (n != expected)
        return kiln_error_set(err, KILN_E_FORMAT, "the line has %zu column%s; expected %zu", n,
                              n == 1 ? "" : "s", expected);
    for (size_t column = 0; next_field(line, &at, &field); column++) {
        if (field.length == 0)
            return kiln_error_set(err, KILN_E_FORMAT, "column \"%s\" is empty",
                                  row->records->columns[column]);
        if (memchr(field.data, KILN_RECORDS_ITEM_END, field.length) != NULL)
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "column \"%s\" has the character U+001F, which ends items",
                                  row->records->columns[column]);
    }
    return KILN_OK;
}

/* Give a column of all lines as a list. */
static void give_column(KilnRow *row, size_t column)
{
    Line line;
    size_t at = 0;

    kiln_row_begin(row, column);
    while (next_line(row, &at, &line)) {
        KilnString field = { 0 };
        size_t in_line = 0;

        for (size_t i = 0; i <= column; i++)
            (void)next_field(&line, &in_line, &field);
        kiln_text_append_n(&row->record->text, field.data, field.length);
        kiln_text_char(&row->record->text, KILN_RECORDS_ITEM_END);
    }
    kiln_row_end(row, column);
}

KilnStatus kiln_row_read_block(KilnRow *row, KilnError *err)
{
    Line line;
    size_t at = 0;
    KilnStatus status;

    for (row->line_error = 0; next_line(row, &at, &line); row->line_error++)
        if ((status = check_line(row, &line, row->records->n_columns, err)) < 0)
            return status;
    for (size_t column = 0; column < row->records->n_columns; column++)
        for (size_t i = 0; i < row->n; i++)
            if (row->columns[i] == column) {
                give_column(row, column);
                break;
            }
    return KILN_OK;
}

size_t kiln_block_columns(const KilnRecords *records, KilnString text)
{
    const KilnRow row = { .records = records, .text = text.data, .length = text.length };
    Line line;
    size_t at = 0;

    return next_line(&row, &at, &line) ? count_fields(&line) : 0;
}
