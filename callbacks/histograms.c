/* Logs histograms of parameters and gradients to the loggers that accept them. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 512 };

typedef struct Opts {
    int64_t every_n_steps, bins;
    bool gradients;
} Opts;

typedef struct State {
    const Opts *opts;
    double *edges; /* bins + 1 */
    int64_t *counts;
    float *values; /* of the parameter at work; as long as the largest */
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, every_n_steps, "100", 1, 1e15, "optimizer steps between histograms"),
    KILN_FIELD_I64(Opts, bins, "64", 1, 4096, "bins per histogram, of equal width"),
    KILN_FIELD_BOOL(Opts, gradients, "true",
                    "also log gradients, as the optimizer receives them (clipped)"),
    KILN_FIELD_END,
};

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);

    state->opts = kiln_opts(self);
    state->edges = malloc((size_t)(state->opts->bins + 1) * sizeof(*state->edges));
    state->counts = malloc((size_t)state->opts->bins * sizeof(*state->counts));
    if (state->edges == NULL || state->counts == NULL)
        return kiln_error_nomem(err, (size_t)state->opts->bins * 16);
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->edges);
    free(state->counts);
    free(state->values);
}

static int64_t memory(const KilnInstance *self, KilnTrainer *trainer)
{
    (void)self;
    return kiln_params_largest(kiln_trainer_params(trainer)) * (int64_t)sizeof(float);
}

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    if (strcmp(kiln_trainer_phase(trainer), "fit") != 0)
        return KILN_OK;
    if (!kiln_trainer_takes(trainer, KILN_LOG_HISTOGRAMS))
        return kiln_error_set(err, KILN_E_MISSING,
                              "no logger of this run accepts histograms; add logger=tensorboard");
    const size_t bytes = (size_t)memory(self, trainer);
    state->values = malloc(bytes);
    return state->values != NULL ? KILN_OK : kiln_error_nomem(err, bytes);
}

static void measure(KilnHistogram *histogram, const float *values, int64_t n)
{
    histogram->min = (double)INFINITY;
    histogram->max = -(double)INFINITY;
    for (int64_t i = 0; i < n; i++) {
        double value = (double)values[i];

        if (!isfinite(value))
            continue;
        histogram->min = fmin(histogram->min, value);
        histogram->max = fmax(histogram->max, value);
        histogram->sum += value;
        histogram->sum_squares += value * value;
        histogram->count++;
    }
}

/* A constant gets bins around it. */
static void count(State *state, KilnHistogram *histogram, int64_t n)
{
    const int64_t bins = state->opts->bins;
    double low = histogram->min, width = (histogram->max - low) / (double)bins;

    if (!(width > 0.0)) {
        width = fmax(fabs(low), 1.0) * 1e-3;
        low -= width * (double)bins / 2.0;
    }
    for (int64_t i = 0; i <= bins; i++)
        state->edges[i] = low + width * (double)i;
    memset(state->counts, 0, (size_t)bins * sizeof(*state->counts));
    for (int64_t i = 0; i < n; i++) {
        double value = (double)state->values[i];
        int64_t bin = isfinite(value) ? (int64_t)((value - low) / width) : -1;

        if (bin >= 0)
            state->counts[bin < bins ? bin : bins - 1]++;
    }
}

/* The histogram of state->values. */
static KilnStatus log_values(State *state, KilnTrainer *trainer, const char *name, int64_t n,
                             KilnError *err)
{
    KilnHistogram histogram = {
        .edges = state->edges,
        .counts = state->counts,
        .n_bins = (size_t)state->opts->bins,
    };

    measure(&histogram, state->values, n);
    if (histogram.count == 0)
        return KILN_OK;
    count(state, &histogram, n);
    return kiln_trainer_log_histogram(trainer, name, &histogram, err);
}

static KilnStatus log_param(State *state, KilnTrainer *trainer, const KilnParam *param,
                            KilnError *err)
{
    const int64_t n = kiln_shape_count(kiln_param_shape(param));
    char name[NAME];

    snprintf(name, sizeof(name), "parameters/%s", kiln_param_name(param));
    kiln_param_read(param, KILN_F32, state->values);
    KilnStatus status = log_values(state, trainer, name, n, err);
    if (status < 0 || !state->opts->gradients)
        return status;
    snprintf(name, sizeof(name), "gradients/%s", kiln_param_name(param));
    kiln_param_read_gradient(param, KILN_F32, state->values);
    return log_values(state, trainer, name, n, err);
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);
    KilnParams *params = kiln_trainer_params(trainer);
    KilnStatus status = KILN_OK;

    if (kiln_trainer_global_step(trainer) % state->opts->every_n_steps != 0)
        return KILN_OK;
    for (size_t i = 0; i < kiln_params_count(params) && status >= 0; i++)
        if (kiln_param_trained(kiln_params_at(params, i)))
            status = log_param(state, trainer, kiln_params_at(params, i), err);
    return status;
}

static const KilnCallbackOps ops = { .setup = setup,
                                     .on_train_batch_end = on_train_batch_end,
                                     .memory = memory };

const KilnComponent kiln_callback_histograms = {
    .kind = KILN_KIND_CALLBACK,
    .name = "histograms",
    .summary = "Log histograms of parameters and gradients",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .init = init,
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_histograms, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
