/* Samples of updates in place. */
#ifndef KILN_TEST_OPS_UPDATE_H
#define KILN_TEST_OPS_UPDATE_H

#include "tests/unit/ops/case.h"

BUILD(build_ema)
{
    UNUSED_ARG;
    kiln_ema_update(leaf[0], leaf[1], 0.1);
    return NULL;
}

static const Case cases_ema_update[] = {
    { "ema_update", build_ema, "vf", .shape = { SHAPE(37), SHAPE(37) } },
};

BUILD(build_increment)
{
    UNUSED_ARG;
    kiln_increment(leaf[0]);
    return NULL;
}

static const Case cases_increment[] = {
    { "increment", build_increment, "c", .shape = { SCALAR } },
};

BUILD(build_sgd)
{
    const KilnSgd sgd = { .momentum = (double)arg[0] / 10.0,
                          .weight_decay = 0.01,
                          .nesterov = arg[1] != 0 };

    kiln_sgd_update(leaf[0], leaf[1], arg[0] != 0 ? leaf[3] : NULL, leaf[2], sgd);
    return NULL;
}

static const Case cases_sgd_update[] = {
    { "sgd_update", build_sgd, "vfp", .shape = { SHAPE(101), SHAPE(101), SHAPE(2) },
      .arg = { 0, 0 } },
    { "sgd_update, momentum", build_sgd, "vfpv",
      .shape = { SHAPE(40009), SHAPE(40009), SHAPE(2), SHAPE(40009) }, .arg = { 9, 0 } },
    { "sgd_update, nesterov", build_sgd, "vfpv",
      .shape = { SHAPE(101), SHAPE(101), SHAPE(2), SHAPE(101) }, .arg = { 9, 1 } },
};

BUILD(build_adam)
{
    const KilnAdam adam = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01, .decoupled = arg[0] != 0
    };

    kiln_adam_update(leaf[0], leaf[1], leaf[2], leaf[3], leaf[4], adam);
    return NULL;
}

static const Case cases_adam_update[] = {
    { "adam_update", build_adam, "vfvvp",
      .shape = { SHAPE(40009), SHAPE(40009), SHAPE(40009), SHAPE(40009), SHAPE(3) } },
    { "adam_update, decoupled", build_adam, "vfvvp",
      .shape = { SHAPE(101), SHAPE(101), SHAPE(101), SHAPE(101), SHAPE(3) }, .arg = { 1 } },
};

#endif
