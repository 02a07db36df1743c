/* Reference of connectionist temporal classification: the forward-backward algorithm in logarithms
 * (Graves et al. 2006, section 4.1). */
#include "backend/ref/ref.h"

#include <math.h>
#include <stdlib.h>

/* One sequence. State s is the blank if even, else label (s - 1) / 2. */
typedef struct Sequence {
    const KilnArg *log_probs;
    const int32_t *labels;
    int64_t n, times, states, blank;
    bool valid; /* lengths and labels are in range */
} Sequence;

/* log_probs, targets and both lengths are the call's inputs from `at` on. */
static Sequence sequence_of(const KilnCall *call, int at, int64_t n)
{
    const KilnCtcAttrs *attrs = call->attrs;
    const int64_t most_labels = call->inputs[at + 1].shape.dim[1];
    const int64_t labels = ((const int32_t *)call->inputs[at + 3].data)[n];
    Sequence s = {
        .log_probs = &call->inputs[at],
        .labels = (const int32_t *)call->inputs[at + 1].data + n * most_labels,
        .n = n,
        .times = ((const int32_t *)call->inputs[at + 2].data)[n],
        .states = 2 * labels + 1,
        .blank = attrs->blank,
    };

    s.valid = s.times >= 0 && s.times <= s.log_probs->shape.dim[0] && labels >= 0 &&
              labels <= most_labels;
    for (int64_t i = 0; i < labels && s.valid; i++)
        s.valid = s.labels[i] >= 0 && s.labels[i] < s.log_probs->shape.dim[2];
    return s;
}

static int64_t label(const Sequence *s, int64_t state)
{
    return state % 2 == 0 ? s->blank : s->labels[state / 2];
}

static int64_t place(const Sequence *s, int64_t t, int64_t k)
{
    return (t * s->log_probs->shape.dim[1] + s->n) * s->log_probs->shape.dim[2] + k;
}

static double log_prob(const Sequence *s, int64_t t, int64_t state)
{
    return kiln_ref_get(s->log_probs, place(s, t, label(s, state)));
}

static double log_add(double a, double b)
{
    const double top = fmax(a, b);

    return top == -INFINITY ? top : top + log(exp(a - top) + exp(b - top));
}

/* Consecutive labels that differ need no blank between them. */
static bool may_skip(const Sequence *s, int64_t from, int64_t to)
{
    return to - from == 2 && to % 2 == 1 && label(s, to) != label(s, from);
}

/* alpha[t][s]: log-probability of all paths to state s by time t. */
static void forward(const Sequence *s, double *alpha)
{
    for (int64_t t = 0; t < s->times; t++)
        for (int64_t to = 0; to < s->states; to++) {
            const double *before = alpha + (t - 1) * s->states;
            double sum = -INFINITY;

            if (t == 0)
                sum = to < 2 ? 0.0 : -INFINITY;
            for (int64_t from = to - 2; from <= to && t > 0; from++)
                if (from >= 0 && (to - from < 2 || may_skip(s, from, to)))
                    sum = log_add(sum, before[from]);
            alpha[t * s->states + to] = sum + log_prob(s, t, to);
        }
}

/* beta[t][s]: the same of all paths from state s at time t to the end. */
static void backward(const Sequence *s, double *beta)
{
    for (int64_t t = s->times - 1; t >= 0; t--)
        for (int64_t from = 0; from < s->states; from++) {
            const double *after = beta + (t + 1) * s->states;
            double sum = -INFINITY;

            if (t == s->times - 1)
                sum = from >= s->states - 2 ? 0.0 : -INFINITY;
            for (int64_t to = from; to <= from + 2 && t < s->times - 1; to++)
                if (to < s->states && (to - from < 2 || may_skip(s, from, to)))
                    sum = log_add(sum, after[to] + log_prob(s, t + 1, to));
            beta[t * s->states + from] = sum;
        }
}

static double loss_of(const Sequence *s, const double *alpha)
{
    if (!s->valid)
        return NAN;
    if (s->times == 0)
        return s->states == 1 ? 0.0 : INFINITY;

    const double *last = alpha + (s->times - 1) * s->states;

    return -(s->states > 1 ? log_add(last[s->states - 1], last[s->states - 2]) : last[0]);
}

/* The factor of a sequence's loss in the reduction. */
static double share(const KilnCtcAttrs *attrs, const Sequence *s)
{
    const double labels = fmax((double)(s->states / 2), 1.0);

    return attrs->reduction == KILN_REDUCTION_MEAN
               ? 1.0 / labels / (double)s->log_probs->shape.dim[1]
               : 1.0;
}

static KilnStatus ctc_prepare(KilnCall *call, KilnError *err)
{
    const int at = call->op == &kiln_op_ctc ? 0 : 1;
    const int64_t times = call->inputs[at].shape.dim[0];

    (void)err;
    call->workspace_size = (size_t)(2 * times * (2 * call->inputs[at + 1].shape.dim[1] + 1)) *
                           sizeof(double);
    return KILN_OK;
}

static void ctc_run(KilnCall *call)
{
    const KilnCtcAttrs *attrs = call->attrs;
    double total = 0.0;

    for (int64_t n = 0; n < call->inputs[0].shape.dim[1]; n++) {
        const Sequence s = sequence_of(call, 0, n);

        if (s.valid)
            forward(&s, call->workspace);

        double loss = loss_of(&s, call->workspace);

        if (attrs->zero_infinity != 0 && isinf(loss))
            loss = 0.0;
        total += loss * share(attrs, &s);
        if (attrs->reduction == KILN_REDUCTION_NONE)
            kiln_ref_set(&call->outputs[0], n, loss);
    }
    if (attrs->reduction != KILN_REDUCTION_NONE)
        kiln_ref_set(&call->outputs[0], 0, total);
}

/* d loss / d log_probs[t][k]: minus the probability of being in a state of label k. */
static void sequence_grad(KilnCall *call, const Sequence *s, double dloss)
{
    double *alpha = call->workspace, *beta = alpha + s->times * s->states;
    KilnArg *dx = &call->outputs[0];

    forward(s, alpha);
    backward(s, beta);

    const double loss = loss_of(s, alpha);

    if (isinf(loss) && ((const KilnCtcAttrs *)call->attrs)->zero_infinity != 0)
        return;
    for (int64_t t = 0; t < s->times; t++)
        for (int64_t state = 0; state < s->states; state++) {
            const int64_t i = t * s->states + state, to = place(s, t, label(s, state));

            kiln_ref_set(dx, to, kiln_ref_get(dx, to) - dloss * exp(alpha[i] + beta[i] + loss));
        }
}

static void ctc_grad_run(KilnCall *call)
{
    const KilnCtcAttrs *attrs = call->attrs;

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i, 0.0);
    for (int64_t n = 0; n < call->inputs[1].shape.dim[1]; n++) {
        const Sequence s = sequence_of(call, 1, n);
        const int64_t which = attrs->reduction == KILN_REDUCTION_NONE ? n : 0;

        if (s.valid)
            sequence_grad(call, &s, kiln_ref_get(&call->inputs[0], which) * share(attrs, &s));
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_ctc, .prepare = ctc_prepare, .run = ctc_run },
    { .op = &kiln_op_ctc_grad, .prepare = ctc_prepare, .run = ctc_grad_run },
};

const KilnRefTable kiln_ref_ctc = { kernels, KILN_COUNT(kernels) };
