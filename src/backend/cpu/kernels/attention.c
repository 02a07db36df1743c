/* Attention: threads split the heads or, if there are few, their queries and keys; sums are the
 * same either way. The loop over a head is in isa/sequence/attention.c. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/isa/sequence/attention.h"
#include "base/min.h"

static KilnAttentionRows rows_of(const KilnArg *arg, int64_t first)
{
    return (KilnAttentionRows) {
        .data = (char *)arg->data + (size_t)first * kiln_dtype_size(arg->dtype),
        .bf16 = arg->dtype == KILN_BF16,
    };
}

static KilnDropoutLoop dropout_of(const KilnAttentionAttrs *attrs, const int32_t *key)
{
    return (KilnDropoutLoop) {
        .key = { (uint32_t)key[0], (uint32_t)key[1] },
        .stream = (uint64_t)attrs->stream,
        .threshold = (uint32_t)ceil(attrs->dropout * 0x1p24),
        .scale = (float)(1.0 / (1.0 - attrs->dropout)),
    };
}

/* Shared by separate and packed tensors: `first` is the index of q or qkv. */
static KilnAttentionLoop loop_of(const KilnCall *call, int first, bool packed)
{
    const KilnAttentionAttrs *attrs = call->attrs;
    const KilnArg *in = call->inputs + first, *options = in + (packed ? 1 : 3);
    KilnAttentionLoop loop = {
        .s = kiln_attention_sizes(&in[0].shape, packed ? NULL : &in[1].shape, attrs),
        .scale = (float)attrs->scale,
        .causal = attrs->causal != 0,
        .drops = attrs->dropout > 0.0,
    };

    loop.q = rows_of(&in[0], 0);
    loop.k = packed ? rows_of(&in[0], loop.s.k_offset) : rows_of(&in[1], 0);
    loop.v = packed ? rows_of(&in[0], loop.s.v_offset) : rows_of(&in[2], 0);
    if (!options[0].absent) {
        loop.mask = kiln_attention_mask(&options[0].shape);
        if (options[0].dtype == KILN_U8)
            loop.mask_seen = options[0].data;
        else
            loop.mask_added = options[0].data;
    }
    if (loop.q.bf16 && loop.k.bf16 && loop.v.bf16 &&
        (first == 0 || (call->inputs[0].dtype == KILN_BF16 &&
                        call->inputs[1].dtype == KILN_BF16))) /* backward: dy, y */
        loop.tiles = kiln_cpu(call)->tiles;
    loop.padding = options[1].absent ? NULL : options[1].data;
    loop.positions = options[3].absent ? NULL : options[3].data;
    loop.positions_stride = options[3].shape.dim[0] > 1 ? loop.s.queries : 0;
    if (loop.drops && options[2].data != NULL) /* unset during prepare */
        loop.dropout = dropout_of(attrs, options[2].data);
    return loop;
}

/* ---- Splitting heads ------------------------------------------------------------ */

/* How many parts a head of keys and values has in a pass: 1, or some if there are few heads. */
typedef struct Split {
    int64_t heads, query_blocks, key_blocks;
    int64_t queries, keys; /* parts */
    bool passes;           /* backward: gradients of queries, then those of keys */
} Split;

/* Parts pack keys and values again, and two passes compute the scores twice, so splitting pays only
 * where whole heads would leave most threads without work. */
static Split split_of(const KilnCall *call, const KilnAttentionSizes *s, bool backward)
{
    const int64_t heads = s->batch * s->kv_heads, threads = call->backend->threads;
    const int64_t rounds = (heads + threads - 1) / threads;
    Split split = { .heads = heads,
                    .query_blocks = s->heads / s->kv_heads * kiln_attention_blocks(s->queries),
                    .key_blocks = kiln_attention_blocks(s->keys),
                    .queries = 1,
                    .keys = 1 };

    if (3 * heads <= threads * rounds && heads > 0) {
        const int64_t wanted = (2 * threads + heads - 1) / heads;

        split.queries = kiln_min_i64(wanted, split.query_blocks);
        split.keys = kiln_min_i64(wanted, split.key_blocks);
        split.passes = backward;
    }
    return split;
}

typedef enum Pass { FORWARD, BACKWARD, QUERY_GRADS, KEY_GRADS } Pass;

typedef struct Work {
    KilnCpuBackend *cpu;
    KilnAttentionLoop loop;
    Split split;
    Pass pass;
    float *workspace;
    int64_t scratch; /* floats of one thread */
} Work;

static KilnAttentionPart part_of(const Work *work, int64_t item)
{
    const Split *split = &work->split;
    const int64_t parts = work->pass == KEY_GRADS ? split->keys : split->queries;
    const int64_t head = item / parts, i = item % parts;
    KilnAttentionPart part = {
        .b = head / work->loop.s.kv_heads,
        .g = head % work->loop.s.kv_heads,
        .query_end = split->query_blocks,
        .key_end = split->key_blocks,
        .query_grads = work->pass != KEY_GRADS,
        .key_grads = work->pass != QUERY_GRADS,
    };

    if (work->pass == KEY_GRADS) {
        part.key = split->key_blocks * i / parts;
        part.key_end = split->key_blocks * (i + 1) / parts;
    } else {
        part.query = split->query_blocks * i / parts;
        part.query_end = split->query_blocks * (i + 1) / parts;
    }
    return part;
}

static void run_parts(void *context, KilnShares *shares)
{
    const Work *work = context;
    const KilnAttentionLoops *loops = work->cpu->loops->attention;
    float *scratch = work->workspace + kiln_thread() * work->scratch;

    if (work->loop.tiles != NULL)
        work->loop.tiles->begin();
    for (int64_t i; (i = kiln_next_item(shares)) >= 0;) {
        const KilnAttentionPart part = part_of(work, i);

        (work->pass == FORWARD ? loops->forward : loops->backward)(&work->loop, scratch, &part);
    }
    if (work->loop.tiles != NULL)
        work->loop.tiles->end();
}

static void run_pass(KilnCall *call, Work *work, Pass pass)
{
    const Split *split = &work->split;

    work->pass = pass;
    kiln_parallel_items(call->backend->threads,
                        split->heads * (pass == KEY_GRADS ? split->keys : split->queries),
                        run_parts, work);
}

static void work_run(KilnCall *call, const KilnAttentionLoop *loop, bool backward)
{
    KilnCpuBackend *cpu = kiln_cpu(call);
    Work work = {
        .cpu = cpu,
        .loop = *loop,
        .split = split_of(call, &loop->s, backward),
        .workspace = call->workspace,
        .scratch = cpu->loops->attention->scratch(loop, backward),
    };

    if (work.split.passes) {
        run_pass(call, &work, QUERY_GRADS);
        run_pass(call, &work, KEY_GRADS);
    } else {
        run_pass(call, &work, backward ? BACKWARD : FORWARD);
    }
}

static KilnStatus prepare(KilnCall *call, int first, bool packed)
{
    const KilnAttentionLoop loop = loop_of(call, first, packed);
    const Split split = split_of(call, &loop.s, first > 0);
    const int64_t most = split.queries > split.keys ? split.queries : split.keys;
    const int64_t used = kiln_min_i64(split.heads * most, call->backend->threads);

    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size =
        (size_t)(kiln_cpu(call)->loops->attention->scratch(&loop, first > 0) * used) *
        sizeof(float);
    return KILN_OK;
}

/* ---- Kernels --------------------------------------------------------------------- */

static KilnStatus attention_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, 0, false);
}

static KilnStatus packed_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, 0, true);
}

static KilnStatus attention_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, 3, false);
}

static KilnStatus packed_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare(call, 3, true);
}

static void forward(KilnCall *call, bool packed)
{
    KilnAttentionLoop loop = loop_of(call, 0, packed);

    loop.y = rows_of(&call->outputs[0], 0);
    loop.lse = call->outputs[1].data;
    work_run(call, &loop, false);
}

static void attention_run(KilnCall *call)
{
    forward(call, false);
}

static void packed_run(KilnCall *call)
{
    forward(call, true);
}

static void backward(KilnCall *call, bool packed)
{
    KilnAttentionLoop loop = loop_of(call, 3, packed);

    const KilnArg *out = call->outputs;

    loop.dy = rows_of(&call->inputs[0], 0);
    loop.y = rows_of(&call->inputs[1], 0);
    loop.lse_in = call->inputs[2].data;
    loop.dq = rows_of(&out[0], 0);
    loop.dk = packed ? rows_of(&out[0], loop.s.k_offset) : rows_of(&out[1], 0);
    loop.dv = packed ? rows_of(&out[0], loop.s.v_offset) : rows_of(&out[2], 0);
    if (((const KilnAttentionAttrs *)call->attrs)->mask_grad != 0)
        loop.dscores = out[packed ? 1 : 3].data;
    work_run(call, &loop, true);
}

static void attention_grad_run(KilnCall *call)
{
    backward(call, false);
}

static void packed_grad_run(KilnCall *call)
{
    backward(call, true);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_attention,
      .prepare = attention_prepare,
      .run = attention_run,
      .bf16_inputs = 0x7,
      .bf16_outputs = 0x1 },
    { .op = &kiln_op_attention_grad,
      .prepare = attention_grad_prepare,
      .run = attention_grad_run,
      .bf16_inputs = 0x3b,
      .bf16_outputs = 0x7 },
    { .op = &kiln_op_attention_packed,
      .prepare = packed_prepare,
      .run = packed_run,
      .bf16_inputs = 0x1,
      .bf16_outputs = 0x1 },
    { .op = &kiln_op_attention_packed_grad,
      .prepare = packed_grad_prepare,
      .run = packed_grad_run,
      .bf16_inputs = 0xb,
      .bf16_outputs = 0x1 },
};

const KilnCpuTable kiln_cpu_attention = { kernels, KILN_COUNT(kernels) };
