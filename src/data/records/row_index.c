/* Keeps where rows begin, also in the cache. Numbers of lines are kept for some rows only, and
 * counted from there for messages. */
#include "data/records/row_index.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "data/records/row_scan.h"
#include "kiln/files/cache.h"

/* Files from this size on have their index in the cache. */
enum { LARGE = 64 << 20 };

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
static KilnStatus take_scan(KilnRowIndex *index, const KilnRowScan *scan, KilnError *err)
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
    KilnRowScan scan = { 0 };
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
        status = kiln_row_scan(&scan, file, kind, delimiter, poll, err);
        if (status >= 0)
            status = take_scan(index, &scan, err);
        if (status >= 0 && path != NULL)
            status = write_cached(index, file, path, err);
    }
    kiln_row_scan_release(&scan);
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

    return index->lines[known] + kiln_count_lines(file->data,
                                                  (size_t)index->starts[known * KILN_LINES_STEP],
                                                  (size_t)index->starts[i]);
}
