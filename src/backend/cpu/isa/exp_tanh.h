/* exp, sigmoid and tanh in plain arithmetic, so that the compiler can vectorize loops over them.
 * Included by files that are compiled once per level. isa/libmvec.h has the C library's versions.
 */
#ifndef KILN_BACKEND_CPU_ISA_EXP_TANH_H
#define KILN_BACKEND_CPU_ISA_EXP_TANH_H

#include <stdint.h>
#include <string.h>

/* a * b + c, rounded once where there is an instruction for it. */
static inline __attribute__((always_inline)) float vec_fma(float a, float b, float c)
{
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* exp within 2 units in the last place for x from -86.6 to 88.3, that of -86.6 below and infinity
 * above. x = n·log 2 + r with |r| <= log(2)/2, and the polynomial of Cephes (Moshier) in r. */
static inline __attribute__((always_inline)) float vec_exp_bounded(float x)
{
    const float lowest = -86.6f, highest = 88.8f, magic = 12582912.0f; /* 1.5·2^23 */
    const float low = x < lowest ? lowest : x, y = low > highest ? highest : low;
    const float shifted = vec_fma(y, 1.44269504f, magic), n = shifted - magic;
    const float r = vec_fma(n, 2.12194440e-4f, vec_fma(n, -0.693359375f, y));
    float p = 1.9875691500e-4f, scale;
    uint32_t bits; /* unsigned, since NaN makes any power */

    p = vec_fma(p, r, 1.3981999507e-3f);
    p = vec_fma(p, r, 8.3334519073e-3f);
    p = vec_fma(p, r, 4.1665795894e-2f);
    p = vec_fma(p, r, 1.6666665459e-1f);
    p = vec_fma(p, r, 5.0000001201e-1f);
    p = vec_fma(p, r * r, r) + 1.0f;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits + 127u) << 23; /* `magic` goes; n = 128 makes infinity */
    memcpy(&scale, &bits, sizeof(scale));
    return p * scale;
}

/* exp of any x; 0 below -86.6, where it would be less than twice the smallest normal number. */
static inline __attribute__((always_inline)) float vec_exp(float x)
{
    /* Beyond 87.3 half of the power, twice. */
    const float p = vec_exp_bounded(x > 87.3f ? 0.5f * x : x);
    const float whole = x > 87.3f ? p * p : p;

    return x < -86.6f ? 0.0f : whole;
}

static inline __attribute__((always_inline)) float vec_sigmoid(float x)
{
    return 1.0f / (1.0f + vec_exp_bounded(-x));
}

/* Near 0, where 1 - 2/(exp(2x) + 1) cancels, uses the polynomial of Cephes. */
static inline __attribute__((always_inline)) float vec_tanh(float x)
{
    const float square = x * x;
    float p = -5.70498872745e-3f;

    p = vec_fma(p, square, 2.06390887954e-2f);
    p = vec_fma(p, square, -5.37397155531e-2f);
    p = vec_fma(p, square, 1.33314422036e-1f);
    p = vec_fma(p, square, -3.33332819422e-1f);
    p = vec_fma(p * square, x, x);
    const float far = 1.0f - 2.0f / (vec_exp_bounded(2.0f * x) + 1.0f);
    return square < 0.390625f ? p : far;
}

#endif
