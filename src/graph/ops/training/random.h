/* Random numbers in the graph. */
#ifndef KILN_GRAPH_OPS_TRAINING_RANDOM_H
#define KILN_GRAPH_OPS_TRAINING_RANDOM_H

#include "kiln/ops.h"

#define KILN_OPS_RANDOM(X) X(random)

/* random              key i32 [2] -> y of attrs' shape                KilnRandomAttrs
 *
 * Element i takes word i % 4 of the Philox block with counter [i / 4, stream + 2^63] under the key:
 * streams of dropout are below 2^63. Uniform numbers are its upper 24 bits. Normal numbers 2i and
 * 2i + 1 are made of both words (Box and Muller 1958): the radius of the first, u = (its upper 24
 * bits + 1) / 2^24 -> sqrt(-2 log u), and the angle of the second. */
typedef struct KilnRandomAttrs {
    int64_t stream;
    int64_t normal;
    KilnShape shape;
} KilnRandomAttrs;

#endif
