/* Products of attention blocks in f32, with vectors. Included by attention.c, which is compiled
 * once per level. */
#ifndef KILN_BACKEND_CPU_ISA_SEQUENCE_ATTENTION_VECTORS_H
#define KILN_BACKEND_CPU_ISA_SEQUENCE_ATTENTION_VECTORS_H

#include "backend/cpu/isa/sequence/attention_head.h"
#include "backend/cpu/isa/small_gemm.h"
#include "backend/cpu/isa/vector.h"

/* Copies rows of one head into scratch, padded with zeros to its width. */
static void copy_rows(const KilnAttentionHead *head, float *to, KilnAttentionRows from,
                      int64_t first, int64_t stride, int64_t rows)
{
    const int64_t columns = head->loop->s.width;

    for (int64_t r = 0; r < rows; r++, first += stride, to += head->width)
        for (int64_t c = 0; c < head->width; c += KILN_LANES) {
            const int64_t left = columns - c;
            const int lanes = left >= KILN_LANES ? KILN_LANES : left > 0 ? (int)left : 0;

            kiln_store_lanes(to, c, kiln_load_lanes(from.data, first + c, lanes, from.bf16),
                             KILN_LANES, false);
        }
}

/* Copies the keys or values of a head as rows, padding the last block with zeros. */
static void copy_head(const KilnAttentionHead *head, float *to, KilnAttentionRows x,
                      KilnAttentionView view, int64_t g)
{
    const int64_t keys = head->loop->s.keys;

    copy_rows(head, to, x, kiln_attention_at(view, head->b, g, 0), view.row, keys);
    memset(to + keys * head->width, 0, (size_t)((head->keys - keys) * head->width) * sizeof(float));
}

/* The same transposed, in panels; uses the memory of q for a panel's rows. */
static void transpose_head(const KilnAttentionHead *head, float *panels, KilnAttentionRows x,
                           KilnAttentionView view, int64_t g)
{
    const int64_t keys = head->loop->s.keys, width = head->loop->s.width;
    float *some = head->q;

    for (int64_t j = 0; j < head->keys; j += PANEL) {
        const int64_t rows = keys - j < PANEL ? keys - j : PANEL;

        copy_rows(head, some, x, kiln_attention_at(view, head->b, g, j), view.row, rows);
        pack_transposed(panels + j * width, PANEL, some, head->width, rows, width);
    }
}

static void vectors_pack_head(const KilnAttentionHead *head, int64_t g, bool backward)
{
    const KilnAttentionLoop *loop = head->loop;

    transpose_head(head, head->k, loop->k, loop->s.k, g);
    if (!backward) {
        copy_head(head, head->v, loop->v, loop->s.v, g);
        return;
    }
    transpose_head(head, head->v, loop->v, loop->s.v, g);
    copy_head(head, head->k_across, loop->k, loop->s.k, g);
}

static void vectors_pack_queries(const KilnAttentionHead *head, int64_t i0, int64_t rows,
                                 bool backward)
{
    const KilnAttentionLoop *loop = head->loop;
    const KilnAttentionView q = loop->s.q, y = loop->s.y;

    copy_rows(head, head->q, loop->q, kiln_attention_at(q, head->b, head->h, i0), q.row, rows);
    if (backward)
        copy_rows(head, head->dy, loop->dy, kiln_attention_at(y, head->b, head->h, i0), y.row,
                  rows);
}

/* c [rows, block] = a · bᵀ, with b in panels. */
static void block_of_products(const KilnAttentionHead *head, float *c, const float *a,
                              const float *panels, int64_t rows, int64_t j0)
{
    const int64_t width = head->loop->s.width;

    tile_product(&(Tile) { .c = c,
                           .c_row = KILN_ATTENTION_BLOCK,
                           .a = a,
                           .a_row = head->width,
                           .a_step = 1,
                           .b = panels + j0 * width,
                           .b_panel = width * PANEL,
                           .b_step = PANEL,
                           .m = rows,
                           .n = KILN_ATTENTION_BLOCK,
                           .k = width });
}

/* to [m, width] += the block (or its transpose) · rows. */
static void add_product(const KilnAttentionHead *head, float *to, int64_t m, const float *block,
                        bool transposed, int64_t k, const float *rows)
{
    tile_product(&(Tile) { .c = to,
                           .c_row = head->width,
                           .a = block,
                           .a_row = transposed ? 1 : KILN_ATTENTION_BLOCK,
                           .a_step = transposed ? KILN_ATTENTION_BLOCK : 1,
                           .b = rows,
                           .b_panel = PANEL,
                           .b_step = head->width,
                           .m = m,
                           .n = head->width,
                           .k = k,
                           .add = true });
}

static void vectors_scores(const KilnAttentionHead *head, int64_t rows, int64_t j0)
{
    block_of_products(head, head->p, head->q, head->k, rows, j0);
}

static void vectors_weigh(const KilnAttentionHead *head, int64_t rows, int64_t j0)
{
    add_product(head, head->y, rows, head->p, false, KILN_ATTENTION_BLOCK,
                (const float *)head->v + j0 * head->width);
}

static void vectors_weights_grad(const KilnAttentionHead *head, int64_t rows, int64_t j0)
{
    block_of_products(head, head->dp, head->dy, head->v, rows, j0);
}

static void vectors_key_grads(const KilnAttentionHead *head, int64_t rows, int64_t j0)
{
    const int64_t keys = KILN_ATTENTION_BLOCK, at = j0 * head->width;

    add_product(head, head->dv + at, keys, head->p, true, rows, head->dy);
    add_product(head, head->dk + at, keys, head->dp, true, rows, head->q);
}

static void vectors_query_grads(const KilnAttentionHead *head, int64_t rows, int64_t j0)
{
    add_product(head, head->y, rows, head->dp, false, KILN_ATTENTION_BLOCK,
                (const float *)head->k_across + j0 * head->width);
}

static const KilnAttentionProducts kiln_attention_vectors = {
    .pack_head = vectors_pack_head,
    .pack_queries = vectors_pack_queries,
    .scores = vectors_scores,
    .weigh = vectors_weigh,
    .weights_grad = vectors_weights_grad,
    .key_grads = vectors_key_grads,
    .query_grads = vectors_query_grads,
};

#endif
