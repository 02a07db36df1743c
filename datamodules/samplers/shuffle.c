/* All samples once per epoch, in a new order each time. */
#include "kiln.h"

enum { POLL_EVERY = 1 << 20 }; /* samples */

static void order(KilnInstance *self, const KilnSampling *sampling, int64_t epoch, int64_t count,
                  uint32_t *ret)
{
    KilnRng rng;

    (void)self;
    for (int64_t i = 0; i < count; i++) {
        if (i % POLL_EVERY == 0 && kiln_poll(sampling->poll, "numbering samples", i, count))
            return;
        ret[i] = (uint32_t)i;
    }
    kiln_rng_init(&rng, sampling->seed, KILN_RNG_SHUFFLE, (uint32_t)epoch, 0);
    kiln_sampling_shuffle(sampling, &rng, ret, count);
}

static const KilnSamplerOps ops = { .order = order };

const KilnComponent kiln_sampler_shuffle = {
    .kind = KILN_KIND_SAMPLER,
    .name = "shuffle",
    .summary = "All samples once, in a new order each epoch",
    .ops.sampler = &ops,
};
