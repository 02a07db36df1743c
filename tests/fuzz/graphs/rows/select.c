/* Operations that order, group and pick elements. */
#include "tests/fuzz/graphs/row.h"

DRAW(sort)
{
    item->in[0] = draw_float(draw, 1, 4);
    item->arg[0] = draw_axis(draw, item->in[0]);
    item->arg[1] = draw_below(draw, 2);
    item->arg[2] = draw_between(draw, 1, draw_dim_of(draw, item->in[0], (int)item->arg[0]));
    return true;
}

BUILD(sort)
{
    const KilnSorted sorted = kiln_sort(in[0], (int)item->arg[0], item->arg[1] != 0);

    out[0] = sorted.values;
    out[1] = sorted.indices;
}

BUILD(topk)
{
    const KilnSorted sorted = kiln_topk(in[0], item->arg[2], (int)item->arg[0], item->arg[1] != 0);

    out[0] = sorted.values;
    out[1] = sorted.indices;
}

BUILD(argsort)
{
    out[0] = kiln_argsort(in[0], (int)item->arg[0], item->arg[1] != 0);
}

DRAW(segment)
{
    item->in[0] = draw_float(draw, 1, 4);
    const int64_t count = draw_size(draw, 33);

    item->in[1] = draw_index(draw, KILN_SHAPE(draw_dim_of(draw, item->in[0], 0)),
                             draw_chance(draw, 20) ? -1 : 0, count + draw_chance(draw, 5));
    item->arg[0] = count;
    return true;
}
BUILD_TWO(segment_sum, kiln_segment_sum(a, b, item->arg[0]))
BUILD_TWO(segment_mean, kiln_segment_mean(a, b, item->arg[0]))
BUILD_TWO(segment_max, kiln_segment_max(a, b, item->arg[0]))

DRAW(nonzero)
{
    item->in[0] = draw_float(draw, 0, 3);
    const KilnShape shape = draw_shape_of(draw, item->in[0]);
    item->in[1] = draw_mask(draw, shape);
    item->arg[0] = draw_between(draw, 1, kiln_shape_count(&shape));
    return true;
}

BUILD(nonzero)
{
    const KilnPlaces places = kiln_nonzero(kiln_relu(in[0]), item->arg[0]);

    out[0] = places.index;
    out[1] = places.count;
}

BUILD(masked_select)
{
    const KilnPicked picked = kiln_masked_select(in[0], in[1], item->arg[0]);

    out[0] = picked.values;
    out[1] = picked.count;
}

/* Of a leaf that nothing updates: whether computed values are equal depends on the last bit, and
 * one pair more or less moves all places after it. */
DRAW(unique)
{
    const bool ties = draw_chance(draw, 60);

    item->in[0] = draw_leaf(draw, LEAF_INPUT, ties ? VALUES_INTEGERS : VALUES_NORMAL,
                            draw_shape(draw, 0, 3));
    return true;
}

BUILD(unique)
{
    const KilnUnique unique = kiln_unique(in[0]);

    out[0] = unique.values;
    out[1] = unique.inverse;
    out[2] = unique.counts;
    out[3] = unique.count;
}

/* An index of x's rank and, off the axis, at most its sizes. */
DRAW(gather)
{
    item->in[0] = draw_float(draw, 1, 4);
    KilnShape shape = draw_shape_of(draw, item->in[0]);
    const int axis = draw_axis(draw, item->in[0]);
    const int64_t size = shape.dim[axis];

    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i == axis ? draw_size(draw, 33) : draw_between(draw, 1, shape.dim[i]);
    item->in[1] = draw_index(draw, shape, 0, size + draw_chance(draw, 5));
    item->in[2] = draw_like(draw, shape);
    item->arg[0] = axis;
    return true;
}
BUILD_TWO(gather, kiln_gather(a, (int)item->arg[0], b))

BUILD(scatter_add)
{
    out[0] = kiln_scatter_add(in[0], (int)item->arg[0], in[1], in[2]);
}

DRAW(index_select)
{
    item->in[0] = draw_float(draw, 1, 4);
    item->arg[0] = draw_axis(draw, item->in[0]);
    const int64_t size = draw_dim_of(draw, item->in[0], (int)item->arg[0]);

    item->in[1] =
        draw_index(draw, draw_chance(draw, 70) ? KILN_SHAPE(draw_size(draw, 40)) : KILN_SHAPE(2, 3),
                   0, size + draw_chance(draw, 5));
    return draw_count_of(draw, item->in[0]) * 40 < 400000;
}
BUILD_TWO(index_select, kiln_index_select(a, (int)item->arg[0], b))

DRAW(one_hot)
{
    item->arg[0] = draw_size(draw, 33);
    item->in[0] = draw_index(draw, draw_shape(draw, 0, 2), -1, item->arg[0] + 1);
    return true;
}
BUILD_ONE(one_hot, kiln_one_hot(x, item->arg[0]))

DRAW(arange)
{
    item->in[0] = draw_float(draw, 1, 3);
    return true;
}
BUILD_ONE(arange, kiln_add(x, kiln_arange(kiln_tensor_graph(x), kiln_tensor_dtype(x), -1.0, 0.25,
                                          kiln_tensor_dim(x, -1))))

static const Row table[] = {
    { "sort", row_sort, build_sort, 0, 0, false, true },
    { "topk", row_sort, build_topk, 0, 0, false, true },
    { "argsort", row_sort, build_argsort, 0, 0, false, true },
    { "segment_sum", row_segment, build_segment_sum, 0, 0, false, false },
    { "segment_mean", row_segment, build_segment_mean, 0, 0, false, false },
    { "segment_max", row_segment, build_segment_max, 0, 0, false, true },
    { "nonzero", row_nonzero, build_nonzero, 1, 0, false, true },
    { "masked_select", row_nonzero, build_masked_select, 0, 0, false, true },
    { "unique", row_unique, build_unique, 1, 0, false, true },
    { "gather", row_gather, build_gather, 0, 0, false, false },
    { "scatter_add", row_gather, build_scatter_add, 0, 0, false, false },
    { "index_select", row_index_select, build_index_select, 0, 0, false, false },
    { "one_hot", row_one_hot, build_one_hot, 0, 0, false, false },
    { "arange", row_arange, build_arange, 0, 0, false, false },
};
ROWS(select)
