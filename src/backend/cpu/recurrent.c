/* LSTM and GRU: sequences are shared between the threads, which then need not wait
 * for each other; the weight's gradient is one product over all steps. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/isa/recurrent.h"

/* What an operation's inputs and outputs are called. */
typedef struct Places {
    int weight, h0, c0, lengths, y; /* y: of the inputs, backward; else of the outputs */
    bool backward;
} Places;

static const Places lstm_places = { .weight = 1, .h0 = 2, .c0 = 3, .lengths = 4, .y = 1 };
static const Places lstm_grad_places = { 4, 5, 6, 7, 8, true };
static const Places gru_places = { .weight = 1, .h0 = 2, .c0 = -1, .lengths = 3, .y = 1 };
static const Places gru_grad_places = { 3, 4, -1, 5, 6, true };

static const float *optional(const KilnCall *call, int i)
{
    return i < 0 || call->inputs[i].absent ? NULL : call->inputs[i].data;
}

/* ---- The workspace ------------------------------------------------------------------ */

/* Floats of its parts, in order. */
typedef struct Parts {
    int64_t panels, scratch, share, first;
} Parts;

static int64_t align(int64_t n)
{
    return (n + 15) / 16 * 16;
}

static Parts parts_of(const KilnCall *call, const Places *places)
{
    const KilnShape *weight = &call->inputs[places->weight].shape;
    const int64_t gates = weight->dim[0], hidden = weight->dim[1];
    const KilnArg *h = &call->outputs[2]; /* the state, or its gradient */
    const int64_t batch = h->shape.dim[0];
    const bool gru = gates == 3 * hidden;

    return (Parts) {
        .panels = align(kiln_cpu(call)->loops->recurrent->packed(gates, hidden, !places->backward)),
        .scratch = align(batch * kiln_recurrent_scratch(hidden)),
        .share = gru && places->backward ? align(kiln_cpu_count(&call->inputs[0])) : 0,
        .first = places->backward ? align(batch * gates) : 0,
    };
}

static KilnStatus prepare(KilnCall *call, const Places *places)
{
    const Parts parts = parts_of(call, places);

    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(parts.panels + parts.scratch + parts.share + parts.first) *
                           sizeof(float);
    return KILN_OK;
}

static KilnRecurrentLoop loop_of(const KilnCall *call, const Places *places)
{
    const KilnRecurrentAttrs *attrs = call->attrs;
    const KilnShape *y = places->backward ? &call->inputs[places->y].shape
                                          : &call->outputs[places->y].shape;
    const bool first = attrs->batch_first != 0;

    return (KilnRecurrentLoop) {
        .steps = y->dim[first ? 1 : 0],
        .batch = y->dim[first ? 0 : 1],
        .hidden = y->dim[2],
        .step = first ? 1 : y->dim[1],
        .row = first ? y->dim[1] : 1,
        .reverse = attrs->reverse != 0,
        .lengths = call->inputs[places->lengths].absent ? NULL : call->inputs[places->lengths].data,
        .weight = call->workspace,
        .h0 = optional(call, places->h0),
        .c0 = optional(call, places->c0),
    };
}

/* ---- Sharing sequences -------------------------------------------------------------- */

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

static void run_range(KilnCall *call, const Places *places, const KilnRecurrentLoop *loop,
                      KilnRecurrentRange range)
{
    const KilnArg *weight = &call->inputs[places->weight];
    float *workspace = call->workspace;
    const Work work = { loop, range, workspace + parts_of(call, places).panels };

    kiln_cpu(call)->loops->recurrent->pack(workspace, weight->data, weight->shape.dim[0],
                                           weight->shape.dim[1], !places->backward);
    kiln_parallel(call->backend->threads, loop->batch, 1, 1, work_part, (void *)&work);
}

/* ---- The weight's gradient: the sum over all steps of shareᵀ · the state before --------- */

/* The gradient of each sequence's first step, which starts from h0. */
static void gather_first(const KilnRecurrentLoop *loop, const float *share, int64_t gates,
                         float *first)
{
    for (int64_t b = 0; b < loop->batch; b++) {
        int64_t length = loop->lengths != NULL ? loop->lengths[b] : loop->steps;

        length = length > loop->steps ? loop->steps : length;
        const int64_t t = loop->reverse ? length - 1 : 0;

        if (length > 0)
            memcpy(first + b * gates, share + (t * loop->step + b * loop->row) * gates,
                   (size_t)gates * sizeof(float));
        else
            memset(first + b * gates, 0, (size_t)gates * sizeof(float));
    }
}

/* Rows of `share` from step 1 on meet those of y one step earlier; in reverse the
 * other way round. After the end of a sequence both are 0. With the batch first that
 * is a product for each sequence. */
static void weight_gradient(const KilnCall *call, const KilnRecurrentLoop *loop, const float *share,
                            float *first, float *dweight)
{
    const int64_t hidden = loop->hidden;
    const int64_t gates = kiln_cpu_columns(&call->inputs[0]);
    const bool together = loop->row == 1;
    const int64_t products = together ? 1 : loop->batch;
    const int64_t shift = loop->step;
    KilnGemm gemm = {
        .m = gates,
        .n = hidden,
        .k = together ? (loop->steps - 1) * loop->batch : loop->steps - 1,
        .lda = gates,
        .ldb = hidden,
        .ldc = hidden,
        .transpose_a = true,
        .alpha = 1.0f,
    };

    for (int64_t i = 0; i < products && gemm.k > 0; i++) {
        const int64_t start = i * loop->row;
        const float *a = share + (start + (loop->reverse ? 0 : shift)) * gates;
        const float *b = loop->y_in + (start + (loop->reverse ? shift : 0)) * hidden;

        kiln_gemm(call, &gemm, a, b, dweight);
        gemm.beta = 1.0f;
    }
    if (loop->h0 != NULL) {
        gather_first(loop, share, gates, first);
        gemm.k = loop->batch;
        kiln_gemm(call, &gemm, first, loop->h0, dweight);
    } else if (loop->steps == 1) {
        memset(dweight, 0, (size_t)(gates * hidden) * sizeof(float));
    }
}

/* ---- Sum over all rows, columns shared between the threads ------------------------------- */

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
    return prepare(call, &lstm_places);
}

/* The gates are made in place of the input's share of them. */
static void start_gates(KilnCall *call)
{
    if (call->outputs[0].data != call->inputs[0].data)
        memcpy(call->outputs[0].data, call->inputs[0].data, call->outputs[0].bytes);
}

static void lstm_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &lstm_places);

    start_gates(call);
    loop.gates = call->outputs[0].data;
    loop.y = call->outputs[1].data;
    loop.h = call->outputs[2].data;
    loop.c = call->outputs[3].data;
    loop.kept = call->outputs[4].data;
    run_range(call, &lstm_places, &loop, kiln_cpu(call)->loops->recurrent->lstm);
}

static KilnStatus lstm_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &lstm_grad_places);
}

static void lstm_grad_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &lstm_grad_places);
    const Parts parts = parts_of(call, &lstm_grad_places);
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
    run_range(call, &lstm_grad_places, &loop, kiln_cpu(call)->loops->recurrent->lstm_grad);
    weight_gradient(call, &loop, loop.dp, workspace + parts.panels + parts.scratch,
                    call->outputs[1].data);
}

/* ---- GRU ----------------------------------------------------------------------------------- */

static KilnStatus gru_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &gru_places);
}

static void gru_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &gru_places);

    start_gates(call);
    loop.bias = optional(call, 4);
    loop.gates = call->outputs[0].data;
    loop.y = call->outputs[1].data;
    loop.h = call->outputs[2].data;
    loop.kept = call->outputs[3].data;
    run_range(call, &gru_places, &loop, kiln_cpu(call)->loops->recurrent->gru);
}

static KilnStatus gru_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &gru_grad_places);
}

static void gru_grad_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &gru_grad_places);
    const Parts parts = parts_of(call, &gru_grad_places);
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
    run_range(call, &gru_grad_places, &loop, kiln_cpu(call)->loops->recurrent->gru_grad);
    weight_gradient(call, &loop, loop.share, after + parts.share, call->outputs[1].data);

    BiasSum sum = { kiln_cpu(call)->loops, loop.share, call->outputs[3].data,
                    loop.steps * loop.batch, kiln_cpu_columns(&call->inputs[0]) };

    kiln_parallel(call->backend->threads, sum.columns, 64, 16, bias_part, &sum);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_lstm, .prepare = lstm_prepare, .run = lstm_run, .in_place = 1 },
    { .op = &kiln_op_lstm_grad,
      .prepare = lstm_grad_prepare,
      .run = lstm_grad_run,
      .in_place = 1 },
    { .op = &kiln_op_gru, .prepare = gru_prepare, .run = gru_run, .in_place = 1 },
    { .op = &kiln_op_gru_grad, .prepare = gru_grad_prepare, .run = gru_grad_run, .in_place = 1 },
};

const KilnCpuTable kiln_cpu_recurrent = { kernels, KILN_COUNT(kernels) };
