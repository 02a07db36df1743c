/* All samples in the order of the data set, the same in every epoch. */
#include "kiln.h"

enum { POLL_EVERY = 1 << 20 }; /* samples */

static void order(KilnInstance *self, const KilnSampling *sampling, int64_t epoch, int64_t count,
                  uint32_t *ret)
{
    (void)self;
    (void)epoch;
    for (int64_t i = 0; i < count; i++) {
        if (i % POLL_EVERY == 0 && kiln_poll(sampling->poll, "numbering samples", i, count))
            return;
        ret[i] = (uint32_t)i;
    }
}

static const KilnSamplerOps ops = { .order = order };

const KilnComponent kiln_sampler_sequential = {
    .kind = KILN_KIND_SAMPLER,
    .name = "sequential",
    .summary = "All samples in the order of the data set",
    .ops.sampler = &ops,
};
