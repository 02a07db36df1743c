/* Vector loops over images: planes of places × block channels, all channels being
 * one block in plain order. images.c is compiled once per instruction set. */
#ifndef KILN_BACKEND_CPU_ISA_IMAGES_H
#define KILN_BACKEND_CPU_ISA_IMAGES_H

#include <stdint.h>

/* A window in a plane: rows × columns places. */
typedef struct KilnWindowLoop {
    int64_t rows, columns, row_stride; /* floats from row to row */
    int64_t block;
    float scale;
} KilnWindowLoop;

typedef struct KilnImageLoops {
    /* y[c] = scale * the sum of x[., ., c] over the window */
    void (*window_sum)(float *y, const float *x, const KilnWindowLoop *window);
    /* x[., ., c] += scale * y[c] over the window */
    void (*window_add)(float *x, const float *y, const KilnWindowLoop *window);
} KilnImageLoops;

extern const KilnImageLoops kiln_image_loops_base, kiln_image_loops_avx2, kiln_image_loops_avx512;

#endif
