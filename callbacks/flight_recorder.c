/* Records the last training batches for `kiln replay`. The record is a memory-mapped file, so it
 * survives a crash and kill -9. */
#include "kiln.h"
#include "kiln/files/flight.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Opts {
    int64_t batches, samples;
    bool keep;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, batches, "64", 1, 1000000, "number of last training batches to keep"),
    KILN_FIELD_I64(Opts, samples, "1024", 0, 1000000,
                   "number of samples per batch whose numbers are kept"),
    KILN_FIELD_BOOL(Opts, keep, "false", "keep flight.kiln even if the run ends well"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnFlight *flight; /* NULL: not training */
    char path[4096 + 32];
    int64_t step; /* at the beginning of the batch */
    bool open;    /* the batch has not ended */
    bool failed;
} State;

/* Names of the trained parameters, in the order of kiln_trainer_gradient_norms. */
static const char **names_of(KilnTrainer *trainer, size_t *ret_n)
{
    KilnParams *params = kiln_trainer_params(trainer);
    const char **names = calloc(kiln_params_count(params) + 1, sizeof(*names));

    *ret_n = 0;
    for (size_t i = 0; names != NULL && i < kiln_params_count(params); i++)
        if (kiln_param_trained(kiln_params_at(params, i)))
            names[(*ret_n)++] = kiln_param_name(kiln_params_at(params, i));
    return names;
}

static KilnStatus on_train_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnFlightForm form = {
        .seed = kiln_trainer_seed(trainer),
        .n_batches = opts->batches,
        .most_samples = opts->samples,
    };
    char before[sizeof(state->path)];

    if (kiln_trainer_run_dir(trainer)[0] == '\0')
        return KILN_OK;
    const char **names = names_of(trainer, &form.n_names);
    if (names == NULL)
        return kiln_error_nomem(err, sizeof(*names));
    form.names = names;
    snprintf(state->path, sizeof(state->path), "%s/flight.kiln", kiln_trainer_run_dir(trainer));
    snprintf(before, sizeof(before), "%s/flight.before.kiln", kiln_trainer_run_dir(trainer));
    (void)!rename(state->path, before); /* of a session that ended badly, if any */
    KilnStatus status = kiln_flight_create(state->path, &form, &state->flight, err);
    free(names);
    return status;
}

static KilnStatus on_train_batch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);
    KilnFlightBatch batch = {
        .epoch = kiln_trainer_epoch(trainer),
        .batch = kiln_trainer_batch(trainer),
        .step = kiln_trainer_global_step(trainer),
        .batches = kiln_trainer_batches_done(trainer),
    };

    (void)err;
    if (state->flight == NULL)
        return KILN_OK;
    batch.samples = kiln_trainer_batch_samples(trainer, &batch.n_samples);
    state->step = batch.step;
    state->open = true;
    kiln_flight_begin(state->flight, &batch);
    return KILN_OK;
}

static void end_batch(State *state, const KilnTrainer *trainer, bool stepped)
{
    size_t n = 0;
    double loss = (double)NAN;
    const bool ran = kiln_trainer_loss(trainer, &loss);
    const KilnFlightBatch batch = {
        .loss = loss,
        .rate = kiln_trainer_learning_rate(trainer),
        .stepped = stepped,
        .norms = kiln_trainer_gradient_norms(trainer, &n),
    };

    if (ran && state->open)
        kiln_flight_end(state->flight, &batch);
    state->open = false;
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    if (state->flight != NULL)
        end_batch(state, trainer, kiln_trainer_global_step(trainer) > state->step);
    return KILN_OK;
}

/* A batch with a non-finite loss gets no on_train_batch_end. */
static void on_exception(KilnInstance *self, KilnTrainer *trainer, const KilnError *why)
{
    State *state = kiln_state(self);

    if (state->flight == NULL)
        return;
    end_batch(state, trainer, true);
    if (why->status == KILN_E_INTERRUPTED)
        return;
    state->failed = true;
    kiln_flight_set_reason(state->flight, why->text);
    kiln_trainer_print(trainer, "flight record: %s; kiln replay %s", state->path, state->path);
}

static KilnStatus teardown(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    (void)trainer;
    (void)err;
    if (state->flight != NULL && !state->failed)
        kiln_flight_set_reason(state->flight, "well");
    if (state->flight != NULL && !state->failed && !opts->keep)
        unlink(state->path);
    kiln_flight_close(state->flight);
    state->flight = NULL;
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    kiln_flight_close(((State *)kiln_state(self))->flight);
}

static const KilnCallbackOps ops = {
    .on_train_start = on_train_start,
    .on_train_batch_start = on_train_batch_start,
    .on_train_batch_end = on_train_batch_end,
    .on_exception = on_exception,
    .teardown = teardown,
    .gradient_norms = true,
};

const KilnComponent kiln_callback_flight_recorder = {
    .kind = KILN_KIND_CALLBACK,
    .name = "flight_recorder",
    .summary = "Keep the last batches for kiln replay, also after a crash",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_flight_recorder, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
