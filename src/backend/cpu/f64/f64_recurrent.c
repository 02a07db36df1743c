/* LSTM and GRU of f64: a product by OpenBLAS for each step, then cells in plain C, with the
 * sequences split between the threads. Gradients are in f64_recurrent_grad.c. */
#include <math.h>
#include <string.h>

#include "backend/cpu/f64/f64_recurrent.h"

KilnF64Recurrent kiln_f64_recurrent(const KilnCall *call, const KilnArg *y, const KilnArg *weight,
                                    const KilnArg *lengths)
{
    const KilnRecurrentAttrs *attrs = call->attrs;
    const bool first = attrs->batch_first != 0;

    return (KilnF64Recurrent) {
        .call = call,
        .gates = weight->shape.dim[0] / weight->shape.dim[1],
        .hidden = weight->shape.dim[1],
        .steps = y->shape.dim[first ? 1 : 0],
        .batch = y->shape.dim[first ? 0 : 1],
        .step = first ? 1 : y->shape.dim[1],
        .row = first ? y->shape.dim[1] : 1,
        .reverse = attrs->reverse != 0,
        .lengths = lengths->absent ? NULL : lengths->data,
        .weight = weight->data,
    };
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* What a step's loop over sequences needs. */
typedef struct Step {
    const KilnF64Recurrent *r;
    int64_t t;
} Step;

static void lstm_cell(const KilnCall *call, const KilnF64Recurrent *r, int64_t row, int64_t b,
                      const double *share)
{
    const int64_t n = r->hidden;
    const double *p = (const double *)call->inputs[0].data + row * 4 * n;
    double *gates = (double *)call->outputs[0].data + row * 4 * n;
    double *y = (double *)call->outputs[1].data + row * n;
    double *h = (double *)call->outputs[2].data + b * n;
    double *c = (double *)call->outputs[3].data + b * n;
    double *cells = (double *)call->outputs[4].data + row * n;

    for (int64_t j = 0; j < n; j++) {
        const double in = sigmoid(p[j] + share[j]), forget = sigmoid(p[n + j] + share[n + j]);
        const double candidate = tanh(p[2 * n + j] + share[2 * n + j]);
        const double out = sigmoid(p[3 * n + j] + share[3 * n + j]);

        gates[j] = in;
        gates[n + j] = forget;
        gates[2 * n + j] = candidate;
        gates[3 * n + j] = out;
        c[j] = cells[j] = forget * c[j] + in * candidate;
        h[j] = y[j] = out * tanh(c[j]);
    }
}

static void gru_cell(const KilnCall *call, const KilnF64Recurrent *r, int64_t row, int64_t b,
                     const double *share)
{
    const int64_t n = r->hidden;
    const double *p = (const double *)call->inputs[0].data + row * 3 * n;
    const double *bias = call->inputs[4].absent ? NULL : call->inputs[4].data;
    double *gates = (double *)call->outputs[0].data + row * 3 * n;
    double *y = (double *)call->outputs[1].data + row * n;
    double *h = (double *)call->outputs[2].data + b * n;
    double *kept = (double *)call->outputs[3].data + row * n;

    for (int64_t j = 0; j < n; j++) {
        const double more[3] = { bias != NULL ? bias[j] : 0.0, bias != NULL ? bias[n + j] : 0.0,
                                 bias != NULL ? bias[2 * n + j] : 0.0 };
        const double reset = sigmoid(p[j] + more[0] + share[j]);
        const double update = sigmoid(p[n + j] + more[1] + share[n + j]);
        const double candidate = tanh(p[2 * n + j] + reset * (more[2] + share[2 * n + j]));

        gates[j] = reset;
        gates[n + j] = update;
        gates[2 * n + j] = candidate;
        kept[j] = more[2] + share[2 * n + j];
        h[j] = y[j] = (1.0 - update) * candidate + update * h[j];
    }
}

static void cells_part(void *context, int64_t begin, int64_t end)
{
    const Step *step = context;
    const KilnF64Recurrent *r = step->r;
    const KilnCall *call = r->call;
    const KilnArg *kept = &call->outputs[r->gates == 4 ? 4 : 3];
    const int64_t n = r->hidden, gates = r->gates * n;

    for (int64_t b = begin; b < end; b++) {
        const int64_t row = kiln_f64_row(r, step->t, b);

        if (kiln_f64_active(r, step->t, b)) {
            (r->gates == 4 ? lstm_cell : gru_cell)(call, r, row, b,
                                                   (const double *)call->workspace + b * gates);
            continue;
        }
        memset((double *)call->outputs[0].data + row * gates, 0, (size_t)gates * sizeof(double));
        memset((double *)call->outputs[1].data + row * n, 0, (size_t)n * sizeof(double));
        memset((double *)kept->data + row * n, 0, (size_t)n * sizeof(double));
    }
}

/* A state's place in the outputs holds the state so far. */
static void start_state(KilnArg *state, const KilnArg *initial)
{
    if (initial->absent)
        memset(state->data, 0, state->bytes);
    else
        memcpy(state->data, initial->data, state->bytes);
}

static void forward(KilnCall *call, const KilnArg *lengths)
{
    const KilnF64Recurrent r = kiln_f64_recurrent(call, &call->outputs[1], &call->inputs[1],
                                                  lengths);
    const KilnGemm gemm = { .m = r.batch,
                            .n = r.gates * r.hidden,
                            .k = r.hidden,
                            .lda = r.hidden,
                            .ldb = r.hidden,
                            .ldc = r.gates * r.hidden,
                            .transpose_b = true,
                            .alpha = 1.0f };

    start_state(&call->outputs[2], &call->inputs[2]);
    if (r.gates == 4)
        start_state(&call->outputs[3], &call->inputs[3]);
    for (int64_t s = 0; s < r.steps; s++) {
        Step step = { &r, r.reverse ? r.steps - 1 - s : s };

        kiln_blas_gemm(call->backend->threads, &gemm, KILN_F64, call->outputs[2].data, r.weight,
                       call->workspace, NULL, NULL);
        kiln_parallel(call->backend->threads, r.batch, 1, 1, cells_part, &step);
    }
}

static void lstm_run(KilnCall *call)
{
    forward(call, &call->inputs[4]);
}

static void gru_run(KilnCall *call)
{
    forward(call, &call->inputs[3]);
}

/* The hidden states' contribution to a step's gates. */
static KilnStatus prepare(KilnCall *call, KilnError *err)
{
    const int64_t batch = call->outputs[2].shape.dim[0];

    (void)err;
    call->workspace_size = (size_t)(batch * kiln_cpu_columns(&call->inputs[0])) * sizeof(double);
    return KILN_OK;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_lstm, .prepare = prepare, .run = lstm_run },
    { .op = &kiln_op_gru, .prepare = prepare, .run = gru_run },
};

const KilnCpuTable kiln_f64_recurrent_forward = { kernels, KILN_COUNT(kernels) };
