/* Weights divided by a norm, made of other operations. */
#include <math.h>

#include "graph/graph.h"

KilnTensor *kiln_weight_norm(KilnTensor *v, KilnTensor *g, int axis)
{
    const int rank = v->shape.rank, from_front = axis < 0 ? axis + rank : axis;
    int others[KILN_MAX_RANK], n = 0;

    if (v->poisoned || g->poisoned)
        return v->graph->poison;
    for (int i = 0; i < rank; i++)
        if (i != from_front)
            others[n++] = i;
    KilnTensor *squares = kiln_square(v);
    KilnTensor *norm = kiln_sqrt(n > 0 ? kiln_sum_axes(squares, others, n, true) : squares);

    return kiln_mul(v, kiln_div(g, norm));
}

/* x / max(|x|, eps), of a vector. */
static KilnTensor *normalized(KilnTensor *x, double eps)
{
    return kiln_div(x, kiln_clamp(kiln_sqrt(kiln_sum(kiln_square(x))), eps, INFINITY));
}

/* The power iteration is not differentiated: its vectors are constants. */
KilnTensor *kiln_spectral_norm(KilnTensor *weight, KilnTensor *u, KilnTensor *v, int iterations,
                               double eps)
{
    if (weight->poisoned || u->poisoned || v->poisoned)
        return weight->graph->poison;
    if (weight->shape.rank < 1)
        return kiln_graph_poison(weight->graph, "spectral_norm: the weight must have an axis");
    KilnTensor *matrix = kiln_reshape(weight, KILN_SHAPE(weight->shape.dim[0], -1));
    KilnTensor *constant = kiln_detach(matrix);
    KilnTensor *row = kiln_reshape(kiln_detach(u), KILN_SHAPE(1, -1));
    KilnTensor *column = kiln_reshape(kiln_detach(v), KILN_SHAPE(-1, 1));

    for (int i = 0; i < iterations; i++) {
        row = kiln_reshape(normalized(kiln_matmul(constant, column, false, false), eps),
                           KILN_SHAPE(1, -1));
        column = kiln_reshape(normalized(kiln_matmul(row, constant, false, false), eps),
                              KILN_SHAPE(-1, 1));
    }
    if (iterations > 0) {
        kiln_store(u, kiln_reshape(row, u->shape));
        kiln_store(v, kiln_reshape(column, v->shape));
    }
    KilnTensor *sigma = kiln_matmul(kiln_matmul(row, matrix, false, false), column, false, false);

    return kiln_div(weight, kiln_reshape(sigma, KILN_SCALAR));
}
