/* Ends training after a time, summed over all sessions of the run; trainer.max_time limits one
 * session. */
#include "kiln.h"

#include <stdio.h>
#include <string.h>

enum { EACH_STEP, EACH_EPOCH };

typedef struct Opts {
    double duration;
    int64_t interval;
    bool verbose;
} Opts;

static const KilnChoice intervals[] = { { "step", EACH_STEP },
                                        { "epoch", EACH_EPOCH },
                                        { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_DURATION(Opts, duration, NULL, 0, 1e9,
                        "training time, including validation: 90m, 00:12:00:00"),
    KILN_FIELD_ENUM(Opts, interval, "step", intervals,
                    "step: end after the current batch; epoch: finish the epoch"),
    KILN_FIELD_BOOL(Opts, verbose, "false", "print the time left at the end of each epoch"),
    KILN_FIELD_END,
};

typedef struct State {
    double before;  /* seconds of earlier sessions */
    double started; /* when this session began to train; 0: not yet */
} State;

static double elapsed(const State *state)
{
    return state->before + (state->started > 0.0 ? kiln_clock() - state->started : 0.0);
}

static void check(KilnInstance *self, KilnTrainer *trainer)
{
    const Opts *opts = kiln_opts(self);
    const double seconds = elapsed(kiln_state(self));
    char reason[128];

    if (seconds < opts->duration)
        return;
    snprintf(reason, sizeof(reason), "timer: trained for %.3g s, duration is %.3g s", seconds,
             opts->duration);
    kiln_trainer_pause(trainer, reason);
}

/* A resumed run may have no time left. */
static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    check(self, trainer);
    return KILN_OK;
}

static KilnStatus on_train_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)trainer;
    (void)err;
    state->started = kiln_clock();
    return KILN_OK;
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    if (opts->interval == EACH_STEP)
        check(self, trainer);
    return KILN_OK;
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const double seconds = elapsed(kiln_state(self));

    (void)err;
    if (opts->verbose && seconds < opts->duration)
        kiln_trainer_print(trainer, "timer: trained for %.3g s, %.3g s are left", seconds,
                           opts->duration - seconds);
    check(self, trainer);
    return KILN_OK;
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    kiln_state_set_f64(saved, "elapsed", elapsed(kiln_state(self)));
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    State *state = kiln_state(self);

    if (!kiln_state_get_f64(saved, "elapsed", &state->before))
        return kiln_error_set(err, KILN_E_FORMAT, "the checkpoint's state lacks elapsed");
    return KILN_OK;
}

static const KilnCallbackOps ops = {
    .on_fit_start = on_fit_start,
    .on_train_start = on_train_start,
    .on_train_batch_end = on_train_batch_end,
    .on_train_epoch_end = on_train_epoch_end,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
};

const KilnComponent kiln_callback_timer = {
    .kind = KILN_KIND_CALLBACK,
    .name = "timer",
    .summary = "End training after a time, over all sessions of a run",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_timer, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
