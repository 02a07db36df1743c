/* Gradients of LSTM and GRU of f64: cells in plain C, with the sequences split between the threads,
 * and a product by OpenBLAS for each step; the weight's gradient is one product over all steps. */
#include <math.h>
#include <string.h>

#include "backend/cpu/f64/f64_recurrent.h"

/* Indices of inputs. */
typedef struct ArgIndices {
    int weight, h0, c0, lengths, y, kept, dh;
} ArgIndices;

static const ArgIndices lstm_indices = { 4, 5, 6, 7, 8, 9, 2 };
static const ArgIndices gru_indices = { 3, 4, -1, 5, 6, 7, 2 };

typedef struct Backward {
    KilnF64Recurrent r;
    const ArgIndices *indices;
    double *share;  /* gradients of the hidden state's contribution to the gates, as dp */
    double *states; /* before each step, laid out as y */
    double *made;   /* [batch, hidden]: a step's gradients · weight */
    int64_t t;      /* of the current step */
} Backward;

static const double *values(const Backward *all, int input)
{
    const KilnArg *arg = &all->r.call->inputs[input];

    return arg->absent ? NULL : arg->data;
}

/* The row of y and of the cells before step t of sequence b; NULL: zeros. */
static const double *before(const Backward *all, int sequence, int initial, int64_t t, int64_t b)
{
    const KilnF64Recurrent *r = &all->r;
    const int64_t last = r->reverse ? t + 1 : t - 1;
    const double *start = values(all, initial);

    if (last >= 0 && last < r->steps && kiln_f64_active(r, last, b))
        return values(all, sequence) + kiln_f64_row(r, last, b) * r->hidden;
    return start != NULL ? start + b * r->hidden : NULL;
}

static void lstm_cell(const Backward *all, int64_t b)
{
    const KilnF64Recurrent *r = &all->r;
    const int64_t n = r->hidden, row = kiln_f64_row(r, all->t, b);
    const double *gates = values(all, 0) + row * 4 * n, *cells = values(all, 9) + row * n;
    const double *dy = values(all, 1), *previous = before(all, 9, 6, all->t, b);
    double *dp = all->share + row * 4 * n;
    double *dh = (double *)r->call->outputs[2].data + b * n;
    double *dc = (double *)r->call->outputs[3].data + b * n;

    for (int64_t j = 0; j < n; j++) {
        const double in = gates[j], forget = gates[n + j];
        const double candidate = gates[2 * n + j], out = gates[3 * n + j];
        const double root = tanh(cells[j]);
        const double state = dh[j] + (dy != NULL ? dy[row * n + j] : 0.0);
        const double cell = dc[j] + state * out * (1.0 - root * root);

        dp[j] = cell * candidate * in * (1.0 - in);
        dp[n + j] = cell * (previous != NULL ? previous[j] : 0.0) * forget * (1.0 - forget);
        dp[2 * n + j] = cell * in * (1.0 - candidate * candidate);
        dp[3 * n + j] = state * root * out * (1.0 - out);
        dc[j] = cell * forget;
        dh[j] = 0.0;
    }
}

static void gru_cell(const Backward *all, int64_t b)
{
    const KilnF64Recurrent *r = &all->r;
    const int64_t n = r->hidden, row = kiln_f64_row(r, all->t, b);
    const double *gates = values(all, 0) + row * 3 * n, *kept = values(all, 7) + row * n;
    const double *dy = values(all, 1), *previous = before(all, 6, 4, all->t, b);
    double *dp = (double *)r->call->outputs[0].data + row * 3 * n;
    double *share = all->share + row * 3 * n;
    double *dh = (double *)r->call->outputs[2].data + b * n;

    for (int64_t j = 0; j < n; j++) {
        const double reset = gates[j], update = gates[n + j], candidate = gates[2 * n + j];
        const double last = previous != NULL ? previous[j] : 0.0;
        const double state = dh[j] + (dy != NULL ? dy[row * n + j] : 0.0);
        const double inner = state * (1.0 - update) * (1.0 - candidate * candidate);

        dp[j] = share[j] = inner * kept[j] * reset * (1.0 - reset);
        dp[n + j] = share[n + j] = state * (last - candidate) * update * (1.0 - update);
        dp[2 * n + j] = inner;
        share[2 * n + j] = inner * reset;
        dh[j] = state * update;
    }
}

/* The cells of a step, and the states before it. */
static void cells_part(void *context, int64_t begin, int64_t end)
{
    const Backward *all = context;
    const KilnF64Recurrent *r = &all->r;
    const int64_t n = r->hidden, gates = r->gates * n;

    for (int64_t b = begin; b < end; b++) {
        const int64_t row = kiln_f64_row(r, all->t, b);
        const bool active = kiln_f64_active(r, all->t, b);
        const double *state = active ? before(all, all->indices->y, all->indices->h0, all->t, b)
                                     : NULL;
        double *to = all->states + row * n;

        if (state != NULL)
            memcpy(to, state, (size_t)n * sizeof(double));
        else
            memset(to, 0, (size_t)n * sizeof(double));
        if (active) {
            (r->gates == 4 ? lstm_cell : gru_cell)(all, b);
            continue;
        }
        memset(all->share + row * gates, 0, (size_t)gates * sizeof(double));
        memset((double *)r->call->outputs[0].data + row * gates, 0, (size_t)gates * sizeof(double));
    }
}

/* The product's share of the gradients of the states, of sequences that took the step. */
static void states_part(void *context, int64_t begin, int64_t end)
{
    const Backward *all = context;
    const int64_t n = all->r.hidden;
    double *dh = all->r.call->outputs[2].data;

    for (int64_t b = begin; b < end; b++)
        for (int64_t j = b * n; kiln_f64_active(&all->r, all->t, b) && j < (b + 1) * n; j++)
            dh[j] += all->made[j];
}

static void start_gradient(KilnArg *gradient, const double *last)
{
    if (last != NULL)
        memcpy(gradient->data, last, gradient->bytes);
    else
        memset(gradient->data, 0, gradient->bytes);
}

static void run_steps(Backward *all)
{
    const KilnF64Recurrent *r = &all->r;
    const KilnCall *call = r->call;
    const int threads = call->backend->threads;
    const int64_t gates = r->gates * r->hidden;
    const KilnGemm gemm = { .m = r->batch,
                            .n = r->hidden,
                            .k = gates,
                            .lda = r->row * gates,
                            .ldb = r->hidden,
                            .ldc = r->hidden,
                            .alpha = 1.0f };

    for (int64_t s = r->steps; s-- > 0;) {
        all->t = r->reverse ? r->steps - 1 - s : s;
        kiln_parallel(threads, r->batch, 1, 1, cells_part, all);
        kiln_blas_gemm(threads, &gemm, KILN_F64, all->share + kiln_f64_row(r, all->t, 0) * gates,
                       r->weight, all->made, NULL, NULL);
        kiln_parallel(threads, r->batch, 1, 1, states_part, all);
    }
}

static void backward(KilnCall *call, const ArgIndices *indices)
{
    Backward all = { .r = kiln_f64_recurrent(call, &call->inputs[indices->y],
                                             &call->inputs[indices->weight],
                                             &call->inputs[indices->lengths]),
                     .indices = indices };
    const KilnF64Recurrent *r = &all.r;
    const int64_t gates = r->gates * r->hidden, rows = r->steps * r->batch;
    const KilnGemm gemm = { .m = gates,
                            .n = r->hidden,
                            .k = rows,
                            .lda = gates,
                            .ldb = r->hidden,
                            .ldc = r->hidden,
                            .transpose_a = true,
                            .alpha = 1.0f };

    all.states = call->workspace;
    all.made = all.states + rows * r->hidden;
    all.share = r->gates == 4 ? call->outputs[0].data : all.made + r->batch * r->hidden;
    start_gradient(&call->outputs[2], values(&all, indices->dh));
    if (r->gates == 4)
        start_gradient(&call->outputs[3], values(&all, 3));
    run_steps(&all);
    kiln_blas_gemm(call->backend->threads, &gemm, KILN_F64, all.share, all.states,
                   call->outputs[1].data, NULL, NULL);
    if (r->gates == 4)
        return;

    double *dbias = call->outputs[3].data;

    memset(dbias, 0, call->outputs[3].bytes);
    for (int64_t i = 0; i < rows * gates; i++)
        dbias[i % gates] += all.share[i];
}

static void lstm_grad_run(KilnCall *call)
{
    backward(call, &lstm_indices);
}

static void gru_grad_run(KilnCall *call)
{
    backward(call, &gru_indices);
}

static KilnStatus prepare(KilnCall *call, const ArgIndices *indices)
{
    const KilnF64Recurrent r = kiln_f64_recurrent(call, &call->inputs[indices->y],
                                                  &call->inputs[indices->weight],
                                                  &call->inputs[indices->lengths]);
    const int64_t rows = r.steps * r.batch, share = r.gates == 3 ? rows * 3 * r.hidden : 0;

    call->workspace_size = (size_t)((rows + r.batch) * r.hidden + share) * sizeof(double);
    return KILN_OK;
}

static KilnStatus lstm_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &lstm_indices);
}

static KilnStatus gru_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &gru_indices);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_lstm_grad, .prepare = lstm_grad_prepare, .run = lstm_grad_run },
    { .op = &kiln_op_gru_grad, .prepare = gru_grad_prepare, .run = gru_grad_run },
};

const KilnCpuTable kiln_f64_recurrent_backward = { kernels, KILN_COUNT(kernels) };
