/* Losses. */
#include "tests/fuzz/graphs/row.h"

/* Logits, labels, weights of classes; reduction, label smoothing, ignored labels. */
DRAW(labels)
{
    item->in[0] = draw_float(draw, 2, 3);
    KilnShape shape = draw_shape_of(draw, item->in[0]);
    const int64_t classes = shape.dim[shape.rank - 1];

    shape.rank--;
    item->in[1] = draw_index(draw, shape, draw_chance(draw, 20) ? -1 : 0, classes);
    if (draw_chance(draw, 30))
        item->in[2] = draw_positive(draw, KILN_SHAPE(classes));
    item->arg[0] = draw_below(draw, 3);
    item->num[0] = draw_chance(draw, 30) ? 0.1 : 0.0;
    return true;
}

static KilnCrossEntropy options_of(KilnTensor *const *in, const Item *item)
{
    return (KilnCrossEntropy) { .weight = in[2],
                                .label_smoothing = item->num[0],
                                .ignore = true,
                                .ignore_index = -1,
                                .reduction = (KilnReduction)item->arg[0] };
}

BUILD(cross_entropy)
{
    out[0] = kiln_cross_entropy(in[0], in[1], options_of(in, item));
}

BUILD(nll)
{
    KilnCrossEntropy options = options_of(in, item);

    options.label_smoothing = 0.0;
    out[0] = kiln_nll(kiln_log_softmax(in[0], -1), in[1], options);
}

BUILD(focal)
{
    KilnCrossEntropy options = options_of(in, item);

    options.label_smoothing = 0.0;
    out[0] = kiln_focal(in[0], in[1], 2.0, options);
}

/* Input, target, weight that broadcasts; reduction. */
DRAW(pair)
{
    item->in[0] = draw_float(draw, 1, 4);
    const KilnShape shape = draw_shape_of(draw, item->in[0]);

    item->in[1] = draw_like(draw, shape);
    item->in[2] = draw_positive(draw, shape);
    item->arg[0] = draw_below(draw, 3);
    item->arg[1] = draw_axis(draw, item->in[0]);
    return true;
}

static KilnReduction reduction_of(const Item *item)
{
    return (KilnReduction)item->arg[0];
}
BUILD_TWO(mse, kiln_mse(a, b, reduction_of(item)))
BUILD_TWO(l1, kiln_l1(a, b, reduction_of(item)))
BUILD_TWO(huber, kiln_huber(a, b, 0.7, reduction_of(item)))
BUILD_TWO(smooth_l1, kiln_smooth_l1(a, b, 0.5, reduction_of(item)))
BUILD_TWO(cosine, kiln_cosine_similarity(a, b, (int)item->arg[1], 1e-4))

BUILD(bce)
{
    out[0] = kiln_bce_with_logits(in[0], kiln_sigmoid(in[1]), in[2], NULL, reduction_of(item));
}

BUILD(kl_div)
{
    out[0] = kiln_kl_div(kiln_log_softmax(in[0], -1), in[2], false, reduction_of(item));
}

BUILD(sigmoid_focal)
{
    out[0] = kiln_sigmoid_focal(in[0], in[2], 0.25, 2.0, reduction_of(item));
}

BUILD(cross_entropy_soft)
{
    const KilnCrossEntropy options = { .reduction = reduction_of(item) };

    out[0] = kiln_cross_entropy_soft(in[0], in[2], options);
}

BUILD(dice)
{
    out[0] = kiln_dice(kiln_sigmoid(in[0]), in[2], 1.0, reduction_of(item));
}

DRAW(images)
{
    return row_pair(draw, item) && draw_rank_of(draw, item->in[0]) > 2;
}

static const Row table[] = {
    { "cross_entropy", row_labels, build_cross_entropy, 0, 4, false, true },
    { "nll", row_labels, build_nll, 0, 4, true, true },
    { "focal", row_labels, build_focal, 0, 4, false, true },
    { "mse", row_pair, build_mse, 0, 0, false, false },
    { "l1", row_pair, build_l1, 0, 0, false, false },
    { "huber", row_pair, build_huber, 0, 0, false, false },
    { "smooth_l1", row_pair, build_smooth_l1, 0, 0, false, false },
    { "cosine", row_pair, build_cosine, 0, 0, true, false },
    { "bce", row_pair, build_bce, 0, 0, true, false },
    { "kl_div", row_pair, build_kl_div, 0, 0, true, false },
    { "sigmoid_focal", row_pair, build_sigmoid_focal, 0, 0, true, false },
    { "cross_entropy_soft", row_pair, build_cross_entropy_soft, 0, 0, false, false },
    { "dice", row_images, build_dice, 0, 0, true, false },
};
ROWS(loss)
