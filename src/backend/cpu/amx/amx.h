/* AMX: tiles of 16 rows by 64 bytes that multiply bf16 and sum in f32. Packs matrices into tiles
 * and multiplies packed panels, for the bf16 kernels of products, attention and convolutions.
 * Everything here needs KILN_CPU_AMX (level.h). */
#ifndef KILN_BACKEND_CPU_AMX_AMX_H
#define KILN_BACKEND_CPU_AMX_AMX_H

#include <stdbool.h>
#include <stdint.h>

/* A tile holds 16 rows and, as bf16, 32 values along the summed axis. */
enum { KILN_AMX_ROWS = 16, KILN_AMX_DEPTH = 32, KILN_AMX_TILE = 512, KILN_AMX_BLOCK = 32 };

/* Whether processor and operating system allow AMX with bf16; the first call requests it. level.h
 * decides whether to use it. */
bool kiln_amx_usable(void);
/* A thread may call kiln_amx_block only between these two. */
void kiln_amx_begin(void);
void kiln_amx_end(void);

/* A matrix [rows, depth], summed over depth. */
typedef struct KilnAmxMatrix {
    const void *data;
    bool f32;       /* f32, rounded while packing; else bf16 */
    bool across;    /* row r, depth k is at k * stride + r; else at r * stride + k */
    int64_t stride; /* in elements */
    int64_t spread; /* f32 only, if not 0: r, or k, is multiplied by this */
    int64_t rows, depth;
} KilnAmxMatrix;

/* Elements of a packed matrix: tiles [rows / 16][depth / 32], padded with zeros. */
int64_t kiln_amx_packed(int64_t rows, int64_t depth); /* elements */
/* Packs rows of tiles [begin, end). The left factor's tiles hold rows; the right factor's hold
 * pairs of depth, as the instruction requires. */
void kiln_amx_pack(uint16_t *packed, const KilnAmxMatrix *matrix, bool right, int64_t begin,
                   int64_t end);

/* Packs two tiles' rows (at most 32) of gathered bf16: depth k of row r is at data[at[k] + r], or 0
 * where at[k] is negative. `at` has an even number of entries. Tiles of rows 16 and up are `second`
 * elements after `packed`. The result is whole tiles of the left factor, or rows of pairs. */
void kiln_amx_gather(uint16_t *packed, int64_t second, const uint16_t *data, const int32_t *at,
                     int64_t depth, int64_t rows, bool right);

/* Two by two tiles of a product: c (32 x 32 of f32, rows `stride` apart) = or += the sum over
 * `steps` tiles of depth, `runs` times. */
typedef struct KilnAmxSide {
    const uint16_t *first;
    int64_t second, step, run; /* distance to the second rows, the next step and run, in elements */
    int64_t row;               /* between rows of a tile, in bytes */
    const int64_t *runs;       /* offset of each run from `first`, instead of `run`; or NULL */
} KilnAmxSide;
void kiln_amx_block(float *c, int64_t stride, const KilnAmxSide *left, const KilnAmxSide *right,
                    int64_t steps, int64_t runs, bool add);

/* The destination of a product's sums. */
typedef struct KilnAmxResult {
    void *data;
    bool f32; /* f32, else bf16 */
    bool add; /* add to what it holds */
    int64_t stride;
    const float *bias; /* one per column, or NULL */
} KilnAmxResult;
/* Writes rows x columns of c, whose rows are c_stride apart, to (row, column) of the result. c is
 * aligned to 64 bytes, and so is c_stride. */
void kiln_amx_store(const KilnAmxResult *result, const float *c, int64_t c_stride, int64_t row,
                    int64_t column, int64_t rows, int64_t columns);

#endif
