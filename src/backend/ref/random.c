/* Reference of random numbers. */
#include <math.h>

#include "backend/ref/ref.h"
#include "kiln/rng.h"

/* The upper 24 bits of word i, as a number in [0, 1). */
static double uniform(const int32_t *key, int64_t stream, int64_t i)
{
    const uint32_t philox_key[2] = { (uint32_t)key[0], (uint32_t)key[1] };
    const uint64_t block = (uint64_t)i / 4, lane = (uint64_t)i % 4;
    const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                                  (uint32_t)((uint64_t)stream >> 32) ^ 0x80000000u };
    uint32_t words[4];

    kiln_philox(philox_key, counter, words);
    return (double)(words[lane] >> 8) * 0x1p-24;
}

static double normal(const int32_t *key, int64_t stream, int64_t i)
{
    const double radius = sqrt(-2.0 * log(uniform(key, stream, i / 2 * 2) + 0x1p-24));
    const double angle = 6.283185307179586 * uniform(key, stream, i / 2 * 2 + 1);

    return radius * (i % 2 == 0 ? cos(angle) : sin(angle));
}

static void random_run(KilnCall *call)
{
    const KilnRandomAttrs *attrs = call->attrs;
    const int32_t *key = call->inputs[0].data;

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i,
                     attrs->normal != 0 ? normal(key, attrs->stream, i)
                                        : uniform(key, attrs->stream, i));
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_random, .run = random_run },
};

const KilnRefTable kiln_ref_random = { kernels, KILN_COUNT(kernels) };
