/* Tiles of AMX in the code of src/backend/cpu/bf16/tiles_amx.c, computed by AVX-512 instead of the
 * instructions: the kernels of KILN_ISA=amx run on processors that have `avx512_bf16` alone. Linked
 * in place of that file by `make emulated-amx`. What an instruction does is from Intel's
 * Architecture Instruction Set Extensions Programming Reference (319433), chapter 3; times say
 * nothing. */
#define _DEFAULT_SOURCE /* syscall */

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { TILES_OF_A_CORE = 8, ROWS = 16, ROW_BYTES = 64 };
#define AVX512 __attribute__((target("avx512f")))

/* A row of 16 pairs of bf16, or of 16 f32. */
typedef uint32_t Row __attribute__((vector_size(ROW_BYTES)));
typedef float Sums __attribute__((vector_size(ROW_BYTES)));

static _Thread_local Row tiles[TILES_OF_A_CORE][ROWS];
static _Thread_local int configured;

/* Using tiles before they are configured is #UD on the processor. */
static void need_config(void)
{
    if (!configured)
        __builtin_trap();
}

static void emulate_config(const void *config)
{
    const uint8_t *rows = (const uint8_t *)config + 48;
    uint16_t columns[TILES_OF_A_CORE];

    memcpy(columns, (const uint8_t *)config + 16, sizeof columns);
    for (int t = 0; t < TILES_OF_A_CORE; t++)
        if (rows[t] != ROWS || columns[t] != ROW_BYTES)
            __builtin_trap(); /* the code uses whole tiles */
    memset(tiles, 0, sizeof tiles);
    configured = 1;
}

static void emulate_release(void)
{
    configured = 0;
}

static void emulate_zero(int tile)
{
    need_config();
    memset(tiles[tile], 0, sizeof tiles[tile]);
}

static void emulate_load(int tile, const void *from, size_t stride)
{
    need_config();
    for (size_t r = 0; r < ROWS; r++)
        memcpy(&tiles[tile][r], (const char *)from + r * stride, ROW_BYTES);
}

static void emulate_store(int tile, void *to, size_t stride)
{
    need_config();
    for (size_t r = 0; r < ROWS; r++)
        memcpy((char *)to + r * stride, &tiles[tile][r], ROW_BYTES);
}

/* Denormal inputs and results count as 0. */
AVX512 static inline Row flush(Row bits)
{
    return bits & (Row)((bits & 0x7f800000u) != 0u);
}

AVX512 static inline Sums low_halves(Row pairs)
{
    return (Sums)flush(pairs << 16);
}

AVX512 static inline Sums high_halves(Row pairs)
{
    return (Sums)flush(pairs & 0xffff0000u);
}

/* Sums the products of the pairs' halves apart, then adds both to the tile. */
AVX512 static void emulate_products(int sums, int left, int right)
{
    need_config();
    for (int row = 0; row < ROWS; row++) {
        Sums even = { 0 }, odd = { 0 };

        for (int pair = 0; pair < ROWS; pair++) {
            const Row one = (Row) { 0 } + tiles[left][row][pair];

            even += low_halves(one) * low_halves(tiles[right][pair]);
            odd += high_halves(one) * high_halves(tiles[right][pair]);
        }
        tiles[sums][row] = flush((Row)((Sums)tiles[sums][row] + (even + odd)));
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) emulate_config(config)
#define _tile_release() emulate_release()
#define _tile_zero(tile) emulate_zero(tile)
#define _tile_loadd(tile, from, stride) emulate_load(tile, from, stride)
#define _tile_stored(tile, to, stride) emulate_store(tile, to, stride)
#define _tile_dpbf16ps(sums, left, right) emulate_products(sums, left, right)

/* The processor that the code would ask does not have them. */
#define kiln_amx_usable processor_has_amx
#undef _DEFAULT_SOURCE /* the file defines it again */
#include "backend/cpu/bf16/tiles_amx.c"
#undef kiln_amx_usable

bool kiln_amx_usable(void);
bool kiln_amx_usable(void)
{
    return true;
}

#endif
