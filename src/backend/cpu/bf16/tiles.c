/* Packs matrices into tiles of pairs of bf16, and stores the sums of their products. Each function
 * declares the features it needs, so that the program still runs on every x86-64. */
#include "backend/cpu/bf16/tiles.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define VECTOR __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

/* ---- Packing ----------------------------------------------------------------------- */

/* Lines to prefetch ahead: the hardware prefetcher cannot predict a gather. */
enum { GATHER_AHEAD = 16 };

/* Transposes 16 x 16 words of 32 bits. */
VECTOR static void transpose(__m512i r[16])
{
    __m512i t[16];

    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD);
        r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xDD);
    }
}

static uint32_t mask_of(int64_t n, int most)
{
    return n >= most ? UINT32_MAX >> (32 - most) : n > 0 ? (1u << n) - 1u : 0u;
}

/* 16 floats, limited by the mask. */
VECTOR static __m512 load_16(const KilnTileMatrix *matrix, int64_t at, __mmask16 mask)
{
    const float *from = (const float *)matrix->data + at;

    if (matrix->spread == 0)
        return _mm512_maskz_loadu_ps(mask, from);
    const __m512i counted = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i index = _mm512_mullo_epi32(counted, _mm512_set1_epi32((int)matrix->spread));
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, index, from, sizeof(float));
}

/* 32 values from `at` as bf16; zeros from `n` on. */
VECTOR static __m512i load_32(const KilnTileMatrix *matrix, int64_t at, int64_t n)
{
    if (!matrix->f32)
        return _mm512_maskz_loadu_epi16(mask_of(n, 32), (const uint16_t *)matrix->data + at);
    const int64_t half = at + 16 * (matrix->spread != 0 ? matrix->spread : 1);
    __m512 low = load_16(matrix, at, (__mmask16)mask_of(n, 16));
    __m512 high = load_16(matrix, half, (__mmask16)mask_of(n - 16, 16));
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* The permutation that interleaves 16 values with 16 more into 16 pairs. */
VECTOR static __m512i interleaved(void)
{
    return _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
                            6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
}

/* Pairs of 16 values from two positions. */
VECTOR static __m512i load_pairs(const KilnTileMatrix *matrix, int64_t first, int64_t second,
                                 int64_t n, bool both)
{
    const __m512i order = interleaved();
    const __mmask16 mask = (__mmask16)mask_of(n, 16), other = both ? mask : 0;
    __m512i halves;

    if (matrix->f32) {
        halves = (__m512i)_mm512_cvtne2ps_pbh(load_16(matrix, second, other),
                                              load_16(matrix, first, mask));
    } else {
        const uint16_t *data = matrix->data;

        halves =
            _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi16(mask, data + first)),
                               _mm256_maskz_loadu_epi16(other, data + second), 1);
    }
    return _mm512_permutexvar_epi16(order, halves);
}

/* One tile, from row r and depth k. */
VECTOR static void pack_tile(uint16_t *tile, const KilnTileMatrix *matrix, bool right, int64_t r,
                             int64_t k)
{
    const int64_t rows = matrix->rows - r, depth = matrix->depth - k;
    const int64_t spread = matrix->spread != 0 ? matrix->spread : 1;
    __m512i words[16];

    for (int i = 0; i < 16; i++)
        if (matrix->across && 2 * i < depth)
            words[i] = load_pairs(matrix, (k + 2 * i) * matrix->stride + r * spread,
                                  (k + 2 * i + 1) * matrix->stride + r * spread, rows,
                                  2 * i + 1 < depth);
        else if (!matrix->across && i < rows)
            words[i] = load_32(matrix, (r + i) * matrix->stride + k * spread, depth);
        else
            words[i] = _mm512_setzero_si512();
    if (matrix->across != right)
        transpose(words);
    for (int i = 0; i < 16; i++)
        _mm512_store_si512(tile + 32 * i, words[i]);
}

static int64_t tiles(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

int64_t kiln_tiles_packed(int64_t rows, int64_t depth)
{
    /* Blocks take two rows of tiles; an odd last row is paired with zeros. */
    return tiles(rows, KILN_TILE_BLOCK) * 2 * tiles(depth, KILN_TILE_DEPTH) * KILN_TILE_SIZE;
}

/* The permutations that interleave 32 values with 32 more: the first 16 pairs, and the others. */
VECTOR static __m512i pairs_low(void)
{
    return _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
                            6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
}

VECTOR static __m512i pairs_high(void)
{
    return _mm512_add_epi16(pairs_low(), _mm512_set1_epi16(16));
}

/* Two whole adjacent tiles of a bf16 matrix stored across: together they use whole cache lines. */
VECTOR static void pack_pair(uint16_t *first, uint16_t *second, const KilnTileMatrix *matrix,
                             bool right, int64_t r, int64_t k)
{
    const __m512i low = pairs_low(), high = pairs_high();
    const uint16_t *from = (const uint16_t *)matrix->data + k * matrix->stride + r;
    __m512i words[2][16];

    for (int i = 0; i < 16; i++, from += 2 * matrix->stride) {
        const __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + matrix->stride);

        words[0][i] = _mm512_permutex2var_epi16(a, low, b);
        words[1][i] = _mm512_permutex2var_epi16(a, high, b);
    }
    for (int t = 0; t < 2 && !right; t++)
        transpose(words[t]);
    for (int i = 0; i < 16; i++) {
        _mm512_store_si512(first + 32 * i, words[0][i]);
        _mm512_store_si512(second + 32 * i, words[1][i]);
    }
}

/* Reads rows of depth in order, each only once. */
static void pack_across(uint16_t *packed, const KilnTileMatrix *matrix, bool right, int64_t begin,
                        int64_t end)
{
    const int64_t depth = tiles(matrix->depth, KILN_TILE_DEPTH);

    for (int64_t k = 0; k < depth; k++)
        for (int64_t t = begin; t < end; t++) {
            const int64_t row = t * KILN_TILE_ROWS, level = k * KILN_TILE_DEPTH;
            uint16_t *tile = packed + (t * depth + k) * KILN_TILE_SIZE;
            const bool whole = t + 1 < end && row + 2 * KILN_TILE_ROWS <= matrix->rows &&
                               level + KILN_TILE_DEPTH <= matrix->depth;

            if (whole && !matrix->f32) {
                pack_pair(tile, tile + depth * KILN_TILE_SIZE, matrix, right, row, level);
                t++;
            } else {
                pack_tile(tile, matrix, right, row, level);
            }
        }
}

void kiln_tiles_pack(uint16_t *packed, const KilnTileMatrix *matrix, bool right, int64_t begin,
                     int64_t end)
{
    const int64_t depth = tiles(matrix->depth, KILN_TILE_DEPTH);

    if (matrix->across) {
        pack_across(packed, matrix, right, begin, end);
        return;
    }
    for (int64_t t = begin; t < end; t++)
        for (int64_t k = 0; k < depth; k++)
            pack_tile(packed + (t * depth + k) * KILN_TILE_SIZE, matrix, right, t * KILN_TILE_ROWS,
                      k * KILN_TILE_DEPTH);
}

VECTOR void kiln_tiles_gather(uint16_t *packed, int64_t second, const uint16_t *data,
                              const int32_t *at, int64_t depth, int64_t rows, bool right)
{
    const __m512i low = pairs_low(), high = pairs_high();
    const __mmask32 mask = mask_of(rows, 32);
    __m512i words[2][16];

    for (int64_t k = 0; k < depth; k += 2) {
        const int64_t ahead = k + GATHER_AHEAD < depth ? k + GATHER_AHEAD : k;
        const __m512i a = _mm512_maskz_loadu_epi16(at[k] < 0 ? 0 : mask, data + at[k]);
        const __m512i b = _mm512_maskz_loadu_epi16(at[k + 1] < 0 ? 0 : mask, data + at[k + 1]);
        const __m512i first = _mm512_permutex2var_epi16(a, low, b);
        const __m512i next = _mm512_permutex2var_epi16(a, high, b);

        _mm_prefetch((const char *)(data + at[ahead]), _MM_HINT_T0);
        _mm_prefetch((const char *)(data + at[ahead + 1]), _MM_HINT_T0);
        if (right) {
            _mm512_store_si512(packed + 16 * k, first);
            _mm512_store_si512(packed + second + 16 * k, next);
            continue;
        }
        words[0][k / 2 % 16] = first;
        words[1][k / 2 % 16] = next;
        if (k / 2 % 16 < 15)
            continue;
        for (int t = 0; t < 2; t++) {
            transpose(words[t]);
            for (int i = 0; i < 16; i++)
                _mm512_store_si512(packed + t * second + k / 32 * KILN_TILE_SIZE + 32 * i,
                                   words[t][i]);
        }
    }
}
/* ---- Storing ------------------------------------------------------------------------- */

VECTOR static __m512 load_result(const KilnTileResult *result, int64_t at, __mmask16 mask)
{
    if (result->f32)
        return _mm512_maskz_loadu_ps(mask, (const float *)result->data + at);
    const __m256i half = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)result->data + at);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

VECTOR void kiln_tiles_store(const KilnTileResult *result, const float *c, int64_t c_stride,
                             int64_t row, int64_t column, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += 16) {
            const __mmask16 mask = (__mmask16)mask_of(columns - j, 16);
            const int64_t at = (row + i) * result->stride + column + j;
            __m512 sum = _mm512_load_ps(c + i * c_stride + j);

            if (result->bias != NULL)
                sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, result->bias + column + j));
            if (result->add)
                sum = _mm512_add_ps(sum, load_result(result, at, mask));
            if (result->f32)
                _mm512_mask_storeu_ps((float *)result->data + at, mask, sum);
            else
                _mm256_mask_storeu_epi16((uint16_t *)result->data + at, mask,
                                         (__m256i)_mm512_cvtneps_pbh(sum));
        }
}
#else

/* Other processors have no KilnTileOps, so nothing here is called. */
int64_t kiln_tiles_packed(int64_t rows, int64_t depth)
{
    return rows * depth;
}

void kiln_tiles_pack(uint16_t *packed, const KilnTileMatrix *matrix, bool right, int64_t begin,
                     int64_t end)
{
    (void)packed, (void)matrix, (void)right, (void)begin, (void)end;
}

void kiln_tiles_gather(uint16_t *packed, int64_t second, const uint16_t *data, const int32_t *at,
                       int64_t depth, int64_t rows, bool right)
{
    (void)packed, (void)second, (void)data, (void)at, (void)depth, (void)rows, (void)right;
}

void kiln_tiles_store(const KilnTileResult *result, const float *c, int64_t c_stride, int64_t row,
                      int64_t column, int64_t rows, int64_t columns)
{
    (void)result, (void)c, (void)c_stride, (void)row, (void)column, (void)rows, (void)columns;
}

#endif
