/* Operations that move, cut, join and repeat elements. */
#include "tests/fuzz/graphs/row.h"

/* The same elements in a random shape of the same count. */
DRAW(reshape)
{
    item->in[0] = draw_float(draw, 0, 5);
    int64_t left = draw_count_of(draw, item->in[0]);
    const int rank = (int)draw_between(draw, 1, 5);

    item->arg[0] = rank;
    for (int i = 1; i < rank; i++) {
        int64_t size = draw_between(draw, 1, left < 12 ? left : 12);
        while (left % size != 0)
            size--;
        item->arg[i] = size;
        left /= size;
    }
    item->arg[rank] = left;
    return true;
}

BUILD(reshape)
{
    KilnShape shape = { .rank = (int)item->arg[0] };

    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = item->arg[i + 1];
    out[0] = kiln_reshape(in[0], shape);
}

DRAW(permute)
{
    item->in[0] = draw_float(draw, 1, 5);
    const int rank = draw_rank_of(draw, item->in[0]);

    for (int i = 0; i < rank; i++) {
        const int64_t k = draw_below(draw, i + 1);
        item->arg[i] = item->arg[k];
        item->arg[k] = i;
    }
    return true;
}

BUILD(permute)
{
    int order[KILN_MAX_RANK];

    for (int i = 0; i < KILN_MAX_RANK; i++)
        order[i] = (int)item->arg[i];
    out[0] = kiln_permute(in[0], order);
}

/* An axis, which most operations here have. */
DRAW(axis)
{
    item->in[0] = draw_float(draw, 1, 5);
    item->arg[0] = draw_axis(draw, item->in[0]);
    item->arg[1] = draw_between(draw, -3, 7);
    return true;
}
BUILD_ONE(flip, kiln_flip(x, (int)item->arg[0]))
BUILD_ONE(roll, kiln_roll(x, (int)item->arg[0], item->arg[1]))
BUILD_ONE(cumsum, kiln_cumsum(x, (int)item->arg[0]))
BUILD_ONE(flatten, kiln_flatten(x))

DRAW(slice)
{
    item->in[0] = draw_float(draw, 1, 5);
    item->arg[0] = draw_axis(draw, item->in[0]);
    const int64_t size = draw_dim_of(draw, item->in[0], (int)item->arg[0]);
    item->arg[1] = draw_below(draw, size);
    item->arg[2] = draw_between(draw, item->arg[1] + 1, size);
    item->arg[3] = draw_chance(draw, 60) ? 1 : draw_between(draw, 1, 4);
    return true;
}
BUILD_ONE(slice, kiln_slice(x, (int)item->arg[0], item->arg[1], item->arg[2], item->arg[3]))

DRAW(triangle)
{
    item->in[0] = draw_float(draw, 2, 4);
    item->arg[0] = draw_between(draw, -3, 3);
    return true;
}
BUILD_ONE(tril, kiln_tril(x, item->arg[0], 0.25))
BUILD_ONE(triu, kiln_triu(x, item->arg[0], -1.0))

/* Places before and after each axis. */
DRAW(pad)
{
    item->in[0] = draw_float(draw, 1, 4);
    for (int i = 0; i < draw_rank_of(draw, item->in[0]); i++) {
        const int64_t most = draw_dim_of(draw, item->in[0], i) - 1;
        item->arg[i] = draw_between(draw, 0, most < 3 ? most : 3);
        item->arg[8 + i] = draw_between(draw, 0, most < 3 ? most : 3);
    }
    return true;
}
BUILD_ONE(pad, kiln_pad(x, &item->arg[0], &item->arg[8], -1.5))
BUILD_ONE(pad_reflect, kiln_pad_reflect(x, &item->arg[0], &item->arg[8]))
BUILD_ONE(pad_replicate, kiln_pad_replicate(x, &item->arg[0], &item->arg[8]))

/* Up to four tensors that differ along one axis. */
DRAW(concat)
{
    item->in[0] = draw_float(draw, 1, 4);
    KilnShape shape = draw_shape_of(draw, item->in[0]);
    const int64_t n = draw_between(draw, 1, 4);

    item->arg[0] = draw_axis(draw, item->in[0]);
    for (int i = 1; i < n; i++) {
        if (draw_chance(draw, 70))
            shape.dim[item->arg[0]] = draw_between(draw, 1, 20);
        item->in[i] = draw_like(draw, shape);
    }
    return true;
}

static int count_inputs(KilnTensor *const *in)
{
    int n = 0;

    while (n < SPEC_INPUTS && in[n] != NULL)
        n++;
    return n;
}

BUILD(concat)
{
    out[0] = kiln_concat(in, count_inputs(in), (int)item->arg[0]);
}

DRAW(stack)
{
    item->in[0] = draw_float(draw, 0, 4);
    for (int i = 1; i < draw_between(draw, 1, 4); i++)
        item->in[i] = draw_like(draw, draw_shape_of(draw, item->in[0]));
    item->arg[0] = draw_between(draw, 0, draw_rank_of(draw, item->in[0]));
    return true;
}

BUILD(stack)
{
    out[0] = kiln_stack(in, count_inputs(in), (int)item->arg[0]);
}

/* In two or three. */
DRAW(split)
{
    item->in[0] = draw_float(draw, 1, 4);
    item->arg[0] = draw_axis(draw, item->in[0]);
    const int64_t size = draw_dim_of(draw, item->in[0], (int)item->arg[0]);

    if (size < 3)
        return false;
    item->arg[1] = draw_between(draw, 1, size - 2);
    item->arg[2] = draw_between(draw, 1, size - item->arg[1] - 1);
    item->arg[3] = size - item->arg[1] - item->arg[2];
    return true;
}

BUILD(split)
{
    kiln_split(in[0], (int)item->arg[0], &item->arg[1], 3, out);
}

DRAW(broadcast)
{
    item->in[0] = draw_float(draw, 0, 3);
    const KilnShape shape = draw_shape_of(draw, item->in[0]);
    const int more = (int)draw_between(draw, 0, 2);

    item->arg[0] = shape.rank + more;
    for (int i = 0; i < item->arg[0]; i++) {
        const int64_t size = i < more ? 1 : shape.dim[i - more];
        item->arg[i + 1] = size == 1 ? draw_between(draw, 1, 7) : size;
    }
    return true;
}

BUILD(broadcast)
{
    KilnShape shape = { .rank = (int)item->arg[0] };

    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = item->arg[i + 1];
    out[0] = kiln_broadcast_to(in[0], shape);
}

/* A constant, added to x. */
DRAW(full)
{
    item->in[0] = draw_float(draw, 0, 4);
    item->num[0] = 0.5 * (double)draw_between(draw, -3, 3);
    return true;
}
BUILD_ONE(full,
          kiln_add(x, kiln_graph_full(kiln_tensor_graph(x), *kiln_tensor_shape(x), item->num[0])))

static const Row table[] = {
    { "reshape", row_reshape, build_reshape, 0, 0, false, false },
    { "permute", row_permute, build_permute, 0, 0, false, false },
    { "flip", row_axis, build_flip, 0, 0, false, false },
    { "roll", row_axis, build_roll, 0, 0, false, false },
    { "cumsum", row_axis, build_cumsum, 0, 0, false, false },
    { "flatten", row_axis, build_flatten, 0, 0, false, false },
    { "slice", row_slice, build_slice, 0, 0, false, false },
    { "tril", row_triangle, build_tril, 0, 0, false, false },
    { "triu", row_triangle, build_triu, 0, 0, false, false },
    { "pad", row_pad, build_pad, 0, 0, false, false },
    { "pad_reflect", row_pad, build_pad_reflect, 0, 0, false, false },
    { "pad_replicate", row_pad, build_pad_replicate, 0, 0, false, false },
    { "concat", row_concat, build_concat, 0, 14, false, false },
    { "stack", row_stack, build_stack, 0, 14, false, false },
    { "split", row_split, build_split, 0, 0, false, false },
    { "broadcast", row_broadcast, build_broadcast, 0, 0, false, false },
    { "full", row_full, build_full, 0, 0, false, false },
};
ROWS(shape)
