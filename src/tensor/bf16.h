/* bf16: the upper 16 bits of an f32. */
#ifndef KILN_TENSOR_BF16_H
#define KILN_TENSOR_BF16_H

#include <stdint.h>
#include <string.h>

/* Rounds to nearest, ties to even; NaN stays NaN, overflow becomes infinite. */
static inline uint16_t kiln_bf16_of(float value)
{
    uint32_t bits;

    /* Computes both cases without a branch, so that loops vectorize. */
    memcpy(&bits, &value, sizeof(bits));
    uint32_t quiet = bits >> 16 | 0x0040u, round = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : round);
}

static inline float kiln_bf16_to(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float f32;

    memcpy(&f32, &bits, sizeof(f32));
    return f32;
}

static inline void kiln_bf16_from_f32(uint16_t *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = kiln_bf16_of(from[i]);
}

static inline void kiln_bf16_to_f32(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = kiln_bf16_to(from[i]);
}

#endif
