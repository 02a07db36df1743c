/* Every class equally often: each run of C samples (C classes) has one of every class, in random
 * order. All samples of a class are used, in random order, before one repeats, so small classes
 * repeat within an epoch and large ones are used in part. */
#include "kiln.h"

#include <stdlib.h>

typedef struct Opts {
    int64_t samples;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, samples, "0", 0, 4294967295.0,
                   "samples per epoch; 0: as many as the data set has"),
    KILN_FIELD_END,
};

typedef struct State {
    int64_t n_classes; /* that have samples */
    uint32_t *members; /* samples by class, ascending in each */
    int64_t *start;    /* [n_classes + 1] in members */
    uint32_t *mixed;   /* room for the members in the order of an epoch */
    uint32_t *turn;    /* room for the classes in the order of a round */
} State;

enum { POLL_EVERY = 1 << 16 }; /* samples */

/* members and start from labels, by counting; classes without samples go. */
static void group(State *state, const int32_t *labels, int64_t count, int64_t n_classes)
{
    int64_t sum = 0;

    for (int64_t c = 0; c <= n_classes; c++)
        state->start[c] = 0;
    for (int64_t i = 0; i < count; i++)
        state->start[labels[i]]++;
    for (int64_t c = 0; c < n_classes; c++) {
        int64_t n = state->start[c];

        state->start[c] = sum;
        sum += n;
    }
    for (int64_t i = 0; i < count; i++)
        state->members[state->start[labels[i]]++] = (uint32_t)i;
    /* start[c] is now the end of class c. */
    int64_t before = 0, kept = 0;
    for (int64_t c = 0; c < n_classes; c++) {
        int64_t end = state->start[c];

        if (end > before)
            state->start[kept++] = before;
        before = end;
    }
    state->start[kept] = count;
    state->n_classes = kept;
}

static void forget(State *state)
{
    free(state->members);
    free(state->start);
    free(state->mixed);
    free(state->turn);
    *state = (State) { 0 };
}

static KilnStatus setup(KilnInstance *self, const KilnSampling *sampling, KilnError *err)
{
    State *state = kiln_state(self);
    const size_t count = (size_t)sampling->dataset->count, classes = (size_t)sampling->n_classes;
    int32_t *labels = malloc((count + 1) * sizeof(*labels));

    forget(state);
    free(state->members);
    free(state->mixed);
    free(state->start);
    free(state->turn);
    state->members = malloc((count + 1) * sizeof(*state->members));
    state->mixed = malloc((count + 1) * sizeof(*state->mixed));
    state->start = malloc((classes + 1) * sizeof(*state->start));
    state->turn = malloc((classes + 1) * sizeof(*state->turn));
    KilnStatus status = KILN_OK;
    if (labels == NULL || state->members == NULL || state->mixed == NULL || state->start == NULL ||
        state->turn == NULL)
        status = kiln_error_nomem(err, count * sizeof(*labels));
    if (status >= 0)
        status = kiln_sampling_labels(sampling, "sampler balanced", labels, err);
    if (status >= 0)
        group(state, labels, (int64_t)count, (int64_t)classes);
    free(labels);
    return status;
}

static int64_t count(KilnInstance *self, const KilnSampling *sampling)
{
    const Opts *opts = kiln_opts(self);

    return opts->samples > 0 ? opts->samples : sampling->dataset->count;
}

/* The stream of one order: of a class's members in a pass over them, or of the classes in a
 * round (class -1). */
static KilnRng stream(const KilnSampling *sampling, int64_t epoch, int64_t class, int64_t number)
{
    KilnRng rng;

    kiln_rng_init(&rng, sampling->seed, KILN_RNG_SHUFFLE, (uint32_t)epoch,
                  (uint64_t)(class + 2) << 32 | (uint32_t)number);
    return rng;
}

static void order(KilnInstance *self, const KilnSampling *sampling, int64_t epoch, int64_t n,
                  uint32_t *ret)
{
    State *state = kiln_state(self);

    for (int64_t i = 0; i < n; i++) {
        if (i % POLL_EVERY == 0 && kiln_poll(sampling->poll, "drawing samples", i, n))
            return;
        int64_t round = i / state->n_classes, place = i % state->n_classes;

        if (place == 0) {
            KilnRng rng = stream(sampling, epoch, -1, round);

            for (int64_t c = 0; c < state->n_classes; c++)
                state->turn[c] = (uint32_t)c;
            kiln_rng_shuffle(&rng, state->turn, state->n_classes);
        }
        int64_t class = state->turn[place], first = state->start[class];
        int64_t size = state->start[class + 1] - first;
        if (round % size == 0) { /* through with the class: a new order */
            KilnRng rng = stream(sampling, epoch, class, round / size);

            for (int64_t k = 0; k < size; k++)
                state->mixed[first + k] = state->members[first + k];
            kiln_sampling_shuffle(sampling, &rng, state->mixed + first, size);
        }
        ret[i] = state->mixed[first + round % size];
    }
}

static int64_t memory(KilnInstance *self, const KilnSampling *sampling)
{
    const State *state = kiln_state(self);

    return sampling->dataset->count *
           (int64_t)(sizeof(*state->members) + sizeof(*state->mixed) + sizeof(int32_t));
}

static void release(KilnInstance *self)
{
    forget(kiln_state(self));
}

static const KilnSamplerOps ops = {
    .setup = setup,
    .count = count,
    .order = order,
    .memory = memory,
    .draws = true,
};

const KilnComponent kiln_sampler_balanced = {
    .kind = KILN_KIND_SAMPLER,
    .name = "balanced",
    .summary = "Every class equally often; small classes repeat",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.sampler = &ops,
};
