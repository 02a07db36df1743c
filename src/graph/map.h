/* A map is a fused elementwise program: a list of steps (KilnMapStep) that all elements go through,
 * tile by tile, so that intermediate values stay in the processor's cache. Single elementwise
 * operations, chains that graph/passes/fuse_elementwise.c joins, and epilogues of products and
 * convolutions (fuse_epilogue.c) all run as maps: backend/cpu/elementwise/map.c. */
#ifndef KILN_GRAPH_MAP_H
#define KILN_GRAPH_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* Step codes, with registers a, b, c and numbers p, q: X(code, how many of a, b, c it reads). NaN
 * propagates as in PyTorch. Codes that end in _GRAD take the gradient of the result as a. */
#define KILN_MAP_CODES(X)                                                                          \
    X(NUMBER, 0)            /* p */                                                                \
    X(COPY, 1)              /* a */                                                                \
    X(ADD, 2)               /* a + b */                                                            \
    X(SUB, 2)               /* a - b */                                                            \
    X(MUL, 2)               /* a * b */                                                            \
    X(DIV, 2)               /* a / b */                                                            \
    X(SCALE, 1)             /* a * p */                                                            \
    X(SHIFT, 1)             /* a + p */                                                            \
    X(MINIMUM, 2)           /* NaN if either is */                                                 \
    X(MAXIMUM, 2)           /* NaN if either is */                                                 \
    X(CLAMP, 1)             /* min(max(a, p), q) */                                                \
    X(EQ, 2)                /* comparisons return 1 or 0 */                                        \
    X(NE, 2)                /* */                                                                  \
    X(LT, 2)                /* a < b */                                                            \
    X(LE, 2)                /* a <= b */                                                           \
    X(WHERE, 3)             /* a != 0 ? b : c */                                                   \
    X(EXP, 1)               /* */                                                                  \
    X(LOG, 1)               /* */                                                                  \
    X(LOG1P, 1)             /* log(1 + a) */                                                       \
    X(SQRT, 1)              /* */                                                                  \
    X(RSQRT, 1)             /* 1 / sqrt(a) */                                                      \
    X(RECIPROCAL, 1)        /* 1 / a */                                                            \
    X(SQUARE, 1)            /* a * a */                                                            \
    X(POW, 1)               /* a to the p */                                                       \
    X(POWER, 2)             /* a to the b */                                                       \
    X(ABS, 1)               /* */                                                                  \
    X(SIGN, 1)              /* -1, 0, 1; 0 for NaN */                                              \
    X(FLOOR, 1)             /* */                                                                  \
    X(ROUND, 1)             /* to the nearest integer, halves to the even one */                   \
    X(ERF, 1)               /* */                                                                  \
    X(SIN, 1)               /* */                                                                  \
    X(COS, 1)               /* */                                                                  \
    X(ATAN2, 2)             /* the angle of the point (b, a) */                                    \
    X(SIGMOID, 1)           /* 1 / (1 + exp(-a)) */                                                \
    X(TANH, 1)              /* */                                                                  \
    X(RELU, 1)              /* max(a, 0) */                                                        \
    X(LEAKY_RELU, 1)        /* a > 0 ? a : a * p */                                                \
    X(ELU, 1)               /* a > 0 ? a : p * (exp(a) - 1) */                                     \
    X(GELU, 1)              /* a * Phi(a) */                                                       \
    X(GELU_TANH, 1)         /* the same through tanh */                                            \
    X(SILU, 1)              /* a * sigmoid(a) */                                                   \
    X(HARD_SWISH, 1)        /* a * HARD_SIGMOID(a) */                                              \
    X(HARD_SIGMOID, 1)      /* min(max(a / 6 + 1 / 2, 0), 1) */                                    \
    X(SOFTPLUS, 1)          /* log(1 + exp(p a)) / p; a where p a > q */                           \
    X(RELU_GRAD, 2)         /* b <= 0 ? 0 : a; b is x or the result */                             \
    X(LEAKY_RELU_GRAD, 2)   /* b > 0 ? a : a * p */                                                \
    X(ELU_GRAD, 2)          /* b is x */                                                           \
    X(GELU_GRAD, 2)         /* b is x */                                                           \
    X(GELU_TANH_GRAD, 2)    /* b is x */                                                           \
    X(SILU_GRAD, 2)         /* b is x */                                                           \
    X(HARD_SWISH_GRAD, 2)   /* b is x; between -3 and 3 a (b / 3 + 1 / 2) */                       \
    X(HARD_SIGMOID_GRAD, 2) /* -3 < b < 3 ? a / 6 : 0; b is x */                                   \
    X(SOFTPLUS_GRAD, 2)     /* b is x */                                                           \
    X(SIGMOID_GRAD, 2)      /* a b (1 - b); b is the result */                                     \
    X(TANH_GRAD, 2)         /* a (1 - b b); b is the result */                                     \
    X(CLAMP_GRAD, 2)        /* p < b < q ? a : 0 */                                                \
    X(LARGER_GRAD, 3)       /* a where b > c, half of a where b = c, else 0 */

typedef enum KilnMapCode {
#define KILN_MAP_ENUM(name, reads) KILN_MAP_##name,
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

/* Registers 0 ... n_inputs - 1 are the inputs, broadcast to the outputs' shape as in PyTorch;
 * register n_inputs + i is the result of step i. */
typedef struct KilnMap {
    int32_t n_inputs, n_steps, n_results;
    int32_t results[KILN_MAP_RESULTS]; /* registers */
    int32_t zero;
    KilnMapStep steps[KILN_MAP_STEPS];
} KilnMap;

typedef struct KilnNode KilnNode;

/* Number of registers that a code reads. */
int kiln_map_reads(KilnMapCode code);
/* Whether a step reads the register. */
bool kiln_map_step_reads(const KilnMapStep *step, int reg);
/* The map of a node: its attributes, or its operation's single step. False if the operation is not
 * elementwise. */
bool kiln_map_of_node(const KilnNode *node, KilnMap *ret);

#endif
