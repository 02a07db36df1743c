/* LSTM and GRU: threads split the sequences, so they never wait for each other; the weight's
 * gradient is one product over all steps. The loops are in isa/recurrent.c. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/isa/recurrent.h"

/* Indices of an operation's inputs and outputs. */
typedef struct ArgIndices {
    int weight, h0, c0, lengths, y; /* y: an input of backward, else an output */
    bool backward;
} ArgIndices;

static const ArgIndices lstm_indices = { .weight = 1, .h0 = 2, .c0 = 3, .lengths = 4, .y = 1 };
static const ArgIndices lstm_grad_indices = { 4, 5, 6, 7, 8, true };
static const ArgIndices gru_indices = { .weight = 1, .h0 = 2, .c0 = -1, .lengths = 3, .y = 1 };
static const ArgIndices gru_grad_indices = { 3, 4, -1, 5, 6, true };

static const float *optional(const KilnCall *call, int i)
{
    return i < 0 || call->inputs[i].absent ? NULL : call->inputs[i].data;
}

/* ---- The workspace ------------------------------------------------------------------ */

/* Sizes of its parts in floats, in order. */
typedef struct Parts {
    int64_t panels, scratch, share, states;
} Parts;

static int64_t align(int64_t n)
{
    return (n + 15) / 16 * 16;
}

static Parts parts_of(const KilnCall *call, const ArgIndices *indices)
{
    const KilnShape *weight = &call->inputs[indices->weight].shape;
    const int64_t gates = weight->dim[0], hidden = weight->dim[1];
    const KilnArg *h = &call->outputs[2]; /* the state, or its gradient */
    const int64_t batch = h->shape.dim[0];
    const bool gru = gates == 3 * hidden;

    return (Parts) {
        .panels =
            align(kiln_cpu(call)->loops->recurrent->packed(gates, hidden, !indices->backward)),
        .scratch = align(batch * kiln_recurrent_scratch(hidden)),
        .share = gru && indices->backward ? align(kiln_cpu_count(&call->inputs[0])) : 0,
        .states = indices->backward ? align(kiln_cpu_count(&call->inputs[indices->y])) : 0,
    };
}

static KilnStatus prepare(KilnCall *call, const ArgIndices *indices)
{
    const Parts parts = parts_of(call, indices);

    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(parts.panels + parts.scratch + parts.share + parts.states) *
                           sizeof(float);
    return KILN_OK;
}

static KilnRecurrentLoop loop_of(const KilnCall *call, const ArgIndices *indices)
{
    const KilnRecurrentAttrs *attrs = call->attrs;
    const KilnShape *y = indices->backward ? &call->inputs[indices->y].shape
                                           : &call->outputs[indices->y].shape;
    const bool first = attrs->batch_first != 0;

    return (KilnRecurrentLoop) {
        .steps = y->dim[first ? 1 : 0],
        .batch = y->dim[first ? 0 : 1],
        .hidden = y->dim[2],
        .step = first ? 1 : y->dim[1],
        .row = first ? y->dim[1] : 1,
        .reverse = attrs->reverse != 0,
        .lengths = call->inputs[indices->lengths].absent ? NULL
                                                         : call->inputs[indices->lengths].data,
        .weight = call->workspace,
        .h0 = optional(call, indices->h0),
        .c0 = optional(call, indices->c0),
    };
}

/* ---- Splitting sequences -------------------------------------------------------- */

typedef struct Work {
    const KilnRecurrentLoop *loop;
    KilnRecurrentRange range;
    float *scratch;
} Work;

static void work_part(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;

    work->range(work->loop, work->scratch + begin * kiln_recurrent_scratch(work->loop->hidden),
                begin, end);
}

static void run_range(KilnCall *call, const ArgIndices *indices, const KilnRecurrentLoop *loop,
                      KilnRecurrentRange range)
{
    const KilnArg *weight = &call->inputs[indices->weight];
    float *workspace = call->workspace;
    const Work work = { loop, range, workspace + parts_of(call, indices).panels };

    kiln_cpu(call)->loops->recurrent->pack(workspace, weight->data, weight->shape.dim[0],
                                           weight->shape.dim[1], !indices->backward);
    kiln_parallel(call->backend->threads, loop->batch, 1, 1, work_part, (void *)&work);
}

/* ---- The weight's gradient: the sum over all steps of shareᵀ · previous state */

typedef struct States {
    const KilnRecurrentLoop *loop;
    float *states; /* laid out as y */
} States;

/* The state before step t of sequence b: that of the neighbouring step, or h0. NULL: zeros, also
 * after the end of a sequence, where the share is 0. */
static const float *state_before(const KilnRecurrentLoop *loop, int64_t t, int64_t b)
{
    const int64_t whole = loop->steps;
    const int64_t steps = loop->lengths != NULL && loop->lengths[b] < whole ? loop->lengths[b]
                                                                            : whole;
    const int64_t last = loop->reverse ? t + 1 : t - 1;

    if (t >= steps)
        return NULL;
    if (last >= 0 && last < steps)
        return loop->y_in + (last * loop->step + b * loop->row) * loop->hidden;
    return loop->h0 != NULL ? loop->h0 + b * loop->hidden : NULL;
}

static void states_part(void *context, int64_t begin, int64_t end)
{
    const States *all = context;
    const KilnRecurrentLoop *loop = all->loop;
    const size_t bytes = (size_t)loop->hidden * sizeof(float);

    for (int64_t b = begin; b < end; b++)
        for (int64_t t = 0; t < loop->steps; t++) {
            float *state = all->states + (t * loop->step + b * loop->row) * loop->hidden;
            const float *before = state_before(loop, t, b);

            if (before != NULL)
                memcpy(state, before, bytes);
            else
                memset(state, 0, bytes);
        }
}

/* Copies the states to match the gradients' layout, so that it is one product: one per sequence
 * would pass over the whole result each time. */
static void weight_gradient(const KilnCall *call, const KilnRecurrentLoop *loop, const float *share,
                            float *states, float *dweight)
{
    const int64_t gates = kiln_cpu_columns(&call->inputs[0]);
    const KilnGemm gemm = {
        .m = gates,
        .n = loop->hidden,
        .k = loop->steps * loop->batch,
        .lda = gates,
        .ldb = loop->hidden,
        .ldc = loop->hidden,
        .transpose_a = true,
        .alpha = 1.0f,
    };
    States all = { loop, states };

    kiln_parallel(call->backend->threads, loop->batch, 1, 1, states_part, &all);
    kiln_gemm(call, &gemm, share, states, dweight);
}

/* ---- Sum over all rows, with columns split between the threads ------------------ */

typedef struct BiasSum {
    const KilnLoops *loops;
    const float *share;
    float *out;
    int64_t rows, columns;
} BiasSum;

static void bias_part(void *context, int64_t begin, int64_t end)
{
    const BiasSum *sum = context;

    sum->loops->sum_rows(sum->out + begin, sum->share + begin, sum->rows, end - begin,
                         sum->columns);
}

/* ---- LSTM ---------------------------------------------------------------------------------- */

static KilnStatus lstm_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &lstm_indices);
}

/* Computes the gates in place of the inputs' contribution. */
static void start_gates(KilnCall *call)
{
    if (call->outputs[0].data != call->inputs[0].data)
        memcpy(call->outputs[0].data, call->inputs[0].data, call->outputs[0].bytes);
}

static void lstm_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &lstm_indices);

    start_gates(call);
    loop.gates = call->outputs[0].data;
    loop.y = call->outputs[1].data;
    loop.h = call->outputs[2].data;
    loop.c = call->outputs[3].data;
    loop.kept = call->outputs[4].data;
    run_range(call, &lstm_indices, &loop, kiln_cpu(call)->loops->recurrent->lstm);
}

static KilnStatus lstm_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &lstm_grad_indices);
}

static void lstm_grad_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &lstm_grad_indices);
    const Parts parts = parts_of(call, &lstm_grad_indices);
    float *workspace = call->workspace;

    loop.gates_in = call->inputs[0].data;
    loop.dy = optional(call, 1);
    loop.dh = optional(call, 2);
    loop.dc = optional(call, 3);
    loop.y_in = call->inputs[8].data;
    loop.kept_in = call->inputs[9].data;
    loop.dp = call->outputs[0].data;
    loop.dh0 = call->outputs[2].data;
    loop.dc0 = call->outputs[3].data;
    run_range(call, &lstm_grad_indices, &loop, kiln_cpu(call)->loops->recurrent->lstm_grad);
    weight_gradient(call, &loop, loop.dp, workspace + parts.panels + parts.scratch,
                    call->outputs[1].data);
}

/* ---- GRU ----------------------------------------------------------------------------------- */

static KilnStatus gru_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &gru_indices);
}

static void gru_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &gru_indices);

    start_gates(call);
    loop.bias = optional(call, 4);
    loop.gates = call->outputs[0].data;
    loop.y = call->outputs[1].data;
    loop.h = call->outputs[2].data;
    loop.kept = call->outputs[3].data;
    run_range(call, &gru_indices, &loop, kiln_cpu(call)->loops->recurrent->gru);
}

static KilnStatus gru_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &gru_grad_indices);
}

static void gru_grad_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &gru_grad_indices);
    const Parts parts = parts_of(call, &gru_grad_indices);
    float *workspace = call->workspace;
    float *after = workspace + parts.panels + parts.scratch;

    loop.gates_in = call->inputs[0].data;
    loop.dy = optional(call, 1);
    loop.dh = optional(call, 2);
    loop.y_in = call->inputs[6].data;
    loop.kept_in = call->inputs[7].data;
    loop.dp = call->outputs[0].data;
    loop.dh0 = call->outputs[2].data;
    loop.share = after;
    run_range(call, &gru_grad_indices, &loop, kiln_cpu(call)->loops->recurrent->gru_grad);
    weight_gradient(call, &loop, loop.share, after + parts.share, call->outputs[1].data);

    BiasSum sum = { kiln_cpu(call)->loops, loop.share, call->outputs[3].data,
                    loop.steps * loop.batch, kiln_cpu_columns(&call->inputs[0]) };

    kiln_parallel(call->backend->threads, sum.columns, 64, 16, bias_part, &sum);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_lstm, .prepare = lstm_prepare, .run = lstm_run, .in_place = 1 },
    { .op = &kiln_op_lstm_grad, .prepare = lstm_grad_prepare, .run = lstm_grad_run, .in_place = 1 },
    { .op = &kiln_op_gru, .prepare = gru_prepare, .run = gru_run, .in_place = 1 },
    { .op = &kiln_op_gru_grad, .prepare = gru_grad_prepare, .run = gru_grad_run, .in_place = 1 },
};

const KilnCpuTable kiln_cpu_recurrent = { kernels, KILN_COUNT(kernels) };
