/* FCOS (Tian et al., "FCOS: Fully convolutional one-stage object detection", 2019): a residual
 * network, a feature pyramid (Lin et al. 2017), and a head that predicts a box for each place of
 * the pyramid. Names, shapes and initial distributions of torchvision's fcos_resnet50_fpn, which
 * the defaults are. */
#include "kiln.h"
#include "kiln/images/image_nets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Opts {
    int64_t depth, backbone_width, width, levels, convs;
} Opts;

enum {
    FROM_LAYER = 1,                           /* layer2 is the finest level */
    LAYERS = KILN_RESNET_LAYERS - FROM_LAYER, /* levels over a layer */
    MAX_LEVELS = LAYERS + 2,
    MAX_CONVS = 8,
    NORM_GROUPS = 32,
    FIRST_STRIDE = 8
};

static const KilnChoice depths[] = {
    { "18", 18 }, { "34", 34 }, { "50", 50 }, { "101", 101 }, { "152", 152 }, { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, depth, "50", depths, "of the residual network, as model resnet"),
    KILN_FIELD_I64(
        Opts, backbone_width, "64", 1, 4096,
        "channels of the residual network's first layer; less makes it faster, more than "
        "torchvision's 64 does not fit its weights"),
    KILN_FIELD_I64(Opts, width, "256", 32, 4096,
                   "channels of the pyramid and the head; a multiple of 32"),
    KILN_FIELD_I64(Opts, levels, "5", 3, MAX_LEVELS,
                   "of the pyramid: images shrunk 8, 16, 32, 64, 128 times; a box up to 64 pixels "
                   "from its center belongs to the first, up to 128 to the second, ..."),
    KILN_FIELD_I64(Opts, convs, "4", 1, MAX_CONVS, "convolutions of each branch of the head"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "width";
    return opts->width % NORM_GROUPS == 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected a multiple of %d, got %lld",
                                (int)NORM_GROUPS, (long long)opts->width);
}

/* Convolutions with group normalization. */
typedef struct Branch {
    KilnConv2d conv[MAX_CONVS];
    KilnGroupNorm norm[MAX_CONVS];
} Branch;

typedef struct State {
    KilnResnet *backbone;
    KilnConv2d inner[LAYERS], outer[LAYERS], more[MAX_LEVELS - LAYERS]; /* of the pyramid */
    Branch classes, boxes;
    KilnConv2d logits, sides, centerness;
    float *places; /* x, y, stride of each */
    int64_t n_places;
} State;

static const KilnTensorSpec takes[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
};

enum { LOGITS, BOXES, CENTERNESS, PLACES };

static const KilnTensorSpec gives[] = {
    [LOGITS] = { .name = "logits",
                 .content = KILN_SEQUENCE,
                 .dtype = KILN_F32,
                 .axes = "places classes" },
    [BOXES] = { .name = "boxes",
                .content = KILN_SEQUENCE,
                .dtype = KILN_F32,
                .axes = "places sides" },
    [CENTERNESS] = { .name = "centerness",
                     .content = KILN_SEQUENCE,
                     .dtype = KILN_F32,
                     .axes = "places one" },
    [PLACES] = { .name = "places",
                 .content = KILN_SEQUENCE,
                 .dtype = KILN_F32,
                 .axes = "places coordinates" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* ---- Declaring ------------------------------------------------------------------------------- */

/* A convolution with weights of N(0, 0.01), or with `pyramid` as Kaiming's uniform of gain 1, and a
 * bias of 0. */
static KilnStatus conv_init(KilnConv2d *conv, const KilnScope *scope, const char *name,
                            KilnConv2dSpec spec, bool pyramid, KilnError *err)
{
    spec.bias = true;
    spec.conv.padding = spec.kernel / 2;
    KilnStatus status = kiln_nn_conv2d_init(conv, scope, name, spec, err);
    if (status < 0)
        return status;
    kiln_param_set_init(conv->weight,
                        (KilnInit) { .kind = pyramid ? KILN_INIT_KAIMING_UNIFORM : KILN_INIT_NORMAL,
                                     .a = pyramid ? 1.0 : 0.01 });
    kiln_param_set_init(conv->bias, (KilnInit) { .kind = KILN_INIT_CONSTANT });
    return KILN_OK;
}

static KilnStatus pyramid_init(State *state, const KilnScope *scope, const Opts *opts,
                               KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "backbone.fpn");
    const KilnConv2dSpec same = { .in = opts->width, .out = opts->width, .kernel = 3 };
    KilnStatus status = KILN_OK;

    for (int i = 0; i < LAYERS && status >= 0; i++) {
        const KilnScope inner = kiln_scope(&own, "inner_blocks.%d", i);
        const KilnConv2dSpec spec = { .in = kiln_resnet_layer_channels(state->backbone,
                                                                       FROM_LAYER + i),
                                      .out = opts->width,
                                      .kernel = 1 };

        status = conv_init(&state->inner[i], &inner, "0", spec, true, err);
    }
    for (int i = 0; i < LAYERS && status >= 0; i++) {
        const KilnScope outer = kiln_scope(&own, "layer_blocks.%d", i);

        status = conv_init(&state->outer[i], &outer, "0", same, true, err);
    }
    for (int i = 0; i < opts->levels - LAYERS && status >= 0; i++) {
        const KilnScope more = kiln_scope(&own, "extra_blocks");
        KilnConv2dSpec spec = same;

        spec.conv.stride = 2;
        status = conv_init(&state->more[i], &more, i == 0 ? "p6" : "p7", spec, true, err);
    }
    return status;
}

static KilnStatus branch_init(Branch *branch, const KilnScope *scope, const Opts *opts,
                              KilnError *err)
{
    const KilnConv2dSpec spec = { .in = opts->width, .out = opts->width, .kernel = 3 };
    const KilnScope own = kiln_scope(scope, "conv");
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < opts->convs && status >= 0; i++) {
        char name[24], norm[24];

        snprintf(name, sizeof(name), "%lld", (long long)(3 * i));
        snprintf(norm, sizeof(norm), "%lld", (long long)(3 * i + 1));
        status = conv_init(&branch->conv[i], &own, name, spec, false, err);
        if (status >= 0)
            status = kiln_nn_group_norm_init(&branch->norm[i], &own, norm, NORM_GROUPS, opts->width,
                                             err);
    }
    return status;
}

/* At first every class has the probability 0.01, so that the many places without a box do not
 * dominate the loss (Lin et al., "Focal loss for dense object detection", 2017). */
static KilnStatus head_init(State *state, const KilnScope *scope, const Opts *opts, int64_t classes,
                            KilnError *err)
{
    const KilnScope head = kiln_scope(scope, "head");
    const KilnScope of_classes = kiln_scope(&head, "classification_head");
    const KilnScope of_boxes = kiln_scope(&head, "regression_head");
    KilnConv2dSpec spec = { .in = opts->width, .out = classes, .kernel = 3 };
    KilnStatus status = branch_init(&state->classes, &of_classes, opts, err);

    if (status >= 0)
        status = conv_init(&state->logits, &of_classes, "cls_logits", spec, false, err);
    if (status >= 0)
        status = branch_init(&state->boxes, &of_boxes, opts, err);
    spec.out = 4;
    if (status >= 0)
        status = conv_init(&state->sides, &of_boxes, "bbox_reg", spec, false, err);
    spec.out = 1;
    if (status >= 0)
        status = conv_init(&state->centerness, &of_boxes, "bbox_ctrness", spec, false, err);
    if (status < 0)
        return status;
    kiln_param_set_init(state->logits.bias,
                        (KilnInit) { .kind = KILN_INIT_CONSTANT, .a = -log((1.0 - 0.01) / 0.01) });
    kiln_param_set_head(state->logits.weight);
    kiln_param_set_head(state->logits.bias);
    return KILN_OK;
}

/* Image sizes at each level: each shrinks by 2, rounded up. */
static int64_t shrink(int64_t size, int64_t stride)
{
    return (size + stride - 1) / stride;
}

/* Place (i, j) of a level is the image's point (i stride, j stride): that is where the middle of
 * padded convolutions with strides is. */
static KilnStatus places_new(State *state, const KilnShape *image, int64_t levels, KilnError *err)
{
    int64_t n = 0, stride = FIRST_STRIDE;

    for (int64_t i = 0; i < levels; i++, stride *= 2)
        n += shrink(image->dim[0], stride) * shrink(image->dim[1], stride);
    state->n_places = n;
    state->places = malloc((size_t)n * 3 * sizeof(*state->places));
    if (state->places == NULL)
        return kiln_error_nomem(err, (size_t)n * 3 * sizeof(*state->places));
    float *to = state->places;
    stride = FIRST_STRIDE;
    for (int64_t i = 0; i < levels; i++, stride *= 2)
        for (int64_t y = 0; y < shrink(image->dim[0], stride); y++)
            for (int64_t x = 0; x < shrink(image->dim[1], stride); x++, to += 3) {
                to[0] = (float)(x * stride);
                to[1] = (float)(y * stride);
                to[2] = (float)stride;
            }
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnShape *image = &io->inputs[0].shape;
    const KilnScope body = kiln_scope(scope, "backbone.body");
    const KilnResnetSpec spec = { .channels = image->dim[2],
                                  .depth = opts->depth,
                                  .large_stem = true,
                                  .width = opts->backbone_width };
    KilnStatus status = kiln_resnet_new(&body, spec, image, &state->backbone, err);

    if (status >= 0)
        status = places_new(state, image, opts->levels, err);
    if (status >= 0)
        status = pyramid_init(state, scope, opts, err);
    if (status >= 0)
        status = head_init(state, scope, opts, io->outputs[LOGITS].shape.dim[1], err);
    if (status < 0)
        return status;
    io->outputs[BOXES].shape.dim[1] = 4;
    io->outputs[CENTERNESS].shape.dim[1] = 1;
    io->outputs[PLACES].shape.dim[1] = 3;
    for (int i = LOGITS; i <= PLACES; i++)
        io->outputs[i].shape.dim[0] = state->n_places;
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    kiln_resnet_free(state->backbone);
    free(state->places);
}

/* ---- Recording ------------------------------------------------------------------------------- */

/* The levels of the pyramid, from the finest on. */
static void run_pyramid(const State *state, int64_t levels, KilnTensor *image, bool training,
                        KilnTensor *ret[MAX_LEVELS])
{
    KilnTensor *layers[KILN_RESNET_LAYERS], *sum = NULL;

    kiln_resnet_layers(state->backbone, image, training, layers);
    for (int i = LAYERS - 1; i >= 0; i--) {
        KilnTensor *inner = kiln_nn_conv2d(&state->inner[i], layers[FROM_LAYER + i]);

        if (sum != NULL) {
            const KilnSize size = { kiln_tensor_dim(inner, 1), kiln_tensor_dim(inner, 2) };

            inner = kiln_add(inner, kiln_upsample_nearest(sum, size));
        }
        sum = inner;
        ret[i] = kiln_nn_conv2d(&state->outer[i], sum);
    }
    for (int64_t i = LAYERS; i < levels; i++)
        ret[i] = kiln_nn_conv2d(&state->more[i - LAYERS],
                                i == LAYERS ? ret[i - 1] : kiln_relu(ret[i - 1]));
}

static KilnTensor *run_branch(const Branch *branch, int64_t convs, KilnTensor *x)
{
    for (int64_t i = 0; i < convs; i++)
        x = kiln_relu(kiln_nn_group_norm(&branch->norm[i], kiln_nn_conv2d(&branch->conv[i], x)));
    return x;
}

/* [N, H, W, C] -> [N, H W, C] */
static KilnTensor *rows(KilnTensor *x)
{
    return kiln_reshape(x, KILN_SHAPE(kiln_tensor_dim(x, 0), -1, kiln_tensor_dim(x, 3)));
}

/* Boxes from the distances of their sides, in strides. */
static KilnTensor *to_boxes(KilnTensor *sides, KilnTensor *places)
{
    KilnTensor *x = kiln_narrow(places, 1, 0, 1), *y = kiln_narrow(places, 1, 1, 1);
    KilnTensor *stride = kiln_narrow(places, 1, 2, 1);
    KilnTensor *ends[4];

    for (int i = 0; i < 4; i++) {
        KilnTensor *distance = kiln_mul(kiln_narrow(sides, 2, i, 1), stride);
        KilnTensor *from = i % 2 == 0 ? x : y;

        ends[i] = i < 2 ? kiln_sub(from, distance) : kiln_add(from, distance);
    }
    return kiln_concat(ends, 4, 2);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const int n = (int)opts->levels;
    KilnGraph *graph = kiln_step_graph(step);
    KilnTensor *levels[MAX_LEVELS], *logits[MAX_LEVELS], *sides[MAX_LEVELS], *middle[MAX_LEVELS];
    KilnTensor *places = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(state->n_places, 3),
                                          state->places);

    run_pyramid(state, n, inputs[0].tensor, kiln_step_training(step), levels);
    for (int i = 0; i < n; i++) {
        KilnTensor *of_classes = run_branch(&state->classes, opts->convs, levels[i]);
        KilnTensor *of_boxes = run_branch(&state->boxes, opts->convs, levels[i]);

        logits[i] = rows(kiln_nn_conv2d(&state->logits, of_classes));
        sides[i] = rows(kiln_relu(kiln_nn_conv2d(&state->sides, of_boxes)));
        middle[i] = rows(kiln_nn_conv2d(&state->centerness, of_boxes));
    }
    outputs[LOGITS].tensor = kiln_concat(logits, n, 1);
    outputs[BOXES].tensor = to_boxes(kiln_concat(sides, n, 1), places);
    outputs[CENTERNESS].tensor = kiln_concat(middle, n, 1);
    outputs[PLACES].tensor = kiln_broadcast_to(
        places, KILN_SHAPE(kiln_tensor_dim(inputs[0].tensor, 0), state->n_places, 3));
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_fcos = {
    .kind = KILN_KIND_MODEL,
    .name = "fcos",
    .summary = "FCOS over a ResNet: a box and its class for each place of an image, as "
               "torchvision's",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_fcos, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
