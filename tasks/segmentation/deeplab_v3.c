/* DeepLab v3 (Chen et al., "Rethinking atrous convolution for semantic image segmentation", 2017)
 * over a residual network, with torchvision's names, shapes and initial distributions. `weights`
 * also takes a residual network for classification. */
#include "kiln.h"
#include "kiln/images/image_nets.h"

#include <string.h>

enum { RATES = 3, BRANCHES = RATES + 2, BACKBONE_DILATED = 2 };

typedef struct Opts {
    int64_t depth, groups, width_per_group, width, *rates;
    size_t rates_count;
    double dropout;
} Opts;

static const KilnChoice depths[] = {
    { "50", 50 },
    { "101", 101 },
    { "152", 152 },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, depth, "50", depths,
                    "of the residual network; its last two layers "
                    "dilate, so that it shrinks images 8 times"),
    KILN_FIELD_I64(Opts, groups, "1", 1, 1024, "of the residual network, as model resnet"),
    KILN_FIELD_I64(Opts, width_per_group, "64", 1, 65536,
                   "of the residual network, as model resnet"),
    KILN_FIELD_I64(Opts, width, "256", 1, 65536, "channels of each branch above it"),
    KILN_FIELD_I64_LIST(Opts, rates, "[12, 24, 36]", 1, 1000,
                        "dilation of the three 3x3 convolutions side by side"),
    KILN_FIELD_F64(Opts, dropout, "0.5", 0.0, 0.99, "dropout after the branches are joined"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "rates";
    return opts->rates_count == RATES
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected %d numbers, got %zu", RATES,
                                opts->rates_count);
}

typedef struct State {
    KilnResnet *backbone;
    KilnConvNorm branches[BRANCHES]; /* 1×1, dilated ones, of the mean of the image */
    KilnConvNorm project, conv;
    KilnConv2d head;
} State;

static const KilnTensorSpec takes[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_MAP, .dtype = KILN_F32, .axes = "height width classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* ---- Declaring ------------------------------------------------------------------------------ */

static KilnStatus branches_init(State *state, const KilnScope *pyramid, const Opts *opts,
                                KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int i = 0; i < BRANCHES && status >= 0; i++) {
        const bool dilates = i > 0 && i <= RATES, pools = i > RATES;
        const KilnScope own = kiln_scope(pyramid, "convs.%d", i);
        const KilnConvNormSpec spec = { .in = kiln_resnet_channels(state->backbone),
                                        .out = opts->width,
                                        .kernel = dilates ? 3 : 1,
                                        .dilation = dilates ? opts->rates[i - 1] : 1,
                                        .activation = KILN_ACTIVATION_RELU };

        status = kiln_conv_norm_init(&state->branches[i], &own, pools ? "1" : "0",
                                     pools ? "2" : "1", spec, err);
    }
    return status;
}

static KilnStatus classifier_init(State *state, const KilnScope *scope, const Opts *opts,
                                  int64_t classes, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "classifier"), pyramid = kiln_scope(&own, "0");
    const KilnScope project = kiln_scope(&pyramid, "project");
    const KilnConvNormSpec join = { .in = BRANCHES * opts->width,
                                    .out = opts->width,
                                    .kernel = 1,
                                    .activation = KILN_ACTIVATION_RELU };
    const KilnConvNormSpec conv = {
        .in = opts->width, .out = opts->width, .kernel = 3, .activation = KILN_ACTIVATION_RELU
    };
    const KilnConv2dSpec head = { .in = opts->width, .out = classes, .kernel = 1, .bias = true };
    KilnStatus status = branches_init(state, &pyramid, opts, err);

    if (status >= 0)
        status = kiln_conv_norm_init(&state->project, &project, "0", "1", join, err);
    if (status >= 0)
        status = kiln_conv_norm_init(&state->conv, &own, "1", "2", conv, err);
    if (status >= 0)
        status = kiln_nn_conv2d_init(&state->head, &own, "4", head, err);
    if (status < 0)
        return status;
    kiln_param_set_head(state->head.weight);
    kiln_param_set_head(state->head.bias);
    return KILN_OK;
}

/* Name the tensors of a residual network for classification, and what is not used of one and of
 * torchvision's DeepLab: their last layers. */
static KilnStatus name_backbone(const State *state, const KilnScope *backbone, size_t first,
                                size_t end, KilnError *err)
{
    static const char *const others[] = {
        "fc.weight",
        "fc.bias",
        "aux_classifier.0.weight",
        "aux_classifier.1.weight",
        "aux_classifier.1.bias",
        "aux_classifier.1.running_mean",
        "aux_classifier.1.running_var",
        "aux_classifier.1.num_batches_tracked",
        "aux_classifier.4.weight",
        "aux_classifier.4.bias",
    };
    const size_t prefix = strlen(backbone->path) + 1;
    KilnStatus status = KILN_OK;

    for (size_t i = first; i < end && status >= 0; i++) {
        KilnParam *param = kiln_params_at(backbone->params, i);
        const KilnShape *shape = kiln_param_shape(param);
        const KilnForeignTensor all = { .rows = shape->rank > 0 ? shape->dim[0] : 1 };

        status = kiln_param_foreign(param, all, err, "%s", kiln_param_name(param) + prefix);
    }
    for (size_t i = 0; i < KILN_COUNT(others) && status >= 0; i++)
        status = kiln_param_foreign(state->head.weight, (KilnForeignTensor) { 0 }, err, "%s",
                                    others[i]);
    return status;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnScope backbone = kiln_scope(scope, "backbone");
    const KilnResnetSpec spec = { .channels = io->inputs[0].shape.dim[2],
                                  .depth = opts->depth,
                                  .groups = opts->groups,
                                  .width_per_group = opts->width_per_group,
                                  .large_stem = true,
                                  .dilated = BACKBONE_DILATED };
    const size_t first = kiln_params_count(scope->params);
    KilnStatus status = kiln_resnet_new(&backbone, spec, &io->inputs[0].shape, &state->backbone,
                                        err);
    const size_t end = kiln_params_count(scope->params);

    if (status >= 0)
        status = classifier_init(state, scope, opts, io->outputs[0].shape.dim[2], err);
    return status < 0 ? status : name_backbone(state, &backbone, first, end, err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    kiln_resnet_free(state->backbone);
}

/* ---- Recording ------------------------------------------------------------------------------ */

/* Atrous spatial pyramid pooling. */
static KilnTensor *run_branches(const State *state, KilnTensor *x, bool training)
{
    const KilnSize size = { kiln_tensor_dim(x, 1), kiln_tensor_dim(x, 2) };
    KilnTensor *results[BRANCHES];

    for (int i = 0; i <= RATES; i++)
        results[i] = kiln_conv_norm(&state->branches[i], x, training);
    KilnTensor *mean = kiln_adaptive_avg_pool2d(x, 1, 1);
    mean = kiln_conv_norm(&state->branches[BRANCHES - 1], mean, training);
    results[BRANCHES - 1] = kiln_upsample_bilinear(mean, size, false);
    return kiln_conv_norm(&state->project, kiln_concat(results, BRANCHES, 3), training);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool training = kiln_step_training(step), drops = training && opts->dropout > 0.0;
    const KilnSize size = { kiln_tensor_dim(inputs[0].tensor, 1),
                            kiln_tensor_dim(inputs[0].tensor, 2) };
    KilnDropoutState drop = { 0 };

    if (drops)
        drop = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                    .stream = kiln_step_stream(step) << 32 };
    KilnTensor *x = kiln_resnet(state->backbone, inputs[0].tensor, training);
    x = run_branches(state, x, training);
    x = kiln_nn_dropout(x, opts->dropout, drops ? &drop : NULL);
    x = kiln_nn_conv2d(&state->head, kiln_conv_norm(&state->conv, x, training));
    outputs[0].tensor = kiln_upsample_bilinear(x, size, false);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_deeplab_v3 = {
    .kind = KILN_KIND_MODEL,
    .name = "deeplab_v3",
    .summary = "DeepLab v3 over a ResNet: a logit of each class for each pixel, as torchvision's",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_deeplab_v3, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
