/* Random words for dropout, sixteen Philox blocks at once (kiln/rng.h has the one-block form).
 * Included by files that are compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_PHILOX_H
#define KILN_BACKEND_CPU_ISA_PHILOX_H

#include "backend/cpu/isa/vector_loops.h"

enum { BLOCKS = 16, WORDS = 4 * BLOCKS };

/* Philox4x32-10 blocks number first, first + 1, ... */
static inline void philox_blocks(const KilnDropoutLoop *dropout, uint64_t first,
                                 uint32_t words[WORDS])
{
    uint32_t k0 = dropout->key[0], k1 = dropout->key[1];
    uint32_t c0[BLOCKS], c1[BLOCKS], c2[BLOCKS], c3[BLOCKS];

    for (int j = 0; j < BLOCKS; j++) {
        uint64_t block = first + (uint64_t)j;

        c0[j] = (uint32_t)block;
        c1[j] = (uint32_t)(block >> 32);
        c2[j] = (uint32_t)dropout->stream;
        c3[j] = (uint32_t)(dropout->stream >> 32);
    }
    for (int round = 0; round < 10; round++) {
#pragma omp simd
        for (int j = 0; j < BLOCKS; j++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[j], p1 = (uint64_t)0xCD9E8D57u * c2[j];

            c0[j] = (uint32_t)(p1 >> 32) ^ c1[j] ^ k0;
            c2[j] = (uint32_t)(p0 >> 32) ^ c3[j] ^ k1;
            c1[j] = (uint32_t)p1;
            c3[j] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int j = 0; j < BLOCKS; j++) {
        words[4 * j + 0] = c0[j];
        words[4 * j + 1] = c1[j];
        words[4 * j + 2] = c2[j];
        words[4 * j + 3] = c3[j];
    }
}

#endif
