/* Copies between two arrangements of the same elements, for permute, slice, concat and split. */
#ifndef KILN_BACKEND_CPU_KERNELS_STRIDED_H
#define KILN_BACKEND_CPU_KERNELS_STRIDED_H

#include "graph/backend.h"

/* Element [i0, i1, ...] is read from from + i0*from_step[0] + i1*from_step[1] ... and written
 * likewise; steps count elements of `size` bytes (1, 2, 4 or 8), and to_step is positive. */
typedef struct KilnStrided {
    int rank;
    int64_t dim[KILN_MAX_RANK], from_step[KILN_MAX_RANK], to_step[KILN_MAX_RANK];
    const char *from;
    char *to;
    size_t size;
} KilnStrided;

/* Steps of a plain array: 1 on the last axis. */
void kiln_plain_steps(const KilnShape *shape, int64_t step[KILN_MAX_RANK]);
/* from and to must not overlap. */
void kiln_strided_copy(int threads, KilnStrided copy);

#endif
