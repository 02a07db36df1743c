/* A vector for each column of a table's row, numbers first: a number times a vector of its column,
 * or the vector of a category; plus another vector of the column (the feature tokenizer of
 * Gorishniy et al., "Revisiting deep learning models for tabular data", 2021, with its names and
 * initial distribution). */
#include "kiln.h"
#include "kiln/tools/row_layers.h"

#include <math.h>

typedef enum Numbers { LINEAR_NUMBERS, PERIODIC_NUMBERS } Numbers;

typedef struct Opts {
    int64_t numbers, frequencies;
    double sigma;
} Opts;

static const KilnChoice number_embeddings[] = {
    { "linear", LINEAR_NUMBERS },
    { "periodic", PERIODIC_NUMBERS },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, numbers, "linear", number_embeddings,
                    "linear: a number times a vector of its column; periodic: sines and cosines of "
                    "the number, a linear layer of the column and ReLU (PLR)"),
    KILN_FIELD_I64(Opts, frequencies, "48", 1, 4096, "periodic: frequencies of each number"),
    KILN_FIELD_F64(Opts, sigma, "0.1", 1e-6, 1e3,
                   "periodic: the deviation of the initial frequencies"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnParam *weight;              /* [numbers, features]; NULL: no numbers, or periodic ones */
    KilnPeriodicEmbedding periodic; /* weight NULL: none */
    KilnCategoryTables categories;
    KilnParam *bias; /* [numbers + categories, features] */
} State;

enum { NUMBERS, CATEGORIES };

static const KilnTensorSpec takes[] = {
    [NUMBERS] = { .name = "x",
                  .content = KILN_ROW | KILN_VECTOR,
                  .dtype = KILN_F32,
                  .axes = "numbers",
                  .optional = true },
    [CATEGORIES] = { .name = "ids",
                     .content = KILN_ROW,
                     .dtype = KILN_I32,
                     .axes = "categories",
                     .optional = true },
};

static const KilnTensorSpec gives[] = {
    { .name = "sequence", .content = KILN_SEQUENCE, .axes = "columns features" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* The number of columns of an input; 0: it is absent. */
static int64_t columns_of(const KilnFeature *input)
{
    return input->name != NULL ? input->shape.dim[0] : 0;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t numbers = columns_of(&io->inputs[NUMBERS]);
    const int64_t categories = columns_of(&io->inputs[CATEGORIES]);
    KilnShape *sequence = &io->outputs[0].shape;
    const int64_t features = sequence->dim[1];
    const KilnScope own = kiln_scope(scope, "tokenizer");
    const KilnInit init = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt((double)features) };
    KilnStatus status = KILN_OK;

    if (numbers > 0 && opts->numbers == PERIODIC_NUMBERS)
        status = kiln_nn_periodic_init(&state->periodic, &own, "periodic",
                                       (KilnPeriodicSpec) { .numbers = numbers,
                                                            .frequencies = opts->frequencies,
                                                            .width = features,
                                                            .sigma = opts->sigma },
                                       err);
    else if (numbers > 0)
        status = kiln_param_new(&own, "weight", KILN_SHAPE(numbers, features), init, &state->weight,
                                err);
    const KilnScope tables = kiln_scope(&own, "category_embeddings");
    if (status >= 0)
        status = kiln_nn_category_tables_init(&state->categories, &tables, &io->inputs[CATEGORIES],
                                              features, init, err);
    sequence->dim[0] = numbers + categories;
    return status < 0 ? status : kiln_param_new(&own, "bias", *sequence, init, &state->bias, err);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const State *state = kiln_state(self);
    KilnGraph *graph = kiln_step_graph(step);
    KilnTensor *parts[2];
    int n = 0;

    if (state->weight != NULL)
        parts[n++] = kiln_mul(kiln_unsqueeze(inputs[NUMBERS].tensor, 2),
                              kiln_param_tensor(state->weight, graph));
    if (state->periodic.weight != NULL)
        parts[n++] = kiln_nn_periodic(&state->periodic, inputs[NUMBERS].tensor);
    if (state->categories.n > 0)
        parts[n++] = kiln_nn_category_tables(&state->categories, inputs[CATEGORIES].tensor);
    outputs[0].tensor = kiln_add(n > 1 ? kiln_concat(parts, n, 1) : parts[0],
                                 kiln_param_tensor(state->bias, graph));
}

static void release(KilnInstance *self)
{
    kiln_nn_category_tables_release(&((State *)kiln_state(self))->categories);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_column_embedding = {
    .kind = KILN_KIND_MODEL,
    .name = "column_embedding",
    .summary = "Numbers and categories of a table's row as a sequence, for transformers",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_column_embedding, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
