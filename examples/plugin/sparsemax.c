/* A custom operation in a plugin: sparsemax (Martins and Astudillo, "From softmax to sparsemax",
 * 2016), the projection of a row onto the probability simplex, which gives exact zeros; and a model
 * that uses it as the gate of a mixture of linear experts. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The operation: x [..., K] -> p [..., K] ------------------------------------------- */

static KilnStatus sparsemax_infer(const void *attrs, const KilnOpArg *inputs, KilnOpArg *outputs,
                                  KilnError *err)
{
    char text[KILN_SHAPE_TEXT];

    (void)attrs;
    if (inputs[0].shape.rank < 1)
        return kiln_error_set(err, KILN_E_SHAPE, "x must be [..., K], got %s",
                              kiln_shape_text(&inputs[0].shape, text, sizeof(text)));
    outputs[0] = inputs[0];
    return KILN_OK;
}

/* With s the elements that are not zero: dx = s * (dy - mean of dy over s). */
static void sparsemax_gradient(const KilnOpGradient *at)
{
    KilnTensor *s = kiln_sign(at->outputs[0]), *kept = kiln_mul(s, at->dy[0]);
    KilnTensor *mean = kiln_div(kiln_sum_axes(kept, (int[]) { -1 }, 1, true),
                                kiln_sum_axes(s, (int[]) { -1 }, 1, true));

    at->dx[0] = kiln_sub(kept, kiln_mul(s, mean));
}

/* A sorted copy of the rows. */
static size_t sparsemax_workspace(const void *attrs, const KilnOpArg *inputs,
                                  const KilnOpArg *outputs)
{
    (void)attrs;
    (void)outputs;
    return (size_t)kiln_shape_count(&inputs[0].shape) * kiln_dtype_size(inputs[0].dtype);
}

/* p = max(x - t, 0) with t such that p sums to 1: the largest k for which the k-th largest element
 * is above (the sum of the k largest - 1) / k gives t. */
#define SPARSEMAX(T)                                                                               \
    static int descending_##T(const void *a, const void *b)                                        \
    {                                                                                              \
        const T x = *(const T *)a, y = *(const T *)b;                                              \
                                                                                                   \
        return (x < y) - (x > y);                                                                  \
    }                                                                                              \
    static void rows_##T(void *context, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const KilnOpCall *call = context;                                                          \
        const KilnShape *shape = &call->inputs[0].shape;                                           \
        const int64_t n = shape->dim[shape->rank - 1];                                             \
                                                                                                   \
        for (int64_t row = begin; row < end; row++) {                                              \
            const T *x = (const T *)call->inputs[0].data + row * n;                                \
            T *p = (T *)call->outputs[0].data + row * n, *sorted = (T *)call->workspace + row * n; \
            double sum = 0.0, t = 0.0;                                                             \
                                                                                                   \
            memcpy(sorted, x, (size_t)n * sizeof(T));                                              \
            qsort(sorted, (size_t)n, sizeof(T), descending_##T);                                   \
            for (int64_t k = 0; k < n; k++) {                                                      \
                sum += (double)sorted[k];                                                          \
                if ((double)sorted[k] > (sum - 1.0) / (double)(k + 1))                             \
                    t = (sum - 1.0) / (double)(k + 1);                                             \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                p[i] = (T)fmax((double)x[i] - t, 0.0);                                             \
        }                                                                                          \
    }                                                                                              \
    static void sparsemax_##T(const KilnOpCall *call)                                              \
    {                                                                                              \
        const KilnShape *shape = &call->inputs[0].shape;                                           \
                                                                                                   \
        kiln_op_parallel(call, kiln_shape_count(shape) / shape->dim[shape->rank - 1], 64,          \
                         rows_##T, (void *)call);                                                  \
    }

SPARSEMAX(float)
SPARSEMAX(double)

const KilnCustomOp sparsemax = {
    .size = sizeof(KilnCustomOp),
    .name = "sparsemax",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = sparsemax_infer,
    .gradient = sparsemax_gradient,
    .workspace = sparsemax_workspace,
    .cpu = sparsemax_float,
    .cpu_f64 = sparsemax_double,
};

/* ---- The model -------------------------------------------------------------------------- */

typedef struct Opts {
    int64_t experts;
} Opts;

typedef struct State {
    KilnLinear gate, experts;
    int64_t n_classes;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, experts, "4", 1, 1024, "linear classifiers that the gate mixes"),
    KILN_FIELD_END,
};

static const KilnTensorSpec takes[] = {
    { .name = "x",
      .content = KILN_IMAGE | KILN_ROW | KILN_VECTOR | KILN_SEQUENCE | KILN_MAP,
      .dtype = KILN_F32 },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t width = kiln_shape_count(&io->inputs[0].shape);

    state->n_classes = io->outputs[0].shape.dim[0];
    if (kiln_nn_linear_init(&state->gate, scope, "gate", width, opts->experts, true, err) < 0)
        return err->status;
    return kiln_nn_linear_init(&state->experts, scope, "experts", width,
                               opts->experts * state->n_classes, true, err);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const int64_t batch = kiln_step_batch_size(step);
    KilnTensor *rows = kiln_flatten(inputs[0].tensor);
    KilnTensor *gate = kiln_nn_linear(&state->gate, rows);

    gate = kiln_custom_op(kiln_step_graph(step), &sparsemax, &gate, NULL, NULL);
    gate = kiln_reshape(gate, KILN_SHAPE(batch, opts->experts, 1));
    KilnTensor *scores = kiln_reshape(kiln_nn_linear(&state->experts, rows),
                                      KILN_SHAPE(batch, opts->experts, state->n_classes));
    outputs[0].tensor = kiln_sum_axes(kiln_mul(scores, gate), (int[]) { 1 }, 1, false);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_sparse_mixture = {
    .kind = KILN_KIND_MODEL,
    .name = "sparse_mixture",
    .summary = "Linear experts, mixed by a sparse gate",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_sparse_mixture, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
