/* U-Net (Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation",
 * 2015) with padded convolutions and batch normalization. Names and shapes are those of
 * github.com/milesial/Pytorch-UNet. */
#include "kiln.h"
#include "kiln/images/image_nets.h"

typedef struct Opts {
    int64_t width, levels;
    bool bilinear;
} Opts;

enum { MOST_LEVELS = 8 };

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "64", 1, 4096,
                   "channels at full size; doubled each time the image is halved"),
    KILN_FIELD_I64(Opts, levels, "4", 1, MOST_LEVELS, "how often the image is halved"),
    KILN_FIELD_BOOL(Opts, bilinear, "false",
                    "enlarge by interpolation instead of transposed convolutions, with half of "
                    "the channels"),
    KILN_FIELD_END,
};

typedef struct DoubleConv {
    KilnConvNorm first, second;
} DoubleConv;

typedef struct Up {
    KilnConvTranspose2d up; /* weight NULL: bilinear */
    DoubleConv conv;
} Up;

typedef struct State {
    DoubleConv in, down[MOST_LEVELS];
    Up up[MOST_LEVELS];
    KilnConv2d out;
} State;

static const KilnTensorSpec takes[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_MAP, .dtype = KILN_F32, .axes = "height width classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* ---- Declaring ------------------------------------------------------------------------------ */

static KilnStatus double_init(DoubleConv *conv, const KilnScope *scope, int64_t in, int64_t middle,
                              int64_t out, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "double_conv");
    KilnConvNormSpec spec = {
        .in = in, .out = middle, .kernel = 3, .activation = KILN_ACTIVATION_RELU
    };
    KilnStatus status = kiln_conv_norm_init(&conv->first, &own, "0", "1", spec, err);

    spec.in = middle;
    spec.out = out;
    return status < 0 ? status : kiln_conv_norm_init(&conv->second, &own, "3", "4", spec, err);
}

/* From `in` channels below to `out`, joined with those of the other side. */
static KilnStatus up_init(Up *up, const KilnScope *scope, int64_t in, int64_t out, bool bilinear,
                          KilnError *err)
{
    const KilnScope conv = kiln_scope(scope, "conv");
    const KilnConvTranspose twice = { .conv = { .stride = 2 } };
    const KilnConvTranspose2dSpec spec = {
        .in = in, .out = in / 2, .kernel = 2, .conv = twice, .bias = true
    };
    KilnStatus status = bilinear ? KILN_OK
                                 : kiln_nn_conv_transpose2d_init(&up->up, scope, "up", spec, err);

    return status < 0 ? status
                      : double_init(&up->conv, &conv, in, bilinear ? in / 2 : out, out, err);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnScope in = kiln_scope(scope, "inc"), out = kiln_scope(scope, "outc");
    const int64_t factor = opts->bilinear ? 2 : 1;
    const KilnShape *image = &io->inputs[0].shape;
    const long long least = 1LL << opts->levels;

    if (image->dim[0] < least || image->dim[1] < least)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "images of %lld×%lld are too small to be halved %lld times: they "
                              "need at least %lld×%lld; use larger images or fewer levels",
                              (long long)image->dim[0], (long long)image->dim[1],
                              (long long)opts->levels, least, least);
    KilnStatus status = double_init(&state->in, &in, image->dim[2], opts->width, opts->width, err);
    for (int64_t i = 0; i < opts->levels && status >= 0; i++) {
        const KilnScope own = kiln_scope(scope, "down%lld.maxpool_conv.1", (long long)i + 1);
        const int64_t width = opts->width << i;
        const int64_t next = 2 * width / (i + 1 == opts->levels ? factor : 1);

        status = double_init(&state->down[i], &own, width, next, next, err);
    }
    for (int64_t i = 0; i < opts->levels && status >= 0; i++) {
        const KilnScope own = kiln_scope(scope, "up%lld", (long long)i + 1);
        const int64_t below = opts->width << (opts->levels - i);

        status = up_init(&state->up[i], &own, below,
                         below / 2 / (i + 1 == opts->levels ? 1 : factor), opts->bilinear, err);
    }
    if (status < 0)
        return status;
    const KilnConv2dSpec last = {
        .in = opts->width, .out = io->outputs[0].shape.dim[2], .kernel = 1, .bias = true
    };
    status = kiln_nn_conv2d_init(&state->out, &out, "conv", last, err);
    if (status < 0)
        return status;
    kiln_param_set_head(state->out.weight);
    kiln_param_set_head(state->out.bias);
    return KILN_OK;
}

/* ---- Recording ------------------------------------------------------------------------------ */

static KilnTensor *run_double(const DoubleConv *conv, KilnTensor *x, bool training)
{
    return kiln_conv_norm(&conv->second, kiln_conv_norm(&conv->first, x, training), training);
}

/* x twice as large, padded where the other side's image had an odd size. */
static KilnTensor *enlarge(const Up *up, KilnTensor *x, const KilnTensor *side)
{
    const int64_t height = kiln_tensor_dim(x, 1), width = kiln_tensor_dim(x, 2);

    x = up->up.weight != NULL
            ? kiln_nn_conv_transpose2d(&up->up, x)
            : kiln_upsample_bilinear(x, (KilnSize) { 2 * height, 2 * width }, true);
    const int64_t rows = kiln_tensor_dim(side, 1) - kiln_tensor_dim(x, 1);
    const int64_t columns = kiln_tensor_dim(side, 2) - kiln_tensor_dim(x, 2);
    if (rows == 0 && columns == 0)
        return x;
    return kiln_pad(x, (int64_t[]) { 0, rows / 2, columns / 2, 0 },
                    (int64_t[]) { 0, rows - rows / 2, columns - columns / 2, 0 }, 0.0);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool training = kiln_step_training(step);
    KilnTensor *sides[MOST_LEVELS];
    KilnTensor *x = run_double(&state->in, inputs[0].tensor, training);

    for (int64_t i = 0; i < opts->levels; i++) {
        sides[i] = x;
        x = kiln_max_pool2d(x, (KilnPool) { .kernel = 2 });
        x = run_double(&state->down[i], x, training);
    }
    for (int64_t i = 0; i < opts->levels; i++) {
        KilnTensor *side = sides[opts->levels - 1 - i];

        x = enlarge(&state->up[i], x, side);
        x = run_double(&state->up[i].conv, kiln_concat((KilnTensor *[]) { side, x }, 2, 3),
                       training);
    }
    outputs[0].tensor = kiln_nn_conv2d(&state->out, x);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_unet = {
    .kind = KILN_KIND_MODEL,
    .name = "unet",
    .summary = "U-Net: a logit of each class for each pixel",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_unet, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
