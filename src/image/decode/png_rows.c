/* Rows of common PNG files: libdeflate inflates the file at once, which is twice as fast as zlib
 * does it piece by piece, and the filters run on vectors of a pixel. */
#include "image/decode/png_rows.h"

#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

enum { HEADER_SIZE = 33, SLACK = 8 /* bytes that vectors of the last pixel touch */ };
enum { MOST_BYTES = 1 << 24 };          /* of all rows: larger images are decoded row by row */
enum { NONE, SUB, UP, AVERAGE, PAETH }; /* filters of a row */

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Samples of a pixel; 0: a file of another kind. */
static int64_t samples_of(const KilnImageBytes *bytes)
{
    static const uint8_t samples[7] = { 1, 0, 3, 0, 2, 0, 4 }; /* by the type of colours */
    const uint8_t *head = bytes->data + 16;
    const uint8_t depth = head[8], type = head[9], interlaced = head[12];

    return depth == 8 && type < sizeof(samples) && head[10] == 0 && head[11] == 0 && interlaced == 0
               ? samples[type]
               : 0;
}

/* ---- Inflating --------------------------------------------------------------------------------
 */

/* The content of all chunks IDAT, one after the other, in `to` if it is not NULL. Returns its size;
 * 0: they are damaged or not one after the other, or a chunk changes the pixels. */
static size_t gather(const KilnImageBytes *bytes, uint8_t *to)
{
    size_t total = 0;
    bool ended = false;

    for (size_t at = HEADER_SIZE; bytes->size - at >= 12;) {
        const uint8_t *chunk = bytes->data + at;
        const size_t size = big_endian(chunk);
        const bool is_data = memcmp(chunk + 4, "IDAT", 4) == 0;

        if (size > bytes->size - at - 12 || memcmp(chunk + 4, "tRNS", 4) == 0 || (is_data && ended))
            return 0;
        if (memcmp(chunk + 4, "IEND", 4) == 0)
            return total;
        ended = total > 0 && !is_data;
        if (is_data && to != NULL) {
            if (libdeflate_crc32(0, chunk + 4, size + 4) != big_endian(chunk + 8 + size))
                return 0;
            memcpy(to + total, chunk + 8, size);
        }
        total += is_data ? size : 0;
        at += 12 + size;
    }
    return 0;
}

static bool inflate_all(const KilnImageBytes *bytes, uint8_t *to, size_t size)
{
    const size_t packed_size = gather(bytes, NULL);
    uint8_t *packed = packed_size > 0 ? malloc(packed_size) : NULL;
    struct libdeflate_decompressor *d = packed != NULL ? libdeflate_alloc_decompressor() : NULL;
    const bool done = d != NULL && gather(bytes, packed) == packed_size &&
                      libdeflate_zlib_decompress(d, packed, packed_size, to, size, NULL) ==
                          LIBDEFLATE_SUCCESS;

    libdeflate_free_decompressor(d);
    free(packed);
    return done;
}

/* ---- Filters ----------------------------------------------------------------------------------
 */

/* The samples of a pixel; with three, the fourth is anything. */
typedef int16_t Pixel __attribute__((vector_size(8)));
typedef uint8_t Bytes __attribute__((vector_size(4)));

static inline Pixel load(const uint8_t *from)
{
    Bytes bytes;

    memcpy(&bytes, from, sizeof(bytes));
    return __builtin_convertvector(bytes, Pixel);
}

static inline void store(uint8_t *to, Pixel pixel, size_t samples)
{
    const Bytes bytes = __builtin_convertvector(pixel, Bytes);

    memcpy(to, &bytes, samples);
}

static inline Pixel magnitude(Pixel x)
{
    const Pixel sign = x >> 15;

    return (x ^ sign) - sign;
}

static inline Pixel choose(Pixel mask, Pixel a, Pixel b)
{
    return (mask & a) | (~mask & b);
}

/* The neighbor that is nearest to left + up - corner, the first of equals. */
static inline Pixel paeth(Pixel left, Pixel up, Pixel corner)
{
    const Pixel p = up - corner, q = left - corner;
    const Pixel to_left = magnitude(p), to_up = magnitude(q), to_corner = magnitude(p + q);
    const Pixel up_or_corner = choose(to_up <= to_corner, up, corner);

    return choose((to_left <= to_up) & (to_left <= to_corner), left, up_or_corner);
}

/* Paeth and average, whose pixels depend on the one before; `samples` is a constant of each
 * caller. */
static inline __attribute__((always_inline)) void undo_in_turn(uint8_t *row, const uint8_t *above,
                                                               size_t n, size_t samples,
                                                               bool average)
{
    Pixel left = { 0 }, corner = { 0 };

    for (size_t i = 0; i < n; i += samples) {
        const Pixel up = load(above + i);
        const Pixel guess = average ? (left + up) >> 1 : paeth(left, up, corner);

        left = (load(row + i) + guess) & 255;
        corner = up;
        store(row + i, left, samples);
    }
}

/* The same of one or two samples a pixel. */
static void undo_bytes(uint8_t *row, const uint8_t *above, size_t n, size_t samples, bool average)
{
    for (size_t i = 0; i < n; i++) {
        const int left = i >= samples ? row[i - samples] : 0, up = above[i];
        const int corner = i >= samples ? above[i - samples] : 0;
        const int to_left = abs(up - corner), to_up = abs(left - corner);
        const int to_corner = abs(left + up - 2 * corner);
        const int nearest = to_left <= to_up && to_left <= to_corner ? left
                            : to_up <= to_corner                     ? up
                                                                     : corner;

        row[i] = (uint8_t)(row[i] + (average ? (left + up) / 2 : nearest));
    }
}

static void undo_slow(uint8_t *row, const uint8_t *above, size_t n, size_t samples, bool average)
{
    if (samples == 3 && average)
        undo_in_turn(row, above, n, 3, true);
    else if (samples == 3)
        undo_in_turn(row, above, n, 3, false);
    else if (samples == 4 && average)
        undo_in_turn(row, above, n, 4, true);
    else if (samples == 4)
        undo_in_turn(row, above, n, 4, false);
    else
        undo_bytes(row, above, n, samples, average);
}

/* Undo the filter of a row of n bytes; `above` is the row above it. False: there is no such
 * filter. */
static bool undo(int filter, uint8_t *row, const uint8_t *above, size_t n, size_t samples)
{
    switch (filter) {
    case NONE:
        return true;
    case SUB:
        for (size_t i = samples; i < n; i++)
            row[i] = (uint8_t)(row[i] + row[i - samples]);
        return true;
    case UP:
        for (size_t i = 0; i < n; i++)
            row[i] = (uint8_t)(row[i] + above[i]);
        return true;
    case AVERAGE:
    case PAETH:
        undo_slow(row, above, n, samples, filter == AVERAGE);
        return true;
    default:
        return false;
    }
}

/* ---- Rows -------------------------------------------------------------------------------------
 */

bool kiln_png_is_common(const KilnImageBytes *bytes, const KilnImageHead *head)
{
    const int64_t samples = samples_of(bytes);

    return samples > 0 && head->width < MOST_BYTES &&
           head->height <= MOST_BYTES / (head->width * samples + 1) &&
           head->height * (head->width * samples + 1) / 1040 <= (int64_t)bytes->size;
}

/* Before the first row of the image is one of zeros. */
bool kiln_png_rows_read(const KilnImageBytes *bytes, const KilnImageHead *head, int64_t n,
                        KilnPngRows *ret)
{
    const int64_t samples = samples_of(bytes);
    const size_t width = (size_t)(head->width * samples), stride = width + 1;
    const size_t size = stride * (size_t)head->height;
    uint8_t *room = calloc(1, width + size + SLACK);

    *ret = (KilnPngRows) { 0 };
    if (room == NULL)
        return false;
    uint8_t *rows = room + width; /* each after its filter */
    bool done = inflate_all(bytes, rows, size);
    for (int64_t y = 0; y < n && done; y++) {
        uint8_t *row = rows + (size_t)y * stride + 1;

        done = undo(row[-1], row, y == 0 ? room : row - stride, width, (size_t)samples);
    }
    *ret = (KilnPngRows) { .memory = room, .data = rows + 1, .stride = stride, .samples = samples };
    return done;
}

void kiln_png_rows_release(KilnPngRows *rows)
{
    free(rows->memory);
    *rows = (KilnPngRows) { 0 };
}
