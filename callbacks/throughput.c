/* Logs the speed of training over a window of batches, without validation: samples, batches and
 * tokens per second, FLOP/s and their share of the machine's peak. */
#include "kiln.h"

#include <stdlib.h>

typedef struct Opts {
    int64_t window_size;
    double *peak_flops;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, window_size, "100", 1, 1000000, "batches over which rates are measured"),
    KILN_FIELD_F64_OPT(Opts, peak_flops, "null", 1.0, 1e18,
                       "the machine's peak FLOP/s; null: measured for a tenth of a second at the "
                       "start with large matrix "
                       "products"),
    KILN_FIELD_END,
};

/* Counts since training began. */
typedef struct Count {
    double seconds;
    int64_t batches, samples, tokens;
} Count;

typedef struct State {
    Count *ring; /* of the last window_size + 1 batches' ends */
    Count now;
    int64_t n;            /* ends added to it */
    double began, away;   /* start of training; seconds in validation since then */
    double left;          /* start of the running validation */
    double peak;          /* 0: unknown */
    int64_t most_samples; /* in a batch */
} State;

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->ring = calloc((size_t)opts->window_size + 1, sizeof(*state->ring));
    return state->ring != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*state->ring));
}

static void release(KilnInstance *self)
{
    free(((State *)kiln_state(self))->ring);
}

static KilnStatus on_train_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    (void)err;
    state->peak = opts->peak_flops != NULL ? *opts->peak_flops : kiln_trainer_peak_flops(trainer);
    if (opts->peak_flops == NULL && state->peak > 0.0)
        kiln_trainer_print(trainer, "throughput: this machine reaches %.3g FLOP/s", state->peak);
    state->began = kiln_clock();
    return KILN_OK;
}

static KilnStatus on_validation_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)trainer;
    (void)err;
    ((State *)kiln_state(self))->left = kiln_clock();
    return KILN_OK;
}

static KilnStatus on_validation_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)trainer;
    (void)err;
    state->away += kiln_clock() - state->left;
    return KILN_OK;
}

static void count_batch(State *state, const KilnTrainer *trainer, int64_t window)
{
    int64_t samples = 0;

    (void)kiln_trainer_batch_samples(trainer, &samples);
    state->most_samples = samples > state->most_samples ? samples : state->most_samples;
    state->now.batches++;
    state->now.samples += samples;
    state->now.tokens += kiln_trainer_batch_tokens(trainer);
    state->now.seconds = kiln_clock() - state->began - state->away;
    state->ring[state->n++ % (window + 1)] = state->now;
}

static void log_rate(KilnTrainer *trainer, const char *name, double amount, double seconds)
{
    if (amount > 0.0)
        kiln_trainer_log(trainer, name, amount / seconds,
                         KILN_LOG_STEP | KILN_LOG_MEASURED | KILN_LOG_HIGHER_IS_BETTER);
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t window = opts->window_size;

    (void)err;
    count_batch(state, trainer, window);
    const Count *first = &state->ring[state->n > window ? state->n % (window + 1) : 0];
    const Count *last = &state->now;
    const double seconds = last->seconds - first->seconds;
    if (!(seconds > 0.0) || !kiln_trainer_row_is_due(trainer))
        return KILN_OK;
    const double samples = (double)(last->samples - first->samples);
    const double flops = kiln_trainer_flops(trainer) * samples / (double)state->most_samples;
    log_rate(trainer, "throughput/batches_per_s", (double)(last->batches - first->batches),
             seconds);
    log_rate(trainer, "throughput/samples_per_s", samples, seconds);
    log_rate(trainer, "throughput/tokens_per_s", (double)(last->tokens - first->tokens), seconds);
    log_rate(trainer, "throughput/flops_per_s", flops, seconds);
    if (state->peak > 0.0)
        log_rate(trainer, "throughput/peak_share", flops / state->peak, seconds);
    return KILN_OK;
}

static const char *const logs[] = {
    "throughput/batches_per_s", "throughput/samples_per_s", "throughput/tokens_per_s",
    "throughput/flops_per_s",   "throughput/peak_share",    NULL,
};

static const KilnCallbackOps ops = {
    .on_train_start = on_train_start,
    .on_train_batch_end = on_train_batch_end,
    .on_validation_start = on_validation_start,
    .on_validation_end = on_validation_end,
    .logs = logs,
};

const KilnComponent kiln_callback_throughput = {
    .kind = KILN_KIND_CALLBACK,
    .name = "throughput",
    .summary = "Log samples, batches, tokens and FLOPs per second",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .init = init,
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_throughput, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
