/* Tiles of bf16: matrices packed for instructions that multiply pairs of bf16 and sum in f32, and
 * the products of such tiles, on AMX or by AVX-512's vdpbf16ps, which take the same order. For the
 * bf16 kernels of products, attention and convolutions. Everything here needs KILN_CPU_AVX512_BF16
 * (level.h). */
#ifndef KILN_BACKEND_CPU_BF16_TILES_H
#define KILN_BACKEND_CPU_BF16_TILES_H

#include <stdbool.h>
#include <stdint.h>

/* A tile holds 16 rows and 32 values along the summed axis. */
enum { KILN_TILE_ROWS = 16, KILN_TILE_DEPTH = 32, KILN_TILE_SIZE = 512, KILN_TILE_BLOCK = 32 };

/* The distance between rows of a left factor in pairs of depth, as the right factor is. */
enum { KILN_TILE_PAIRED = 4 };

/* A matrix [rows, depth], summed over depth. */
typedef struct KilnTileMatrix {
    const void *data;
    bool f32;       /* f32, rounded while packing; else bf16 */
    bool across;    /* row r, depth k is at k * stride + r; else at r * stride + k */
    int64_t stride; /* in elements */
    int64_t spread; /* f32 only, if not 0: r, or k, is multiplied by this */
    int64_t rows, depth;
} KilnTileMatrix;

/* Elements of a packed matrix: tiles [rows / 16][depth / 32], padded with zeros. */
int64_t kiln_tiles_packed(int64_t rows, int64_t depth); /* elements */
/* Packs rows of tiles [begin, end). The left factor's tiles hold rows; the right factor's hold
 * pairs of depth, as the instruction requires. */
void kiln_tiles_pack(uint16_t *packed, const KilnTileMatrix *matrix, bool right, int64_t begin,
                     int64_t end);

/* Packs two tiles' rows (at most 32) of gathered bf16: depth k of row r is at data[at[k] + r], or 0
 * where at[k] is negative. `at` has an even number of entries. Tiles of rows 16 and up are `second`
 * elements after `packed`. The result is whole tiles of the left factor, or rows of pairs. */
void kiln_tiles_gather(uint16_t *packed, int64_t second, const uint16_t *data, const int32_t *at,
                       int64_t depth, int64_t rows, bool right);

/* One factor of two by two tiles of a product. */
typedef struct KilnTileSide {
    const uint16_t *first;
    int64_t second, step, run; /* distance to the second rows, the next step and run, in elements */
    int64_t row;               /* between rows of a tile, in bytes; 64 for the right factor. Left:
                                * KILN_TILE_PAIRED if it has the right one's order */
    const int64_t *runs;       /* offset of each run from `first`, instead of `run`; or NULL */
} KilnTileSide;

/* Products of tiles; a thread calls `block` only between `begin` and `end`. */
typedef struct KilnTileOps {
    void (*begin)(void);
    void (*end)(void);
    /* c (32 x 32 of f32, rows `stride` apart) = or += the sum over `steps` tiles of depth, `runs`
     * times. Only the first `rows` rows, which may be more
     * than 32, need be right. */
    void (*block)(float *c, int64_t stride, const KilnTileSide *left, const KilnTileSide *right,
                  int64_t rows, int64_t steps, int64_t runs, bool add);
    bool paired; /* takes KILN_TILE_PAIRED: such a left factor needs no transpose where depth is not
                  * adjacent in memory */
} KilnTileOps;

/* For KILN_CPU_AMX; and by vdpbf16ps. On x86-64 alone. */
extern const KilnTileOps kiln_tiles_amx, kiln_tiles_vectors;
/* Whether processor and operating system allow AMX with bf16; the first call requests it. level.h
 * decides whether to use it. */
bool kiln_amx_usable(void);

/* The destination of a product's sums. */
typedef struct KilnTileResult {
    void *data;
    bool f32; /* f32, else bf16 */
    bool add; /* add to what it holds */
    int64_t stride;
    const float *bias; /* one per column, or NULL */
} KilnTileResult;
/* Writes rows x columns of c, whose rows are c_stride apart, to (row, column) of the result. c is
 * aligned to 64 bytes, and so is c_stride. */
void kiln_tiles_store(const KilnTileResult *result, const float *c, int64_t c_stride, int64_t row,
                      int64_t column, int64_t rows, int64_t columns);

#endif
