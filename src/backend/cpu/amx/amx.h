/* AMX: the processor's tiles of 16 rows by 64 bytes, which multiply bf16 and sum
 * in f32. Packing into tiles, and the product of packed panels; products.c's and
 * convolution's bf16 kernels are made of these. Everything here needs
 * KILN_CPU_AMX (level.h). */
#ifndef KILN_BACKEND_CPU_AMX_AMX_H
#define KILN_BACKEND_CPU_AMX_AMX_H

#include <stdbool.h>
#include <stdint.h>

/* A tile holds 16 rows and, as bf16, 32 values of the axis that is summed over. */
enum { KILN_AMX_ROWS = 16, KILN_AMX_DEPTH = 32, KILN_AMX_TILE = 512, KILN_AMX_BLOCK = 32 };

/* Whether processor and kernel let this process use AMX with bf16; asks the
 * kernel for it the first time. Whether it is to be used is level.h's. */
bool kiln_amx_usable(void);
/* Between these two a thread may call kiln_amx_block. */
void kiln_amx_begin(void);
void kiln_amx_end(void);

/* A matrix [rows, depth] of which depth is summed over. */
typedef struct KilnAmxMatrix {
    const void *data;
    bool f32;       /* f32, to be rounded; else bf16 */
    bool across;    /* row r, depth k is at k * stride + r; else at r * stride + k */
    int64_t stride; /* in elements */
    int64_t spread; /* r, or k, times this, if it is not 0: of f32 only */
    int64_t rows, depth;
} KilnAmxMatrix;

/* Tiles of a packed matrix: [rows / 16][depth / 32], zero where it ends before. */
int64_t kiln_amx_packed(int64_t rows, int64_t depth); /* elements */
/* Pack rows of tiles begin..end. The left factor's tiles hold rows, the right
 * one's hold pairs of depth, as the multiplication wants them. */
void kiln_amx_pack(uint16_t *packed, const KilnAmxMatrix *matrix, bool right, int64_t begin,
                   int64_t end);

/* Pack two tiles' rows (at most 32) of gathered bf16: depth k of row r is at
 * data[at[k] + r], 0 where at[k] is negative. `at` has an even number of entries, and
 * they fill `packed`, and `second` elements after it the tiles of rows 16 and up, as
 * far as they go: whole tiles of the left factor, or rows of pairs. */
void kiln_amx_gather(uint16_t *packed, int64_t second, const uint16_t *data, const int32_t *at,
                     int64_t depth, int64_t rows, bool right);

/* Two by two tiles of a product: c (32 x 32 of f32, rows `stride` apart) = or += the
 * sum over `steps` tiles of depth, `runs` times. */
typedef struct KilnAmxSide {
    const uint16_t *first;
    int64_t second, step, run; /* to the second rows, the next step and run, in elements */
    int64_t row;               /* between the rows of a tile, in bytes */
    const int64_t *runs;       /* from `first` to each run, instead of `run`; or NULL */
} KilnAmxSide;
void kiln_amx_block(float *c, int64_t stride, const KilnAmxSide *left, const KilnAmxSide *right,
                    int64_t steps, int64_t runs, bool add);

/* Where sums of a product go. */
typedef struct KilnAmxResult {
    void *data;
    bool f32; /* f32, else bf16 */
    bool add; /* to what is there */
    int64_t stride;
    const float *bias; /* one for each column, or NULL */
} KilnAmxResult;
/* Write rows x columns of c, whose rows are c_stride apart, to (row, column) of the
 * result. c is aligned to 64 bytes, and so is c_stride. */
void kiln_amx_store(const KilnAmxResult *result, const float *c, int64_t c_stride, int64_t row,
                    int64_t column, int64_t rows, int64_t columns);

#endif
