/* Vector loops of batch normalization, compiled once per instruction set. Each is
 * written for `vectors` vectors of `lanes` in a row, from column `first` on, and
 * compiled for whole panels in f32 and bf16, and for what is left over. */
#include "backend/cpu/isa/batch_norm.h"

#include "backend/cpu/isa/vector.h"

/* Rows whose sums are gathered in floats before they are added to the doubles. */
enum { VECTORS = KILN_PANEL / KILN_LANES, FLUSH = 256 };

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
                         unsigned narrow)
{
    KilnFloats mean[VECTORS];

    columns_load(mean, columns->mean + first, vectors, lanes);
    for (int64_t from = 0; from < panel->rows; from += FLUSH) {
        const int64_t to = from + FLUSH < panel->rows ? from + FLUSH : panel->rows;
        KilnFloats s[VECTORS] = { 0 }, q[VECTORS] = { 0 };

        for (int64_t r = from; r < to; r++)
            for (int v = 0; v < vectors; v++) {
                KilnFloats d = kiln_load_lanes(x, r * panel->stride + first + v * KILN_LANES, lanes,
                                               (narrow & KILN_NORM_X) != 0) -
                               mean[v];

                s[v] += d;
                q[v] += d * d;
            }
        flush(sum + first, s, vectors, lanes);
        flush(square + first, q, vectors, lanes);
    }
}

KILN_INLINE void apply_of(const KilnPanel *panel, void *y, const void *x, const void *more,
                          const KilnNormColumns *columns, int first, int vectors, int lanes,
                          unsigned narrow)
{
    KilnFloats mean[VECTORS], scale[VECTORS], bias[VECTORS];

    columns_load(mean, columns->mean + first, vectors, lanes);
    columns_load(scale, columns->scale + first, vectors, lanes);
    columns_load(bias, columns->bias + first, vectors, lanes);
    for (int64_t r = 0; r < panel->rows; r++)
        for (int v = 0; v < vectors; v++) {
            const int64_t at = r * panel->stride + first + v * KILN_LANES;
            KilnFloats value =
                (kiln_load_lanes(x, at, lanes, (narrow & KILN_NORM_X) != 0) - mean[v]) * scale[v] +
                bias[v];

            if (more != NULL)
                value += kiln_load_lanes(more, at, lanes, (narrow & KILN_NORM_MORE) != 0);
            if (panel->relu)
                value = kiln_relu_floats(value);
            kiln_store_lanes(y, at, value, lanes, (narrow & KILN_NORM_Y) != 0);
        }
}

/* ---- Backward ------------------------------------------------------------------- */

/* The gradient of one vector as it counts; `d` is x - mean there. */
KILN_INLINE KilnFloats gradient_at(const KilnPanel *panel, const KilnNormGrad *grad, int64_t at,
                                   const KilnFloats *d, const KilnFloats *scale,
                                   const KilnFloats *bias, int lanes, unsigned narrow)
{
    KilnFloats dy = kiln_load_lanes(grad->dy, at, lanes, (narrow & KILN_NORM_DY) != 0);

    if (grad->more_dy != NULL)
        dy += kiln_load_lanes(grad->more_dy, at, lanes, (narrow & KILN_NORM_MORE_DY) != 0);
    if (panel->relu) {
        KilnFloats y = grad->y != NULL
                           ? kiln_load_lanes(grad->y, at, lanes, (narrow & KILN_NORM_Y) != 0)
                           : *d * *scale + *bias;

        dy = kiln_masked(dy, (KilnWords)(y > 0.0f));
    }
    return dy;
}

KILN_INLINE void grad_sums_of(const KilnPanel *panel, const KilnNormGrad *grad,
                              const KilnNormColumns *columns, double *sum, double *dot, int first,
                              int vectors, int lanes, unsigned narrow)
{
    KilnFloats mean[VECTORS], scale[VECTORS], bias[VECTORS];

    columns_load(mean, columns->mean + first, vectors, lanes);
    columns_load(scale, columns->scale + first, vectors, lanes);
    columns_load(bias, columns->bias + first, vectors, lanes);
    for (int64_t from = 0; from < panel->rows; from += FLUSH) {
        const int64_t to = from + FLUSH < panel->rows ? from + FLUSH : panel->rows;
        KilnFloats s[VECTORS] = { 0 }, q[VECTORS] = { 0 };

        for (int64_t r = from; r < to; r++)
            for (int v = 0; v < vectors; v++) {
                const int64_t at = r * panel->stride + first + v * KILN_LANES;
                KilnFloats d = kiln_load_lanes(grad->x, at, lanes, (narrow & KILN_NORM_X) != 0) -
                               mean[v];
                KilnFloats dy = gradient_at(panel, grad, at, &d, &scale[v], &bias[v], lanes,
                                            narrow);

                if (grad->masked != NULL)
                    kiln_store_lanes(grad->masked, at, dy, lanes, (narrow & KILN_NORM_MASKED) != 0);
                s[v] += dy;
                q[v] += dy * d;
            }
        flush(sum + first, s, vectors, lanes);
        flush(dot + first, q, vectors, lanes);
    }
}

KILN_INLINE void grad_apply_of(const KilnPanel *panel, void *dx, const KilnNormGrad *grad,
                               const KilnNormColumns *columns, int first, int vectors, int lanes,
                               unsigned narrow)
{
    KilnFloats mean[VECTORS], scale[VECTORS], bias[VECTORS], mean_dy[VECTORS], slope[VECTORS];

    columns_load(mean, columns->mean + first, vectors, lanes);
    columns_load(scale, columns->scale + first, vectors, lanes);
    columns_load(bias, columns->bias + first, vectors, lanes);
    columns_load(mean_dy, columns->mean_dy + first, vectors, lanes);
    columns_load(slope, columns->slope + first, vectors, lanes);
    for (int64_t r = 0; r < panel->rows; r++)
        for (int v = 0; v < vectors; v++) {
            const int64_t at = r * panel->stride + first + v * KILN_LANES;
            KilnFloats d = kiln_load_lanes(grad->x, at, lanes, (narrow & KILN_NORM_X) != 0) -
                           mean[v];
            KilnFloats dy = gradient_at(panel, grad, at, &d, &scale[v], &bias[v], lanes, narrow);

            kiln_store_lanes(dx, at, dy * scale[v] - mean_dy[v] - d * slope[v], lanes,
                             (narrow & KILN_NORM_DX) != 0);
        }
}

/* ---- For every width -------------------------------------------------------------- */

/* Whole panels with constant widths and types; others vector by vector, or with types
 * that are looked up, which are few. */
#define EACH_WIDTH(call_of)                                                                        \
    if (panel->columns == KILN_PANEL && panel->narrow == 0)                                        \
        call_of(0, VECTORS, KILN_LANES, 0u);                                                       \
    else if (panel->columns == KILN_PANEL && panel->narrow == KILN_NORM_ALL)                       \
        call_of(0, VECTORS, KILN_LANES, KILN_NORM_ALL);                                            \
    else                                                                                           \
        for (int c = 0; c < panel->columns; c += KILN_LANES) {                                     \
            const int left = panel->columns - c;                                                   \
                                                                                                   \
            if (left >= KILN_LANES)                                                                \
                call_of(c, 1, KILN_LANES, panel->narrow);                                          \
            else                                                                                   \
                call_of(c, 1, left, panel->narrow);                                                \
        }

static void sums(const KilnPanel *panel, const void *x, const KilnNormColumns *columns, double *sum,
                 double *square)
{
#define SUMS(first, vectors, lanes, narrow)                                                        \
    sums_of(panel, x, columns, sum, square, first, vectors, lanes, narrow)
    EACH_WIDTH(SUMS)
#undef SUMS
}

static void apply(const KilnPanel *panel, void *y, const void *x, const void *more,
                  const KilnNormColumns *columns)
{
#define APPLY(first, vectors, lanes, narrow)                                                       \
    apply_of(panel, y, x, more, columns, first, vectors, lanes, narrow)
    EACH_WIDTH(APPLY)
#undef APPLY
}

static void grad_sums(const KilnPanel *panel, const KilnNormGrad *grad,
                      const KilnNormColumns *columns, double *sum, double *dot)
{
#define GRAD_SUMS(first, vectors, lanes, narrow)                                                   \
    grad_sums_of(panel, grad, columns, sum, dot, first, vectors, lanes, narrow)
    EACH_WIDTH(GRAD_SUMS)
#undef GRAD_SUMS
}

static void grad_apply(const KilnPanel *panel, void *dx, const KilnNormGrad *grad,
                       const KilnNormColumns *columns)
{
#define GRAD_APPLY(first, vectors, lanes, narrow)                                                  \
    grad_apply_of(panel, dx, grad, columns, first, vectors, lanes, narrow)
    EACH_WIDTH(GRAD_APPLY)
#undef GRAD_APPLY
}

#define TABLE_OF(isa) kiln_batch_norm_loops_##isa
#define TABLE(isa) TABLE_OF(isa)

const KilnBatchNormLoops TABLE(KILN_ISA) = {
    .sums = sums,
    .apply = apply,
    .grad_sums = grad_sums,
    .grad_apply = grad_apply,
};
