/* Finds rows in one pass over a file. Threads look at pieces of a large file, each from the first
 * line in it on, as if a row began there. That is wrong where a quoted field goes over the border;
 * it is then seen that the piece before ends elsewhere, and the piece is looked at again from
 * there. So the rows are those of one pass, whatever the number of threads. */
#include "data/records/row_scan.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/min.h"
#include "base/system/machine.h"
#include "base/system/threads.h"
#include "kiln/array.h"

enum { PIECE = 1 << 20, POLL_LINES = 1 << 16, MAX_THREADS = 64 };

/* ---- Lines -------------------------------------------------------------------------------- */

static bool is_blank(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

/* The end of the line at `at`, without its newline. */
static size_t line_end(const KilnRowScan *scan, size_t at)
{
    const char *data = scan->file->data, *newline = memchr(data + at, '\n', scan->size - at);

    return newline != NULL ? (size_t)(newline - data) : scan->size;
}

int64_t kiln_count_lines(const char *data, size_t from, size_t to)
{
    int64_t n = 0;

    for (size_t i = from; i < to; i++)
        n += data[i] == '\n';
    return n;
}

/* A field with line ends and text after its quote: most likely a quote is missing. */
static KilnStatus check_quoted(const KilnRowScan *scan, size_t row, size_t from, size_t to,
                               KilnError *err)
{
    const char *data = scan->file->data;

    if (to >= scan->size || data[to] == scan->delimiter || data[to] == '\n' || data[to] == '\r' ||
        memchr(data + from, '\n', to - from) == NULL)
        return KILN_OK;
    const int64_t begins = scan->line + kiln_count_lines(data, row, from);
    return kiln_error_set(
        err, KILN_E_FORMAT,
        "%s:%lld: text after a quoted field that begins in line %lld; its quote may be missing "
        "there, and quotes inside a field must be doubled",
        scan->file->path, (long long)(begins + kiln_count_lines(data, from, to)),
        (long long)begins);
}

/* The end of the row of quoted fields at *at; scan->size + 1: a quote is never closed. */
static KilnStatus quoted_end(const KilnRowScan *scan, size_t *at, KilnError *err)
{
    const char *data = scan->file->data;
    const size_t size = scan->size, row = *at;
    bool field_begins = true;
    KilnStatus status = KILN_OK;

    while (status >= 0 && *at < size && data[*at] != '\n') {
        if (field_begins && data[*at] == '"') {
            const size_t from = *at;

            do {
                const char *quote = memchr(data + *at + 1, '"', size - *at - 1);

                *at = quote != NULL ? (size_t)(quote - data) + 1 : size + 1;
            } while (*at < size && data[*at] == '"');
            field_begins = false;
            status = check_quoted(scan, row, from, *at, err);
            continue;
        }
        field_begins = data[(*at)++] == scan->delimiter;
    }
    return status;
}

bool kiln_row_scan_add(KilnRowScan *scan, size_t at, int64_t line)
{
    const size_t n = (size_t)scan->count, step = (size_t)scan->lines_step;

    if (!KILN_RESERVE(scan->starts, scan->starts_capacity, n + 2) ||
        !KILN_RESERVE(scan->lines, scan->lines_capacity, n / step + 1))
        return false;
    scan->starts[n] = (int64_t)at;
    if (n % step == 0)
        scan->lines[n / step] = line;
    scan->count++;
    return true;
}

/* Take the row or line at *at, and advance *at to the next one. */
static KilnStatus take_line(KilnRowScan *scan, size_t *at, KilnError *err)
{
    const KilnMappedFile *file = scan->file;
    const size_t begin = *at;
    size_t end = line_end(scan, begin);
    const bool blank = scan->kind != KILN_ROW_LINE && is_blank(file->data + begin, end - begin);
    const bool header = scan->kind == KILN_ROW_BLOCK && end - begin >= 10 &&
                        memcmp(file->data + begin, "-DOCSTART-", 10) == 0;
    bool good = true;
    int64_t lines = 1;

    if (scan->kind == KILN_ROW_QUOTED && memchr(file->data + begin, '"', end - begin) != NULL) {
        end = begin;
        KilnStatus status = quoted_end(scan, &end, err);
        if (status >= 0 && end > file->size)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s:%lld: a quote in this row is never closed", file->path,
                                    (long long)scan->line);
        if (status < 0)
            return status;
        lines += kiln_count_lines(file->data, begin, end < scan->size ? end : scan->size);
    }
    scan->cut = end >= scan->size && scan->size < file->size;
    if (!blank && !header && !scan->open)
        good = kiln_row_scan_add(scan, begin, scan->line);
    scan->open = scan->kind == KILN_ROW_BLOCK && !blank && !header;
    scan->line += lines;
    *at = end + 1;
    return good ? KILN_OK : kiln_error_nomem(err, (size_t)scan->count * sizeof(int64_t));
}

/* Find the rows that begin at *at and after, but before `to`. */
static KilnStatus find_rows(KilnRowScan *scan, size_t *at, size_t to, const KilnPoll *poll,
                            KilnError *err)
{
    const int64_t size = (int64_t)scan->file->size;
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; *at < to && status >= 0 && !scan->cut; i++) {
        if (i % POLL_LINES == 0)
            status = kiln_poll_check(poll, "finding rows", (int64_t)*at, size, err);
        if (status >= 0)
            status = take_line(scan, at, err);
    }
    return status;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* What a thread found in a piece. */
typedef struct Piece {
    KilnRowScan scan; /* lines from 0 */
    size_t from, end; /* of its first line; where the row after it begins */
    bool known;       /* all of it was read */
} Piece;

typedef struct Pieces {
    const KilnRowScan *whole;
    Piece *list;
    size_t n;
    atomic_size_t next;
} Pieces;

typedef struct Worker {
    Pieces *pieces;
    const KilnPoll *poll; /* of the first */
} Worker;

static size_t piece_end(const KilnMappedFile *file, size_t i)
{
    return (size_t)kiln_min_i64((int64_t)((i + 1) * PIECE), (int64_t)file->size);
}

static bool has_quotes(const KilnRowScan *scan, size_t from)
{
    return from < scan->size && memchr(scan->file->data + from, '"', scan->size - from) != NULL;
}

static void scan_piece(const Pieces *pieces, size_t i)
{
    const KilnMappedFile *file = pieces->whole->file;
    const size_t end = piece_end(file, i);
    Piece *piece = &pieces->list[i];

    piece->scan = (KilnRowScan) { .file = file,
                                  .kind = pieces->whole->kind,
                                  .delimiter = pieces->whole->delimiter,
                                  .lines_step = 1,
                                  .size = piece_end(file, i + 1) };
    piece->from = i == 0 ? file->begin : line_end(&piece->scan, i * PIECE - 1) + 1;
    piece->end = piece->from;
    if (piece->scan.kind == KILN_ROW_QUOTED && !has_quotes(&piece->scan, piece->from))
        piece->scan.kind = KILN_ROW_NONBLANK;
    piece->known = find_rows(&piece->scan, &piece->end, end, NULL, NULL) >= 0 && !piece->scan.cut;
}

/* Whether the user wants to stop; it is reported by whoever puts the pieces together. */
static bool stops(const KilnPoll *poll, const KilnMappedFile *file, size_t i)
{
    return kiln_poll(poll, "finding rows", (int64_t)piece_end(file, i), (int64_t)file->size);
}

static void *scan_pieces(void *argument)
{
    const Worker *worker = argument;
    Pieces *pieces = worker->pieces;
    size_t i;

    while ((i = atomic_fetch_add(&pieces->next, 1)) < pieces->n &&
           !stops(worker->poll, pieces->whole->file, i))
        scan_piece(pieces, i);
    return NULL;
}

static bool append(KilnRowScan *scan, const Piece *piece)
{
    const int64_t step = scan->lines_step, n = scan->count, more = piece->scan.count;

    if (!KILN_RESERVE(scan->starts, scan->starts_capacity, (size_t)(n + more) + 1) ||
        !KILN_RESERVE(scan->lines, scan->lines_capacity, (size_t)((n + more) / step) + 1))
        return false;
    if (more > 0)
        memcpy(scan->starts + n, piece->scan.starts, (size_t)more * sizeof(*scan->starts));
    for (int64_t row = (n + step - 1) / step * step; row < n + more; row += step)
        scan->lines[row / step] = scan->line + piece->scan.lines[row - n];
    scan->count += more;
    scan->line += piece->scan.line;
    return true;
}

/* Put the pieces together; those that did not begin with a row are read now. */
static KilnStatus join(KilnRowScan *scan, const Pieces *pieces, const KilnPoll *poll,
                       KilnError *err)
{
    size_t at = scan->file->begin, rows = 0;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < pieces->n; i++)
        rows += (size_t)pieces->list[i].scan.count;
    if (!KILN_RESERVE(scan->starts, scan->starts_capacity, rows + 1))
        return kiln_error_nomem(err, rows * sizeof(int64_t));
    for (size_t i = 0; i < pieces->n && status >= 0; i++) {
        const Piece *piece = &pieces->list[i];

        if (stops(poll, scan->file, i)) {
            status = kiln_poll_check(poll, "finding rows", 0, 0, err);
        } else if (piece->known && piece->from == at) {
            at = piece->end;
            if (!append(scan, piece))
                status = kiln_error_nomem(err, (size_t)scan->count * sizeof(int64_t));
        } else {
            status = find_rows(scan, &at, piece_end(scan->file, i), poll, err);
        }
    }
    return status;
}

static KilnStatus scan_in_threads(KilnRowScan *scan, const KilnPoll *poll, KilnError *err)
{
    Pieces pieces = { .whole = scan, .n = (scan->size + PIECE - 1) / PIECE };
    Worker workers[MAX_THREADS];
    const int64_t threads = kiln_min_i64(kiln_processors_here().threads, MAX_THREADS);

    pieces.list = calloc(pieces.n, sizeof(*pieces.list));
    if (pieces.list == NULL)
        return kiln_error_nomem(err, pieces.n * sizeof(*pieces.list));
    for (int64_t i = 0; i < threads; i++)
        workers[i] = (Worker) { &pieces, i == 0 ? poll : NULL };
    kiln_run_in_threads((size_t)threads, scan_pieces, workers, sizeof(workers[0]));
    const KilnStatus status = join(scan, &pieces, poll, err);
    for (size_t i = 0; i < pieces.n; i++)
        kiln_row_scan_release(&pieces.list[i].scan);
    free(pieces.list);
    return status;
}

KilnStatus kiln_row_scan(KilnRowScan *scan, const KilnMappedFile *file, KilnRowKind kind,
                         char delimiter, const KilnPoll *poll, KilnError *err)
{
    size_t at = file->begin;

    *scan = (KilnRowScan) { .file = file,
                            .kind = kind,
                            .delimiter = delimiter,
                            .lines_step = KILN_LINES_STEP,
                            .size = file->size,
                            .line = 1 };
    if (kind == KILN_ROW_ITEM)
        return kiln_item_scan(scan, poll, err);
    /* a line of a block depends on those before it */
    if (kind != KILN_ROW_BLOCK && file->size > 2 * (size_t)PIECE)
        return scan_in_threads(scan, poll, err);
    return find_rows(scan, &at, file->size, poll, err);
}

void kiln_row_scan_release(KilnRowScan *scan)
{
    free(scan->starts);
    free(scan->lines);
    *scan = (KilnRowScan) { 0 };
}
