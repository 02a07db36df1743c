/* Reference of layer, rms and group norm: statistics over sets of values. */
#include "backend/ref/ref.h"

#include <math.h>

/* Index in x of element e of set s, and the index of its weight. */
static int64_t index_of(const KilnSets *sets, int64_t s, int64_t e)
{
    int64_t sample = s / sets->groups, g = s % sets->groups;
    int64_t place = e / sets->run;

    return (sample * sets->pixels + place) * sets->stride + g * sets->run + e % sets->run;
}

static int64_t weight_of(const KilnSets *sets, int64_t s, int64_t e)
{
    return s % sets->groups * sets->run + e % sets->run;
}

static double weight_at(const KilnArg *weight, int64_t i)
{
    return weight->absent ? 1.0 : kiln_ref_get(weight, i);
}

static bool centers(const KilnCall *call)
{
    return call->op != &kiln_op_rms_norm && call->op != &kiln_op_rms_norm_grad;
}

/* The mean over a set of (x - from)^power. */
static double moment(const KilnArg *x, const KilnSets *sets, int64_t s, double from, int power)
{
    int64_t n = sets->pixels * sets->run;
    double sum = 0.0;

    for (int64_t e = 0; e < n; e++) {
        double d = kiln_ref_get(x, index_of(sets, s, e)) - from;

        sum += power == 2 ? d * d : d;
    }
    return sum / (double)n;
}

static void forward_run(KilnCall *call)
{
    const KilnSetNormAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0], *weight = &call->inputs[1], *bias = &call->inputs[2];
    const KilnSets sets = kiln_sets(attrs, &x->shape);

    for (int64_t s = 0; s < sets.count; s++) {
        double mean = centers(call) ? moment(x, &sets, s, 0.0, 1) : 0.0;
        double rstd = 1.0 / sqrt(moment(x, &sets, s, mean, 2) + attrs->eps);

        for (int64_t e = 0; e < sets.pixels * sets.run; e++) {
            int64_t at = index_of(&sets, s, e), w = weight_of(&sets, s, e);
            double shift = bias->absent ? 0.0 : kiln_ref_get(bias, w);

            kiln_ref_set(&call->outputs[0], at,
                         (kiln_ref_get(x, at) - mean) * rstd * weight_at(weight, w) + shift);
        }
        if (centers(call))
            kiln_ref_set(&call->outputs[1], s, mean);
        kiln_ref_set(&call->outputs[call->n_outputs - 1], s, rstd);
    }
}

/* The gradients of weight and bias accumulate in doubles. */
static KilnStatus backward_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    call->workspace_size = (size_t)kiln_ref_count(&call->outputs[1]) * 2 * sizeof(double);
    return KILN_OK;
}

/* With h = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - mean(g) - h * mean(g * h)),
 * without mean(g) for rms norm. */
static void backward_set(KilnCall *call, const KilnSets *sets, int64_t s, double mean, double rstd)
{
    const KilnArg *dy = &call->inputs[0], *x = &call->inputs[1], *weight = &call->inputs[2];
    int64_t n = sets->pixels * sets->run, weights = kiln_ref_count(&call->outputs[1]);
    double *dweight = call->workspace, *dbias = dweight + weights;
    double sum = 0.0, dot = 0.0;

    for (int64_t e = 0; e < n; e++) {
        int64_t at = index_of(sets, s, e), w = weight_of(sets, s, e);
        double d = kiln_ref_get(dy, at), h = (kiln_ref_get(x, at) - mean) * rstd;

        sum += centers(call) ? d * weight_at(weight, w) : 0.0;
        dot += d * weight_at(weight, w) * h;
        dweight[w] += d * h;
        dbias[w] += d;
    }
    for (int64_t e = 0; e < n; e++) {
        int64_t at = index_of(sets, s, e), w = weight_of(sets, s, e);
        double h = (kiln_ref_get(x, at) - mean) * rstd;
        double g = kiln_ref_get(dy, at) * weight_at(weight, w);

        kiln_ref_set(&call->outputs[0], at, rstd * (g - sum / (double)n - h * dot / (double)n));
    }
}

static void backward_run(KilnCall *call)
{
    const KilnSets sets = kiln_sets(call->attrs, &call->inputs[1].shape);
    int64_t weights = kiln_ref_count(&call->outputs[1]);
    double *sums = call->workspace;

    for (int64_t i = 0; i < 2 * weights; i++)
        sums[i] = 0.0;
    for (int64_t s = 0; s < sets.count; s++)
        backward_set(call, &sets, s, centers(call) ? kiln_ref_get(&call->inputs[3], s) : 0.0,
                     kiln_ref_get(&call->inputs[call->n_inputs - 1], s));
    for (int i = 1; i < call->n_outputs; i++)
        for (int64_t w = 0; w < weights; w++)
            kiln_ref_set(&call->outputs[i], w, sums[(i - 1) * weights + w]);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_layer_norm, .run = forward_run },
    { .op = &kiln_op_rms_norm, .run = forward_run },
    { .op = &kiln_op_group_norm, .run = forward_run },
    { .op = &kiln_op_layer_norm_grad, .prepare = backward_prepare, .run = backward_run },
    { .op = &kiln_op_rms_norm_grad, .prepare = backward_prepare, .run = backward_run },
    { .op = &kiln_op_group_norm_grad, .prepare = backward_prepare, .run = backward_run },
};

const KilnRefTable kiln_ref_set_norm = { kernels, KILN_COUNT(kernels) };
