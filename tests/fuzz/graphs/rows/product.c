/* Matrix products and convolutions. */
#include "tests/fuzz/graphs/row.h"

enum { MOST_WORK = 1000000 };

/* [..., m, k] and [..., k, n]; either transposed. */
DRAW(matmul)
{
    item->in[0] = draw_float(draw, 2, 4);
    KilnShape shape = draw_shape_of(draw, item->in[0]);
    const bool transpose_a = draw_chance(draw, 30), transpose_b = draw_chance(draw, 50);
    const int64_t k = shape.dim[shape.rank - (transpose_a ? 2 : 1)];
    const int64_t n = draw_size(draw, 300);

    if (draw_count_of(draw, item->in[0]) * n > MOST_WORK)
        return false;
    shape.dim[shape.rank - 2] = transpose_b ? n : k;
    shape.dim[shape.rank - 1] = transpose_b ? k : n;
    if (draw_chance(draw, 40)) {
        shape.dim[0] = shape.dim[shape.rank - 2];
        shape.dim[1] = shape.dim[shape.rank - 1];
        shape.rank = 2;
    }
    item->in[1] = draw_like(draw, shape);
    item->arg[0] = transpose_a;
    item->arg[1] = transpose_b;
    return true;
}
BUILD_TWO(matmul, kiln_matmul(a, b, item->arg[0] != 0, item->arg[1] != 0))

DRAW(linear)
{
    item->in[0] = draw_float(draw, 1, 4);
    const int64_t k = draw_dim_of(draw, item->in[0], -1), n = draw_size(draw, 300);

    if (draw_count_of(draw, item->in[0]) * n > MOST_WORK)
        return false;
    item->in[1] = draw_like(draw, KILN_SHAPE(n, k));
    if (draw_chance(draw, 60))
        item->in[2] = draw_like(draw, KILN_SHAPE(n));
    return true;
}

BUILD(linear)
{
    out[0] = kiln_linear(in[0], in[1], in[2]);
}

DRAW(einsum)
{
    item->in[0] = draw_float(draw, 3, 3);
    const KilnShape shape = draw_shape_of(draw, item->in[0]);
    const int64_t n = draw_size(draw, 33);

    item->arg[0] = draw_below(draw, 3);
    if (kiln_shape_count(&shape) * n > MOST_WORK)
        return false;
    item->in[1] = item->arg[0] == 0
                      ? draw_like(draw, KILN_SHAPE(shape.dim[0], shape.dim[2], n))
                      : draw_like(draw, KILN_SHAPE(n, shape.dim[item->arg[0] == 1 ? 1 : 2]));
    return true;
}

BUILD(einsum)
{
    static const char *const equations[] = { "bij,bjk->bik", "bij,ki->kjb", "bij,kj->ik" };

    out[0] = kiln_einsum(equations[item->arg[0]], in, 2);
}

/* Stride, padding and dilation of both axes, groups, output padding. */
static void draw_window(Draw *draw, Item *item, int64_t channels)
{
    const bool plain = draw_chance(draw, 40);

    for (int i = 0; i < 2; i++) {
        item->arg[i] = plain ? 1 : draw_between(draw, 1, 3);
        item->arg[2 + i] = draw_between(draw, 0, 2);
        item->arg[4 + i] = plain || draw_chance(draw, 70) ? 1 : 2;
        item->arg[7 + i] = draw_between(draw, 0, item->arg[i] - 1);
    }
    item->arg[6] = 1;
    if (draw_chance(draw, 25)) {
        item->arg[6] = draw_chance(draw, 50) ? channels : draw_between(draw, 1, channels);
        while (channels % item->arg[6] != 0)
            item->arg[6]--;
    }
}

static KilnConv conv_of(const Item *item)
{
    return (KilnConv) {
        .stride_hw = { item->arg[0], item->arg[1] },
        .padding_hw = { item->arg[2], item->arg[3] },
        .dilation_hw = { item->arg[4], item->arg[5] },
        .groups = item->arg[6],
    };
}

static int draw_image(Draw *draw)
{
    if (draw_chance(draw, 50))
        return draw_float(draw, 4, 4);
    static const int64_t channels[] = { 1, 2, 3, 8, 16, 16, 17, 24, 32, 32, 48, 64 };
    const int64_t c = channels[draw_below(draw, KILN_COUNT(channels))];
    return draw_like(draw, KILN_SHAPE(draw_between(draw, 1, 3), draw_between(draw, 1, 14),
                                      draw_between(draw, 1, 14), c));
}

DRAW(conv2d)
{
    static const int64_t outputs[] = { 1, 3, 5, 8, 16, 16, 17, 32, 32, 48, 64 };

    item->in[0] = draw_image(draw);
    const int64_t c = draw_dim_of(draw, item->in[0], 3);
    draw_window(draw, item, c);
    const int64_t groups = item->arg[6], kh = draw_between(draw, 1, 4);
    const int64_t kw = draw_chance(draw, 60) ? kh : draw_between(draw, 1, 4);
    int64_t o = outputs[draw_below(draw, KILN_COUNT(outputs))];

    o = (o + groups - 1) / groups * groups;
    if (draw_count_of(draw, item->in[0]) * (o / groups) * kh * kw > 4 * MOST_WORK)
        return false;
    item->in[1] = draw_like(draw, KILN_SHAPE(o, c / groups, kh, kw));
    if (draw_chance(draw, 50))
        item->in[2] = draw_like(draw, KILN_SHAPE(o));
    return true;
}

BUILD(conv2d)
{
    out[0] = kiln_conv2d(in[0], in[1], in[2], conv_of(item));
}

DRAW(conv_transpose2d)
{
    item->in[0] = draw_image(draw);
    const int64_t c = draw_dim_of(draw, item->in[0], 3);
    draw_window(draw, item, c);
    const int64_t groups = item->arg[6], o = draw_size(draw, 40);
    const int64_t kh = draw_between(draw, 1, 3), kw = draw_between(draw, 1, 3);

    if (draw_count_of(draw, item->in[0]) * o * kh * kw > MOST_WORK)
        return false;
    item->in[1] = draw_like(draw, KILN_SHAPE(c, o, kh, kw));
    if (draw_chance(draw, 50))
        item->in[2] = draw_like(draw, KILN_SHAPE(o * groups));
    return true;
}

BUILD(conv_transpose2d)
{
    const KilnConvTranspose conv = { .conv = conv_of(item),
                                     .output_padding_hw = { item->arg[7], item->arg[8] } };

    out[0] = kiln_conv_transpose2d(in[0], in[1], in[2], conv);
}

DRAW(conv3d)
{
    item->in[0] = draw_like(draw, KILN_SHAPE(draw_between(draw, 1, 2), draw_between(draw, 1, 5),
                                             draw_between(draw, 1, 6), draw_between(draw, 1, 6),
                                             draw_between(draw, 1, 9)));
    for (int i = 0; i < 3; i++)
        item->arg[i] = draw_between(draw, 1, 2);
    item->in[1] = draw_like(draw,
                            KILN_SHAPE(draw_between(draw, 1, 17), draw_dim_of(draw, item->in[0], 4),
                                       draw_between(draw, 1, 3), draw_between(draw, 1, 3),
                                       draw_between(draw, 1, 3)));
    return true;
}

BUILD(conv3d)
{
    const KilnConv3d conv = { .stride = { item->arg[0], item->arg[1], item->arg[2] },
                              .padding = { 1, 1, 1 },
                              .groups = 1 };

    out[0] = kiln_conv3d(in[0], in[1], NULL, conv);
}

static const Row table[] = {
    { "matmul", row_matmul, build_matmul, 0, 0, false, false },
    { "linear", row_linear, build_linear, 0, 4, false, false },
    { "linear", row_linear, build_linear, 0, 4, false, false },
    { "einsum", row_einsum, build_einsum, 0, 0, false, false },
    { "conv2d", row_conv2d, build_conv2d, 0, 4, false, false },
    { "conv2d", row_conv2d, build_conv2d, 0, 4, false, false },
    { "conv_transpose2d", row_conv_transpose2d, build_conv_transpose2d, 0, 4, false, false },
    { "conv3d", row_conv3d, build_conv3d, 0, 0, false, false },
};
ROWS(product)
