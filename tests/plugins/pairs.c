/* Two inputs: pairs of token lists, a model of both, and a task that feeds a model tokens. With an
 * encoder that gives no logits, for configs whose parts do not fit. */
#include "kiln.h"

enum { LENGTH = 6, IDS = 5, CLASSES = 2 };

/* ---- Data: whether the lists have the same first token ----------------------------------- */

typedef struct DataOpts {
    KILN_LOADING_OPTIONS;
} DataOpts;

static const KilnField data_fields[] = { KILN_LOADING_FIELDS(DataOpts, "16"), KILN_FIELD_END };

static KilnStatus data_setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    (void)self;
    (void)context;
    (void)err;
    return KILN_OK;
}

static KilnStatus data_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
#define LIST                                                                                       \
    .content = KILN_TOKENS, .dtype = KILN_I32, .shape = { .rank = 1, .dim = { LENGTH } },          \
    .n_ids = IDS
    static const char *const names[CLASSES] = { "other", "same" };
    static const KilnFeature list[] = {
        { .name = "target", LIST },
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
        { .name = "source", LIST },
    };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) {
        .features = list,
        .n_features = KILN_COUNT(list),
        .n_classes = CLASSES,
        .class_names = names,
    };
    return KILN_OK;
}

static KilnStatus data_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                           KilnError *err)
{
    int32_t *target = sample->data[0], *source = sample->data[2];
    KilnRng own;

    (void)ctx;
    (void)rng;
    (void)err;
    kiln_rng_init(&own, 1, KILN_RNG_USER, 0, (uint64_t)index);
    for (int i = 0; i < LENGTH; i++) {
        source[i] = (int32_t)kiln_rng_below(&own, IDS);
        target[i] = (int32_t)kiln_rng_below(&own, IDS);
    }
    if (index % 2 == 0)
        target[0] = source[0];
    *(int32_t *)sample->data[1] = source[0] == target[0];
    return KILN_OK;
}

static KilnStatus data_set(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                           KilnError *err)
{
    (void)self;
    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = split == KILN_TRAIN ? 128 : 32, .get = data_get };
    return KILN_OK;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const DataOpts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

#define TOKENS(name_)                                                                              \
    {                                                                                              \
        .name = name_, .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time"                   \
    }
static const KilnTensorSpec label[] = {
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};
static const KilnTensorSpec features[] = {
    TOKENS("source"),
    TOKENS("target"),
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};

static const KilnDataModuleOps data_ops = {
    .features = features,
    .n_features = KILN_COUNT(features),
    .setup = data_setup,
    .spec = data_spec,
    .dataset = data_set,
    .loading = loading,
};

static const KilnComponent pairs = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "pairs",
    .summary = "Pairs of token lists, and whether their first tokens are the same",
    KILN_FIELDS(data_fields),
    .opts_size = sizeof(DataOpts),
    .ops.datamodule = &data_ops,
};

/* ---- Models --------------------------------------------------------------------------------- */

typedef struct Towers {
    KilnEmbedding source, target;
    KilnLinear head;
} Towers;

static const KilnTensorSpec both[] = { TOKENS("source"), TOKENS("target") };
static const KilnTensorSpec one[] = { TOKENS("words") };
static const KilnTensorSpec logits[] = {
    { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
};
static const KilnTensorSpec hidden[] = {
    { .name = "hidden", .content = KILN_SEQUENCE, .axes = "time features" },
};
static const KilnSignature towers_signature = KILN_SIGNATURE(both, logits);
static const KilnSignature encoder_signature = KILN_SIGNATURE(one, hidden);

static KilnStatus towers_setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                               KilnError *err)
{
    Towers *towers = kiln_state(self);
    const int64_t width = 8, length = io->inputs[0].shape.dim[0];
    KilnStatus status = kiln_nn_embedding_init(&towers->source, scope, "source",
                                               io->inputs[0].n_ids, width, -1, err);

    if (status >= 0)
        status = kiln_nn_embedding_init(&towers->target, scope, "target", io->inputs[1].n_ids,
                                        width, -1, err);
    return status < 0 ? status
                      : kiln_nn_linear_init(&towers->head, scope, "head", length * width,
                                            io->outputs[0].shape.dim[0], true, err);
}

static void towers_forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                           KilnModelValue *outputs)
{
    const Towers *towers = kiln_state(self);
    KilnTensor *source = kiln_nn_embedding(&towers->source, inputs[0].tensor);
    KilnTensor *target = kiln_nn_embedding(&towers->target, inputs[1].tensor);

    (void)step;
    outputs[0].tensor = kiln_nn_linear(&towers->head, kiln_flatten(kiln_mul(source, target)));
}

static const KilnModelOps towers_ops = { .signature = &towers_signature,
                                         .setup = towers_setup,
                                         .forward = towers_forward };
/* It is never built. */
static const KilnModelOps encoder_ops = { .signature = &encoder_signature,
                                          .setup = towers_setup,
                                          .forward = towers_forward };

static const KilnComponent two_towers = {
    .kind = KILN_KIND_MODEL,
    .name = "two_towers",
    .summary = "A linear layer over the products of two embeddings",
    .state_size = sizeof(Towers),
    .ops.model = &towers_ops,
};
static const KilnComponent encoder = {
    .kind = KILN_KIND_MODEL,
    .name = "encoder",
    .summary = "Nothing, for tests of configs",
    .ops.model = &encoder_ops,
};

/* ---- A task -----------------------------------------------------------------------------------
 */

typedef struct TaskOpts {
    KilnInstance *model, *optimizer;
} TaskOpts;

static const KilnField task_fields[] = {
    KILN_FIELD_COMPONENT(TaskOpts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(TaskOpts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_END,
};

static const KilnTensorSpec feeds[] = { TOKENS("tokens") };

static const KilnModelUse models[] = {
    { .option = "model",
      .feeds = feeds,
      .n_feeds = KILN_COUNT(feeds),
      .needs = logits,
      .n_needs = KILN_COUNT(logits) },
};

static KilnStatus task_setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                             KilnError *err)
{
    const TaskOpts *opts = kiln_opts(self);

    return kiln_model_setup(opts->model, scope, models, data->features, data->n_features,
                            &data->n_classes, err);
}

static KilnTensor *loss_of(KilnInstance *self, KilnStep *step, const char *name)
{
    const TaskOpts *opts = kiln_opts(self);
    KilnModelValue scores;

    kiln_model_forward(opts->model, step, NULL, &scores);
    KilnTensor *loss = kiln_cross_entropy(scores.tensor, kiln_step_input(step, "label"),
                                          (KilnCrossEntropy) { 0 });
    kiln_step_log(step, name, loss, KILN_LOG_EPOCH | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    return loss_of(self, step, "train/loss");
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    (void)loss_of(self, step, "val/loss");
}

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const TaskOpts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) { .n = 1, .use = { { .optimizer = opts->optimizer } } };
    return KILN_OK;
}

static const KilnModuleOps task_ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = label,
    .n_features = KILN_COUNT(label),
    .setup = task_setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .configure_optimizers = configure_optimizers,
};

static const KilnComponent matching = {
    .kind = KILN_KIND_MODULE,
    .name = "matching",
    .summary = "Classification of token lists",
    KILN_FIELDS(task_fields),
    .opts_size = sizeof(TaskOpts),
    .ops.module = &task_ops,
};

static const KilnComponent *const list[] = { &pairs, &two_towers, &encoder, &matching, NULL };
KILN_PLUGIN_DEFINE(list)
