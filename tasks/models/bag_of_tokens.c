/* The mean of the vectors of a text's tokens, and a linear layer (Joulin et al., "Bag of Tricks for
 * Efficient Text Classification", 2016). Where the data have a bag of n-grams (tokenizer/ngrams) it
 * takes those instead, is fastText's classifier and begins with its weights' distributions. */
#include "kiln.h"
#include "kiln/tools/bag_head.h"

typedef struct Opts {
    int64_t width;
    double dropout;
} Opts;

typedef struct State {
    KilnEmbedding embedding;
    KilnLinear head;
    int input; /* whose ids it takes */
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "100", 1, 65536, "features of each token's vector"),
    KILN_FIELD_F64(Opts, dropout, "0.0", 0.0, 0.99, "dropout of the mean"),
    KILN_FIELD_END,
};

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
    const bool bag = io->inputs[1].name != NULL;
    const KilnFeature *tokens = &io->inputs[bag ? 1 : 0];
    State *state = kiln_state(self);

    if (tokens->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs the number of ids, but feature \"%s\" has none", tokens->name);
    state->input = bag ? 1 : 0;
    KilnStatus status = kiln_nn_embedding_init(&state->embedding, scope, bag ? "bag" : "embedding",
                                               tokens->n_ids, opts->width, (int64_t)tokens->pad,
                                               err);
    if (status >= 0)
        status = kiln_nn_linear_init(&state->head, scope, bag ? "bag_head" : "head", opts->width,
                                     io->outputs[0].shape.dim[0], false, err);
    if (status < 0)
        return status;
    kiln_param_set_init(state->embedding.weight,
                        (KilnInit) { .kind = KILN_INIT_UNIFORM, .a = 1.0 / (double)opts->width });
    kiln_param_set_init(state->head.weight, (KilnInit) { .kind = KILN_INIT_CONSTANT });
    return KILN_OK;
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool drops = opts->dropout > 0.0 && kiln_step_training(step);
    KilnDropoutState drop = { 0 };
    KilnTensor *mean = kiln_nn_embedding_bag(&state->embedding, inputs[state->input].tensor, NULL,
                                             KILN_BAG_MEAN);

    if (drops)
        drop = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                    .stream = kiln_step_stream(step) << 32 };
    mean = kiln_nn_dropout(mean, opts->dropout, drops ? &drop : NULL);
    outputs[0].tensor = kiln_nn_linear(&state->head, mean);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_bag_of_tokens = {
    .kind = KILN_KIND_MODEL,
    .name = "bag_of_tokens",
    .summary = "Mean of token vectors and a linear layer; fastText's with tokenizer/ngrams",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_bag_of_tokens, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
