/* A table's row as one vector: fully connected layers over its numbers and the vectors of its
 * categories. A tower of task retrieval. */
#include "kiln.h"
#include "kiln/tools/linear_stack.h"
#include "kiln/tools/row_layers.h"

#include <math.h>

typedef struct Opts {
    int64_t width;
    int64_t *layers;
    size_t layers_count;
    bool normalize;
} Opts;

typedef struct State {
    KilnCategoryTables categories;
    KilnLinearStack stack;
    bool has_numbers;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "32", 1, 65536, "features of each category's vector"),
    KILN_FIELD_I64_LIST(Opts, layers, "[64, 32]", 1, 1000000,
                        "widths of the layers; the last one is that of the vector"),
    KILN_FIELD_BOOL(Opts, normalize, "true",
                    "the vector has length 1, so that products of two are cosines"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    *ret_option = "layers";
    return ((const Opts *)options)->layers_count > 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected at least one number");
}

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
    { .name = "vector", .content = KILN_VECTOR, .axes = "features" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnFeature *row = &io->inputs[NUMBERS], *ids = &io->inputs[CATEGORIES];
    const KilnScope embeddings = kiln_scope(scope, "embeddings");
    const KilnScope layers = kiln_scope(scope, "layers");
    const KilnInit init = { .kind = KILN_INIT_NORMAL, .a = 1.0 / sqrt((double)opts->width) };
    KilnStatus status = kiln_nn_category_tables_init(&state->categories, &embeddings, ids,
                                                     opts->width, init, err);

    state->has_numbers = row->name != NULL;
    io->outputs[0].shape.dim[0] = opts->layers[opts->layers_count - 1];
    if (status < 0)
        return status;
    return kiln_linear_stack_init(&state->stack, &layers,
                                  (int64_t)state->categories.n * opts->width +
                                      (state->has_numbers ? row->shape.dim[0] : 0),
                                  opts->layers, opts->layers_count, err);
}

/* x over its length. */
static KilnTensor *unit(KilnTensor *x)
{
    const int last[] = { -1 };
    KilnTensor *squares = kiln_sum_axes(kiln_square(x), last, 1, true);

    return kiln_mul(x, kiln_rsqrt(kiln_shift(squares, 1e-12)));
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnTensor *parts[2];
    int n = 0;

    (void)step;
    if (state->categories.n > 0)
        parts[n++] =
            kiln_flatten(kiln_nn_category_tables(&state->categories, inputs[CATEGORIES].tensor));
    if (state->has_numbers)
        parts[n++] = inputs[NUMBERS].tensor;
    KilnTensor *x = n > 1 ? kiln_concat(parts, n, 1) : parts[0];
    x = kiln_linear_stack(&state->stack, x, false);
    outputs[0].tensor = opts->normalize ? unit(x) : x;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    kiln_nn_category_tables_release(&state->categories);
    kiln_linear_stack_release(&state->stack);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_row_encoder = {
    .kind = KILN_KIND_MODEL,
    .name = "row_encoder",
    .summary = "A table's row as one vector, such as a tower of task retrieval",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_row_encoder, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
