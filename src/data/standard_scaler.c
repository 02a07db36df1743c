/* Means and standard deviations of columns: fitted to samples, saved, read, applied. */
#include "kiln/tools/standard_scaler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "tensor/safetensors.h"

#define FILE_NAME "standard_scaler.safetensors"
enum { MEAN, DEVIATION, PARTS };
static const char *const part_names[] = { "mean", "deviation" };

/* Of a feature; without columns: it is not scaled. */
typedef struct Scale {
    const char *name;
    int64_t columns;
    double *parts[PARTS];
} Scale;

struct KilnStandardScaler {
    KilnArena arena;
    Scale *scales;
    size_t n; /* as many as features */
};

/* ---- Making ------------------------------------------------------------------------- */

static bool is_scaled(const KilnFeature *feature)
{
    return (feature->content == KILN_ROW || feature->content == KILN_VECTOR) &&
           feature->dtype == KILN_F32 && !feature->varies;
}

/* A scaler whose sums are all 0. */
static KilnStatus new_scaler(const KilnDataSpec *spec, KilnStandardScaler **ret, KilnError *err)
{
    KilnStandardScaler *scaler = calloc(1, sizeof(*scaler));

    if (scaler == NULL)
        return kiln_error_nomem(err, sizeof(*scaler));
    scaler->n = spec->n_features;
    scaler->scales = kiln_arena_alloc(&scaler->arena, (spec->n_features + 1) * sizeof(Scale));
    for (size_t f = 0; f < spec->n_features && !scaler->arena.failed; f++) {
        Scale *scale = &scaler->scales[f];

        if (!is_scaled(&spec->features[f]))
            continue;
        scale->name = kiln_arena_strdup(&scaler->arena, spec->features[f].name);
        scale->columns = spec->features[f].shape.dim[0];
        for (int part = 0; part < PARTS; part++)
            scale->parts[part] = kiln_arena_alloc(&scaler->arena,
                                                  (size_t)scale->columns * sizeof(double));
    }
    if (scaler->arena.failed) {
        kiln_standard_scaler_free(scaler);
        return kiln_error_nomem(err, spec->n_features * sizeof(Scale));
    }
    *ret = scaler;
    return KILN_OK;
}

void kiln_standard_scaler_free(KilnStandardScaler *scaler)
{
    if (scaler != NULL)
        kiln_arena_release(&scaler->arena);
    free(scaler);
}

/* ---- Fitting ------------------------------------------------------------------------ */

static KilnStatus not_finite(const KilnFeature *feature, int64_t column, int64_t sample,
                             float value, KilnError *err)
{
    char number[24];

    snprintf(number, sizeof(number), "%lld", (long long)column);
    return kiln_error_set(err, KILN_E_RANGE,
                          "column %s of feature \"%s\" is %g in training sample %lld; columns are "
                          "scaled, which needs finite numbers",
                          feature->columns != NULL ? feature->columns[column].name : number,
                          feature->name, (double)value, (long long)sample);
}

/* Add a sample to the sums of values (MEAN), or of squared distances from the mean (DEVIATION). */
static KilnStatus add_sample(KilnStandardScaler *scaler, const KilnDataSpec *spec, int part,
                             float *const values[], int64_t sample, KilnError *err)
{
    for (size_t f = 0; f < scaler->n; f++) {
        const Scale *scale = &scaler->scales[f];

        for (int64_t c = 0; c < scale->columns; c++) {
            const double x = values[f][c], distance = x - scale->parts[MEAN][c];

            if (!isfinite(values[f][c]))
                return not_finite(&spec->features[f], c, sample, values[f][c], err);
            scale->parts[part][c] += part == MEAN ? x : distance * distance;
        }
    }
    return KILN_OK;
}

/* Sum over all samples, and divide by their number. */
static KilnStatus average(KilnStandardScaler *scaler, const KilnDataSpec *spec,
                          const KilnDataset *dataset, int part, KilnSample *sample,
                          const KilnPoll *poll, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < dataset->count && status >= 0; i++) {
        KilnRng rng;

        kiln_rng_init(&rng, 0, KILN_RNG_AUGMENT, 0, (uint64_t)i);
        status = kiln_poll_check(poll, "scaling columns", i, dataset->count, err);
        if (status >= 0)
            status = dataset->get(dataset->ctx, i, &rng, sample, err);
        if (status >= 0)
            status = add_sample(scaler, spec, part, (float *const *)sample->data, i, err);
    }
    for (size_t f = 0; f < scaler->n; f++)
        for (int64_t c = 0; c < scaler->scales[f].columns && dataset->count > 0; c++)
            scaler->scales[f].parts[part][c] /= (double)dataset->count;
    return status;
}

/* Take the roots of the variances; a constant column keeps its scale. */
static void finish(KilnStandardScaler *scaler)
{
    for (size_t f = 0; f < scaler->n; f++)
        for (int64_t c = 0; c < scaler->scales[f].columns; c++) {
            double *deviation = &scaler->scales[f].parts[DEVIATION][c];

            *deviation = *deviation > 0.0 ? sqrt(*deviation) : 1.0;
        }
}

KilnStatus kiln_standard_scaler_fit(const KilnDataSpec *spec, const KilnDataset *dataset,
                                    const KilnPoll *poll, KilnStandardScaler **ret, KilnError *err)
{
    KilnStandardScaler *scaler = NULL;
    KilnArena arena = { 0 };
    const size_t n = spec->n_features + 1;
    void **data = kiln_arena_alloc(&arena, n * sizeof(*data));
    int64_t *lengths = kiln_arena_alloc(&arena, n * sizeof(*lengths));
    KilnStatus status = new_scaler(spec, &scaler, err);

    for (size_t f = 0; status >= 0 && f < spec->n_features && data != NULL; f++)
        if (scaler->scales[f].columns > 0)
            data[f] = kiln_arena_alloc(&arena, (size_t)scaler->scales[f].columns * sizeof(float));
    if (status >= 0 && arena.failed)
        status = kiln_error_nomem(err, n * sizeof(*data));
    KilnSample sample = { .data = data, .lengths = lengths };
    for (int part = 0; part < PARTS && status >= 0; part++)
        status = average(scaler, spec, dataset, part, &sample, poll, err);
    kiln_arena_release(&arena);
    if (status < 0) {
        kiln_standard_scaler_free(scaler);
        return status;
    }
    finish(scaler);
    *ret = scaler;
    return KILN_OK;
}

/* ---- Files -------------------------------------------------------------------------- */

KilnStatus kiln_standard_scaler_save(const KilnStandardScaler *scaler, const char *folder,
                                     KilnError *err)
{
    KilnArena arena = { 0 };
    const char *path = kiln_arena_printf(&arena, "%s/" FILE_NAME, folder);
    KilnStView *tensors = kiln_arena_alloc(&arena, (PARTS * scaler->n + 1) * sizeof(*tensors));
    KilnStatus status = KILN_OK;
    size_t n = 0;

    for (size_t f = 0; f < scaler->n && tensors != NULL; f++)
        for (int part = 0; part < PARTS && scaler->scales[f].columns > 0; part++)
            tensors[n++] = (KilnStView) {
                .name = kiln_arena_printf(&arena, "%s.%s", scaler->scales[f].name,
                                          part_names[part]),
                .dtype = KILN_F64,
                .shape = KILN_SHAPE(scaler->scales[f].columns),
                .data = scaler->scales[f].parts[part],
            };
    status = arena.failed ? kiln_error_nomem(err, n * sizeof(*tensors))
                          : kiln_safetensors_write(path, tensors, n, NULL, 0, err);
    kiln_arena_release(&arena);
    return status;
}

static KilnStatus read_part(const KilnSafetensors *file, const char *name, const Scale *scale,
                            double *to, KilnError *err)
{
    const KilnStEntry *entry = kiln_safetensors_find(file, name);

    if (entry == NULL || !kiln_shape_equal(&entry->shape, &KILN_SHAPE(scale->columns)))
        return kiln_error_set(err, KILN_E_FORMAT,
                              FILE_NAME " of the checkpoint has no %s of the %lld columns of "
                                        "feature \"%s\"; use data like those it was trained on",
                              name, (long long)scale->columns, scale->name);
    return kiln_safetensors_read(file, entry, KILN_F64, to, err);
}

KilnStatus kiln_standard_scaler_open(const char *folder, const KilnDataSpec *spec,
                                     KilnStandardScaler **ret, KilnError *err)
{
    KilnStandardScaler *scaler = NULL;
    KilnSafetensors *file = NULL;
    KilnArena arena = { 0 };
    const char *path = kiln_arena_printf(&arena, "%s/" FILE_NAME, folder);
    KilnStatus status = path != NULL ? new_scaler(spec, &scaler, err)
                                     : kiln_error_nomem(err, strlen(folder));

    if (status >= 0)
        status = kiln_safetensors_open(path, &file, err);
    for (size_t f = 0; f < spec->n_features && status >= 0; f++)
        for (int part = 0; part < PARTS && scaler->scales[f].columns > 0 && status >= 0; part++) {
            const Scale *scale = &scaler->scales[f];
            const char *name = kiln_arena_printf(&arena, "%s.%s", scale->name, part_names[part]);

            status = name != NULL ? read_part(file, name, scale, scale->parts[part], err)
                                  : kiln_error_nomem(err, strlen(scale->name));
        }
    kiln_safetensors_close(file);
    kiln_arena_release(&arena);
    if (status < 0) {
        kiln_standard_scaler_free(scaler);
        return status;
    }
    *ret = scaler;
    return KILN_OK;
}

/* ---- Applying ----------------------------------------------------------------------- */

void kiln_standard_scaler_apply(const KilnStandardScaler *scaler, size_t f, float *values)
{
    const Scale *scale = scaler != NULL ? &scaler->scales[f] : NULL;

    for (int64_t c = 0; scale != NULL && c < scale->columns; c++)
        values[c] =
            (float)(((double)values[c] - scale->parts[MEAN][c]) / scale->parts[DEVIATION][c]);
}
