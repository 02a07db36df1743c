#include "tests/support/data/points_data.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support/run_fixture.h"

const KilnField points_fields[] = {
    KILN_LOADING_FIELDS(PointsOpts, "8"),
    KILN_FIELD_I64(PointsOpts, train_count, "36", 0, 1e6, "training samples"),
    KILN_FIELD_I64(PointsOpts, val_count, "16", 0, 1e6, "validation samples"),
    KILN_FIELD_I64(PointsOpts, test_count, "20", 0, 1e6, "test samples"),
    KILN_FIELD_I64(PointsOpts, nan_at, "-1", -1, 1e6, "this sample is not a number"),
    KILN_FIELD_I64(PointsOpts, skip_at, "-1", -1, 1e6, "this sample is left out"),
    KILN_FIELD_I64(PointsOpts, broken_at, "-1", -1, 1e6, "this sample can't be read"),
    KILN_FIELD_I64(PointsOpts, sample_ms, "0", 0, 1000, "reading a sample takes so long"),
    KILN_FIELD_END,
};

/* The point itself; returns its class. */
static int32_t points_draw(int64_t index, float x[2])
{
    KilnRng own;

    kiln_rng_init(&own, 5, KILN_RNG_DATA, 0, (uint64_t)index);
    x[0] = kiln_rng_range(&own, -1.0f, 1.0f);
    x[1] = kiln_rng_range(&own, -1.0f, 1.0f);
    return x[0] + 2.0f * x[1] > 0.1f;
}

static int64_t points_label(void *ctx, int64_t index)
{
    float x[2];

    (void)ctx;
    return points_draw(index, x);
}

KilnStatus points_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const PointsOpts *opts = kiln_opts(ctx);
    float *x = sample->data[0];

    sleep_ms(opts->sample_ms);
    if (index == opts->broken_at)
        return kiln_error_set(err, KILN_E_FORMAT, "point %d is broken", (int)index);
    if (index == opts->skip_at)
        return kiln_error_set(err, KILN_E_SKIP, "point %d is unreadable", (int)index);
    const int32_t label = points_draw(index, x);
    if (sample->data[1] != NULL)
        *(int32_t *)sample->data[1] = label;
    x[0] += 0.01f * kiln_rng_normal(rng); /* another one in every epoch */
    if (index == opts->nan_at)
        x[0] = NAN;
    return KILN_OK;
}

KilnStatus points_setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    (void)self;
    (void)context;
    (void)err;
    return KILN_OK;
}

KilnStatus points_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const KilnFeature features[] = {
        { .name = "x",
          .content = KILN_VECTOR,
          .dtype = KILN_F32,
          .shape = { .rank = 1, .dim = { 2 } } },
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 }
    };
    static const char *const names[] = { "below", "above" };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) {
        .features = features,
        .n_features = KILN_COUNT(features),
        .n_classes = 2,
        .class_names = names,
    };
    return KILN_OK;
}

KilnStatus points_dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    const PointsOpts *opts = kiln_opts(self);
    const int64_t counts[] = { opts->train_count, opts->val_count, opts->test_count };

    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = counts[split], .ctx = self, .get = points_get, .label = points_label
    };
    return KILN_OK;
}

/* Of a user's input: 19 points, whatever the path. */
static size_t points_fields_raw(KilnInstance *self, const KilnRawField **ret)
{
    static const KilnRawField raw = { .name = "index", .types = KILN_RAW_NUMBER };

    (void)self;
    *ret = &raw;
    return 1;
}

static KilnStatus points_preprocess(KilnInstance *self, const KilnRawValue *values,
                                    KilnSample *sample, KilnError *err)
{
    const int64_t index = (int64_t)values[0].number;
    KilnRng rng;

    kiln_rng_init(&rng, 5, KILN_RNG_USER, 0, (uint64_t)index);
    return points_get(self, index, &rng, sample, err);
}

static KilnStatus points_raw(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err)
{
    KilnRawValue *value = calloc(1, sizeof(*value));

    (void)ctx;
    if (value == NULL)
        return kiln_error_nomem(err, sizeof(*value));
    value->type = KILN_RAW_NUMBER;
    value->number = (double)index;
    *ret = (KilnRawSample) { .values = value, .n_values = 1 };
    return KILN_OK;
}

static void points_done(void *ctx, KilnRawSample *sample)
{
    (void)ctx;
    free((void *)sample->values);
}

static KilnStatus points_input(KilnInstance *self, const char *path, KilnRawSet *ret,
                               KilnError *err)
{
    (void)self;
    (void)path;
    (void)err;
    *ret = (KilnRawSet) { .count = 19, .get = points_raw, .done = points_done };
    return KILN_OK;
}

void points_loading(const KilnInstance *self, KilnLoading *ret)
{
    *ret = KILN_LOADING((const PointsOpts *)kiln_opts(self));
}

static const KilnDataModuleOps points_ops = {
    .setup = points_setup,
    .spec = points_spec,
    .dataset = points_dataset,
    .raw_fields = points_fields_raw,
    .preprocess = points_preprocess,
    .open_input = points_input,
    .loading = points_loading,
};

const KilnComponent points_component = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "test_points",
    .summary = "Points on both sides of a line",
    KILN_FIELDS(points_fields),
    .opts_size = sizeof(PointsOpts),
    .ops.datamodule = &points_ops,
};
