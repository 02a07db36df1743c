/* Points that cover the space evenly: the Halton sequence, one prime base for each axis, with the
 * digits of each place shuffled. Owen, "A randomized Halton algorithm in R" (2017). */
#include "kiln.h"

#include <stdlib.h>

typedef struct Opts {
    int64_t n_trials, seed;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, n_trials, "50", 1, 1e7, "jobs"),
    KILN_FIELD_I64(Opts, seed, "1", 0, 1e15, "of the shuffles; the same seed, the same points"),
    KILN_FIELD_END,
};

typedef struct State {
    uint32_t *digits; /* a shuffle of them */
    size_t capacity;
} State;

static size_t count(const KilnInstance *self, const KilnSpace *space)
{
    (void)space;
    return (size_t)((const Opts *)kiln_opts(self))->n_trials;
}

static uint32_t next_prime(uint32_t after)
{
    for (uint32_t n = after + 1;; n++) {
        uint32_t divisor = 2;

        while (divisor * divisor <= n && n % divisor != 0)
            divisor++;
        if (divisor * divisor > n && n > 1)
            return n;
    }
}

/* Shuffle the digits of one place (Fisher and Yates). */
static void shuffle(uint32_t *digits, uint32_t base, KilnRng *rng)
{
    for (uint32_t i = 0; i < base; i++)
        digits[i] = i;
    for (uint32_t i = base - 1; i > 0; i--) {
        const uint32_t other = kiln_rng_below(rng, i + 1), digit = digits[i];

        digits[i] = digits[other];
        digits[other] = digit;
    }
}

/* The trial's place on an axis, in [0, 1). Zeros before its first digit are shuffled, too, as far
 * as a double has room for digits. */
static double place(State *state, uint64_t seed, size_t axis, uint32_t base, size_t trial)
{
    double unit = 1.0, at = 0.0;

    for (uint32_t digit = 0; unit > 1e-16; digit++, trial /= base) {
        KilnRng rng;

        kiln_rng_init(&rng, seed, KILN_RNG_SEARCH, digit, axis);
        shuffle(state->digits, base, &rng);
        unit /= base;
        at += unit * state->digits[trial % base];
    }
    return at < 1.0 ? at : 0.0;
}

static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnSpace *space = history->space;
    uint32_t prime = 1;

    ret->advice = history->count < (size_t)opts->n_trials ? KILN_ADVICE_TRIAL : KILN_ADVICE_DONE;
    for (size_t i = 0; i < space->count; i++) {
        if (space->axes[i]->leader != i || space->axes[i]->count == 1)
            continue;
        prime = next_prime(prime);
        if (!KILN_RESERVE(state->digits, state->capacity, (size_t)prime))
            return kiln_error_nomem(err, prime);
        ret->point[i] = kiln_axis_value(
            space->axes[i], place(state, (uint64_t)opts->seed, i, prime, history->count));
    }
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    free(((State *)kiln_state(self))->digits);
}

static const KilnSweeperOps ops = {
    .axes = KILN_AXIS_CHOICE | KILN_AXIS_RANGE | KILN_AXIS_FLOAT | KILN_AXIS_INT,
    .count = count,
    .ask = ask,
};

const KilnComponent kiln_sweeper_halton = {
    .kind = KILN_KIND_SWEEPER,
    .name = "halton",
    .summary = "Points that cover the space more evenly than random ones",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.sweeper = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_sweeper_halton, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
