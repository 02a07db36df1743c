/* Rows of numbers and categories by their interactions (Naumov et al., "Deep learning
 * recommendation model for personalization and recommendation systems", 2019): the numbers pass a
 * network to one vector, each category has one of the same width, and a second network reads the
 * products of all pairs of these vectors beside the numbers' vector. */
#include "kiln.h"
#include "kiln/tools/linear_stack.h"
#include "kiln/tools/row_layers.h"

#include <stdlib.h>

typedef struct Opts {
    int64_t width;
    int64_t *bottom, *top;
    size_t bottom_count, top_count;
    bool first_order;
} Opts;

typedef struct State {
    KilnLinearStack bottom, top;
    KilnLinear dense, head; /* dense.weight NULL: there are no numbers */
    KilnCategoryTables categories, first_order;
    int64_t vectors; /* of numbers and categories */
    int32_t *pairs;  /* [vectors * (vectors - 1) / 2]: i * vectors + j, j < i */
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "16", 1, 65536, "features of each category's vector"),
    KILN_FIELD_I64_LIST(Opts, bottom, "[64]", 1, 1000000,
                        "widths of the hidden layers that read the numbers"),
    KILN_FIELD_I64_LIST(Opts, top, "[64, 32]", 1, 1000000,
                        "widths of the hidden layers that read the interactions"),
    KILN_FIELD_BOOL(Opts, first_order, "true",
                    "add a bias of each category to the output (the wide part of Cheng et al., "
                    "\"Wide & deep learning for recommender systems\", 2016)"),
    KILN_FIELD_END,
};

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
    { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static int64_t n_pairs(const State *state)
{
    return state->vectors * (state->vectors - 1) / 2;
}

static KilnStatus set_up_pairs(State *state, KilnError *err)
{
    int32_t *pair = malloc((size_t)(n_pairs(state) + 1) * sizeof(*pair));

    state->pairs = pair;
    if (pair == NULL)
        return kiln_error_nomem(err, (size_t)(n_pairs(state) + 1) * sizeof(*pair));
    for (int64_t i = 0; i < state->vectors; i++)
        for (int64_t j = 0; j < i; j++)
            *pair++ = (int32_t)(i * state->vectors + j);
    return KILN_OK;
}

/* The numbers' hidden layers, and one more to the vectors' width. */
static KilnStatus set_up_numbers(State *state, const Opts *opts, const KilnScope *scope,
                                 int64_t numbers, KilnError *err)
{
    const KilnScope bottom = kiln_scope(scope, "bottom");
    const int64_t last = opts->bottom_count > 0 ? opts->bottom[opts->bottom_count - 1] : numbers;
    KilnStatus status = kiln_linear_stack_init(&state->bottom, &bottom, numbers, opts->bottom,
                                               opts->bottom_count, err);

    return status < 0
               ? status
               : kiln_nn_linear_init(&state->dense, scope, "dense", last, opts->width, true, err);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnFeature *row = &io->inputs[NUMBERS], *ids = &io->inputs[CATEGORIES];
    State *state = kiln_state(self);
    const KilnScope embeddings = kiln_scope(scope, "embeddings"), top = kiln_scope(scope, "top");
    const KilnScope first_order = kiln_scope(scope, "first_order");
    const KilnInit small = { .kind = KILN_INIT_NORMAL, .a = 0.01 };
    const int64_t classes = io->outputs[0].shape.dim[0];
    const bool has_numbers = row->name != NULL;
    KilnStatus status = kiln_nn_category_tables_init(&state->categories, &embeddings, ids,
                                                     opts->width, small, err);

    if (status >= 0 && opts->first_order)
        status = kiln_nn_category_tables_init(&state->first_order, &first_order, ids, classes,
                                              (KilnInit) { .kind = KILN_INIT_CONSTANT }, err);
    state->vectors = (int64_t)state->categories.n + has_numbers;
    if (status >= 0)
        status = set_up_pairs(state, err);
    if (status >= 0 && has_numbers)
        status = set_up_numbers(state, opts, scope, row->shape.dim[0], err);
    const int64_t in = n_pairs(state) + (has_numbers ? opts->width : 0);
    if (status >= 0 && (state->categories.n == 0 || in == 0))
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs two columns of categories, or numbers beside one; the data "
                              "have %zu column%s of categories%s",
                              state->categories.n, state->categories.n == 1 ? "" : "s",
                              has_numbers ? "" : " and no numbers");
    if (status >= 0)
        status = kiln_linear_stack_init(&state->top, &top, in, opts->top, opts->top_count, err);
    return status < 0
               ? status
               : kiln_nn_linear_init(&state->head, scope, "head",
                                     opts->top_count > 0 ? opts->top[opts->top_count - 1] : in,
                                     classes, true, err);
}

/* The products of all pairs of vectors [batch, vectors, width]: [batch, pairs]. */
static KilnTensor *interact(const State *state, KilnTensor *vectors)
{
    KilnGraph *graph = kiln_tensor_graph(vectors);
    KilnTensor *products = kiln_flatten(kiln_matmul(vectors, vectors, false, true));
    KilnTensor *pairs = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(n_pairs(state)), state->pairs);

    return kiln_index_select(products, 1, pairs);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    static const int columns[] = { 1 };
    const State *state = kiln_state(self);
    KilnTensor *vectors = kiln_nn_category_tables(&state->categories, inputs[CATEGORIES].tensor);
    KilnTensor *parts[2];
    int n = 0;

    (void)step;
    if (state->dense.weight != NULL) {
        KilnTensor *dense = kiln_linear_stack(&state->bottom, inputs[NUMBERS].tensor, true);

        dense = kiln_relu(kiln_nn_linear(&state->dense, dense));
        vectors = kiln_concat((KilnTensor *[]) { kiln_unsqueeze(dense, 1), vectors }, 2, 1);
        parts[n++] = dense;
    }
    if (state->vectors > 1)
        parts[n++] = interact(state, vectors);
    KilnTensor *x = n > 1 ? kiln_concat(parts, n, 1) : parts[0];
    KilnTensor *y = kiln_nn_linear(&state->head, kiln_linear_stack(&state->top, x, true));
    if (state->first_order.n > 0)
        y = kiln_add(y, kiln_sum_axes(
                            kiln_nn_category_tables(&state->first_order, inputs[CATEGORIES].tensor),
                            columns, 1, false));
    outputs[0].tensor = y;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    kiln_linear_stack_release(&state->bottom);
    kiln_linear_stack_release(&state->top);
    kiln_nn_category_tables_release(&state->categories);
    kiln_nn_category_tables_release(&state->first_order);
    free(state->pairs);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_dlrm = {
    .kind = KILN_KIND_MODEL,
    .name = "dlrm",
    .summary = "Numbers and categories by the products of their vectors, for recommendation",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_dlrm, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
