/* Reductions, and softmax. */
#include "tests/fuzz/graphs/row.h"

/* Some axes; none: all of them. */
DRAW(axes)
{
    item->in[0] = draw_float(draw, 1, 5);
    for (int i = 0; i < draw_rank_of(draw, item->in[0]); i++)
        if (draw_chance(draw, 40))
            item->arg[2 + item->arg[0]++] = i;
    item->arg[1] = draw_chance(draw, 40);
    return true;
}

typedef KilnTensor *Reduce(KilnTensor *x, const int *axes, int n, bool keep);

static KilnTensor *reduce(Reduce *function, KilnTensor *x, const Item *item)
{
    int axes[KILN_MAX_RANK];

    for (int i = 0; i < KILN_MAX_RANK; i++)
        axes[i] = (int)item->arg[2 + i];
    return function(x, axes, (int)item->arg[0], item->arg[1] != 0);
}

static KilnTensor *var_biased(KilnTensor *x, const int *axes, int n, bool keep)
{
    return kiln_var(x, axes, n, 0.0, keep);
}

/* Away from 0, where the root has no slope. */
static KilnTensor *std_biased(KilnTensor *x, const int *axes, int n, bool keep)
{
    return kiln_sqrt(kiln_shift(kiln_var(x, axes, n, 0.0, keep), 0.1));
}

BUILD_ONE(sum, reduce(kiln_sum_axes, x, item))
BUILD_ONE(mean, reduce(kiln_mean_axes, x, item))
BUILD_ONE(max, reduce(kiln_max_axes, x, item))
BUILD_ONE(min, reduce(kiln_min_axes, x, item))
BUILD_ONE(prod, reduce(kiln_prod_axes, x, item))
BUILD_ONE(logsumexp, reduce(kiln_logsumexp, x, item))
BUILD_ONE(var, reduce(var_biased, x, item))
BUILD_ONE(std, reduce(std_biased, x, item))
BUILD_ONE(sum_rows, kiln_sum_rows(x))

DRAW(one_axis)
{
    item->in[0] = draw_float(draw, 1, 4);
    item->arg[0] = draw_axis(draw, item->in[0]);
    item->arg[1] = draw_chance(draw, 50);
    return true;
}
BUILD_ONE(argmax, kiln_argmax_axis(x, (int)item->arg[0], item->arg[1] != 0))
BUILD_ONE(softmax, kiln_softmax(x, (int)item->arg[0]))
BUILD_ONE(log_softmax, kiln_log_softmax(x, (int)item->arg[0]))

DRAW(any)
{
    item->in[0] = draw_float(draw, 0, 4);
    return true;
}
BUILD_ONE(l2_norm, kiln_l2_norm(x))
BUILD_ONE(clip_factor, kiln_clip_factor(kiln_l2_norm(x), 2.0))

static const Row table[] = {
    { "sum", row_axes, build_sum, 0, 0, false, false },
    { "mean", row_axes, build_mean, 0, 0, false, false },
    { "max", row_axes, build_max, 0, 0, false, true },
    { "min", row_axes, build_min, 0, 0, false, true },
    { "prod", row_axes, build_prod, 0, 0, false, false },
    { "logsumexp", row_axes, build_logsumexp, 0, 0, false, false },
    { "var", row_axes, build_var, 0, 0, false, false },
    { "std", row_axes, build_std, 0, 0, false, false },
    { "sum_rows", row_one_axis, build_sum_rows, 0, 0, false, false },
    { "argmax", row_one_axis, build_argmax, 0, 0, false, false },
    { "softmax", row_one_axis, build_softmax, 0, 0, true, false },
    { "log_softmax", row_one_axis, build_log_softmax, 0, 0, true, false },
    { "l2_norm", row_any, build_l2_norm, 1, 0, false, false },
    { "clip_factor", row_any, build_clip_factor, 1, 0, false, false },
};
ROWS(reduce)
