/* Reference of the optimizers, in double: the formulas of nn/optimizers/NAME.c, element by
 * element. The operations are in graph/ops/training/optimizers.c. */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

/* One element: its index, value and gradient, and the rates of its segment. */
typedef struct Element {
    KilnCall *call;
    int64_t i;
    double p, g, lr, decay;
} Element;

/* Updates the state and returns the new value. */
typedef double Update(Element *element);

static double hyper(const Element *element, int64_t which)
{
    return kiln_ref_get(&element->call->inputs[KILN_FLAT_HYPER], which);
}

static bool has_slot(const Element *element, int slot)
{
    return !element->call->inputs[KILN_FLAT_SLOTS + slot].absent;
}

static double get_slot(const Element *element, int slot)
{
    return kiln_ref_get(&element->call->inputs[KILN_FLAT_SLOTS + slot], element->i);
}

/* Returns the value as stored. */
static double set_slot(const Element *element, int slot, double value)
{
    kiln_ref_set(&element->call->inputs[KILN_FLAT_SLOTS + slot], element->i, value);
    return value;
}

static void update_segment(KilnCall *call, int64_t begin, int64_t end, double lr, double decay,
                           Update *update)
{
    KilnArg *param = &call->inputs[KILN_FLAT_PARAM], *scale = &call->inputs[KILN_FLAT_SCALE];
    double factor = scale->absent ? 1.0 : kiln_ref_get(scale, 0);

    for (int64_t i = begin; i < end; i++) {
        Element element = {
            .call = call,
            .i = i,
            .p = kiln_ref_get(param, i),
            .g = factor * kiln_ref_get(&call->inputs[KILN_FLAT_GRAD], i),
            .lr = lr,
            .decay = decay,
        };

        kiln_ref_set(param, i, update(&element));
    }
}

/* Adds the squared gradients of [begin, end) to the sums of their parts. */
static void add_squares(const KilnCall *call, int64_t begin, int64_t end, double *sums,
                        bool *updated)
{
    const int64_t *parts = call->inputs[KILN_FLAT_PART_ENDS].data;
    int64_t part = 0;

    for (int64_t i = begin; i < end; i++) {
        double g = kiln_ref_get(&call->inputs[KILN_FLAT_GRAD], i);

        while (parts[part] <= i)
            part++;
        sums[part] += g * g;
        updated[part] = true;
    }
}

/* The norm of each part of the gradient. Segments that are not updated do not count. */
static void measure_parts(KilnCall *call)
{
    const KilnArg *ends = &call->inputs[KILN_FLAT_SEGMENT_ENDS],
                  *rates = &call->inputs[KILN_FLAT_RATES];
    KilnArg *norms = &call->inputs[KILN_FLAT_NORMS];
    double *sums = call->workspace;
    int64_t n = norms->absent ? 0 : kiln_ref_count(norms), begin = 0;
    bool *updated = (void *)(sums + n);

    if (norms->absent)
        return;
    memset(sums, 0, (size_t)n * (sizeof(*sums) + sizeof(*updated)));
    if (ends->absent)
        add_squares(call, 0, kiln_ref_count(&call->inputs[KILN_FLAT_PARAM]), sums, updated);
    for (int64_t k = 0; !ends->absent && k < kiln_ref_count(ends); k++) {
        int64_t end = ((const int64_t *)ends->data)[k];

        if (kiln_ref_get(rates, 2 * k) != 0.0)
            add_squares(call, begin, end, sums, updated);
        begin = end;
    }
    for (int64_t i = 0; i < n; i++)
        if (updated[i])
            kiln_ref_set(norms, i, sqrt(sums[i]));
}

static KilnStatus flat_prepare(KilnCall *call, KilnError *err)
{
    const KilnArg *norms = &call->inputs[KILN_FLAT_NORMS];

    (void)err;
    if (!norms->absent)
        call->workspace_size = (size_t)kiln_ref_count(norms) * (sizeof(double) + sizeof(bool));
    return KILN_OK;
}

typedef void Segment(KilnCall *call, int64_t begin, int64_t end, double lr, double decay,
                     Update *update);

/* Whether the update is of rows of an embedding, in place of segments. */
static bool has_rows(const KilnCall *call)
{
    const KilnArg *rows = &call->inputs[KILN_FLAT_ROWS];

    return !rows->absent && rows->dtype == KILN_I32;
}

static void each_row(KilnCall *call, Segment *run_segment, double lr, Update *update)
{
    const KilnArg *rates = &call->inputs[KILN_FLAT_RATES], *param = &call->inputs[KILN_FLAT_PARAM];
    const int32_t *list = call->inputs[KILN_FLAT_ROWS].data;
    const int64_t rows = param->shape.dim[0], width = kiln_ref_count(param) / rows;
    const bool all = list[0] == KILN_SPARSE_ROWS_ALL;
    const double share = rates->absent ? 1.0 : kiln_ref_get(rates, 0);
    const double decay = rates->absent ? 0.0 : kiln_ref_get(rates, 1);

    for (int64_t i = 0; share != 0.0 && i < (all ? rows : list[0]); i++) {
        const int64_t row = all ? i : list[1 + i];

        run_segment(call, row * width, (row + 1) * width, lr * share, decay, update);
    }
}

static void each_segment(KilnCall *call, Segment *run_segment, Update *update)
{
    const KilnArg *ends = &call->inputs[KILN_FLAT_SEGMENT_ENDS],
                  *rates = &call->inputs[KILN_FLAT_RATES];
    double lr = kiln_ref_get(&call->inputs[KILN_FLAT_HYPER], 0);
    int64_t begin = 0;

    if (has_rows(call)) {
        each_row(call, run_segment, lr, update);
        return;
    }
    measure_parts(call);
    if (ends->absent) {
        run_segment(call, 0, kiln_ref_count(&call->inputs[KILN_FLAT_PARAM]), lr, 0.0, update);
        return;
    }
    for (int64_t k = 0; k < kiln_ref_count(ends); k++) {
        int64_t end = ((const int64_t *)ends->data)[k];
        double share = kiln_ref_get(rates, 2 * k);

        if (share != 0.0)
            run_segment(call, begin, end, lr * share, kiln_ref_get(rates, 2 * k + 1), update);
        begin = end;
    }
}

static double sgd(Element *e)
{
    const KilnSgd *attrs = e->call->attrs;
    double g = e->g + e->decay * e->p;

    if (has_slot(e, 0)) {
        bool first = hyper(e, 1) != 0.0;
        double b = set_slot(
            e, 0, first ? g : attrs->momentum * get_slot(e, 0) + (1.0 - attrs->dampening) * g);

        g = attrs->nesterov ? g + attrs->momentum * b : b;
    }
    return e->p - e->lr * g;
}

static double adam(Element *e)
{
    const KilnAdam *attrs = e->call->attrs;
    double p = e->p, g = e->g;

    if (attrs->decoupled)
        p -= e->lr * e->decay * p;
    else
        g += e->decay * p;

    double m = set_slot(e, 0, attrs->beta1 * get_slot(e, 0) + (1.0 - attrs->beta1) * g);
    double v = set_slot(e, 1, attrs->beta2 * get_slot(e, 1) + (1.0 - attrs->beta2) * g * g);

    if (attrs->amsgrad)
        v = set_slot(e, 2, get_slot(e, 2) > v ? get_slot(e, 2) : v);
    return p - e->lr / hyper(e, 1) * m / (sqrt(v) / sqrt(hyper(e, 2)) + attrs->eps);
}

static double rmsprop(Element *e)
{
    const KilnRmsprop *attrs = e->call->attrs;
    double g = e->g + e->decay * e->p;
    double v = set_slot(e, 0, attrs->alpha * get_slot(e, 0) + (1.0 - attrs->alpha) * g * g);

    if (attrs->centered) {
        double mean = set_slot(e, 2, get_slot(e, 2) + (1.0 - attrs->alpha) * (g - get_slot(e, 2)));

        v -= mean * mean;
        v = v < 0.0 ? 0.0 : v;
    }
    g /= sqrt(v) + attrs->eps;
    if (has_slot(e, 1))
        g = set_slot(e, 1, attrs->momentum * get_slot(e, 1) + g);
    return e->p - e->lr * g;
}

static double adagrad(Element *e)
{
    const KilnAdagrad *attrs = e->call->attrs;
    double g = e->g + e->decay * e->p;
    const double start = attrs->initial_accumulator_value;
    double past = hyper(e, 1) != 0.0 ? start : get_slot(e, 0);
    if (has_rows(e->call) && past < start)
        past = start;
    double sum = set_slot(e, 0, past + g * g);

    return e->p - e->lr * g / (sqrt(sum) + attrs->eps);
}

static double lion(Element *e)
{
    const KilnLion *attrs = e->call->attrs;
    double m = get_slot(e, 0), blend = attrs->beta1 * m + (1.0 - attrs->beta1) * e->g;
    double sign = (blend > 0.0 ? 1.0 : 0.0) - (blend < 0.0 ? 1.0 : 0.0) + 0.0 * blend;

    set_slot(e, 0, attrs->beta2 * m + (1.0 - attrs->beta2) * e->g);
    return e->p * (1.0 - e->lr * e->decay) - e->lr * sign;
}

static double adan(Element *e)
{
    const KilnAdan *attrs = e->call->attrs;
    double diff = hyper(e, 4) != 0.0 ? 0.0 : e->g - get_slot(e, 3);
    double ahead = e->g + attrs->beta2 * diff;
    double m = set_slot(e, 0, attrs->beta1 * get_slot(e, 0) + (1.0 - attrs->beta1) * e->g);
    double v = set_slot(e, 1, attrs->beta3 * get_slot(e, 1) + (1.0 - attrs->beta3) * ahead * ahead);
    double d = set_slot(e, 2, attrs->beta2 * get_slot(e, 2) + (1.0 - attrs->beta2) * diff);
    double root = sqrt(v) / sqrt(hyper(e, 3)) + attrs->eps;
    double step = e->lr * (m / hyper(e, 1) + attrs->beta2 * d / hyper(e, 2)) / root;

    set_slot(e, 3, e->g);
    if (attrs->no_prox)
        return e->p * (1.0 - e->lr * e->decay) - step;
    return (e->p - step) / (1.0 + e->lr * e->decay);
}

static double lamb_direction(const Element *e, double m, double v)
{
    const KilnLamb *attrs = e->call->attrs;

    return m / hyper(e, 1) / (sqrt(v / hyper(e, 2)) + attrs->eps) + e->decay * e->p;
}

static double lamb_moments(Element *e)
{
    const KilnLamb *attrs = e->call->attrs;

    set_slot(e, 0, attrs->beta1 * get_slot(e, 0) + (1.0 - attrs->beta1) * e->g);
    set_slot(e, 1, attrs->beta2 * get_slot(e, 1) + (1.0 - attrs->beta2) * e->g * e->g);
    return e->p;
}

static double lamb_step(Element *e)
{
    return e->p - e->lr * lamb_direction(e, get_slot(e, 0), get_slot(e, 1));
}

static double lamb_trust(KilnCall *call, int64_t begin, int64_t end, double decay)
{
    double p2 = 0.0, u2 = 0.0;

    for (int64_t i = begin; i < end; i++) {
        Element e = {
            .call = call,
            .i = i,
            .p = kiln_ref_get(&call->inputs[KILN_FLAT_PARAM], i),
            .decay = decay,
        };
        double u = lamb_direction(&e, get_slot(&e, 0), get_slot(&e, 1));

        p2 += e.p * e.p;
        u2 += u * u;
    }
    return p2 > 0.0 && u2 > 0.0 ? sqrt(p2) / sqrt(u2) : 1.0;
}

static void lamb_segment(KilnCall *call, int64_t begin, int64_t end, double lr, double decay,
                         Update *unused)
{
    const KilnLamb *attrs = call->attrs;
    double trust = 1.0;

    (void)unused;
    update_segment(call, begin, end, lr, decay, lamb_moments);
    if (decay != 0.0 || attrs->always_adapt)
        trust = lamb_trust(call, begin, end, decay);
    update_segment(call, begin, end, lr * trust, decay, lamb_step);
}

static void sgd_update_run(KilnCall *call)
{
    each_segment(call, update_segment, sgd);
}

static void adam_update_run(KilnCall *call)
{
    each_segment(call, update_segment, adam);
}

static void rmsprop_update_run(KilnCall *call)
{
    each_segment(call, update_segment, rmsprop);
}

static void adagrad_update_run(KilnCall *call)
{
    each_segment(call, update_segment, adagrad);
}

static void lamb_update_run(KilnCall *call)
{
    each_segment(call, lamb_segment, NULL);
}

static void lion_update_run(KilnCall *call)
{
    each_segment(call, update_segment, lion);
}

static void adan_update_run(KilnCall *call)
{
    each_segment(call, update_segment, adan);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_sgd_update, .prepare = flat_prepare, .run = sgd_update_run },
    { .op = &kiln_op_adam_update, .prepare = flat_prepare, .run = adam_update_run },
    { .op = &kiln_op_rmsprop_update, .prepare = flat_prepare, .run = rmsprop_update_run },
    { .op = &kiln_op_adagrad_update, .prepare = flat_prepare, .run = adagrad_update_run },
    { .op = &kiln_op_lamb_update, .prepare = flat_prepare, .run = lamb_update_run },
    { .op = &kiln_op_lion_update, .prepare = flat_prepare, .run = lion_update_run },
    { .op = &kiln_op_adan_update, .prepare = flat_prepare, .run = adan_update_run },
};

const KilnRefTable kiln_ref_optimizers = { kernels, KILN_COUNT(kernels) };
