/* LSTM and GRU: threads split the sequences, so that they never wait for each other; or, if there
 * are few, the units, and wait after each step. The weight's gradient is one product over all
 * steps. The loops are in isa/sequence/recurrent.c. */
#include <string.h>

#include "backend/cpu/bf16/product.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa/sequence/recurrent.h"
#include "backend/cpu/kernels/gemm.h"
#include "base/min.h"
#include "tensor/bf16.h"

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

static KilnRecurrentRows rows_of(const KilnArg *arg)
{
    return (KilnRecurrentRows) { arg->absent ? NULL : arg->data, arg->dtype == KILN_BF16 };
}

static KilnRecurrentLoop loop_of(const KilnCall *call, const ArgIndices *indices)
{
    const KilnRecurrentAttrs *attrs = call->attrs;
    const KilnArg *weight = &call->inputs[indices->weight];
    const KilnShape *y = indices->backward ? &call->inputs[indices->y].shape
                                           : &call->outputs[indices->y].shape;
    const bool first = attrs->batch_first != 0;
    /* The states of backward, or the inputs' contribution. */
    const KilnArg *decides = &call->inputs[indices->backward ? indices->y : 0];

    return (KilnRecurrentLoop) {
        .gates = weight->shape.dim[0] / weight->shape.dim[1],
        .steps = y->dim[first ? 1 : 0],
        .batch = y->dim[first ? 0 : 1],
        .hidden = y->dim[2],
        .step = first ? 1 : y->dim[1],
        .row = first ? y->dim[1] : 1,
        .reverse = attrs->reverse != 0,
        .lengths = call->inputs[indices->lengths].absent ? NULL
                                                         : call->inputs[indices->lengths].data,
        .tiles = decides->dtype == KILN_BF16 ? kiln_cpu(call)->tiles : NULL,
        .h0 = optional(call, indices->h0),
        .c0 = optional(call, indices->c0),
    };
}

/* ---- How threads split the work ------------------------------------------------------- */

typedef struct Split {
    bool units; /* else sequences */
    int64_t parts;
} Split;

/* Units are split where there are fewer sequences than threads. Waiting after each step takes about
 * a microsecond, which a step must be worth. */
static Split split_of(const KilnCall *call, const KilnRecurrentLoop *loop)
{
    enum { WORTH = 200000 }; /* multiplications of a step */
    const int64_t threads = call->backend->threads;
    const Split rows = { false, kiln_min_i64(threads, loop->batch) };
    const Split units = { true, kiln_min_i64(threads, kiln_recurrent_blocks(loop->hidden)) };
    const int64_t step = loop->batch * loop->gates * loop->hidden * loop->hidden;

    return loop->batch < threads && units.parts > rows.parts && step >= WORTH ? units : rows;
}

/* ---- The workspace ------------------------------------------------------------------ */

/* Where its parts begin, in bytes. */
typedef struct Workspace {
    size_t left[2], share, states, product, end; /* the packed weight is at 0 */
} Workspace;

static size_t align(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t size_of(const KilnRecurrentLoop *loop)
{
    return loop->tiles != NULL ? sizeof(uint16_t) : sizeof(float);
}

static int64_t packed_elements(const KilnRecurrentLoop *loop, bool backward)
{
    const int64_t units = kiln_recurrent_blocks(loop->hidden) * KILN_RECURRENT_UNITS;
    const int64_t gates = loop->gates, hidden = loop->hidden;

    if (loop->tiles == NULL)
        return gates * hidden * units;
    return backward ? kiln_tiles_packed(hidden, gates * hidden)
                    : gates * kiln_tiles_packed(hidden, hidden);
}

/* Bytes of one left factor: each part has KILN_RECURRENT_ROWS more rows, which tiles read. */
static size_t left_bytes(const KilnCall *call, const KilnRecurrentLoop *loop, bool backward)
{
    const int64_t depth = backward ? loop->gates * loop->hidden : loop->hidden;
    const int64_t rows = loop->batch + split_of(call, loop).parts * KILN_RECURRENT_ROWS;

    return align((size_t)(rows * kiln_recurrent_left(depth, loop->tiles != NULL)) * size_of(loop));
}

/* The product of bf16 that the weight's gradient is. */
static KilnBf16Product weight_product(const KilnCall *call, const KilnRecurrentLoop *loop,
                                      KilnRecurrentRows share, const void *states, float *dweight)
{
    const int64_t gates = loop->gates * loop->hidden, depth = loop->steps * loop->batch;

    return (KilnBf16Product) {
        .left = { .data = share.data,
                  .f32 = !share.bf16,
                  .across = true,
                  .stride = gates,
                  .rows = gates,
                  .depth = depth },
        .right = { .data = states,
                   .across = true,
                   .stride = loop->hidden,
                   .rows = loop->hidden,
                   .depth = depth },
        .result = { .data = dweight, .f32 = true, .stride = loop->hidden },
        .tiles = loop->tiles,
        .loops = kiln_cpu(call)->loops,
        .threads = call->backend->threads,
    };
}

static Workspace workspace_of(const KilnCall *call, const ArgIndices *indices)
{
    const KilnRecurrentLoop loop = loop_of(call, indices);
    const size_t left = left_bytes(call, &loop, indices->backward), size = size_of(&loop);
    const size_t sequence = (size_t)(loop.steps * loop.batch * loop.hidden);
    Workspace w;

    w.left[0] = align((size_t)packed_elements(&loop, indices->backward) * size);
    w.left[1] = w.left[0] + left;
    w.share = w.left[1] + left;
    w.states = w.product = w.end = w.share;
    if (!indices->backward)
        return w;
    if (loop.gates == 3)
        w.states += align(sequence * 3 * size);
    w.product = w.states + align(sequence * size);
    w.end = w.product;
    if (loop.tiles != NULL) {
        const KilnBf16Product product = weight_product(
            call, &loop, (KilnRecurrentRows) { NULL, call->outputs[0].dtype == KILN_BF16 }, NULL,
            NULL);

        w.end += kiln_bf16_product_workspace(&product);
    }
    return w;
}

static KilnStatus prepare(KilnCall *call, const ArgIndices *indices)
{
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = workspace_of(call, indices).end;
    return KILN_OK;
}

/* ---- Packing the weight, once for all steps ------------------------------------------- */

typedef struct Packing {
    const KilnCpuBackend *cpu;
    const KilnRecurrentLoop *loop;
    const KilnArg *weight;
    void *packed;
    bool backward;
} Packing;

/* A panel of tiles: units of a gate, or backward of the summed axis's other side. */
static void pack_tiles(const Packing *packing, int64_t panel)
{
    const KilnRecurrentLoop *loop = packing->loop;
    const int64_t hidden = loop->hidden, blocks = kiln_recurrent_blocks(hidden);
    const int64_t gate = panel / blocks, unit = panel % blocks;
    const bool f32 = packing->weight->dtype == KILN_F32;
    const size_t from = (size_t)(gate * hidden * hidden) * (f32 ? sizeof(float) : sizeof(uint16_t));
    const KilnTileMatrix matrix = { .data = (const char *)packing->weight->data + from,
                                    .f32 = f32,
                                    .across = packing->backward,
                                    .stride = hidden,
                                    .rows = hidden,
                                    .depth = packing->backward ? loop->gates * hidden : hidden };

    kiln_tiles_pack((uint16_t *)packing->packed + gate * kiln_tiles_packed(hidden, hidden), &matrix,
                    true, 2 * unit, 2 * unit + 2);
}

static void pack_part(void *context, int64_t begin, int64_t end)
{
    const Packing *packing = context;
    const KilnRecurrentLoop *loop = packing->loop;

    if (loop->tiles == NULL)
        packing->cpu->loops->recurrent->pack(packing->packed, packing->weight->data, loop->gates,
                                             loop->hidden, packing->backward, begin, end);
    else
        for (int64_t panel = begin; panel < end; panel++)
            pack_tiles(packing, panel);
}

static void pack_weight(KilnCall *call, const ArgIndices *indices, const KilnRecurrentLoop *loop)
{
    const Packing packing = { .cpu = kiln_cpu(call),
                              .loop = loop,
                              .weight = &call->inputs[indices->weight],
                              .packed = call->workspace,
                              .backward = indices->backward };
    const int64_t blocks = kiln_recurrent_blocks(loop->hidden);

    kiln_parallel(call->backend->threads, indices->backward ? blocks : loop->gates * blocks, 1, 1,
                  pack_part, (void *)&packing);
}

/* ---- All steps ------------------------------------------------------------------------ */

typedef struct Work {
    const KilnRecurrentLoop *loop;
    KilnRecurrentPhase phase;
    Split split;
    char *left[2];
    size_t left_row; /* bytes */
} Work;

static KilnRecurrentPart part_of(const Work *work, int64_t i)
{
    const KilnRecurrentLoop *loop = work->loop;
    const int64_t parts = work->split.parts, blocks = kiln_recurrent_blocks(loop->hidden);
    KilnRecurrentPart part = { .end = loop->batch, .last = loop->hidden };

    if (work->split.units) {
        part.first = blocks * i / parts * KILN_RECURRENT_UNITS;
        part.last = kiln_min_i64(blocks * (i + 1) / parts * KILN_RECURRENT_UNITS, loop->hidden);
    } else {
        part.begin = loop->batch * i / parts;
        part.end = loop->batch * (i + 1) / parts;
    }

    const int64_t row = part.begin + (work->split.units ? 0 : i * KILN_RECURRENT_ROWS);

    for (int k = 0; k < 2; k++)
        part.left[k] = work->left[k] + (size_t)row * work->left_row;
    return part;
}

static void run_units(void *context, int64_t i, int64_t phase)
{
    const Work *work = context;
    const KilnRecurrentPart part = part_of(work, i);

    work->phase(work->loop, &part, phase);
}

static void run_sequences(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;

    for (int64_t i = begin; i < end; i++) {
        const KilnRecurrentPart part = part_of(work, i);

        for (int64_t phase = 0; phase <= work->loop->steps; phase++)
            work->phase(work->loop, &part, phase);
    }
}

static void run_steps(KilnCall *call, const ArgIndices *indices, KilnRecurrentLoop *loop)
{
    const KilnRecurrentLoops *loops = kiln_cpu(call)->loops->recurrent;
    const Workspace workspace = workspace_of(call, indices);
    const int64_t depth = indices->backward ? loop->gates * loop->hidden : loop->hidden;
    Work work = {
        .loop = loop,
        .phase = indices->backward ? loops->backward : loops->forward,
        .split = split_of(call, loop),
        .left_row = (size_t)kiln_recurrent_left(depth, loop->tiles != NULL) * size_of(loop),
    };

    for (int k = 0; k < 2; k++)
        work.left[k] = (char *)call->workspace + workspace.left[k];
    loop->weight = call->workspace;
    pack_weight(call, indices, loop);
    if (work.split.units)
        kiln_parallel_phases(call->backend->threads, work.split.parts, loop->steps + 1, run_units,
                             &work);
    else
        kiln_parallel(call->backend->threads, work.split.parts, 1, 1, run_sequences, &work);
}

/* ---- The weight's gradient: the sum over all steps of shareᵀ · previous state */

typedef struct States {
    const KilnLoops *loops;
    const KilnRecurrentLoop *loop;
    KilnRecurrentRows states; /* laid out as y */
} States;

/* The row of y with the state before step t of sequence b: that of the neighbouring step. -1: h0;
 * -2: zeros, after the end of a sequence, where the share is 0. */
static int64_t state_before(const KilnRecurrentLoop *loop, int64_t t, int64_t b)
{
    const int64_t whole = loop->steps;
    const int64_t steps = loop->lengths != NULL && loop->lengths[b] < whole ? loop->lengths[b]
                                                                            : whole;
    const int64_t last = loop->reverse ? t + 1 : t - 1;

    if (t >= steps)
        return -2;
    return last >= 0 && last < steps ? last * loop->step + b * loop->row : -1;
}

/* Copies a row of `n` values, from `at` on, to `to`; rounds to bf16 if the states are. */
static void copy_state(const States *all, int64_t to, KilnRecurrentRows from, int64_t at, int64_t n)
{
    const bool bf16 = all->states.bf16;
    const size_t size = bf16 ? sizeof(uint16_t) : sizeof(float);
    char *state = (char *)all->states.data + (size_t)to * size;

    if (from.data == NULL)
        memset(state, 0, (size_t)n * size);
    else if (bf16 && !from.bf16)
        all->loops->to_bf16((uint16_t *)(void *)state, (const float *)from.data + at, n);
    else
        memcpy(state, (const char *)from.data + (size_t)at * size, (size_t)n * size);
}

static void states_part(void *context, int64_t begin, int64_t end)
{
    const States *all = context;
    const KilnRecurrentLoop *loop = all->loop;
    const int64_t n = loop->hidden;

    for (int64_t b = begin; b < end; b++)
        for (int64_t t = 0; t < loop->steps; t++) {
            const int64_t to = (t * loop->step + b * loop->row) * n;
            const int64_t before = state_before(loop, t, b);

            if (before >= 0)
                copy_state(all, to, loop->y_in, before * n, n);
            else
                copy_state(all, to,
                           (KilnRecurrentRows) { before == -1 ? (float *)loop->h0 : NULL, false },
                           b * n, n);
        }
}

/* Copies the states to match the gradients' layout, so that it is one product: one per sequence
 * would pass over the whole result each time. */
static void weight_gradient(const KilnCall *call, const ArgIndices *indices,
                            const KilnRecurrentLoop *loop, KilnRecurrentRows share, float *dweight)
{
    const Workspace workspace = workspace_of(call, indices);
    char *bytes = call->workspace;
    States all = { kiln_cpu(call)->loops, loop, { bytes + workspace.states, loop->tiles != NULL } };
    const int64_t gates = loop->gates * loop->hidden;

    kiln_parallel(call->backend->threads, loop->batch, 1, 1, states_part, &all);
    if (loop->tiles != NULL) {
        const KilnBf16Product product = weight_product(call, loop, share, all.states.data, dweight);

        kiln_bf16_product(&product, bytes + workspace.product);
        return;
    }
    const KilnGemm gemm = { .m = gates,
                            .n = loop->hidden,
                            .k = loop->steps * loop->batch,
                            .lda = gates,
                            .ldb = loop->hidden,
                            .ldc = loop->hidden,
                            .transpose_a = true,
                            .alpha = 1.0f };

    kiln_gemm(call, &gemm, share.data, all.states.data, dweight);
}

/* ---- Sum over all rows, with columns split between the threads ------------------ */

typedef struct BiasSum {
    const KilnLoops *loops;
    KilnRecurrentRows share;
    float *out;
    int64_t rows, columns;
} BiasSum;

static void bias_part(void *context, int64_t begin, int64_t end)
{
    enum { COLUMNS = 64 };
    const BiasSum *sum = context;
    const KilnLoops *loops = sum->loops;
    float row[COLUMNS];

    if (!sum->share.bf16) {
        loops->sum_rows(sum->out + begin, (const float *)sum->share.data + begin, sum->rows,
                        end - begin, sum->columns);
        return;
    }
    memset(sum->out + begin, 0, (size_t)(end - begin) * sizeof(float));
    for (int64_t c = begin; c < end; c += COLUMNS)
        for (int64_t r = 0; r < sum->rows; r++) {
            const int64_t n = kiln_min_i64(COLUMNS, end - c);

            loops->from_bf16(row, (const uint16_t *)sum->share.data + r * sum->columns + c, n);
            loops->add(sum->out + c, sum->out + c, row, n);
        }
}

/* ---- LSTM ---------------------------------------------------------------------------------- */

static KilnStatus lstm_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &lstm_indices);
}

static void lstm_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &lstm_indices);

    loop.p = rows_of(&call->inputs[0]);
    loop.gates_out = call->outputs[0].data;
    loop.y = rows_of(&call->outputs[1]);
    loop.h = call->outputs[2].data;
    loop.c = call->outputs[3].data;
    loop.kept = call->outputs[4].data;
    run_steps(call, &lstm_indices, &loop);
}

static KilnStatus lstm_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &lstm_grad_indices);
}

static void lstm_grad_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &lstm_grad_indices);

    loop.gates_in = call->inputs[0].data;
    loop.dy = rows_of(&call->inputs[1]);
    loop.dh = optional(call, 2);
    loop.dc = optional(call, 3);
    loop.y_in = rows_of(&call->inputs[8]);
    loop.kept_in = call->inputs[9].data;
    loop.dp = rows_of(&call->outputs[0]);
    loop.dh0 = call->outputs[2].data;
    loop.dc0 = call->outputs[3].data;
    run_steps(call, &lstm_grad_indices, &loop);
    weight_gradient(call, &lstm_grad_indices, &loop, loop.dp, call->outputs[1].data);
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

    loop.p = rows_of(&call->inputs[0]);
    loop.bias = optional(call, 4);
    loop.gates_out = call->outputs[0].data;
    loop.y = rows_of(&call->outputs[1]);
    loop.h = call->outputs[2].data;
    loop.kept = call->outputs[3].data;
    run_steps(call, &gru_indices, &loop);
}

static KilnStatus gru_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, &gru_grad_indices);
}

static void gru_grad_run(KilnCall *call)
{
    KilnRecurrentLoop loop = loop_of(call, &gru_grad_indices);
    char *bytes = call->workspace;

    loop.gates_in = call->inputs[0].data;
    loop.dy = rows_of(&call->inputs[1]);
    loop.dh = optional(call, 2);
    loop.y_in = rows_of(&call->inputs[6]);
    loop.kept_in = call->inputs[7].data;
    loop.dp = rows_of(&call->outputs[0]);
    loop.dh0 = call->outputs[2].data;
    loop.share = (KilnRecurrentRows) { bytes + workspace_of(call, &gru_grad_indices).share,
                                       loop.tiles != NULL };
    run_steps(call, &gru_grad_indices, &loop);
    weight_gradient(call, &gru_grad_indices, &loop, loop.share, call->outputs[1].data);

    BiasSum sum = { kiln_cpu(call)->loops, loop.share, call->outputs[3].data,
                    loop.steps * loop.batch, kiln_cpu_columns(&call->inputs[0]) };

    kiln_parallel(call->backend->threads, sum.columns, 64, 64, bias_part, &sum);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_lstm,
      .prepare = lstm_prepare,
      .run = lstm_run,
      .in_place = 1,
      .bf16_inputs = 0x3,
      .rounding_inputs = 0x2,
      .bf16_outputs = 0x2 },
    { .op = &kiln_op_lstm_grad,
      .prepare = lstm_grad_prepare,
      .run = lstm_grad_run,
      .in_place = 1,
      .bf16_inputs = 0x112,
      .rounding_inputs = 0x10,
      .bf16_outputs = 0x1 },
    { .op = &kiln_op_gru,
      .prepare = gru_prepare,
      .run = gru_run,
      .in_place = 1,
      .bf16_inputs = 0x3,
      .rounding_inputs = 0x2,
      .bf16_outputs = 0x2 },
    { .op = &kiln_op_gru_grad,
      .prepare = gru_grad_prepare,
      .run = gru_grad_run,
      .in_place = 1,
      .bf16_inputs = 0x4a,
      .rounding_inputs = 0x8,
      .bf16_outputs = 0x1 },
};

const KilnCpuTable kiln_cpu_recurrent = { kernels, KILN_COUNT(kernels) };
