#include "tests/support/data/lines_data.h"

typedef struct LinesOpts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
} LinesOpts;

static const KilnField lines_fields[] = {
    KILN_LOADING_FIELDS(LinesOpts, "4"),
    KILN_LENGTH_FIELDS(LinesOpts),
    KILN_FIELD_END,
};

static KilnStatus lines_setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    (void)self;
    (void)context;
    (void)err;
    return KILN_OK;
}

static KilnStatus lines_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const KilnFeature features[] = {
        { .name = "line",
          .content = KILN_SEQUENCE,
          .dtype = KILN_F32,
          .shape = { .rank = 2, .dim = { LINES_LONGEST, LINES_WIDTH } },
          .varies = true },
    };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) { .features = features, .n_features = KILN_COUNT(features) };
    return KILN_OK;
}

static void lines_lengths(void *ctx, int64_t index, int64_t *ret)
{
    (void)ctx;
    ret[0] = 1 + index % 5;
}

static KilnStatus lines_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                            KilnError *err)
{
    float *line = sample->data[0];

    (void)ctx;
    (void)rng;
    (void)err;
    for (int64_t i = 0; i < sample->lengths[0] * LINES_WIDTH; i++)
        line[i] = 0.1f * (float)(index + i);
    return KILN_OK;
}

static KilnStatus lines_dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                                KilnError *err)
{
    (void)split;
    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = 16, .ctx = self, .get = lines_get, .lengths = lines_lengths };
    return KILN_OK;
}

static size_t lines_raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    static const KilnRawField raw = { .name = "line",
                                      .types = KILN_RAW_ARRAY,
                                      .help = "points in their order" };

    (void)self;
    *ret = &raw;
    return 1;
}

static KilnStatus lines_preprocess(KilnInstance *self, const KilnRawValue *values,
                                   KilnSample *sample, KilnError *err)
{
    const KilnShape *shape = &values[0].shape;

    (void)self;
    if (shape->rank != 2 || shape->dim[1] != LINES_WIDTH || shape->dim[0] > LINES_LONGEST)
        return kiln_error_set(err, KILN_E_SHAPE, "line: expected at most %d points of %d numbers",
                              LINES_LONGEST, LINES_WIDTH);
    sample->lengths[0] = shape->dim[0];
    return kiln_raw_convert(&values[0], KILN_F32, sample->data[0], err);
}

static void lines_loading(const KilnInstance *self, KilnLoading *ret)
{
    const LinesOpts *opts = kiln_opts(self);

    *ret = KILN_LENGTH_LOADING(opts);
}

static const KilnDataModuleOps lines_ops = {
    .setup = lines_setup,
    .spec = lines_spec,
    .dataset = lines_dataset,
    .raw_fields = lines_raw_fields,
    .preprocess = lines_preprocess,
    .loading = lines_loading,
};

const KilnComponent lines_component = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "test_lines",
    .summary = "Sequences of points",
    KILN_FIELDS(lines_fields),
    .opts_size = sizeof(LinesOpts),
    .ops.datamodule = &lines_ops,
};

/* ---- The task ------------------------------------------------------------------------------ */

typedef struct ScaleOpts {
    KilnInstance *optimizer;
} ScaleOpts;

typedef struct ScaleState {
    KilnParam *weight;
} ScaleState;

static const KilnField scale_fields[] = {
    KILN_FIELD_COMPONENT(ScaleOpts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "optimizer"),
    KILN_FIELD_END,
};

static KilnStatus scale_setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                              KilnError *err)
{
    ScaleState *state = kiln_state(self);
    const KilnInit init = { .kind = KILN_INIT_UNIFORM, .a = 1.0 };

    (void)data;
    return kiln_param_new(scope, "weight", KILN_SHAPE(LINES_WIDTH), init, &state->weight, err);
}

static KilnTensor *scale(KilnInstance *self, KilnStep *step)
{
    const ScaleState *state = kiln_state(self);

    return kiln_mul(kiln_step_input(step, "line"),
                    kiln_param_tensor(state->weight, kiln_step_graph(step)));
}

static KilnTensor *scale_train(KilnInstance *self, KilnStep *step)
{
    KilnTensor *scaled = scale(self, step);

    return kiln_mean(kiln_mul(scaled, scaled));
}

static void scale_validate(KilnInstance *self, KilnStep *step)
{
    kiln_step_log(step, "val/accuracy", kiln_mean(scale(self, step)), KILN_LOG_HIGHER_IS_BETTER);
}

static void scale_predict(KilnInstance *self, KilnStep *step)
{
    kiln_step_output(step, "scaled", scale(self, step));
}

static KilnStatus scale_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const ScaleOpts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) { .n = 1, .use = { { .optimizer = opts->optimizer } } };
    return KILN_OK;
}

static const KilnModuleOps scale_ops = {
    .setup = scale_setup,
    .training_step = scale_train,
    .validation_step = scale_validate,
    .predict_step = scale_predict,
    .configure_optimizers = scale_optimizers,
};

const KilnComponent scale_component = {
    .kind = KILN_KIND_MODULE,
    .name = "test_scale",
    .summary = "Scales points",
    KILN_FIELDS(scale_fields),
    .opts_size = sizeof(ScaleOpts),
    .state_size = sizeof(ScaleState),
    .ops.module = &scale_ops,
};
