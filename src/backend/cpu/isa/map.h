/* Vector loops for the steps of maps (graph/map.h). Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_MAP_H
#define KILN_BACKEND_CPU_ISA_MAP_H

#include "graph/map.h"
#include "kiln/tensor.h"
#include "backend/cpu/level.h"

/* Steps run over whole groups of this many elements, so that a value does not depend on its
 * position. */
enum { KILN_MAP_GROUP = 16 };

/* One step over n elements, a multiple of KILN_MAP_GROUP. Arrays are identical or disjoint; those
 * that the code does not read may be NULL. */
typedef void (*KilnMapLoop)(float *y, const float *a, const float *b, const float *c, float p,
                            float q, int64_t n);

typedef struct KilnMapLoops {
    KilnMapLoop step[KILN_MAP_CODE_COUNT];
    /* Elements x[0], x[stride], ... of any type as floats. */
    void (*load)(float *y, const void *x, KilnDType dtype, int64_t stride, int64_t n);
    void (*to_bf16)(uint16_t *y, const float *x, int64_t n);
} KilnMapLoops;

KILN_DECLARE_LOOPS(KilnMapLoops, map_loops);

#endif
