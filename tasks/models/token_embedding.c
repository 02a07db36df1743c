/* A vector for each token (torch.nn.Embedding). */
#include "kiln.h"

typedef struct State {
    KilnEmbedding embedding;
} State;

static const KilnTensorSpec takes[] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
};

static const KilnTensorSpec gives[] = {
    { .name = "sequence", .content = KILN_SEQUENCE, .axes = "time features", .varies = true },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    State *state = kiln_state(self);
    const KilnFeature *tokens = &io->inputs[0];

    if (tokens->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs the number of token ids, but feature \"%s\" has none; the "
                              "datamodule must set n_ids",
                              tokens->name);
    return kiln_nn_embedding_init(&state->embedding, scope, "embedding", tokens->n_ids,
                                  io->outputs[0].shape.dim[1], -1, err);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const State *state = kiln_state(self);

    (void)step;
    outputs[0].tensor = kiln_nn_embedding(&state->embedding, inputs[0].tensor);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_token_embedding = {
    .kind = KILN_KIND_MODEL,
    .name = "token_embedding",
    .summary = "Tokens as a sequence of vectors, for transformers",
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_token_embedding, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
