/* Fully connected layers with ReLU between them, on the flattened sample. Of a table's row each
 * category is a vector, and numbers may become vectors, too. */
#include "kiln.h"
#include "kiln/tools/row_layers.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum Numbers { RAW_NUMBERS, PERIODIC_NUMBERS } Numbers;

typedef struct Opts {
    int64_t *hidden;
    size_t hidden_count;
    double dropout;
    int64_t category_width, numbers, number_width, frequencies;
    double sigma;
} Opts;

typedef struct State {
    KilnLinear *layers; /* hidden and output layers */
    size_t count;
    KilnCategoryTables categories;
    KilnPeriodicEmbedding periodic; /* weight NULL: numbers are taken as they are */
} State;

static const KilnChoice number_embeddings[] = {
    { "raw", RAW_NUMBERS },
    { "periodic", PERIODIC_NUMBERS },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_I64_LIST(Opts, hidden, "[512, 512]", 1, 1000000,
                        "widths of the hidden layers; []: none"),
    KILN_FIELD_F64(Opts, dropout, "0.0", 0.0, 0.99, "dropout of each hidden layer"),
    KILN_FIELD_I64(Opts, category_width, "16", 1, 65536,
                   "of tables: the width of each category's vector"),
    KILN_FIELD_ENUM(Opts, numbers, "raw", number_embeddings,
                    "raw: as they are; periodic: each becomes sines and cosines, a linear layer of "
                    "its own and ReLU (PLR), of a row of numbers"),
    KILN_FIELD_I64(Opts, number_width, "24", 1, 65536, "periodic: the width of a number's vector"),
    KILN_FIELD_I64(Opts, frequencies, "48", 1, 4096, "periodic: frequencies of each number"),
    KILN_FIELD_F64(Opts, sigma, "0.1", 1e-6, 1e3,
                   "periodic: the deviation of the initial frequencies"),
    KILN_FIELD_END,
};

enum { NUMBERS, CATEGORIES };

/* Any sample of one shape, as a flat list of numbers, and categories beside it, or one of both. */
static const KilnTensorSpec takes[] = {
    [NUMBERS] = { .name = "x",
                  .content = KILN_IMAGE | KILN_ROW | KILN_VECTOR | KILN_SEQUENCE | KILN_MAP,
                  .dtype = KILN_F32,
                  .optional = true },
    [CATEGORIES] = { .name = "ids",
                     .content = KILN_ROW,
                     .dtype = KILN_I32,
                     .axes = "categories",
                     .optional = true },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* What the first layer takes: its width. */
static KilnStatus embed_init(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                             int64_t *ret_width, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnScope tables = kiln_scope(scope, "categories");
    const KilnFeature *x = &io->inputs[NUMBERS];
    const bool has_numbers = x->name != NULL;
    const KilnPeriodicSpec spec = { .numbers = x->shape.dim[0],
                                    .frequencies = opts->frequencies,
                                    .width = opts->number_width,
                                    .sigma = opts->sigma };
    KilnStatus status = kiln_nn_category_tables_init(
        &state->categories, &tables, &io->inputs[CATEGORIES], opts->category_width,
        (KilnInit) { .kind = KILN_INIT_NORMAL, .a = 0.1 }, err);

    *ret_width = (has_numbers ? kiln_shape_count(&x->shape) : 0) +
                 (int64_t)state->categories.n * opts->category_width;
    if (status < 0 || opts->numbers == RAW_NUMBERS)
        return status;
    if (!has_numbers)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "numbers: periodic makes vectors of numbers, and the data have none; "
                              "leave it raw");
    if (x->shape.rank != 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "numbers: periodic takes a row or a vector, and \"%s\" is neither",
                              x->name);
    *ret_width += spec.numbers * (spec.width - 1);
    return kiln_nn_periodic_init(&state->periodic, scope, "periodic", spec, err);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnScope layers = kiln_scope(scope, "layers");
    const int64_t classes = io->outputs[0].shape.dim[0];
    int64_t width = 0;

    state->count = opts->hidden_count + 1;
    state->layers = calloc(state->count, sizeof(*state->layers));
    if (state->layers == NULL)
        return kiln_error_nomem(err, state->count * sizeof(*state->layers));
    if (embed_init(self, scope, io, &width, err) < 0)
        return err->status;
    for (size_t i = 0; i < state->count; i++) {
        int64_t next = i < opts->hidden_count ? opts->hidden[i] : classes;
        char name[32];

        snprintf(name, sizeof(name), "%zu", i);
        KilnStatus status = kiln_nn_linear_init(&state->layers[i], &layers, name, width, next, true,
                                                err);
        if (status < 0)
            return status;
        width = next;
    }
    kiln_param_set_head(state->layers[opts->hidden_count].weight);
    kiln_param_set_head(state->layers[opts->hidden_count].bias);
    return KILN_OK;
}

/* The sample as one list of numbers. */
static KilnTensor *embed(const State *state, const KilnModelValue *inputs)
{
    KilnTensor *parts[2], *x = inputs[NUMBERS].tensor;
    int n = 0;

    if (state->periodic.weight != NULL)
        x = kiln_nn_periodic(&state->periodic, x);
    if (x != NULL)
        parts[n++] = kiln_flatten(x);
    if (state->categories.n > 0)
        parts[n++] =
            kiln_flatten(kiln_nn_category_tables(&state->categories, inputs[CATEGORIES].tensor));
    return n == 1 ? parts[0] : kiln_concat(parts, n, 1);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    bool drop = opts->dropout > 0.0 && kiln_step_training(step);

    KilnTensor *x = embed(state, inputs);
    for (size_t i = 0; i + 1 < state->count; i++) {
        x = kiln_relu(kiln_nn_linear(&state->layers[i], x));
        if (drop)
            x = kiln_dropout(x, opts->dropout, kiln_step_dropout_key(step), kiln_step_stream(step));
    }
    outputs[0].tensor = kiln_nn_linear(&state->layers[state->count - 1], x);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->layers);
    kiln_nn_category_tables_release(&state->categories);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_mlp = {
    .kind = KILN_KIND_MODEL,
    .name = "mlp",
    .summary = "Fully connected layers with ReLU and dropout",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_mlp, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
