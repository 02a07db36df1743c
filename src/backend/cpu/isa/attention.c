/* Attention in blocks of queries and keys (Dao et al. 2022): a block of scaled
 * products is made, turned into probabilities and used up while it is in the
 * first-level cache. One thread works on one head of keys and values, so nothing is
 * shared. What it reads more than once is copied first, so that rows lie close
 * whatever the layout of the tensors. */
#include "backend/cpu/isa/attention.h"

#include <math.h>

#include "backend/cpu/isa/philox.h"
#include "backend/cpu/isa/tile.h"
#include "backend/cpu/isa/vecmath.h"
#include "tensor/bf16.h"

enum { BLOCK = 64 /* queries, and keys; as many random words are drawn at once */ };

/* Scratch: the head's keys and values, a block of queries and of products. */
typedef struct Head {
    const KilnAttentionLoop *loop;
    int64_t b, h;             /* batch element, head of q */
    int64_t width, keys;      /* of copies: multiples of PANEL and BLOCK */
    float *k_panels;          /* kᵀ in panels */
    float *v_panels;          /* backward: vᵀ in panels */
    float *v_rows;            /* forward: v in rows */
    float *k_rows;            /* backward: k in rows */
    float *dk, *dv;           /* backward: sums in rows */
    float *q, *dy, *y, *dq;   /* [BLOCK, width]: q is scaled */
    float *p, *dp;            /* [BLOCK, BLOCK] */
    float *top, *sum, *delta; /* [BLOCK] */
} Head;

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* A part of the scratch; NULL while only its size is counted. */
static float *take(float *scratch, int64_t *used, int64_t n)
{
    float *taken = scratch != NULL ? scratch + *used : NULL;

    *used += round_up(n, 16);
    return taken;
}

/* Lay the scratch out; the floats it takes. */
static int64_t lay_out(Head *head, const KilnAttentionSizes *s, bool backward, float *scratch)
{
    int64_t used = 0;

    head->width = round_up(s->width, PANEL);
    head->keys = round_up(s->keys, BLOCK);
    const int64_t rows = head->keys * head->width, block = BLOCK * head->width;
    head->k_panels = take(scratch, &used, rows);
    head->q = take(scratch, &used, block);
    head->p = take(scratch, &used, BLOCK * BLOCK);
    head->top = take(scratch, &used, BLOCK);
    if (!backward) {
        head->v_rows = take(scratch, &used, rows);
        head->y = take(scratch, &used, block);
        head->sum = take(scratch, &used, BLOCK);
        return used;
    }
    head->v_panels = take(scratch, &used, rows);
    head->k_rows = take(scratch, &used, rows);
    head->dk = take(scratch, &used, rows);
    head->dv = take(scratch, &used, rows);
    head->dy = take(scratch, &used, block);
    head->dq = take(scratch, &used, block);
    head->dp = take(scratch, &used, BLOCK * BLOCK);
    head->delta = take(scratch, &used, BLOCK);
    return used;
}

static int64_t scratch_floats(const KilnAttentionSizes *s, bool backward)
{
    Head head = { 0 };

    return lay_out(&head, s, backward, NULL);
}

/* Rows of one head from element `first` on into scratch of `width` columns, times `factor`. */
static void copy_rows(float *to, int64_t width, KilnAttentionRows from, int64_t first,
                      int64_t stride, int64_t columns, int64_t rows, float factor)
{
    for (int64_t r = 0; r < rows; r++, first += stride, to += width) {
        const float *wide = (const float *)from.data + first;
        const uint16_t *narrow = (const uint16_t *)from.data + first;

        if (from.narrow)
            for (int64_t c = 0; c < columns; c++)
                to[c] = factor * kiln_bf16_to(narrow[c]);
        else
            for (int64_t c = 0; c < columns; c++)
                to[c] = factor * wide[c];
        for (int64_t c = columns; c < width; c++)
            to[c] = 0.0f;
    }
}

static void store_rows(KilnAttentionRows to, int64_t first, int64_t stride, const float *from,
                       int64_t width, int64_t columns, int64_t rows, float factor)
{
    for (int64_t r = 0; r < rows; r++, first += stride, from += width) {
        float *wide = (float *)to.data + first;
        uint16_t *narrow = (uint16_t *)to.data + first;

        if (to.narrow)
            for (int64_t c = 0; c < columns; c++)
                narrow[c] = kiln_bf16_of(factor * from[c]);
        else
            for (int64_t c = 0; c < columns; c++)
                wide[c] = factor * from[c];
    }
}

static int64_t at(KilnAttentionView view, int64_t b, int64_t h, int64_t t)
{
    return b * view.batch + h * view.head + t * view.row;
}

static void zero_tail(float *rows, const Head *head)
{
    const int64_t keys = head->loop->s.keys;

    memset(rows + keys * head->width, 0,
           (size_t)((head->keys - keys) * head->width) * sizeof(float));
}

/* The keys (or values) of a head, in rows. */
static void copy_head(const Head *head, float *rows, KilnAttentionRows x, KilnAttentionView view,
                      int64_t g)
{
    copy_rows(rows, head->width, x, at(view, head->b, g, 0), view.row, head->loop->s.width,
              head->loop->s.keys, 1.0f);
    zero_tail(rows, head);
}

/* Panels of the transposed rows: element (d, j). Panels of the padding are zero. */
static void pack_transposed(const Head *head, float *panels, const float *rows)
{
    tile_pack(panels, rows, 1, head->width, head->loop->s.width, head->keys);
}

/* ---- Probabilities of a block ---------------------------------------------------- */

/* How many keys of the block starting at j0 query i may look at, by position alone. */
static int64_t visible(const KilnAttentionLoop *loop, int64_t i, int64_t j0)
{
    int64_t n = loop->s.keys - j0;

    if (loop->causal && i + 1 - j0 < n)
        n = i + 1 - j0;
    return n < 0 ? 0 : n > BLOCK ? BLOCK : n;
}

static void mask_row(const Head *head, float *s, int64_t i, int64_t j0, int64_t n)
{
    const KilnAttentionLoop *loop = head->loop;
    const int64_t place = head->b * loop->mask.batch + head->h * loop->mask.head +
                          i * loop->mask.row + j0 * loop->mask.column;

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
}

/* Scaled and masked products of queries i0 ... and keys j0 ... in head->p. */
static void products(const Head *head, int64_t i0, int64_t rows, int64_t j0)
{
    const int64_t width = head->loop->s.width;

    tile_product(&(Tile) { .c = head->p,
                           .c_row = BLOCK,
                           .a = head->q,
                           .a_row = head->width,
                           .a_step = 1,
                           .b = head->k_panels + j0 * width,
                           .b_panel = width * PANEL,
                           .b_step = PANEL,
                           .m = rows,
                           .n = BLOCK,
                           .k = width });
    for (int64_t r = 0; r < rows; r++)
        mask_row(head, head->p + r * BLOCK, i0 + r, j0, visible(head->loop, i0 + r, j0));
}

/* What dropout multiplies the block's probabilities by: 0, or 1/(1 - p). */
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

/* One row of products into probabilities up to a common factor; what the row
 * has so far is scaled to the new maximum. */
static void softmax_row(const Head *head, int64_t r)
{
    float *p = head->p + r * BLOCK, *y = head->y + r * head->width;
    const float before = head->top[r];
    float top = before, sum = 0.0f;

#pragma omp simd reduction(max : top)
    for (int j = 0; j < BLOCK; j++)
        top = p[j] > top ? p[j] : top;
    /* A row that has seen nothing yet: its -inf must not become NaN, a NaN must stay. */
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

    products(head, i0, rows, j0);
    for (int64_t r = 0; r < rows; r++) {
        softmax_row(head, r);
        if (!head->loop->drops)
            continue;
        drop_factors(head, factors, i0 + r, j0);
        for (int j = 0; j < BLOCK; j++)
            head->p[r * BLOCK + j] *= factors[j];
    }
    tile_product(&(Tile) { .c = head->y,
                           .c_row = head->width,
                           .a = head->p,
                           .a_row = BLOCK,
                           .a_step = 1,
                           .b = head->v_rows + j0 * head->width,
                           .b_panel = PANEL,
                           .b_step = head->width,
                           .m = rows,
                           .n = head->width,
                           .k = BLOCK,
                           .add = true });
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

    copy_rows(head->q, head->width, loop->q, at(s->q, head->b, head->h, i0), s->q.row, s->width,
              rows, loop->scale);
    memset(head->y, 0, (size_t)(rows * head->width) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        head->top[r] = -INFINITY;
        head->sum[r] = 0.0f;
    }
    for (int64_t j0 = 0; in_reach(loop, i0, rows, j0); j0 += BLOCK)
        forward_block(head, i0, rows, j0);
    for (int64_t r = 0; r < rows; r++) {
        const float sum = head->sum[r];

        store_rows(loop->y, at(s->y, head->b, head->h, i0 + r), 0, head->y + r * head->width, 0,
                   s->width, 1, sum == 0.0f ? 0.0f : 1.0f / sum);
        loop->lse[(head->b * s->heads + head->h) * s->queries + i0 + r] =
            sum == 0.0f ? -INFINITY : head->top[r] + logf(sum);
    }
}

static void forward(const KilnAttentionLoop *loop, float *scratch, int64_t b, int64_t g)
{
    const KilnAttentionSizes *s = &loop->s;
    const int64_t group = s->heads / s->kv_heads;
    Head head = { .loop = loop, .b = b };

    lay_out(&head, s, false, scratch);
    copy_head(&head, head.v_rows, loop->k, s->k, g); /* for the panels; then v goes there */
    pack_transposed(&head, head.k_panels, head.v_rows);
    copy_head(&head, head.v_rows, loop->v, s->v, g);
    for (head.h = g * group; head.h < (g + 1) * group; head.h++)
        for (int64_t i0 = 0; i0 < s->queries; i0 += BLOCK)
            forward_queries(&head, i0, s->queries - i0 < BLOCK ? s->queries - i0 : BLOCK);
}

/* ---- Backward -------------------------------------------------------------------- */

/* Make the block's probabilities again and turn dp, the gradient of what the
 * values were weighed with, into the gradient of the scaled products. */
static void backward_row(const Head *head, int64_t i, int64_t r, int64_t j0)
{
    float *p = head->p + r * BLOCK, *dp = head->dp + r * BLOCK;
    const float lse = head->top[r], delta = head->delta[r];
    float factors[BLOCK];

    if (head->loop->drops)
        drop_factors(head, factors, i, j0);
    else
        for (int j = 0; j < BLOCK; j++)
            factors[j] = 1.0f;
#pragma omp simd
    for (int j = 0; j < BLOCK; j++) {
        const float probability = vec_exp(p[j] - lse);

        p[j] = probability * factors[j];
        dp[j] = probability * (dp[j] * factors[j] - delta);
    }
}

/* to [n, width] = or += pᵀ (or p) of the block times rows. */
static void block_product(float *to, int64_t m, const float *block, bool transposed, int64_t k,
                          const float *rows, int64_t width, bool add)
{
    tile_product(&(Tile) { .c = to,
                           .c_row = width,
                           .a = block,
                           .a_row = transposed ? 1 : BLOCK,
                           .a_step = transposed ? BLOCK : 1,
                           .b = rows,
                           .b_panel = PANEL,
                           .b_step = width,
                           .m = m,
                           .n = width,
                           .k = k,
                           .add = add });
}

static void backward_block(const Head *head, int64_t i0, int64_t rows, int64_t j0)
{
    const int64_t width = head->loop->s.width, wide = head->width;

    products(head, i0, rows, j0);
    tile_product(&(Tile) { .c = head->dp,
                           .c_row = BLOCK,
                           .a = head->dy,
                           .a_row = wide,
                           .a_step = 1,
                           .b = head->v_panels + j0 * width,
                           .b_panel = width * PANEL,
                           .b_step = PANEL,
                           .m = rows,
                           .n = BLOCK,
                           .k = width });
    for (int64_t r = 0; r < rows; r++)
        backward_row(head, i0 + r, r, j0);
    block_product(head->dv + j0 * wide, BLOCK, head->p, true, rows, head->dy, wide, true);
    block_product(head->dk + j0 * wide, BLOCK, head->dp, true, rows, head->q, wide, true);
    block_product(head->dq, rows, head->dp, false, BLOCK, head->k_rows + j0 * wide, wide, true);
}

/* sum(P·dP) of a row is dy·y; a row that saw nothing has P = 0 everywhere. */
static void prepare_row(const Head *head, int64_t i, int64_t r)
{
    const KilnAttentionLoop *loop = head->loop;
    const float *y = head->dq + r * head->width;
    const float *dy = head->dy + r * head->width;
    const float lse = loop->lse_in[(head->b * loop->s.heads + head->h) * loop->s.queries + i];
    float delta = 0.0f;

#pragma omp simd reduction(+ : delta)
    for (int64_t d = 0; d < loop->s.width; d++)
        delta += dy[d] * y[d];
    head->delta[r] = delta;
    head->top[r] = lse == -INFINITY ? INFINITY : lse;
}

static void backward_queries(const Head *head, int64_t i0, int64_t rows)
{
    const KilnAttentionLoop *loop = head->loop;
    const KilnAttentionSizes *s = &loop->s;

    copy_rows(head->q, head->width, loop->q, at(s->q, head->b, head->h, i0), s->q.row, s->width,
              rows, loop->scale);
    copy_rows(head->dy, head->width, loop->dy, at(s->y, head->b, head->h, i0), s->y.row, s->width,
              rows, 1.0f);
    copy_rows(head->dq, head->width, loop->y, at(s->y, head->b, head->h, i0), s->y.row, s->width,
              rows, 1.0f); /* for the rows' sums; then dq goes there */
    for (int64_t r = 0; r < rows; r++)
        prepare_row(head, i0 + r, r);
    memset(head->dq, 0, (size_t)(rows * head->width) * sizeof(float));
    for (int64_t j0 = 0; in_reach(loop, i0, rows, j0); j0 += BLOCK)
        backward_block(head, i0, rows, j0);
    store_rows(loop->dq, at(s->q, head->b, head->h, i0), s->q.row, head->dq, head->width, s->width,
               rows, loop->scale);
}

static void backward(const KilnAttentionLoop *loop, float *scratch, int64_t b, int64_t g)
{
    const KilnAttentionSizes *s = &loop->s;
    const int64_t group = s->heads / s->kv_heads;
    Head head = { .loop = loop, .b = b };

    lay_out(&head, s, true, scratch);
    const size_t bytes = (size_t)(head.keys * head.width) * sizeof(float);
    copy_head(&head, head.k_rows, loop->k, s->k, g);
    pack_transposed(&head, head.k_panels, head.k_rows);
    copy_head(&head, head.dv, loop->v, s->v, g); /* for the panels; then sums go there */
    pack_transposed(&head, head.v_panels, head.dv);
    memset(head.dk, 0, bytes);
    memset(head.dv, 0, bytes);
    for (head.h = g * group; head.h < (g + 1) * group; head.h++)
        for (int64_t i0 = 0; i0 < s->queries; i0 += BLOCK)
            backward_queries(&head, i0, s->queries - i0 < BLOCK ? s->queries - i0 : BLOCK);
    store_rows(loop->dk, at(s->k, b, g, 0), s->k.row, head.dk, head.width, s->width, s->keys, 1.0f);
    store_rows(loop->dv, at(s->v, b, g, 0), s->v.row, head.dv, head.width, s->width, s->keys, 1.0f);
}

#define TABLE_OF(isa) kiln_attention_##isa
#define TABLE(isa) TABLE_OF(isa)

const KilnAttentionLoops TABLE(KILN_ISA) = {
    .scratch = scratch_floats,
    .forward = forward,
    .backward = backward,
};
