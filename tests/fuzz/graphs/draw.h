/* What the rows of operations draw their inputs and attributes with. */
#ifndef KILN_TESTS_FUZZ_GRAPHS_DRAW_H
#define KILN_TESTS_FUZZ_GRAPHS_DRAW_H

#include "tests/fuzz/graphs/spec.h"

struct Draw {
    KilnRng rng;
    Spec *spec;
    KilnGraph *graph; /* records the items drawn so far, for their shapes */
    KilnTensor *values[SPEC_ITEMS * SPEC_OUTPUTS];
    bool plain; /* all floats are normal */
};

/* 0 to n - 1; low to high, both included; true in so many of 100. */
int64_t draw_below(Draw *draw, int64_t n);
int64_t draw_between(Draw *draw, int64_t low, int64_t high);
bool draw_chance(Draw *draw, int percent);

/* A size, often near the width of a vector, at most `most`. */
int64_t draw_size(Draw *draw, int64_t most);
/* A shape of some rank and at most a few thousand elements. */
KilnShape draw_shape(Draw *draw, int least_rank, int most_rank);
/* The shape of a value. */
KilnShape draw_shape_of(const Draw *draw, int value);
int draw_rank_of(const Draw *draw, int value);
int64_t draw_count_of(const Draw *draw, int value);
int64_t draw_dim_of(const Draw *draw, int value, int axis);

/* A float value of a rank between these; of this shape; of a shape that broadcasts to this one. An
 * earlier result, or a new leaf. */
int draw_float(Draw *draw, int least_rank, int most_rank);
int draw_like(Draw *draw, KilnShape shape);
int draw_broadcast(Draw *draw, KilnShape shape);
/* New leaves: a parameter or input, one with positive values, a variable, integers, a mask. */
int draw_leaf(Draw *draw, LeafKind kind, Values values, KilnShape shape);
int draw_param(Draw *draw, KilnShape shape);
int draw_positive(Draw *draw, KilnShape shape);
int draw_variable(Draw *draw, KilnShape shape);
int draw_index(Draw *draw, KilnShape shape, int64_t low, int64_t limit);
int draw_mask(Draw *draw, KilnShape shape);

/* A random axis of the value. */
int draw_axis(Draw *draw, int value);

#endif
