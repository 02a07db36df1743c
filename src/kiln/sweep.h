/* Sweeps: what they vary. */
#ifndef KILN_SWEEP_H
#define KILN_SWEEP_H

#include "kiln/config.h"

/* What one override of a sweep gives its key. */
typedef struct KilnAxis {
    const char *key;              /* "lr", "+model.depth", "db@src": what stands before = */
    const char *const *overrides; /* whole arguments of single runs: "lr=0.1", "lr=0.01" */
    size_t count;                 /* 1 for an override with one value */
    size_t zipped;                /* axes of the same number, not 0, vary together */
} KilnAxis;

/* All axes of a sweep, in the order of the arguments. */
typedef struct KilnSpace {
    const KilnAxis *axes;
    size_t count;
} KilnSpace;

#endif
