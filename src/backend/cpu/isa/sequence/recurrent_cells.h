/* The cells of LSTM and GRU with their gradients: the units of one sequence at one step. Included
 * by recurrent.c, which is compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_SEQUENCE_RECURRENT_CELLS_H
#define KILN_BACKEND_CPU_ISA_SEQUENCE_RECURRENT_CELLS_H

#include "backend/cpu/isa/exp_tanh.h"
#include "backend/cpu/isa/sequence/recurrent.h"
#include "backend/cpu/isa/vector.h"

enum { UNITS = KILN_RECURRENT_UNITS };

/* Units of one sequence, `n` of them, which is a constant where a cell is inlined. In `in`, `sums`
 * and `dp` the gates are UNITS apart, in the others `hidden`. */
typedef struct Cells {
    const float *in, *sums;
    float *gates, *h, *c, *kept;
    int64_t hidden;
} Cells;

KILN_INLINE void lstm_cell(const Cells *cells, int64_t n)
{
    const float *in = cells->in, *sums = cells->sums;
    const int64_t hidden = cells->hidden;
    float *i = cells->gates, *f = i + hidden, *g = f + hidden, *o = g + hidden;
    float *h = cells->h, *c = cells->c, *kept = cells->kept;

#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float input = vec_sigmoid(in[j] + sums[j]);
        const float forget = vec_sigmoid(in[UNITS + j] + sums[UNITS + j]);
        const float candidate = vec_tanh(in[2 * UNITS + j] + sums[2 * UNITS + j]);
        const float out = vec_sigmoid(in[3 * UNITS + j] + sums[3 * UNITS + j]);
        const float cell = forget * c[j] + input * candidate;

        i[j] = input;
        f[j] = forget;
        g[j] = candidate;
        o[j] = out;
        c[j] = cell;
        kept[j] = cell;
        h[j] = out * vec_tanh(cell);
    }
}

/* `sums` is the hidden state's contribution to the gates, bias included. */
KILN_INLINE void gru_cell(const Cells *cells, int64_t n)
{
    const float *in = cells->in, *sums = cells->sums;
    const int64_t hidden = cells->hidden;
    float *r = cells->gates, *z = r + hidden, *g = z + hidden;
    float *h = cells->h, *kept = cells->kept;

#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float reset = vec_sigmoid(in[j] + sums[j]);
        const float update = vec_sigmoid(in[UNITS + j] + sums[UNITS + j]);
        const float share = sums[2 * UNITS + j];
        const float candidate = vec_tanh(in[2 * UNITS + j] + reset * share);

        r[j] = reset;
        z[j] = update;
        g[j] = candidate;
        kept[j] = share;
        h[j] = (1.0f - update) * candidate + update * h[j];
    }
}

/* The same for the gradient. dh and dc are the gradients of the state after the step. */
typedef struct CellGrads {
    const float *gates, *kept, *previous, *dy;
    float *dh, *dc, *dp, *share;
    int64_t hidden;
} CellGrads;

/* dc becomes the gradient of the cell before. */
KILN_INLINE void lstm_cell_grad(const CellGrads *cells, int64_t n)
{
    const float *gates = cells->gates, *kept = cells->kept, *previous = cells->previous;
    const float *dy = cells->dy, *dh = cells->dh;
    const int64_t hidden = cells->hidden;
    float *dp = cells->dp, *dc = cells->dc;

#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float in = gates[j], forget = gates[hidden + j];
        const float candidate = gates[2 * hidden + j], out = gates[3 * hidden + j];
        const float root = vec_tanh(kept[j]);
        const float state = dh[j] + dy[j];
        const float cell = dc[j] + state * out * (1.0f - root * root);
        const float last = previous[j];

        dp[j] = cell * candidate * in * (1.0f - in);
        dp[UNITS + j] = cell * last * forget * (1.0f - forget);
        dp[2 * UNITS + j] = cell * in * (1.0f - candidate * candidate);
        dp[3 * UNITS + j] = state * root * out * (1.0f - out);
        dc[j] = cell * forget;
    }
}

/* dh becomes what the state passes on directly. */
KILN_INLINE void gru_cell_grad(const CellGrads *cells, int64_t n)
{
    const float *gates = cells->gates, *kept = cells->kept, *previous = cells->previous;
    const float *dy = cells->dy;
    const int64_t hidden = cells->hidden;
    float *dp = cells->dp, *share = cells->share, *dh = cells->dh;

#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float reset = gates[j], update = gates[hidden + j], candidate = gates[2 * hidden + j];
        const float last = previous[j];
        const float state = dh[j] + dy[j];
        const float inner = state * (1.0f - update) * (1.0f - candidate * candidate);
        const float dreset = inner * kept[j] * reset * (1.0f - reset);
        const float dupdate = state * (last - candidate) * update * (1.0f - update);

        dp[j] = dreset;
        dp[UNITS + j] = dupdate;
        dp[2 * UNITS + j] = inner;
        share[j] = dreset;
        share[UNITS + j] = dupdate;
        share[2 * UNITS + j] = inner * reset;
        dh[j] = state * update;
    }
}

static inline void run_cells(const Cells *cells, int64_t gates, int64_t n)
{
    if (gates == 4 && n == UNITS)
        lstm_cell(cells, UNITS);
    else if (gates == 4)
        lstm_cell(cells, n);
    else if (n == UNITS)
        gru_cell(cells, UNITS);
    else
        gru_cell(cells, n);
}

static inline void run_cell_grads(const CellGrads *cells, int64_t gates, int64_t n)
{
    if (gates == 4 && n == UNITS)
        lstm_cell_grad(cells, UNITS);
    else if (gates == 4)
        lstm_cell_grad(cells, n);
    else if (n == UNITS)
        gru_cell_grad(cells, UNITS);
    else
        gru_cell_grad(cells, n);
}

#endif
