/* Components whose shapes do not fit: a model with the wrong outputs, a task with its own head, and
 * images with a label that is no class. For the tests of what is refused before training. */
#include "kiln.h"

#include <string.h>

/* ---- A model ------------------------------------------------------------------------- */

typedef struct ModelOpts {
    int64_t outputs, axes;
} ModelOpts;

static const KilnField model_fields[] = {
    KILN_FIELD_I64(ModelOpts, outputs, "10", 1, 1000, "outputs of the last layer"),
    KILN_FIELD_I64(ModelOpts, axes, "2", 1, 3, "axes of what it returns"),
    KILN_FIELD_END,
};

static const KilnTensorSpec takes[] = {
    { .name = "x", .content = KILN_IMAGE | KILN_VECTOR, .dtype = KILN_F32 },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus model_setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                              KilnError *err)
{
    const ModelOpts *opts = kiln_opts(self);

    return kiln_nn_linear_init(kiln_state(self), scope, "head",
                               kiln_shape_count(&io->inputs[0].shape), opts->outputs, true, err);
}

static void model_forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                          KilnModelValue *outputs)
{
    const ModelOpts *opts = kiln_opts(self);
    KilnTensor *x = inputs[0].tensor;
    const int64_t n = kiln_tensor_dim(x, 0);
    KilnTensor *y = kiln_nn_linear(kiln_state(self), kiln_flatten(x));

    (void)step;
    if (opts->axes == 1)
        outputs[0].tensor = kiln_select(y, 1, 0);
    else
        outputs[0].tensor = opts->axes == 2 ? y : kiln_reshape(y, KILN_SHAPE(n, 1, opts->outputs));
}

static const KilnModelOps model_ops = { .signature = &signature,
                                        .setup = model_setup,
                                        .forward = model_forward };

static const KilnComponent shaped_model = {
    .kind = KILN_KIND_MODEL,
    .name = "shaped",
    .summary = "One linear layer with as many outputs as an option says",
    KILN_FIELDS(model_fields),
    .opts_size = sizeof(ModelOpts),
    .state_size = sizeof(KilnLinear),
    .ops.model = &model_ops,
};

/* ---- A task with a head of its own ------------------------------------------------------- */

typedef struct TaskOpts {
    KilnInstance *optimizer;
    int64_t outputs;
} TaskOpts;

static const KilnField task_fields[] = {
    KILN_FIELD_COMPONENT(TaskOpts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_I64(TaskOpts, outputs, "10", 1, 1000, "outputs of its layer"),
    KILN_FIELD_END,
};

static KilnStatus task_setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                             KilnError *err)
{
    const TaskOpts *opts = kiln_opts(self);
    const KilnFeature *image = kiln_spec_feature(data, "image");

    return kiln_nn_linear_init(kiln_state(self), scope, "head", kiln_shape_count(&image->shape),
                               opts->outputs, true, err);
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    KilnTensor *x = kiln_flatten(kiln_step_input(step, "image"));

    return kiln_cross_entropy(kiln_nn_linear(kiln_state(self), x), kiln_step_input(step, "label"),
                              (KilnCrossEntropy) { 0 });
}

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const TaskOpts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) { .n = 1, .use = { { .optimizer = opts->optimizer } } };
    return KILN_OK;
}

static const KilnModuleOps task_ops = {
    .setup = task_setup,
    .training_step = training_step,
    .configure_optimizers = configure_optimizers,
};

static const KilnComponent own_head = {
    .kind = KILN_KIND_MODULE,
    .name = "own_head",
    .summary = "A linear layer of the task itself",
    KILN_FIELDS(task_fields),
    .opts_size = sizeof(TaskOpts),
    .state_size = sizeof(KilnLinear),
    .ops.module = &task_ops,
};

/* ---- Data -------------------------------------------------------------------------------- */

typedef struct DataOpts {
    KILN_LOADING_OPTIONS;
    int64_t label, unlabelled;
} DataOpts;

static const KilnChoice splits[] = {
    { "train", KILN_TRAIN }, { "test", KILN_TEST }, { "none", KILN_SPLIT_COUNT }, { NULL, 0 }
};

static const KilnField data_fields[] = {
    KILN_LOADING_FIELDS(DataOpts, "8"),
    KILN_FIELD_I64(DataOpts, label, "1", -1000, 1000, "of sample 13; all others have 0 or 1"),
    KILN_FIELD_ENUM(DataOpts, unlabelled, "none", splits, "this split has no labels"),
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
        { .name = "image",
          .content = KILN_IMAGE,
          .dtype = KILN_F32,
          .shape = { .rank = 3, .dim = { 4, 4, 1 } } },
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
        { .name = "caption", .content = KILN_TEXT },
    };
    static const char *const names[] = { "cat", "dog", "owl" };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) {
        .features = features,
        .n_features = KILN_COUNT(features),
        .n_classes = 3,
        .class_names = names,
    };
    return KILN_OK;
}

static KilnStatus data_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                           KilnError *err)
{
    static const char *const captions[] = { "a black square", "white, \"blank\"", NULL };
    const DataOpts *opts = ctx;
    const char *caption = captions[index % 3];
    float *image = sample->data[0];

    (void)rng;
    (void)err;
    for (int i = 0; i < 16; i++)
        image[i] = (float)(index % 2);
    *(char **)sample->data[2] = caption != NULL ? strdup(caption) : NULL;
    if (sample->data[1] != NULL)
        *(int32_t *)sample->data[1] = index == 13 ? (int32_t)opts->label : (int32_t)(index % 2);
    return KILN_OK;
}

static KilnStatus data_set(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                           KilnError *err)
{
    static const char *const absent[] = { "label", NULL };
    const DataOpts *opts = kiln_opts(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = split == KILN_TRAIN ? 64 : 8,
                           .ctx = (void *)opts,
                           .get = data_get,
                           .absent = (int64_t)split == opts->unlabelled ? absent : NULL };
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

static const KilnComponent labelled = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "labelled",
    .summary = "Small images of three classes, one with a label from an option",
    KILN_FIELDS(data_fields),
    .opts_size = sizeof(DataOpts),
    .ops.datamodule = &data_ops,
};

static const KilnComponent *const list[] = { &shaped_model, &own_head, &labelled, NULL };
KILN_PLUGIN_DEFINE(list)
