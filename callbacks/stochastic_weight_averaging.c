/* Averages the weights of the last epochs, which have their own learning rate (Izmailov et al.
 * 2018): torch.optim.swa_utils' AveragedModel, SWALR and update_bn, at the times of Lightning's
 * StochasticWeightAveraging. Validation, test and checkpoints use the average once it exists. */
#include "kiln.h"

#include <math.h>
#include <string.h>

enum { ANNEAL_COS, ANNEAL_LINEAR };

typedef struct Opts {
    double swa_lrs;
    KilnQuantity swa_epoch_start;
    int64_t annealing_epochs, annealing_strategy;
} Opts;

static const KilnChoice strategies[] = {
    { "cos", ANNEAL_COS },
    { "linear", ANNEAL_LINEAR },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, swa_lrs, NULL, 0.0, 1e6,
                   "learning rate of the averaged epochs, instead of the schedule's"),
    KILN_FIELD_QUANTITY(
        Opts, swa_epoch_start, "0.8", KILN_ALLOW_COUNT | KILN_ALLOW_FRACTION,
        "first averaged epoch: a number from 1, or a fraction of trainer.max_epochs"),
    KILN_FIELD_I64(Opts, annealing_epochs, "10", 0, 1000000000,
                   "epochs over which the rate moves from the schedule's to swa_lrs"),
    KILN_FIELD_ENUM(Opts, annealing_strategy, "cos", strategies,
                    "how the rate moves: along half a cosine, or linearly"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnAveragedWeights *averaged; /* the trainer's */
    int64_t start;                 /* first averaged epoch, from 0 */
    int64_t n_averaged;            /* epochs in the average */
    int64_t latest;                /* the newest of them; -1: none */
    double rate; /* the schedule's rate when the averaged epochs began; -1: not yet */
} State;

static KilnStatus first_epoch(const Opts *opts, KilnTrainer *trainer, int64_t *ret, KilnError *err)
{
    const int64_t epochs = kiln_trainer_max_epochs(trainer);
    const bool share = opts->swa_epoch_start.of == KILN_QUANTITY_FRACTION;

    if (share && epochs < 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "swa_epoch_start=%g is a fraction of trainer.max_epochs, which is "
                              "not set; write the number of an epoch",
                              opts->swa_epoch_start.value);
    const int64_t start = share ? kiln_quantity_of(opts->swa_epoch_start, epochs)
                                : (int64_t)opts->swa_epoch_start.value;
    if (!share && start < 1)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "swa_epoch_start=%lld: epochs count from 1 here; 1 averages from the first epoch on",
            (long long)start);
    if (epochs >= 0 && start > epochs)
        kiln_trainer_print(trainer,
                           "warning: stochastic_weight_averaging: swa_epoch_start=%lld is after "
                           "the last of the %lld epochs, so "
                           "nothing is averaged",
                           (long long)start, (long long)epochs);
    *ret = start > 1 ? start - 1 : 0;
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    if (strcmp(kiln_trainer_phase(trainer), "fit") != 0)
        return KILN_OK;
    state->latest = -1;
    state->rate = -1.0;
    KilnStatus status = first_epoch(kiln_opts(self), trainer, &state->start, err);
    return status >= 0 ? kiln_trainer_averaged_new(trainer, &state->averaged, err) : status;
}

/* ---- The rate ------------------------------------------------------------------------------- */

/* SWALR's rate, `epochs` after the first averaged epoch. */
static double rate_of(const Opts *opts, double from, int64_t epochs)
{
    const double t = opts->annealing_epochs > 0
                         ? fmin(1.0, (double)epochs / (double)opts->annealing_epochs)
                         : 1.0;
    const double alpha = opts->annealing_strategy == ANNEAL_COS ? (1.0 - cos(acos(-1.0) * t)) / 2.0
                                                                : t;

    return opts->swa_lrs * alpha + from * (1.0 - alpha);
}

/* The rate of the current epoch. */
static void set_rate(KilnInstance *self, KilnTrainer *trainer)
{
    State *state = kiln_state(self);
    const int64_t epoch = kiln_trainer_epoch(trainer);

    if (epoch < state->start)
        return;
    if (state->rate < 0.0)
        state->rate = kiln_trainer_scheduled_rate(trainer);
    kiln_trainer_set_learning_rate(trainer,
                                   rate_of(kiln_opts(self), state->rate, epoch - state->start));
}

static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    kiln_averaged_use(state->averaged, state->n_averaged > 0);
    if (state->rate >= 0.0) /* resumed inside an averaged epoch */
        set_rate(self, trainer);
    return KILN_OK;
}

static KilnStatus on_train_epoch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    set_rate(self, trainer);
    return KILN_OK;
}

/* ---- The average ----------------------------------------------------------------------------- */

static void average(KilnInstance *self, KilnTrainer *trainer)
{
    State *state = kiln_state(self);
    const int64_t epoch = kiln_trainer_epoch(trainer);

    if (epoch < state->start || state->latest >= epoch)
        return;
    kiln_averaged_average(state->averaged, 1.0 / (double)(state->n_averaged + 1));
    kiln_averaged_use(state->averaged, true);
    state->n_averaged++;
    state->latest = epoch;
    kiln_trainer_print(trainer, "averaging: %lld epoch%s, up to epoch %lld",
                       (long long)state->n_averaged, state->n_averaged == 1 ? "" : "s",
                       (long long)epoch);
}

/* Before the validation at the end of the epoch. */
static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    if (kiln_trainer_batch(trainer) == kiln_trainer_batches(trainer))
        average(self, trainer);
    return KILN_OK;
}

/* An epoch that ended early. */
static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    average(self, trainer);
    return KILN_OK;
}

static KilnStatus on_fit_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const State *state = kiln_state(self);

    return state->n_averaged > 0 ? kiln_trainer_update_statistics(trainer, err) : KILN_OK;
}

/* ---- State -------------------------------------------------------------------------- */

static void state_dict(KilnInstance *self, KilnState *out)
{
    const State *state = kiln_state(self);

    kiln_state_set_i64(out, "n_averaged", state->n_averaged);
    kiln_state_set_i64(out, "latest_update_epoch", state->latest);
    kiln_state_set_f64(out, "rate", state->rate);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *in, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    kiln_state_get_i64(in, "n_averaged", &state->n_averaged);
    kiln_state_get_i64(in, "latest_update_epoch", &state->latest);
    kiln_state_get_f64(in, "rate", &state->rate);
    return KILN_OK;
}

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_fit_start = on_fit_start,
    .on_train_epoch_start = on_train_epoch_start,
    .on_train_batch_end = on_train_batch_end,
    .on_train_epoch_end = on_train_epoch_end,
    .on_fit_end = on_fit_end,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
    .averages = true,
};

const KilnComponent kiln_callback_stochastic_weight_averaging = {
    .kind = KILN_KIND_CALLBACK,
    .name = "stochastic_weight_averaging",
    .summary = "Train the last epochs at their own rate and average their weights",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_stochastic_weight_averaging, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
