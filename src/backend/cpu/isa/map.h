/* The loops that run the steps of maps. map.c is compiled once per instruction
 * set, as loops.c is. */
#ifndef KILN_BACKEND_CPU_ISA_MAP_H
#define KILN_BACKEND_CPU_ISA_MAP_H

#include "graph/map.h"
#include "kiln/tensor.h"

/* Steps run over whole groups of this many elements, so that an element's value
 * does not depend on where it lies. */
enum { KILN_MAP_GROUP = 16 };

/* One step over n elements, a multiple of KILN_MAP_GROUP. Arrays are the same or
 * apart; those that the code does not read may be NULL. */
typedef void (*KilnMapLoop)(float *y, const float *a, const float *b, const float *c, float p,
                            float q, int64_t n);

typedef struct KilnMapLoops {
    KilnMapLoop step[KILN_MAP_CODE_COUNT];
    /* Elements x[0], x[stride], ... of any type as floats. */
    void (*load)(float *y, const void *x, KilnDType dtype, int64_t stride, int64_t n);
    void (*to_bf16)(uint16_t *y, const float *x, int64_t n);
} KilnMapLoops;

extern const KilnMapLoops kiln_map_loops_base, kiln_map_loops_avx2, kiln_map_loops_avx512;

#endif
