/* LSTM and GRU: some sequences or some units, step by step. Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_SEQUENCE_RECURRENT_H
#define KILN_BACKEND_CPU_ISA_SEQUENCE_RECURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cpu/level.h"

/* Values in f32 or bf16. */
typedef struct KilnRecurrentRows {
    void *data;
    bool bf16;
} KilnRecurrentRows;

/* One call. Row (t, b) of a sequence of n columns is at (t * step + b * row) * n. */
typedef struct KilnRecurrentLoop {
    int64_t gates; /* 4: LSTM, 3: GRU */
    int64_t steps, batch, hidden, step, row;
    bool reverse;
    const int32_t *lengths; /* or NULL */
    /* Not NULL: states and weights are rounded to bf16, and these multiply them. */
    const struct KilnTileOps *tiles;
    const void *weight;          /* packed, of tiles or by KilnRecurrentLoops.pack */
    const float *h0, *c0, *bias; /* NULL: 0 */
    KilnRecurrentRows p;         /* the inputs' contribution; the gates may overwrite it */
    float *gates_out;
    KilnRecurrentRows y;
    float *kept;  /* LSTM: cells; GRU: the hidden state's contribution to gate n */
    float *h, *c; /* the state so far, at last that after the last step */
    /* Backward: gates, y and kept are read (gates may be dp). */
    const float *gates_in, *kept_in, *dh, *dc;
    KilnRecurrentRows y_in, dy; /* dy.data NULL: 0 */
    KilnRecurrentRows dp;
    float *dh0, *dc0; /* the state's gradient so far, at last that of the first state */
    /* GRU: gradient of the hidden state's contribution, laid out as dp. */
    KilnRecurrentRows share;
} KilnRecurrentLoop;

/* Sequences [begin, end) and units [first, last) of every gate; `first` is a multiple of
 * KILN_RECURRENT_UNITS. */
typedef struct KilnRecurrentPart {
    int64_t begin, end, first, last;
    /* Left factors of the products of even and odd steps, of the sequences from `begin` on:
     * kiln_recurrent_left floats, or bf16 for tiles, for each, and of KILN_RECURRENT_ROWS more. */
    void *left[2];
} KilnRecurrentPart;

/* Phase 0 ... loop->steps of a part. All parts end a phase before the next begins, unless a part
 * has all units of its sequences. */
typedef void (*KilnRecurrentPhase)(const KilnRecurrentLoop *loop, const KilnRecurrentPart *part,
                                   int64_t phase);

typedef struct KilnRecurrentLoops {
    KilnRecurrentPhase forward, backward;
    /* Packs panels [begin, end) of the weight [gates * hidden, hidden] for f32: forward has the
     * panels of each gate's units, backward those of all gates together. */
    void (*pack)(float *panels, const float *weight, int64_t gates, int64_t hidden, bool backward,
                 int64_t begin, int64_t end);
} KilnRecurrentLoops;

enum {
    KILN_RECURRENT_UNITS = 32, /* of a panel */
    KILN_RECURRENT_ROWS = 32   /* sequences of a product */
};

static inline int64_t kiln_recurrent_blocks(int64_t n)
{
    return (n + KILN_RECURRENT_UNITS - 1) / KILN_RECURRENT_UNITS;
}

/* From one row of the left factor to the next, in elements: for bf16 whole tiles; and some more
 * against conflicts in the cache. */
static inline int64_t kiln_recurrent_left(int64_t depth, bool bf16)
{
    return bf16 ? (kiln_recurrent_blocks(depth) + 1) * KILN_RECURRENT_UNITS : depth + 16;
}

KILN_DECLARE_LOOPS(KilnRecurrentLoops, recurrent_loops);

#endif
