/* Pooling, resizing, patches, samples and boxes. */
#include "tests/fuzz/graphs/row.h"

static int draw_image(Draw *draw)
{
    if (draw_chance(draw, 50))
        return draw_float(draw, 4, 4);
    return draw_like(draw, KILN_SHAPE(draw_between(draw, 1, 3), draw_between(draw, 1, 15),
                                      draw_between(draw, 1, 15), draw_size(draw, 48)));
}

/* Kernel, stride and padding of both axes, two flags. */
DRAW(pool)
{
    item->in[0] = draw_image(draw);
    for (int i = 0; i < 2; i++) {
        const int64_t size = draw_dim_of(draw, item->in[0], 1 + i);
        item->arg[i] = draw_between(draw, 1, size < 5 ? size : 5);
        item->arg[2 + i] = draw_between(draw, 1, 3);
        item->arg[4 + i] = draw_between(draw, 0, item->arg[i] / 2);
    }
    item->arg[6] = draw_chance(draw, 40);
    item->arg[7] = draw_chance(draw, 40);
    return true;
}

static KilnPool pool_of(const Item *item)
{
    return (KilnPool) {
        .kernel_hw = { item->arg[0], item->arg[1] },
        .stride_hw = { item->arg[2], item->arg[3] },
        .padding_hw = { item->arg[4], item->arg[5] },
        .exclude_padding = item->arg[6] != 0,
        .ceil_mode = item->arg[7] != 0,
    };
}
BUILD_ONE(max_pool2d, kiln_max_pool2d(x, pool_of(item)))
BUILD_ONE(avg_pool2d, kiln_avg_pool2d(x, pool_of(item)))

/* A size and two flags. */
DRAW(size)
{
    item->in[0] = draw_image(draw);
    item->arg[0] = draw_between(draw, 1, 17);
    item->arg[1] = draw_between(draw, 1, 17);
    item->arg[2] = draw_chance(draw, 50);
    item->arg[3] = draw_chance(draw, 20);
    return draw_dim_of(draw, item->in[0], 0) * draw_dim_of(draw, item->in[0], 3) < 4000;
}

static KilnSize size_of(const Item *item)
{
    return (KilnSize) { item->arg[0], item->arg[1] };
}
BUILD_ONE(adaptive_avg_pool2d, item->arg[3] != 0
                                   ? kiln_adaptive_avg_pool2d(x, 1, 1)
                                   : kiln_adaptive_avg_pool2d(x, item->arg[0], item->arg[1]))
BUILD_ONE(adaptive_max_pool2d, kiln_adaptive_max_pool2d(x, item->arg[0], item->arg[1]))
BUILD_ONE(upsample_nearest, kiln_upsample_nearest(x, size_of(item)))
BUILD_ONE(upsample_bilinear, kiln_upsample_bilinear(x, size_of(item), item->arg[2] != 0))
BUILD_ONE(upsample_bicubic, kiln_upsample_bicubic(x, size_of(item), item->arg[2] != 0))
BUILD_ONE(resize_antialias, kiln_resize_antialias(x, size_of(item), item->arg[2] != 0))

DRAW(pixel_shuffle)
{
    const int64_t r = draw_between(draw, 1, 3);

    item->arg[0] = r;
    item->in[0] = draw_like(draw, KILN_SHAPE(draw_between(draw, 1, 2), draw_between(draw, 1, 7),
                                             draw_between(draw, 1, 7), r * r * draw_size(draw, 9)));
    return true;
}
BUILD_ONE(pixel_shuffle, kiln_pixel_shuffle(x, item->arg[0]))

DRAW(pixel_unshuffle)
{
    const int64_t r = draw_between(draw, 1, 3);

    item->arg[0] = r;
    item->in[0] = draw_like(draw, KILN_SHAPE(draw_between(draw, 1, 2), r * draw_between(draw, 1, 5),
                                             r * draw_between(draw, 1, 5), draw_size(draw, 9)));
    return true;
}
BUILD_ONE(pixel_unshuffle, kiln_pixel_unshuffle(x, item->arg[0]))

/* Kernel, stride, dilation, padding, and for fold the size. */
DRAW(unfold)
{
    item->in[0] = draw_like(draw, KILN_SHAPE(draw_between(draw, 1, 3), draw_between(draw, 5, 12),
                                             draw_between(draw, 5, 12), draw_size(draw, 20)));
    for (int i = 0; i < 2; i++) {
        item->arg[i] = draw_between(draw, 1, 3);
        item->arg[2 + i] = draw_between(draw, 1, 3);
        item->arg[4 + i] = draw_between(draw, 1, 2);
        item->arg[6 + i] = draw_between(draw, 0, 2);
        item->arg[8 + i] = draw_dim_of(draw, item->in[0], 1 + i);
    }
    return true;
}

static KilnUnfold unfold_of(const Item *item)
{
    return (KilnUnfold) { .kernel = { item->arg[0], item->arg[1] },
                          .stride = { item->arg[2], item->arg[3] },
                          .dilation = { item->arg[4], item->arg[5] },
                          .padding = { item->arg[6], item->arg[7] } };
}
BUILD_ONE(unfold, kiln_unfold(x, unfold_of(item)))

/* Of patches doubled, so that it is not the inverse alone. */
BUILD(fold)
{
    KilnTensor *patches = kiln_scale(kiln_unfold(in[0], unfold_of(item)), 2.0);

    out[0] = kiln_fold(patches, (KilnSize) { item->arg[8], item->arg[9] }, unfold_of(item));
}

DRAW(grid_sample)
{
    item->in[0] = draw_image(draw);
    item->in[1] = draw_like(draw,
                            KILN_SHAPE(draw_dim_of(draw, item->in[0], 0), draw_between(draw, 1, 7),
                                       draw_between(draw, 1, 7), 2));
    for (int i = 0; i < 2; i++)
        item->arg[i] = draw_below(draw, 2);
    item->arg[2] = draw_below(draw, 3);
    return true;
}

BUILD(grid_sample)
{
    const KilnGridSample options = { .nearest = item->arg[0] != 0,
                                     .padding = (KilnGridPadding)item->arg[2],
                                     .align_corners = item->arg[1] != 0 };

    out[0] = kiln_grid_sample(in[0], kiln_tanh(in[1]), options);
}

/* Corners and sides [K, 4] as boxes. */
static KilnTensor *boxes_of(KilnTensor *x)
{
    KilnTensor *sides = kiln_reshape(x, KILN_SHAPE(-1, 2, 2));

    return kiln_reshape(kiln_cumsum(sides, 1), KILN_SHAPE(-1, 4));
}

DRAW(roi_align)
{
    const int64_t boxes = draw_between(draw, 1, 9);

    item->in[0] = draw_image(draw);
    item->in[1] = draw_positive(draw, KILN_SHAPE(boxes, 4));
    item->in[2] = draw_index(draw, KILN_SHAPE(boxes, 1), -1, draw_dim_of(draw, item->in[0], 0) + 1);
    item->arg[0] = draw_between(draw, 1, 4);
    item->arg[1] = draw_between(draw, 1, 4);
    item->arg[2] = draw_between(draw, 0, 3);
    item->arg[3] = draw_below(draw, 2);
    item->arg[4] = draw_between(draw, 1, 9);
    return true;
}

BUILD(roi_align)
{
    KilnTensor *parts[] = { kiln_to_float(in[2]), boxes_of(in[1]) };

    out[0] = kiln_roi_align(in[0], kiln_concat(parts, 2, 1),
                            (KilnRoiAlign) { .size = { item->arg[0], item->arg[1] },
                                             .spatial_scale = (double)item->arg[4],
                                             .sampling_ratio = item->arg[2],
                                             .aligned = item->arg[3] != 0 });
}

DRAW(boxes)
{
    const int64_t n = draw_between(draw, 1, 40);

    item->in[0] = draw_positive(draw, KILN_SHAPE(n, 4));
    item->in[1] = draw_positive(draw, KILN_SHAPE(draw_between(draw, 1, 20), 4));
    item->in[2] = draw_param(draw, KILN_SHAPE(n));
    item->arg[0] = draw_between(draw, 1, n);
    return true;
}
BUILD_TWO(box_iou, kiln_box_iou(boxes_of(a), boxes_of(b)))

BUILD(nms)
{
    const KilnPlaces kept = kiln_nms(boxes_of(in[0]), in[2], 0.3, item->arg[0]);

    out[0] = kept.index;
    out[1] = kept.count;
}

static const Row table[] = {
    { "max_pool2d", row_pool, build_max_pool2d, 0, 0, false, false },
    { "avg_pool2d", row_pool, build_avg_pool2d, 0, 0, false, false },
    { "adaptive_avg_pool2d", row_size, build_adaptive_avg_pool2d, 0, 0, false, false },
    { "adaptive_max_pool2d", row_size, build_adaptive_max_pool2d, 0, 0, false, false },
    { "upsample_nearest", row_size, build_upsample_nearest, 0, 0, false, false },
    { "upsample_bilinear", row_size, build_upsample_bilinear, 0, 0, false, false },
    { "upsample_bicubic", row_size, build_upsample_bicubic, 0, 0, false, false },
    { "resize_antialias", row_size, build_resize_antialias, 0, 0, false, false },
    { "pixel_shuffle", row_pixel_shuffle, build_pixel_shuffle, 0, 0, false, false },
    { "pixel_unshuffle", row_pixel_unshuffle, build_pixel_unshuffle, 0, 0, false, false },
    { "unfold", row_unfold, build_unfold, 0, 0, false, false },
    { "fold", row_unfold, build_fold, 0, 0, false, false },
    { "grid_sample", row_grid_sample, build_grid_sample, 0, 0, false, true },
    { "roi_align", row_roi_align, build_roi_align, 0, 0, false, false },
    { "box_iou", row_boxes, build_box_iou, 0, 0, false, false },
    { "nms", row_boxes, build_nms, 4, 0, false, false },
};
ROWS(image)
