/* Vectors of sixteen floats, in memory f32 or bf16. The compiler splits each into one, two or four
 * registers, so isa/NAME.c is written once for all levels (backend/cpu/level.h). Code with one
 * vector per register is in isa/transpose.h and isa/small_gemm.h. */
#ifndef KILN_BACKEND_CPU_ISA_VECTOR_H
#define KILN_BACKEND_CPU_ISA_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

#if defined(__AVX2__) && !defined(__AVX512F__)

/* gcc moves its own vectors of 64 bytes through memory where it converts them, so both halves are
 * converted here. */
KILN_INLINE __m256 kiln_floats_of_half(__m128i half)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

KILN_INLINE KilnFloats kiln_floats_of(KilnHalves half)
{
    const __m256i halves = (__m256i)half;
    const __m256 low = kiln_floats_of_half(_mm256_castsi256_si128(halves));
    const __m256 high = kiln_floats_of_half(_mm256_extracti128_si256(halves, 1));
    KilnFloats floats;

    memcpy(&floats, &low, sizeof(low));
    memcpy((char *)&floats + sizeof(low), &high, sizeof(high));
    return floats;
}

/* bf16 in the lower half of each word. */
KILN_INLINE __m256i kiln_rounded_words(__m256 value)
{
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));

    return _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
}

KILN_INLINE KilnHalves kiln_halves_of(KilnFloats floats)
{
    __m256 low, high;

    memcpy(&low, &floats, sizeof(low));
    memcpy(&high, (const char *)&floats + sizeof(low), sizeof(high));
    const __m256i packed = _mm256_packus_epi32(kiln_rounded_words(low), kiln_rounded_words(high));
    return (KilnHalves)_mm256_permute4x64_epi64(packed, 0xD8);
}

#else

KILN_INLINE KilnFloats kiln_floats_of(KilnHalves half)
{
    return (KilnFloats)(__builtin_convertvector(half, KilnWords) << 16);
}

KILN_INLINE KilnHalves kiln_halves_of(KilnFloats floats)
{
    const KilnWords bits = (KilnWords)floats;
    const KilnWords nan = (KilnWords)((bits & 0x7FFFFFFFu) > 0x7F800000u);
    const KilnWords rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    const KilnWords kept = bits >> 16 | 0x0040u;

    return __builtin_convertvector((nan & kept) | (~nan & rounded), KilnHalves);
}

#endif

/* Elements i ... i + lanes - 1 (at most KILN_LANES); the other lanes are zero. */
KILN_INLINE KilnFloats kiln_load_lanes(const void *from, int64_t i, int lanes, bool bf16)
{
    KilnFloats floats = { 0 };
    KilnHalves half = { 0 };

    if (lanes == KILN_LANES) { /* copies of a constant size are single instructions */
        if (!bf16) {
            memcpy(&floats, (const float *)from + i, sizeof(floats));
            return floats;
        }
        memcpy(&half, (const uint16_t *)from + i, sizeof(half));
        return kiln_floats_of(half);
    }
    if (!bf16) {
        memcpy(&floats, (const float *)from + i, (size_t)lanes * sizeof(float));
        return floats;
    }
    memcpy(&half, (const uint16_t *)from + i, (size_t)lanes * sizeof(uint16_t));
    return kiln_floats_of(half);
}

/* Rounds to bf16 like kiln_bf16_of. */
KILN_INLINE void kiln_store_lanes(void *to, int64_t i, KilnFloats value, int lanes, bool bf16)
{
    if (!bf16) {
        if (lanes == KILN_LANES)
            memcpy((float *)to + i, &value, sizeof(value));
        else
            memcpy((float *)to + i, &value, (size_t)lanes * sizeof(float));
        return;
    }
    const KilnHalves half = kiln_halves_of(value);

    if (lanes == KILN_LANES) {
        memcpy((uint16_t *)to + i, &half, sizeof(half));
        return;
    }
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
