/* Losses, moving and indexing of both backends against values and gradients recorded from
 * PyTorch (tests/record/losses.py). */
#include "tests/support/cmocka.h"
#include "tests/support/torch_groups.h"

#include "tests/data/ops/losses.h"

/* ---- The operations ----------------------------------------------------------------- */

RETURNS(entropy, kiln_cross_entropy(x[0], x[1],
                                    (KilnCrossEntropy) { .weight = x[2],
                                                         .label_smoothing = 0.2,
                                                         .ignore = true,
                                                         .ignore_index = 2 }))
RETURNS(entropy_sum,
        kiln_cross_entropy(x[0], x[1],
                           (KilnCrossEntropy) { .weight = x[2], .reduction = KILN_REDUCTION_SUM }))
RETURNS(entropy_none, kiln_cross_entropy(x[0], x[1],
                                         (KilnCrossEntropy) { .label_smoothing = 0.1,
                                                              .ignore = true,
                                                              .ignore_index = 2,
                                                              .reduction = KILN_REDUCTION_NONE }))
RETURNS(nll, kiln_nll(x[0], x[1],
                      (KilnCrossEntropy) { .weight = x[2], .ignore = true, .ignore_index = 2 }))
RETURNS(nll_none, kiln_nll(x[0], x[1],
                           (KilnCrossEntropy) { .weight = x[2], .reduction = KILN_REDUCTION_NONE }))
RETURNS(entropy_soft,
        kiln_cross_entropy_soft(x[0], x[1],
                                (KilnCrossEntropy) { .weight = x[2], .label_smoothing = 0.2 }))
RETURNS(entropy_soft_none,
        kiln_cross_entropy_soft(x[0], x[1],
                                (KilnCrossEntropy) { .weight = x[2],
                                                     .reduction = KILN_REDUCTION_NONE }))
RETURNS(log_softmax0, kiln_log_softmax(kiln_scale(x[0], 3.0), 0))
RETURNS(log_softmax1, kiln_log_softmax(kiln_scale(x[0], 3.0), 1))
RETURNS(softmax0, kiln_softmax(kiln_scale(x[0], 3.0), 0))
RETURNS(softmax1, kiln_softmax(kiln_scale(x[0], 3.0), -2))
RETURNS(ctc,
        kiln_ctc(kiln_log_softmax(x[0], -1), x[1], x[2], x[3], (KilnCtc) { .zero_infinity = true }))
RETURNS(ctc_none, kiln_ctc(kiln_log_softmax(x[0], -1), x[1], x[2], x[3],
                           (KilnCtc) { .zero_infinity = true, .reduction = KILN_REDUCTION_NONE }))
RETURNS(mse, kiln_mse(x[0], x[1], KILN_REDUCTION_MEAN))
RETURNS(l1, kiln_l1(x[0], x[1], KILN_REDUCTION_NONE))
RETURNS(huber, kiln_huber(x[0], x[1], 0.7, KILN_REDUCTION_SUM))
RETURNS(smooth_l1, kiln_smooth_l1(x[0], x[1], 0.4, KILN_REDUCTION_MEAN))
RETURNS(kl, kiln_kl_div(x[0], x[1], false, KILN_REDUCTION_SUM))
RETURNS(kl_log, kiln_kl_div(x[0], x[1], true, KILN_REDUCTION_MEAN))
RETURNS(focal, kiln_sigmoid_focal(kiln_scale(x[0], 4.0), x[1], 0.25, 2.0, KILN_REDUCTION_MEAN))
RETURNS(focal_classes,
        kiln_focal(kiln_scale(x[0], 4.0), x[1], 1.5,
                   (KilnCrossEntropy) { .weight = x[2], .ignore = true, .ignore_index = 2 }))
RETURNS(dice, kiln_dice(kiln_sigmoid(x[0]), x[1], 1.0, KILN_REDUCTION_MEAN))
RETURNS(cosine, kiln_cosine_similarity(x[0], x[1], 0, 1e-8))
RETURNS(cosine_embedding, kiln_cosine_embedding(x[0], x[1], x[2], 0.1, KILN_REDUCTION_MEAN))
RETURNS(gather, kiln_gather(x[0], 1, x[1]))
RETURNS(scatter_add, kiln_scatter_add(x[0], 0, x[1], x[2]))
RETURNS(index_select, kiln_index_select(x[0], 1, x[1]))
RETURNS(embedding, kiln_embedding(x[0], x[1], 2))
RETURNS(bag_sum, kiln_embedding_bag(x[0], x[1], x[2], KILN_BAG_SUM, 2))
RETURNS(bag_factors, kiln_embedding_bag_weighted(x[0], x[1], x[3], x[2], 2))
RETURNS(bag_factors_rows, kiln_embedding_bag_weighted(x[0], x[1], NULL, x[2], 2))
RETURNS(pad_reflect, kiln_pad_reflect(x[0], (int64_t[]) { 0, 0, 3, 0 }, (int64_t[]) { 0, 2, 1, 0 }))
RETURNS(pad_reflect_line, kiln_pad_reflect(x[0], (int64_t[]) { 0, 0, 2 }, (int64_t[]) { 0, 0, 4 }))
RETURNS(pad_replicate,
        kiln_pad_replicate(x[0], (int64_t[]) { 0, 0, 3, 0 }, (int64_t[]) { 0, 2, 1, 0 }))
RETURNS(pad_replicate_line,
        kiln_pad_replicate(x[0], (int64_t[]) { 0, 0, 2 }, (int64_t[]) { 0, 0, 4 }))
RETURNS(bag_mean, kiln_embedding_bag(x[0], x[1], x[2], KILN_BAG_MEAN, 2))
RETURNS(bag_max, kiln_embedding_bag(x[0], x[1], x[2], KILN_BAG_MAX, 2))
RETURNS(cumsum, kiln_cumsum(x[0], 1))
RETURNS(tril, kiln_tril(x[0], 1, 0.0))
RETURNS(nearest, kiln_upsample_nearest(x[0], (KilnSize) { 7, 12 }))
RETURNS(bilinear, kiln_upsample_bilinear(x[0], (KilnSize) { 7, 12 }, false))
RETURNS(bilinear_small, kiln_upsample_bilinear(x[0], (KilnSize) { 3, 2 }, false))
RETURNS(corners, kiln_upsample_bilinear(x[0], (KilnSize) { 7, 12 }, true))

/* The weights are those of the script. */
BUILD(build_bce)
{
    KilnGraph *graph = kiln_tensor_graph(x[0]);
    KilnTensor *weight = kiln_arange(graph, KILN_F32, 1.0, 1.0, 6);
    KilnTensor *pos_weight = kiln_arange(graph, KILN_F32, 0.5, 0.5, 6);

    return kiln_bce_with_logits(kiln_scale(x[0], 8.0), x[1], weight, pos_weight,
                                KILN_REDUCTION_MEAN);
}

#define CLASSES F("x", 4, 3, 5), I("labels", 4, 3), F("weight", 5)
#define SOFT F("x", 6, 5), F("target", 6, 5), F("weight", 5)
#define SEQUENCES F("x", 9, 3, 5), I("targets", 3, 4), I("inputs", 3), I("lengths", 3)
#define PAIR F("x", 4, 6), F("target", 4, 6)
#define BAGS F("x", 6, 3), I("index", 12), I("offsets", 4)
#define IMAGE F("x", 2, 4, 5, 3)

static const Group groups[] = {
    GROUP(entropy, CLASSES),
    GROUP(entropy_sum, CLASSES),
    GROUP(entropy_none, CLASSES),
    GROUP(nll, CLASSES),
    GROUP(nll_none, CLASSES),
    GROUP(entropy_soft, SOFT),
    GROUP(entropy_soft_none, SOFT),
    GROUP(log_softmax0, F("x", 4, 5, 3)),
    GROUP(log_softmax1, F("x", 4, 5, 3)),
    GROUP(softmax0, F("x", 4, 5, 3)),
    GROUP(softmax1, F("x", 4, 5, 3)),
    GROUP(ctc, SEQUENCES),
    GROUP(ctc_none, SEQUENCES),
    GROUP(mse, PAIR),
    GROUP(l1, PAIR),
    GROUP(huber, PAIR),
    GROUP(smooth_l1, PAIR),
    GROUP(kl, PAIR),
    GROUP(kl_log, PAIR),
    GROUP(bce, PAIR),
    GROUP(focal, PAIR),
    GROUP(focal_classes, CLASSES),
    GROUP(dice, F("x", 2, 3, 4, 3), F("target", 2, 3, 4, 3)),
    GROUP(cosine, PAIR),
    GROUP(cosine_embedding, F("x", 6, 3), F("other", 6, 3), F("target", 6)),
    GROUP(gather, F("x", 4, 5, 3), I("index", 4, 7, 2)),
    GROUP(scatter_add, F("x", 4, 5, 3), I("index", 7, 5, 2), F("src", 7, 5, 2)),
    GROUP(index_select, F("x", 4, 5, 3), I("index", 6)),
    GROUP(embedding, F("x", 6, 3), I("index", 4, 5)),
    GROUP(bag_sum, BAGS),
    GROUP(bag_mean, BAGS),
    GROUP(bag_max, BAGS),
    GROUP(bag_factors, F("x", 6, 3), I("index", 12), F("factors", 12), I("offsets", 4)),
    GROUP(bag_factors_rows, F("x", 6, 3), I("index", 4, 3), F("factors", 4, 3)),
    GROUP(pad_reflect, F("x", 2, 3, 4, 2)),
    GROUP(pad_reflect_line, F("x", 2, 3, 5)),
    GROUP(pad_replicate, F("x", 2, 3, 4, 2)),
    GROUP(pad_replicate_line, F("x", 2, 3, 5)),
    GROUP(cumsum, F("x", 3, 5)),
    GROUP(tril, F("x", 2, 4, 5)),
    GROUP(nearest, IMAGE),
    GROUP(bilinear, IMAGE),
    GROUP(bilinear_small, IMAGE),
    GROUP(corners, IMAGE),
};

int main(void)
{
    return test_recording((Recording) { groups, KILN_COUNT(groups), records, KILN_COUNT(records) });
}
