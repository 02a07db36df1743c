/* Keeps an exponential moving average of weights and buffers (Polyak and Juditsky 1992; timm's
 * ModelEmaV3). Validation and test use the average, and checkpoints store it as the model. The
 * first update copies the weights. */
#include "kiln.h"

#include <math.h>
#include <string.h>

typedef struct Opts {
    double decay, warmup_gamma, warmup_power;
    int64_t update_every_n_steps, update_starting_at_step, update_starting_at_epoch;
    bool warmup, use_buffers;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, decay, "0.9998", 0.0, 1.0,
                   "fraction of the average that each update keeps"),
    KILN_FIELD_BOOL(
        Opts, warmup, "false",
        "start with a smaller decay: 1 - (1 + t/warmup_gamma)^-warmup_power, at most decay"),
    KILN_FIELD_F64(Opts, warmup_gamma, "1.0", 1e-6, 1e9, "time scale of the warmup, in updates"),
    KILN_FIELD_F64(Opts, warmup_power, "0.6667", 0.0, 10.0,
                   "how fast the decay rises: 2/3 for long runs, 3/4 for short ones"),
    KILN_FIELD_I64(Opts, update_every_n_steps, "1", 1, 1e9,
                   "optimizer steps between updates of the average"),
    KILN_FIELD_I64(
        Opts, update_starting_at_step, "0", 0, 1e15,
        "optimizer steps before the first update; until then the weights themselves are validated "
        "and saved"),
    KILN_FIELD_I64(Opts, update_starting_at_epoch, "0", 0, 1e9, "epochs before it, likewise"),
    KILN_FIELD_BOOL(Opts, use_buffers, "true", "also average running statistics; false: copy them"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnAveragedWeights *averaged; /* the trainer's */
    float weight;                  /* of the step that is recorded now */
    float buffers;                 /* of running statistics */
    int64_t updates;               /* done so far */
    bool counted;                  /* by the checkpoint that the run resumes from */
} State;

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    if (strcmp(kiln_trainer_phase(trainer), "fit") != 0)
        return KILN_OK;
    return kiln_trainer_averaged_new(trainer, &state->averaged, err);
}

/* Checkpoints of formats 1 and 2 did not count updates: there was one at each step. */
static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    if (!state->counted)
        state->updates = kiln_trainer_global_step(trainer);
    return KILN_OK;
}

/* The decay of update number `t`, from 0. */
static double decay(const Opts *opts, int64_t t)
{
    if (t == 0)
        return 0.0;
    if (!opts->warmup)
        return opts->decay;
    return fmin(1.0 - pow(1.0 + (double)t / opts->warmup_gamma, -opts->warmup_power), opts->decay);
}

/* Before the first update the average is a copy of the weights. */
static bool has_begun(const Opts *opts, const KilnTrainer *trainer)
{
    return kiln_trainer_global_step(trainer) >= opts->update_starting_at_step &&
           kiln_trainer_epoch(trainer) >= opts->update_starting_at_epoch;
}

static void record_update(KilnInstance *self, KilnTrainer *trainer, const KilnRecording *at)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnGraph *graph = kiln_step_graph(at->step);
    const bool begun = has_begun(opts, trainer);

    if (state->averaged == NULL ||
        (begun && kiln_trainer_global_step(trainer) % opts->update_every_n_steps != 0))
        return;
    state->weight = begun ? (float)(1.0 - decay(opts, state->updates)) : 1.0f;
    state->buffers = opts->use_buffers ? state->weight : 1.0f;
    state->updates += begun ? 1 : 0;
    kiln_averaged_lerp(state->averaged,
                       kiln_graph_input(graph, KILN_F32, KILN_SCALAR, &state->weight),
                       kiln_graph_input(graph, KILN_F32, KILN_SCALAR, &state->buffers));
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const State *state = kiln_state(self);

    kiln_state_set_i64(saved, "updates", state->updates);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    State *state = kiln_state(self);

    if (!kiln_state_get_i64(saved, "updates", &state->updates))
        return kiln_error_set(err, KILN_E_FORMAT, "the checkpoint's state lacks updates");
    state->counted = true;
    return KILN_OK;
}

static const KilnCallbackOps ops = { .setup = setup,
                                     .on_fit_start = on_fit_start,
                                     .record_update = record_update,
                                     .state_dict = state_dict,
                                     .load_state_dict = load_state_dict,
                                     .averages = true };

const KilnComponent kiln_callback_ema = {
    .kind = KILN_KIND_CALLBACK,
    .name = "ema",
    .summary = "Validate, test and save with a moving average of the weights",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_ema, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
