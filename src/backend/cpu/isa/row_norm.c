/* Vector loops of layer and rms norm, for f32 and bf16. Compiled once per level. A row is read
 * again for every sum, from the first-level cache. */
#include "backend/cpu/isa/row_norm.h"

#include <math.h>

#include "backend/cpu/isa/vector.h"

/* Vectors summed side by side; columns summed in float before adding to a double. */
enum { SIDE = 4, FLUSH = 16384 };

/* The term to sum over a row. */
typedef enum Term { TERM_X, TERM_SQUARE } Term;

KILN_INLINE KilnFloats term_at(const void *x, int64_t i, float mean, int lanes, Term term,
                               unsigned bf16)
{
    KilnFloats d = kiln_load_lanes(x, i, lanes, (bf16 & KILN_ROW_X) != 0);

    if (term == TERM_X)
        return d;
    d -= mean;
    return d * d;
}

KILN_INLINE double lanes_sum(const KilnFloats *part, int lanes)
{
    double sum = 0.0;

    for (int lane = 0; lane < lanes; lane++)
        sum += (double)(*part)[lane];
    return sum;
}

KILN_INLINE double row_sum(const KilnRowNorm *norm, const void *x, float mean, Term term,
                           unsigned bf16)
{
    const int64_t n = norm->columns;
    double sum = 0.0;

    for (int64_t from = 0; from < n; from += FLUSH) {
        const int64_t to = from + FLUSH < n ? from + FLUSH : n;
        KilnFloats part[SIDE] = { 0 };
        int64_t i = from;

        for (; i + SIDE * KILN_LANES <= to; i += SIDE * KILN_LANES)
            for (int v = 0; v < SIDE; v++)
                part[v] += term_at(x, i + v * KILN_LANES, mean, KILN_LANES, term, bf16);
        part[0] += part[1];
        part[2] += part[3];
        part[0] += part[2];
        for (; i + KILN_LANES <= to; i += KILN_LANES)
            part[0] += term_at(x, i, mean, KILN_LANES, term, bf16);
        sum += lanes_sum(&part[0], KILN_LANES);
        if (i < to) {
            part[0] = term_at(x, i, mean, (int)(to - i), term, bf16);
            sum += lanes_sum(&part[0], (int)(to - i));
        }
    }
    return sum;
}

KILN_INLINE void write_at(const KilnRowNorm *norm, void *y, const void *x, int64_t i, float mean,
                          float rstd, int lanes, unsigned bf16)
{
    KilnFloats value = (kiln_load_lanes(x, i, lanes, (bf16 & KILN_ROW_X) != 0) - mean) * rstd;

    if (norm->weight != NULL)
        value *= kiln_load_lanes(norm->weight, i, lanes, false);
    if (norm->bias != NULL)
        value += kiln_load_lanes(norm->bias, i, lanes, false);
    kiln_store_lanes(y, i, value, lanes, (bf16 & KILN_ROW_Y) != 0);
}

KILN_INLINE void forward_of(const KilnRowNorm *norm, void *y, const void *x, float *ret_mean,
                            float *ret_rstd, unsigned bf16)
{
    const double n = (double)norm->columns;
    const float mean = norm->center ? (float)(row_sum(norm, x, 0.0f, TERM_X, bf16) / n) : 0.0f;
    const double square = row_sum(norm, x, mean, TERM_SQUARE, bf16) / n;
    const float rstd = (float)(1.0 / sqrt(square + (double)norm->eps));
    int64_t i = 0;

    for (; i + KILN_LANES <= norm->columns; i += KILN_LANES)
        write_at(norm, y, x, i, mean, rstd, KILN_LANES, bf16);
    if (i < norm->columns)
        write_at(norm, y, x, i, mean, rstd, (int)(norm->columns - i), bf16);
    *ret_mean = mean;
    *ret_rstd = rstd;
}

/* ---- Backward ---------------------------------------------------------------------- */

/* One vector of a row in the backward pass. */
typedef struct Grad {
    KilnFloats dy, g, h; /* g = dy * weight, h = (x - mean) * rstd */
} Grad;

KILN_INLINE void grad_at(const KilnRowNorm *norm, const void *dy, const void *x, int64_t i,
                         float mean, float rstd, int lanes, unsigned bf16, Grad *ret)
{
    ret->dy = kiln_load_lanes(dy, i, lanes, (bf16 & KILN_ROW_DY) != 0);
    ret->h = (kiln_load_lanes(x, i, lanes, (bf16 & KILN_ROW_X) != 0) - mean) * rstd;
    ret->g = norm->weight != NULL ? ret->dy * kiln_load_lanes(norm->weight, i, lanes, false)
                                  : ret->dy;
}

/* Sums g and g * h over the row. */
KILN_INLINE void grad_sums(const KilnRowNorm *norm, const void *dy, const void *x, float mean,
                           float rstd, unsigned bf16, double *ret_sum, double *ret_dot)
{
    const int64_t n = norm->columns;
    Grad grad;

    *ret_sum = *ret_dot = 0.0;
    for (int64_t from = 0; from < n; from += FLUSH) {
        const int64_t to = from + FLUSH < n ? from + FLUSH : n;
        KilnFloats sum[2] = { 0 }, dot[2] = { 0 };
        int64_t i = from;

        for (; i + 2 * KILN_LANES <= to; i += 2 * KILN_LANES)
            for (int v = 0; v < 2; v++) {
                grad_at(norm, dy, x, i + v * KILN_LANES, mean, rstd, KILN_LANES, bf16, &grad);
                sum[v] += grad.g;
                dot[v] += grad.g * grad.h;
            }
        for (; i < to; i += KILN_LANES) {
            const int lanes = to - i < KILN_LANES ? (int)(to - i) : KILN_LANES;

            grad_at(norm, dy, x, i, mean, rstd, lanes, bf16, &grad);
            sum[0] += grad.g;
            dot[0] += grad.g * grad.h;
        }
        sum[0] += sum[1];
        dot[0] += dot[1];
        *ret_sum += lanes_sum(&sum[0], KILN_LANES);
        *ret_dot += lanes_sum(&dot[0], KILN_LANES);
    }
}

KILN_INLINE void add_at(float *sums, int64_t i, const KilnFloats *value, int lanes)
{
    KilnFloats sum = kiln_load_lanes(sums, i, lanes, false) + *value;

    kiln_store_lanes(sums, i, sum, lanes, false);
}

KILN_INLINE void backward_at(const KilnRowNorm *norm, void *dx, const void *dy, const void *x,
                             int64_t i, const float numbers[4], float *dweight, float *dbias,
                             int lanes, unsigned bf16)
{
    const float mean = numbers[0], rstd = numbers[1], mean_g = numbers[2], mean_gh = numbers[3];
    Grad grad;

    grad_at(norm, dy, x, i, mean, rstd, lanes, bf16, &grad);
    KilnFloats dw = grad.dy * grad.h, value = (grad.g - mean_g - grad.h * mean_gh) * rstd;
    add_at(dweight, i, &dw, lanes);
    if (dbias != NULL)
        add_at(dbias, i, &grad.dy, lanes);
    kiln_store_lanes(dx, i, value, lanes, (bf16 & KILN_ROW_DX) != 0);
}

KILN_INLINE void backward_of(const KilnRowNorm *norm, void *dx, const void *dy, const void *x,
                             float mean, float rstd, float *dweight, float *dbias, unsigned bf16)
{
    const double n = (double)norm->columns;
    double sum, dot;
    int64_t i = 0;

    grad_sums(norm, dy, x, mean, rstd, bf16, &sum, &dot);

    const float numbers[4] = { mean, rstd, norm->center ? (float)(sum / n) : 0.0f,
                               (float)(dot / n) };

    for (; i + KILN_LANES <= norm->columns; i += KILN_LANES)
        backward_at(norm, dx, dy, x, i, numbers, dweight, dbias, KILN_LANES, bf16);
    if (i < norm->columns)
        backward_at(norm, dx, dy, x, i, numbers, dweight, dbias, (int)(norm->columns - i), bf16);
}

/* Types are compile-time constants, except for rare mixtures. Residual networks mix f32 with bf16
 * for products. */
#define EACH_TYPE(call_of)                                                                         \
    if (norm->bf16 == 0)                                                                           \
        call_of(0u);                                                                               \
    else if (norm->bf16 == KILN_ROW_ALL)                                                           \
        call_of(KILN_ROW_ALL);                                                                     \
    else if ((norm->bf16 & (KILN_ROW_X | KILN_ROW_DX)) == 0)                                       \
        call_of(KILN_ROW_Y | KILN_ROW_DY);                                                         \
    else                                                                                           \
        call_of(norm->bf16)

static void forward(const KilnRowNorm *norm, void *y, const void *x, float *mean, float *rstd)
{
#define FORWARD(bf16) forward_of(norm, y, x, mean, rstd, bf16)
    EACH_TYPE(FORWARD);
#undef FORWARD
}

static void backward(const KilnRowNorm *norm, void *dx, const void *dy, const void *x, float mean,
                     float rstd, float *dweight, float *dbias)
{
#define BACKWARD(bf16) backward_of(norm, dx, dy, x, mean, rstd, dweight, dbias, bf16)
    EACH_TYPE(BACKWARD);
#undef BACKWARD
}

const KilnRowNormLoops KILN_LOOPS(row_norm_loops) = { .forward = forward, .backward = backward };
