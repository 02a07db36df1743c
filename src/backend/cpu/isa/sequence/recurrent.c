/* Recurrent layers, some units and sequences at a time: the product of the hidden states with the
 * units' weights, which are in the second-level cache, then the cells, whose inputs are still in
 * the first-level cache. A sum is made in the same order in any part. */
#include "backend/cpu/isa/sequence/recurrent.h"

#include <string.h>

#include "backend/cpu/bf16/tiles.h"
#include "backend/cpu/isa/sequence/recurrent_cells.h"
#include "backend/cpu/isa/small_gemm.h"
#include "backend/cpu/isa/vector.h"
#include "base/min.h"
#include "tensor/bf16.h"

enum { ROWS = KILN_RECURRENT_ROWS, MOST_GATES = 4 };

_Static_assert((int)UNITS == (int)PANEL && (int)UNITS == (int)KILN_TILE_BLOCK,
               "a block of units is a panel of f32 and a block of tiles");

/* Some units of some sequences at a step; sums are [row][gate][UNITS]. */
typedef struct Block {
    const KilnRecurrentLoop *loop;
    const KilnRecurrentPart *part;
    int64_t s, t;        /* step in the order of computation, and its time */
    int64_t row, rows;   /* sequences */
    int64_t unit, units; /* units is UNITS or, in the last block, fewer */
    float *sums;
} Block;

/* ---- Positions ---------------------------------------------------------------------- */

static int64_t place(const KilnRecurrentLoop *loop, int64_t t, int64_t b, int64_t columns)
{
    return (t * loop->step + b * loop->row) * columns;
}

static bool active(const KilnRecurrentLoop *loop, int64_t t, int64_t b)
{
    return loop->lengths == NULL || t < loop->lengths[b];
}

/* Time of step s, in the order of computation. */
static int64_t time_of(const KilnRecurrentLoop *loop, int64_t s)
{
    return loop->reverse ? loop->steps - 1 - s : s;
}

/* The row of the step before step s of sequence b; -1: the initial state. */
static int64_t row_before(const KilnRecurrentLoop *loop, int64_t s, int64_t b)
{
    const int64_t t = s > 0 ? time_of(loop, s - 1) : 0;

    return s > 0 && active(loop, t, b) ? place(loop, t, b, 1) : -1;
}

/* ---- Loads and stores of up to UNITS values ----------------------------------------- */

/* `n` is a constant where these are inlined. */
KILN_INLINE void load_some(float *to, KilnRecurrentRows from, int64_t at, int64_t n)
{
    const uint16_t *half = (const uint16_t *)from.data + at;

    if (!from.bf16) {
        memcpy(to, (const float *)from.data + at, (size_t)n * sizeof(float));
        return;
    }
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        to[j] = kiln_bf16_to(half[j]);
}

KILN_INLINE void store_some(KilnRecurrentRows to, int64_t at, const float *from, int64_t n)
{
    uint16_t *half = (uint16_t *)to.data + at;
    int64_t j = 0;

    if (!to.bf16) {
        memcpy((float *)to.data + at, from, (size_t)n * sizeof(float));
        return;
    }
    for (; j + KILN_LANES <= n; j += KILN_LANES)
        kiln_store_lanes(half, j, kiln_load_lanes(from, j, KILN_LANES, false), KILN_LANES, true);
    for (; j < n; j++)
        half[j] = kiln_bf16_of(from[j]);
}

static void load(float *to, KilnRecurrentRows from, int64_t at, int64_t n)
{
    if (n == UNITS)
        load_some(to, from, at, UNITS);
    else
        load_some(to, from, at, n);
}

static void store(KilnRecurrentRows to, int64_t at, const float *from, int64_t n)
{
    if (n == UNITS)
        store_some(to, at, from, UNITS);
    else
        store_some(to, at, from, n);
}

static void zero_rows(KilnRecurrentRows rows, int64_t at, int64_t n)
{
    if (rows.bf16)
        memset((uint16_t *)rows.data + at, 0, (size_t)n * sizeof(uint16_t));
    else
        memset((float *)rows.data + at, 0, (size_t)n * sizeof(float));
}

static void copy_or_zero(float *to, const float *from, int64_t n)
{
    if (from != NULL)
        memcpy(to, from, (size_t)n * sizeof(float));
    else
        memset(to, 0, (size_t)n * sizeof(float));
}

/* ---- Fetching -------------------------------------------------------------------------- */

/* Sequences of a step may be far apart, so that nothing but the layout says where the next one is;
 * and so that the same units of all sequences compete for the same places in the caches. So
 * a sequence is fetched a few sequences ahead. */
enum { AHEAD = 3 };

static void fetch(KilnRecurrentRows rows, int64_t at)
{
    const char *from = rows.data;
    const size_t size = rows.bf16 ? sizeof(uint16_t) : sizeof(float);

    for (size_t byte = 0; from != NULL && byte < UNITS * size; byte += 64)
        __builtin_prefetch(from + (size_t)at * size + byte);
}

static KilnRecurrentRows floats_of(const float *data)
{
    return (KilnRecurrentRows) { (float *)data, false };
}

/* What the block's step has of sequence b. */
static void fetch_forward(const Block *block, int64_t b)
{
    const KilnRecurrentLoop *loop = block->loop;
    const int64_t at = place(loop, block->t, b, loop->hidden) + block->unit;
    const int64_t at_gates = place(loop, block->t, b, loop->gates * loop->hidden) + block->unit;

    for (int64_t g = 0; g < loop->gates; g++) {
        fetch(loop->p, at_gates + g * loop->hidden);
        if (loop->p.data != loop->gates_out)
            fetch(floats_of(loop->gates_out), at_gates + g * loop->hidden);
    }
    fetch(floats_of(loop->kept), at);
    fetch(loop->y, at);
}

/* What the gradients of step s have of sequence b. */
static void fetch_gradient(const Block *block, int64_t s, int64_t b)
{
    const KilnRecurrentLoop *loop = block->loop;
    const int64_t t = time_of(loop, s), before = row_before(loop, s, b);
    const int64_t at = place(loop, t, b, loop->hidden) + block->unit;
    const int64_t at_gates = place(loop, t, b, loop->gates * loop->hidden) + block->unit;

    for (int64_t g = 0; g < loop->gates; g++) {
        fetch(floats_of(loop->gates_in), at_gates + g * loop->hidden);
        if (loop->dp.data != loop->gates_in)
            fetch(loop->dp, at_gates + g * loop->hidden);
        fetch(loop->share, at_gates + g * loop->hidden);
    }
    fetch(loop->dy, at);
    fetch(floats_of(loop->kept_in), at);
    if (before >= 0)
        fetch(loop->gates == 3 ? loop->y_in : floats_of(loop->kept_in),
              before * loop->hidden + block->unit);
}

/* ---- Left factors --------------------------------------------------------------------- */

/* Depth of the products: forward units, backward units of all gates. */
static int64_t depth_of(const KilnRecurrentLoop *loop)
{
    return loop->gates_in != NULL ? loop->gates * loop->hidden : loop->hidden;
}

static KilnRecurrentRows left_of(const Block *block, int64_t s)
{
    return (KilnRecurrentRows) { block->part->left[s & 1], block->loop->tiles != NULL };
}

static int64_t left_stride(const KilnRecurrentLoop *loop)
{
    return kiln_recurrent_left(depth_of(loop), loop->tiles != NULL);
}

/* Position of a column of sequence b. */
static int64_t left_at(const Block *block, int64_t b, int64_t column)
{
    return (b - block->part->begin) * left_stride(block->loop) + column;
}

/* Zeros between the depth and whole tiles. */
static void zero_padding(const KilnRecurrentLoop *loop, const KilnRecurrentPart *part)
{
    const int64_t depth = depth_of(loop), stride = left_stride(loop);

    if (loop->tiles == NULL || part->last < loop->hidden)
        return;
    for (int64_t r = 0; r < part->end - part->begin; r++)
        for (int i = 0; i < 2; i++)
            zero_rows((KilnRecurrentRows) { part->left[i], true }, r * stride + depth,
                      stride - depth);
}

/* ---- Products ------------------------------------------------------------------------- */

static void pack(float *panels, const float *weight, int64_t gates, int64_t hidden, bool backward,
                 int64_t begin, int64_t end)
{
    const int64_t blocks = kiln_recurrent_blocks(hidden),
                  depth = backward ? gates * hidden : hidden;

    for (int64_t i = begin; i < end; i++) {
        const int64_t unit = i % blocks * UNITS, n = kiln_min_i64(UNITS, hidden - unit);
        float *panel = panels + i * depth * PANEL;

        if (backward)
            tile_pack(panel, weight + unit, hidden, depth, n);
        else
            tile_pack_transposed(panel, weight + (i / blocks * hidden + unit) * hidden, hidden,
                                 hidden, n);
    }
}

/* sums [rows, UNITS], `row` apart, = or += step s's left factor · a panel of the weight. */
static void product(const Block *block, int64_t s, int64_t panel, float *sums, int64_t row,
                    bool add)
{
    const KilnRecurrentLoop *loop = block->loop;
    const int64_t depth = depth_of(loop), stride = left_stride(loop);
    const int64_t from = left_at(block, block->row, 0);

    if (loop->tiles == NULL) {
        tile_product(&(Tile) { .c = sums,
                               .c_row = row,
                               .a = (const float *)left_of(block, s).data + from,
                               .a_row = stride,
                               .a_step = 1,
                               .b = (const float *)loop->weight + panel * depth * PANEL,
                               .b_step = PANEL,
                               .m = block->rows,
                               .n = PANEL,
                               .k = depth,
                               .add = add });
        return;
    }
    const int64_t steps = (depth + KILN_TILE_DEPTH - 1) / KILN_TILE_DEPTH;
    const int64_t line = steps * KILN_TILE_SIZE;
    const KilnTileSide left = { .first = (const uint16_t *)left_of(block, s).data + from,
                                .second = KILN_TILE_ROWS * stride,
                                .step = KILN_TILE_DEPTH,
                                .row = stride * (int64_t)sizeof(uint16_t) };
    const KilnTileSide right = { .first = (const uint16_t *)loop->weight + 2 * panel * line,
                                 .second = line,
                                 .step = KILN_TILE_SIZE,
                                 .row = 64 };

    loop->tiles->block(sums, row, &left, &right, block->rows, steps, 1, add);
}

/* ---- Blocks of a part --------------------------------------------------------------- */

typedef void BlockFunction(const Block *block);

/* Units come first, since their weights are larger than the states of some sequences. */
static void each_block(const KilnRecurrentLoop *loop, const KilnRecurrentPart *part, int64_t s,
                       BlockFunction *run)
{
    _Alignas(64) float sums[ROWS * MOST_GATES * UNITS];
    Block block = { .loop = loop, .part = part, .s = s, .t = time_of(loop, s), .sums = sums };

    if (loop->tiles != NULL)
        loop->tiles->begin();
    for (block.unit = part->first; block.unit < part->last; block.unit += UNITS) {
        block.units = kiln_min_i64(UNITS, part->last - block.unit);
        for (block.row = part->begin; block.row < part->end; block.row += ROWS) {
            block.rows = kiln_min_i64(ROWS, part->end - block.row);
            run(&block);
        }
    }
    if (loop->tiles != NULL)
        loop->tiles->end();
}

/* Sequence by sequence, where no weights are read: a sequence's units follow each other in memory.
 */
static void each_row(const KilnRecurrentLoop *loop, const KilnRecurrentPart *part, int64_t s,
                     BlockFunction *run)
{
    Block block = { .loop = loop, .part = part, .s = s, .t = time_of(loop, s), .rows = 1 };

    for (block.row = part->begin; block.row < part->end; block.row++)
        for (block.unit = part->first; block.unit < part->last; block.unit += UNITS) {
            block.units = kiln_min_i64(UNITS, part->last - block.unit);
            run(&block);
        }
}

/* ---- Forward ------------------------------------------------------------------------ */

static void start_states(const Block *block)
{
    const KilnRecurrentLoop *loop = block->loop;

    for (int64_t b = block->row; b < block->row + block->rows; b++) {
        const int64_t at = b * loop->hidden + block->unit;

        copy_or_zero(loop->h + at, loop->h0 != NULL ? loop->h0 + at : NULL, block->units);
        if (loop->c != NULL)
            copy_or_zero(loop->c + at, loop->c0 != NULL ? loop->c0 + at : NULL, block->units);
        store(left_of(block, 0), left_at(block, b, block->unit), loop->h + at, block->units);
    }
}

/* The hidden states' contribution to the gates; of initial zeros too, for 0 times NaN is NaN. */
static void forward_sums(const Block *block)
{
    const KilnRecurrentLoop *loop = block->loop;
    const int64_t row = loop->gates * UNITS, blocks = kiln_recurrent_blocks(loop->hidden);

    for (int64_t r = 0; r < block->rows && loop->bias != NULL; r++)
        for (int64_t g = 0; g < loop->gates; g++)
            memcpy(block->sums + r * row + g * UNITS, loop->bias + g * loop->hidden + block->unit,
                   (size_t)block->units * sizeof(float));
    for (int64_t g = 0; g < loop->gates; g++)
        product(block, block->s, g * blocks + block->unit / UNITS, block->sums + g * UNITS, row,
                loop->bias != NULL);
}

static void forward_row(const Block *block, int64_t b)
{
    const KilnRecurrentLoop *loop = block->loop;
    const int64_t hidden = loop->hidden, gates = loop->gates, n = block->units;
    const int64_t at = place(loop, block->t, b, hidden) + block->unit;
    const int64_t at_gates = place(loop, block->t, b, gates * hidden) + block->unit;
    float *h = loop->h + b * hidden + block->unit, in[MOST_GATES * UNITS];

    if (active(loop, block->t, b)) {
        for (int64_t g = 0; g < gates; g++)
            load(in + g * UNITS, loop->p, at_gates + g * hidden, n);
        const Cells cells = { .in = in,
                              .sums = block->sums + (b - block->row) * gates * UNITS,
                              .gates = loop->gates_out + at_gates,
                              .h = h,
                              .c = gates == 4 ? loop->c + b * hidden + block->unit : NULL,
                              .kept = loop->kept + at,
                              .hidden = hidden };

        run_cells(&cells, gates, n);
        store(loop->y, at, h, n);
    } else {
        for (int64_t g = 0; g < gates; g++)
            copy_or_zero(loop->gates_out + at_gates + g * hidden, NULL, n);
        zero_rows(loop->y, at, n);
        copy_or_zero(loop->kept + at, NULL, n);
    }
    store(left_of(block, block->s + 1), left_at(block, b, block->unit), h, n);
}

static void forward_block(const Block *block)
{
    const int64_t end = block->row + block->rows;

    for (int64_t b = block->row; b < block->row + AHEAD && b < end; b++)
        fetch_forward(block, b);
    forward_sums(block);
    for (int64_t b = block->row; b < end; b++) {
        if (b + AHEAD < end)
            fetch_forward(block, b + AHEAD);
        forward_row(block, b);
    }
}

static void forward(const KilnRecurrentLoop *loop, const KilnRecurrentPart *part, int64_t phase)
{
    if (phase == 0)
        zero_padding(loop, part);
    each_block(loop, part, phase - 1, phase == 0 ? start_states : forward_block);
}

/* ---- Backward ----------------------------------------------------------------------- */

static const float zeros[UNITS];

static void start_gradients(const Block *block)
{
    const KilnRecurrentLoop *loop = block->loop;

    for (int64_t b = block->row; b < block->row + block->rows; b++) {
        const int64_t at = b * loop->hidden + block->unit;

        copy_or_zero(loop->dh0 + at, loop->dh != NULL ? loop->dh + at : NULL, block->units);
        if (loop->dc0 != NULL)
            copy_or_zero(loop->dc0 + at, loop->dc != NULL ? loop->dc + at : NULL, block->units);
    }
}

/* The block's units of the state before the step: an LSTM's cells, a GRU's hidden state. */
static const float *previous_of(const Block *block, int64_t b, float *copy)
{
    const KilnRecurrentLoop *loop = block->loop;
    const int64_t row = row_before(loop, block->s, b), at = row * loop->hidden + block->unit;
    const float *initial = loop->gates == 4 ? loop->c0 : loop->h0;

    if (row < 0)
        return initial != NULL ? initial + b * loop->hidden + block->unit : zeros;
    if (loop->gates == 4)
        return loop->kept_in + at;
    load(copy, loop->y_in, at, block->units);
    return copy;
}

/* Stores the gradients of the gates, and of the hidden state's contribution: the left factor. */
static void store_gradients(const Block *block, int64_t b, const float *dp, const float *share)
{
    const KilnRecurrentLoop *loop = block->loop;
    const int64_t hidden = loop->hidden, n = block->units;
    const int64_t at = place(loop, block->t, b, loop->gates * hidden) + block->unit;

    for (int64_t g = 0; g < loop->gates; g++) {
        const float *from = (share != NULL ? share : dp) + g * UNITS;

        store(loop->dp, at + g * hidden, dp + g * UNITS, n);
        store(left_of(block, block->s), left_at(block, b, g * hidden + block->unit), from, n);
        if (share != NULL)
            store(loop->share, at + g * hidden, from, n);
    }
}

static void gradient_row(const Block *block, int64_t b)
{
    const KilnRecurrentLoop *loop = block->loop;
    const int64_t hidden = loop->hidden;
    const int64_t at = place(loop, block->t, b, hidden) + block->unit;
    float dp[MOST_GATES * UNITS], share[MOST_GATES * UNITS], dy[UNITS], previous[UNITS];

    if (!active(loop, block->t, b)) {
        memset(dp, 0, sizeof(dp));
        store_gradients(block, b, dp, loop->gates == 3 ? dp : NULL);
        return;
    }
    const CellGrads cells = {
        .gates = loop->gates_in + place(loop, block->t, b, loop->gates * hidden) + block->unit,
        .kept = loop->kept_in + at,
        .previous = previous_of(block, b, previous),
        .dy = loop->dy.data != NULL ? dy : zeros,
        .dh = loop->dh0 + b * hidden + block->unit,
        .dc = loop->gates == 4 ? loop->dc0 + b * hidden + block->unit : NULL,
        .dp = dp,
        .share = share,
        .hidden = hidden,
    };

    if (loop->dy.data != NULL)
        load(dy, loop->dy, at, block->units);
    run_cell_grads(&cells, loop->gates, block->units);
    store_gradients(block, b, dp, loop->gates == 3 ? share : NULL);
}

static void gradient_block(const Block *block)
{
    if (block->row + 1 < block->part->end)
        fetch_gradient(block, block->s, block->row + 1);
    gradient_row(block, block->row);
}

/* The gradient of the state before the step, of sequences that took it. */
static void state_block(const Block *block)
{
    const KilnRecurrentLoop *loop = block->loop;

    if (block->s > 0 && block->row == block->part->begin)
        fetch_gradient(block, block->s - 1, block->row);
    product(block, block->s, block->unit / UNITS, block->sums, UNITS, false);
    for (int64_t r = 0; r < block->rows; r++) {
        const float *sums = block->sums + r * UNITS;
        float *dh = loop->dh0 + (block->row + r) * loop->hidden + block->unit;

        for (int64_t j = 0; active(loop, block->t, block->row + r) && j < block->units; j++)
            dh[j] = loop->gates == 3 ? sums[j] + dh[j] : sums[j];
    }
}

/* The product of one step needs the gradients of all gates, so it comes a phase later. */
static void backward(const KilnRecurrentLoop *loop, const KilnRecurrentPart *part, int64_t phase)
{
    if (phase == 0) {
        zero_padding(loop, part);
        each_row(loop, part, 0, start_gradients);
    } else {
        each_block(loop, part, loop->steps - phase, state_block);
    }
    if (phase < loop->steps)
        each_row(loop, part, loop->steps - phase - 1, gradient_block);
}

const KilnRecurrentLoops KILN_LOOPS(recurrent_loops) = {
    .forward = forward,
    .backward = backward,
    .pack = pack,
};
