/* Recurrent layers. A thread takes some sequences through all steps, so that threads never wait for
 * each other. Per step: the product of its hidden states with the weight, whose panels are in the
 * second-level cache, and the cell, whose inputs are still in the first-level cache. */
#include "backend/cpu/isa/recurrent.h"

#include <string.h>

#include "backend/cpu/isa/small_gemm.h"
#include "backend/cpu/isa/exp_tanh.h"

/* ---- Weights --------------------------------------------------------------------- */

static int64_t packed(int64_t gates, int64_t hidden, bool transposed)
{
    const int64_t n = transposed ? gates : hidden;

    return (n + PANEL - 1) / PANEL * PANEL * (transposed ? hidden : gates);
}

static void pack(float *panels, const float *weight, int64_t gates, int64_t hidden, bool transposed)
{
    if (transposed)
        tile_pack_transposed(panels, weight, hidden, hidden, gates);
    else
        tile_pack(panels, weight, hidden, gates, hidden);
}

/* c [m, n] = or += a · the weight of k rows. */
static void product(const KilnRecurrentLoop *loop, float *c, int64_t c_row, const float *a,
                    int64_t a_row, int64_t m, int64_t n, int64_t k, bool add)
{
    tile_product(&(Tile) { .c = c,
                           .c_row = c_row,
                           .a = a,
                           .a_row = a_row,
                           .a_step = 1,
                           .b = loop->weight,
                           .b_panel = k * PANEL,
                           .b_step = PANEL,
                           .m = m,
                           .n = n,
                           .k = k,
                           .add = add });
}

/* ---- States and positions ------------------------------------------------------- */

static int64_t place(const KilnRecurrentLoop *loop, int64_t t, int64_t b, int64_t columns)
{
    return (t * loop->step + b * loop->row) * columns;
}

static bool active(const KilnRecurrentLoop *loop, int64_t t, int64_t b)
{
    return loop->lengths == NULL || t < loop->lengths[b];
}

/* Time of step n, in the order of computation. */
static int64_t time_of(const KilnRecurrentLoop *loop, int64_t n)
{
    return loop->reverse ? loop->steps - 1 - n : n;
}

/* Loads rows from `begin` on of a [batch, hidden] state, or zeros. */
static void load_state(const KilnRecurrentLoop *loop, float *to, const float *from, int64_t begin,
                       int64_t rows)
{
    const size_t bytes = (size_t)(rows * loop->hidden) * sizeof(float);

    if (from != NULL)
        memcpy(to, from + begin * loop->hidden, bytes);
    else
        memset(to, 0, bytes);
}

static void store_state(const KilnRecurrentLoop *loop, float *to, const float *from, int64_t begin,
                        int64_t rows)
{
    memcpy(to + begin * loop->hidden, from, (size_t)(rows * loop->hidden) * sizeof(float));
}

static void zero(float *x, int64_t n)
{
    memset(x, 0, (size_t)n * sizeof(float));
}

/* The state before step n of sequence b, if it is in the sequence; NULL: zeros. */
static const float *before(const KilnRecurrentLoop *loop, const float *sequence,
                           const float *initial, int64_t n, int64_t b)
{
    const int64_t t = n > 0 ? time_of(loop, n - 1) : 0;

    if (n > 0 && active(loop, t, b))
        return sequence + place(loop, t, b, loop->hidden);
    return initial != NULL ? initial + b * loop->hidden : NULL;
}

/* ---- LSTM ------------------------------------------------------------------------ */

static void lstm_cell(float *gates, float *h, float *c, float *y, float *kept, int64_t n)
{
    float *i = gates, *f = gates + n, *g = gates + 2 * n, *o = gates + 3 * n;

#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float in = vec_sigmoid(i[j]), forget = vec_sigmoid(f[j]);
        const float candidate = vec_tanh(g[j]), out = vec_sigmoid(o[j]);
        const float cell = forget * c[j] + in * candidate;
        const float state = out * vec_tanh(cell);

        i[j] = in;
        f[j] = forget;
        g[j] = candidate;
        o[j] = out;
        c[j] = cell;
        kept[j] = cell;
        h[j] = state;
        y[j] = state;
    }
}

static void lstm(const KilnRecurrentLoop *loop, float *scratch, int64_t begin, int64_t end)
{
    const int64_t n = loop->hidden, rows = end - begin;
    float *h = scratch, *c = scratch + rows * n;

    load_state(loop, h, loop->h0, begin, rows);
    load_state(loop, c, loop->c0, begin, rows);
    for (int64_t s = 0; s < loop->steps; s++) {
        const int64_t t = time_of(loop, s);

        if (s > 0 || loop->h0 != NULL)
            product(loop, loop->gates + place(loop, t, begin, 4 * n), loop->row * 4 * n, h, n, rows,
                    4 * n, n, true);
        for (int64_t b = begin; b < end; b++) {
            float *gates = loop->gates + place(loop, t, b, 4 * n);
            float *y = loop->y + place(loop, t, b, n), *kept = loop->kept + place(loop, t, b, n);

            if (active(loop, t, b)) {
                lstm_cell(gates, h + (b - begin) * n, c + (b - begin) * n, y, kept, n);
                continue;
            }
            zero(gates, 4 * n);
            zero(y, n);
            zero(kept, n);
        }
    }
    store_state(loop, loop->h, h, begin, rows);
    store_state(loop, loop->c, c, begin, rows);
}

/* dh and dc are the gradients of the state after the step; dc becomes that of the state before.
 * previous NULL: the cell was 0. dp may alias gates. */
static void lstm_cell_grad(float *dp, const float *gates, const float *cells, const float *previous,
                           const float *dy, const float *dh, float *dc, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float in = gates[j], forget = gates[n + j];
        const float candidate = gates[2 * n + j], out = gates[3 * n + j];
        const float root = vec_tanh(cells[j]);
        const float state = dy != NULL ? dh[j] + dy[j] : dh[j];
        const float cell = dc[j] + state * out * (1.0f - root * root);
        const float last = previous != NULL ? previous[j] : 0.0f;

        dp[j] = cell * candidate * in * (1.0f - in);
        dp[n + j] = cell * last * forget * (1.0f - forget);
        dp[2 * n + j] = cell * in * (1.0f - candidate * candidate);
        dp[3 * n + j] = state * root * out * (1.0f - out);
        dc[j] = cell * forget;
    }
}

/* made [rows, hidden] = the step's gradients of all gates · the weight. Rows that are a whole
 * sequence apart are first gathered in `near`. */
static void product_of_gates(const KilnRecurrentLoop *loop, float *made, float *near,
                             const float *gates, int64_t columns, int64_t t, int64_t begin,
                             int64_t end)
{
    const int64_t pitch = columns + KILN_RECURRENT_PADDING;

    for (int64_t b = begin; b < end; b++)
        memcpy(near + (b - begin) * pitch, gates + place(loop, t, b, columns),
               (size_t)columns * sizeof(float));
    product(loop, made, loop->hidden, near, pitch, end - begin, loop->hidden, columns, false);
}

/* dh = the product's gradient, for sequences that took the step; plus, unless NULL, `passed`: what
 * GRU's state passes on directly. */
static void take_states(const KilnRecurrentLoop *loop, float *dh, const float *made,
                        const float *passed, int64_t t, int64_t begin, int64_t end)
{
    const int64_t n = loop->hidden;

    for (int64_t b = begin; b < end; b++) {
        const int64_t at = (b - begin) * n;

        if (!active(loop, t, b))
            continue;
        for (int64_t j = at; j < at + n; j++)
            dh[j] = passed != NULL ? made[j] + passed[j] : made[j];
    }
}

static void lstm_grad(const KilnRecurrentLoop *loop, float *scratch, int64_t begin, int64_t end)
{
    const int64_t n = loop->hidden, rows = end - begin;
    float *dh = scratch, *dc = dh + rows * n, *made = dc + rows * n;

    load_state(loop, dh, loop->dh, begin, rows);
    load_state(loop, dc, loop->dc, begin, rows);
    for (int64_t s = loop->steps; s-- > 0;) {
        const int64_t t = time_of(loop, s);

        for (int64_t b = begin; b < end; b++) {
            const int64_t at = place(loop, t, b, n), r = (b - begin) * n;

            if (active(loop, t, b))
                lstm_cell_grad(loop->dp + 4 * at, loop->gates_in + 4 * at, loop->kept_in + at,
                               before(loop, loop->kept_in, loop->c0, s, b),
                               loop->dy != NULL ? loop->dy + at : NULL, dh + r, dc + r, n);
            else
                zero(loop->dp + 4 * at, 4 * n);
        }
        product_of_gates(loop, made, made + rows * n, loop->dp, 4 * n, t, begin, end);
        take_states(loop, dh, made, NULL, t, begin, end);
    }
    store_state(loop, loop->dh0, dh, begin, rows);
    store_state(loop, loop->dc0, dc, begin, rows);
}

/* ---- GRU ------------------------------------------------------------------------- */

/* `share` is the hidden state's contribution to the gates, bias included. */
static void gru_cell(float *gates, const float *share, float *h, float *y, float *kept, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float reset = vec_sigmoid(gates[j] + share[j]);
        const float update = vec_sigmoid(gates[n + j] + share[n + j]);
        const float hidden = share[2 * n + j];
        const float candidate = vec_tanh(gates[2 * n + j] + reset * hidden);
        const float state = (1.0f - update) * candidate + update * h[j];

        gates[j] = reset;
        gates[n + j] = update;
        gates[2 * n + j] = candidate;
        kept[j] = hidden;
        h[j] = state;
        y[j] = state;
    }
}

static void gru(const KilnRecurrentLoop *loop, float *scratch, int64_t begin, int64_t end)
{
    const int64_t n = loop->hidden, rows = end - begin;
    float *h = scratch, *share = h + rows * n;

    load_state(loop, h, loop->h0, begin, rows);
    for (int64_t s = 0; s < loop->steps; s++) {
        const int64_t t = time_of(loop, s);

        for (int64_t r = 0; r < rows; r++) {
            if (loop->bias != NULL)
                memcpy(share + r * 3 * n, loop->bias, (size_t)(3 * n) * sizeof(float));
            else
                zero(share + r * 3 * n, 3 * n);
        }
        product(loop, share, 3 * n, h, n, rows, 3 * n, n, true);
        for (int64_t b = begin; b < end; b++) {
            float *gates = loop->gates + place(loop, t, b, 3 * n);
            float *y = loop->y + place(loop, t, b, n), *kept = loop->kept + place(loop, t, b, n);

            if (active(loop, t, b)) {
                gru_cell(gates, share + (b - begin) * 3 * n, h + (b - begin) * n, y, kept, n);
                continue;
            }
            zero(gates, 3 * n);
            zero(y, n);
            zero(kept, n);
        }
    }
    store_state(loop, loop->h, h, begin, rows);
}

static void gru_cell_grad(float *dp, float *share, const float *gates, const float *kept,
                          const float *previous, const float *dy, const float *dh, float *passed,
                          int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float reset = gates[j], update = gates[n + j], candidate = gates[2 * n + j];
        const float last = previous != NULL ? previous[j] : 0.0f;
        const float state = dy != NULL ? dh[j] + dy[j] : dh[j];
        const float inner = state * (1.0f - update) * (1.0f - candidate * candidate);
        const float dreset = inner * kept[j] * reset * (1.0f - reset);
        const float dupdate = state * (last - candidate) * update * (1.0f - update);

        dp[j] = dreset;
        dp[n + j] = dupdate;
        dp[2 * n + j] = inner;
        share[j] = dreset;
        share[n + j] = dupdate;
        share[2 * n + j] = inner * reset;
        passed[j] = state * update;
    }
}

static void gru_grad(const KilnRecurrentLoop *loop, float *scratch, int64_t begin, int64_t end)
{
    const int64_t n = loop->hidden, rows = end - begin;
    float *dh = scratch, *passed = dh + rows * n, *made = passed + rows * n;

    load_state(loop, dh, loop->dh, begin, rows);
    for (int64_t s = loop->steps; s-- > 0;) {
        const int64_t t = time_of(loop, s);

        for (int64_t b = begin; b < end; b++) {
            const int64_t at = place(loop, t, b, n), r = (b - begin) * n;

            if (active(loop, t, b)) {
                gru_cell_grad(loop->dp + 3 * at, loop->share + 3 * at, loop->gates_in + 3 * at,
                              loop->kept_in + at, before(loop, loop->y_in, loop->h0, s, b),
                              loop->dy != NULL ? loop->dy + at : NULL, dh + r, passed + r, n);
                continue;
            }
            zero(loop->dp + 3 * at, 3 * n);
            zero(loop->share + 3 * at, 3 * n);
        }
        product_of_gates(loop, made, made + rows * n, loop->share, 3 * n, t, begin, end);
        take_states(loop, dh, made, passed, t, begin, end);
    }
    store_state(loop, loop->dh0, dh, begin, rows);
}

const KilnRecurrentLoops KILN_LOOPS(recurrent_loops) = {
    .lstm = lstm,
    .lstm_grad = lstm_grad,
    .gru = gru,
    .gru_grad = gru_grad,
    .pack = pack,
    .packed = packed,
};
