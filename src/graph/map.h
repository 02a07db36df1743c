/* Maps: small programs over elements. Elementwise operations, chains of them that
 * fusion joins, and what is fused to the end of a product or a convolution are
 * all run as maps, tile by tile, so that what lies between two steps never
 * leaves the processor's cache. */
#ifndef KILN_GRAPH_MAP_H
#define KILN_GRAPH_MAP_H

#include <stdint.h>

/* What a step computes from registers a, b, c and numbers p, q. */
#define KILN_MAP_CODES(X)                                                                          \
    X(COPY)      /* a */                                                                           \
    X(ADD)       /* a + b */                                                                       \
    X(MUL)       /* a * b */                                                                       \
    X(SCALE)     /* a * p */                                                                       \
    X(RELU)      /* max(a, 0), NaN stays */                                                        \
    X(RELU_GRAD) /* b > 0 ? a : 0 */

typedef enum KilnMapCode {
#define KILN_MAP_ENUM(name) KILN_MAP_##name,
    KILN_MAP_CODES(KILN_MAP_ENUM)
#undef KILN_MAP_ENUM
        KILN_MAP_CODE_COUNT
} KilnMapCode;

enum { KILN_MAP_STEPS = 24, KILN_MAP_RESULTS = 4 };

typedef struct KilnMapStep {
    int32_t code;    /* KilnMapCode */
    int32_t a, b, c; /* registers; unused ones are 0 */
    double p, q;     /* unused ones are 0 */
} KilnMapStep;

/* Registers 0 ... n_inputs - 1 are the inputs, broadcast to the outputs' shape as
 * PyTorch does; register n_inputs + i is what step i gives. */
typedef struct KilnMap {
    int32_t n_inputs, n_steps, n_results;
    int32_t results[KILN_MAP_RESULTS]; /* registers */
    int32_t zero;
    KilnMapStep steps[KILN_MAP_STEPS];
} KilnMap;

#endif
