/* Maps bound to the arguments of a call: how to load each input into a tile, and where to store the
 * results. */
#ifndef KILN_BACKEND_CPU_ELEMENTWISE_MAP_BIND_H
#define KILN_BACKEND_CPU_ELEMENTWISE_MAP_BIND_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/elementwise/map.h"

enum {
    KILN_BOUND_REGISTERS = KILN_MAX_INPUTS + KILN_MAP_STEPS,
    KILN_BOUND_SLOTS = 2 * KILN_MAX_INPUTS + KILN_MAP_STEPS, /* an expanded input takes two */
    KILN_BOUND_NO_SLOT = -1
};

/* How to load an input into a tile. */
typedef enum KilnAccess {
    KILN_ACCESS_SAME,     /* in the outputs' order: read directly, if f32 */
    KILN_ACCESS_PERIODIC, /* repeats after at most a tile: two tiles of it are prepared once */
    KILN_ACCESS_WALK      /* by strides */
} KilnAccess;

typedef struct KilnBoundInput {
    int arg; /* of the call; -1: the tile passed to the epilogue */
    KilnDType dtype;
    KilnAccess access;
    int64_t stride[KILN_MAX_RANK]; /* in elements, over the map's axes; 0: repeated */
    int64_t period;                /* elements per repetition */
    int slot;
} KilnBoundInput;

typedef struct KilnBoundStep {
    KilnMapLoop loop;
    int a, b, c, slot;
    float p, q;
    int direct; /* result that the step may write to its destination; -1: none */
} KilnBoundStep;

typedef struct KilnBoundResult {
    int reg, arg;
    KilnDType dtype;
} KilnBoundResult;

/* A map bound to the arguments of a call. */
typedef struct KilnBoundMap {
    const KilnMapLoops *loops;
    int rank; /* the outputs' axes in memory order, merged where all inputs allow */
    int64_t dim[KILN_MAX_RANK];
    int64_t count; /* elements in memory, padding included */
    int n_inputs, n_steps, n_results;
    KilnBoundInput inputs[KILN_MAX_INPUTS];
    KilnBoundStep steps[KILN_MAP_STEPS];
    KilnBoundResult results[KILN_MAP_RESULTS];
} KilnBoundMap;

/* An epilogue's register 0 is the tile passed to it; its other inputs and results are the arguments
 * after the operation's own. NULL when out of memory. Owned by the caller (free). */
KilnBoundMap *kiln_map_bind(const KilnCall *call, const KilnMap *map, bool epilogue);

#endif
