/* A small convolutional network like LeNet: stages of convolution, batch normalization, ReLU and
 * 2×2 max-pooling, then a hidden and an output layer. */
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Opts {
    int64_t *channels;
    size_t channels_count;
    int64_t kernel, hidden;
    double dropout;
    bool batch_norm;
} Opts;

typedef struct Stage {
    KilnConv2d conv;
    KilnBatchNorm2d bn;
} Stage;

typedef struct State {
    Stage *stages;
    KilnLinear fc1, fc2;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64_LIST(Opts, channels, "[32, 64]", 1, 65536,
                        "output channels of each stage; every stage halves height and width"),
    KILN_FIELD_I64(Opts, kernel, "3", 1, 31,
                   "height and width of the convolutions; odd, to keep the image size"),
    KILN_FIELD_I64(Opts, hidden, "128", 1, 1000000, "width of the hidden layer after the stages"),
    KILN_FIELD_F64(Opts, dropout, "0.25", 0.0, 0.99, "dropout of the hidden layer"),
    KILN_FIELD_BOOL(Opts, batch_norm, "true", "normalize after each convolution"),
    KILN_FIELD_END,
};

enum { MOST_STAGES = 16 };

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "kernel";
    if (opts->kernel % 2 == 0)
        return kiln_error_set(err, KILN_E_RANGE, "expected an odd number, such as 3 or 5, got %lld",
                              (long long)opts->kernel);
    *ret_option = "channels";
    if (opts->channels_count < 1 || opts->channels_count > MOST_STAGES)
        return kiln_error_set(err, KILN_E_RANGE,
                              "expected one number for each of 1 to %d stages, got %zu",
                              MOST_STAGES, opts->channels_count);
    return KILN_OK;
}

static KilnStatus check_images(const Opts *opts, const KilnShape *in, KilnError *err)
{
    int64_t least = (int64_t)1 << opts->channels_count;

    if (in->dim[0] < least || in->dim[1] < least)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "images of %lld×%lld are too small for %zu stages, each of which "
                              "halves them: they need at least %lld×%lld; use larger images or "
                              "fewer entries in channels",
                              (long long)in->dim[0], (long long)in->dim[1], opts->channels_count,
                              (long long)least, (long long)least);
    return KILN_OK;
}

static KilnStatus stage_init(Stage *stage, const KilnScope *scope, size_t number, int64_t in,
                             int64_t out, const Opts *opts, KilnError *err)
{
    KilnConv2dSpec spec = {
        .in = in,
        .out = out,
        .kernel = opts->kernel,
        .conv = { .stride = 1, .padding = opts->kernel / 2 },
        .bias = !opts->batch_norm, /* batch normalization has one of its own */
    };
    char conv[32], bn[32];

    snprintf(conv, sizeof(conv), "conv%zu", number);
    snprintf(bn, sizeof(bn), "bn%zu", number);
    KilnStatus status = kiln_nn_conv2d_init(&stage->conv, scope, conv, spec, err);
    if (status == KILN_OK && opts->batch_norm)
        status = kiln_nn_batch_norm2d_init(&stage->bn, scope, bn, out, err);
    return status;
}

static const KilnTensorSpec takes[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
};

enum { LOGITS, HIDDEN };

static const KilnTensorSpec gives[] = {
    [LOGITS] = { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
    [HIDDEN] = { .name = "hidden", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "features" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const KilnShape *in = &io->inputs[0].shape;
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnStatus status = check_images(opts, in, err);

    if (status < 0)
        return status;
    state->stages = calloc(opts->channels_count, sizeof(*state->stages));
    if (state->stages == NULL)
        return kiln_error_nomem(err, opts->channels_count * sizeof(*state->stages));
    int64_t height = in->dim[0], width = in->dim[1], channels = in->dim[2];
    for (size_t i = 0; i < opts->channels_count; i++) {
        status = stage_init(&state->stages[i], scope, i + 1, channels, opts->channels[i], opts,
                            err);
        if (status < 0)
            return status;
        channels = opts->channels[i];
        height /= 2;
        width /= 2;
    }
    status = kiln_nn_linear_init(&state->fc1, scope, "fc1", height * width * channels, opts->hidden,
                                 true, err);
    io->outputs[HIDDEN].shape.dim[0] = opts->hidden;
    if (status < 0 || !io->outputs[LOGITS].wanted)
        return status;
    status = kiln_nn_linear_init(&state->fc2, scope, "fc2", opts->hidden,
                                 io->outputs[LOGITS].shape.dim[0], true, err);
    if (status < 0)
        return status;
    kiln_param_set_head(state->fc2.weight);
    kiln_param_set_head(state->fc2.bias);
    return KILN_OK;
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    bool training = kiln_step_training(step);
    KilnTensor *x = inputs[0].tensor;

    for (size_t i = 0; i < opts->channels_count; i++) {
        x = kiln_nn_conv2d(&state->stages[i].conv, x);
        if (opts->batch_norm)
            x = kiln_nn_batch_norm2d(&state->stages[i].bn, x, training);
        x = kiln_max_pool2d(kiln_relu(x), (KilnPool) { .kernel = 2 });
    }
    x = kiln_relu(kiln_nn_linear(&state->fc1, kiln_flatten(x)));
    outputs[HIDDEN].tensor = x;
    if (state->fc2.weight == NULL)
        return;
    if (training && opts->dropout > 0.0)
        x = kiln_dropout(x, opts->dropout, kiln_step_dropout_key(step), kiln_step_stream(step));
    outputs[LOGITS].tensor = kiln_nn_linear(&state->fc2, x);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->stages);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_cnn = {
    .kind = KILN_KIND_MODEL,
    .name = "cnn",
    .summary = "Convolution and pooling stages and a hidden layer, like LeNet",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_cnn, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
