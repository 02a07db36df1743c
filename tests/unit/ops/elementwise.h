/* Samples of operations that work element by element. */
#ifndef KILN_TEST_OPS_ELEMENTWISE_H
#define KILN_TEST_OPS_ELEMENTWISE_H

#include "tests/unit/ops/case.h"

BUILD(build_add)
{
    UNUSED_ARG;
    return kiln_add(leaf[0], leaf[1]);
}

/* One tensor used twice: its gradients are summed. */
BUILD(build_add_self)
{
    UNUSED_ARG;
    return kiln_add(kiln_add(leaf[0], leaf[0]), kiln_relu(leaf[0]));
}

static const Case cases_add[] = {
    { "add", build_add, "gg", .shape = { SHAPE(7, 11), SHAPE(7, 11) } },
    { "add, large", build_add, "gg", .shape = { SHAPE(101, 1009), SHAPE(101, 1009) } },
    { "add, to itself", build_add_self, "g", .shape = { SHAPE(7) } },
};

BUILD(build_mul)
{
    UNUSED_ARG;
    return kiln_mul(leaf[0], leaf[1]);
}

BUILD(build_square)
{
    UNUSED_ARG;
    return kiln_mul(leaf[0], leaf[0]);
}

static const Case cases_mul[] = {
    { "mul", build_mul, "gg", .shape = { SHAPE(13), SHAPE(13) } },
    { "mul, large", build_mul, "gg", .shape = { SHAPE(3, 17, 19, 67), SHAPE(3, 17, 19, 67) } },
    { "mul, by itself", build_square, "g", .shape = { SHAPE(5) } },
};

BUILD(build_scale)
{
    UNUSED_ARG;
    return kiln_scale(leaf[0], -1.7);
}

static const Case cases_scale[] = {
    { "scale", build_scale, "g", .shape = { SHAPE(1) } },
    { "scale, 3 axes", build_scale, "g", .shape = { SHAPE(2, 1, 3) } },
    { "scale, large", build_scale, "g", .shape = { SHAPE(65537) } },
};

BUILD(build_fill)
{
    return kiln_graph_full(leaf[0]->graph, KILN_SHAPE(arg[0], arg[1]), -0.3);
}

static const Case cases_fill[] = {
    { "fill", build_fill, "f", .shape = { SCALAR }, .arg = { 3, 7 } },
    { "fill, large", build_fill, "f", .shape = { SCALAR }, .arg = { 257, 263 } },
};

BUILD(build_relu)
{
    UNUSED_ARG;
    return kiln_relu(leaf[0]);
}

static const Case cases_relu[] = {
    { "relu", build_relu, "g", .shape = { SHAPE(31, 3) } },
    { "relu, large", build_relu, "g", .shape = { SHAPE(5, 29, 31, 17) } },
};
#define cases_relu_grad cases_relu

BUILD(build_dropout)
{
    return kiln_dropout(leaf[0], (double)arg[0] / 10.0, leaf[1], 7);
}

static const Case cases_dropout[] = {
    { "dropout", build_dropout, "gl", .shape = { SHAPE(3, 37), SHAPE(2) }, .arg = { 5 } },
    { "dropout, none", build_dropout, "gl", .shape = { SHAPE(64), SHAPE(2) } },
    { "dropout, large", build_dropout, "gl", .shape = { SHAPE(257, 263), SHAPE(2) }, .arg = { 1 } },
};
#define cases_dropout_grad cases_dropout

#endif
