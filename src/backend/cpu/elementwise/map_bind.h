/* Maps bound to the arguments of a call: how each input comes into a tile, and where
 * the results go. */
#ifndef KILN_BACKEND_CPU_ELEMENTWISE_MAP_BIND_H
#define KILN_BACKEND_CPU_ELEMENTWISE_MAP_BIND_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/elementwise/map.h"

enum {
    KILN_BOUND_REGISTERS = KILN_MAX_INPUTS + KILN_MAP_STEPS,
    KILN_BOUND_SLOTS = 2 * KILN_MAX_INPUTS + KILN_MAP_STEPS, /* an expanded input takes two */
    KILN_BOUND_NO_SLOT = -1
};

/* How an input comes into a tile. */
typedef enum KilnAccess {
    KILN_ACCESS_SAME,     /* lies in the outputs' order: read where it is, if f32 */
    KILN_ACCESS_PERIODIC, /* repeats after at most a tile: two tiles of it are made once */
    KILN_ACCESS_WALK      /* by strides */
} KilnAccess;

typedef struct KilnBoundInput {
    int arg; /* of the call; -1: the tile that an epilogue is given */
    KilnDType dtype;
    KilnAccess access;
    int64_t stride[KILN_MAX_RANK]; /* in elements, over the map's axes; 0: repeated */
    int64_t period;                /* elements after which it repeats */
    int slot;
} KilnBoundInput;

typedef struct KilnBoundStep {
    KilnMapLoop loop;
    int a, b, c, slot;
    float p, q;
    int direct; /* result that it may write where it belongs; -1: none */
} KilnBoundStep;

typedef struct KilnBoundResult {
    int reg, arg;
    KilnDType dtype;
} KilnBoundResult;

/* A map bound to the arguments of a call. */
typedef struct KilnBoundMap {
    const KilnMapLoops *loops;
    int rank; /* axes of the outputs as they lie in memory, joined where all inputs allow */
    int64_t dim[KILN_MAX_RANK];
    int64_t count; /* elements in memory, padding included */
    int n_inputs, n_steps, n_results;
    KilnBoundInput inputs[KILN_MAX_INPUTS];
    KilnBoundStep steps[KILN_MAP_STEPS];
    KilnBoundResult results[KILN_MAP_RESULTS];
} KilnBoundMap;

/* An epilogue's register 0 is the tile that it is given; its other inputs and results
 * are the arguments after the operation's own. NULL: memory
 * is out. Owned by the caller (free). */
KilnBoundMap *kiln_map_bind(const KilnCall *call, const KilnMap *map, bool epilogue);

#endif
