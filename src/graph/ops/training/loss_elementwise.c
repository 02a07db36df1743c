/* Losses composed of other operations, in forms that neither overflow nor cancel. Fusion turns them
 * into maps. */
#include <math.h>

#include "graph/graph.h"

/* ---- Shared --------------------------------------------------------------------- */

static KilnTensor *reduce(KilnTensor *losses, KilnReduction reduction)
{
    switch (reduction) {
    case KILN_REDUCTION_MEAN:
        return kiln_mean(losses);
    case KILN_REDUCTION_SUM:
        return kiln_sum(losses);
    case KILN_REDUCTION_NONE:
        break;
    }
    return losses;
}

/* Rejects shapes that differ: broadcasting would silently turn [N, 1] and [N] into [N, N]. */
static bool differ(const char *name, const KilnTensor *a, const KilnTensor *b)
{
    char text_a[KILN_SHAPE_TEXT], text_b[KILN_SHAPE_TEXT];

    if (a->poisoned || b->poisoned || kiln_shape_equal(&a->shape, &b->shape))
        return false;
    kiln_graph_poison(a->graph, "%s: both must have the same shape, got %s and %s", name,
                      kiln_shape_text(&a->shape, text_a, sizeof(text_a)),
                      kiln_shape_text(&b->shape, text_b, sizeof(text_b)));
    return true;
}

/* 1 - x */
static KilnTensor *rest_of(KilnTensor *x)
{
    return kiln_shift(kiln_neg(x), 1.0);
}

/* ---- Regression ------------------------------------------------------------------ */

KilnTensor *kiln_mse(KilnTensor *input, KilnTensor *target, KilnReduction reduction)
{
    if (differ("mse", input, target))
        return input->graph->poison;
    return reduce(kiln_square(kiln_sub(input, target)), reduction);
}

KilnTensor *kiln_l1(KilnTensor *input, KilnTensor *target, KilnReduction reduction)
{
    if (differ("l1", input, target))
        return input->graph->poison;
    return reduce(kiln_abs(kiln_sub(input, target)), reduction);
}

/* With c = min(|d|, delta): c²/2 + delta (|d| - c), without a branch. */
static KilnTensor *huber_terms(KilnTensor *input, KilnTensor *target, double delta)
{
    KilnTensor *distance = kiln_abs(kiln_sub(input, target));
    KilnTensor *near = kiln_clamp(distance, -INFINITY, delta);

    return kiln_add(kiln_scale(kiln_square(near), 0.5),
                    kiln_scale(kiln_sub(distance, near), delta));
}

KilnTensor *kiln_huber(KilnTensor *input, KilnTensor *target, double delta, KilnReduction reduction)
{
    if (differ("huber", input, target))
        return input->graph->poison;
    if (!(delta > 0.0))
        return kiln_graph_poison(input->graph, "huber: delta must be above 0, got %g", delta);
    return reduce(huber_terms(input, target, delta), reduction);
}

KilnTensor *kiln_smooth_l1(KilnTensor *input, KilnTensor *target, double beta,
                           KilnReduction reduction)
{
    if (differ("smooth_l1", input, target))
        return input->graph->poison;
    if (!(beta >= 0.0))
        return kiln_graph_poison(input->graph, "smooth_l1: beta must be at least 0, got %g", beta);
    if (beta == 0.0)
        return kiln_l1(input, target, reduction);
    return reduce(kiln_scale(huber_terms(input, target, beta), 1.0 / beta), reduction);
}

/* ---- Probabilities ----------------------------------------------------------------- */

/* -y log(p) - (1 - y) log(1 - p) with p = sigmoid(x) is x - x y + softplus(-x). */
static KilnTensor *bce_terms(KilnTensor *x, KilnTensor *y, KilnTensor *pos_weight)
{
    KilnTensor *missed = kiln_softplus(kiln_neg(x), 1.0, 20.0);

    if (pos_weight != NULL)
        missed = kiln_mul(missed, kiln_shift(kiln_mul(kiln_shift(pos_weight, -1.0), y), 1.0));
    return kiln_add(kiln_mul(x, rest_of(y)), missed);
}

KilnTensor *kiln_bce_with_logits(KilnTensor *input, KilnTensor *target, KilnTensor *weight,
                                 KilnTensor *pos_weight, KilnReduction reduction)
{
    if (differ("bce_with_logits", input, target))
        return input->graph->poison;
    KilnTensor *losses = bce_terms(input, target, pos_weight);
    if (weight != NULL)
        losses = kiln_mul(losses, weight);
    return reduce(losses, reduction);
}

KilnTensor *kiln_kl_div(KilnTensor *input, KilnTensor *target, bool log_target,
                        KilnReduction reduction)
{
    if (differ("kl_div", input, target))
        return input->graph->poison;
    if (log_target)
        return reduce(kiln_mul(kiln_exp(target), kiln_sub(target, input)), reduction);
    /* 0 log 0 is 0 */
    KilnTensor *zero = kiln_graph_full(input->graph, KILN_SCALAR, 0.0);
    KilnTensor *one = kiln_graph_full(input->graph, KILN_SCALAR, 1.0);
    KilnTensor *safe = kiln_where(kiln_gt(target, zero), target, one);
    return reduce(kiln_mul(target, kiln_sub(kiln_log(safe), input)), reduction);
}

/* (1 - p_t)^gamma, from 1 - p_t itself, which is accurate where it is small. */
static KilnTensor *focus(KilnTensor *losses, KilnTensor *missed, double gamma)
{
    return gamma == 0.0 ? losses : kiln_mul(losses, kiln_pow(missed, gamma));
}

KilnTensor *kiln_sigmoid_focal(KilnTensor *input, KilnTensor *target, double alpha, double gamma,
                               KilnReduction reduction)
{
    if (differ("sigmoid_focal", input, target))
        return input->graph->poison;
    KilnTensor *missed = kiln_add(kiln_mul(kiln_sigmoid(input), rest_of(target)),
                                  kiln_mul(kiln_sigmoid(kiln_neg(input)), target));
    KilnTensor *losses = focus(bce_terms(input, target, NULL), missed, gamma);
    if (alpha >= 0.0)
        losses = kiln_mul(losses, kiln_shift(kiln_scale(target, 2.0 * alpha - 1.0), 1.0 - alpha));
    return reduce(losses, reduction);
}

/* Counts the labels that are not ignored. */
static KilnTensor *count_labels(KilnTensor *labels, const KilnCrossEntropy *options)
{
    KilnTensor *ignored = kiln_graph_full(labels->graph, KILN_SCALAR,
                                          options->ignore ? (double)options->ignore_index : -100.0);

    return kiln_sum(kiln_ne(kiln_to_float(labels), ignored));
}

KilnTensor *kiln_focal(KilnTensor *logits, KilnTensor *labels, double gamma,
                       KilnCrossEntropy options)
{
    const KilnReduction reduction = options.reduction;

    if (options.label_smoothing != 0.0)
        return kiln_graph_poison(logits->graph, "focal: label smoothing is not supported");
    options.reduction = KILN_REDUCTION_NONE;
    KilnTensor *losses = kiln_cross_entropy(logits, labels, options);
    options.weight = NULL;
    KilnTensor *plain = kiln_cross_entropy(logits, labels, options);
    /* 1 - exp(-x) is tanh(x / 2) (1 + exp(-x)), which does not cancel. */
    KilnTensor *missed = kiln_mul(kiln_tanh(kiln_scale(plain, 0.5)),
                                  kiln_shift(kiln_exp(kiln_neg(plain)), 1.0));
    losses = focus(losses, missed, gamma);
    if (reduction != KILN_REDUCTION_MEAN)
        return reduce(losses, reduction);
    return kiln_div(kiln_sum(losses), count_labels(labels, &options));
}

/* ---- Directions, overlap ------------------------------------------------------------ */

KilnTensor *kiln_cosine_similarity(KilnTensor *a, KilnTensor *b, int axis, double eps)
{
    if (differ("cosine_similarity", a, b))
        return a->graph->poison;
    KilnTensor *lengths[2];
    KilnTensor *dot = kiln_sum_axes(kiln_mul(a, b), &axis, 1, false);

    for (int i = 0; i < 2; i++) {
        KilnTensor *square = kiln_sum_axes(kiln_square(i == 0 ? a : b), &axis, 1, false);

        lengths[i] = kiln_rsqrt(kiln_clamp(square, eps * eps, INFINITY));
    }
    return kiln_mul(dot, kiln_mul(lengths[0], lengths[1]));
}

KilnTensor *kiln_cosine_embedding(KilnTensor *a, KilnTensor *b, KilnTensor *target, double margin,
                                  KilnReduction reduction)
{
    if (differ("cosine_embedding", a, b))
        return a->graph->poison;
    const int last = -1;
    KilnTensor *zero = kiln_graph_full(a->graph, KILN_SCALAR, 0.0);
    KilnTensor *square_a = kiln_shift(kiln_sum_axes(kiln_square(a), &last, 1, false), 1e-12);
    KilnTensor *square_b = kiln_shift(kiln_sum_axes(kiln_square(b), &last, 1, false), 1e-12);
    KilnTensor *dot = kiln_sum_axes(kiln_mul(a, b), &last, 1, false);
    KilnTensor *cosine = kiln_mul(dot, kiln_mul(kiln_rsqrt(square_a), kiln_rsqrt(square_b)));
    if (differ("cosine_embedding: the target", target, cosine))
        return a->graph->poison;
    KilnTensor *apart = kiln_relu(kiln_shift(cosine, -margin));
    return reduce(kiln_where(kiln_gt(target, zero), rest_of(cosine), apart), reduction);
}

KilnTensor *kiln_dice(KilnTensor *probabilities, KilnTensor *target, double smooth,
                      KilnReduction reduction)
{
    int axes[KILN_MAX_RANK], n = 0;

    if (differ("dice", probabilities, target))
        return probabilities->graph->poison;
    if (!probabilities->poisoned && probabilities->shape.rank < 3)
        return kiln_graph_poison(probabilities->graph, "dice: needs [N, ..., C], with at least one "
                                                       "axis between");
    for (int axis = 1; axis + 1 < probabilities->shape.rank; axis++)
        axes[n++] = axis;
    KilnTensor *common = kiln_sum_axes(kiln_mul(probabilities, target), axes, n, false);
    KilnTensor *squares = kiln_sum_axes(kiln_add(kiln_square(probabilities), kiln_square(target)),
                                        axes, n, false);
    KilnTensor *overlap = kiln_div(kiln_shift(kiln_scale(common, 2.0), smooth),
                                   kiln_shift(squares, smooth));
    return reduce(rest_of(overlap), reduction);
}
