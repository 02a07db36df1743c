/* Attention, rotary positions, recurrent layers, embeddings, CTC, conditional random fields, and
 * caches of decoding. */
#include "tests/fuzz/graphs/row.h"

enum { CAUSAL = 1, HEADS_FIRST = 2, SCALED = 4, DROPOUT = 8 };

/* Mask, padding, key and positions are inputs 3 to 6. */
static void draw_attention(Draw *draw, Item *item, int64_t batch, int64_t rows, int64_t keys)
{
    item->arg[0] = draw_below(draw, 16) & ~(draw_chance(draw, 50) ? DROPOUT : 0);
    if (draw_chance(draw, 25))
        item->in[3] = draw_chance(draw, 50) ? draw_mask(draw, KILN_SHAPE(batch, 1, rows, keys))
                                            : draw_param(draw, KILN_SHAPE(rows, keys));
    if (draw_chance(draw, 20))
        item->in[4] = draw_mask(draw, KILN_SHAPE(batch, keys));
    if ((item->arg[0] & DROPOUT) != 0)
        item->in[5] = draw_index(draw, KILN_SHAPE(2), 0, 1000);
    if (draw_chance(draw, 25))
        item->in[6] = draw_index(draw, KILN_SHAPE(draw_chance(draw, 50) ? batch : 1, rows), 0,
                                 rows);
}

static KilnAttention attention_of(KilnTensor *const *in, const Item *item)
{
    return (KilnAttention) {
        .causal = (item->arg[0] & CAUSAL) != 0,
        .heads_first = (item->arg[0] & HEADS_FIRST) != 0 && in[1] != NULL,
        .scale = (item->arg[0] & SCALED) != 0 ? 0.3 : 0.0,
        .dropout = (item->arg[0] & DROPOUT) != 0 ? 0.25 : 0.0,
        .stream = 5,
        .mask = in[3],
        .padding = in[4],
        .key = in[5],
    };
}

static KilnShape heads_shape(const Item *item, int64_t batch, int64_t rows, int64_t heads,
                             int64_t size)
{
    return (item->arg[0] & HEADS_FIRST) != 0 ? KILN_SHAPE(batch, heads, rows, size)
                                             : KILN_SHAPE(batch, rows, heads, size);
}

DRAW(attention)
{
    const int64_t batch = draw_between(draw, 1, 2), size = draw_size(draw, 65);
    const int64_t rows = draw_size(draw, 130);
    const int64_t keys = draw_chance(draw, 50) ? rows : draw_size(draw, 130);
    const int64_t heads = draw_between(draw, 1, 2), times = draw_between(draw, 1, 2);

    draw_attention(draw, item, batch, rows, keys);
    item->in[0] = draw_like(draw, heads_shape(item, batch, rows, heads * times, size));
    item->in[1] = draw_like(draw, heads_shape(item, batch, keys, heads, size));
    item->in[2] = draw_like(draw, heads_shape(item, batch, keys, heads, size));
    return true;
}

BUILD(attention)
{
    out[0] = kiln_attention_within(in[0], in[1], in[2], in[6], attention_of(in, item));
}

DRAW(attention_packed)
{
    const int64_t batch = draw_between(draw, 1, 2), rows = draw_size(draw, 130);

    draw_attention(draw, item, batch, rows, rows);
    item->in[0] =
        draw_like(draw, KILN_SHAPE(batch, rows, 3, draw_between(draw, 1, 3), draw_size(draw, 65)));
    return true;
}

BUILD(attention_packed)
{
    out[0] = kiln_attention_packed_within(in[0], in[6], attention_of(in, item));
}

DRAW(rotary)
{
    const int64_t batch = draw_between(draw, 1, 3);

    item->in[0] = draw_like(draw, KILN_SHAPE(batch, draw_size(draw, 33), draw_between(draw, 1, 3),
                                             2 * draw_size(draw, 33)));
    item->in[1] = draw_index(draw, KILN_SHAPE(draw_chance(draw, 50) ? batch : 1), 0, 50);
    for (int i = 0; i < 3; i++)
        item->arg[i] = draw_below(draw, 2);
    item->arg[3] = draw_below(draw, 100);
    return true;
}

BUILD(rotary)
{
    const KilnRotary rotary = { .interleaved = item->arg[0] != 0,
                                .heads_first = item->arg[1] != 0,
                                .first = item->arg[3] };

    out[0] = item->arg[2] != 0 ? kiln_rotary(in[0], rotary) : kiln_rotary_at(in[0], in[1], rotary);
}

/* A cache, written and read. */
DRAW(cache_write)
{
    const int64_t batch = draw_between(draw, 1, 3), rows = draw_between(draw, 1, 5);
    const int64_t heads = draw_between(draw, 1, 3), size = draw_size(draw, 33);
    const int64_t keys = rows + draw_between(draw, 1, 9);

    item->in[0] = draw_variable(draw, KILN_SHAPE(batch, keys, heads, size));
    item->in[1] = draw_like(draw, KILN_SHAPE(batch, rows, heads, size));
    item->in[2] = draw_index(draw, KILN_SHAPE(draw_chance(draw, 50) ? batch : 1), 0,
                             draw_chance(draw, 85) ? keys - rows + 1 : keys);
    item->arg[0] = rows;
    item->arg[1] = keys;
    return true;
}

BUILD(cache_write)
{
    kiln_cache_write(in[0], kiln_detach(in[1]), in[2], 1);
    out[0] = kiln_attention(
        in[1], in[0], in[0],
        (KilnAttention) { .mask = kiln_cache_mask(in[2], item->arg[0], item->arg[1]) });
}

enum { REVERSE = 1, BATCH_FIRST = 2 };

/* p, weight, bias, h0, c0, lengths. */
static void draw_recurrent(Draw *draw, Item *item, int64_t gates)
{
    const int64_t t = draw_between(draw, 1, 6), b = draw_between(draw, 1, 9);
    const int64_t h = draw_size(draw, 48);

    item->arg[0] = draw_below(draw, 4);
    item->in[0] = draw_like(draw, (item->arg[0] & BATCH_FIRST) != 0 ? KILN_SHAPE(b, t, gates * h)
                                                                    : KILN_SHAPE(t, b, gates * h));
    item->in[1] = draw_like(draw, KILN_SHAPE(gates * h, h));
    if (draw_chance(draw, 60))
        item->in[2] = draw_like(draw, KILN_SHAPE(gates * h));
    if (draw_chance(draw, 50)) {
        item->in[3] = draw_like(draw, KILN_SHAPE(b, h));
        item->in[4] = draw_like(draw, KILN_SHAPE(b, h));
    }
    if (draw_chance(draw, 40))
        item->in[5] = draw_index(draw, KILN_SHAPE(b), 0, t + 1);
}

DRAW(lstm)
{
    draw_recurrent(draw, item, 4);
    return true;
}

DRAW(gru)
{
    draw_recurrent(draw, item, 3);
    return true;
}

static KilnRecurrent recurrent_of(KilnTensor *const *in, const Item *item)
{
    return (KilnRecurrent) { .reverse = (item->arg[0] & REVERSE) != 0,
                             .batch_first = (item->arg[0] & BATCH_FIRST) != 0,
                             .h0 = in[3],
                             .c0 = in[4],
                             .lengths = in[5] };
}

BUILD(lstm)
{
    const KilnRecurrentOut result = kiln_lstm(in[0], in[1], recurrent_of(in, item));

    out[0] = result.y;
    out[1] = result.h;
    out[2] = result.c;
}

BUILD(gru)
{
    KilnRecurrent recurrent = recurrent_of(in, item);

    recurrent.c0 = NULL;
    const KilnRecurrentOut result = kiln_gru(in[0], in[1], in[2], recurrent);
    out[0] = result.y;
    out[1] = result.h;
}

/* Rows of a table, by indices of which some may be out of range. */
DRAW(embedding)
{
    const int64_t rows = draw_size(draw, 65);

    item->in[0] = draw_like(draw, KILN_SHAPE(rows, draw_size(draw, 65)));
    item->in[1] = draw_index(draw, draw_shape(draw, 1, 2), 0, rows + draw_chance(draw, 5));
    item->arg[0] = draw_between(draw, -1, rows - 1);
    return draw_count_of(draw, item->in[1]) * draw_dim_of(draw, item->in[0], 1) < 200000;
}
BUILD_TWO(embedding, kiln_embedding(a, b, item->arg[0]))

DRAW(embedding_bag)
{
    const int64_t rows = draw_size(draw, 65), places = draw_between(draw, 1, 40);
    const bool offsets = draw_chance(draw, 50);
    const KilnShape index = offsets ? KILN_SHAPE(places)
                                    : KILN_SHAPE(draw_between(draw, 1, 9), places);

    item->in[0] = draw_like(draw, KILN_SHAPE(rows, draw_size(draw, 65)));
    item->in[1] = draw_index(draw, index, 0, rows);
    item->in[2] = draw_like(draw, index);
    item->arg[0] = draw_below(draw, 4);
    item->arg[1] = draw_between(draw, -1, rows - 1);
    item->arg[2] = offsets ? draw_between(draw, 1, places) : 0;
    return true;
}

BUILD(embedding_bag)
{
    KilnTensor *offsets = NULL;

    if (item->arg[2] != 0)
        offsets = kiln_arange(kiln_tensor_graph(in[0]), KILN_I32, 0.0, (double)item->arg[2],
                              (kiln_tensor_dim(in[1], 0) + item->arg[2] - 1) / item->arg[2]);
    out[0] = item->arg[0] < 3
                 ? kiln_embedding_bag(in[0], in[1], offsets, (KilnBagMode)item->arg[0],
                                      item->arg[1])
                 : kiln_embedding_bag_weighted(in[0], in[1], offsets, in[2], item->arg[1]);
}

DRAW(ctc)
{
    const int64_t t = draw_between(draw, 2, 12), n = draw_between(draw, 1, 4);
    const int64_t c = draw_between(draw, 2, 20), s = draw_between(draw, 1, t / 2);

    item->in[0] = draw_like(draw, KILN_SHAPE(t, n, c));
    item->in[1] = draw_index(draw, KILN_SHAPE(n, s), 0, c - 1);
    item->in[2] = draw_index(draw, KILN_SHAPE(n), t / 2, t + 1);
    item->in[3] = draw_index(draw, KILN_SHAPE(n), 0, s + 1);
    item->arg[0] = c - 1;
    item->arg[1] = draw_below(draw, 3);
    return true;
}

BUILD(ctc)
{
    const KilnCtc options = { .blank = item->arg[0],
                              .zero_infinity = true,
                              .reduction = (KilnReduction)item->arg[1] };

    out[0] = kiln_ctc(kiln_log_softmax(in[0], -1), in[1], in[2], in[3], options);
}

/* Emissions, start, end, transitions, lengths, tags. */
static void draw_crf(Draw *draw, Item *item)
{
    const int64_t b = draw_between(draw, 1, 9), t = draw_between(draw, 1, 12);
    const int64_t k = draw_between(draw, 1, 20);

    item->in[0] = draw_like(draw, KILN_SHAPE(b, t, k));
    item->in[1] = draw_like(draw, KILN_SHAPE(k));
    item->in[2] = draw_like(draw, KILN_SHAPE(k));
    item->in[3] = draw_like(draw, KILN_SHAPE(k, k));
    item->in[4] = draw_index(draw, KILN_SHAPE(b), 1, t + 1);
    item->in[5] = draw_index(draw, KILN_SHAPE(b, t), 0, k);
}

DRAW(crf_loss)
{
    draw_crf(draw, item);
    return true;
}

BUILD(crf_loss)
{
    out[0] = kiln_crf_loss(in[0], in[5], in[4], in[1], in[2], in[3]);
}

/* Of small integers, so that sums are exact and ties are many. */
DRAW(crf_decode)
{
    const int64_t b = draw_between(draw, 1, 9), t = draw_between(draw, 1, 12);
    const int64_t k = draw_between(draw, 1, 20);
    const KilnShape shapes[] = { KILN_SHAPE(b, t, k), KILN_SHAPE(k), KILN_SHAPE(k),
                                 KILN_SHAPE(k, k) };

    for (int i = 0; i < 4; i++)
        item->in[i] = draw_leaf(draw, LEAF_INPUT, VALUES_INTEGERS, shapes[i]);
    item->in[4] = draw_index(draw, KILN_SHAPE(b), 0, t + 1);
    return true;
}

BUILD(crf_decode)
{
    out[0] = kiln_crf_decode(in[0], in[4], in[1], in[2], in[3]);
}

DRAW(dropout)
{
    item->in[0] = draw_float(draw, 0, 4);
    item->in[1] = draw_index(draw, KILN_SHAPE(2), 0, 1000);
    item->num[0] = 0.25 * (double)draw_below(draw, 4);
    item->arg[0] = draw_below(draw, 2);
    return true;
}

BUILD(dropout)
{
    KilnGraph *graph = kiln_tensor_graph(in[0]);

    out[0] = item->arg[0] != 0
                 ? kiln_dropout_rate(in[0], kiln_graph_scalar(graph, item->num[0]), in[1], 7)
                 : kiln_dropout(in[0], item->num[0], in[1], 7);
}

DRAW(random)
{
    item->in[0] = draw_float(draw, 0, 4);
    item->in[1] = draw_index(draw, KILN_SHAPE(2), 0, 1000);
    item->arg[0] = draw_below(draw, 3);
    return true;
}

BUILD(random)
{
    const KilnShape shape = *kiln_tensor_shape(in[0]);

    out[0] = item->arg[0] == 0   ? kiln_add(in[0], kiln_uniform(shape, -0.5, 1.5, in[1], 3))
             : item->arg[0] == 1 ? kiln_mul(in[0], kiln_normal(shape, 0.25, 2.0, in[1], 3))
                                 : kiln_bernoulli(in[0], in[1], 3); /* 0 or 1 outside of [0, 1] */
}

static const Row table[] = {
    { "attention", row_attention, build_attention, 0, 56, true, true },
    { "attention", row_attention, build_attention, 0, 56, true, true },
    { "attention_packed", row_attention_packed, build_attention_packed, 0, 56, true, true },
    { "rotary", row_rotary, build_rotary, 0, 0, false, false },
    { "cache_write", row_cache_write, build_cache_write, 0, 0, true, false },
    { "lstm", row_lstm, build_lstm, 0, 60, true, true },
    { "gru", row_gru, build_gru, 0, 60, true, true },
    { "embedding", row_embedding, build_embedding, 0, 0, false, false },
    { "embedding_bag", row_embedding_bag, build_embedding_bag, 0, 0, false, false },
    { "ctc", row_ctc, build_ctc, 0, 0, true, false },
    { "crf_loss", row_crf_loss, build_crf_loss, 0, 0, false, false },
    { "crf_decode", row_crf_decode, build_crf_decode, 0, 0, false, false },
    { "dropout", row_dropout, build_dropout, 0, 0, false, false },
    { "random", row_random, build_random, 0, 0, true, false },
};
ROWS(sequence)
