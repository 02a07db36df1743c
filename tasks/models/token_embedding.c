/* A vector for each token (torch.nn.Embedding), and as in BERT (Devlin et al. 2019) one for the
 * type of each token: which of two texts it is of. `weights` also takes the names of Hugging Face's
 * BERT. */
#include "kiln.h"

typedef struct Opts {
    int64_t types, *separator;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, types, "0", 0, 1000,
                   "token types, each with a vector that is added (BERT has 2); 0: none"),
    KILN_FIELD_I64_OPT(Opts, separator, "null", 0, 2147483647.0,
                       "id of the token that ends a text ([SEP]), after which tokens are of the "
                       "next type; null: all tokens are of type 0"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnEmbedding embedding;
    KilnEmbedding types; /* weight NULL: none */
} State;

static const KilnTensorSpec takes[] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
};

static const KilnTensorSpec gives[] = {
    { .name = "sequence", .content = KILN_SEQUENCE, .axes = "time features", .varies = true },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* The names of Hugging Face's BERT, with and without a head above it. */
static KilnStatus name_bert(const KilnEmbedding *embedding, const char *name, KilnError *err)
{
    const KilnForeignTensor all = { .rows = kiln_param_shape(embedding->weight)->dim[0] };
    KilnStatus status = kiln_param_foreign(embedding->weight, all, err, "bert.embeddings.%s.weight",
                                           name);

    return status < 0
               ? status
               : kiln_param_foreign(embedding->weight, all, err, "embeddings.%s.weight", name);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t width = io->outputs[0].shape.dim[1];
    const KilnFeature *tokens = &io->inputs[0];

    if (tokens->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs the number of token ids, but feature \"%s\" has none; the "
                              "datamodule must set n_ids",
                              tokens->name);
    KilnStatus status = kiln_nn_embedding_init(&state->embedding, scope, "embedding", tokens->n_ids,
                                               width, -1, err);
    if (status >= 0)
        status = name_bert(&state->embedding, "word_embeddings", err);
    if (status >= 0 && opts->types > 0)
        status = kiln_nn_embedding_init(&state->types, scope, "types", opts->types, width, -1, err);
    return status < 0 || opts->types == 0 ? status
                                          : name_bert(&state->types, "token_type_embeddings", err);
}

/* The type of each token: how many separators come before it. */
static KilnTensor *types_of(const Opts *opts, KilnTensor *tokens)
{
    KilnGraph *graph = kiln_tensor_graph(tokens);
    KilnTensor *ids = kiln_to_float(tokens);
    const double id = opts->separator != NULL ? (double)*opts->separator : -1.0;
    KilnTensor *ends = kiln_eq(ids, kiln_arange(graph, kiln_tensor_dtype(ids), id, 1.0, 1));
    KilnTensor *before = kiln_sub(kiln_cumsum(ends, 1), ends);

    return kiln_cast(kiln_clamp(before, 0.0, (double)(opts->types - 1)), KILN_I32);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnTensor *x = kiln_nn_embedding(&state->embedding, inputs[0].tensor);

    (void)step;
    if (state->types.weight != NULL)
        x = kiln_add(x, kiln_nn_embedding(&state->types, types_of(opts, inputs[0].tensor)));
    outputs[0].tensor = x;
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_token_embedding = {
    .kind = KILN_KIND_MODEL,
    .name = "token_embedding",
    .summary = "Tokens as a sequence of vectors, for transformers",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_token_embedding, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
