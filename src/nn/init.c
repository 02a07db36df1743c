/* Initial values. A parameter's stream is keyed by the run's seed and its full
 * name, so it does not depend on the other parameters or their order. */
#include "nn/params.h"

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
        for (int64_t i = 0; i < param->count; i++)
            data[i] = a * kiln_rng_normal(&rng);
        break;
    }
}
