/* Reads rows of open records as cells, in all threads. Rows of CSV and TSV are split in place. */
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/min.h"
#include "base/system/machine.h"
#include "base/system/threads.h"
#include "base/utf8.h"
#include "data/records/records_internal.h"
#include "data/table/table_internal.h"

/* Rows of a chunk, so that it is still in the cache when it is read after its bytes were checked.
 */
enum { CHUNK = 1 << 10, MAX_THREADS = 64 };

typedef struct Job Job;

/* Short texts that were seen in a column, and their cells. */
enum { SHORT = 16, MEMO = 64 };
typedef struct Memo {
    struct {
        uint64_t text[SHORT / 8]; /* with zeros after it */
        KilnCell cell;
        bool used;
    } slots[MEMO];
} Memo;

typedef struct Worker {
    Job *job;
    int number;
    KilnDictionary *dictionaries; /* of each column, with codes of this thread */
    Memo *memos;                  /* of each column */
    KilnText field;               /* a quoted field without its quotes */
    KilnRecord record;
    KilnStatus status;
    KilnError err;
} Worker;

struct Job {
    const KilnCellReader *reader;
    KilnCells *cells;
    uint8_t *bad;
    atomic_int_least64_t next;
    atomic_bool failed;
    int *owners;        /* of each chunk: the thread that read it */
    KilnCell **numbers; /* of each column of the records: its cells if it may have numbers */
    Worker *workers;
    int n_workers;
};

/* ---- Cells of a row -------------------------------------------------------------------------- */

/* Store a text in column `column` of a row; false: memory is out. */
static bool put_text(Worker *worker, size_t column, int64_t row, KilnString text)
{
    const KilnCellReader *reader = worker->job->reader;

    return kiln_cell_of_text(reader->rules, reader->columns[column].as_text,
                             &worker->dictionaries[column], text,
                             &worker->job->cells->cells[column][row]);
}

/* The same, but texts that were seen before are found by their bytes. */
static bool put_short_text(Worker *worker, size_t column, int64_t row, KilnString text,
                           const char *limit)
{
    static const unsigned char keep[2 * SHORT] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    uint64_t key[SHORT / 8], mask[SHORT / 8];

    if (text.length == 0 || text.length > SHORT || limit - text.data < SHORT)
        return put_text(worker, column, row, text);
    memcpy(key, text.data, SHORT);
    memcpy(mask, keep + SHORT - text.length, SHORT);
    key[0] &= mask[0];
    key[1] &= mask[1];
    const uint64_t hash = (key[0] ^ key[1] * 31) * UINT64_C(0x9e3779b97f4a7c15);
    Memo *memo = &worker->memos[column];
    KilnCell *cell = &worker->job->cells->cells[column][row];
    const size_t slot = hash >> 58;

    if (memo->slots[slot].used && memcmp(memo->slots[slot].text, key, sizeof(key)) == 0) {
        *cell = memo->slots[slot].cell;
        return true;
    }
    if (!put_text(worker, column, row, text))
        return false;
    memcpy(memo->slots[slot].text, key, sizeof(key));
    memo->slots[slot].cell = *cell;
    memo->slots[slot].used = true;
    return true;
}

/* Set all cells of a row that is bad. */
static void clear_row(Worker *worker, int64_t row)
{
    const KilnCells *cells = worker->job->cells;

    for (size_t c = 0; c < cells->n_columns; c++)
        if (cells->cells[c] != NULL)
            cells->cells[c][row] = KILN_CELL_MISSING;
    worker->job->bad[row] = 1;
}

/* ---- CSV and TSV ----------------------------------------------------------------------------- */

/* Whether a field without quotes ends before `at`. */
static inline bool ends_at(const char *at, const char *end, char delimiter)
{
    return at >= end || *at == delimiter || *at == '\n' ||
           (*at == '\r' && (at + 1 == end || at[1] == '\n'));
}

/* A high bit in the first byte that is `byte`, and maybe in others after that. */
static inline uint64_t find_byte(uint64_t bytes, char byte)
{
    const uint64_t ones = 0x0101010101010101, x = bytes ^ ones * (unsigned char)byte;

    return (x - ones) & ~x & ones << 7;
}

/* The end of the field without quotes at `at`. A line ends it, so bytes up to `limit` can be read
 * at once. */
static inline const char *field_end(const char *at, const char *end, const char *limit,
                                    char delimiter)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (limit - at >= 8) {
        uint64_t bytes;

        memcpy(&bytes, at, sizeof(bytes));
        const uint64_t found = find_byte(bytes, delimiter) | find_byte(bytes, '\n') |
                               find_byte(bytes, '\r');
        at += found != 0 ? __builtin_ctzll(found) / 8 : 8;
        if (found != 0 && ends_at(at, end, delimiter))
            return at;
        at += found != 0;
    }
#endif
    while (!ends_at(at, end, delimiter))
        at++;
    return at;
}

/* The quoted field at *at, with what may follow its last quote. */
static KilnString quoted_field(Worker *worker, const char **at, const char *end, char delimiter)
{
    KilnText *field = &worker->field;
    const char *p = *at + 1;

    kiln_text_clear(field);
    while (p < end) {
        const char *quote = memchr(p, '"', (size_t)(end - p));
        const char *stop = quote != NULL ? quote : end;
        const bool doubled = stop + 1 < end && stop[1] == '"';

        kiln_text_append_n(field, p, (size_t)(stop - p) + doubled);
        p = stop < end ? stop + 1 + doubled : end;
        if (!doubled)
            break;
    }
    const char *rest = field_end(p, end, end, delimiter);
    kiln_text_append_n(field, p, (size_t)(rest - p));
    *at = rest;
    return (KilnString) { field->data, field->length };
}

/* Read the field at *at, whatever it is, into column `place` of the row; false: memory is out. */
static bool read_field(Worker *worker, int64_t place, int64_t row, const char **at, const char *end,
                       const char *limit)
{
    const KilnRecords *records = worker->job->reader->records;
    const char *const begin = *at;

    if (begin < end && *begin == '"' && records->format == KILN_RECORDS_CSV) {
        const KilnString text = quoted_field(worker, at, end, records->delimiter);

        return !worker->field.failed && (place < 0 || put_text(worker, (size_t)place, row, text));
    }
    *at = field_end(begin, end, limit, records->delimiter);
    return place < 0 || put_short_text(worker, (size_t)place, row,
                                       (KilnString) { begin, (size_t)(*at - begin) }, limit);
}

/* A number ends before a line does, so bytes up to `limit` can be read at once. */
static bool read_delimited(Worker *worker, KilnString text, const char *limit, int64_t row)
{
    const KilnCellReader *reader = worker->job->reader;
    const char delimiter = reader->records->delimiter, decimal = reader->rules->decimal;
    KilnCell *const *numbers = worker->job->numbers;
    const char *at = text.data, *end = text.data + text.length;
    size_t column = 0;
    double number;

    for (;; at++) {
        if (column >= reader->n_places)
            break;
        const char *p = numbers[column] != NULL ? kiln_number_read(at, limit, decimal, &number)
                                                : NULL;
        if (p != NULL && ends_at(p, end, delimiter)) {
            numbers[column++][row] = kiln_cell_of_number(number);
            at = p;
        } else if (!read_field(worker, reader->places[column++], row, &at, end, limit)) {
            return false;
        }
        if (at < end && *at == delimiter)
            continue;
        if (column == reader->n_places)
            return true;
        break;
    }
    clear_row(worker, row);
    return true;
}

/* ---- JSON lines ------------------------------------------------------------------------------ */

/* The text of a value; false: it has none. */
static bool json_text(const json_t *value, char buf[40], KilnString *ret)
{
    *ret = (KilnString) { 0 };
    if (value == NULL || json_is_null(value))
        return true;
    if (json_is_string(value))
        *ret = (KilnString) { json_string_value(value), json_string_length(value) };
    else if (json_is_boolean(value))
        *ret = json_is_true(value) ? (KilnString) { "true", 4 } : (KilnString) { "false", 5 };
    else if (json_is_number(value))
        *ret = kiln_number_name(json_number_value(value), buf);
    else
        return false;
    return true;
}

static bool read_json(Worker *worker, KilnString text, int64_t row)
{
    const KilnCellReader *reader = worker->job->reader;
    json_t *root = json_loadb(text.data, text.length, JSON_REJECT_DUPLICATES, NULL);
    bool good = json_is_object(root), memory = true;

    for (size_t i = 0; i < reader->n_places && good && memory; i++) {
        const json_t *value = json_object_get(root, reader->records->columns[i]);
        const int64_t place = reader->places[i];
        char buf[40];
        KilnString field;

        if (place < 0)
            continue;
        if (json_is_number(value) && !reader->columns[place].as_text)
            worker->job->cells->cells[place][row] = kiln_cell_of_number(json_number_value(value));
        else if ((good = json_text(value, buf, &field)))
            memory = put_text(worker, (size_t)place, row, field);
    }
    json_decref(root);
    if (!good)
        clear_row(worker, row);
    return memory;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static const KilnRecordsPart *part_of(const KilnRecords *records, int64_t row)
{
    const KilnRecordsPart *part = records->parts;

    while (part + 1 < records->parts + records->n_parts && part[1].first_row <= row)
        part++;
    return part;
}

static bool read_row(Worker *worker, const KilnRecordsPart *part, int64_t row, bool checked)
{
    const KilnRecords *records = worker->job->reader->records;
    const int64_t i = row - part->first_row + part->header;
    const KilnString stored = kiln_part_row(part, i);
    KilnString text = stored;

    if (!checked &&
        kiln_row_check_bytes(records, &text, part->index.starts[i], &worker->record, NULL) < 0) {
        clear_row(worker, row);
        return true;
    }
    const char *const limit = text.data == stored.data ? part->file.data + part->file.size
                                                       : text.data + text.length;
    return records->format == KILN_RECORDS_JSONL ? read_json(worker, text, row)
                                                 : read_delimited(worker, text, limit, row);
}

/* Whether all bytes of some rows are text as it should be, so that no row has to be checked. */
static bool are_good(const KilnRecords *records, const KilnRecordsPart *part, int64_t from,
                     int64_t to)
{
    const int64_t *starts = part->index.starts;
    const int64_t first = from - part->first_row + part->header;
    const char *data = part->file.data + starts[first];
    const size_t n = (size_t)(starts[first + to - from] - starts[first]);

    return records->encoding != KILN_LATIN1 && n <= KILN_RECORDS_ROW_MAX &&
           memchr(data, '\0', n) == NULL && kiln_utf8_check(data, n) == n;
}

static bool read_chunk(Worker *worker, int64_t from, int64_t to)
{
    const KilnRecords *records = worker->job->reader->records;

    while (from < to) {
        const KilnRecordsPart *part = part_of(records, from);
        const int64_t stop = kiln_min_i64(
            to, part + 1 < records->parts + records->n_parts ? part[1].first_row : records->count);
        const bool checked = are_good(records, part, from, stop);

        for (; from < stop; from++)
            if (!read_row(worker, part, from, checked))
                return false;
    }
    return true;
}

static void *run(void *argument)
{
    Worker *worker = argument;
    Job *job = worker->job;
    const int64_t n = job->cells->n_rows;

    while (!atomic_load(&job->failed)) {
        const int64_t from = atomic_fetch_add(&job->next, CHUNK);

        if (from >= n)
            break;
        job->owners[from / CHUNK] = worker->number;
        if (!read_chunk(worker, from, kiln_min_i64(from + CHUNK, n))) {
            worker->status = kiln_error_nomem(&worker->err, CHUNK);
            atomic_store(&job->failed, true);
        }
        if (worker->number == 0 && kiln_poll(job->reader->poll, "reading rows", from, n)) {
            worker->status = kiln_poll_check(job->reader->poll, "reading rows", from, n,
                                             &worker->err);
            atomic_store(&job->failed, true);
        }
    }
    return NULL;
}

/* Make the codes of one column those of all threads and sources. */
static KilnStatus merge_column(const Job *job, size_t column, KilnError *err)
{
    KilnDictionary *to = &job->reader->columns[column].dictionary;
    KilnCell *cells = job->cells->cells[column];
    int32_t *codes[MAX_THREADS] = { 0 };
    bool good = true, any = false;

    for (int w = 0; w < job->n_workers && good; w++) {
        const KilnDictionary *from = &job->workers[w].dictionaries[column];

        any = any || from->n > 0;
        codes[w] = malloc((from->n + 1) * sizeof(*codes[w]));
        good = codes[w] != NULL;
        for (size_t i = 0; i < from->n && good; i++)
            good = (codes[w][i] = kiln_dictionary_add(to, from->texts[i])) >= 0;
    }
    for (int64_t row = 0; row < job->cells->n_rows && good && any; row++)
        if (kiln_cell_is_text(cells[row]))
            cells[row] = KILN_CELL_TEXT |
                         (uint32_t)codes[job->owners[row / CHUNK]][kiln_cell_code(cells[row])];
    for (int w = 0; w < job->n_workers; w++)
        free(codes[w]);
    return good ? KILN_OK : kiln_error_nomem(err, to->n * sizeof(KilnString));
}

static KilnStatus start(Job *job, KilnError *err)
{
    const KilnCellReader *reader = job->reader;
    const int64_t chunks = job->cells->n_rows / CHUNK + 1;
    bool good;

    job->n_workers = (int)kiln_min_i64(kiln_min_i64(kiln_processors_here().threads, MAX_THREADS),
                                       chunks);
    job->owners = calloc((size_t)chunks, sizeof(*job->owners));
    job->numbers = calloc(reader->n_places + 1, sizeof(*job->numbers));
    job->workers = calloc((size_t)job->n_workers, sizeof(*job->workers));
    good = job->owners != NULL && job->numbers != NULL && job->workers != NULL;
    for (size_t i = 0; i < reader->n_places && good && !reader->rules->numeric_missing; i++)
        if (reader->places[i] >= 0 && !reader->columns[reader->places[i]].as_text)
            job->numbers[i] = job->cells->cells[reader->places[i]];
    for (int w = 0; w < job->n_workers && good; w++) {
        job->workers[w].job = job;
        job->workers[w].number = w;
        job->workers[w].dictionaries = calloc(reader->n_columns + 1, sizeof(KilnDictionary));
        job->workers[w].memos = calloc(reader->n_columns + 1, sizeof(Memo));
        good = job->workers[w].dictionaries != NULL && job->workers[w].memos != NULL;
    }
    return good ? KILN_OK : kiln_error_nomem(err, (size_t)chunks * sizeof(*job->owners));
}

static void finish(Job *job)
{
    for (int w = 0; w < job->n_workers && job->workers != NULL; w++) {
        Worker *worker = &job->workers[w];

        for (size_t c = 0; c < job->reader->n_columns && worker->dictionaries != NULL; c++)
            kiln_dictionary_release(&worker->dictionaries[c]);
        free(worker->dictionaries);
        free(worker->memos);
        kiln_text_release(&worker->field);
        kiln_record_release(&worker->record);
    }
    free(job->workers);
    free(job->numbers);
    free(job->owners);
}

KilnStatus kiln_cell_reader_run(const KilnCellReader *reader, KilnCells *ret, uint8_t *bad,
                                KilnError *err)
{
    Job job = { .reader = reader, .cells = ret, .bad = bad };
    KilnStatus status = start(&job, err);

    if (status >= 0)
        kiln_run_in_threads((size_t)job.n_workers, run, job.workers, sizeof(job.workers[0]));
    for (int w = 0; w < job.n_workers && status >= 0; w++)
        if (job.workers[w].status < 0) {
            status = job.workers[w].status;
            if (err != NULL)
                *err = job.workers[w].err;
        }
    for (size_t c = 0; c < reader->n_columns && status >= 0; c++)
        if (ret->cells[c] != NULL)
            status = merge_column(&job, c, err);
    finish(&job);
    return status;
}

KilnStatus kiln_cell_reader_why(const KilnCellReader *reader, int64_t row, KilnError *err)
{
    const size_t first[] = { 0 };
    const bool json = kiln_records_format(reader->records) == KILN_RECORDS_JSONL;
    KilnRecord record = { 0 };
    char place[512];
    /* Of JSON a column that is missing is no error, so only what is no object is found here. */
    KilnStatus status = kiln_records_read(reader->records, row, first, json ? 0 : 1, &record, err);

    kiln_record_release(&record);
    if (status >= 0)
        status = kiln_error_set(err, KILN_E_TYPE,
                                "%s: a value is a list or an object; expected texts and numbers",
                                kiln_records_location(reader->records, row, place, sizeof(place)));
    return status;
}
