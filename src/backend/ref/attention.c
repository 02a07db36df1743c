/* Reference of attention, one row of probabilities at a time. */
#include <math.h>
#include <stdlib.h>

#include "backend/ref/ref.h"

/* A call, forward or backward, of separate or packed tensors. */
typedef struct Attention {
    const KilnAttentionAttrs *attrs;
    KilnAttentionSizes s;
    const KilnArg *q, *k, *v, *mask, *padding, *key, *positions;
    double *p; /* [keys], a row of probabilities: the workspace */
} Attention;

static Attention attention_of(const KilnCall *call, int first, bool packed)
{
    const KilnArg *in = call->inputs + first;
    const int options = packed ? 1 : 3;

    return (Attention) {
        .attrs = call->attrs,
        .s = kiln_attention_sizes(&in[0].shape, packed ? NULL : &in[1].shape, call->attrs),
        .q = &in[0],
        .k = packed ? &in[0] : &in[1],
        .v = packed ? &in[0] : &in[2],
        .mask = &in[options],
        .padding = &in[options + 1],
        .key = &in[options + 2],
        .positions = &in[options + 3],
        .p = call->workspace,
    };
}

static int64_t at(KilnAttentionView view, int64_t b, int64_t h, int64_t t)
{
    return b * view.batch + h * view.head + t * view.row;
}

static int64_t kv_head(const Attention *a, int64_t h)
{
    return h / (a->s.heads / a->s.kv_heads);
}

static int64_t k_at(const Attention *a, int64_t b, int64_t h, int64_t t)
{
    return a->s.k_offset + at(a->s.k, b, kv_head(a, h), t);
}

static int64_t v_at(const Attention *a, int64_t b, int64_t h, int64_t t)
{
    return a->s.v_offset + at(a->s.v, b, kv_head(a, h), t);
}

/* Scaled product of one query and one key; -inf if masked. */
static double score(const Attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t q = at(a->s.q, b, h, i), k = k_at(a, b, h, j);
    double sum = 0.0;

    if (a->attrs->causal != 0 && j > i)
        return -INFINITY;
    if (!a->positions->absent &&
        j < kiln_attention_first(a->positions->data,
                                 a->positions->shape.dim[0] > 1 ? a->s.queries : 0, b, i))
        return -INFINITY;
    if (!a->padding->absent && kiln_ref_get(a->padding, b * a->s.keys + j) == 0.0)
        return -INFINITY;
    for (int64_t d = 0; d < a->s.width; d++)
        sum += kiln_ref_get(a->q, q + d) * kiln_ref_get(a->k, k + d);
    sum *= a->attrs->scale;
    if (a->mask->absent)
        return sum;
    const KilnMaskStrides m = kiln_attention_mask(&a->mask->shape);
    const double mask = kiln_ref_get(a->mask, b * m.batch + h * m.head + i * m.row + j * m.column);
    if (a->mask->dtype == KILN_U8)
        return mask != 0.0 ? sum : -INFINITY;
    return sum + mask;
}

/* Probabilities of a row before dropout; returns the log of their sum. */
static double probabilities(const Attention *a, int64_t b, int64_t h, int64_t i)
{
    double top = -INFINITY, sum = 0.0;

    for (int64_t j = 0; j < a->s.keys; j++) {
        a->p[j] = score(a, b, h, i, j);
        top = fmax(top, a->p[j]);
    }
    for (int64_t j = 0; j < a->s.keys; j++) {
        a->p[j] = top > -INFINITY ? exp(a->p[j] - top) : 0.0;
        sum += a->p[j];
    }
    for (int64_t j = 0; j < a->s.keys && sum > 0.0; j++)
        a->p[j] /= sum;
    return top > -INFINITY ? top + log(sum) : -INFINITY;
}

/* The dropout factor of a probability. */
static double kept(const Attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const double p = a->attrs->dropout;

    if (p == 0.0)
        return 1.0;
    return kiln_ref_keeps(a->key->data, a->attrs->stream, kiln_attention_row(&a->s, b, h, i) + j, p)
               ? 1.0 / (1.0 - p)
               : 0.0;
}

/* ---- Forward ------------------------------------------------------------------- */

static KilnStatus prepare_for(KilnCall *call, int first, bool packed)
{
    call->workspace_size = (size_t)attention_of(call, first, packed).s.keys * sizeof(double);
    return KILN_OK;
}

static void forward_row(KilnCall *call, const Attention *a, int64_t b, int64_t h, int64_t i)
{
    const int64_t y = at(a->s.y, b, h, i);
    const double lse = probabilities(a, b, h, i);

    kiln_ref_set(&call->outputs[1], (b * a->s.heads + h) * a->s.queries + i, lse);
    for (int64_t d = 0; d < a->s.width; d++) {
        double sum = 0.0;

        for (int64_t j = 0; j < a->s.keys; j++)
            sum += a->p[j] * kept(a, b, h, i, j) * kiln_ref_get(a->v, v_at(a, b, h, j) + d);
        kiln_ref_set(&call->outputs[0], y + d, sum);
    }
}

static void forward(KilnCall *call, bool packed)
{
    const Attention a = attention_of(call, 0, packed);

    for (int64_t b = 0; b < a.s.batch; b++)
        for (int64_t h = 0; h < a.s.heads; h++)
            for (int64_t i = 0; i < a.s.queries; i++)
                forward_row(call, &a, b, h, i);
}

/* ---- Backward ------------------------------------------------------------------ */

static void add_to(KilnArg *arg, int64_t i, double value)
{
    kiln_ref_set(arg, i, kiln_ref_get(arg, i) + value);
}

/* With P the row before dropout, M the dropout factors and dP = M·(dy Vᵀ): dS = P·(dP - sum(P·dP)),
 * from which dq = scale·dS K and dk += scale·dS q. d: of q, k, v, and of the scores, or NULL. */
static void backward_row(const KilnCall *call, const Attention *a, KilnArg *const d[4], int64_t b,
                         int64_t h, int64_t i)
{
    const KilnArg *dy = &call->inputs[0];
    const int64_t y = at(a->s.y, b, h, i), q = at(a->s.q, b, h, i);
    double *dp = a->p + a->s.keys, dot = 0.0;

    probabilities(a, b, h, i);
    for (int64_t j = 0; j < a->s.keys; j++) {
        const double keep = kept(a, b, h, i, j);
        const int64_t v = v_at(a, b, h, j);

        dp[j] = 0.0;
        for (int64_t e = 0; e < a->s.width; e++) {
            dp[j] += keep * kiln_ref_get(dy, y + e) * kiln_ref_get(a->v, v + e);
            add_to(d[2], v + e, a->p[j] * keep * kiln_ref_get(dy, y + e));
        }
        dot += a->p[j] * dp[j];
    }
    for (int64_t j = 0; j < a->s.keys; j++) {
        const double slope = a->p[j] * (dp[j] - dot), ds = a->attrs->scale * slope;
        const int64_t k = k_at(a, b, h, j);

        if (d[3] != NULL)
            kiln_ref_set(d[3], ((b * a->s.heads + h) * a->s.queries + i) * a->s.keys + j, slope);

        for (int64_t e = 0; e < a->s.width; e++) {
            add_to(d[0], q + e, ds * kiln_ref_get(a->k, k + e));
            add_to(d[1], k + e, ds * kiln_ref_get(a->q, q + e));
        }
    }
}

static void backward(KilnCall *call, bool packed)
{
    const Attention a = attention_of(call, 3, packed);
    KilnArg *const d[4] = { &call->outputs[0], &call->outputs[packed ? 0 : 1],
                            &call->outputs[packed ? 0 : 2],
                            a.attrs->mask_grad != 0 ? &call->outputs[packed ? 1 : 3] : NULL };

    for (int i = 0; i < call->n_outputs; i++)
        for (int64_t e = 0; e < kiln_ref_count(&call->outputs[i]); e++)
            kiln_ref_set(&call->outputs[i], e, 0.0);
    for (int64_t b = 0; b < a.s.batch; b++)
        for (int64_t h = 0; h < a.s.heads; h++)
            for (int64_t i = 0; i < a.s.queries; i++)
                backward_row(call, &a, d, b, h, i);
}

/* ---- Kernels ------------------------------------------------------------------- */

static KilnStatus attention_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare_for(call, 0, false);
}

static KilnStatus packed_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return prepare_for(call, 0, true);
}

static KilnStatus attention_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    prepare_for(call, 3, false);
    call->workspace_size *= 2;
    return KILN_OK;
}

static KilnStatus packed_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    prepare_for(call, 3, true);
    call->workspace_size *= 2;
    return KILN_OK;
}

static void attention_run(KilnCall *call)
{
    forward(call, false);
}

static void packed_run(KilnCall *call)
{
    forward(call, true);
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
    { .op = &kiln_op_attention, .prepare = attention_prepare, .run = attention_run },
    { .op = &kiln_op_attention_grad, .prepare = attention_grad_prepare, .run = attention_grad_run },
    { .op = &kiln_op_attention_packed, .prepare = packed_prepare, .run = packed_run },
    { .op = &kiln_op_attention_packed_grad,
      .prepare = packed_grad_prepare,
      .run = packed_grad_run },
};

const KilnRefTable kiln_ref_attention = { kernels, KILN_COUNT(kernels) };
