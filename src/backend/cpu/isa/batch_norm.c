/* Vector loops of batch normalization. Compiled once per level. Each is written for `vectors`
 * adjacent vectors of `lanes`, from column `first` on, and compiled for whole panels in f32 and
 * bf16, and for remainders. */
#include "backend/cpu/isa/batch_norm.h"

#include "backend/cpu/isa/vector.h"

/* Rows summed in float before adding to the doubles. */
enum {
    VECTORS = KILN_PANEL / KILN_LANES,
    FLUSH = 256,
    AHEAD = 8 /* rows: panels of wide tensors are too scattered for the hardware prefetcher */
};

/* Prefetches the panel's part of the row AHEAD rows later. */
KILN_INLINE void fetch(const KilnPanel *panel, const void *from, int64_t r, int first, int lanes,
                       bool bf16)
{
    const int64_t at = (r + AHEAD) * panel->stride + first;

    if (from == NULL)
        return;
    for (int c = 0; c < lanes; c += 64 / (bf16 ? 2 : 4))
        __builtin_prefetch(bf16 ? (const void *)((const uint16_t *)from + at + c)
                                : (const void *)((const float *)from + at + c));
}

KILN_INLINE void columns_load(KilnFloats *to, const float *from, int vectors, int lanes)
{
    for (int v = 0; v < vectors; v++)
        to[v] = kiln_load_lanes(from, v * KILN_LANES, lanes, false);
}

KILN_INLINE void flush(double *sum, const KilnFloats *part, int vectors, int lanes)
{
    for (int v = 0; v < vectors; v++)
        for (int lane = 0; lane < lanes; lane++)
            sum[v * KILN_LANES + lane] += (double)part[v][lane];
}

/* ---- Forward -------------------------------------------------------------------- */

KILN_INLINE void sums_of(const KilnPanel *panel, const void *x, const KilnNormColumns *columns,
                         double *sum, double *square, int first, int vectors, int lanes,
                         unsigned bf16)
{
    KilnFloats mean[VECTORS];

    columns_load(mean, columns->mean + first, vectors, lanes);
    for (int64_t from = 0; from < panel->rows; from += FLUSH) {
        const int64_t to = from + FLUSH < panel->rows ? from + FLUSH : panel->rows;
        KilnFloats s[VECTORS] = { 0 }, q[VECTORS] = { 0 };

        for (int64_t r = from; r < to; r++) {
            fetch(panel, x, r, first, vectors * lanes, (bf16 & KILN_NORM_X) != 0);
            for (int v = 0; v < vectors; v++) {
                KilnFloats d = kiln_load_lanes(x, r * panel->stride + first + v * KILN_LANES, lanes,
                                               (bf16 & KILN_NORM_X) != 0) -
                               mean[v];

                s[v] += d;
                q[v] += d * d;
            }
        }
        flush(sum + first, s, vectors, lanes);
        flush(square + first, q, vectors, lanes);
    }
}

KILN_INLINE void apply_of(const KilnPanel *panel, void *y, const void *x, const void *more,
                          const KilnNormColumns *columns, int first, int vectors, int lanes,
                          unsigned bf16)
{
    KilnFloats mean[VECTORS], scale[VECTORS], bias[VECTORS];

    columns_load(mean, columns->mean + first, vectors, lanes);
    columns_load(scale, columns->scale + first, vectors, lanes);
    columns_load(bias, columns->bias + first, vectors, lanes);
    for (int64_t r = 0; r < panel->rows; r++) {
        fetch(panel, x, r, first, vectors * lanes, (bf16 & KILN_NORM_X) != 0);
        fetch(panel, y, r, first, vectors * lanes, (bf16 & KILN_NORM_Y) != 0);
        fetch(panel, more, r, first, vectors * lanes, (bf16 & KILN_NORM_MORE) != 0);
        for (int v = 0; v < vectors; v++) {
            const int64_t at = r * panel->stride + first + v * KILN_LANES;
            KilnFloats value =
                (kiln_load_lanes(x, at, lanes, (bf16 & KILN_NORM_X) != 0) - mean[v]) * scale[v] +
                bias[v];

            if (more != NULL)
                value += kiln_load_lanes(more, at, lanes, (bf16 & KILN_NORM_MORE) != 0);
            if (panel->relu)
                value = kiln_relu_floats(value);
            kiln_store_lanes(y, at, value, lanes, (bf16 & KILN_NORM_Y) != 0);
        }
    }
}

/* ---- Backward ------------------------------------------------------------------- */

/* The masked gradient of one vector; `d` is x - mean. */
KILN_INLINE KilnFloats gradient_at(const KilnPanel *panel, const KilnNormGrad *grad, int64_t at,
                                   const KilnFloats *d, const KilnFloats *scale,
                                   const KilnFloats *bias, int lanes, unsigned bf16)
{
    KilnFloats dy = kiln_load_lanes(grad->dy, at, lanes, (bf16 & KILN_NORM_DY) != 0);

    if (grad->more_dy != NULL)
        dy += kiln_load_lanes(grad->more_dy, at, lanes, (bf16 & KILN_NORM_MORE_DY) != 0);
    if (panel->relu) {
        KilnFloats y = grad->y != NULL
                           ? kiln_load_lanes(grad->y, at, lanes, (bf16 & KILN_NORM_Y) != 0)
                           : *d * *scale + *bias;

        dy = kiln_masked(dy, ~(KilnWords)(y <= 0.0f));
    }
    return dy;
}

KILN_INLINE void fetch_gradient(const KilnPanel *panel, const KilnNormGrad *grad, int64_t r,
                                int first, int lanes, unsigned bf16)
{
    fetch(panel, grad->x, r, first, lanes, (bf16 & KILN_NORM_X) != 0);
    fetch(panel, grad->dy, r, first, lanes, (bf16 & KILN_NORM_DY) != 0);
    fetch(panel, grad->more_dy, r, first, lanes, (bf16 & KILN_NORM_MORE_DY) != 0);
    if (panel->relu)
        fetch(panel, grad->y, r, first, lanes, (bf16 & KILN_NORM_Y) != 0);
}

KILN_INLINE void grad_sums_of(const KilnPanel *panel, const KilnNormGrad *grad,
                              const KilnNormColumns *columns, double *sum, double *dot, int first,
                              int vectors, int lanes, unsigned bf16)
{
    KilnFloats mean[VECTORS], scale[VECTORS], bias[VECTORS];

    columns_load(mean, columns->mean + first, vectors, lanes);
    columns_load(scale, columns->scale + first, vectors, lanes);
    columns_load(bias, columns->bias + first, vectors, lanes);
    for (int64_t from = 0; from < panel->rows; from += FLUSH) {
        const int64_t to = from + FLUSH < panel->rows ? from + FLUSH : panel->rows;
        KilnFloats s[VECTORS] = { 0 }, q[VECTORS] = { 0 };

        for (int64_t r = from; r < to; r++) {
            fetch(panel, grad->masked, r, first, vectors * lanes, (bf16 & KILN_NORM_MASKED) != 0);
            fetch_gradient(panel, grad, r, first, vectors * lanes, bf16);
            for (int v = 0; v < vectors; v++) {
                const int64_t at = r * panel->stride + first + v * KILN_LANES;
                KilnFloats d = kiln_load_lanes(grad->x, at, lanes, (bf16 & KILN_NORM_X) != 0) -
                               mean[v];
                KilnFloats dy = gradient_at(panel, grad, at, &d, &scale[v], &bias[v], lanes, bf16);

                if (grad->masked != NULL)
                    kiln_store_lanes(grad->masked, at, dy, lanes, (bf16 & KILN_NORM_MASKED) != 0);
                s[v] += dy;
                q[v] += dy * d;
            }
        }
        flush(sum + first, s, vectors, lanes);
        flush(dot + first, q, vectors, lanes);
    }
}

KILN_INLINE void grad_apply_of(const KilnPanel *panel, void *dx, const KilnNormGrad *grad,
                               const KilnNormColumns *columns, int first, int vectors, int lanes,
                               unsigned bf16)
{
    KilnFloats mean[VECTORS], scale[VECTORS], bias[VECTORS], mean_dy[VECTORS], slope[VECTORS];

    columns_load(mean, columns->mean + first, vectors, lanes);
    columns_load(scale, columns->scale + first, vectors, lanes);
    columns_load(bias, columns->bias + first, vectors, lanes);
    columns_load(mean_dy, columns->mean_dy + first, vectors, lanes);
    columns_load(slope, columns->slope + first, vectors, lanes);
    for (int64_t r = 0; r < panel->rows; r++) {
        fetch(panel, dx, r, first, vectors * lanes, (bf16 & KILN_NORM_DX) != 0);
        fetch_gradient(panel, grad, r, first, vectors * lanes, bf16);
        for (int v = 0; v < vectors; v++) {
            const int64_t at = r * panel->stride + first + v * KILN_LANES;
            KilnFloats d = kiln_load_lanes(grad->x, at, lanes, (bf16 & KILN_NORM_X) != 0) - mean[v];
            KilnFloats dy = gradient_at(panel, grad, at, &d, &scale[v], &bias[v], lanes, bf16);

            kiln_store_lanes(dx, at, dy * scale[v] - mean_dy[v] - d * slope[v], lanes,
                             (bf16 & KILN_NORM_DX) != 0);
        }
    }
}

/* ---- For every width -------------------------------------------------------------- */

/* Whole panels, and blocks of 8 channels, run with constant widths and types; remainders vector by
 * vector, with types looked up. */
#define EACH_WIDTH(call_of)                                                                        \
    if (panel->columns == KILN_PANEL && panel->bf16 == 0)                                          \
        call_of(0, VECTORS, KILN_LANES, 0u);                                                       \
    else if (panel->columns == KILN_PANEL && panel->bf16 == KILN_NORM_ALL)                         \
        call_of(0, VECTORS, KILN_LANES, KILN_NORM_ALL);                                            \
    else if (panel->columns == 8 && panel->bf16 == 0)                                              \
        call_of(0, 1, 8, 0u);                                                                      \
    else                                                                                           \
        for (int c = 0; c < panel->columns; c += KILN_LANES) {                                     \
            const int left = panel->columns - c;                                                   \
                                                                                                   \
            if (left >= KILN_LANES)                                                                \
                call_of(c, 1, KILN_LANES, panel->bf16);                                            \
            else                                                                                   \
                call_of(c, 1, left, panel->bf16);                                                  \
        }

static void sums(const KilnPanel *panel, const void *x, const KilnNormColumns *columns, double *sum,
                 double *square)
{
#define SUMS(first, vectors, lanes, bf16)                                                          \
    sums_of(panel, x, columns, sum, square, first, vectors, lanes, bf16)
    EACH_WIDTH(SUMS)
#undef SUMS
}

static void apply(const KilnPanel *panel, void *y, const void *x, const void *more,
                  const KilnNormColumns *columns)
{
#define APPLY(first, vectors, lanes, bf16)                                                         \
    apply_of(panel, y, x, more, columns, first, vectors, lanes, bf16)
    EACH_WIDTH(APPLY)
#undef APPLY
}

static void grad_sums(const KilnPanel *panel, const KilnNormGrad *grad,
                      const KilnNormColumns *columns, double *sum, double *dot)
{
#define GRAD_SUMS(first, vectors, lanes, bf16)                                                     \
    grad_sums_of(panel, grad, columns, sum, dot, first, vectors, lanes, bf16)
    EACH_WIDTH(GRAD_SUMS)
#undef GRAD_SUMS
}

static void grad_apply(const KilnPanel *panel, void *dx, const KilnNormGrad *grad,
                       const KilnNormColumns *columns)
{
#define GRAD_APPLY(first, vectors, lanes, bf16)                                                    \
    grad_apply_of(panel, dx, grad, columns, first, vectors, lanes, bf16)
    EACH_WIDTH(GRAD_APPLY)
#undef GRAD_APPLY
}

const KilnBatchNormLoops KILN_LOOPS(batch_norm_loops) = {
    .sums = sums,
    .apply = apply,
    .grad_sums = grad_sums,
    .grad_apply = grad_apply,
};
