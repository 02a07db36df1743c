/* A booster's predictions as an operation of a step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/tools/boost.h"

enum { SPLITS = KILN_VECTOR | KILN_ROW };

/* The attributes: a step's operations are the same if they belong to the same booster. */
typedef struct Attrs {
    const KilnBoostOp *op;
    KilnBooster *booster;
} Attrs;

static KilnShape row_shape(const KilnBoostOp *op, int64_t n)
{
    if (!op->contributions)
        return KILN_SHAPE(n, op->binary ? 2 : op->width);
    return op->width > 1 ? KILN_SHAPE(n, op->width, op->columns + 1)
                         : KILN_SHAPE(n, op->columns + 1);
}

static KilnStatus infer(const void *attrs, const KilnOpArg *inputs, KilnOpArg *outputs,
                        KilnError *err)
{
    const KilnBoostOp *op = ((const Attrs *)attrs)->op;

    (void)err;
    outputs[0] = (KilnOpArg) { .dtype = KILN_F32, .shape = row_shape(op, inputs[0].shape.dim[0]) };
    return KILN_OK;
}

/* The rows as XGBoost reads them, then what it gives for binary classes. */
static size_t workspace(const void *attrs, const KilnOpArg *inputs, const KilnOpArg *outputs)
{
    const KilnBoostOp *op = ((const Attrs *)attrs)->op;

    (void)outputs;
    return (size_t)(inputs[0].shape.dim[0] * (op->columns + 1)) * sizeof(float);
}

/* The features of all samples, one row each. */
static void gather(const KilnBoostOp *op, const KilnOpCall *call, float *rows)
{
    const KilnDataSpec *spec = op->spec;
    const int64_t n = call->inputs[0].shape.dim[0];
    int64_t column = 0;
    int input = 0;

    for (size_t f = 0; f < spec->n_features; f++) {
        const KilnFeature *feature = &spec->features[f];
        const int64_t width = kiln_shape_count(&feature->shape);

        if ((feature->content & SPLITS) == 0)
            continue;
        const char *data = call->inputs[input++].data;
        const size_t bytes = (size_t)width * kiln_dtype_size(feature->dtype);
        for (int64_t i = 0; i < n; i++)
            kiln_boost_put(feature, data + (size_t)i * bytes, rows + i * op->columns + column);
        column += width;
    }
}

static KilnStatus predict(const KilnBoostOp *op, const float *rows, int64_t n, float *second,
                          float *ret, KilnError *err)
{
    if (op->contributions)
        return kiln_booster_contributions(op->booster, rows, n, op->columns, op->width, ret, err);
    KilnStatus status = kiln_booster_predict(op->booster, rows, n, op->columns, true, op->width,
                                             op->binary ? second : ret, err);
    for (int64_t i = 0; i < n && op->binary && status >= 0; i++) {
        ret[2 * i] = 1.0f - second[i];
        ret[2 * i + 1] = second[i];
    }
    return status;
}

static void compute(const KilnOpCall *call)
{
    const KilnBoostOp *op = ((const Attrs *)call->attrs)->op;
    const int64_t n = call->inputs[0].shape.dim[0];
    const int64_t count = kiln_shape_count(&call->outputs[0].shape);
    float *rows = call->workspace, *ret = call->outputs[0].data;
    KilnError err = { 0 };

    gather(op, call, rows);
    if (predict(op, rows, n, rows + n * op->columns, ret, &err) >= 0)
        return;
    op->report(op->ctx, &err);
    for (int64_t i = 0; i < count; i++)
        ret[i] = NAN;
}

#define OPERATION(inputs)                                                                          \
    {                                                                                              \
        .size = sizeof(KilnCustomOp), .name = "boosted_trees", .n_inputs = (inputs),               \
        .n_outputs = 1, .attrs_size = sizeof(Attrs), .infer = infer, .workspace = workspace,       \
        .cpu = compute                                                                             \
    }

/* One for each number of features. */
static const KilnCustomOp operations[KILN_CUSTOM_INPUTS] = {
    OPERATION(1), OPERATION(2), OPERATION(3), OPERATION(4),  OPERATION(5),  OPERATION(6),
    OPERATION(7), OPERATION(8), OPERATION(9), OPERATION(10), OPERATION(11), OPERATION(12),
};

KilnTensor *kiln_boost_record(KilnStep *step, const KilnBoostOp *op)
{
    const Attrs attrs = { .op = op, .booster = op->booster };
    KilnTensor *inputs[KILN_CUSTOM_INPUTS] = { NULL };
    int n = 0;

    for (size_t f = 0; f < op->spec->n_features && n < KILN_CUSTOM_INPUTS; f++)
        if ((op->spec->features[f].content & SPLITS) != 0)
            inputs[n++] = kiln_step_input(step, op->spec->features[f].name);
    return kiln_custom_op(kiln_step_graph(step), &operations[n > 0 ? n - 1 : 0], inputs, &attrs,
                          NULL);
}
