/* Four floats at once, in a register of any processor. */
#ifndef KILN_IMAGE_FLOATS4_H
#define KILN_IMAGE_FLOATS4_H

#include <string.h>

typedef float KilnFloats4 __attribute__((vector_size(16)));

static inline KilnFloats4 kiln_load4(const float *from)
{
    KilnFloats4 values;

    memcpy(&values, from, sizeof(values));
    return values;
}

static inline void kiln_store4(float *to, KilnFloats4 values)
{
    memcpy(to, &values, sizeof(values));
}

#endif
