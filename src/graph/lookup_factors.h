/* Factors on the vectors that ids look up, for explanations: the layers of nn/embedding.c multiply
 * the vector of each id by a number of its own. The derivative by that number says how much the id
 * matters, and the number 0 takes it out. */
#ifndef KILN_GRAPH_LOOKUP_FACTORS_H
#define KILN_GRAPH_LOOKUP_FACTORS_H

#include "graph/graph.h"

/* Those of one leaf with ids, in the graph's arena. */
typedef struct KilnLookupFactors {
    KilnTensor *index, *factors; /* of one shape */
    bool used;                   /* a layer has asked for them */
    struct KilnLookupFactors *next;
} KilnLookupFactors;

/* Give the leaf `index`, i32, factors for the rest of the step; returns their entry, or NULL after
 * poisoning the graph when memory is out. */
KilnLookupFactors *kiln_lookup_factors_set(KilnTensor *index, KilnTensor *factors);
/* The factors of a leaf, or of a part of one, with the shape of `index`. NULL: it has none. */
KilnTensor *kiln_lookup_factors(KilnTensor *index);

#endif
