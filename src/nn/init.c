/* Initial values. A parameter's stream is keyed by the run's seed and its full
 * name, so it does not depend on the other parameters or their order. */
#include "nn/params.h"

#include <math.h>

static void fill_constant(KilnParam *param)
{
    if (param->dtype == KILN_I64) {
        int64_t *data = param->data;

        for (int64_t i = 0; i < param->count; i++)
            data[i] = (int64_t)param->init.a;
        return;
    }
    float *data = param->data;
    for (int64_t i = 0; i < param->count; i++)
        data[i] = (float)param->init.a;
}

/* Box and Muller give two normal numbers for two uniform ones; a network has
 * millions, so both are used, in single precision. */
static void fill_normal(float *data, int64_t n, float deviation, KilnRng *rng)
{
    const float two_pi = 6.28318530717958647692f;

    for (int64_t i = 0; i < n; i += 2) {
        float radius = deviation * sqrtf(-2.0f * logf(1.0f - kiln_rng_uniform(rng)));
        float angle = two_pi * kiln_rng_uniform(rng);

        data[i] = radius * cosf(angle);
        if (i + 1 < n)
            data[i + 1] = radius * sinf(angle);
    }
}

void kiln_param_draw(KilnParam *param, uint64_t seed)
{
    float *data = param->data;
    float a = (float)param->init.a;
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_INIT, 0, param->hash);
    switch (param->init.kind) {
    case KILN_INIT_CONSTANT:
        fill_constant(param);
        break;
    case KILN_INIT_UNIFORM:
        for (int64_t i = 0; i < param->count; i++)
            data[i] = kiln_rng_range(&rng, -a, a);
        break;
    case KILN_INIT_NORMAL:
        fill_normal(data, param->count, a, &rng);
        break;
    }
    for (int64_t i = 0; i < param->zero_count; i++)
        data[param->zero_first + i] = 0.0f;
}
