/* Samples of embeddings. */
#include "tests/support/ops/case.h"

/* arg[0]: indices are below it. */
BUILD(build_index_select)
{
    return kiln_index_select(leaf[0], (int)arg[1], leaf[1]);
}

BUILD(build_embedding)
{
    return kiln_embedding(leaf[0], leaf[1], arg[1]);
}

static const Case cases_index_select[] = {
    { "index_select", build_index_select, "gL", .shape = { SHAPE(3, 5, 2), SHAPE(4) },
      .arg = { 5, 1 } },
    { "index_select, matrix of indices", build_index_select, "gL",
      .shape = { SHAPE(2, 4), SHAPE(3, 2) }, .arg = { 4, -1 } },
    { "index_select, i32, out of range", build_index_select, "lL",
      .shape = { SHAPE(3, 5), SHAPE(9) }, .arg = { 7, 1 } },
    { "index_select, large", build_index_select, "gL", .shape = { SHAPE(17, 67, 33), SHAPE(101) },
      .arg = { 67, 1 } },
    { "embedding", build_embedding, "gL", .shape = { SHAPE(5, 3), SHAPE(2, 4) }, .arg = { 5, -1 } },
    { "embedding, padding", build_embedding, "gL", .shape = { SHAPE(4, 3), SHAPE(9) },
      .arg = { 4, 1 }, .no_differences = true },
    { "embedding, out of range", build_embedding, "gL", .shape = { SHAPE(4, 3), SHAPE(17) },
      .arg = { 6, -1 }, .no_differences = true },
    { "embedding, large", build_embedding, "gL", .shape = { SHAPE(997, 67), SHAPE(16, 129) },
      .arg = { 997, 0 } },
};
SAMPLES(index_select)
SAMPLES_OF(index_select_grad, index_select)

/* arg[1]: mode, arg[2]: padding, arg[3]: step of the offsets; 0: none. */
BUILD(build_bag)
{
    KilnTensor *offsets = NULL;

    if (arg[3] != 0)
        offsets = kiln_arange(leaf[0]->graph, KILN_I32, 0.0, (double)arg[3],
                              kiln_tensor_dim(leaf[1], 0) / arg[3]);
    return kiln_embedding_bag(leaf[0], leaf[1], offsets, (KilnBagMode)arg[1], arg[2]);
}

/* Bags without an index: two begin at the same place. */
BUILD(build_empty_bag)
{
    KilnTensor *ramp = kiln_arange(leaf[0]->graph, KILN_I32, 0.0, 0.5, arg[3]);

    return kiln_embedding_bag(leaf[0], leaf[1], ramp, (KilnBagMode)arg[1], arg[2]);
}

/* Sums with factors: the last leaf. arg[1]: step of the offsets, 0: none; arg[2]: padding. */
BUILD(build_bag_weighed)
{
    KilnTensor *offsets = NULL;

    if (arg[1] != 0)
        offsets = kiln_arange(leaf[0]->graph, KILN_I32, 0.0, (double)arg[1],
                              kiln_tensor_dim(leaf[1], 0) / arg[1]);
    return kiln_embedding_bag_weighted(leaf[0], leaf[1], offsets, leaf[2], arg[2]);
}

static const Case cases_embedding_bag[] = {
    { "embedding_bag, sum", build_bag, "gL", .shape = { SHAPE(5, 3), SHAPE(4, 3) },
      .arg = { 5, KILN_BAG_SUM, -1, 0 } },
    { "embedding_bag, mean", build_bag, "gL", .shape = { SHAPE(5, 3), SHAPE(12) },
      .arg = { 5, KILN_BAG_MEAN, -1, 3 } },
    { "embedding_bag, mean, padding", build_bag, "gL", .shape = { SHAPE(3, 2), SHAPE(6, 3) },
      .arg = { 3, KILN_BAG_MEAN, 1, 0 } },
    { "embedding_bag, max", build_bag, "gL", .shape = { SHAPE(7, 3), SHAPE(4, 3) },
      .arg = { 7, KILN_BAG_MAX, -1, 0 } },
    { "embedding_bag, max, padding", build_bag, "gL", .shape = { SHAPE(3, 2), SHAPE(12) },
      .arg = { 3, KILN_BAG_MAX, 0, 2 } },
    { "embedding_bag, empty", build_empty_bag, "gL", .shape = { SHAPE(5, 2), SHAPE(6) },
      .arg = { 5, KILN_BAG_MEAN, -1, 9 } },
    { "embedding_bag, empty, max", build_empty_bag, "gL", .shape = { SHAPE(5, 2), SHAPE(6) },
      .arg = { 5, KILN_BAG_MAX, -1, 9 } },
    { "embedding_bag, out of range", build_bag, "gL", .shape = { SHAPE(5, 2), SHAPE(9, 2) },
      .arg = { 6, KILN_BAG_SUM, -1, 0 }, .no_differences = true },
    { "embedding_bag, large", build_bag, "gL", .shape = { SHAPE(997, 67), SHAPE(2048) },
      .arg = { 997, KILN_BAG_MEAN, 3, 8 } },
    { "embedding_bag, large, max", build_bag, "gL", .shape = { SHAPE(997, 67), SHAPE(128, 16) },
      .arg = { 997, KILN_BAG_MAX, -1, 0 } },
    { "embedding_bag, weighted", build_bag_weighed, "gLg",
      .shape = { SHAPE(5, 3), SHAPE(4, 3), SHAPE(4, 3) }, .arg = { 5, 0, -1 } },
    { "embedding_bag, weighted, padding", build_bag_weighed, "gLg",
      .shape = { SHAPE(4, 3), SHAPE(13), SHAPE(13) }, .arg = { 4, 4, 1 } },
    { "embedding_bag, weighted, factors fixed", build_bag_weighed, "gLf",
      .shape = { SHAPE(4, 3), SHAPE(2, 5), SHAPE(2, 5) }, .arg = { 4, 0, -1 } },
    { "embedding_bag, weighted, out of range", build_bag_weighed, "gLg",
      .shape = { SHAPE(5, 2), SHAPE(9, 2), SHAPE(9, 2) }, .arg = { 6, 0, -1 },
      .no_differences = true },
    { "embedding_bag, weighted, large", build_bag_weighed, "gLg",
      .shape = { SHAPE(997, 67), SHAPE(2050), SHAPE(2050) }, .arg = { 997, 7, 3 } },
};
SAMPLES(embedding_bag)
SAMPLES_OF(embedding_bag_grad, embedding_bag)
SAMPLES_OF(embedding_bag_factors_grad, embedding_bag)
