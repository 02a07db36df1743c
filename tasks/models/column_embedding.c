/* A vector for each column of a table's row, numbers first: a number times a vector of its column,
 * or the vector of a category; plus another vector of the column (the feature tokenizer of
 * Gorishniy et al., "Revisiting deep learning models for tabular data", 2021, with its names and
 * initial distribution). */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct State {
    KilnParam *weight;         /* [numbers, features]; NULL: there are no numbers */
    KilnEmbedding *categories; /* of each column of categories */
    size_t n_categories;
    KilnParam *bias; /* [numbers + categories, features] */
} State;

enum { NUMBERS, CATEGORIES };

static const KilnTensorSpec takes[] = {
    [NUMBERS] = { .name = "row",
                  .content = KILN_ROW | KILN_VECTOR,
                  .dtype = KILN_F32,
                  .axes = "numbers",
                  .optional = true },
    [CATEGORIES] = { .name = "categories",
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

/* A table of vectors for each column of categories. */
static KilnStatus set_up_categories(State *state, const KilnScope *scope, const KilnFeature *row,
                                    int64_t features, KilnInit init, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "category_embeddings");
    KilnStatus status = KILN_OK;

    state->n_categories = (size_t)columns_of(row);
    state->categories = calloc(state->n_categories + 1, sizeof(*state->categories));
    if (state->categories == NULL)
        return kiln_error_nomem(err, state->n_categories * sizeof(*state->categories));
    for (size_t i = 0; i < state->n_categories && status >= 0; i++) {
        const int64_t of_column = row->columns != NULL ? row->columns[i].n_ids : 0;
        const int64_t n = of_column > 0 ? of_column : row->n_ids;
        char name[24];

        if (n < 1)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "needs the number of categories in column %zu of row \"%s\"; the "
                                  "datamodule must set n_ids of the feature or of its columns",
                                  i, row->name);
        snprintf(name, sizeof(name), "%zu", i);
        status = kiln_nn_embedding_init(&state->categories[i], &own, name, n, features, -1, err);
        if (status >= 0)
            kiln_param_set_init(state->categories[i].weight, init);
    }
    return status;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    State *state = kiln_state(self);
    const int64_t numbers = columns_of(&io->inputs[NUMBERS]);
    KilnShape *sequence = &io->outputs[0].shape;
    const int64_t features = sequence->dim[1];
    const KilnScope own = kiln_scope(scope, "tokenizer");
    const KilnInit init = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt((double)features) };
    KilnStatus status = KILN_OK;

    if (numbers > 0)
        status = kiln_param_new(&own, "weight", KILN_SHAPE(numbers, features), init, &state->weight,
                                err);
    if (status >= 0)
        status = set_up_categories(state, &own, &io->inputs[CATEGORIES], features, init, err);
    sequence->dim[0] = numbers + (int64_t)state->n_categories;
    return status < 0 ? status : kiln_param_new(&own, "bias", *sequence, init, &state->bias, err);
}

/* The vectors of n columns of ids [batch, columns]: [batch, n, features]. */
static KilnTensor *embed_categories(const State *state, KilnTensor *ids, size_t first, size_t n)
{
    if (n == 1)
        return kiln_nn_embedding(&state->categories[first], kiln_narrow(ids, 1, (int64_t)first, 1));
    KilnTensor *halves[] = { embed_categories(state, ids, first, n / 2),
                             embed_categories(state, ids, first + n / 2, n - n / 2) };
    return kiln_concat(halves, 2, 1);
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
    if (state->n_categories > 0)
        parts[n++] = embed_categories(state, inputs[CATEGORIES].tensor, 0, state->n_categories);
    outputs[0].tensor = kiln_add(n > 1 ? kiln_concat(parts, n, 1) : parts[0],
                                 kiln_param_tensor(state->bias, graph));
}

static void release(KilnInstance *self)
{
    free(((State *)kiln_state(self))->categories);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_column_embedding = {
    .kind = KILN_KIND_MODEL,
    .name = "column_embedding",
    .summary = "Numbers and categories of a table's row as a sequence, for transformers",
    .state_size = sizeof(State),
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_column_embedding, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
