/* Small matrix products in registers, for attention and recurrent layers, where a softmax or a cell
 * between two products rules out isa/gemm.h. Included by files that are compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_SMALL_GEMM_H
#define KILN_BACKEND_CPU_ISA_SMALL_GEMM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/isa/transpose.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Columns of a panel of the right-hand matrix. */
enum { PANEL = 32 };

/* A tile is TILE_ROWS rows of two vectors, as many sums as registers hold. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define TILE_ROWS 12
#elif defined(__AVX2__)
#define TILE_ROWS 6
#else
#define TILE_ROWS 4
#endif

static inline Vector vector_multiply_add(Vector sum, float a, Vector b)
{
#if defined(__AVX512F__)
    return (Vector)_mm512_fmadd_ps(_mm512_set1_ps(a), (__m512)b, (__m512)sum);
#elif defined(__AVX2__)
    return (Vector)_mm256_fmadd_ps(_mm256_set1_ps(a), (__m256)b, (__m256)sum);
#elif defined(__aarch64__)
    return (Vector)vfmaq_n_f32(sum, b, a);
#else
    return sum + a * b;
#endif
}

/* c [m, n] = or += a · b, where element (r, k) of a is a[r * a_row + k * a_step], and element (k,
 * j) of b is b[j / PANEL * b_panel + k * b_step + j % PANEL]: b is packed, or plain rows with
 * b_panel = PANEL. Reads b up to whole panels. */
typedef struct Tile {
    float *c;
    const float *a, *b;
    int64_t c_row, a_row, a_step, b_panel, b_step;
    int64_t m, n, k;
    bool add;
} Tile;

/* One register tile; `rows` is a constant where this is inlined. Four rows share one address, since
 * address registers are few; and the loops over rows are unrolled explicitly, or the sums would go
 * through memory. */
static inline __attribute__((always_inline)) void tile_registers(float *c, int64_t c_row,
                                                                 const float *a, const float *b,
                                                                 const Tile *t, const int rows)
{
    const int64_t row = t->a_row, step = t->a_step, b_step = t->b_step;
    const float *left[(TILE_ROWS + 3) / 4];
    Vector sum[TILE_ROWS][2];

#pragma GCC unroll 4
    for (int i = 0; i < (rows + 3) / 4; i++)
        left[i] = a + 4 * i * row;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = (Vector) { 0 };
    for (int64_t k = t->k; k > 0; k--) {
        const Vector b0 = *(const Floats *)b, b1 = *(const Floats *)(b + WIDTH);

#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            const float factor = left[r / 4][r % 4 * row];

            sum[r][0] = vector_multiply_add(sum[r][0], factor, b0);
            sum[r][1] = vector_multiply_add(sum[r][1], factor, b1);
        }
#pragma GCC unroll 4
        for (int i = 0; i < (rows + 3) / 4; i++)
            left[i] += step;
        b += b_step;
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        Floats *to = (Floats *)(c + r * c_row), *next = (Floats *)(c + r * c_row + WIDTH);

        if (t->add) {
            sum[r][0] += *to;
            sum[r][1] += *next;
        }
        *to = sum[r][0];
        *next = sum[r][1];
    }
}

static inline void tile_rows(float *c, int64_t c_row, const float *a, const float *b, const Tile *t,
                             int64_t rows)
{
    switch (rows) {
    case 1:
        tile_registers(c, c_row, a, b, t, 1);
        break;
    case 2:
        tile_registers(c, c_row, a, b, t, 2);
        break;
    case 3:
        tile_registers(c, c_row, a, b, t, 3);
        break;
    case 4:
        tile_registers(c, c_row, a, b, t, 4);
        break;
#if TILE_ROWS >= 6
    case 5:
        tile_registers(c, c_row, a, b, t, 5);
        break;
    case 6:
        tile_registers(c, c_row, a, b, t, 6);
        break;
#endif
#if TILE_ROWS >= 12
    case 7:
        tile_registers(c, c_row, a, b, t, 7);
        break;
    case 8:
        tile_registers(c, c_row, a, b, t, 8);
        break;
    case 9:
        tile_registers(c, c_row, a, b, t, 9);
        break;
    case 10:
        tile_registers(c, c_row, a, b, t, 10);
        break;
    case 11:
        tile_registers(c, c_row, a, b, t, 11);
        break;
    case 12:
        tile_registers(c, c_row, a, b, t, 12);
        break;
#endif
    default:
        break;
    }
}

/* A tile with fewer columns goes through a copy of c. */
static inline void tile_edge(const Tile *t, float *c, const float *a, const float *b, int64_t rows,
                             int64_t columns)
{
    float copy[TILE_ROWS * 2 * WIDTH] = { 0 };

    for (int64_t r = 0; t->add && r < rows; r++)
        memcpy(copy + r * 2 * WIDTH, c + r * t->c_row, (size_t)columns * sizeof(float));
    tile_rows(copy, 2 * WIDTH, a, b, t, rows);
    for (int64_t r = 0; r < rows; r++)
        memcpy(c + r * t->c_row, copy + r * 2 * WIDTH, (size_t)columns * sizeof(float));
}

static inline void tile_product(const Tile *t)
{
    /* Equal parts, so that no tile is left with a row or two. */
    const int64_t parts = (t->m + TILE_ROWS - 1) / TILE_ROWS;

    for (int64_t j = 0; j < t->n; j += 2 * WIDTH) {
        const float *b = t->b + j / PANEL * t->b_panel + j % PANEL;

        for (int64_t part = 0, r = 0; part < parts; part++) {
            const int64_t rows = t->m * (part + 1) / parts - r;
            float *c = t->c + r * t->c_row + j;
            const float *a = t->a + r * t->a_row;

            if (t->n - j >= 2 * WIDTH)
                tile_rows(c, t->c_row, a, b, t, rows);
            else
                tile_edge(t, c, a, b, rows, t->n - j);
            r += rows;
        }
    }
}

/* Packs the matrix b [k, n], whose rows are `ld` apart, into panels [ceil(n / PANEL)][k][PANEL],
 * padded with zeros. */
static inline void tile_pack(float *panels, const float *b, int64_t ld, int64_t k, int64_t n)
{
    for (int64_t j = 0; j < n; j += PANEL, panels += k * PANEL) {
        const int64_t columns = n - j < PANEL ? n - j : PANEL;

        if (columns < PANEL)
            memset(panels, 0, (size_t)(k * PANEL) * sizeof(float));
        for (int64_t i = 0; i < k; i++)
            memcpy(panels + i * PANEL, b + i * ld + j, (size_t)columns * sizeof(float));
    }
}

/* The same for the transpose of b [n, k]. */
static inline void tile_pack_transposed(float *panels, const float *b, int64_t ld, int64_t k,
                                        int64_t n)
{
    for (int64_t j = 0; j < n; j += PANEL, panels += k * PANEL)
        pack_transposed(panels, PANEL, b + j * ld, ld, n - j < PANEL ? n - j : PANEL, k);
}

#endif
