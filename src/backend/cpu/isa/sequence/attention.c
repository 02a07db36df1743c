/* Attention in blocks of queries and keys (FlashAttention, Dao et al. 2022): a block of scaled
 * products is computed, turned into probabilities and consumed while in the first-level cache. A
 * thread works on a head of keys and values or, if there are few, on a part of one, so threads
 * share nothing. Products use vectors or, in bf16, tiles; those of one query read keys and values
 * where they are. */
#include "backend/cpu/isa/sequence/attention.h"

#include <math.h>

#include "backend/cpu/isa/sequence/attention_one.h"
#include "backend/cpu/isa/sequence/attention_vectors.h"
#include "backend/cpu/isa/philox.h"
#include "backend/cpu/isa/exp_tanh.h"
#include "backend/cpu/isa/vector.h"

enum { BLOCK = KILN_ATTENTION_BLOCK /* as many random words are drawn at once */ };

typedef KilnAttentionHead Head;

static const KilnAttentionProducts *products_of(const KilnAttentionLoop *loop, bool backward)
{
    if (!backward && loop->s.queries == 1)
        return &kiln_attention_one;
    return loop->tiles != NULL ? &kiln_attention_tiles : &kiln_attention_vectors;
}

/* ---- Scratch --------------------------------------------------------------------- */

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* A part of the scratch; NULL while only counting its size. */
static void *take(float *scratch, int64_t *used, int64_t n)
{
    float *taken = scratch != NULL ? scratch + *used : NULL;

    *used += round_up(n, 16);
    return taken;
}

/* Lays out the scratch; returns its size in floats. */
static int64_t lay_out(Head *head, const KilnAttentionLoop *loop, bool backward, float *scratch)
{
    int64_t used = 0;

    head->loop = loop;
    head->products = products_of(loop, backward);
    head->width = round_up(loop->s.width, 32);
    head->keys = round_up(loop->s.keys, BLOCK);
    /* Factors packed for tiles are bf16. */
    const int64_t sums = head->keys * head->width, block = BLOCK * head->width;
    const int64_t rows = head->products == &kiln_attention_one ? 0
                         : loop->tiles != NULL                 ? sums / 2
                                                               : sums,
                  few = loop->tiles != NULL ? block / 2 : block;
    head->k = take(scratch, &used, rows);
    head->v = take(scratch, &used, rows);
    head->q = take(scratch, &used, few);
    head->p = take(scratch, &used, BLOCK * BLOCK);
    head->p_packed = loop->tiles != NULL ? take(scratch, &used, BLOCK * BLOCK / 2) : NULL;
    head->top = take(scratch, &used, BLOCK);
    head->sum = take(scratch, &used, BLOCK);
    head->y = take(scratch, &used, block);
    if (!backward)
        return used;
    head->k_across = take(scratch, &used, rows);
    head->q_across = loop->tiles != NULL ? take(scratch, &used, few) : head->q;
    head->dy = take(scratch, &used, few);
    head->dy_across = loop->tiles != NULL ? take(scratch, &used, few) : head->dy;
    head->dk = take(scratch, &used, sums);
    head->dv = take(scratch, &used, sums);
    head->dp = take(scratch, &used, BLOCK * BLOCK);
    return used;
}

static int64_t scratch_floats(const KilnAttentionLoop *loop, bool backward)
{
    Head head = { 0 };

    return lay_out(&head, loop, backward, NULL);
}

/* ---- Rows of tensors ------------------------------------------------------------- */

/* Stores from [rows, width], times `factor`, to rows of one head. */
static void store_rows(KilnAttentionRows to, int64_t first, int64_t stride, const float *from,
                       const Head *head, int64_t rows, float factor)
{
    const int64_t columns = head->loop->s.width;

    for (int64_t r = 0; r < rows; r++, first += stride, from += head->width)
        for (int64_t c = 0; c < columns; c += KILN_LANES) {
            const int lanes = columns - c < KILN_LANES ? (int)(columns - c) : KILN_LANES;

            kiln_store_lanes(to.data, first + c,
                             factor * kiln_load_lanes(from, c, KILN_LANES, false), lanes, to.bf16);
        }
}

static float dot(KilnAttentionRows a, KilnAttentionRows b, int64_t first, int64_t n)
{
    KilnFloats sums = { 0 };
    float sum = 0.0f;

    for (int64_t c = 0; c < n; c += KILN_LANES) {
        const int lanes = n - c < KILN_LANES ? (int)(n - c) : KILN_LANES;

        sums += kiln_load_lanes(a.data, first + c, lanes, a.bf16) *
                kiln_load_lanes(b.data, first + c, lanes, b.bf16);
    }
    for (int lane = 0; lane < KILN_LANES; lane++)
        sum += sums[lane];
    return sum;
}

/* ---- Probabilities of a block ---------------------------------------------------- */

/* How many keys of the block from j0 on query i may see, by position alone. */
static int64_t visible(const KilnAttentionLoop *loop, int64_t i, int64_t j0)
{
    int64_t n = loop->s.keys - j0;

    if (loop->causal && i + 1 - j0 < n)
        n = i + 1 - j0;
    return n < 0 ? 0 : n > BLOCK ? BLOCK : n;
}

/* The first key that query i of the head may see, by position alone. */
static int64_t first_key(const Head *head, int64_t i)
{
    const KilnAttentionLoop *loop = head->loop;

    return loop->positions != NULL
               ? kiln_attention_first(loop->positions, loop->positions_stride, head->b, i)
               : 0;
}

/* Where the blocks of keys begin that some query of i0 ... sees. */
static int64_t first_block(const Head *head, int64_t i0, int64_t rows)
{
    int64_t first = first_key(head, i0);

    for (int64_t i = i0 + 1; i < i0 + rows && first > 0; i++)
        if (first_key(head, i) < first)
            first = first_key(head, i);
    return first / BLOCK * BLOCK;
}

/* Scales the products of query i and applies the masks. */
static void mask_row(const Head *head, float *s, int64_t i, int64_t j0, int64_t n)
{
    const KilnAttentionLoop *loop = head->loop;
    const float scale = loop->scale;
    const int64_t place = head->b * loop->mask.batch + head->h * loop->mask.head +
                          i * loop->mask.row + j0 * loop->mask.column;

#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        s[j] *= scale;
    if (loop->padding != NULL)
        for (int64_t j = 0; j < n; j++)
            s[j] = loop->padding[head->b * loop->s.keys + j0 + j] != 0 ? s[j] : -INFINITY;
    if (loop->mask_seen != NULL)
        for (int64_t j = 0; j < n; j++)
            s[j] = loop->mask_seen[place + j * loop->mask.column] != 0 ? s[j] : -INFINITY;
    if (loop->mask_added != NULL)
        for (int64_t j = 0; j < n; j++)
            s[j] += loop->mask_added[place + j * loop->mask.column];
    for (int64_t j = n; j < BLOCK; j++)
        s[j] = -INFINITY;
    const int64_t before = first_key(head, i) - j0;
    for (int64_t j = 0; j < before && j < BLOCK; j++)
        s[j] = -INFINITY;
}

/* Scaled and masked products of queries i0 ... and keys j0 ..., in head->p. */
static void scores(const Head *head, int64_t i0, int64_t rows, int64_t j0)
{
    head->products->scores(head, rows, j0);
    for (int64_t r = 0; r < rows; r++)
        mask_row(head, head->p + r * BLOCK, i0 + r, j0, visible(head->loop, i0 + r, j0));
}

/* Dropout factors of the block's probabilities: 0, or 1/(1 - p). */
static void drop_factors(const Head *head, float factors[BLOCK], int64_t i, int64_t j0)
{
    const KilnAttentionLoop *loop = head->loop;
    uint32_t words[WORDS];

    philox_blocks(&loop->dropout,
                  (uint64_t)(kiln_attention_row(&loop->s, head->b, head->h, i) + j0) / 4, words);
    for (int j = 0; j < BLOCK; j++)
        factors[j] = (words[j] >> 8) >= loop->dropout.threshold ? loop->dropout.scale : 0.0f;
}

/* ---- Forward --------------------------------------------------------------------- */

/* Turns a row of products into probabilities up to a common factor, and rescales the row's sums to
 * the new maximum. */
static void softmax_row(const Head *head, int64_t r)
{
    float *p = head->p + r * BLOCK, *y = head->y + r * head->width;
    const float before = head->top[r];
    float top = before, sum = 0.0f;

#pragma omp simd reduction(max : top)
    for (int j = 0; j < BLOCK; j++)
        top = p[j] > top ? p[j] : top;
    /* In a row that is fully masked so far, -inf must not become NaN, but NaN must stay. */
    const float shift = top == -INFINITY ? 0.0f : top, keep = vec_exp(before - shift);
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < BLOCK; j++) {
        p[j] = vec_exp(p[j] - shift);
        sum += p[j];
    }
    head->top[r] = top;
    head->sum[r] = head->sum[r] * keep + sum;
    if (keep != 1.0f)
        for (int64_t d = 0; d < head->width; d++)
            y[d] *= keep;
}

static void forward_block(const Head *head, int64_t i0, int64_t rows, int64_t j0)
{
    float factors[BLOCK];

    scores(head, i0, rows, j0);
    for (int64_t r = 0; r < rows; r++) {
        softmax_row(head, r);
        if (!head->loop->drops)
            continue;
        drop_factors(head, factors, i0 + r, j0);
        for (int j = 0; j < BLOCK; j++)
            head->p[r * BLOCK + j] *= factors[j];
    }
    head->products->weigh(head, rows, j0);
}

/* Whether the block has a pair that is not masked by position. */
static bool in_reach(const KilnAttentionLoop *loop, int64_t i0, int64_t rows, int64_t j0)
{
    return j0 < loop->s.keys && (!loop->causal || j0 <= i0 + rows - 1);
}

static void forward_queries(const Head *head, int64_t i0, int64_t rows)
{
    const KilnAttentionLoop *loop = head->loop;
    const KilnAttentionSizes *s = &loop->s;

    head->products->pack_queries(head, i0, rows, false);
    memset(head->y, 0, (size_t)(BLOCK * head->width) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        head->top[r] = -INFINITY;
        head->sum[r] = 0.0f;
    }
    for (int64_t j0 = first_block(head, i0, rows); in_reach(loop, i0, rows, j0); j0 += BLOCK)
        forward_block(head, i0, rows, j0);
    for (int64_t r = 0; r < rows; r++) {
        const float sum = head->sum[r];

        store_rows(loop->y, kiln_attention_at(s->y, head->b, head->h, i0 + r), 0,
                   head->y + r * head->width, head, 1, sum == 0.0f ? 0.0f : 1.0f / sum);
        loop->lse[(head->b * s->heads + head->h) * s->queries + i0 + r] =
            sum == 0.0f ? -INFINITY : head->top[r] + logf(sum);
    }
}

typedef void Queries(const Head *head, int64_t i0, int64_t rows);

/* Runs the part's blocks of queries. */
static void each_queries(Head *head, Queries *run)
{
    const KilnAttentionSizes *s = &head->loop->s;
    const KilnAttentionPart *part = head->part;
    const int64_t each = kiln_attention_blocks(s->queries);

    for (int64_t i = part->query; i < part->query_end; i++) {
        const int64_t i0 = i % each * BLOCK;

        head->h = part->g * (s->heads / s->kv_heads) + i / each;
        run(head, i0, s->queries - i0 < BLOCK ? s->queries - i0 : BLOCK);
    }
}

static void forward(const KilnAttentionLoop *loop, float *scratch, const KilnAttentionPart *part)
{
    Head head = { .part = part, .b = part->b };

    lay_out(&head, loop, false, scratch);
    head.products->pack_head(&head, part->g, false);
    each_queries(&head, forward_queries);
}

/* ---- Backward -------------------------------------------------------------------- */

/* Whether all keys that query i may see are in one block. */
static bool sees_one_block(const Head *head, int64_t i)
{
    return !in_reach(head->loop, i, 1, first_block(head, i, 1) + BLOCK);
}

/* The largest of a row's scores, 0 if all are masked. */
static float largest_score(const float *scores)
{
    float top = -INFINITY;

#pragma omp simd reduction(max : top)
    for (int j = 0; j < BLOCK; j++)
        top = scores[j] > top ? scores[j] : top;
    return top == -INFINITY ? 0.0f : top;
}

/* Recomputes the block's probabilities and turns dp, the gradient of the attention weights, into
 * the gradient of the scaled products. A row of one block computes its softmax again: its
 * probabilities then add up to 1, which those by the logarithm of the sum do not where scores are
 * large, and its sum of P·dP is rounded as dp is, and vanishes with it where all values agree. */
static void backward_row(const Head *head, int64_t i, int64_t r, int64_t j0)
{
    const bool whole = sees_one_block(head, i);
    float *p = head->p + r * BLOCK, *dp = head->dp + r * BLOCK;
    const float top = whole ? largest_score(p) : head->top[r];
    float factors[BLOCK], total = 0.0f, sum = 0.0f;

    if (head->loop->drops)
        drop_factors(head, factors, i, j0);
    else
        for (int j = 0; j < BLOCK; j++)
            factors[j] = 1.0f;
#pragma omp simd reduction(+ : total)
    for (int j = 0; j < BLOCK; j++) {
        /* No score is above the logarithm of the sum, but for its rounding, which of huge scores is
         * huge. */
        const float below = p[j] - top;

        p[j] = vec_exp(below > 0.0f ? 0.0f : below);
        dp[j] *= factors[j];
        total += p[j];
    }
    const float scale = whole && total != 0.0f ? 1.0f / total : 1.0f;
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < BLOCK; j++) {
        p[j] *= scale;
        sum += p[j] * dp[j];
    }
    const float delta = whole ? sum : head->sum[r];
#pragma omp simd
    for (int j = 0; j < BLOCK; j++) {
        dp[j] = p[j] * (dp[j] - delta);
        p[j] *= factors[j];
    }
}

/* Destination of the gradients of query i's scores. */
static float *scores_grad(const Head *head, int64_t i)
{
    const KilnAttentionSizes *s = &head->loop->s;

    return head->loop->dscores + ((head->b * s->heads + head->h) * s->queries + i) * s->keys;
}

static void backward_block(const Head *head, int64_t i0, int64_t rows, int64_t j0)
{
    const KilnAttentionProducts *products = head->products;
    const int64_t left = head->loop->s.keys - j0, n = left < BLOCK ? left : BLOCK;

    scores(head, i0, rows, j0);
    products->weights_grad(head, rows, j0);
    for (int64_t r = 0; r < rows; r++) {
        backward_row(head, i0 + r, r, j0);
        if (head->loop->dscores != NULL && head->part->query_grads)
            memcpy(scores_grad(head, i0 + r) + j0, head->dp + r * BLOCK, (size_t)n * sizeof(float));
    }
    if (head->part->key_grads)
        products->key_grads(head, rows, j0);
    if (head->part->query_grads)
        products->query_grads(head, rows, j0);
}

/* sum(P·dP) of a row is dy·y; a fully masked row has P = 0. */
static void prepare_row(const Head *head, int64_t i, int64_t r)
{
    const KilnAttentionLoop *loop = head->loop;
    const float lse = loop->lse_in[(head->b * loop->s.heads + head->h) * loop->s.queries + i];

    head->sum[r] = dot(loop->dy, loop->y, kiln_attention_at(loop->s.y, head->b, head->h, i),
                       loop->s.width);
    head->top[r] = lse == -INFINITY ? INFINITY : lse;
}

static void backward_queries(const Head *head, int64_t i0, int64_t rows)
{
    const KilnAttentionLoop *loop = head->loop;
    const KilnAttentionSizes *s = &loop->s;
    const int64_t seen = first_block(head, i0, rows), part = head->part->key * BLOCK;
    const int64_t first = seen > part ? seen : part, end = head->part->key_end * BLOCK;

    if (!head->part->query_grads && (first >= end || !in_reach(loop, i0, rows, first)))
        return;
    head->products->pack_queries(head, i0, rows, true);
    for (int64_t r = 0; r < rows; r++)
        prepare_row(head, i0 + r, r);
    memset(head->y, 0, (size_t)(BLOCK * head->width) * sizeof(float));
    if (loop->dscores != NULL && head->part->query_grads) /* fully masked blocks stay 0 */
        memset(scores_grad(head, i0), 0, (size_t)(rows * s->keys) * sizeof(float));
    for (int64_t j0 = first; j0 < end && in_reach(loop, i0, rows, j0); j0 += BLOCK)
        backward_block(head, i0, rows, j0);
    if (head->part->query_grads)
        store_rows(loop->dq, kiln_attention_at(s->q, head->b, head->h, i0), s->q.row, head->y, head,
                   rows, loop->scale);
}

/* Stores the part's rows of dk or dv. */
static void store_keys(const Head *head, KilnAttentionRows to, KilnAttentionView view,
                       const float *from, float factor)
{
    const KilnAttentionPart *part = head->part;
    const int64_t first = part->key * BLOCK, all = head->loop->s.keys;
    const int64_t end = part->key_end * BLOCK < all ? part->key_end * BLOCK : all;

    store_rows(to, kiln_attention_at(view, part->b, part->g, first), view.row,
               from + first * head->width, head, end - first, factor);
}

static void backward(const KilnAttentionLoop *loop, float *scratch, const KilnAttentionPart *part)
{
    Head head = { .part = part, .b = part->b };

    lay_out(&head, loop, true, scratch);
    const size_t bytes = (size_t)(head.keys * head.width) * sizeof(float);
    head.products->pack_head(&head, part->g, true);
    memset(head.dk, 0, bytes);
    memset(head.dv, 0, bytes);
    each_queries(&head, backward_queries);
    if (!part->key_grads)
        return;
    store_keys(&head, loop->dk, loop->s.k, head.dk, loop->scale);
    store_keys(&head, loop->dv, loop->s.v, head.dv, 1.0f);
}

const KilnAttentionLoops KILN_LOOPS(attention_loops) = {
    .scratch = scratch_floats,
    .forward = forward,
    .backward = backward,
};
