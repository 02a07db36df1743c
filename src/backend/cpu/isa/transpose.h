/* Vectors of one register, their multiply-add, and the transpose of squares of them. Included by
 * files that are compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_TRANSPOSE_H
#define KILN_BACKEND_CPU_ISA_TRANSPOSE_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
enum { WIDTH = 16 };
#define FMA(a, b, c) (Vector) _mm512_fmadd_ps(a, b, c)
#define KILN_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define KILN_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif defined(__AVX2__) && defined(__FMA__)
enum { WIDTH = 8 };
#define FMA(a, b, c) (Vector) _mm256_fmadd_ps(a, b, c)
#define KILN_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define KILN_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
enum { WIDTH = 4 };
#if defined(__aarch64__)
#define FMA(a, b, c) (Vector) vfmaq_f32(c, a, b)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#define KILN_LOW 0, 4, 1, 5
#define KILN_HIGH 2, 6, 3, 7
#endif

typedef float Vector __attribute__((vector_size(WIDTH * sizeof(float))));
/* The same at any address, aliasing plain floats. */
typedef float Floats __attribute__((vector_size(WIDTH * sizeof(float)), aligned(4), may_alias));

/* As many elements of bf16 as a register has floats. */
static inline Vector vector_of_bf16(const uint16_t *x)
{
    typedef uint32_t Words __attribute__((vector_size(4 * WIDTH)));
    typedef uint16_t Halves __attribute__((vector_size(2 * WIDTH)));
    Halves half;

    memcpy(&half, x, sizeof(half));
    return (Vector)(__builtin_convertvector(half, Words) << 16);
}

/* Transposes a square of vectors in place: each of log2(WIDTH) rounds interleaves the first half of
 * the vectors with the second. */
static inline void transpose_square(Vector square[WIDTH])
{
    for (int round = 1; round < WIDTH; round *= 2) {
        Vector next[WIDTH];

#pragma GCC unroll 8
        for (int i = 0; i < WIDTH / 2; i++) {
            next[2 * i] = __builtin_shufflevector(square[i], square[i + WIDTH / 2], KILN_LOW);
            next[2 * i + 1] = __builtin_shufflevector(square[i], square[i + WIDTH / 2], KILN_HIGH);
        }
        memcpy(square, next, sizeof(next));
    }
}

/* to[l * width + j] = from[j * ld + l] for j < columns, with zeros up to width. Where width is no
 * multiple of WIDTH, it also overwrites part of the next l, which is written afterwards. */
static inline void pack_transposed(float *to, int width, const float *from, int64_t ld,
                                   int64_t columns, int64_t depth)
{
    int64_t l = 0;

    for (; l + WIDTH <= depth; l += WIDTH)
        for (int j = 0; j < width; j += WIDTH) {
            Vector square[WIDTH];

#pragma GCC unroll 16
            for (int i = 0; i < WIDTH; i++)
                square[i] = j + i < columns ? (Vector) * (const Floats *)(from + (j + i) * ld + l)
                                            : (Vector) { 0 };
            transpose_square(square);
#pragma GCC unroll 16
            for (int i = 0; i < WIDTH; i++)
                *(Floats *)(to + (l + i) * width + j) = square[i];
        }
    for (; l < depth; l++)
        for (int j = 0; j < width; j++)
            to[l * width + j] = j < columns ? from[j * ld + l] : 0.0f;
}

#endif
