/* Products of attention for one query, as when text is generated token by token: each key and value
 * is used once, so they are read where they are. Included by attention.c, which is compiled once
 * per level. */
#ifndef KILN_BACKEND_CPU_ISA_SEQUENCE_ATTENTION_ONE_H
#define KILN_BACKEND_CPU_ISA_SEQUENCE_ATTENTION_ONE_H

#include "backend/cpu/isa/sequence/attention_vectors.h"
#include "backend/cpu/isa/transpose.h"
#include "tensor/bf16.h"

static void row_pack_head(const KilnAttentionHead *head, int64_t g, bool backward)
{
    (void)head, (void)g, (void)backward;
}

static inline Vector row_load(const void *data, int64_t at, bool bf16)
{
    return bf16 ? vector_of_bf16((const uint16_t *)data + at)
                : (Vector) * (const Floats *)((const float *)data + at);
}

static inline float row_element(const void *data, int64_t at, bool bf16)
{
    return bf16 ? kiln_bf16_to(((const uint16_t *)data)[at]) : ((const float *)data)[at];
}

/* q · the n elements at `at`. */
static inline float row_dot(const float *q, const void *data, int64_t at, int64_t n, bool bf16)
{
    Vector sums[2] = { { 0 } };
    float sum = 0.0f;
    int64_t d = 0;

    for (; d + 2 * WIDTH <= n; d += 2 * WIDTH) {
        sums[0] = FMA(*(const Floats *)(q + d), row_load(data, at + d, bf16), sums[0]);
        sums[1] = FMA(*(const Floats *)(q + d + WIDTH), row_load(data, at + d + WIDTH, bf16),
                      sums[1]);
    }
    sums[0] += sums[1];
    for (int lane = 0; lane < WIDTH; lane++)
        sum += sums[0][lane];
    for (; d < n; d++)
        sum += q[d] * row_element(data, at + d, bf16);
    return sum;
}

/* Keys j0 to the end of the block or of all. */
static int64_t row_keys(const KilnAttentionHead *head, int64_t j0)
{
    const int64_t left = head->loop->s.keys - j0;

    return left < KILN_ATTENTION_BLOCK ? left : KILN_ATTENTION_BLOCK;
}

static void row_scores(const KilnAttentionHead *head, int64_t rows, int64_t j0)
{
    const KilnAttentionLoop *loop = head->loop;
    const int64_t n = row_keys(head, j0), step = loop->s.k.row, width = loop->s.width;
    const int64_t at = kiln_attention_at(loop->s.k, head->b, head->part->g, j0);

    (void)rows;
    if (loop->k.bf16)
        for (int64_t j = 0; j < n; j++)
            head->p[j] = row_dot(head->q, loop->k.data, at + j * step, width, true);
    else
        for (int64_t j = 0; j < n; j++)
            head->p[j] = row_dot(head->q, loop->k.data, at + j * step, width, false);
}

/* y += p · n rows of values. */
static inline void row_add(float *y, const float *p, int64_t n, const void *data, int64_t at,
                           int64_t step, int64_t width, bool bf16)
{
    int64_t d = 0;

    for (; d + 2 * WIDTH <= width; d += 2 * WIDTH) {
        Vector sums[2] = { *(Floats *)(y + d), *(Floats *)(y + d + WIDTH) };

        for (int64_t j = 0; j < n; j++) {
            const Vector weight = p[j] - (Vector) { 0 };

            sums[0] = FMA(weight, row_load(data, at + j * step + d, bf16), sums[0]);
            sums[1] = FMA(weight, row_load(data, at + j * step + d + WIDTH, bf16), sums[1]);
        }
        *(Floats *)(y + d) = sums[0];
        *(Floats *)(y + d + WIDTH) = sums[1];
    }
    for (; d < width; d++)
        for (int64_t j = 0; j < n; j++)
            y[d] += p[j] * row_element(data, at + j * step + d, bf16);
}

static void row_weigh(const KilnAttentionHead *head, int64_t rows, int64_t j0)
{
    const KilnAttentionLoop *loop = head->loop;
    const int64_t n = row_keys(head, j0), step = loop->s.v.row, width = loop->s.width;
    const int64_t at = kiln_attention_at(loop->s.v, head->b, head->part->g, j0);

    (void)rows;
    if (loop->v.bf16)
        row_add(head->y, head->p, n, loop->v.data, at, step, width, true);
    else
        row_add(head->y, head->p, n, loop->v.data, at, step, width, false);
}

/* Forward only. */
static const KilnAttentionProducts kiln_attention_one = {
    .pack_head = row_pack_head,
    .pack_queries = vectors_pack_queries,
    .scores = row_scores,
    .weigh = row_weigh,
};

#endif
