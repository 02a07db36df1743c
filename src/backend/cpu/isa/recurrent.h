/* LSTM and GRU: some sequences over all steps. Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_RECURRENT_H
#define KILN_BACKEND_CPU_ISA_RECURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cpu/level.h"

/* One call. Row (t, b) of a sequence of n columns is at (t * step + b * row) * n. */
typedef struct KilnRecurrentLoop {
    int64_t steps, batch, hidden, step, row;
    bool reverse;
    const int32_t *lengths; /* or NULL */
    const float *weight;    /* in panels: of the transposed weight, or for backward of the weight */
    const float *h0, *c0, *bias; /* NULL: 0 */
    float *gates;                /* holds the inputs' contribution, then the gates */
    float *y, *kept; /* kept: LSTM cells; GRU: the hidden state's contribution to gate n */
    float *h, *c;    /* after the last step */
    /* Backward: gates, y and kept are read (gates may be dp). */
    const float *gates_in, *y_in, *kept_in, *dy, *dh, *dc;
    float *dp, *dh0, *dc0;
    float *share; /* GRU: gradient of the hidden state's contribution, laid out as dp */
} KilnRecurrentLoop;

/* Sequences [begin, end); scratch holds kiln_recurrent_scratch floats for each. */
typedef void (*KilnRecurrentRange)(const KilnRecurrentLoop *loop, float *scratch, int64_t begin,
                                   int64_t end);

typedef struct KilnRecurrentLoops {
    KilnRecurrentRange lstm, lstm_grad, gru, gru_grad;
    /* Packs the weight [gates, hidden] into panels, transposed or not; and the floats it takes. */
    void (*pack)(float *panels, const float *weight, int64_t gates, int64_t hidden,
                 bool transposed);
    int64_t (*packed)(int64_t gates, int64_t hidden, bool transposed);
} KilnRecurrentLoops;

enum {
    KILN_RECURRENT_PADDING = 16 /* floats between rows, to avoid conflicts in the cache */
};

/* Floats of scratch per sequence. */
static inline int64_t kiln_recurrent_scratch(int64_t hidden)
{
    return 10 * hidden + KILN_RECURRENT_PADDING;
}

KILN_DECLARE_LOOPS(KilnRecurrentLoops, recurrent_loops);

#endif
