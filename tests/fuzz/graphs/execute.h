/* Records and runs a drawn graph on a backend. */
#ifndef KILN_TESTS_FUZZ_GRAPHS_EXECUTE_H
#define KILN_TESTS_FUZZ_GRAPHS_EXECUTE_H

#include "graph/backend.h"
#include "tests/fuzz/graphs/spec.h"

/* How to run a graph. */
typedef struct Way {
    bool reference; /* the reference backend; else the CPU's */
    int threads;
    KilnConvolution convolution;
    unsigned passes_off;
    uint64_t noise; /* leaves, results and updated variables are multiplied by 1 + small random
                     * numbers of this seed, as large as rounding errors; 0: they are not */
    bool survey;    /* look at every intermediate result, too */
} Way;

/* Bytes that a run leaves, as doubles: an output, a variable, a gradient. */
typedef struct Field {
    char name[32];
    bool is_float;
    int64_t n;
    double *values;
} Field;

typedef struct Outcome {
    Field fields[SPEC_ITEMS];
    int n;
    bool failed; /* not run */
    KilnError error;
    /* With `survey`: what was computed on the way, in absolute value. */
    double largest, smallest; /* of the finite ones that are not 0 */
    bool not_finite;
} Outcome;

/* Bytes of the leaves while a graph is recorded and run. */
typedef struct Memory {
    void *data[SPEC_ITEMS], *grad[SPEC_ITEMS]; /* by item; NULL: it is no leaf */
    size_t bytes[SPEC_ITEMS];
    void **blocks; /* all that is to be freed */
    size_t n_blocks;
    uint64_t noise;
    bool bf16; /* parameters and variables are stored as bf16 */
} Memory;

/* Records item i, which reads `values` and sets those it makes. Without memory the leaves have no
 * bytes. */
void execute_item(KilnGraph *graph, const Spec *spec, int i, Memory *memory, KilnTensor **values);
/* A graph that is only recorded. */
KilnGraph *execute_shapes_graph(void);

/* Runs the graph; with `twice` a second time by the same plan, whose outcome is *ret_again. */
void execute(const Spec *spec, const Way *way, Outcome *ret, Outcome *ret_again);
void outcome_release(Outcome *outcome);
/* Frees the backends. */
void execute_finish(void);

/* How many times a rounding error the noise of this seed is: in some runs more, since a kernel
 * rounds more than once. */
double execute_noise_scale(uint64_t noise);

/* How often each of kiln_ops was recorded, with its gradients. */
extern unsigned long executed_ops[];

#endif
