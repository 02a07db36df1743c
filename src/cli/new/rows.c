/* How files of rows are written: delimiter, header, encoding; and what a sample of them has. */
#include "cli/new/rows.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/utf8.h"
#include "data/records/mapped_file.h"
#include "data/table/cells/number.h"
#include "image/read.h"

enum { SAMPLED = 2000 };

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* How often a character stands in the first line, outside of quotes. */
static size_t count_in_line(KilnString text, char wanted)
{
    bool quoted = false;
    size_t n = 0;

    for (size_t i = 0; i < text.length && (quoted || text.data[i] != '\n'); i++) {
        if (text.data[i] == '"')
            quoted = !quoted;
        n += !quoted && text.data[i] == wanted;
    }
    return n;
}

/* The text after its first line; the text itself if there is no other. */
static KilnString after_line(KilnString text)
{
    const char *end = memchr(text.data, '\n', text.length);

    return end != NULL && end + 1 < text.data + text.length
               ? (KilnString) { end + 1, text.length - (size_t)(end + 1 - text.data) }
               : text;
}

/* Whether the first line has nothing but numbers and blanks. */
static bool is_line_of_numbers(KilnString text)
{
    size_t i = 0;

    while (i < text.length && strchr("0123456789.eE+- \t\r", text.data[i]) != NULL)
        i++;
    return i == text.length || text.data[i] == '\n';
}

/* The character that most likely stands between columns: the usual one, unless another is as often
 * in the first line (numbers may have commas: 1,5;2,5), and in the second one, too. Blanks only
 * between numbers. */
static char find_delimiter(KilnString text, KilnRecordFormat format)
{
    static const char candidates[] = ",;\t|";
    const char usual = format == KILN_RECORDS_TSV ? '\t' : ',';
    const KilnString second = after_line(text);
    const size_t blanks = count_in_line(text, ' ');

    if (count_in_line(text, usual) == 0 && blanks > 0 && count_in_line(second, ' ') == blanks &&
        is_line_of_numbers(second))
        return ' ';
    for (const char *at = candidates; *at != '\0'; at++) {
        const size_t n = count_in_line(text, *at);

        if (*at != usual && n > 0 && n + 1 >= count_in_line(text, usual) &&
            count_in_line(second, *at) == n)
            return *at;
    }
    return usual;
}

/* The end of what is looked at; a character of UTF-8 is not cut. */
static size_t whole_characters(KilnString text, size_t limit)
{
    size_t n = text.length < limit ? text.length : limit;

    while (n > 0 && n < text.length && ((unsigned char)text.data[n] & 0xc0) == 0x80)
        n--;
    return n;
}

/* A first line that is neither header nor row, as some programs write it: numbers of rows and
 * columns. */
static KilnStatus check_first_line(const char *path, KilnString text, char delimiter,
                                   KilnError *err)
{
    const KilnString second = after_line(text), third = after_line(second);
    const size_t n = count_in_line(text, delimiter), next = count_in_line(second, delimiter);

    if (n == next || count_in_line(third, delimiter) != next || next == 0)
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_FORMAT,
        "%s: the first line has %zu columns and the next ones have %zu; remove it, or "
        "make it the header",
        path, n + 1, next + 1);
}

static KilnStatus look_at_bytes(KilnNewRows *rows, size_t *ret_columns, KilnError *err)
{
    enum { LIMIT = 64 << 20 };
    const char *path = rows->files->list[KILN_TRAIN][0];
    KilnMappedFile file = { 0 };
    KilnStatus status = kiln_mapped_file_open(&file, path, NULL, rows->config->poll, err);

    if (status >= 0) {
        const KilnString text = { file.data + file.begin, file.size - file.begin };
        const size_t n = file.size > file.begin ? whole_characters(text, LIMIT) : 0;

        if (n == 0)
            status = kiln_error_set(err, KILN_E_FORMAT, "%s: the file is empty", path);
        else if (memchr(text.data, '\0', n < 4096 ? n : 4096) != NULL)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: has NUL bytes; it is no text file, or one in UTF-16",
                                    path);
        else if (kiln_utf8_check(text.data, n) < n)
            rows->encoding = KILN_UTF8_OR_LATIN1;
        if (status >= 0 && rows->format != KILN_RECORDS_JSONL) {
            const char usual = rows->format == KILN_RECORDS_TSV ? '\t' : ',';
            const char found = find_delimiter(text, rows->format);

            rows->delimiter = found != usual ? found : 0;
            *ret_columns = count_in_line(text, found) + 1;
            status = check_first_line(path, text, found, err);
        }
    }
    kiln_mapped_file_close(&file);
    return status;
}

/* ---- Header ---------------------------------------------------------------------------------- */

static bool is_number(KilnString text)
{
    double number;

    return kiln_number_is(text, '.', &number);
}

static KilnString trimmed(KilnString text)
{
    while (text.length > 0 && text.data[0] == ' ')
        text = (KilnString) { text.data + 1, text.length - 1 };
    while (text.length > 0 && strchr(" \r", text.data[text.length - 1]) != NULL)
        text.length--;
    return text;
}

/* Whether a value ends as image files do. */
static bool is_image(KilnString value)
{
    char ending[16] = "";
    const size_t n = value.length < sizeof(ending) - 1 ? value.length : sizeof(ending) - 1;

    memcpy(ending, value.data + value.length - n, n);
    return kiln_is_image_name(ending);
}

/* Whether a cell of the first row can be the name of a column. */
static bool can_be_name(KilnString cell)
{
    enum { LONGEST = 64 };
    int words = 1;

    for (size_t i = 0; i < cell.length; i++)
        words += cell.data[i] == ' ';
    return cell.length <= LONGEST && words <= 5 && !is_number(cell) && !is_image(cell);
}

static KilnRecordsSpec spec_of(const KilnNewRows *rows, KilnSplit split, const char *const *names,
                               size_t n)
{
    return (KilnRecordsSpec) { .paths = rows->files->list[split],
                               .n_paths = rows->files->n[split],
                               .format = rows->format,
                               .columns = names,
                               .n_columns = n,
                               .delimiter = rows->delimiter,
                               .encoding = rows->encoding,
                               .poll = rows->config->poll };
}

KilnRecordsSpec kiln_new_rows_spec(const KilnNewRows *rows, KilnSplit split)
{
    const bool named = rows->format != KILN_RECORDS_JSONL && !rows->has_header;

    return spec_of(rows, split, named ? rows->names : NULL, named ? rows->n_columns : 0);
}

/* Whether a text of the first row is in its column again: then it is data. */
static KilnStatus first_row_repeats(const KilnRecords *records, const KilnRecord *first, size_t n,
                                    const size_t *columns, bool *ret, KilnError *err)
{
    const int64_t count = kiln_records_count(records);
    KilnRecord record = { 0 };

    *ret = false;
    for (int64_t row = 1; row < count && row < SAMPLED && !*ret; row++) {
        if (kiln_records_read(records, row, columns, n, &record, NULL) < 0)
            continue;
        for (size_t c = 0; c < n; c++) {
            const KilnString a = trimmed(first->fields[c]), b = trimmed(record.fields[c]);

            *ret = *ret || (a.length == b.length && memcmp(a.data, b.data, a.length) == 0);
        }
    }
    (void)err;
    kiln_record_release(&record);
    return KILN_OK;
}

static KilnStatus name_columns(KilnNewRows *rows, size_t n, size_t **ret_numbers, KilnError *err)
{
    rows->names = kiln_arena_alloc(&rows->config->arena, n * sizeof(*rows->names));
    *ret_numbers = calloc(n, sizeof(**ret_numbers));
    if (rows->names == NULL || *ret_numbers == NULL)
        return kiln_error_nomem(err, n * sizeof(*rows->names));
    for (size_t c = 0; c < n; c++) {
        rows->names[c] = kiln_arena_printf(&rows->config->arena, "column%zu", c + 1);
        (*ret_numbers)[c] = c;
        if (rows->names[c] == NULL)
            return kiln_error_nomem(err, n);
    }
    rows->n_columns = n;
    return KILN_OK;
}

/* Whether the first row of CSV or TSV has the names; else they are column1, column2, ... */
static KilnStatus find_header(KilnNewRows *rows, size_t n, KilnError *err)
{
    KilnRecords *records = NULL;
    KilnRecord first = { 0 };
    size_t *numbers = NULL;
    bool repeats = false;
    KilnStatus status = name_columns(rows, n, &numbers, err);

    if (status >= 0) {
        KilnRecordsSpec spec = spec_of(rows, KILN_TRAIN, rows->names, n);

        spec.n_paths = 1; /* other files repeat a header, too */
        status = kiln_records_open(&spec, &records, err);
    }
    if (status >= 0 && kiln_records_count(records) == 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: no rows",
                                rows->files->list[KILN_TRAIN][0]);
    if (status >= 0)
        status = kiln_records_read(records, 0, numbers, n, &first, err);
    rows->has_header = status >= 0;
    /* Row numbers, which pandas and R write first, have no name. */
    for (size_t c = 0; c < n && rows->has_header; c++) {
        const KilnString cell = trimmed(first.fields[c]);

        rows->has_header = can_be_name(cell) && (cell.length > 0 || (c == 0 && n > 1));
    }
    if (rows->has_header) {
        status = first_row_repeats(records, &first, n, numbers, &repeats, err);
        rows->has_header = !repeats;
    }
    kiln_record_release(&first);
    kiln_records_close(records);
    free(numbers);
    return status;
}

/* ---- A sample of the rows ---------------------------------------------------------------------
 */

/* A number such as -1,5. */
static bool is_comma_number(KilnString text)
{
    double number;

    return text.length > 0 && memchr(text.data, ',', text.length) != NULL &&
           kiln_number_is(text, ',', &number);
}

bool kiln_new_is_named(const char *name, const char *const *names)
{
    while (*names != NULL && strcasecmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

static void look_at_value(KilnNewRows *rows, size_t c, KilnString value)
{
    KilnNewColumn *column = &rows->columns[c];

    value = trimmed(value);
    if (value.length == 0)
        return;
    if (column->present++ == 0)
        column->example = kiln_arena_strndup(&rows->config->arena, value.data,
                                             value.length < 80 ? value.length : 80);
    column->words += 1.0;
    for (size_t i = 0; i < value.length; i++)
        column->words += value.data[i] == ' ';
    column->commas += is_comma_number(value);
    column->lists += memchr(value.data, KILN_RECORDS_ITEM_END, value.length) != NULL;
    column->images += is_image(value);
}

static KilnStatus sample_rows(KilnNewRows *rows, const KilnRecords *records, KilnError *err)
{
    const int64_t every = rows->n / SAMPLED + 1;
    size_t *numbers = calloc(rows->n_columns, sizeof(*numbers));
    KilnRecord record = { 0 };
    KilnStatus status = numbers != NULL ? KILN_OK : kiln_error_nomem(err, rows->n_columns);

    for (size_t c = 0; c < rows->n_columns && status >= 0; c++) {
        numbers[c] = c;
        rows->columns[c].name = rows->names[c];
    }
    for (int64_t i = 0; i < rows->n && status >= 0; i += every) {
        status = kiln_poll_check(rows->config->poll, "reading rows", i, rows->n, err);
        if (status < 0 ||
            kiln_records_read(records, i, numbers, rows->n_columns, &record, NULL) < 0)
            continue; /* bad rows are reported when all are read */
        for (size_t c = 0; c < rows->n_columns; c++)
            look_at_value(rows, c, record.fields[c]);
    }
    for (size_t c = 0; c < rows->n_columns && status >= 0; c++) {
        KilnNewColumn *column = &rows->columns[c];
        const double present = column->present > 0 ? (double)column->present : 1.0;

        column->words /= present;
        column->lists /= present;
        column->images /= present;
        column->commas /= present;
        rows->decimal_comma = rows->decimal_comma || (rows->delimiter != 0 && column->commas > 0.5);
    }
    kiln_record_release(&record);
    free(numbers);
    return status;
}

static KilnStatus copy_names(KilnNewRows *rows, const KilnRecords *records, KilnError *err)
{
    const char *const *names;

    rows->n_columns = kiln_records_columns(records, &names);
    rows->names = kiln_arena_alloc(&rows->config->arena, rows->n_columns * sizeof(*rows->names));
    for (size_t c = 0; c < rows->n_columns && rows->names != NULL; c++)
        if ((rows->names[c] = kiln_arena_strdup(&rows->config->arena, names[c])) == NULL)
            return kiln_error_nomem(err, strlen(names[c]));
    return rows->names != NULL ? KILN_OK : kiln_error_nomem(err, rows->n_columns);
}

KilnStatus kiln_new_rows_open(KilnNewRows *rows, KilnError *err)
{
    KilnRecords *records = NULL;
    size_t n = 0;
    KilnStatus status = look_at_bytes(rows, &n, err);

    if (status >= 0 && rows->format != KILN_RECORDS_JSONL)
        status = find_header(rows, n, err);
    if (status >= 0) {
        const KilnRecordsSpec spec = kiln_new_rows_spec(rows, KILN_TRAIN);

        status = kiln_records_open(&spec, &records, err);
    }
    if (status >= 0)
        status = copy_names(rows, records, err);
    if (status >= 0) {
        rows->n = kiln_records_count(records);
        rows->columns = kiln_arena_alloc(&rows->config->arena,
                                         (rows->n_columns + 1) * sizeof(*rows->columns));
        if (rows->columns == NULL)
            status = kiln_error_nomem(err, rows->n_columns * sizeof(*rows->columns));
        else
            memset(rows->columns, 0, (rows->n_columns + 1) * sizeof(*rows->columns));
    }
    if (status >= 0 && rows->n < 4)
        status = kiln_error_set(
            err, KILN_E_FORMAT, "%s: %lld row%s too few to train and validate on",
            rows->files->list[KILN_TRAIN][0], (long long)rows->n, rows->n == 1 ? " is" : "s are");
    if (status >= 0)
        status = sample_rows(rows, records, err);
    kiln_records_close(records);
    return status;
}

/* ---- The table ------------------------------------------------------------------------------- */

/* The default of datamodule table's missing_values. */
static const char *const missing_values[] = { "?",   "NA",   "N/A",  "n/a",  "nan", "NaN",
                                              "NAN", "null", "NULL", "None", "#N/A" };

KilnStatus kiln_new_rows_read(KilnNewRows *rows, const char *target, KilnError *err)
{
    const KilnDataContext context = { .stage = KILN_STAGE_FIT, .poll = rows->config->poll };
    const bool named = rows->query == NULL && rows->format != KILN_RECORDS_JSONL &&
                       !rows->has_header;

    rows->paths = (KilnTextFiles) { .train = (char **)rows->files->list[KILN_TRAIN],
                                    .train_count = rows->files->n[KILN_TRAIN] };
    rows->delimiter_text[0] = rows->delimiter;
    rows->source = (KilnTableSource) {
        .files = &rows->paths,
        .format = rows->query != NULL ? KILN_RECORDS_AUTO : rows->format,
        .names = named ? rows->names : NULL,
        .n_names = named ? rows->n_columns : 0,
        .delimiter = rows->delimiter != 0 ? rows->delimiter_text : NULL,
        .decimal = rows->decimal_comma ? "," : ".",
        .encoding = rows->encoding,
        .query = rows->query,
        .on_error = KILN_ON_ERROR_SKIP,
        .missing_values = missing_values,
        .n_missing_values = KILN_COUNT(missing_values),
        .target = target,
        .target_type = rows->target_type,
        .kinds = rows->kinds,
        .n_kinds = rows->n_kinds,
        .scaling = KILN_SCALING_NONE,
    };

    kiln_table_data_free(rows->table);
    rows->table = NULL;
    return kiln_table_data_open(&rows->source, &context, &rows->table, err);
}

void kiln_new_rows_close(KilnNewRows *rows)
{
    kiln_table_data_free(rows->table);
}

void kiln_new_rows_set(const KilnNewRows *rows, const char *key)
{
    KilnNewConfig *config = rows->config;
    KilnText names = { 0 };

    if (rows->query != NULL)
        kiln_new_set_text(config, KILN_NEW_DATA, "query", rows->query);
    if (rows->says_format)
        kiln_new_set(config, KILN_NEW_DATA, "format", "%s", kiln_record_formats[rows->format].name);
    if (rows->delimiter != 0) {
        const char delimiter[] = { rows->delimiter, '\0' };

        kiln_new_set_text(config, KILN_NEW_DATA, "delimiter", delimiter);
    }
    if (rows->decimal_comma)
        kiln_new_set(config, KILN_NEW_DATA, "decimal", "','");
    if (rows->encoding != KILN_UTF8) {
        kiln_new_set(config, KILN_NEW_DATA, "encoding", "utf-8-or-latin-1");
        kiln_new_say_odd(config, "some rows are not UTF-8; they are read as latin-1");
    }
    if (rows->query != NULL || rows->format == KILN_RECORDS_JSONL || rows->has_header)
        return;
    for (size_t c = 0; c < rows->n_columns; c++) {
        kiln_text_append(&names, c > 0 ? ", " : "");
        kiln_new_put_text(&names, rows->names[c]);
    }
    kiln_new_set(config, KILN_NEW_DATA, key, "[%s]  # the first row is no header",
                 names.data != NULL ? names.data : "");
    kiln_new_say(config, "columns",
                 "the first row is taken for data, not for names; the names are "
                 "made up, change them in the config");
    kiln_text_release(&names);
}
