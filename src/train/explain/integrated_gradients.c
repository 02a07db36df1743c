/* Integrated gradients. */
#include <math.h>

#include "train/explain/explaining.h"

/* Newton's method from Tricomi's approximation of the roots of the Legendre polynomial. */
void kiln_gauss_legendre(int64_t n, double *points, double *weights)
{
    static const double pi = 3.14159265358979323846;

    for (int64_t i = 0; i < n; i++) {
        double x = cos(pi * ((double)i + 0.75) / ((double)n + 0.5)), slope = 1.0;

        for (int round = 0; round < 100; round++) {
            double before = 1.0, value = x;

            for (int64_t k = 2; k <= n; k++) {
                const double next =
                    ((2.0 * (double)k - 1.0) * x * value - ((double)k - 1.0) * before) / (double)k;

                before = value;
                value = next;
            }
            slope = (double)n * (x * value - before) / (x * x - 1.0);
            const double step = value / slope;
            x -= step;
            if (fabs(step) < 1e-15)
                break;
        }
        points[n - 1 - i] = 0.5 * (1.0 + x);
        weights[n - 1 - i] = 1.0 / ((1.0 - x * x) * slope * slope);
    }
}

/* Add the gradients of n variants by each element of feature f. */
static void add_gradients(const KilnVariants *variants, size_t f, int64_t n, const double *weights,
                          double *sums)
{
    const KilnTensor *gradient = variants->points[f]->grad;
    const float *values = kiln_tensor_data(gradient);
    const int64_t count = variants->count[f];

    for (int64_t row = 0; row < n; row++)
        for (int64_t i = 0; i < count; i++)
            sums[i] += weights[row] * (double)values[row * count + i];
}

static bool has_gradient(const KilnVariants *variants, size_t f)
{
    return variants->count[f] > 0 && variants->points[f] != NULL &&
           variants->points[f]->grad != NULL;
}

/* The features that the model reads, once a batch has run. */
static KilnStatus add_features(KilnExplaining *self, double *const *sums, KilnError *err)
{
    const KilnVariants *variants = self->variants;

    for (size_t f = 0; f < variants->spec->n_features; f++) {
        if (!has_gradient(variants, f))
            continue;
        float *values = kiln_explaining_add(self, f, kiln_explaining_shape(self, f));
        if (values == NULL)
            return kiln_error_nomem(err, kiln_arena_bytes(&self->arena));
        for (int64_t i = 0; i < variants->count[f]; i++)
            values[i] = (float)(sums[f][i] * kiln_variants_way(variants, f, i));
    }
    return KILN_OK;
}

KilnStatus kiln_explain_integrated_gradients(KilnExplaining *self, KilnError *err)
{
    KilnVariants *variants = self->variants;
    KilnArena *arena = &variants->arena;
    const size_t n_features = variants->spec->n_features;
    double *points = kiln_arena_alloc(arena, (size_t)self->steps * sizeof(*points));
    double *weights = kiln_arena_alloc(arena, (size_t)self->steps * sizeof(*weights));
    double **sums = kiln_arena_alloc(arena, n_features * sizeof(double *));
    KilnStatus status = KILN_OK;

    for (size_t f = 0; f < n_features && sums != NULL; f++)
        sums[f] = kiln_arena_alloc(arena, (size_t)variants->count[f] * sizeof(double));
    if (arena->failed)
        return kiln_error_nomem(err, kiln_arena_bytes(arena));
    kiln_gauss_legendre(self->steps, points, weights);
    for (int64_t at = 0; at < self->steps && status >= 0; at += variants->rows) {
        const int64_t n = self->steps - at < variants->rows ? self->steps - at : variants->rows;

        status = kiln_poll_check(self->spec->poll, "integrating gradients", at, self->steps, err);
        if (status < 0)
            break;
        for (int64_t row = 0; row < n; row++)
            kiln_variants_scale(variants, row, points[at + row]);
        status = kiln_variants_differentiate(variants, n, self->result.target, NULL, NULL, err);
        for (size_t f = 0; f < n_features && status >= 0; f++)
            if (has_gradient(variants, f))
                add_gradients(variants, f, n, weights + at, sums[f]);
    }
    return status < 0 ? status : add_features(self, sums, err);
}
