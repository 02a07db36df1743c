/* exp, sigmoid and tanh in plain arithmetic, so that the compiler can vectorize loops over them.
 * Included by files that are compiled once per level. isa/libmvec.h has the C library's versions.
 */
#ifndef KILN_BACKEND_CPU_ISA_EXP_TANH_H
#define KILN_BACKEND_CPU_ISA_EXP_TANH_H

#include <stdint.h>
#include <string.h>

/* exp within 2 units in the last place; 0 below the smallest normal number.
 * x = n·log 2 + r with |r| <= log(2)/2, and the Taylor series of r. */
static inline __attribute__((always_inline)) float vec_exp(float x)
{
    const float lowest = -87.33654f, highest = 88.72283f, magic = 12582912.0f; /* 1.5·2^23 */
    const float y = x < lowest ? lowest : x > highest ? highest : x;
    const float shifted = y * 1.44269504f + magic, n = shifted - magic;
    const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f / 5040;
    uint32_t bits; /* unsigned, since NaN makes any power */
    int32_t power;
    float scale;

    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * (r * r) + r + 1.0f;
    memcpy(&power, &shifted, sizeof(power));
    power = (int32_t)((uint32_t)power - 0x4B400000u); /* the bits of `magic` */
    /* Apply half of the power twice, since 2^128 is not a float. */
    bits = ((uint32_t)(power / 2) + 127u) << 23;
    memcpy(&scale, &bits, sizeof(scale));
    p *= scale;
    bits = ((uint32_t)(power - power / 2) + 127u) << 23;
    memcpy(&scale, &bits, sizeof(scale));
    p *= scale;
    p = x > highest ? __builtin_inff() : p;
    return x < lowest ? 0.0f : p;
}

static inline __attribute__((always_inline)) float vec_sigmoid(float x)
{
    return 1.0f / (1.0f + vec_exp(-x));
}

/* Near 0, where 1 - 2/(exp(2x) + 1) cancels, uses the polynomial of Cephes (Moshier). */
static inline __attribute__((always_inline)) float vec_tanh(float x)
{
    const float square = x * x;
    float p = -5.70498872745e-3f;

    p = p * square + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    p = p * square * x + x;
    const float far = 1.0f - 2.0f / (vec_exp(2.0f * x) + 1.0f);
    return square < 0.390625f ? p : far;
}

#endif
