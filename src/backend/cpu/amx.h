/* AMX: the processor's tiles of 16 rows by 64 bytes, which multiply bf16 and sum
 * in f32. Packing into tiles, and the product of packed panels; products.c's and
 * convolution's bf16 kernels are made of these. Everything here needs
 * kiln_amx_usable(). */
#ifndef KILN_BACKEND_CPU_AMX_H
#define KILN_BACKEND_CPU_AMX_H

#include <stdbool.h>
#include <stdint.h>

/* A tile holds 16 rows and, as bf16, 32 values of the axis that is summed over. */
enum { KILN_AMX_ROWS = 16, KILN_AMX_DEPTH = 32, KILN_AMX_TILE = 512, KILN_AMX_BLOCK = 32 };

/* Whether processor and kernel let this process use AMX with bf16; asks the
 * kernel for it the first time. */
bool kiln_amx_usable(void);
/* Between these two a thread may call kiln_amx_block. */
void kiln_amx_begin(void);
void kiln_amx_end(void);

/* A matrix [rows, depth] of which depth is summed over. */
typedef struct KilnAmxMatrix {
    const void *data;
    bool wide;      /* f32, to be rounded; else bf16 */
    bool across;    /* row r, depth k is at k * stride + r; else at r * stride + k */
    int64_t stride; /* in elements */
    int64_t rows, depth;
} KilnAmxMatrix;

/* Tiles of a packed matrix: [rows / 16][depth / 32], zero where it ends before. */
int64_t kiln_amx_packed(int64_t rows, int64_t depth); /* elements */
/* Pack rows of tiles begin..end. The left factor's tiles hold rows, the right
 * one's hold pairs of depth, as the multiplication wants them. */
void kiln_amx_pack(uint16_t *packed, const KilnAmxMatrix *matrix, bool right, int64_t begin,
                   int64_t end);

/* Two by two tiles of a product: c (32 x 32, row-major f32) = or += sum over
 * `steps` tiles of depth. Steps and second rows are in elements from the first
 * tile; `row` is the distance of a tile's rows in bytes. */
typedef struct KilnAmxSide {
    const uint16_t *first;
    int64_t second, step, row;
} KilnAmxSide;
void kiln_amx_block(float *c, const KilnAmxSide *left, const KilnAmxSide *right, int64_t steps,
                    bool add);

/* Where a block of a product goes. */
typedef struct KilnAmxResult {
    void *data;
    bool wide; /* f32, else bf16 */
    bool add;  /* to what is there */
    int64_t stride;
    const float *bias; /* one for each column, or NULL */
} KilnAmxResult;
/* Write rows x columns of a block to (row, column) of the result. */
void kiln_amx_store(const KilnAmxResult *result, const float *c, int64_t row, int64_t column,
                    int64_t rows, int64_t columns);

#endif
