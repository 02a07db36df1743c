/* Products of attention blocks in bf16: 64 queries by 64 keys are two by two blocks of
 * tiles. Sums are f32; weights are rounded while packed. */
#include "backend/cpu/bf16/tiles.h"
#include "backend/cpu/isa/sequence/attention_head.h"

enum { BLOCK = KILN_ATTENTION_BLOCK, TILES = BLOCK / KILN_TILE_ROWS };

typedef KilnAttentionHead Head;

/* A packed factor from a given tile on, and the tiles between its rows of tiles. */
typedef struct Factor {
    const uint16_t *tiles;
    int64_t line;
} Factor;

/* c [rows, columns] = or += left · rightᵀ, `steps` tiles deep. */
static void multiply(const Head *head, float *c, int64_t stride, Factor left, Factor right,
                     int64_t rows, int64_t columns, int64_t steps, bool add)
{
    const int64_t down = left.line * KILN_TILE_SIZE, across = right.line * KILN_TILE_SIZE;

    for (int64_t i = 0; i < rows; i += KILN_TILE_BLOCK)
        for (int64_t j = 0; j < columns; j += KILN_TILE_BLOCK) {
            const KilnTileSide a = { .first = left.tiles + i / KILN_TILE_ROWS * down,
                                     .second = down,
                                     .step = KILN_TILE_SIZE,
                                     .row = 64 };
            const KilnTileSide b = { .first = right.tiles + j / KILN_TILE_ROWS * across,
                                     .second = across,
                                     .step = KILN_TILE_SIZE,
                                     .row = 64 };

            head->loop->tiles->block(c + i * stride + j, stride, &a, &b, rows - i, steps, 1, add);
        }
}

static int64_t deep(int64_t n)
{
    return (n + KILN_TILE_DEPTH - 1) / KILN_TILE_DEPTH;
}

/* ---- Packing ----------------------------------------------------------------------- */

/* Packs `n` rows of a tensor, summed over their width, padded to `rows`. */
static void pack_rows(const Head *head, void *packed, KilnAttentionRows x, int64_t first,
                      int64_t stride, int64_t n, int64_t rows, bool right)
{
    const KilnTileMatrix matrix = { .data = (const uint16_t *)x.data + first,
                                    .stride = stride,
                                    .rows = n,
                                    .depth = head->loop->s.width };

    kiln_tiles_pack(packed, &matrix, right, 0, rows / KILN_TILE_ROWS);
}

/* The same, summed over the rows. */
static void pack_across(const Head *head, void *packed, KilnAttentionRows x, int64_t first,
                        int64_t stride, int64_t n)
{
    const KilnTileMatrix matrix = { .data = (const uint16_t *)x.data + first,
                                    .across = true,
                                    .stride = stride,
                                    .rows = head->loop->s.width,
                                    .depth = n };

    kiln_tiles_pack(packed, &matrix, true, 0, head->width / KILN_TILE_ROWS);
}

static void pack_head(const Head *head, int64_t g, bool backward)
{
    const KilnAttentionLoop *loop = head->loop;
    const KilnAttentionSizes *s = &loop->s;
    const int64_t k = kiln_attention_at(s->k, head->b, g, 0);
    const int64_t v = kiln_attention_at(s->v, head->b, g, 0);

    pack_rows(head, head->k, loop->k, k, s->k.row, s->keys, head->keys, true);
    if (!backward) {
        pack_across(head, head->v, loop->v, v, s->v.row, s->keys);
        return;
    }
    pack_rows(head, head->v, loop->v, v, s->v.row, s->keys, head->keys, true);
    pack_across(head, head->k_across, loop->k, k, s->k.row, s->keys);
}

static void pack_queries(const Head *head, int64_t i0, int64_t rows, bool backward)
{
    const KilnAttentionLoop *loop = head->loop;
    const KilnAttentionSizes *s = &loop->s;
    const int64_t q = kiln_attention_at(s->q, head->b, head->h, i0);
    const int64_t y = kiln_attention_at(s->y, head->b, head->h, i0);

    pack_rows(head, head->q, loop->q, q, s->q.row, rows, BLOCK, false);
    if (!backward)
        return;
    pack_across(head, head->q_across, loop->q, q, s->q.row, rows);
    pack_rows(head, head->dy, loop->dy, y, s->y.row, rows, BLOCK, false);
    pack_across(head, head->dy_across, loop->dy, y, s->y.row, rows);
}

/* Packs the weights of `rows` queries, or (across) their transpose, as a left factor. */
static Factor pack_weights(const Head *head, const float *weights, int64_t rows, bool across)
{
    const KilnTileMatrix matrix = { .data = weights,
                                    .f32 = true,
                                    .across = across,
                                    .stride = BLOCK,
                                    .rows = across ? BLOCK : rows,
                                    .depth = across ? rows : BLOCK };

    kiln_tiles_pack(head->p_packed, &matrix, false, 0, TILES);
    return (Factor) { head->p_packed, deep(matrix.depth) };
}

/* ---- Products ---------------------------------------------------------------------- */

/* The rows from j0 on, summed over the width. */
static Factor rows_from(const Head *head, const void *packed, int64_t j0)
{
    const int64_t line = deep(head->loop->s.width);

    return (Factor) { (const uint16_t *)packed + j0 / KILN_TILE_ROWS * line * KILN_TILE_SIZE,
                      line };
}

/* The width, summed over the keys from j0 on. */
static Factor keys_from(const Head *head, const void *packed, int64_t j0)
{
    return (Factor) { (const uint16_t *)packed + j0 / KILN_TILE_DEPTH * KILN_TILE_SIZE,
                      deep(head->loop->s.keys) };
}

/* Tiles of keys in the block. */
static int64_t key_steps(const Head *head, int64_t j0)
{
    const int64_t n = deep(head->loop->s.keys - j0), most = BLOCK / KILN_TILE_DEPTH;

    return n < most ? n : most;
}

static void scores(const Head *head, int64_t rows, int64_t j0)
{
    multiply(head, head->p, BLOCK, rows_from(head, head->q, 0), rows_from(head, head->k, j0), rows,
             BLOCK, deep(head->loop->s.width), false);
}

static void weigh(const Head *head, int64_t rows, int64_t j0)
{
    multiply(head, head->y, head->width, pack_weights(head, head->p, rows, false),
             keys_from(head, head->v, j0), rows, head->width, key_steps(head, j0), true);
}

static void weights_grad(const Head *head, int64_t rows, int64_t j0)
{
    multiply(head, head->dp, BLOCK, rows_from(head, head->dy, 0), rows_from(head, head->v, j0),
             rows, BLOCK, deep(head->loop->s.width), false);
}

static void key_grads(const Head *head, int64_t rows, int64_t j0)
{
    const int64_t width = head->width, at = j0 * width, steps = deep(rows);
    const Factor dy = { head->dy_across, steps }, q = { head->q_across, steps };

    multiply(head, head->dv + at, width, pack_weights(head, head->p, rows, true), dy, BLOCK, width,
             steps, true);
    multiply(head, head->dk + at, width, pack_weights(head, head->dp, rows, true), q, BLOCK, width,
             steps, true);
}

static void query_grads(const Head *head, int64_t rows, int64_t j0)
{
    multiply(head, head->y, head->width, pack_weights(head, head->dp, rows, false),
             keys_from(head, head->k_across, j0), rows, head->width, key_steps(head, j0), true);
}

const KilnAttentionProducts kiln_attention_tiles = {
    .pack_head = pack_head,
    .pack_queries = pack_queries,
    .scores = scores,
    .weigh = weigh,
    .weights_grad = weights_grad,
    .key_grads = key_grads,
    .query_grads = query_grads,
};
