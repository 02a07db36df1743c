/* Connectionist temporal classification: the forward-backward algorithm in logarithms (Graves et
 * al. 2006), in double, since the terms span hundreds of orders of magnitude. Threads split the
 * sequences. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* One sequence. State s is the blank if even, else label (s - 1) / 2. */
typedef struct Sequence {
    const KilnLossLoops *loops;
    const float *log_probs; /* at t = 0 of this sequence */
    int64_t stride;         /* from one t to the next */
    const int32_t *labels;
    int64_t times, states, blank;
    bool valid; /* lengths and labels are in range */
} Sequence;

/* Parts of the workspace. A row has room for a whole number of vectors, after a vector of -inf: the
 * predecessors of state 0. */
enum { VECTOR = KILN_CTC_VECTOR };

typedef struct Scratch {
    int64_t width; /* of a row */
    int32_t *label;
    double *skip, *emit, *row[2];
    double *alpha; /* rows of all times; for the gradient only */
} Scratch;

/* log_probs, targets and both lengths are the inputs from this one on. */
static int first_input(const KilnCall *call)
{
    return call->op == &kiln_op_ctc ? 0 : 1;
}

static int64_t row_width(const KilnCall *call)
{
    const int64_t states = 2 * call->inputs[first_input(call) + 1].shape.dim[1] + 1;

    return (states + VECTOR - 1) / VECTOR * VECTOR;
}

/* Doubles per thread. */
static int64_t scratch_size(const KilnCall *call)
{
    const int64_t width = row_width(call), times = call->inputs[first_input(call)].shape.dim[0];
    const int64_t rows = 2 + (call->op == &kiln_op_ctc ? 0 : times);

    return 3 * width + rows * (VECTOR + width);
}

/* Doubles for the losses of all sequences: whole vectors. */
static int64_t loss_room(const KilnCall *call)
{
    const int64_t batch = call->inputs[first_input(call)].shape.dim[1];

    return (batch + VECTOR - 1) / VECTOR * VECTOR;
}

static KilnStatus ctc_prepare(KilnCall *call, KilnError *err)
{
    const int64_t batch = call->inputs[first_input(call)].shape.dim[1];
    const int64_t threads = call->backend->threads < batch ? call->backend->threads : batch;

    (void)err;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(threads * scratch_size(call) + loss_room(call)) *
                           sizeof(double);
    return KILN_OK;
}

static void close_front(double *row)
{
    for (int i = 1; i <= VECTOR; i++)
        row[-i] = -INFINITY;
}

/* The scratch of part `part`; the losses of all sequences come first. */
static Scratch scratch_of(const KilnCall *call, int64_t part)
{
    const int64_t width = row_width(call);
    double *at = (double *)call->workspace + loss_room(call) + part * scratch_size(call);
    Scratch scratch = { .width = width,
                        .label = (int32_t *)(void *)at,
                        .skip = at + width,
                        .emit = at + 2 * width,
                        .row = { at + 3 * width + VECTOR, at + 4 * width + 2 * VECTOR },
                        .alpha = at + 5 * width + 3 * VECTOR };

    close_front(scratch.row[0]);
    close_front(scratch.row[1]);
    return scratch;
}

static double *alpha_row(const Scratch *scratch, int64_t t)
{
    return scratch->alpha + t * (VECTOR + scratch->width);
}

static Sequence sequence_of(const KilnCall *call, int64_t n)
{
    const KilnCtcAttrs *attrs = call->attrs;
    const int at = first_input(call);
    const int64_t *x = call->inputs[at].shape.dim, most_labels = call->inputs[at + 1].shape.dim[1];
    const int64_t labels = ((const int32_t *)call->inputs[at + 3].data)[n];
    Sequence s = {
        .loops = kiln_cpu(call)->loops->losses,
        .log_probs = (const float *)call->inputs[at].data + n * x[2],
        .stride = x[1] * x[2],
        .labels = (const int32_t *)call->inputs[at + 1].data + n * most_labels,
        .times = ((const int32_t *)call->inputs[at + 2].data)[n],
        .states = 2 * labels + 1,
        .blank = attrs->blank,
    };

    s.valid = s.times >= 0 && s.times <= x[0] && labels >= 0 && labels <= most_labels;
    for (int64_t i = 0; i < labels && s.valid; i++)
        s.valid = s.labels[i] >= 0 && s.labels[i] < x[2];
    return s;
}

static int64_t label(const Sequence *s, int64_t state)
{
    return state % 2 == 0 ? s->blank : s->labels[state / 2];
}

/* Labels of the states, and skip[s]: 0 if state s is reachable from s - 2, as its label differs.
 * `reverse` counts from the last state. */
static void find_states(const Sequence *s, const Scratch *scratch, bool reverse)
{
    int32_t *labels = scratch->label;

    for (int64_t i = 0; i < s->states; i++)
        labels[i] = (int32_t)label(s, reverse ? s->states - 1 - i : i);
    for (int64_t i = 0; i < scratch->width; i++) {
        const bool can = i >= 2 && i < s->states && i % 2 == 1 && labels[i] != labels[i - 2];

        scratch->skip[i] = can ? 0.0 : -INFINITY;
        scratch->emit[i] = 0.0;
    }
}

/* emit[s]: the log-probability of state s's label at time t. */
static void read_emissions(const Sequence *s, const Scratch *scratch, int64_t t)
{
    const float *x = s->log_probs + t * s->stride;

    for (int64_t i = 0; i < s->states; i++)
        scratch->emit[i] = (double)x[scratch->label[i]];
}

/* Before the first step, at either end, two states are open. */
static void open_row(const Scratch *scratch, double *row)
{
    for (int64_t i = 0; i < scratch->width; i++)
        row[i] = i < 2 ? 0.0 : -INFINITY;
}

static void add_emissions(const Scratch *scratch, double *row)
{
    for (int64_t i = 0; i < scratch->width; i++)
        row[i] += scratch->emit[i];
}

/* Log-probability of all paths to each state by the last time; alpha, if not NULL, gets that of
 * each time. */
static const double *forward(const Sequence *s, const Scratch *scratch, bool keep)
{
    const double *row = NULL;

    find_states(s, scratch, false);
    for (int64_t t = 0; t < s->times; t++) {
        double *next = keep ? alpha_row(scratch, t) : scratch->row[t % 2];

        read_emissions(s, scratch, t);
        if (t == 0)
            open_row(scratch, next);
        else
            s->loops->ctc(next, row, scratch->skip, scratch->width);
        add_emissions(scratch, next);
        if (keep)
            close_front(next);
        row = next;
    }
    return row;
}

static double loss_of(const Sequence *s, const double *last)
{
    if (!s->valid)
        return NAN;
    if (s->times == 0)
        return s->states == 1 ? 0.0 : INFINITY;
    if (s->states == 1)
        return -last[0];

    const double a = last[s->states - 1], b = last[s->states - 2], top = a > b ? a : b;

    return top == -INFINITY ? INFINITY : -(top + log(exp(a - top) + exp(b - top)));
}

/* The factor of a sequence's loss in the reduction. */
static double share(const KilnCall *call, const Sequence *s)
{
    const KilnCtcAttrs *attrs = call->attrs;
    const double labels = s->states > 3 ? (double)(s->states / 2) : 1.0;

    return attrs->reduction == KILN_REDUCTION_MEAN
               ? 1.0 / labels / (double)call->inputs[first_input(call)].shape.dim[1]
               : 1.0;
}

/* Threads take whole parts, since each part has its own scratch. */
static void each_sequence(KilnCall *call, KilnRange part)
{
    const int64_t batch = call->inputs[first_input(call)].shape.dim[1];
    const int64_t parts = call->backend->threads < batch ? call->backend->threads : batch;

    kiln_parallel(call->backend->threads, parts, 1, 1, part, call);
}

static void ctc_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnCtcAttrs *attrs = call->attrs;
    const int64_t batch = call->inputs[0].shape.dim[1];
    const int64_t parts = call->backend->threads < batch ? call->backend->threads : batch;
    double *losses = call->workspace;

    for (int64_t part = begin; part < end; part++) {
        const Scratch scratch = scratch_of(call, part);

        for (int64_t n = part; n < batch; n += parts) {
            const Sequence s = sequence_of(call, n);
            const double *last = s.valid ? forward(&s, &scratch, false) : NULL;

            losses[n] = loss_of(&s, last);
            if (attrs->zero_infinity != 0 && isinf(losses[n]))
                losses[n] = 0.0;
            losses[n] *= share(call, &s);
        }
    }
}

static void ctc_run(KilnCall *call)
{
    const KilnCtcAttrs *attrs = call->attrs;
    const int64_t batch = call->inputs[0].shape.dim[1];
    const double *losses = call->workspace;
    float *loss = call->outputs[0].data;
    double total = 0.0;

    each_sequence(call, ctc_part);
    for (int64_t n = 0; n < batch; n++) {
        total += losses[n];
        if (attrs->reduction == KILN_REDUCTION_NONE)
            loss[n] = (float)losses[n];
    }
    if (attrs->reduction != KILN_REDUCTION_NONE)
        *loss = (float)total;
}

/* ---- Gradient ------------------------------------------------------------------------ */

/* Adds minus the probability of each state at time t to its label. `beta` and the labels count from
 * the last state. */
static void add_states(const Sequence *s, const Scratch *scratch, int64_t t, const double *beta,
                       double loss, double dloss, float *dx)
{
    double *share_of = scratch->emit; /* no longer needed */

    s->loops->ctc_states(share_of, alpha_row(scratch, t), beta + s->states - 1, loss,
                         scratch->width);
    for (int64_t i = 0; i < s->states; i++)
        dx[scratch->label[s->states - 1 - i]] -= (float)(dloss * share_of[i]);
}

/* Backward in time over states counted from the end is the same recursion; the emission of t + 1 is
 * added before its step. */
static void sequence_grad(const Sequence *s, const Scratch *scratch, float *dx, bool zero_infinity,
                          double dloss)
{
    const double loss = loss_of(s, forward(s, scratch, true));

    if (isinf(loss) && zero_infinity)
        return;
    find_states(s, scratch, true);
    for (int64_t t = s->times - 1; t >= 0; t--) {
        double *beta = scratch->row[t % 2], *after = scratch->row[(t + 1) % 2];

        if (t == s->times - 1) {
            open_row(scratch, beta);
        } else {
            read_emissions(s, scratch, t + 1);
            add_emissions(scratch, after);
            s->loops->ctc(beta, after, scratch->skip, scratch->width);
        }
        add_states(s, scratch, t, beta, loss, dloss, dx + t * s->stride);
    }
}

static void ctc_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnCtcAttrs *attrs = call->attrs;
    const int64_t *x = call->inputs[1].shape.dim;
    const int64_t parts = call->backend->threads < x[1] ? call->backend->threads : x[1];
    const float *dloss = call->inputs[0].data;

    for (int64_t part = begin; part < end; part++) {
        const Scratch scratch = scratch_of(call, part);

        for (int64_t n = part; n < x[1]; n += parts) {
            const Sequence s = sequence_of(call, n);
            float *dx = (float *)call->outputs[0].data + n * x[2];
            const float own = dloss[attrs->reduction == KILN_REDUCTION_NONE ? n : 0];

            for (int64_t t = 0; t < x[0]; t++)
                memset(dx + t * s.stride, 0, (size_t)x[2] * sizeof(*dx));
            if (s.valid)
                sequence_grad(&s, &scratch, dx, attrs->zero_infinity != 0,
                              (double)own * share(call, &s));
        }
    }
}

static void ctc_grad_run(KilnCall *call)
{
    each_sequence(call, ctc_grad_part);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_ctc, .prepare = ctc_prepare, .run = ctc_run },
    { .op = &kiln_op_ctc_grad, .prepare = ctc_prepare, .run = ctc_grad_run },
};

const KilnCpuTable kiln_cpu_ctc = { kernels, KILN_COUNT(kernels) };
