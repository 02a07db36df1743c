/* Convolutions over the vectors of tokens, with the largest value of each feature map over time
 * (Kim, "Convolutional Neural Networks for Sentence Classification", 2014). Places after a text's
 * end have no effect. */
#include "kiln.h"
#include "kiln/tools/bag_head.h"

#include <stdlib.h>

typedef struct Opts {
    int64_t width, maps;
    int64_t *kernels;
    size_t kernels_count;
    double dropout, embedding_dropout, word_dropout;
    int64_t bag_width;
} Opts;

typedef struct State {
    KilnEmbedding embedding;
    KilnConv1d *convs;
    KilnLinear head;
    KilnBagHead bag;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "300", 1, 65536, "features of each token's vector"),
    KILN_FIELD_I64_LIST(Opts, kernels, "[3, 4, 5]", 1, 64, "tokens that convolutions look at"),
    KILN_FIELD_I64(Opts, maps, "100", 1, 65536, "feature maps of each"),
    KILN_FIELD_F64(Opts, dropout, "0.5", 0.0, 0.99, "dropout before the output"),
    KILN_FIELD_F64(Opts, embedding_dropout, "0.0", 0.0, 0.99, "dropout of the tokens' vectors"),
    KILN_FIELD_F64(Opts, word_dropout, "0.0", 0.0, 0.99, "whole tokens that training leaves out"),
    KILN_FIELD_I64(Opts, bag_width, "32", 1, 65536,
                   "features of each n-gram's vector, if the data has a bag of them"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    *ret_option = "kernels";
    return ((const Opts *)options)->kernels_count > 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected at least one number");
}

static const KilnTensorSpec takes[] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
    KILN_BAG_INPUT,
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnFeature *tokens = &io->inputs[0];
    const int64_t features = opts->maps * (int64_t)opts->kernels_count;
    State *state = kiln_state(self);

    if (tokens->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs the number of token ids, but feature \"%s\" has none",
                              tokens->name);
    state->convs = calloc(opts->kernels_count, sizeof(*state->convs));
    if (state->convs == NULL)
        return kiln_error_nomem(err, opts->kernels_count * sizeof(*state->convs));
    KilnStatus status = kiln_nn_embedding_init(&state->embedding, scope, "embedding", tokens->n_ids,
                                               opts->width, (int64_t)tokens->pad, err);
    if (status >= 0) /* as Kim's; N(0, 1) would give rare words the largest vectors */
        kiln_param_set_init(state->embedding.weight,
                            (KilnInit) { .kind = KILN_INIT_UNIFORM, .a = 0.25 });
    for (size_t i = 0; i < opts->kernels_count && status >= 0; i++) {
        const KilnScope convs = kiln_scope(scope, "convs");
        char name[24];

        snprintf(name, sizeof(name), "%zu", i);
        status = kiln_nn_conv1d_init(&state->convs[i], &convs, name,
                                     (KilnConv1dSpec) { .in = opts->width,
                                                        .out = opts->maps,
                                                        .kernel = opts->kernels[i],
                                                        .conv = { .padding = opts->kernels[i] - 1 },
                                                        .bias = true },
                                     err);
    }
    if (status >= 0)
        status = kiln_nn_linear_init(&state->head, scope, "head", features,
                                     io->outputs[0].shape.dim[0], true, err);
    return status < 0 ? status
                      : kiln_bag_head_init(&state->bag, scope, &io->inputs[1], opts->bag_width,
                                           io->outputs[0].shape.dim[0], err);
}

static void release(KilnInstance *self)
{
    free(((State *)kiln_state(self))->convs);
}

/* x [B, T, maps], each place having seen the token there and those before it: the largest values
 * over time of relu(x), of which places from `lengths` + kernel - 1 on see no token. */
static KilnTensor *largest(KilnTensor *x, KilnTensor *lengths, int64_t kernel)
{
    const int time[] = { 1 };

    x = kiln_relu(x);
    if (lengths != NULL) {
        const int64_t batch = kiln_tensor_dim(x, 0), places = kiln_tensor_dim(x, 1);
        KilnTensor *place = kiln_arange(kiln_tensor_graph(x), kiln_tensor_dtype(x), 0.0, 1.0,
                                        places);
        KilnTensor *end = kiln_shift(kiln_to_float(lengths), (double)(kernel - 1));
        KilnTensor *after = kiln_ge(place, kiln_reshape(end, KILN_SHAPE(batch, 1)));

        x = kiln_masked_fill(x, kiln_reshape(after, KILN_SHAPE(batch, places, 1)), 0.0);
    }
    return kiln_max_axes(x, time, 1, false);
}

/* x [B, T, width] with zeros for a part `p` of the tokens. */
static KilnTensor *drop_words(KilnTensor *x, double p, KilnDropoutState *drop)
{
    const int64_t batch = kiln_tensor_dim(x, 0), places = kiln_tensor_dim(x, 1);

    if (p == 0.0 || drop == NULL)
        return x;
    KilnTensor *ones = kiln_arange(kiln_tensor_graph(x), kiln_tensor_dtype(x), 1.0, 0.0,
                                   batch * places);
    KilnTensor *kept = kiln_nn_dropout(ones, p, drop);
    return kiln_mul(x, kiln_reshape(kept, KILN_SHAPE(batch, places, 1)));
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool drops = (opts->dropout > 0.0 || opts->embedding_dropout > 0.0 ||
                        opts->word_dropout > 0.0) &&
                       kiln_step_training(step);
    KilnDropoutState drop_state = { 0 }, *drop = drops ? &drop_state : NULL;
    KilnTensor *y = NULL;

    if (drops)
        drop_state = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                          .stream = kiln_step_stream(step) << 32 };
    KilnTensor *x = kiln_nn_embedding(&state->embedding, inputs[0].tensor);
    x = drop_words(kiln_nn_dropout(x, opts->embedding_dropout, drop), opts->word_dropout, drop);
    for (size_t i = 0; i < opts->kernels_count; i++) {
        KilnTensor *map = largest(kiln_nn_conv1d(&state->convs[i], x), inputs[0].lengths,
                                  opts->kernels[i]);

        y = y == NULL ? map : kiln_concat((KilnTensor *[]) { y, map }, 2, 1);
    }
    y = kiln_nn_linear(&state->head, kiln_nn_dropout(y, opts->dropout, drop));
    outputs[0].tensor = kiln_bag_head_add(&state->bag, inputs[1].tensor, y);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_text_cnn = {
    .kind = KILN_KIND_MODEL,
    .name = "text_cnn",
    .summary = "Convolutions over tokens and their maxima over time",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_text_cnn, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
