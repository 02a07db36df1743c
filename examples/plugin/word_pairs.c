/* A plugin with two inputs of their own lengths: a datamodule whose samples are two lists of words,
 * a model that reads both, and a task that says whether the second list is the longer one. The same
 * parts, with real texts, make translation or search. */
#include "kiln.h"

enum { WORDS = 20, MOST_SOURCE = 12, MOST_TARGET = 9, CLASSES = 2 };

/* ---- The data ------------------------------------------------------------------------ */

typedef struct DataOpts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    int64_t count;
} DataOpts;

static const KilnField data_fields[] = {
    KILN_LOADING_FIELDS(DataOpts, "32"),
    KILN_LENGTH_FIELDS(DataOpts),
    KILN_FIELD_I64(DataOpts, count, "1024", 1, 1e9, "training pairs; a quarter for validation"),
    KILN_FIELD_END,
};

static KilnStatus data_setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    (void)self;
    (void)context;
    (void)err;
    return KILN_OK;
}

/* Word 0 is the padding. */
static KilnStatus data_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const char *const names[] = { "source", "target" };
    static const KilnFeature features[] = {
        { .name = "source",
          .content = KILN_TOKENS,
          .dtype = KILN_I32,
          .shape = { .rank = 1, .dim = { MOST_SOURCE } },
          .varies = true,
          .n_ids = WORDS },
        { .name = "target",
          .content = KILN_TOKENS,
          .dtype = KILN_I32,
          .shape = { .rank = 1, .dim = { MOST_TARGET } },
          .varies = true,
          .n_ids = WORDS },
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
    };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) {
        .features = features,
        .n_features = KILN_COUNT(features),
        .n_classes = CLASSES,
        .class_names = names,
    };
    return KILN_OK;
}

/* Lengths are drawn from the sample's number, so that batches can be made without reading it. */
static void data_lengths(void *ctx, int64_t index, int64_t *ret)
{
    KilnRng rng;

    (void)ctx;
    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, (uint64_t)index);
    ret[0] = 1 + (int64_t)(kiln_rng_u32(&rng) % MOST_SOURCE);
    ret[1] = 1 + (int64_t)(kiln_rng_u32(&rng) % MOST_TARGET);
}

static KilnStatus data_get(void *ctx, int64_t index, KilnRng *augment, KilnSample *sample,
                           KilnError *err)
{
    KilnRng rng;

    (void)ctx;
    (void)augment;
    (void)err;
    kiln_rng_init(&rng, 2, KILN_RNG_USER, 0, (uint64_t)index);
    for (size_t f = 0; f < 2; f++)
        for (int64_t i = 0; i < sample->lengths[f]; i++)
            ((int32_t *)sample->data[f])[i] = 1 + (int32_t)(kiln_rng_u32(&rng) % (WORDS - 1));
    *(int32_t *)sample->data[2] = sample->lengths[1] > sample->lengths[0];
    return KILN_OK;
}

static KilnStatus data_set(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                           KilnError *err)
{
    const DataOpts *opts = kiln_opts(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = split == KILN_TRAIN ? opts->count : (opts->count + 3) / 4,
        .get = data_get,
        .lengths = data_lengths,
    };
    return KILN_OK;
}

static void data_loading(const KilnInstance *self, KilnLoading *ret)
{
    const DataOpts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
    ret->buckets = opts->buckets;
    ret->buckets_count = opts->buckets_count;
}

static const KilnDataModuleOps data_ops = {
    .setup = data_setup,
    .spec = data_spec,
    .dataset = data_set,
    .loading = data_loading,
};

static const KilnComponent word_pairs = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "word_pairs",
    .summary = "Pairs of word lists of different lengths",
    KILN_FIELDS(data_fields),
    .opts_size = sizeof(DataOpts),
    .ops.datamodule = &data_ops,
};

/* ---- The model ----------------------------------------------------------------------- */

typedef struct ModelOpts {
    int64_t width;
} ModelOpts;

static const KilnField model_fields[] = {
    KILN_FIELD_I64(ModelOpts, width, "16", 1, 4096, "size of words and of each list's state"),
    KILN_FIELD_END,
};

typedef struct ModelState {
    KilnEmbedding words; /* of both lists */
    KilnRecurrentLayer encoders[2];
    KilnLinear head;
} ModelState;

static const KilnTensorSpec takes[] = {
    { .name = "source", .content = KILN_TOKENS, .dtype = KILN_I32, .varies = true },
    { .name = "target", .content = KILN_TOKENS, .dtype = KILN_I32, .varies = true },
};
static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};
static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus model_setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                              KilnError *err)
{
    const int64_t width = ((const ModelOpts *)kiln_opts(self))->width;
    const KilnRecurrentSpec spec = {
        .in = width, .hidden = width, .layers = 1, .batch_first = true
    };
    ModelState *state = kiln_state(self);
    KilnStatus status = kiln_nn_embedding_init(&state->words, scope, "words", io->inputs[0].n_ids,
                                               width, 0, err);

    for (size_t i = 0; i < 2 && status >= 0; i++)
        status = kiln_nn_gru_init(&state->encoders[i], scope, takes[i].name, spec, err);
    if (status < 0)
        return status;
    return kiln_nn_linear_init(&state->head, scope, "head", 2 * width, io->outputs[0].shape.dim[0],
                               true, err);
}

static void model_forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                          KilnModelValue *outputs)
{
    const ModelState *state = kiln_state(self);
    KilnTensor *ends[2];

    (void)step;
    for (size_t i = 0; i < 2; i++) {
        const KilnRecurrentStart start = { .lengths = inputs[i].lengths };
        KilnTensor *x = kiln_nn_embedding(&state->words, inputs[i].tensor);

        ends[i] = kiln_select(kiln_nn_recurrent(&state->encoders[i], x, start).h, 0, -1);
    }
    outputs[0].tensor = kiln_nn_linear(&state->head, kiln_concat(ends, 2, 1));
}

static const KilnModelOps model_ops = {
    .signature = &signature,
    .setup = model_setup,
    .forward = model_forward,
};

static const KilnComponent two_encoders = {
    .kind = KILN_KIND_MODEL,
    .name = "two_encoders",
    .summary = "A GRU for each of two lists of words",
    KILN_FIELDS(model_fields),
    .opts_size = sizeof(ModelOpts),
    .state_size = sizeof(ModelState),
    .ops.model = &model_ops,
};

/* ---- The task ------------------------------------------------------------------------ */

typedef struct TaskOpts {
    KilnInstance *model, *optimizer;
} TaskOpts;

static const KilnField task_fields[] = {
    KILN_FIELD_COMPONENT(TaskOpts, model, KILN_KIND_MODEL, "${model}", "reads both lists"),
    KILN_FIELD_COMPONENT(TaskOpts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_END,
};

static const KilnTensorSpec reads[] = {
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};
static const KilnModelUse models[] = {
    { .option = "model",
      .feeds = takes,
      .n_feeds = KILN_COUNT(takes),
      .needs = gives,
      .n_needs = KILN_COUNT(gives) },
};

static KilnStatus task_setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                             KilnError *err)
{
    const TaskOpts *opts = kiln_opts(self);

    return kiln_model_setup(opts->model, scope, models, data->features, data->n_features,
                            &data->n_classes, err);
}

static KilnTensor *logits_of(KilnInstance *self, KilnStep *step)
{
    KilnModelValue logits;

    kiln_model_forward(((const TaskOpts *)kiln_opts(self))->model, step, NULL, &logits);
    return logits.tensor;
}

static KilnTensor *record_loss(KilnInstance *self, KilnStep *step, const char *name)
{
    KilnTensor *loss = kiln_cross_entropy(logits_of(self, step), kiln_step_input(step, "label"),
                                          (KilnCrossEntropy) { 0 });

    kiln_step_log(step, name, loss, KILN_LOG_EPOCH | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    return record_loss(self, step, "train/loss");
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    (void)record_loss(self, step, "val/loss");
}

static void predict_step(KilnInstance *self, KilnStep *step)
{
    kiln_step_output(step, "probabilities", kiln_softmax(logits_of(self, step), -1));
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
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = task_setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .predict_step = predict_step,
    .configure_optimizers = configure_optimizers,
};

static const KilnComponent longer_list = {
    .kind = KILN_KIND_MODULE,
    .name = "longer_list",
    .summary = "Which of two lists is longer",
    KILN_FIELDS(task_fields),
    .opts_size = sizeof(TaskOpts),
    .ops.module = &task_ops,
};

static const KilnComponent *const list[] = { &word_pairs, &two_encoders, &longer_list, NULL };
KILN_PLUGIN_DEFINE(list)
