/* Reference of linear-chain conditional random fields: the forward-backward algorithm in
 * logarithms, and Viterbi's. */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

typedef struct Chain {
    const KilnArg *emissions, *start, *end, *transitions;
    const int32_t *tags; /* [T]; NULL: none */
    int64_t first;       /* emission of the first step and tag */
    int64_t length, n;   /* n: tags */
    bool valid;          /* length and tags are in range */
} Chain;

/* Emissions are input `at`; tags, if any, come after them. */
static Chain chain_of(const KilnCall *call, int at, bool tags, int64_t b)
{
    const KilnArg *emissions = &call->inputs[at], *next = emissions + 1;
    const int64_t steps = emissions->shape.dim[1], n = emissions->shape.dim[2];
    Chain chain = { .emissions = emissions, .first = b * steps * n, .n = n };

    if (tags)
        chain.tags = (const int32_t *)next++->data + b * steps;
    chain.length = ((const int32_t *)next->data)[b];
    chain.start = next + 1;
    chain.end = next + 2;
    chain.transitions = next + 3;
    chain.valid = chain.length >= 1 && chain.length <= steps;
    for (int64_t t = 0; t < chain.length && chain.valid && tags; t++)
        chain.valid = chain.tags[t] >= 0 && chain.tags[t] < n;
    return chain;
}

static double emission(const Chain *c, int64_t t, int64_t tag)
{
    return kiln_ref_get(c->emissions, c->first + t * c->n + tag);
}

static double transition(const Chain *c, int64_t from, int64_t to)
{
    return kiln_ref_get(c->transitions, from * c->n + to);
}

/* Of n terms. */
static double log_sum_exp(const double *x, int64_t n)
{
    double top = -INFINITY, sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        top = x[i] > top || isnan(x[i]) ? x[i] : top;
    if (isinf(top) || isnan(top))
        return top;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    return top + log(sum);
}

/* alpha[t][tag]: log of the sum over all sequences that have this tag at t, up to t. */
static void forward(const Chain *c, double *alpha, double *terms)
{
    for (int64_t t = 0; t < c->length; t++)
        for (int64_t to = 0; to < c->n; to++) {
            for (int64_t from = 0; from < c->n && t > 0; from++)
                terms[from] = alpha[(t - 1) * c->n + from] + transition(c, from, to);
            alpha[t * c->n + to] = emission(c, t, to) +
                                   (t == 0 ? kiln_ref_get(c->start, to) : log_sum_exp(terms, c->n));
        }
}

/* beta[t][tag]: the same after t, without the emission of t. */
static void backward(const Chain *c, double *beta, double *terms)
{
    for (int64_t t = c->length - 1; t >= 0; t--)
        for (int64_t from = 0; from < c->n; from++) {
            for (int64_t to = 0; to < c->n && t + 1 < c->length; to++)
                terms[to] = transition(c, from, to) +
                            (emission(c, t + 1, to) + beta[(t + 1) * c->n + to]);
            beta[t * c->n + from] = t + 1 == c->length ? kiln_ref_get(c->end, from)
                                                       : log_sum_exp(terms, c->n);
        }
}

/* log of the sum over all sequences. */
static double total(const Chain *c, const double *alpha, double *terms)
{
    for (int64_t tag = 0; tag < c->n; tag++)
        terms[tag] = alpha[(c->length - 1) * c->n + tag] + kiln_ref_get(c->end, tag);
    return log_sum_exp(terms, c->n);
}

static double score(const Chain *c)
{
    double sum = kiln_ref_get(c->start, c->tags[0]) + kiln_ref_get(c->end, c->tags[c->length - 1]);

    for (int64_t t = 0; t < c->length; t++) {
        sum += emission(c, t, c->tags[t]);
        if (t > 0)
            sum += transition(c, c->tags[t - 1], c->tags[t]);
    }
    return sum;
}

/* ---- Loss ------------------------------------------------------------------------------ */

static KilnStatus loss_prepare(KilnCall *call, KilnError *err)
{
    const int64_t *x = call->inputs[0].shape.dim;

    (void)err;
    call->workspace_size = (size_t)((x[1] + 1) * x[2]) * sizeof(double);
    return KILN_OK;
}

static void loss_run(KilnCall *call)
{
    double *terms = call->workspace, *alpha = terms + call->inputs[0].shape.dim[2];

    for (int64_t b = 0; b < call->inputs[0].shape.dim[0]; b++) {
        const Chain c = chain_of(call, 0, true, b);

        if (c.valid)
            forward(&c, alpha, terms);
        kiln_ref_set(&call->outputs[0], b, c.valid ? total(&c, alpha, terms) - score(&c) : NAN);
    }
}

/* ---- Gradient ---------------------------------------------------------------------------- */

typedef struct Scratch {
    double *terms, *alpha, *beta, *start, *end, *transitions; /* the last three: gradients */
} Scratch;

static KilnStatus grad_prepare(KilnCall *call, KilnError *err)
{
    const int64_t *x = call->inputs[1].shape.dim;

    (void)err;
    call->workspace_size = (size_t)((2 * x[1] + x[2] + 3) * x[2]) * sizeof(double);
    return KILN_OK;
}

/* Probability minus one where the tags are, times the gradient of the loss: of steps, and of
 * pairs. */
static void chain_grad(KilnCall *call, const Chain *c, const Scratch *s, double dloss)
{
    const int64_t n = c->n;

    forward(c, s->alpha, s->terms);
    backward(c, s->beta, s->terms);

    const double all = total(c, s->alpha, s->terms);

    for (int64_t t = 0; t < c->length; t++)
        for (int64_t tag = 0; tag < n; tag++) {
            const double p = exp(s->alpha[t * n + tag] + s->beta[t * n + tag] - all);
            const double slope = dloss * (p - (c->tags[t] == tag ? 1.0 : 0.0));

            kiln_ref_set(&call->outputs[0], c->first + t * n + tag, slope);
            s->start[tag] += t == 0 ? slope : 0.0;
            s->end[tag] += t + 1 == c->length ? slope : 0.0;
            for (int64_t to = 0; to < n && t + 1 < c->length; to++) {
                const double after = emission(c, t + 1, to) + s->beta[(t + 1) * n + to];
                const double pair =
                    exp(s->alpha[t * n + tag] + transition(c, tag, to) + after - all);
                const bool here = c->tags[t] == tag && c->tags[t + 1] == to;

                s->transitions[tag * n + to] += dloss * (pair - (here ? 1.0 : 0.0));
            }
        }
}

static void grad_run(KilnCall *call)
{
    const int64_t *x = call->inputs[1].shape.dim, n = x[2];
    double *at = call->workspace;
    const Scratch s = { .terms = at,
                        .start = at + n,
                        .end = at + 2 * n,
                        .transitions = at + 3 * n,
                        .alpha = at + (3 + n) * n,
                        .beta = at + (3 + n + x[1]) * n };
    const double *const sums[] = { NULL, s.start, s.end, s.transitions };

    memset(at, 0, call->workspace_size);
    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i, 0.0);
    for (int64_t b = 0; b < x[0]; b++) {
        const Chain c = chain_of(call, 1, true, b);

        if (c.valid)
            chain_grad(call, &c, &s, kiln_ref_get(&call->inputs[0], b));
    }
    for (int i = 1; i < 4; i++)
        for (int64_t k = 0; k < kiln_ref_count(&call->outputs[i]); k++)
            kiln_ref_set(&call->outputs[i], k, sums[i][k]);
}

/* ---- Decoding ------------------------------------------------------------------------------ */

/* Scores of two steps, and the tag before each tag of each step. */
static KilnStatus decode_prepare(KilnCall *call, KilnError *err)
{
    const int64_t *x = call->inputs[0].shape.dim;

    (void)err;
    call->workspace_size = (size_t)((2 + x[1]) * x[2]) * sizeof(double);
    return KILN_OK;
}

static void decode_chain(const Chain *c, double *scores, int32_t *before, int32_t *tags)
{
    int64_t tag = 0;

    for (int64_t t = 0; t < c->length; t++)
        for (int64_t to = 0; to < c->n; to++) {
            const double *last = scores + (t + 1) % 2 * c->n;
            double best = t == 0 ? kiln_ref_get(c->start, to) : last[0] + transition(c, 0, to);

            before[t * c->n + to] = 0;
            for (int64_t from = 1; from < c->n && t > 0; from++)
                if (last[from] + transition(c, from, to) > best) {
                    best = last[from] + transition(c, from, to);
                    before[t * c->n + to] = (int32_t)from;
                }
            scores[t % 2 * c->n + to] = best + emission(c, t, to);
        }

    const double *last = scores + (c->length - 1) % 2 * c->n;

    for (int64_t to = 1; to < c->n; to++)
        if (last[to] + kiln_ref_get(c->end, to) > last[tag] + kiln_ref_get(c->end, tag))
            tag = to;
    for (int64_t t = c->length - 1; t >= 0; t--) {
        tags[t] = (int32_t)tag;
        tag = before[t * c->n + tag];
    }
}

static void decode_run(KilnCall *call)
{
    const int64_t *x = call->inputs[0].shape.dim;
    double *scores = call->workspace;
    int32_t *before = (int32_t *)(void *)(scores + 2 * x[2]), *tags = call->outputs[0].data;

    memset(tags, 0, call->outputs[0].bytes);
    for (int64_t b = 0; b < x[0]; b++) {
        const Chain c = chain_of(call, 0, false, b);

        if (c.valid)
            decode_chain(&c, scores, before, tags + b * x[1]);
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_crf_loss, .prepare = loss_prepare, .run = loss_run },
    { .op = &kiln_op_crf_loss_grad, .prepare = grad_prepare, .run = grad_run },
    { .op = &kiln_op_crf_decode, .prepare = decode_prepare, .run = decode_run },
};

const KilnRefTable kiln_ref_crf = { kernels, KILN_COUNT(kernels) };
