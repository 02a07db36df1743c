/* Vector loops of pooling over images: planes of pixels × block channels; in plain order all
 * channels are one block. Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_POOLING_H
#define KILN_BACKEND_CPU_ISA_POOLING_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cpu/level.h"

/* A window in a plane: rows × columns of pixels. */
typedef struct KilnWindowLoop {
    int64_t rows, columns, row_stride; /* floats from row to row */
    int64_t block;
    float scale;
} KilnWindowLoop;

/* Maximum pooling of planes; [2] is height and width. The index of a maximum is its number within
 * the window, row by row. */
typedef struct KilnMaxPool {
    int64_t kernel[2], stride[2], padding[2];
    int64_t x_size[2], y_size[2];
    int64_t block;
    bool bf16; /* x and y are bf16 */
    bool i32;  /* indices are i32, not u8 */
} KilnMaxPool;

typedef struct KilnPoolingLoops {
    /* y[c] = scale * the sum of x[., ., c] over the window */
    void (*window_sum)(float *y, const float *x, const KilnWindowLoop *window);
    /* x[., ., c] += scale * y[c] over the window */
    void (*window_add)(float *x, const float *y, const KilnWindowLoop *window);
    /* A row of y, and the indices of its maxima, from the plane x; all pointers are to the start of
     * their plane. NaN is larger than anything, and the last NaN wins. */
    void (*max_row)(const KilnMaxPool *pool, int64_t row, void *y, void *index, const void *x);
    /* A row of dx: for each element the sum of dy over the windows whose maximum it is. */
    void (*max_grad_row)(const KilnMaxPool *pool, int64_t row, void *dx, const void *dy,
                         const void *index);
} KilnPoolingLoops;

KILN_DECLARE_LOOPS(KilnPoolingLoops, pooling_loops);

#endif
