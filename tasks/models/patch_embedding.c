/* Cuts an image into patches and maps each to a vector by one linear layer: the convolution
 * conv_proj of torchvision's VisionTransformer, with its initial distribution. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    int64_t patch_size;
} Opts;

typedef struct State {
    KilnConv2d conv_proj;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, patch_size, "4", 1, 4096,
                   "height and width of a patch; divides those of the image"),
    KILN_FIELD_END,
};

static const KilnTensorSpec takes[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
};

static const KilnTensorSpec gives[] = {
    { .name = "sequence", .content = KILN_SEQUENCE, .axes = "patches features" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnShape *image = &io->inputs[0].shape;
    KilnShape *sequence = &io->outputs[0].shape;
    const int64_t size = opts->patch_size, channels = image->dim[2];

    if (image->dim[0] % size != 0 || image->dim[1] % size != 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "images of %lld×%lld cannot be cut into patches of %lld×%lld; choose "
                              "a patch_size that divides both",
                              (long long)image->dim[0], (long long)image->dim[1], (long long)size,
                              (long long)size);
    sequence->dim[0] = image->dim[0] / size * (image->dim[1] / size);
    const KilnConv2dSpec spec = { .in = channels,
                                  .out = sequence->dim[1],
                                  .kernel = size,
                                  .conv = { .stride = size },
                                  .bias = true };
    KilnStatus status = kiln_nn_conv2d_init(&state->conv_proj, scope, "conv_proj", spec, err);
    if (status < 0)
        return status;
    kiln_param_set_init(state->conv_proj.weight,
                        (KilnInit) { .kind = KILN_INIT_TRUNC_NORMAL,
                                     .a = 1.0 / sqrt((double)(channels * size * size)),
                                     .b = 2.0 });
    kiln_param_set_init(state->conv_proj.bias, (KilnInit) { .kind = KILN_INIT_CONSTANT });
    return KILN_OK;
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const State *state = kiln_state(self);
    KilnTensor *x = kiln_nn_conv2d(&state->conv_proj, inputs[0].tensor);
    const int64_t patches = kiln_tensor_dim(x, 1) * kiln_tensor_dim(x, 2);

    (void)step;
    outputs[0].tensor =
        kiln_reshape(x, KILN_SHAPE(kiln_tensor_dim(x, 0), patches, kiln_tensor_dim(x, 3)));
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_patch_embedding = {
    .kind = KILN_KIND_MODEL,
    .name = "patch_embedding",
    .summary = "Patches of an image as a sequence, for transformers",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_patch_embedding, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
