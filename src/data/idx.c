/* Reading idx files, plain or gzip. libdeflate decompresses a whole buffer at
 * once, in about half the time of a streaming reader. */
#define _DEFAULT_SOURCE /* madvise */
#include "kiln/files/idx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <libdeflate.h>

#include "base/system/file.h"
#include "base/text.h"

#define MAX_BYTES ((size_t)1 << 32)
#define UNSIGNED_BYTE 0x08

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t little_endian(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* ---- gzip ------------------------------------------------------------------------- */

typedef struct Buffer {
    uint8_t *data;
    size_t size, capacity;
} Buffer;

#define HUGE_PAGE ((size_t)2 << 20)

/* Touching fresh memory in small pages takes a third of the time that reading
 * MNIST does: big buffers ask for huge pages, where the system has them. */
static bool grow(Buffer *buffer, size_t capacity)
{
    bool big = capacity >= 2 * HUGE_PAGE;
    uint8_t *data;

    capacity = big ? (capacity + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE : capacity;
    data = big ? aligned_alloc(HUGE_PAGE, capacity) : malloc(capacity);
    if (data == NULL)
        return false;
#ifdef MADV_HUGEPAGE
    if (big)
        (void)madvise(data, capacity, MADV_HUGEPAGE);
#endif
    if (buffer->size > 0)
        memcpy(data, buffer->data, buffer->size);
    free(buffer->data);
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

/* How many bytes the damaged gzip data yields before the damage, to 4 KiB:
 * whether a buffer was too small or the data bad tells on which side of the
 * damage the buffer ends. Slow, but only on the way to an error. */
static size_t bytes_before_damage(struct libdeflate_decompressor *d, const uint8_t *in, size_t size,
                                  Buffer *scratch)
{
    size_t low = 0, high = scratch->capacity;

    while (high - low > 4096) {
        size_t middle = low + (high - low) / 2;

        if (libdeflate_gzip_decompress(d, in, size, scratch->data, middle, NULL) ==
            LIBDEFLATE_INSUFFICIENT_SPACE)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* One member of a gzip file, appended to `out`. */
static enum libdeflate_result inflate_member(struct libdeflate_decompressor *d, const uint8_t *in,
                                             size_t size, Buffer *out, size_t *ret_used)
{
    for (;;) {
        size_t got = 0;
        enum libdeflate_result result = libdeflate_gzip_decompress_ex(
            d, in, size, out->data + out->size, out->capacity - out->size, ret_used, &got);

        if (result == LIBDEFLATE_SUCCESS)
            out->size += got;
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE || out->capacity >= MAX_BYTES)
            return result;
        if (!grow(out, out->capacity * 2 < MAX_BYTES ? out->capacity * 2 : MAX_BYTES))
            return result;
    }
}

static KilnStatus damaged(const char *path, size_t size, size_t found, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: damaged or cut short: its %zu bytes of gzip data break off after "
                          "about %zu decompressed bytes; expected whole gzip data: copy or "
                          "download the file again",
                          path, size, found);
}

/* Decompress all members of a gzip file. The size that its end claims is only
 * a first guess: it may be of the last member alone, or damaged. */
static KilnStatus inflate_all(const char *path, const uint8_t *in, size_t size, Buffer *out,
                              KilnError *err)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t guess = size >= 18 ? little_endian(in + size - 4) : 0;
    KilnStatus status = KILN_OK;

    if (guess > size * 1040)
        guess = size * 4;
    if (d == NULL || !grow(out, guess + 4096)) {
        libdeflate_free_decompressor(d);
        return kiln_error_nomem(err, guess + 4096);
    }
    for (size_t at = 0; at < size && status >= 0;) {
        size_t used = 0;
        enum libdeflate_result result = inflate_member(d, in + at, size - at, out, &used);

        if (result == LIBDEFLATE_INSUFFICIENT_SPACE && out->capacity < MAX_BYTES)
            status = kiln_error_nomem(err, out->capacity * 2);
        else if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
            status = kiln_error_set(err, KILN_E_FORMAT, "%s: more than %zu bytes decompressed",
                                    path, MAX_BYTES);
        else if (result != LIBDEFLATE_SUCCESS)
            status = damaged(path, size,
                             out->size + bytes_before_damage(d, in + at, size - at, out), err);
        at += used;
    }
    libdeflate_free_decompressor(d);
    return status;
}

/* ---- idx ---------------------------------------------------------------------------- */

/* "2 axes of unsigned bytes" and the like, for what a magic number means. */
static KilnStatus refuse_magic(const char *path, uint32_t magic, int rank, KilnError *err)
{
    uint32_t want = UNSIGNED_BYTE << 8 | (uint32_t)rank;

    if (magic >> 16 != 0)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: not an idx file: it begins with 0x%08x, expected 0x%08x", path,
                              magic, want);
    if ((magic >> 8 & 0xff) != UNSIGNED_BYTE)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: idx elements of type 0x%02x, expected unsigned bytes (0x08)",
                              path, magic >> 8 & 0xff);
    return kiln_error_set(err, KILN_E_FORMAT, "%s: an idx file with %u axes, expected %d (%s)",
                          path, magic & 0xff, rank, rank == 1 ? "labels" : "images");
}

/* Check header and size of the content; fills all of `ret` but `memory`. */
static KilnStatus parse(const char *path, const uint8_t *data, size_t size, int rank, KilnIdx *ret,
                        KilnError *err)
{
    size_t header = 4 + 4 * (size_t)rank, expected = 1;
    KilnIdx idx = { .rank = rank, .data = data + header };

    if (size == 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: is empty; expected an idx file", path);
    if (size >= 4 && big_endian(data) != (UNSIGNED_BYTE << 8 | (uint32_t)rank))
        return refuse_magic(path, big_endian(data), rank, err);
    if (size < header)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: cut short: %zu bytes, expected at least the %zu of its header",
                              path, size, header);
    for (int i = 0; i < rank; i++) {
        uint32_t dim = big_endian(data + 4 + 4 * i);

        if (dim == 0 || dim > MAX_BYTES / expected)
            return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged idx header: axis %d has size %u",
                                  path, i, dim);
        idx.dim[i] = dim;
        expected *= dim;
    }
    if (size - header != expected)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: %s: its header announces %lld items, %zu bytes in all, but "
                              "there are %zu",
                              path, size - header < expected ? "cut short" : "too long",
                              (long long)idx.dim[0], header + expected, size);
    idx.memory = ret->memory;
    *ret = idx;
    return KILN_OK;
}

/* `path` itself or with ".gz", whichever is there; owned by the caller. */
static KilnStatus locate(const char *path, char **ret, KilnError *err)
{
    KilnText text = { 0 };
    struct stat st;

    kiln_text_append(&text, path);
    if (stat(path, &st) != 0 && errno == ENOENT) {
        kiln_text_append(&text, ".gz");
        if (!text.failed && stat(text.data, &st) != 0 && errno == ENOENT) {
            kiln_text_release(&text);
            return kiln_error_set(err, KILN_E_IO, "%s: no such file, and no %s.gz either", path,
                                  strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path);
        }
    }
    *ret = kiln_text_take(&text);
    return *ret != NULL ? KILN_OK : kiln_error_nomem(err, strlen(path));
}

KilnStatus kiln_idx_read(const char *path, int rank, KilnIdx *ret, KilnError *err)
{
    char *file, *data = NULL;
    Buffer content = { 0 };
    KilnIdx idx = { 0 };
    KilnStatus status = locate(path, &file, err);

    if (status < 0)
        return status;
    status = kiln_file_read(file, MAX_BYTES, &data, &content.size, err);
    if (status >= 0 && content.size >= 2 && memcmp(data, "\x1f\x8b", 2) == 0) {
        size_t size = content.size;

        content.size = 0;
        status = inflate_all(file, (const uint8_t *)data, size, &content, err);
        free(data);
    } else {
        content.data = (uint8_t *)data;
    }
    idx.memory = content.data;
    if (status >= 0)
        status = parse(file, content.data, content.size, rank, &idx, err);
    if (status >= 0)
        *ret = idx;
    else
        free(content.data);
    free(file);
    return status;
}

void kiln_idx_release(KilnIdx *idx)
{
    if (idx == NULL)
        return;
    free(idx->memory);
    *idx = (KilnIdx) { 0 };
}
