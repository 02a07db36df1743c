/* Samples drawn with replacement by the weights of their classes
 * (torch.utils.data.WeightedRandomSampler with weights per class). */
#include "kiln.h"

#include <stdlib.h>

typedef struct Opts {
    double *weights;
    size_t weights_count;
    int64_t samples;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64_LIST(Opts, weights, "[]", 0.0, 1e12,
                        "weight of a sample per class, in the order of the classes; empty: all "
                        "classes equally often"),
    KILN_FIELD_I64(Opts, samples, "0", 0, 4294967295.0,
                   "samples per epoch; 0: as many as the data set has"),
    KILN_FIELD_END,
};

typedef struct State {
    double *up_to; /* sum of the weights of a sample and those before it */
} State;

/* The weight of a sample of each class; owned by the caller. */
static double *class_weights(const Opts *opts, const KilnSampling *sampling, const int32_t *labels)
{
    const int64_t n = sampling->n_classes;
    double *weights = calloc((size_t)n + 1, sizeof(*weights));

    if (weights == NULL)
        return NULL;
    if (opts->weights_count > 0) {
        for (int64_t c = 0; c < n; c++)
            weights[c] = opts->weights[c];
        return weights;
    }
    for (int64_t i = 0; i < sampling->dataset->count; i++)
        weights[labels[i]] += 1.0;
    for (int64_t c = 0; c < n; c++)
        weights[c] = weights[c] > 0.0 ? 1.0 / weights[c] : 0.0;
    return weights;
}

static KilnStatus sum_up(const Opts *opts, State *state, const KilnSampling *sampling,
                         const int32_t *labels, KilnError *err)
{
    const int64_t count = sampling->dataset->count;
    double *weights = class_weights(opts, sampling, labels), sum = 0.0;

    if (weights == NULL)
        return kiln_error_nomem(err, (size_t)sampling->n_classes * sizeof(*weights));
    for (int64_t i = 0; i < count; i++) {
        sum += weights[labels[i]];
        state->up_to[i] = sum;
    }
    free(weights);
    return sum > 0.0 ? KILN_OK
                     : kiln_error_set(err, KILN_E_RANGE,
                                      "sampler weighted: the weights of all classes in the data "
                                      "set are 0, so nothing can be drawn");
}

static KilnStatus setup(KilnInstance *self, const KilnSampling *sampling, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const size_t count = (size_t)sampling->dataset->count;

    if (opts->weights_count > 0 && (int64_t)opts->weights_count != sampling->n_classes)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "sampler weighted: got %zu weights for %lld classes; set one per class, or none",
            opts->weights_count, (long long)sampling->n_classes);
    int32_t *labels = malloc((count + 1) * sizeof(*labels));
    free(state->up_to);
    state->up_to = malloc((count + 1) * sizeof(*state->up_to));
    KilnStatus status = labels != NULL && state->up_to != NULL
                            ? kiln_sampling_labels(sampling, "sampler weighted", labels, err)
                            : kiln_error_nomem(err, count * sizeof(*state->up_to));
    if (status >= 0)
        status = sum_up(opts, state, sampling, labels, err);
    free(labels);
    return status;
}

static int64_t count(KilnInstance *self, const KilnSampling *sampling)
{
    const Opts *opts = kiln_opts(self);

    return opts->samples > 0 ? opts->samples : sampling->dataset->count;
}

/* The first of n ascending sums above x, or, if rounding leaves none, the first of the largest. */
static int64_t first_above(const double *numbers, int64_t n, double x)
{
    int64_t low = 0, high = n - 1;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (numbers[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    while (low > 0 && numbers[low - 1] == numbers[low])
        low--;
    return low;
}

enum { POLL_EVERY = 1 << 14 }; /* draws */

/* Draw i has its own stream. */
static void order(KilnInstance *self, const KilnSampling *sampling, int64_t epoch, int64_t n,
                  uint32_t *ret)
{
    const State *state = kiln_state(self);
    const int64_t count = sampling->dataset->count;

    for (int64_t i = 0; i < n; i++) {
        KilnRng rng;

        if (i % POLL_EVERY == 0 && kiln_poll(sampling->poll, "drawing samples", i, n))
            return;
        kiln_rng_init(&rng, sampling->seed, KILN_RNG_SHUFFLE, (uint32_t)epoch, 1 + (uint64_t)i);
        double high = (double)kiln_rng_u32(&rng), low = (double)(kiln_rng_u32(&rng) >> 12);
        double x = (high * 0x1p-32 + low * 0x1p-52) * state->up_to[count - 1];
        ret[i] = (uint32_t)first_above(state->up_to, count, x);
    }
}

static int64_t memory(KilnInstance *self, const KilnSampling *sampling)
{
    const State *state = kiln_state(self);

    return sampling->dataset->count * (int64_t)(sizeof(*state->up_to) + sizeof(int32_t));
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->up_to);
}

static const KilnSamplerOps ops = {
    .setup = setup,
    .count = count,
    .order = order,
    .memory = memory,
    .draws = true,
};

const KilnComponent kiln_sampler_weighted = {
    .kind = KILN_KIND_SAMPLER,
    .name = "weighted",
    .summary = "Samples drawn with replacement, by weights of their classes",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.sampler = &ops,
};
