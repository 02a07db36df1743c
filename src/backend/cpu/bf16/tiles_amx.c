/* Products of tiles on AMX. Each function declares the features it needs, so that the program still
 * runs on every x86-64. */
#define _DEFAULT_SOURCE /* syscall */

#include "backend/cpu/bf16/tiles.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TILES __attribute__((target("amx-tile,amx-bf16")))
/* gcc drops calls of functions that only prefetch unless they are inlined. */
#define FETCHES static inline __attribute__((always_inline))

/* ---- Permission ------------------------------------------------------------------ */

bool kiln_amx_usable(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* of arch_prctl(2) */
    unsigned a, b, c, d;

    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    if ((d >> 22 & 1) == 0 || (d >> 24 & 1) == 0) /* AMX-BF16, AMX-TILE */
        return false;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

TILES static void begin(void)
{
    /* Static, since compilers believe that the instruction reads eight bytes. */
    static const struct {
        uint8_t palette, start, zero[14];
        uint16_t columns[16]; /* bytes */
        uint8_t rows[16];
    } __attribute__((packed)) config = {
        .palette = 1,
        .columns = { 64, 64, 64, 64, 64, 64, 64, 64 },
        .rows = { 16, 16, 16, 16, 16, 16, 16, 16 },
    };

    _tile_loadconfig(&config);
}

TILES static void end(void)
{
    _tile_release();
}
/* ---- Products ------------------------------------------------------------------------ */

/* Position of both factors' next tiles. */
typedef struct Walk {
    const KilnTileSide *left, *right;
    const uint16_t *a, *b;
    int64_t steps, step, run;
} Walk;

static inline void next_tiles(Walk *w)
{
    const KilnTileSide *left = w->left, *right = w->right;

    if (w->step++ < w->steps) {
        w->a += left->step;
        w->b += right->step;
        return;
    }
    w->a = left->first + (left->runs != NULL ? left->runs[w->run] : w->run * left->run);
    w->b = right->first + w->run * right->run;
    w->run++;
    w->step = 1;
}

/* Prefetches a quarter of the right factor's tiles of the step after next: they come from the
 * second-level cache, and a shared core looks too short a way ahead to hide that. */
FETCHES void fetch_quarter(const Walk *w, int64_t second, int quarter)
{
    const char *b = (const char *)(w->b + w->right->step);

#pragma GCC unroll 4
    for (int i = 4 * quarter; i < 4 * quarter + 4; i++) {
        _mm_prefetch(b + i * 64, _MM_HINT_T0);
        _mm_prefetch(b + second * (int64_t)sizeof(uint16_t) + i * 64, _MM_HINT_T0);
    }
}

/* Loads a tile for the next step as soon as this one has used it. */
TILES static inline void multiply_tiles(Walk *w, int64_t count)
{
    const size_t a_row = (size_t)w->left->row, b_row = (size_t)w->right->row;
    const int64_t a_second = w->left->second, b_second = w->right->second;

    next_tiles(w);
    _tile_loadd(4, w->a, a_row);
    _tile_loadd(6, w->b, b_row);
    _tile_loadd(7, w->b + b_second, b_row);
    _tile_loadd(5, w->a + a_second, a_row);
    while (--count > 0) {
        next_tiles(w);
        _tile_dpbf16ps(0, 4, 6);
        fetch_quarter(w, b_second, 0);
        _tile_dpbf16ps(2, 5, 6);
        fetch_quarter(w, b_second, 1);
        _tile_loadd(6, w->b, b_row);
        _tile_dpbf16ps(1, 4, 7);
        fetch_quarter(w, b_second, 2);
        _tile_loadd(4, w->a, a_row);
        _tile_dpbf16ps(3, 5, 7);
        fetch_quarter(w, b_second, 3);
        _tile_loadd(5, w->a + a_second, a_row);
        _tile_loadd(7, w->b + b_second, b_row);
    }
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
}

/* Rows that do not count cost nothing, since a tile multiplies all at once. */
TILES static void block(float *c, int64_t stride, const KilnTileSide *left,
                        const KilnTileSide *right, int64_t rows, int64_t steps, int64_t runs,
                        bool add)
{
    (void)rows;

    const size_t row = (size_t)stride * sizeof(float);
    float *const c10 = c + KILN_TILE_ROWS * stride;
    Walk walk = { .left = left, .right = right, .steps = steps, .step = steps };

    if (add) {
        _tile_loadd(0, c, row);
        _tile_loadd(1, c + KILN_TILE_ROWS, row);
        _tile_loadd(2, c10, row);
        _tile_loadd(3, c10 + KILN_TILE_ROWS, row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    if (steps * runs > 0)
        multiply_tiles(&walk, steps * runs);
    _tile_stored(0, c, row);
    _tile_stored(1, c + KILN_TILE_ROWS, row);
    _tile_stored(2, c10, row);
    _tile_stored(3, c10 + KILN_TILE_ROWS, row);
}
const KilnTileOps kiln_tiles_amx = { .begin = begin, .end = end, .block = block };

#else

bool kiln_amx_usable(void)
{
    return false;
}

#endif
