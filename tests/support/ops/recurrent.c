/* Samples of recurrent layers. */
#include "tests/support/ops/case.h"

/* What is in arg[1] of the samples; arg[0] is the limit of lengths. arg[2] tells
 * which output is looked at, or all three: an LSTM's states go on into another. */
enum {
    RECURRENT_REVERSE = 1,
    RECURRENT_BATCH_FIRST = 2,
    RECURRENT_STATES = 4, /* the next leaves are h0, and of an LSTM c0 */
    RECURRENT_LENGTHS = 8 /* the next leaf are the lengths */
};

static KilnRecurrent recurrent_of(KilnTensor *const *leaf, int64_t flags, bool cells)
{
    KilnRecurrent recurrent = {
        .reverse = (flags & RECURRENT_REVERSE) != 0,
        .batch_first = (flags & RECURRENT_BATCH_FIRST) != 0,
    };

    if ((flags & RECURRENT_STATES) != 0)
        recurrent.h0 = *leaf++;
    if ((flags & RECURRENT_STATES) != 0 && cells)
        recurrent.c0 = *leaf++;
    if ((flags & RECURRENT_LENGTHS) != 0)
        recurrent.lengths = *leaf;
    return recurrent;
}

enum { RECURRENT_Y, RECURRENT_H, RECURRENT_C, RECURRENT_ALL };

static KilnTensor *recurrent_result(KilnRecurrentOut out, int64_t which)
{
    switch (which) {
    case RECURRENT_Y:
        return out.y;
    case RECURRENT_H:
        return out.h;
    case RECURRENT_C:
        return out.c;
    default:
        break;
    }
    KilnTensor *states = out.c != NULL ? kiln_mul(out.h, out.c) : out.h;

    return kiln_mul(kiln_sum(kiln_mul(out.y, out.y)), kiln_sum(states));
}

BUILD(build_lstm)
{
    return recurrent_result(kiln_lstm(leaf[0], leaf[1], recurrent_of(leaf + 2, arg[1], true)),
                            arg[2]);
}

static const Case cases_lstm[] = {
    { "lstm", build_lstm, "gg", .shape = { SHAPE(3, 2, 12), SHAPE(12, 3) }, .skips = true },
    { "lstm, one step", build_lstm, "gg", .shape = { SHAPE(1, 3, 8), SHAPE(8, 2) }, .skips = true },
    { "lstm, reverse, states", build_lstm, "gggg",
      .shape = { SHAPE(4, 2, 8), SHAPE(8, 2), SHAPE(2, 2), SHAPE(2, 2) },
      .arg = { 0, RECURRENT_REVERSE | RECURRENT_STATES, RECURRENT_ALL } },
    { "lstm, batch first, lengths", build_lstm, "ggggL",
      .shape = { SHAPE(3, 4, 8), SHAPE(8, 2), SHAPE(3, 2), SHAPE(3, 2), SHAPE(3) },
      .arg = { 5, RECURRENT_BATCH_FIRST | RECURRENT_STATES | RECURRENT_LENGTHS, RECURRENT_ALL } },
    { "lstm, reverse, lengths, cells", build_lstm, "ggggL",
      .shape = { SHAPE(4, 5, 4), SHAPE(4, 1), SHAPE(5, 1), SHAPE(5, 1), SHAPE(5) },
      .arg = { 5, RECURRENT_REVERSE | RECURRENT_STATES | RECURRENT_LENGTHS, RECURRENT_C } },
    { "lstm, last state", build_lstm, "gg", .shape = { SHAPE(3, 2, 8), SHAPE(8, 2) },
      .arg = { 0, 0, RECURRENT_H }, .skips = true },
    { "lstm, large", build_lstm, "gggg",
      .shape = { SHAPE(7, 13, 148), SHAPE(148, 37), SHAPE(13, 37), SHAPE(13, 37) },
      .arg = { 0, RECURRENT_STATES } },
};
SAMPLES(lstm)
SAMPLES_OF(lstm_grad, lstm)

BUILD(build_gru)
{
    return recurrent_result(kiln_gru(leaf[0], leaf[1], arg[3] != 0 ? leaf[2] : NULL,
                                     recurrent_of(leaf + (arg[3] != 0 ? 3 : 2), arg[1], false)),
                            arg[2]);
}

static const Case cases_gru[] = {
    { "gru", build_gru, "gg", .shape = { SHAPE(3, 2, 9), SHAPE(9, 3) } },
    { "gru, one step, bias", build_gru, "ggg", .shape = { SHAPE(1, 3, 6), SHAPE(6, 2), SHAPE(6) },
      .arg = { 0, 0, 0, 1 }, .skips = true },
    { "gru, reverse, states", build_gru, "gggg",
      .shape = { SHAPE(4, 2, 6), SHAPE(6, 2), SHAPE(6), SHAPE(2, 2) },
      .arg = { 0, RECURRENT_REVERSE | RECURRENT_STATES, RECURRENT_ALL, 1 } },
    { "gru, batch first, lengths", build_gru, "ggggL",
      .shape = { SHAPE(3, 4, 6), SHAPE(6, 2), SHAPE(6), SHAPE(3, 2), SHAPE(3) },
      .arg = { 5, RECURRENT_BATCH_FIRST | RECURRENT_STATES | RECURRENT_LENGTHS, RECURRENT_ALL,
               1 } },
    { "gru, reverse, lengths", build_gru, "gggL",
      .shape = { SHAPE(4, 5, 3), SHAPE(3, 1), SHAPE(5, 1), SHAPE(5) },
      .arg = { 5, RECURRENT_REVERSE | RECURRENT_STATES | RECURRENT_LENGTHS, RECURRENT_H } },
    { "gru, large", build_gru, "gggg",
      .shape = { SHAPE(7, 13, 111), SHAPE(111, 37), SHAPE(111), SHAPE(13, 37) },
      .arg = { 0, RECURRENT_STATES, 0, 1 } },
};
SAMPLES(gru)
SAMPLES_OF(gru_grad, gru)
