/* Vectors of sixteen floats, in memory f32 or bf16. The compiler splits each into one, two or four
 * registers, so isa/NAME.c is written once for all levels (backend/cpu/level.h). Code with one
 * vector per register is in isa/transpose.h and isa/small_gemm.h. */
#ifndef KILN_BACKEND_CPU_ISA_VECTOR_H
#define KILN_BACKEND_CPU_ISA_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { KILN_LANES = 16 };

typedef float KilnFloats __attribute__((vector_size(64)));
typedef uint32_t KilnWords __attribute__((vector_size(64)));
typedef uint16_t KilnHalves __attribute__((vector_size(32)));

/* For functions that are written once and compiled for each constant argument. */
#define KILN_INLINE static inline __attribute__((always_inline))

KILN_INLINE KilnFloats kiln_floats(float value)
{
    return value - (KilnFloats) { 0 };
}

/* Elements i ... i + lanes - 1 (at most KILN_LANES); the other lanes are zero. */
KILN_INLINE KilnFloats kiln_load_lanes(const void *from, int64_t i, int lanes, bool bf16)
{
    KilnFloats floats = { 0 };
    KilnHalves half = { 0 };

    if (!bf16) {
        memcpy(&floats, (const float *)from + i, (size_t)lanes * sizeof(float));
        return floats;
    }
    memcpy(&half, (const uint16_t *)from + i, (size_t)lanes * sizeof(uint16_t));
    return (KilnFloats)(__builtin_convertvector(half, KilnWords) << 16);
}

/* Rounds to bf16 like kiln_bf16_of. */
KILN_INLINE void kiln_store_lanes(void *to, int64_t i, KilnFloats value, int lanes, bool bf16)
{
    if (!bf16) {
        memcpy((float *)to + i, &value, (size_t)lanes * sizeof(float));
        return;
    }
    const KilnWords bits = (KilnWords)value;
    const KilnWords nan = (KilnWords)((bits & 0x7FFFFFFFu) > 0x7F800000u);
    const KilnWords rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    const KilnWords kept = bits >> 16 | 0x0040u;
    const KilnHalves half = __builtin_convertvector((nan & kept) | (~nan & rounded), KilnHalves);

    memcpy((uint16_t *)to + i, &half, (size_t)lanes * sizeof(uint16_t));
}

/* max(x, 0); NaN stays NaN. */
KILN_INLINE KilnFloats kiln_relu_floats(KilnFloats x)
{
    return (KilnFloats)((KilnWords)x & ~(KilnWords)(x < 0.0f));
}

/* x where the mask's word is all ones, else 0. */
KILN_INLINE KilnFloats kiln_masked(KilnFloats x, KilnWords mask)
{
    return (KilnFloats)((KilnWords)x & mask);
}

#endif
