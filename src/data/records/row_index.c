/* Finds rows in one pass over a file. Numbers of lines are kept for some rows only, and counted
 * from there for messages. */
#include "data/records/row_index.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "kiln/array.h"
#include "kiln/files/cache.h"

/* Files from this size on have their index in the cache. */
enum { LARGE = 64 << 20, POLL_LINES = 1 << 16 };

typedef struct Scan {
    const KilnMappedFile *file;
    KilnRowKind kind;
    char delimiter;
    int64_t *starts, *lines;
    size_t starts_capacity, lines_capacity;
    int64_t count;
    int64_t line; /* of the next byte, from 1 */
    bool open;    /* of blocks: the last row can have more lines */
} Scan;

/* ---- Lines -------------------------------------------------------------------------------- */

static bool is_blank(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

/* The end of the line at `at`, without its newline. */
static size_t line_end(const KilnMappedFile *file, size_t at)
{
    const char *newline = memchr(file->data + at, '\n', file->size - at);

    return newline != NULL ? (size_t)(newline - file->data) : file->size;
}

/* The end of the row of quoted fields at `at`; file->size + 1: a quote is never closed. */
static size_t quoted_end(const Scan *scan, size_t at)
{
    const char *data = scan->file->data;
    const size_t size = scan->file->size;
    bool field_begins = true;

    while (at < size && data[at] != '\n') {
        if (field_begins && data[at] == '"') {
            do {
                const char *quote = memchr(data + at + 1, '"', size - at - 1);

                if (quote == NULL)
                    return size + 1;
                at = (size_t)(quote - data) + 1;
            } while (at < size && data[at] == '"');
            field_begins = false;
            continue;
        }
        field_begins = data[at++] == scan->delimiter;
    }
    return at;
}

static bool add_row(Scan *scan, size_t at)
{
    const size_t n = (size_t)scan->count;

    if (!KILN_RESERVE(scan->starts, scan->starts_capacity, n + 2) ||
        !KILN_RESERVE(scan->lines, scan->lines_capacity, n / KILN_LINES_STEP + 1))
        return false;
    scan->starts[n] = (int64_t)at;
    if (n % KILN_LINES_STEP == 0)
        scan->lines[n / KILN_LINES_STEP] = scan->line;
    scan->count++;
    return true;
}

static int64_t count_lines(const char *data, size_t from, size_t to)
{
    int64_t n = 0;

    for (size_t i = from; i < to; i++)
        n += data[i] == '\n';
    return n;
}

/* Take the row or line at *at, and advance *at to the next one. */
static KilnStatus take_line(Scan *scan, size_t *at, KilnError *err)
{
    const KilnMappedFile *file = scan->file;
    const size_t begin = *at;
    size_t end = line_end(file, begin);
    const bool blank = scan->kind != KILN_ROW_LINE && is_blank(file->data + begin, end - begin);
    const bool header = scan->kind == KILN_ROW_BLOCK && end - begin >= 10 &&
                        memcmp(file->data + begin, "-DOCSTART-", 10) == 0;
    bool good = true;
    int64_t lines = 1;

    if (scan->kind == KILN_ROW_QUOTED && memchr(file->data + begin, '"', end - begin) != NULL) {
        end = quoted_end(scan, begin);
        if (end > file->size)
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s:%lld: a quote in this row is never closed", file->path,
                                  (long long)scan->line);
        lines += count_lines(file->data, begin, end);
    }
    if (!blank && !header && !scan->open)
        good = add_row(scan, begin);
    scan->open = scan->kind == KILN_ROW_BLOCK && !blank && !header;
    scan->line += lines;
    *at = end + 1;
    return good ? KILN_OK : kiln_error_nomem(err, (size_t)scan->count * sizeof(int64_t));
}

static KilnStatus find_rows(Scan *scan, const KilnPoll *poll, KilnError *err)
{
    const KilnMappedFile *file = scan->file;
    size_t at = file->begin;
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; at < file->size && status >= 0; i++) {
        if (i % POLL_LINES == 0)
            status = kiln_poll_check(poll, "finding rows", (int64_t)at, (int64_t)file->size, err);
        if (status >= 0)
            status = take_line(scan, &at, err);
    }
    return status;
}

/* ---- The cache ------------------------------------------------------------------------------- */

/* The file: this, the starts, the lines. */
typedef struct Header {
    char magic[8];
    int64_t count, size; /* rows; bytes of the file */
    uint64_t sum;        /* of what follows */
} Header;
enum { HEADER_WORDS = sizeof(Header) / sizeof(int64_t) };

static size_t words_of(int64_t count)
{
    return (size_t)count + 1 + ((size_t)count + KILN_LINES_STEP - 1) / KILN_LINES_STEP;
}

static void point(KilnRowIndex *index, int64_t *words, int64_t count)
{
    index->count = count;
    index->starts = words;
    index->lines = words + count + 1;
}

static bool read_cached(KilnRowIndex *index, const KilnMappedFile *file, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    bool good = fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof(Header);
    int64_t *words = good ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                          : MAP_FAILED;

    if (fd >= 0)
        close(fd);
    if (words == MAP_FAILED)
        return false;
    const Header *header = (const Header *)(void *)words;
    const size_t bytes = (size_t)st.st_size;
    good = memcmp(header->magic, "kilnrows", 8) == 0 && header->size == (int64_t)file->size &&
           header->count >= 0 && header->count <= header->size &&
           bytes == (HEADER_WORDS + words_of(header->count)) * sizeof(int64_t) &&
           header->sum == kiln_hash(words + HEADER_WORDS, bytes - sizeof(Header), 0);
    if (!good) {
        munmap(words, bytes);
        return false;
    }
    index->block = words;
    index->mapped = bytes;
    point(index, words + HEADER_WORDS, header->count);
    return true;
}

static KilnStatus write_cached(const KilnRowIndex *index, const KilnMappedFile *file,
                               const char *path, KilnError *err)
{
    Header *header = (Header *)(void *)index->block;
    const size_t bytes = words_of(index->count) * sizeof(int64_t);

    *header = (Header) { .magic = "kilnrows",
                         .count = index->count,
                         .size = (int64_t)file->size,
                         .sum = kiln_hash(index->block + HEADER_WORDS, bytes, 0) };
    return kiln_file_write(path, index->block, sizeof(Header) + bytes, err);
}

/* ---- The index --------------------------------------------------------------------------------
 */

/* Move what the scan found into one block. */
static KilnStatus take_scan(KilnRowIndex *index, const Scan *scan, KilnError *err)
{
    const size_t words = words_of(scan->count);
    const size_t n_lines = words - (size_t)scan->count - 1;

    index->block = malloc((HEADER_WORDS + words) * sizeof(int64_t));
    if (index->block == NULL)
        return kiln_error_nomem(err, words * sizeof(int64_t));
    int64_t *starts = index->block + HEADER_WORDS;
    if (scan->count > 0) {
        memcpy(starts, scan->starts, (size_t)scan->count * sizeof(*starts));
        memcpy(starts + scan->count + 1, scan->lines, n_lines * sizeof(*starts));
    }
    starts[scan->count] = (int64_t)scan->file->size;
    point(index, starts, scan->count);
    return KILN_OK;
}

KilnStatus kiln_row_index_open(KilnRowIndex *index, const KilnMappedFile *file, KilnRowKind kind,
                               char delimiter, const char *cache, const KilnPoll *poll,
                               KilnError *err)
{
    Scan scan = { .file = file, .kind = kind, .delimiter = delimiter, .line = 1 };
    const uint64_t what = (uint64_t)kind << 8 | (unsigned char)delimiter;
    char *path = NULL;
    KilnStatus status = KILN_OK;

    *index = (KilnRowIndex) { 0 };
    if (cache != NULL && file->size >= LARGE) {
        path = kiln_mapped_file_cache_path(file->path, cache, ".rows", what, err);
        if (path == NULL)
            return err != NULL ? err->status : KILN_E_IO;
        status = kiln_dir_make(cache, err);
    }
    if (status >= 0 && (path == NULL || !read_cached(index, file, path))) {
        status = find_rows(&scan, poll, err);
        if (status >= 0)
            status = take_scan(index, &scan, err);
        if (status >= 0 && path != NULL)
            status = write_cached(index, file, path, err);
    }
    free(scan.starts);
    free(scan.lines);
    free(path);
    return status;
}

void kiln_row_index_release(KilnRowIndex *index)
{
    if (index->mapped > 0)
        munmap(index->block, index->mapped);
    else
        free(index->block);
    *index = (KilnRowIndex) { 0 };
}

int64_t kiln_row_index_line(const KilnRowIndex *index, const KilnMappedFile *file, int64_t i)
{
    const int64_t known = i / KILN_LINES_STEP;

    return index->lines[known] + count_lines(file->data,
                                             (size_t)index->starts[known * KILN_LINES_STEP],
                                             (size_t)index->starts[i]);
}
