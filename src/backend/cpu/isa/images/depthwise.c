/* Vector loops of depthwise convolutions, in plain C. Compiled once per level. */
#include "backend/cpu/isa/images/depthwise.h"

#include "backend/cpu/isa/vector.h"

#if defined(__AVX512F__)
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));

KILN_INLINE Lanes load(const float *from)
{
    Lanes lanes;

    memcpy(&lanes, from, sizeof(lanes));
    return lanes;
}

KILN_INLINE void add_to(float *sums, Lanes more)
{
    more += load(sums);
    memcpy(sums, &more, sizeof(more));
}

/* Pixels of dy that all taps meet; taps is a constant after inlining, so that the sums stay in
 * registers. */
KILN_INLINE void add_inner(const KilnDepthwiseRow *row, int64_t begin, int64_t end, int taps,
                           float *sums)
{
    Lanes sum[KILN_DEPTHWISE_TAPS] = { { 0 } };

    for (int64_t i = begin; i < end; i++) {
        const float *x = row->x + (i * row->stride - row->padding) * row->x_step;
        const Lanes dy = load(row->dy + i * row->dy_step);

#pragma GCC unroll 8
        for (int k = 0; k < taps; k++)
            sum[k] += dy * load(x + k * row->x_step);
    }
#pragma GCC unroll 8
    for (int k = 0; k < taps; k++)
        add_to(sums + k * LANES, sum[k]);
}

/* Pixels of dy at an edge, where some taps meet padding. */
static void add_edge(const KilnDepthwiseRow *row, int64_t begin, int64_t end, float *sums)
{
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = 0; k < row->taps; k++) {
            const int64_t at = i * row->stride + k - row->padding;

            if (at >= 0 && at < row->x_pixels)
                add_to(sums + k * LANES,
                       load(row->dy + i * row->dy_step) * load(row->x + at * row->x_step));
        }
}

static void weight_row(const KilnDepthwiseRow *row, float *sums)
{
    const int64_t room = row->x_pixels + row->padding - row->taps;
    int64_t begin = (row->padding + row->stride - 1) / row->stride;
    int64_t end = room >= 0 ? room / row->stride + 1 : 0;

    begin = begin < row->dy_pixels ? begin : row->dy_pixels;
    end = end < row->dy_pixels ? end : row->dy_pixels;
    end = end > begin ? end : begin;
    add_edge(row, 0, begin, sums);
    switch (row->taps) {
    case 1:
        add_inner(row, begin, end, 1, sums);
        break;
    case 2:
        add_inner(row, begin, end, 2, sums);
        break;
    case 3:
        add_inner(row, begin, end, 3, sums);
        break;
    case 4:
        add_inner(row, begin, end, 4, sums);
        break;
    case 5:
        add_inner(row, begin, end, 5, sums);
        break;
    case 6:
        add_inner(row, begin, end, 6, sums);
        break;
    default:
        add_inner(row, begin, end, KILN_DEPTHWISE_TAPS, sums);
    }
    add_edge(row, end, row->dy_pixels, sums);
}

const KilnDepthwiseLoops KILN_LOOPS(depthwise_loops) = { .width = LANES, .weight_row = weight_row };
