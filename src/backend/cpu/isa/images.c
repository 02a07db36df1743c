/* Vector loops over images in plain C, compiled once per instruction set. */
#include "backend/cpu/isa/images.h"

enum { LANES = 16 };

/* Channels c ... c + lanes - 1 of a window's sum; lanes is a constant after inlining. */
static inline void window_sum_lanes(float *restrict y, const float *restrict x,
                                    const KilnWindowLoop *window, int lanes)
{
    float sum[LANES] = { 0 };

    for (int64_t r = 0; r < window->rows; r++)
        for (int64_t k = 0; k < window->columns; k++) {
            const float *place = x + r * window->row_stride + k * window->block;

#pragma omp simd
            for (int lane = 0; lane < lanes; lane++)
                sum[lane] += place[lane];
        }
    for (int lane = 0; lane < lanes; lane++)
        y[lane] = sum[lane] * window->scale;
}

static void window_sum(float *y, const float *x, const KilnWindowLoop *window)
{
    int64_t c = 0;

    for (; c + LANES <= window->block; c += LANES)
        window_sum_lanes(y + c, x + c, window, LANES);
    if (c < window->block)
        window_sum_lanes(y + c, x + c, window, (int)(window->block - c));
}

static void window_add(float *x, const float *y, const KilnWindowLoop *window)
{
    const float scale = window->scale;

    for (int64_t r = 0; r < window->rows; r++)
        for (int64_t k = 0; k < window->columns; k++) {
            float *place = x + r * window->row_stride + k * window->block;

#pragma omp simd
            for (int64_t c = 0; c < window->block; c++)
                place[c] += y[c] * scale;
        }
}

#define TABLE_OF(isa) kiln_image_loops_##isa
#define TABLE(isa) TABLE_OF(isa)

const KilnImageLoops TABLE(KILN_ISA) = {
    .window_sum = window_sum,
    .window_add = window_add,
};
