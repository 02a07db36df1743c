/* Vector loops over whole arrays, in plain C. Compiled once per level; KILN_ISA names it. `omp
 * simd` states that arrays are equal or disjoint. A loop runs on one thread; callers split the
 * work. */
#include "backend/cpu/isa/vector_loops.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backend/cpu/isa/sequence/attention.h"
#include "backend/cpu/isa/batch_norm.h"
#include "backend/cpu/isa/gemm.h"
#include "backend/cpu/isa/libmvec.h"
#include "backend/cpu/isa/philox.h"
#include "backend/cpu/isa/images/depthwise.h"
#include "backend/cpu/isa/images/pooling.h"
#include "backend/cpu/isa/sequence/recurrent.h"
#include "backend/cpu/isa/row_norm.h"
#include "backend/cpu/isa/transpose.h"
#include "backend/cpu/isa/images/winograd.h"
#include "backend/cpu/isa/vector.h"
#include "tensor/bf16.h"

static void add(float *y, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void scale(float *y, const float *x, float factor, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * factor;
}

static void fill(float *y, float value, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = value;
}

static void to_bf16(uint16_t *y, const float *x, int64_t n)
{
    int64_t i = 0;

    for (; i + KILN_LANES <= n; i += KILN_LANES)
        kiln_store_lanes(y, i, kiln_load_lanes(x, i, KILN_LANES, false), KILN_LANES, true);
    for (; i < n; i++)
        y[i] = kiln_bf16_of(x[i]);
}

static void from_bf16(float *y, const uint16_t *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = kiln_bf16_to(x[i]);
}

/* Two neighbouring blocks of 8, or one of 16. */
KILN_INLINE KilnFloats load_blocks(const float *x, int64_t next, int64_t block)
{
    KilnFloats floats = kiln_load_lanes(x, 0, KILN_LANES, false);

    if (block < KILN_LANES)
        memcpy((float *)&floats + block, x + next, (size_t)block * sizeof(float));
    return floats;
}

/* `block` is a constant where this is inlined. */
KILN_INLINE void block_rows_to_bf16(uint16_t *y, const float *x, int64_t begin, int64_t end,
                                    int64_t rows, int64_t channels, int64_t block)
{
    for (int64_t r = begin; r < end; r++) {
        const float *from = x + r * block;
        uint16_t *to = y + r * channels;
        int64_t c = 0;

        for (; c + KILN_LANES <= channels; c += KILN_LANES)
            kiln_store_lanes(to, c, load_blocks(from + c * rows, block * rows, block), KILN_LANES,
                             true);
        for (; c < channels; c += block)
            to_bf16(to + c, from + c * rows, channels - c < block ? channels - c : block);
    }
}

static void blocks_to_bf16(uint16_t *y, const float *x, int64_t begin, int64_t end, int64_t rows,
                           int64_t channels, int64_t block)
{
    if (block == 8)
        block_rows_to_bf16(y, x, begin, end, rows, channels, 8);
    else
        block_rows_to_bf16(y, x, begin, end, rows, channels, 16);
}

/* In single registers: gcc keeps several vectors of KILN_LANES in memory, not in two registers. */
static float dot_bf16(const float *x, const uint16_t *row, int64_t n)
{
    enum { AT_ONCE = 4 };
    Vector sum[AT_ONCE] = { { 0 } };
    float total = 0.0f;
    int64_t i = 0;

    for (; i + AT_ONCE * WIDTH <= n; i += AT_ONCE * WIDTH)
#pragma GCC unroll 4
        for (int v = 0; v < AT_ONCE; v++)
            sum[v] = FMA(*(const Floats *)(x + i + v * WIDTH), vector_of_bf16(row + i + v * WIDTH),
                         sum[v]);
    for (; i + WIDTH <= n; i += WIDTH)
        sum[0] = FMA(*(const Floats *)(x + i), vector_of_bf16(row + i), sum[0]);
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (int lane = 0; lane < WIDTH; lane++)
        total += sum[0][lane];
    for (; i < n; i++)
        total += x[i] * kiln_bf16_to(row[i]);
    return total;
}

static void dot_rows_bf16(float *y, const float *x, const uint16_t *rows, int64_t stride,
                          int64_t count, int64_t n)
{
    for (int64_t r = 0; r < count; r++)
        y[r] = dot_bf16(x, rows + r * stride, n);
}

/* Eight elements; for AVX2 shorter code than half of KILN_LANES. */
KILN_INLINE void eight_from_bf16(float *y, const uint16_t *x)
{
    typedef uint32_t Words __attribute__((vector_size(32)));
    typedef uint16_t Halves __attribute__((vector_size(16)));
    Halves half;

    memcpy(&half, x, sizeof(half));
    const Words words = __builtin_convertvector(half, Words) << 16;
    memcpy(y, &words, sizeof(words));
}

static void blocks_from_bf16(float *y, const uint16_t *x, int64_t begin, int64_t end, int64_t rows,
                             int64_t channels, int64_t block)
{
    for (int64_t c = 0; c < channels; c += block)
        for (int64_t r = begin; r < end; r++)
            for (int64_t i = 0; i < block; i += 8)
                eight_from_bf16(y + c * rows + r * block + i, x + r * channels + c + i);
}

/* ---- Dropout ---------------------------------------------------------------- */

static void dropout(float *y, uint8_t *mask, const float *x, const KilnDropoutLoop *dropout,
                    int64_t begin, int64_t end)
{
    for (int64_t from = begin; from < end; from += WORDS) {
        const int64_t n = end - from < WORDS ? end - from : WORDS;
        uint32_t words[WORDS];

        philox_blocks(dropout, (uint64_t)from / 4, words);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            int kept = (words[i] >> 8) >= dropout->threshold;

            y[from - begin + i] = kept ? x[from - begin + i] * dropout->scale : 0.0f;
            mask[from - begin + i] = (uint8_t)kept;
        }
    }
}

static void dropout_grad(float *dx, const float *dy, const uint8_t *mask, float factor, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = mask[i] != 0 ? dy[i] * factor : 0.0f;
}

/* ---- Random numbers --------------------------------------------------------- */

static void uniform(float *y, const KilnDropoutLoop *key, int64_t begin, int64_t end)
{
    for (int64_t from = begin; from < end; from += WORDS) {
        const int64_t n = end - from < WORDS ? end - from : WORDS;
        uint32_t words[WORDS];

        philox_blocks(key, (uint64_t)from / 4, words);
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[from + i] = (float)(words[i] >> 8) * 0x1p-24f;
    }
}

/* Whole blocks are computed, so that a number does not depend on the end of the array. */
static void normal(float *y, const KilnDropoutLoop *key, int64_t begin, int64_t end)
{
    const float turn = 6.2831853071795865f * 0x1p-24f;

    for (int64_t from = begin; from < end; from += WORDS) {
        const int64_t n = end - from < WORDS ? end - from : WORDS;
        uint32_t words[WORDS];
        float pairs[WORDS];

        philox_blocks(key, (uint64_t)from / 4, words);
#pragma omp simd
        for (int i = 0; i < WORDS; i += 2) {
            const float radius = sqrtf(-2.0f * logf((float)((words[i] >> 8) + 1) * 0x1p-24f));
            const float angle = (float)(words[i + 1] >> 8) * turn;

            pairs[i] = radius * cosf(angle);
            pairs[i + 1] = radius * sinf(angle);
        }
        memcpy(y + from, pairs, (size_t)n * sizeof(*y));
    }
}

/* ---- Sums ------------------------------------------------------------------- */

enum { LANES = 16 };

static double sum(const float *x, int64_t n)
{
    double lanes[LANES] = { 0 }, total = 0.0;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += (double)x[i + lane];
    for (; i < n; i++)
        total += (double)x[i];
    for (int lane = 0; lane < LANES; lane++)
        total += lanes[lane];
    return total;
}

/* Sums of n columns (a constant where this is inlined), which registers hold. */
static inline __attribute__((always_inline)) void sum_columns(float *out, const float *x,
                                                              int64_t rows, int64_t n,
                                                              int64_t stride)
{
    float sums[8 * LANES] = { 0 };

    for (int64_t r = 0; r < rows; r++, x += stride)
#pragma GCC unroll 8
        for (int64_t c = 0; c < n; c += LANES)
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++)
                sums[c + lane] += x[c + lane];
    memcpy(out, sums, (size_t)n * sizeof(float));
}

static void sum_rows(float *out, const float *x, int64_t rows, int64_t columns, int64_t stride)
{
    int64_t c = 0;

    for (; c + 8 * LANES <= columns; c += 8 * LANES)
        sum_columns(out + c, x + c, rows, 8 * LANES, stride);
    for (; c + LANES <= columns; c += LANES)
        sum_columns(out + c, x + c, rows, LANES, stride);
    for (; c < columns; c++) {
        float total = 0.0f;

        for (int64_t r = 0; r < rows; r++)
            total += x[r * stride + c];
        out[c] = total;
    }
}

/* ---- Extremes, sums of exponentials -------------------------------------------- */

/* The larger; NaN if either is, as their sum then is. */
static inline float larger(float a, float b)
{
    return a != a || b != b ? a + b : a > b ? a : b;
}

static float largest(const float *x, float sign, int64_t n)
{
    float lanes[LANES], most = sign * x[0];
    int64_t i = 0;

    for (int lane = 0; lane < LANES; lane++)
        lanes[lane] = most;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] = larger(lanes[lane], sign * x[i + lane]);
    for (; i < n; i++)
        most = larger(most, sign * x[i]);
    for (int lane = 0; lane < LANES; lane++)
        most = larger(most, lanes[lane]);
    return most;
}

static void largest_rows(float *out, const float *x, float sign, int64_t rows, int64_t columns)
{
    for (int64_t c = 0; c < columns; c++)
        out[c] = sign * x[c];
    for (int64_t r = 1; r < rows; r++)
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            out[c] = larger(out[c], sign * x[r * columns + c]);
}

static double sum_exp(const float *x, float shift, int64_t n)
{
    float tile[WORDS];
    double total = 0.0;

    for (int64_t from = 0; from < n; from += WORDS) {
        const int64_t m = n - from < WORDS ? n - from : WORDS;

#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            tile[i] = expf(x[from + i] - shift);
        total += sum(tile, m);
    }
    return total;
}

static void sum_exp_rows(float *out, const float *x, const float *shift, int64_t rows,
                         int64_t columns)
{
    for (int64_t c = 0; c < columns; c++)
        out[c] = 0.0f;
    for (int64_t r = 0; r < rows; r++)
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            out[c] += expf(x[r * columns + c] - shift[c]);
}

/* ---- Short rows ------------------------------------------------------------------ */

enum { SUM, LARGEST };
enum { SHORT_TILE = LANES * KILN_SHORT_ROW }; /* elements at once */

static inline __attribute__((always_inline)) void reduce_rows(float *y, const float *x, float sign,
                                                              int64_t rows, int64_t n, int kind)
{
#pragma omp simd
    for (int64_t i = 0; i < rows; i++) {
        float value = sign * x[i * n];

        for (int64_t k = 1; k < n; k++)
            value = kind == SUM ? value + x[i * n + k] : larger(value, sign * x[i * n + k]);
        y[i] = value;
    }
}

/* Compiled separately for the usual lengths, so that rows run side by side. */
static inline __attribute__((always_inline)) void reduce_short(float *y, const float *x, float sign,
                                                               int64_t rows, int64_t n, int kind)
{
    switch (n) {
    case 2:
        reduce_rows(y, x, sign, rows, 2, kind);
        break;
    case 3:
        reduce_rows(y, x, sign, rows, 3, kind);
        break;
    case 4:
        reduce_rows(y, x, sign, rows, 4, kind);
        break;
    case 8:
        reduce_rows(y, x, sign, rows, 8, kind);
        break;
    case 16:
        reduce_rows(y, x, sign, rows, 16, kind);
        break;
    default:
        reduce_rows(y, x, sign, rows, n, kind);
        break;
    }
}

static void sum_short(float *y, const float *x, int64_t rows, int64_t n)
{
    reduce_short(y, x, 1.0f, rows, n, SUM);
}

static void largest_short(float *y, const float *x, float sign, int64_t rows, int64_t n)
{
    reduce_short(y, x, sign, rows, n, LARGEST);
}

/* Processes as many rows as fill a tile, so that exponentials are whole vectors. */
static void logsumexp_short(float *y, const float *x, int64_t rows, int64_t n)
{
    float tile[SHORT_TILE] = { 0 }, shift[SHORT_TILE], sums[SHORT_TILE] = { 0 };
    const int64_t most = SHORT_TILE / n / LANES * LANES;

    for (int64_t from = 0; from < rows; from += most) {
        const int64_t m = rows - from < most ? rows - from : most;

        largest_short(shift, x + from * n, 1.0f, m, n);
        for (int64_t i = 0; i < m; i++) {
            shift[i] = isinf(shift[i]) ? 0.0f : shift[i]; /* avoids NaN */
            for (int64_t k = 0; k < n; k++)
                tile[i * n + k] = x[(from + i) * n + k] - shift[i];
        }
#pragma omp simd
        for (int i = 0; i < SHORT_TILE; i++)
            tile[i] = expf(tile[i]);
        sum_short(sums, tile, most, n);
#pragma omp simd
        for (int64_t i = 0; i < most; i++)
            sums[i] = logf(sums[i]);
        for (int64_t i = 0; i < m; i++)
            y[from + i] = shift[i] + sums[i];
    }
}

/* ---- Losses, averages ------------------------------------------------------- */

static void softmax_grad(float *dx, const float *dy, const float *y, int64_t n)
{
    double dot = 0.0;

#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < n; i++)
        dot += (double)dy[i] * (double)y[i];

    const float shift = (float)dot;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - shift);
}

static void blend(float *variable, const float *value, float keep, float take, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        variable[i] = keep * variable[i] + take * value[i];
}

const KilnLoops KILN_LOOPS(loops) = {
    .map = &KILN_LOOPS(map_loops),
    .add = add,
    .scale = scale,
    .fill = fill,
    .to_bf16 = to_bf16,
    .from_bf16 = from_bf16,
    .dot_rows_bf16 = dot_rows_bf16,
    .blocks_to_bf16 = blocks_to_bf16,
    .blocks_from_bf16 = blocks_from_bf16,
    .dropout = dropout,
    .dropout_grad = dropout_grad,
    .uniform = uniform,
    .normal = normal,
    .sum = sum,
    .sum_rows = sum_rows,
    .sum_short = sum_short,
    .largest_short = largest_short,
    .logsumexp_short = logsumexp_short,
    .largest = largest,
    .largest_rows = largest_rows,
    .sum_exp = sum_exp,
    .sum_exp_rows = sum_exp_rows,
    .softmax_grad = softmax_grad,
    .blend = blend,
    .attention = &KILN_LOOPS(attention_loops),
    .batch_norm = &KILN_LOOPS(batch_norm_loops),
    .gemm = &KILN_LOOPS(gemm_loops),
    .losses = &KILN_LOOPS(loss_loops),
    .optimizers = &KILN_LOOPS(optimizer_loops),
    .depthwise = &KILN_LOOPS(depthwise_loops),
    .pooling = &KILN_LOOPS(pooling_loops),
    .recurrent = &KILN_LOOPS(recurrent_loops),
    .row_norm = &KILN_LOOPS(row_norm_loops),
    .winograd = &KILN_LOOPS(winograd_loops),
};
