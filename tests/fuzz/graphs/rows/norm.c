/* Normalization. */
#include "tests/fuzz/graphs/row.h"

/* The last axes, with weight and bias of their shape, or without. */
DRAW(last_axes)
{
    item->in[0] = draw_float(draw, 1, 4);
    const KilnShape x = draw_shape_of(draw, item->in[0]);
    KilnShape shape = { .rank = (int)draw_between(draw, 1, x.rank < 2 ? x.rank : 2) };

    item->arg[0] = shape.rank;
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = x.dim[x.rank - shape.rank + i];
    if (draw_chance(draw, 80)) {
        item->in[1] = draw_like(draw, shape);
        if (draw_chance(draw, 80))
            item->in[2] = draw_like(draw, shape);
    }
    return true;
}

BUILD(layer_norm)
{
    out[0] = kiln_layer_norm(in[0], in[1], in[2], (int)item->arg[0], 1e-5);
}

BUILD(rms_norm)
{
    out[0] = kiln_rms_norm(in[0], in[1], (int)item->arg[0], 1e-5);
}

DRAW(group_norm)
{
    item->in[0] = draw_float(draw, 2, 4);
    const int64_t c = draw_dim_of(draw, item->in[0], -1);

    item->arg[0] = draw_between(draw, 1, c);
    while (c % item->arg[0] != 0)
        item->arg[0]--;
    if (draw_chance(draw, 80)) {
        item->in[1] = draw_like(draw, KILN_SHAPE(c));
        item->in[2] = draw_like(draw, KILN_SHAPE(c));
    }
    return true;
}

BUILD(group_norm)
{
    out[0] = kiln_group_norm(in[0], in[1], in[2], item->arg[0], 1e-5);
}

DRAW(batch_norm)
{
    item->in[0] = draw_float(draw, 2, 4);
    const KilnShape shape = KILN_SHAPE(draw_dim_of(draw, item->in[0], -1));

    item->arg[0] = draw_chance(draw, 65);
    if (item->arg[0] != 0 && draw_count_of(draw, item->in[0]) / shape.dim[0] < 2)
        return false;
    item->in[1] = draw_like(draw, shape);
    item->in[2] = draw_like(draw, shape);
    for (int i = 3; i < 5; i++)
        item->in[i] = item->arg[0] != 0 ? draw_variable(draw, shape) : draw_positive(draw, shape);
    return true;
}

BUILD(batch_norm)
{
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = item->arg[0] != 0 };

    out[0] = kiln_batch_norm(in[0], in[1], in[2], in[3], in[4], norm);
}

/* With what networks record after it: a residual sum, a relu. */
BUILD(batch_norm_relu)
{
    build_batch_norm(in, item, out);
    out[0] = kiln_relu(in[5] != NULL ? kiln_add(out[0], in[5]) : out[0]);
}

DRAW(batch_norm_relu)
{
    if (!row_batch_norm(draw, item))
        return false;
    if (draw_chance(draw, 50))
        item->in[5] = draw_like(draw, draw_shape_of(draw, item->in[0]));
    return true;
}

DRAW(weight_norm)
{
    item->in[0] = draw_float(draw, 2, 4);
    KilnShape shape = draw_shape_of(draw, item->in[0]);

    item->arg[0] = draw_axis(draw, item->in[0]);
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i == item->arg[0] ? shape.dim[i] : 1;
    item->in[1] = draw_like(draw, shape);
    return true;
}
BUILD_TWO(weight_norm, kiln_weight_norm(a, b, (int)item->arg[0]))

DRAW(spectral_norm)
{
    item->in[0] = draw_param(draw, draw_shape(draw, 2, 4));
    const int64_t rows = draw_dim_of(draw, item->in[0], 0);

    item->in[1] = draw_variable(draw, KILN_SHAPE(rows));
    item->in[2] = draw_variable(draw, KILN_SHAPE(draw_count_of(draw, item->in[0]) / rows));
    item->arg[0] = draw_between(draw, 0, 2);
    return true;
}

BUILD(spectral_norm)
{
    out[0] = kiln_spectral_norm(in[0], in[1], in[2], (int)item->arg[0], 1e-6);
}

static const Row table[] = {
    { "layer_norm", row_last_axes, build_layer_norm, 0, 4, true, false },
    { "rms_norm", row_last_axes, build_rms_norm, 0, 2, true, false },
    { "group_norm", row_group_norm, build_group_norm, 0, 0, true, false },
    { "batch_norm", row_batch_norm, build_batch_norm, 0, 0, true, false },
    { "batch_norm_relu", row_batch_norm_relu, build_batch_norm_relu, 0, 32, true, false },
    { "weight_norm", row_weight_norm, build_weight_norm, 0, 0, false, false },
    { "spectral_norm", row_spectral_norm, build_spectral_norm, 0, 0, true, false },
};
ROWS(norm)
