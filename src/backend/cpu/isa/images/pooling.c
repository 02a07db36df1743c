/* Vector loops of pooling, in plain C. Compiled once per level. */
#include "backend/cpu/isa/images/pooling.h"

#include "backend/cpu/isa/vector.h"

enum { LANES = 16 };

/* Channels c ... c + lanes - 1 of a window's sum; lanes is a constant after inlining. */
static inline void window_sum_lanes(float *restrict y, const float *restrict x,
                                    const KilnWindowLoop *window, int lanes)
{
    float sum[LANES] = { 0 };

    for (int64_t r = 0; r < window->rows; r++)
        for (int64_t k = 0; k < window->columns; k++) {
            const float *index = x + r * window->row_stride + k * window->block;

#pragma omp simd
            for (int lane = 0; lane < lanes; lane++)
                sum[lane] += index[lane];
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
            float *index = x + r * window->row_stride + k * window->block;

#pragma omp simd
            for (int64_t c = 0; c < window->block; c++)
                index[c] += y[c] * scale;
        }
}

/* ---- Maximum ---------------------------------------------------------------------------- */

/* Channels are processed in whole vectors, then the rest of a block in halves, quarters, and so
 * on. Each size is compiled separately. */

typedef uint8_t Bytes16 __attribute__((vector_size(16)));

/* A range along an axis: elements of a window, or windows over an element. */
typedef struct Reach {
    int64_t begin, end;
} Reach;

/* Elements of x under index i of y; the window begins at *ret_origin. */
static inline Reach window_reach(const KilnMaxPool *pool, int axis, int64_t i, int64_t *ret_origin)
{
    const int64_t origin = i * pool->stride[axis] - pool->padding[axis];
    const int64_t end = origin + pool->kernel[axis];

    *ret_origin = origin;
    return (Reach) { origin > 0 ? origin : 0, end < pool->x_size[axis] ? end : pool->x_size[axis] };
}

/* Indices of y whose windows contain element i of x. */
static inline Reach element_reach(const KilnMaxPool *pool, int axis, int64_t i)
{
    const int64_t stride = pool->stride[axis], at = i + pool->padding[axis];
    const int64_t before = at - pool->kernel[axis], end = at / stride + 1;

    return (Reach) { before < 0 ? 0 : before / stride + 1,
                     end < pool->y_size[axis] ? end : pool->y_size[axis] };
}

/* In two steps, since gcc converts by a factor of four element by element. */
KILN_INLINE KilnWords load_indices(const void *from, int64_t i, int lanes, bool i32)
{
    KilnWords words = { 0 };
    Bytes16 bytes = { 0 };

    if (i32) {
        memcpy(&words, (const uint32_t *)from + i, (size_t)lanes * sizeof(uint32_t));
        return words;
    }
    memcpy(&bytes, (const uint8_t *)from + i, (size_t)lanes);
    return __builtin_convertvector(__builtin_convertvector(bytes, KilnHalves), KilnWords);
}

KILN_INLINE void store_indices(void *to, int64_t i, KilnWords indices, int lanes, bool i32)
{
    if (i32) {
        memcpy((uint32_t *)to + i, &indices, (size_t)lanes * sizeof(uint32_t));
        return;
    }
    const KilnHalves halves = __builtin_convertvector(indices, KilnHalves);
    const Bytes16 bytes = __builtin_convertvector(halves, Bytes16);

    memcpy((uint8_t *)to + i, &bytes, (size_t)lanes);
}

/* One pixel of y: the position of its window in the plane. */
typedef struct MaxWindow {
    Reach rows, columns;
    int64_t top, left; /* of the window, possibly in the padding */
    int64_t at;        /* elements before it in y */
} MaxWindow;

KILN_INLINE void max_lanes(const KilnMaxPool *pool, const MaxWindow *w, void *y, void *index,
                           const void *x, int64_t c, int lanes, bool bf16)
{
    KilnFloats best = kiln_floats(-__builtin_inff());
    /* The first element's index, if nothing is larger (all -inf). */
    KilnWords best_at = { 0 };

    best_at += (uint32_t)((w->rows.begin - w->top) * pool->kernel[1] + w->columns.begin - w->left);
    for (int64_t row = w->rows.begin; row < w->rows.end; row++) {
        const int64_t first = row * pool->x_size[1];
        uint32_t at = (uint32_t)((row - w->top) * pool->kernel[1] + w->columns.begin - w->left);

        for (int64_t column = w->columns.begin; column < w->columns.end; column++, at++) {
            const KilnFloats value = kiln_load_lanes(x, (first + column) * pool->block + c, lanes,
                                                     bf16);
            const KilnWords larger = (KilnWords)(value > best) | (KilnWords)(value != value);

            best = (KilnFloats)(((KilnWords)value & larger) | ((KilnWords)best & ~larger));
            best_at = (at & larger) | (best_at & ~larger);
        }
    }
    kiln_store_lanes(y, w->at + c, best, lanes, bf16);
    store_indices(index, w->at + c, best_at, lanes, pool->i32);
}

KILN_INLINE void max_row_of(const KilnMaxPool *pool, int64_t row, void *y, void *index,
                            const void *x, bool bf16)
{
    MaxWindow w = { .at = row * pool->y_size[1] * pool->block };

    w.rows = window_reach(pool, 0, row, &w.top);
    for (int64_t column = 0; column < pool->y_size[1]; column++, w.at += pool->block) {
        int64_t c = 0;

        w.columns = window_reach(pool, 1, column, &w.left);
        for (; c + 16 <= pool->block; c += 16)
            max_lanes(pool, &w, y, index, x, c, 16, bf16);
        if ((pool->block & 8) != 0)
            max_lanes(pool, &w, y, index, x, c, 8, bf16), c += 8;
        if ((pool->block & 4) != 0)
            max_lanes(pool, &w, y, index, x, c, 4, bf16), c += 4;
        if ((pool->block & 2) != 0)
            max_lanes(pool, &w, y, index, x, c, 2, bf16), c += 2;
        if ((pool->block & 1) != 0)
            max_lanes(pool, &w, y, index, x, c, 1, bf16);
    }
}

static void max_row(const KilnMaxPool *pool, int64_t row, void *y, void *index, const void *x)
{
    if (pool->bf16)
        max_row_of(pool, row, y, index, x, true);
    else
        max_row_of(pool, row, y, index, x, false);
}

/* An element of dx: the pixels of y whose maximum it may be. */
typedef struct MaxTakers {
    Reach rows, columns;
    int64_t row, column; /* of the element, padding included */
    int64_t at;          /* elements before it in dx */
} MaxTakers;

KILN_INLINE void max_grad_lanes(const KilnMaxPool *pool, const MaxTakers *t, void *dx,
                                const void *dy, const void *index, int64_t c, int lanes, bool bf16)
{
    KilnFloats sum = { 0 };

    for (int64_t row = t->rows.begin; row < t->rows.end; row++)
        for (int64_t column = t->columns.begin; column < t->columns.end; column++) {
            const int64_t from = (row * pool->y_size[1] + column) * pool->block + c;
            const uint32_t mine = (uint32_t)((t->row - row * pool->stride[0]) * pool->kernel[1] +
                                             t->column - column * pool->stride[1]);
            const KilnWords taken = (KilnWords)(load_indices(index, from, lanes, pool->i32) ==
                                                mine);

            sum += kiln_masked(kiln_load_lanes(dy, from, lanes, bf16), taken);
        }
    kiln_store_lanes(dx, t->at + c, sum, lanes, bf16);
}

KILN_INLINE void max_grad_row_of(const KilnMaxPool *pool, int64_t row, void *dx, const void *dy,
                                 const void *index, bool bf16)
{
    MaxTakers t = { .rows = element_reach(pool, 0, row),
                    .row = row + pool->padding[0],
                    .column = pool->padding[1],
                    .at = row * pool->x_size[1] * pool->block };

    for (int64_t column = 0; column < pool->x_size[1]; column++, t.column++, t.at += pool->block) {
        int64_t c = 0;

        t.columns = element_reach(pool, 1, column);
        for (; c + 16 <= pool->block; c += 16)
            max_grad_lanes(pool, &t, dx, dy, index, c, 16, bf16);
        if ((pool->block & 8) != 0)
            max_grad_lanes(pool, &t, dx, dy, index, c, 8, bf16), c += 8;
        if ((pool->block & 4) != 0)
            max_grad_lanes(pool, &t, dx, dy, index, c, 4, bf16), c += 4;
        if ((pool->block & 2) != 0)
            max_grad_lanes(pool, &t, dx, dy, index, c, 2, bf16), c += 2;
        if ((pool->block & 1) != 0)
            max_grad_lanes(pool, &t, dx, dy, index, c, 1, bf16);
    }
}

static void max_grad_row(const KilnMaxPool *pool, int64_t row, void *dx, const void *dy,
                         const void *index)
{
    if (pool->bf16)
        max_grad_row_of(pool, row, dx, dy, index, true);
    else
        max_grad_row_of(pool, row, dx, dy, index, false);
}

const KilnPoolingLoops KILN_LOOPS(pooling_loops) = {
    .window_sum = window_sum,
    .window_add = window_add,
    .max_row = max_row,
    .max_grad_row = max_grad_row,
};
