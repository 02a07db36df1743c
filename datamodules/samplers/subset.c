/* A part of the samples, the same in every epoch (torch.utils.data.Subset with a RandomSampler, or
 * SubsetRandomSampler): a fraction chosen by the seed, or given indices. */
#include "kiln.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    double share;
    int64_t *indices;
    size_t indices_count;
    bool shuffle;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, share, "0.1", 0.0, 1.0, "fraction of the samples, chosen by the seed"),
    KILN_FIELD_I64_LIST(Opts, indices, "[]", 0, 4294967294.0,
                        "indices of the samples instead, from 0"),
    KILN_FIELD_BOOL(Opts, shuffle, "true", "in a new order each epoch"),
    KILN_FIELD_END,
};

typedef struct State {
    uint32_t *chosen;
    int64_t n;
} State;

/* Keys the random stream of the choice: no epoch reaches this number. */
enum { CHOOSING = -1 };

static KilnStatus take_given(const Opts *opts, State *state, int64_t count, KilnError *err)
{
    for (size_t i = 0; i < opts->indices_count; i++) {
        if (opts->indices[i] >= count)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "sampler subset: indices[%zu] is %lld, but the data set has %lld "
                                  "samples, numbered from 0",
                                  i, (long long)opts->indices[i], (long long)count);
        state->chosen[i] = (uint32_t)opts->indices[i];
    }
    state->n = (int64_t)opts->indices_count;
    return KILN_OK;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static KilnStatus take_share(const Opts *opts, State *state, const KilnSampling *sampling,
                             KilnError *err)
{
    const int64_t count = sampling->dataset->count;
    KilnRng rng;

    state->n = (int64_t)(opts->share * (double)count + 0.5);
    if (state->n < 1)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "sampler subset: share=%g of %lld samples is none; use a larger share", opts->share,
            (long long)count);
    for (int64_t i = 0; i < count; i++)
        state->chosen[i] = (uint32_t)i;
    kiln_rng_init(&rng, sampling->seed, KILN_RNG_SHUFFLE, (uint32_t)CHOOSING, 0);
    kiln_sampling_shuffle(sampling, &rng, state->chosen, count);
    if (kiln_poll_check(sampling->poll, "choosing samples", count, count, err) < 0)
        return KILN_E_INTERRUPTED;
    qsort(state->chosen, (size_t)state->n, sizeof(*state->chosen), ascending);
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnSampling *sampling, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    size_t room = opts->indices_count > (size_t)sampling->dataset->count
                      ? opts->indices_count
                      : (size_t)sampling->dataset->count;

    free(state->chosen);
    state->chosen = malloc((room + 1) * sizeof(*state->chosen));
    if (state->chosen == NULL)
        return kiln_error_nomem(err, room * sizeof(*state->chosen));
    return opts->indices_count > 0 ? take_given(opts, state, sampling->dataset->count, err)
                                   : take_share(opts, state, sampling, err);
}

static int64_t count(KilnInstance *self, const KilnSampling *sampling)
{
    (void)sampling;
    return ((const State *)kiln_state(self))->n;
}

static void order(KilnInstance *self, const KilnSampling *sampling, int64_t epoch, int64_t n,
                  uint32_t *ret)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnRng rng;

    memcpy(ret, state->chosen, (size_t)n * sizeof(*ret));
    if (!opts->shuffle)
        return;
    kiln_rng_init(&rng, sampling->seed, KILN_RNG_SHUFFLE, (uint32_t)epoch, 0);
    kiln_sampling_shuffle(sampling, &rng, ret, n);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->chosen);
}

static int64_t memory(KilnInstance *self, const KilnSampling *sampling)
{
    const State *state = kiln_state(self);

    return sampling->dataset->count * (int64_t)sizeof(*state->chosen);
}

static const KilnSamplerOps ops = {
    .setup = setup, .count = count, .order = order, .memory = memory
};

const KilnComponent kiln_sampler_subset = {
    .kind = KILN_KIND_SAMPLER,
    .name = "subset",
    .summary = "A part of the samples, the same in every epoch",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.sampler = &ops,
};
