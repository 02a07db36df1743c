/* A GPT on sequences of tokens, as a plugin: the task `gpt` and the datamodule `counting`, whose
 * sequences count up from some number. Compile it with tests/nets/gpt.c. */
#include "kiln.h"
#include "tests/nets/gpt.h"

enum { TOKENS = 17, LENGTH = 12 };

/* ---- Data ---------------------------------------------------------------------------- */

typedef struct DataOpts {
    KILN_LOADING_OPTIONS;
} DataOpts;

static const KilnField data_fields[] = {
    KILN_LOADING_FIELDS(DataOpts, "8"),
    KILN_FIELD_END,
};

static KilnStatus data_setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    (void)self;
    (void)context;
    (void)err;
    return KILN_OK;
}

static KilnStatus data_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const KilnFeature features[] = {
        { .name = "tokens",
          .content = KILN_TOKENS,
          .dtype = KILN_I32,
          .shape = { .rank = 1, .dim = { LENGTH } },
          .n_ids = TOKENS },
        { .name = "next",
          .content = KILN_TOKENS,
          .dtype = KILN_I32,
          .shape = { .rank = 1, .dim = { LENGTH } },
          .n_ids = TOKENS },
    };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) { .features = features, .n_features = KILN_COUNT(features) };
    return KILN_OK;
}

static KilnStatus data_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                           KilnError *err)
{
    int32_t *tokens = sample->data[0], *next = sample->data[1];

    (void)ctx;
    (void)rng;
    (void)err;
    for (int i = 0; i < LENGTH; i++) {
        tokens[i] = (int32_t)((index + i) % TOKENS);
        next[i] = (int32_t)((index + i + 1) % TOKENS);
    }
    return KILN_OK;
}

static KilnStatus data_set(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                           KilnError *err)
{
    (void)self;
    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = split == KILN_TRAIN ? 48 : 16, .get = data_get };
    return KILN_OK;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const DataOpts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnDataModuleOps data_ops = {
    .setup = data_setup,
    .spec = data_spec,
    .dataset = data_set,
    .loading = loading,
};

static const KilnComponent counting = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "counting",
    .summary = "Sequences that count up",
    KILN_FIELDS(data_fields),
    .opts_size = sizeof(DataOpts),
    .ops.datamodule = &data_ops,
};

/* ---- Task ---------------------------------------------------------------------------- */

typedef struct Opts {
    KilnInstance *optimizer;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, NULL, "its optimizer"),
    KILN_FIELD_END,
};

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const GptSpec spec = {
        .vocabulary = TOKENS, .context = LENGTH, .width = 32, .heads = 2, .layers = 2
    };

    (void)data;
    return gpt_net_init(kiln_state(self), scope, spec, err);
}

static KilnTensor *loss_of(KilnInstance *self, KilnStep *step)
{
    return gpt_net_loss(kiln_state(self), kiln_step_input(step, "tokens"),
                        kiln_step_input(step, "next"));
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    KilnTensor *loss = loss_of(self, step);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    kiln_step_log(step, "val/loss", loss_of(self, step), KILN_LOG_LOWER_IS_BETTER);
}

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) { .n = 1, .use = { { .optimizer = opts->optimizer } } };
    return KILN_OK;
}

static const KilnModuleOps ops = {
    .setup = setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .configure_optimizers = configure_optimizers,
};

static const KilnComponent gpt = {
    .kind = KILN_KIND_MODULE,
    .name = "gpt",
    .summary = "Predicts the next token",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(GptNet),
    .ops.module = &ops,
};

static const KilnComponent *const list[] = { &gpt, &counting, NULL };
KILN_PLUGIN_DEFINE(list)
