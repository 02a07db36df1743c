/* Samples of attention and rotary positions. */
#include "tests/support/ops/case.h"

/* What is in arg[0] of the samples of attention. */
enum {
    ATTENTION_CAUSAL = 1,
    ATTENTION_HEADS_FIRST = 2,
    ATTENTION_SCALED = 4,
    ATTENTION_DROPOUT = 8, /* the last leaf is the key */
    ATTENTION_MASK = 16,   /* the next leaf is a mask */
    ATTENTION_PADDING = 32 /* the next leaf is the padding */
};

static KilnAttention attention_of(KilnTensor *const *leaf, int64_t flags)
{
    KilnAttention attention = {
        .causal = (flags & ATTENTION_CAUSAL) != 0,
        .heads_first = (flags & ATTENTION_HEADS_FIRST) != 0,
        .scale = (flags & ATTENTION_SCALED) != 0 ? 0.3 : 0.0,
        .dropout = (flags & ATTENTION_DROPOUT) != 0 ? 0.25 : 0.0,
        .stream = 5,
    };

    if ((flags & ATTENTION_MASK) != 0)
        attention.mask = *leaf++;
    if ((flags & ATTENTION_PADDING) != 0)
        attention.padding = *leaf++;
    if ((flags & ATTENTION_DROPOUT) != 0)
        attention.key = *leaf++;
    return attention;
}

BUILD(build_attention)
{
    return kiln_attention(leaf[0], leaf[1], leaf[2], attention_of(leaf + 3, arg[0]));
}

/* arg[0]: positions are below it; arg[1]: the flags. */
BUILD(build_attention_within)
{
    return kiln_attention_within(leaf[0], leaf[1], leaf[2], leaf[3],
                                 attention_of(leaf + 4, arg[1]));
}

static const Case cases_attention[] = {
    { "attention", build_attention, "ggg",
      .shape = { SHAPE(2, 3, 2, 4), SHAPE(2, 5, 2, 4), SHAPE(2, 5, 2, 4) } },
    { "attention, causal, heads first", build_attention, "ggg",
      .shape = { SHAPE(1, 2, 5, 3), SHAPE(1, 2, 5, 3), SHAPE(1, 2, 5, 3) },
      .arg = { ATTENTION_CAUSAL | ATTENTION_HEADS_FIRST } },
    { "attention, scaled", build_attention, "ggg",
      .shape = { SHAPE(1, 1, 1, 5), SHAPE(1, 7, 1, 5), SHAPE(1, 7, 1, 5) },
      .arg = { ATTENTION_SCALED } },
    { "attention, dropout", build_attention, "gggl",
      .shape = { SHAPE(2, 5, 2, 3), SHAPE(2, 6, 2, 3), SHAPE(2, 6, 2, 3), SHAPE(2) },
      .arg = { ATTENTION_DROPOUT } },
    { "attention, mask added", build_attention, "gggf",
      .shape = { SHAPE(2, 3, 2, 3), SHAPE(2, 4, 2, 3), SHAPE(2, 4, 2, 3), SHAPE(2, 3, 4) },
      .arg = { ATTENTION_MASK } },
    { "attention, mask added that wants a gradient", build_attention, "gggg",
      .shape = { SHAPE(2, 3, 2, 3), SHAPE(2, 4, 2, 3), SHAPE(2, 4, 2, 3), SHAPE(2, 3, 4) },
      .arg = { ATTENTION_MASK } },
    { "attention, mask of a batch that wants a gradient, causal, padding", build_attention, "ggggm",
      .shape = { SHAPE(2, 5, 4, 3), SHAPE(2, 6, 2, 3), SHAPE(2, 6, 2, 3), SHAPE(2, 1, 1, 6),
                 SHAPE(2, 6) },
      .arg = { ATTENTION_CAUSAL | ATTENTION_MASK | ATTENTION_PADDING } },
    { "attention, blocks, mask that wants a gradient, causal, dropout", build_attention, "ggggl",
      .shape = { SHAPE(2, 2, 129, 33), SHAPE(2, 2, 129, 33), SHAPE(2, 2, 129, 33),
                 SHAPE(2, 129, 129), SHAPE(2) },
      .arg = { ATTENTION_CAUSAL | ATTENTION_HEADS_FIRST | ATTENTION_DROPOUT | ATTENTION_MASK } },
    { "attention, mask and padding", build_attention, "gggmm",
      .shape = { SHAPE(2, 6, 2, 3), SHAPE(2, 5, 2, 3), SHAPE(2, 5, 2, 3), SHAPE(2, 1, 6, 5),
                 SHAPE(2, 5) },
      .arg = { ATTENTION_MASK | ATTENTION_PADDING } },
    { "attention, grouped heads", build_attention, "ggg",
      .shape = { SHAPE(2, 3, 6, 2), SHAPE(2, 4, 2, 2), SHAPE(2, 4, 2, 2) } },
    { "attention, more queries than keys, causal", build_attention, "ggg",
      .shape = { SHAPE(2, 7, 1, 2), SHAPE(2, 4, 1, 2), SHAPE(2, 4, 1, 2) },
      .arg = { ATTENTION_CAUSAL } },
    { "attention, blocks", build_attention, "ggg",
      .shape = { SHAPE(2, 131, 4, 20), SHAPE(2, 197, 2, 20), SHAPE(2, 197, 2, 20) } },
    { "attention within documents", build_attention_within, "gggL",
      .shape = { SHAPE(2, 7, 2, 4), SHAPE(2, 5, 2, 4), SHAPE(2, 5, 2, 4), SHAPE(2, 7) },
      .arg = { 4 } },
    { "attention within documents, grouped heads, causal, blocks", build_attention_within, "gggL",
      .shape = { SHAPE(2, 197, 4, 20), SHAPE(2, 197, 2, 20), SHAPE(2, 197, 2, 20), SHAPE(1, 197) },
      .arg = { 30, ATTENTION_CAUSAL } },
    { "attention, blocks, causal, all options", build_attention, "gggmml",
      .shape = { SHAPE(2, 2, 129, 33), SHAPE(2, 2, 129, 33), SHAPE(2, 2, 129, 33), SHAPE(129, 129),
                 SHAPE(2, 129), SHAPE(2) },
      .arg = { ATTENTION_CAUSAL | ATTENTION_HEADS_FIRST | ATTENTION_DROPOUT | ATTENTION_MASK |
               ATTENTION_PADDING } },
};
SAMPLES(attention)
SAMPLES_OF(attention_grad, attention)

BUILD(build_attention_packed)
{
    return kiln_attention_packed(leaf[0], attention_of(leaf + 1, arg[0]));
}

BUILD(build_attention_packed_within)
{
    return kiln_attention_packed_within(leaf[0], leaf[1], attention_of(leaf + 2, arg[1]));
}

static const Case cases_attention_packed[] = {
    { "attention_packed", build_attention_packed, "g", .shape = { SHAPE(2, 5, 3, 2, 3) } },
    { "attention_packed, causal", build_attention_packed, "g", .shape = { SHAPE(1, 67, 3, 2, 16) },
      .arg = { ATTENTION_CAUSAL } },
    { "attention_packed, padding and dropout", build_attention_packed, "gml",
      .shape = { SHAPE(2, 4, 3, 2, 3), SHAPE(2, 4), SHAPE(2) },
      .arg = { ATTENTION_PADDING | ATTENTION_DROPOUT } },
    { "attention_packed, mask that wants a gradient", build_attention_packed, "gg",
      .shape = { SHAPE(2, 5, 3, 2, 3), SHAPE(2, 1, 5) },
      .arg = { ATTENTION_CAUSAL | ATTENTION_MASK } },
    { "attention_packed within documents", build_attention_packed_within, "gLl",
      .shape = { SHAPE(2, 9, 3, 2, 3), SHAPE(2, 9), SHAPE(2) },
      .arg = { 5, ATTENTION_CAUSAL | ATTENTION_DROPOUT } },
    { "attention_packed within documents, blocks", build_attention_packed_within, "gL",
      .shape = { SHAPE(1, 200, 3, 2, 33), SHAPE(1, 200) }, .arg = { 40, ATTENTION_CAUSAL } },
    { "attention_packed, GPT's heads", build_attention_packed, "g",
      .shape = { SHAPE(1, 256, 3, 2, 64) }, .arg = { ATTENTION_CAUSAL } },
};
SAMPLES(attention_packed)
SAMPLES_OF(attention_packed_grad, attention_packed)

BUILD(build_rotary)
{
    const KilnRotary rotary = { .interleaved = arg[0] != 0,
                                .heads_first = arg[1] != 0,
                                .first = arg[2],
                                .base = (double)arg[3] };

    return kiln_rotary(leaf[0], rotary);
}

/* arg[0]: positions are below it. */
BUILD(build_rotary_at)
{
    return kiln_rotary_at(leaf[0], leaf[1],
                          (KilnRotary) { .heads_first = arg[1] != 0, .first = arg[2] });
}

static const Case cases_rotary[] = {
    { "rotary at positions", build_rotary_at, "gL", .shape = { SHAPE(3, 5, 2, 4), SHAPE(3) },
      .arg = { 50 } },
    { "rotary at positions, heads first", build_rotary_at, "gL",
      .shape = { SHAPE(3, 2, 5, 4), SHAPE(3) }, .arg = { 50, 1, 2 } },
    { "rotary at a position", build_rotary_at, "gL", .shape = { SHAPE(3, 1, 2, 6), SHAPE(1) },
      .arg = { 50 } },
    { "rotary", build_rotary, "g", .shape = { SHAPE(2, 5, 3, 4) } },
    { "rotary, interleaved, heads first", build_rotary, "g", .shape = { SHAPE(2, 3, 5, 6) },
      .arg = { 1, 1 } },
    { "rotary, later rows", build_rotary, "g", .shape = { SHAPE(1, 1, 2, 2) },
      .arg = { 0, 0, 1000, 500 } },
    { "rotary, large", build_rotary, "g", .shape = { SHAPE(2, 67, 3, 64) }, .arg = { 1, 0, 3 } },
};
SAMPLES(rotary)

/* arg[0]: positions are below it; arg[1]: the axis. */
BUILD(build_cache_write)
{
    kiln_cache_write(leaf[0], leaf[1], leaf[2], (int)arg[1]);
    return NULL;
}

static const Case cases_cache_write[] = {
    { "cache_write", build_cache_write, "vfL",
      .shape = { SHAPE(2, 7, 3, 4), SHAPE(2, 2, 3, 4), SHAPE(2) }, .arg = { 5, 1 } },
    { "cache_write, one position, heads first", build_cache_write, "vfL",
      .shape = { SHAPE(2, 3, 7, 4), SHAPE(2, 3, 1, 4), SHAPE(1) }, .arg = { 6, 2 } },
    { "cache_write, last axis", build_cache_write, "vfL",
      .shape = { SHAPE(2, 3, 7), SHAPE(2, 3, 2), SHAPE(2) }, .arg = { 5, -1 } },
    { "cache_write, too far", build_cache_write, "vfL",
      .shape = { SHAPE(5, 4, 3), SHAPE(5, 3, 3), SHAPE(5) }, .arg = { 9, 1 } },
    { "cache_write, large", build_cache_write, "vfL",
      .shape = { SHAPE(3, 129, 5, 64), SHAPE(3, 67, 5, 64), SHAPE(3) }, .arg = { 60, 1 } },
};
SAMPLES(cache_write)
