/* Keeps an exponential moving average of the weights and buffers (Polyak and
 * Juditsky 1992), with which validation and test run and which checkpoints hold as
 * the model; timm's ModelEmaV3. The first update copies the weights. */
#include "kiln.h"

#include <math.h>
#include <string.h>

typedef struct Opts {
    double decay, warmup_gamma, warmup_power;
    bool warmup;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, decay, "0.9998", 0.0, 1.0, "share of the average that each step keeps"),
    KILN_FIELD_BOOL(Opts, warmup, "false",
                    "keep less in the beginning: 1 - (1 + t/warmup_gamma)^-warmup_power, at most "
                    "decay"),
    KILN_FIELD_F64(Opts, warmup_gamma, "1.0", 1e-6, 1e9, "steps by which the warmup is stretched"),
    KILN_FIELD_F64(Opts, warmup_power, "0.6667", 0.0, 10.0,
                   "how fast it rises: 2/3 for long runs, 3/4 for short ones"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnShadow *shadow; /* the trainer's */
    float weight;       /* of the step that is recorded now */
} State;

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    if (strcmp(kiln_trainer_phase(trainer), "fit") != 0)
        return KILN_OK;
    return kiln_trainer_shadow_new(trainer, &state->shadow, err);
}

/* What update number `t`, from 0, keeps of the average. */
static double decay(const Opts *opts, int64_t t)
{
    if (t == 0)
        return 0.0;
    if (!opts->warmup)
        return opts->decay;
    return fmin(1.0 - pow(1.0 + (double)t / opts->warmup_gamma, -opts->warmup_power), opts->decay);
}

static void record_update(KilnInstance *self, KilnTrainer *trainer, const KilnRecording *at)
{
    State *state = kiln_state(self);

    if (state->shadow == NULL)
        return;
    state->weight = (float)(1.0 - decay(kiln_opts(self), kiln_trainer_global_step(trainer)));
    kiln_shadow_lerp(state->shadow, kiln_graph_input(kiln_step_graph(at->step), KILN_F32,
                                                     KILN_SCALAR, &state->weight));
}

static const KilnCallbackOps ops = { .setup = setup,
                                     .record_update = record_update,
                                     .averages = true };

const KilnComponent kiln_callback_ema = {
    .kind = KILN_KIND_CALLBACK,
    .name = "ema",
    .summary = "Validate, test and save with a moving average of the weights",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_ema, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
