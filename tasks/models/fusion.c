/* Several encoders in one model (late fusion): each makes a vector of its part of a sample, image,
 * text or row, and fully connected layers classify the vectors together. An encoder is any model
 * that gives one vector: the one that is its logits elsewhere. */
#include "kiln.h"
#include "kiln/tools/linear_stack.h"

#include <string.h>

enum { IMAGE, TEXT, ROW, ENCODERS };

typedef struct Opts {
    KilnInstance *image_encoder, *text_encoder, *row_encoder; /* NULL: none */
    int64_t width, *hidden;
    size_t hidden_count;
    double dropout;
} Opts;

static KilnInstance *encoder_of(const Opts *opts, int i)
{
    KilnInstance *const encoders[ENCODERS] = {
        [IMAGE] = opts->image_encoder, [TEXT] = opts->text_encoder, [ROW] = opts->row_encoder
    };

    return encoders[i];
}

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT_OPT(Opts, image_encoder, KILN_KIND_MODEL, "null",
                             "makes a vector of the image; null: it is not used"),
    KILN_FIELD_COMPONENT_OPT(Opts, text_encoder, KILN_KIND_MODEL, "null",
                             "makes a vector of the tokens; null: they are not used"),
    KILN_FIELD_COMPONENT_OPT(Opts, row_encoder, KILN_KIND_MODEL, "null",
                             "makes a vector of the numbers and categories of a table's row; "
                             "null: they are not used"),
    KILN_FIELD_I64(Opts, width, "64", 1, 65536,
                   "features of each encoder's vector, unless it has a width of its own"),
    KILN_FIELD_I64_LIST(Opts, hidden, "[128]", 1, 65536,
                        "widths of the hidden layers above all vectors"),
    KILN_FIELD_F64(Opts, dropout, "0.0", 0.0, 0.99, "dropout of the vectors"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnLinearStack stack;
    KilnLinear head;
} State;

/* ---- What it takes and gives ------------------------------------------------------------------
 */

enum { IN_IMAGE, IN_TOKENS, IN_NUMBERS, IN_CATEGORIES, INPUTS };

static const KilnTensorSpec takes[INPUTS] = {
    [IN_IMAGE] = { .name = "image",
                   .content = KILN_IMAGE,
                   .dtype = KILN_F32,
                   .axes = "height width channels",
                   .optional = true },
    [IN_TOKENS] = { .name = "tokens",
                    .content = KILN_TOKENS,
                    .dtype = KILN_I32,
                    .axes = "time",
                    .varies = true,
                    .optional = true },
    [IN_NUMBERS] = { .name = "x",
                     .content = KILN_ROW | KILN_VECTOR,
                     .dtype = KILN_F32,
                     .axes = "numbers",
                     .optional = true },
    [IN_CATEGORIES] = { .name = "ids",
                        .content = KILN_ROW,
                        .dtype = KILN_I32,
                        .axes = "categories",
                        .optional = true },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* The inputs of each encoder. */
static const struct {
    int first, n;
} part_of[ENCODERS] = {
    [IMAGE] = { IN_IMAGE, 1 }, [TEXT] = { IN_TOKENS, 1 }, [ROW] = { IN_NUMBERS, 2 }
};

static const KilnTensorSpec vector = {
    .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "features"
};

#define USE(name, input, n)                                                                        \
    {                                                                                              \
        .option = (name), .feeds = &takes[input], .n_feeds = (n), .own = true, .needs = &vector,   \
        .n_needs = 1                                                                               \
    }
static const KilnModelUse models[ENCODERS] = {
    [IMAGE] = USE("image_encoder", IN_IMAGE, 1),
    [TEXT] = USE("text_encoder", IN_TOKENS, 1),
    [ROW] = USE("row_encoder", IN_NUMBERS, 2),
};

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    for (int i = 0; i < ENCODERS; i++)
        if (encoder_of(opts, i) != NULL)
            return KILN_OK;
    return kiln_error_set(err, KILN_E_MISSING,
                          "model fusion needs an encoder: set model.image_encoder, "
                          "model.text_encoder or model.row_encoder");
}

/* ---- Setup ------------------------------------------------------------------------------------
 */

/* The features that the data have of an encoder's inputs, under the names of the inputs; returns
 * their number. */
static size_t features_of(const KilnFeature *inputs, int encoder, KilnFeature *ret)
{
    size_t n = 0;

    for (int i = 0; i < part_of[encoder].n; i++) {
        const int input = part_of[encoder].first + i;

        if (inputs[input].name == NULL)
            continue;
        ret[n] = inputs[input];
        ret[n++].name = takes[input].name;
    }
    return n;
}

static KilnStatus set_up_encoder(const Opts *opts, int i, const KilnScope *scope,
                                 const KilnModelIo *io, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", models[i].option);
    KilnFeature features[INPUTS];
    const size_t n = features_of(io->inputs, i, features);

    if (n == 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s: the data have no %s; set it to null, or use data that have",
                              models[i].option,
                              i == IMAGE  ? "image"
                              : i == TEXT ? "tokens (of a table: a column of kind text)"
                                          : "numbers or categories");
    return kiln_model_setup(encoder_of(opts, i), &own, &models[i], features, n, &opts->width, err);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnScope stack = kiln_scope(scope, "fusion");
    KilnStatus status = KILN_OK;
    int64_t in = 0;

    for (int i = 0; i < ENCODERS && status >= 0; i++) {
        if (encoder_of(opts, i) == NULL)
            continue;
        status = set_up_encoder(opts, i, scope, io, err);
        if (status >= 0)
            in += kiln_model_need_shape(encoder_of(opts, i), 0).dim[0];
    }
    if (status >= 0)
        status = kiln_linear_stack_init(&state->stack, &stack, in, opts->hidden, opts->hidden_count,
                                        err);
    if (status >= 0)
        status = kiln_nn_linear_init(&state->head, scope, "head",
                                     opts->hidden_count > 0 ? opts->hidden[opts->hidden_count - 1]
                                                            : in,
                                     io->outputs[0].shape.dim[0], true, err);
    if (status < 0)
        return status;
    kiln_param_set_head(state->head.weight);
    kiln_param_set_head(state->head.bias);
    return KILN_OK;
}

/* ---- Forward ----------------------------------------------------------------------------------
 */

static KilnTensor *encode(KilnInstance *encoder, int i, KilnStep *step,
                          const KilnModelValue *inputs)
{
    KilnModelValue values[INPUTS], ret;
    size_t n = 0;

    for (int k = 0; k < part_of[i].n; k++)
        if (inputs[part_of[i].first + k].tensor != NULL)
            values[n++] = inputs[part_of[i].first + k];
    kiln_model_forward(encoder, step, values, &ret);
    return ret.tensor;
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnTensor *vectors[ENCODERS];
    int n = 0;

    for (int i = 0; i < ENCODERS; i++)
        if (encoder_of(opts, i) != NULL)
            vectors[n++] = encode(encoder_of(opts, i), i, step, inputs);
    KilnTensor *x = n > 1 ? kiln_concat(vectors, n, 1) : vectors[0];
    if (kiln_step_training(step) && opts->dropout > 0.0)
        x = kiln_dropout(x, opts->dropout, kiln_step_dropout_key(step), kiln_step_stream(step));
    outputs[0].tensor = kiln_nn_linear(&state->head, kiln_linear_stack(&state->stack, x, true));
}

static void release(KilnInstance *self)
{
    kiln_linear_stack_release(&((State *)kiln_state(self))->stack);
}

static const KilnModelOps ops = {
    .signature = &signature,
    .models = models,
    .n_models = ENCODERS,
    .setup = setup,
    .forward = forward,
};

const KilnComponent kiln_model_fusion = {
    .kind = KILN_KIND_MODEL,
    .name = "fusion",
    .summary = "Encoders of an image, a text and a row in one model",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .init = init,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_fusion, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
