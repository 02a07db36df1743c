/* Operations that write variables. */
#include "tests/fuzz/graphs/row.h"

/* A variable, a value of its shape, a weight. */
DRAW(variable)
{
    item->in[1] = draw_float(draw, 0, 4);
    item->in[0] = draw_variable(draw, draw_shape_of(draw, item->in[1]));
    item->in[2] = draw_positive(draw, KILN_SCALAR);
    return true;
}

/* What is read before an update and after it. */
static KilnTensor *read_before(KilnTensor *const *in)
{
    return kiln_scale(in[0], 2.0);
}

BUILD(store)
{
    out[1] = read_before(in);
    kiln_store(in[0], in[1]);
    out[0] = kiln_shift(in[0], 1.0);
}

BUILD(ema_update)
{
    out[1] = read_before(in);
    kiln_ema_update(in[0], in[1], 0.25);
    out[0] = kiln_relu(in[0]);
}

BUILD(lerp_update)
{
    kiln_lerp_update(in[0], in[1], in[2]);
    out[0] = kiln_square(in[0]);
}

BUILD(clamp_update)
{
    out[1] = kiln_mul(in[0], in[1]);
    kiln_clamp_update(in[0], 0.5);
    out[0] = kiln_mul(in[0], in[1]);
}

DRAW(increment)
{
    item->in[0] = draw_leaf(draw, LEAF_COUNTER, VALUES_NORMAL, KILN_SCALAR);
    return true;
}

BUILD(increment)
{
    kiln_increment(in[0]);
}

/* ---- Optimizers -------------------------------------------------------------------------- */

enum { PARAM, GRAD, HYPER, SCALE, ENDS, RATES, SLOTS, HYPERS = 5 };

/* One segment, or some with rates of their own. */
DRAW(optimizer)
{
    const KilnShape n = KILN_SHAPE(draw_chance(draw, 30) ? draw_between(draw, 1000, 40000)
                                                         : draw_size(draw, 257));

    item->in[PARAM] = draw_variable(draw, n);
    item->in[GRAD] = draw_like(draw, n);
    item->in[HYPER] = draw_positive(draw, KILN_SHAPE(HYPERS));
    if (draw_chance(draw, 50))
        item->in[SCALE] = draw_positive(draw, KILN_SCALAR);
    if (draw_chance(draw, 50) && n.dim[0] >= 3) {
        item->in[ENDS] = draw_leaf(draw, LEAF_ENDS, VALUES_NORMAL, KILN_SHAPE(3));
        draw->spec->items[item->in[ENDS] / SPEC_OUTPUTS].leaf.limit = n.dim[0];
        item->in[RATES] = draw_positive(draw, KILN_SHAPE(3, 2));
    }
    for (int i = 0; i < KILN_MAX_SLOTS; i++)
        item->in[SLOTS + i] = draw_variable(draw, n);
    item->arg[0] = draw_below(draw, 2);
    item->arg[1] = draw_below(draw, 2);
    return true;
}

static KilnFlat flat_of(KilnTensor *const *in, int hypers, int slots)
{
    KilnFlat flat = {
        .param = in[PARAM],
        .grad = kiln_detach(in[GRAD]),
        .hyper = kiln_narrow(in[HYPER], 0, 0, hypers),
        .scale = in[SCALE],
        .segment_ends = in[ENDS],
        .rates = in[RATES],
    };

    for (int i = 0; i < slots; i++)
        flat.slots[i] = in[SLOTS + i];
    return flat;
}

BUILD(sgd)
{
    const bool momentum = item->arg[0] != 0;
    const KilnFlat flat = flat_of(in, 2, momentum);

    kiln_sgd_update(&flat, (KilnSgd) { .momentum = momentum ? 0.9 : 0.0,
                                       .nesterov = momentum && item->arg[1] != 0 });
}

BUILD(adam)
{
    const bool amsgrad = item->arg[0] != 0;
    const KilnFlat flat = flat_of(in, 3, amsgrad ? 3 : 2);

    kiln_adam_update(&flat, (KilnAdam) { .beta1 = 0.9,
                                         .beta2 = 0.99,
                                         .eps = 1e-3,
                                         .decoupled = item->arg[1] != 0,
                                         .amsgrad = amsgrad });
}

BUILD(rmsprop)
{
    KilnFlat flat = flat_of(in, 1, 2);

    kiln_rmsprop_update(&flat, (KilnRmsprop) { .alpha = 0.9, .eps = 1e-3, .momentum = 0.5 });
}

BUILD(adagrad)
{
    const KilnFlat flat = flat_of(in, 2, 1);

    kiln_adagrad_update(&flat, (KilnAdagrad) { .initial_accumulator_value = 0.1, .eps = 1e-3 });
}

BUILD(lamb)
{
    const KilnFlat flat = flat_of(in, 3, 2);

    kiln_lamb_update(
        &flat,
        (KilnLamb) { .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3, .always_adapt = item->arg[0] != 0 });
}

BUILD(lion)
{
    const KilnFlat flat = flat_of(in, 1, 1);

    kiln_lion_update(&flat, (KilnLion) { .beta1 = 0.9, .beta2 = 0.99 });
}

BUILD(adan)
{
    const KilnFlat flat = flat_of(in, 5, 4);

    kiln_adan_update(
        &flat,
        (KilnAdan) {
            .beta1 = 0.9, .beta2 = 0.9, .beta3 = 0.99, .eps = 1e-3, .no_prox = item->arg[0] != 0 });
}

static const Row table[] = {
    { "store", row_variable, build_store, 2, 0, false, false },
    { "ema_update", row_variable, build_ema_update, 2, 0, false, false },
    { "lerp_update", row_variable, build_lerp_update, 2, 0, false, false },
    { "clamp_update", row_variable, build_clamp_update, 0, 0, false, false },
    { "increment", row_increment, build_increment, 0, 0, false, false },
    { "sgd", row_optimizer, build_sgd, 0, 8, false, false },
    { "adam", row_optimizer, build_adam, 0, 8, false, false },
    { "rmsprop", row_optimizer, build_rmsprop, 0, 8, false, false },
    { "adagrad", row_optimizer, build_adagrad, 0, 8, false, false },
    { "lamb", row_optimizer, build_lamb, 0, 8, false, false },
    { "lion", row_optimizer, build_lion, 0, 8, false, false },
    { "adan", row_optimizer, build_adan, 0, 8, false, false },
};
ROWS(update)
