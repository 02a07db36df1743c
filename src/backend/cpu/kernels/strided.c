/* Strided copies. Axes that are contiguous in both arrays merge; then it is whole rows, a transpose
 * of two axes in tiles, or single elements. */
#include "backend/cpu/kernels/strided.h"

#include <string.h>

#include "backend/cpu/parallel.h"
#include "base/min.h"

/* Squares of four by four tiles: each row then reads and writes four adjacent cache lines instead
 * of one, since a page's address costs as much as a line. */
enum { TILE = 16, STRIP = 4 * TILE };

void kiln_plain_steps(const KilnShape *shape, int64_t step[KILN_MAX_RANK])
{
    int64_t size = 1;

    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        step[axis] = size;
        size *= shape->dim[axis];
    }
}

/* ---- Axes ------------------------------------------------------------------------ */

static void set_axis(KilnStrided *s, int i, int64_t dim, int64_t from_step, int64_t to_step)
{
    s->dim[i] = dim;
    s->from_step[i] = from_step;
    s->to_step[i] = to_step;
}

static void join_axes(KilnStrided *s)
{
    int n = 0;

    for (int i = 0; i < s->rank; i++) {
        const int64_t dim = s->dim[i], from = s->from_step[i], to = s->to_step[i];

        if (dim == 1)
            continue;
        if (n > 0 && s->from_step[n - 1] == from * dim && s->to_step[n - 1] == to * dim)
            set_axis(s, n - 1, s->dim[n - 1] * dim, from, to);
        else
            set_axis(s, n++, dim, from, to);
    }
    if (n == 0)
        set_axis(s, n++, 1, 1, 1);
    s->rank = n;
}

/* Moves an axis to the end; the others keep their order. */
static void axis_to_end(KilnStrided *s, int axis)
{
    const int64_t dim = s->dim[axis], from = s->from_step[axis], to = s->to_step[axis];

    for (int i = axis; i + 1 < s->rank; i++)
        set_axis(s, i, s->dim[i + 1], s->from_step[i + 1], s->to_step[i + 1]);
    set_axis(s, s->rank - 1, dim, from, to);
}

/* ---- Walking over the outer axes --------------------------------------------------- */

/* Current offsets of the index over the first `rank` axes, in elements. */
typedef struct Walk {
    const KilnStrided *strided;
    int rank;
    int64_t index[KILN_MAX_RANK], from, to;
} Walk;

static Walk walk_at(const KilnStrided *s, int rank, int64_t position)
{
    Walk walk = { .strided = s, .rank = rank };

    for (int i = rank - 1; i >= 0; i--) {
        walk.index[i] = position % s->dim[i];
        position /= s->dim[i];
        walk.from += walk.index[i] * s->from_step[i];
        walk.to += walk.index[i] * s->to_step[i];
    }
    return walk;
}

static void walk_on(Walk *walk)
{
    const KilnStrided *s = walk->strided;

    for (int i = walk->rank - 1; i >= 0; i--) {
        walk->from += s->from_step[i];
        walk->to += s->to_step[i];
        if (++walk->index[i] < s->dim[i])
            return;
        walk->from -= s->from_step[i] * s->dim[i];
        walk->to -= s->to_step[i] * s->dim[i];
        walk->index[i] = 0;
    }
}

static int64_t outer_count(const KilnStrided *s, int rank)
{
    int64_t n = 1;

    for (int i = 0; i < rank; i++)
        n *= s->dim[i];
    return n;
}

/* ---- Copies ------------------------------------------------------------------------ */

static void rows_part(void *context, int64_t begin, int64_t end)
{
    const KilnStrided *s = context;
    const size_t bytes = (size_t)s->dim[s->rank - 1] * s->size;
    Walk walk = walk_at(s, s->rank - 1, begin);

    for (int64_t i = begin; i < end; i++, walk_on(&walk))
        memcpy(s->to + walk.to * (int64_t)s->size, s->from + walk.from * (int64_t)s->size, bytes);
}

typedef uint32_t Words4 __attribute__((vector_size(16)));

/* to[i * to_step + c] = from[c * from_step + i] of 4×4 words, in registers. */
static inline void block_transpose(uint32_t *to, const uint32_t *from, int64_t to_step,
                                   int64_t from_step)
{
    Words4 x[4], y[4];

    for (int c = 0; c < 4; c++)
        memcpy(&x[c], from + c * from_step, sizeof(x[c]));
    const Words4 low01 = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
    const Words4 high01 = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
    const Words4 low23 = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
    const Words4 high23 = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);

    y[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    y[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    y[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    y[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
    for (int i = 0; i < 4; i++)
        memcpy(to + i * to_step, &y[i], sizeof(y[i]));
}

/* Copies by element size: to[i * to_step] = from[i * from_step], and the tile to[i * to_step + c] =
 * from[c * from_step + i]. */
#define COPIES(type)                                                                               \
    static void line_##type(type *to, const type *from, int64_t n, int64_t to_step,                \
                            int64_t from_step)                                                     \
    {                                                                                              \
        if (from_step == 0 && to_step == 1) { /* one value throughout */                           \
            const type value = *from;                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = value;                                                                     \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i * to_step] = from[i * from_step];                                                 \
    }                                                                                              \
    static void tile_##type(type *restrict to, const type *restrict from, int64_t rows,            \
                            int64_t columns, int64_t to_step, int64_t from_step)                   \
    {                                                                                              \
        type tile[TILE][TILE];                                                                     \
        if (rows < TILE || columns < TILE) {                                                       \
            for (int64_t i = 0; i < rows; i++)                                                     \
                for (int64_t c = 0; c < columns; c++)                                              \
                    to[i * to_step + c] = from[c * from_step + i];                                 \
            return;                                                                                \
        }                                                                                          \
        if (sizeof(type) == sizeof(uint32_t)) {                                                    \
            for (int i = 0; i < TILE; i += 4)                                                      \
                for (int c = 0; c < TILE; c += 4)                                                  \
                    block_transpose((uint32_t *)(void *)(to + i * to_step + c),                    \
                                    (const uint32_t *)(const void *)(from + c * from_step + i),    \
                                    to_step, from_step);                                           \
            return;                                                                                \
        }                                                                                          \
        for (int c = 0; c < TILE; c++)                                                             \
            for (int i = 0; i < TILE; i++)                                                         \
                tile[i][c] = from[c * from_step + i];                                              \
        for (int i = 0; i < TILE; i++)                                                             \
            memcpy(to + i * to_step, tile[i], sizeof(tile[i]));                                    \
    }

COPIES(uint8_t)
COPIES(uint16_t)
COPIES(uint32_t)
COPIES(uint64_t)

#define BY_SIZE(size, CALL)                                                                        \
    switch (size) {                                                                                \
    case 1:                                                                                        \
        CALL(uint8_t);                                                                             \
        break;                                                                                     \
    case 2:                                                                                        \
        CALL(uint16_t);                                                                            \
        break;                                                                                     \
    case 4:                                                                                        \
        CALL(uint32_t);                                                                            \
        break;                                                                                     \
    default:                                                                                       \
        CALL(uint64_t);                                                                            \
        break;                                                                                     \
    }

static void lines_part(void *context, int64_t begin, int64_t end)
{
    const KilnStrided *s = context;
    const int last = s->rank - 1;
    Walk walk = walk_at(s, last, begin);

    for (int64_t i = begin; i < end; i++, walk_on(&walk)) {
#define LINE(type)                                                                                 \
    line_##type((type *)s->to + walk.to, (const type *)s->from + walk.from, s->dim[last],          \
                s->to_step[last], s->from_step[last])
        BY_SIZE(s->size, LINE)
    }
}

/* Rows first..stop by STRIP columns of a matrix, from column `from_column` on: a square that stays
 * in the first-level cache, with rows written line by line. */
static void square_part(const KilnStrided *s, const Walk *walk, int64_t first, int64_t stop,
                        int64_t from_column)
{
    const int across = s->rank - 2, last = s->rank - 1;
    const int64_t end = kiln_min_i64(from_column + STRIP, s->dim[last]);

    for (int64_t row = first; row < stop; row += TILE)
        for (int64_t c = from_column; c < end; c += TILE) {
            const int64_t columns = kiln_min_i64(end - c, TILE),
                          rows = kiln_min_i64(stop - row, TILE);
            const int64_t to = walk->to + row * s->to_step[across] + c;
            const int64_t from = walk->from + row + c * s->from_step[last];

#define TILE_OF(type)                                                                              \
    tile_##type((type *)s->to + to, (const type *)s->from + from, rows, columns,                   \
                s->to_step[across], s->from_step[last])
            BY_SIZE(s->size, TILE_OF)
        }
}

/* The last axis is contiguous in `to`, the one before it in `from`. A unit of work is a strip of
 * STRIP rows of one such matrix. */
static void strips_part(void *context, int64_t begin, int64_t end)
{
    const KilnStrided *s = context;
    const int across = s->rank - 2, last = s->rank - 1;
    const int64_t strips = (s->dim[across] + STRIP - 1) / STRIP;

    for (int64_t unit = begin; unit < end; unit++) {
        const Walk walk = walk_at(s, across, unit / strips);
        const int64_t first = unit % strips * STRIP;
        const int64_t stop = kiln_min_i64(first + STRIP, s->dim[across]);

        for (int64_t c = 0; c < s->dim[last]; c += STRIP)
            square_part(s, &walk, first, stop, c);
    }
}

/* The axis to transpose with the last one; -1: none. */
static int across_of(const KilnStrided *s)
{
    if (s->to_step[s->rank - 1] != 1)
        return -1;
    for (int i = 0; i + 1 < s->rank; i++)
        if (s->from_step[i] == 1)
            return i;
    return -1;
}

/* Splits a long axis in two, so that threads can share it; copies the remainder that does not
 * divide. */
static void cut_axis(KilnStrided *s, int64_t least)
{
    const int64_t n = s->dim[0], parts = n / least, each = n / parts, done = parts * each;
    KilnStrided rest = *s;

    rest.from += done * s->from_step[0] * (int64_t)s->size;
    rest.to += done * s->to_step[0] * (int64_t)s->size;
    rest.dim[0] = n - done;
    if (done < n)
        lines_part(&rest, 0, 1);
    set_axis(s, 1, each, s->from_step[0], s->to_step[0]);
    set_axis(s, 0, parts, each * s->from_step[0], each * s->to_step[0]);
    s->rank = 2;
}

void kiln_strided_copy(int threads, KilnStrided copy)
{
    /* Below this many elements, a thread costs more than it gains. */
    const int64_t least = 16384;

    join_axes(&copy);
    if (copy.rank == 1 && copy.dim[0] > 2 * least)
        cut_axis(&copy, least);
    const int last = copy.rank - 1, across = across_of(&copy);
    const int64_t columns = copy.dim[last], rows = outer_count(&copy, last);
    if (copy.from_step[last] == 1 && copy.to_step[last] == 1) {
        kiln_parallel(threads, rows, least / (columns + 1) + 1, 1, rows_part, &copy);
    } else if (across >= 0) {
        /* Put `across` next to the last axis. */
        axis_to_end(&copy, across);
        axis_to_end(&copy, last - 1);
        const int64_t strips = (copy.dim[last - 1] + STRIP - 1) / STRIP;
        kiln_parallel(threads, outer_count(&copy, last - 1) * strips,
                      least / (STRIP * columns + 1) + 1, 1, strips_part, &copy);
    } else {
        kiln_parallel(threads, rows, least / (columns + 1) + 1, 1, lines_part, &copy);
    }
}
