/* Tunes a config by trials: each changes the config, builds a trainer from it, trains a few steps,
 * and restores the config. */
#include "train/analysis/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "config/tree/edit.h"
#include "kiln/tools/clock.h"
#include "train/assemble.h"
#include "train/checkpoint/component_state.h"
#include "train/checkpoint/initial_weights.h"
#include "train/optim/lr_scales.h"

struct KilnTune {
    KilnConfig *config;
    KilnRunEnv env; /* for trials, without console */
    KilnOutput output;
    const KilnTuneRequest *request;
    json_t *states, *lines, *options; /* members of the result, see tune.h */
    const char *callback;             /* config path of the callback that tunes now */
    char *optimizer;                  /* the optimizer's config path; NULL: not known yet */
};

/* ---- Options ---------------------------------------------------------------------------- */

static KilnStatus check(const KilnTune *tune, KilnError *err)
{
    KilnErrors *errors = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    if (status < 0)
        return kiln_error_nomem(err, 1);
    status = kiln_config_check(tune->config, tune->env.registry, errors);
    if (status < 0)
        (void)kiln_error_set(err, status, "%s", kiln_errors_text(errors, 0));
    kiln_errors_free(errors);
    return status;
}

/* Set the option and check the config; *ret_before is for restore. */
static KilnStatus change(KilnTune *tune, KilnTuneOption option, KilnConfigNode **ret_before,
                         KilnError *err)
{
    KilnConfigNode *before = NULL;

    *ret_before = NULL;
    if (option.key == NULL)
        return KILN_OK;
    KilnStatus status = kiln_config_change(tune->config, option.key, option.value, tune->callback,
                                           &before, err);
    if (status < 0)
        return status;
    status = check(tune, err);
    if (status < 0)
        kiln_config_change_back(tune->config, option.key, before);
    else
        *ret_before = before;
    return status;
}

static void restore(KilnTune *tune, KilnTuneOption option, KilnConfigNode *before)
{
    if (before != NULL)
        kiln_config_change_back(tune->config, option.key, before);
}

KilnStatus kiln_tune_set(KilnTune *tune, KilnTuneOption option, KilnError *err)
{
    KilnConfigNode *before = NULL;
    KilnStatus status = change(tune, option, &before, err);

    if (status >= 0 &&
        json_object_set_new(tune->options, tune->callback,
                            json_pack("{s:s, s:s}", "key", option.key, "value", option.value)) != 0)
        status = kiln_error_nomem(err, strlen(option.key));
    return status;
}

/* ---- Trainers for trials --------------------------------------------------------------------- */

/* Build a trainer on shapes alone, without memory for training. */
static KilnStatus dry_build(KilnTune *tune, KilnTrainer **ret, KilnError *err)
{
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));

    *ret = trainer;
    if (trainer == NULL)
        return kiln_error_nomem(err, sizeof(*trainer));
    return kiln_trainer_dry_build(trainer, tune->config, &tune->env, KILN_STAGE_FIT, NULL, err);
}

static void free_trainer(KilnTrainer *trainer)
{
    if (trainer != NULL)
        kiln_trainer_release(trainer);
    free(trainer);
}

/* The run has a little less memory than a trial: trials fragment the heap. */
static int64_t reserve(int64_t needed)
{
    return (16 << 20) + needed / 100;
}

KilnStatus kiln_tune_estimate(KilnTune *tune, KilnTuneOption option, KilnTuneNeeds *ret,
                              KilnError *err)
{
    KilnConfigNode *before = NULL;
    KilnTrainer *trainer = NULL;
    KilnError why = { 0 };
    KilnTuneNeeds needs = { .available = INT64_MAX };
    KilnStatus status = change(tune, option, &before, err);

    if (status < 0)
        return status;
    status = dry_build(tune, &trainer, &why);
    if (status >= 0) {
        needs.needed = kiln_memory_estimate_needed(&trainer->memory);
        needs.samples = kiln_trainer_train_samples(trainer);
        if (trainer->memory.memory_known)
            needs.available = trainer->memory.memory.available;
        needs.fits = needs.needed <= needs.available - reserve(needs.needed);
    }
    free_trainer(trainer);
    restore(tune, option, before);
    if (status == KILN_E_NOMEM) /* the parameters alone do not fit: needs.fits is false */
        status = KILN_OK;
    if (status >= 0)
        *ret = needs;
    else if (err != NULL)
        *err = why;
    return status;
}

/* ---- Keys --------------------------------------------------------------------------- */

static KilnStatus find_optimizer(KilnTune *tune, KilnError *err)
{
    KilnTrainer *trainer = NULL;

    if (tune->optimizer != NULL)
        return KILN_OK;
    KilnStatus status = dry_build(tune, &trainer, err);
    if (status >= 0 && trainer->n_optimizers != 1)
        status = kiln_error_set(err, KILN_E_RANGE,
                                "task %s has %zu optimizers; only a single one's learning rate can "
                                "be searched",
                                kiln_instance_name(trainer->module), trainer->n_optimizers);
    if (status >= 0)
        tune->optimizer = kiln_strdup(kiln_instance_path(trainer->optimizers[0].use.optimizer));
    free_trainer(trainer);
    if (status >= 0 && tune->optimizer == NULL)
        status = kiln_error_nomem(err, 1);
    return status;
}

/* Find the key that holds the value of `key`, which may refer to it. */
static KilnStatus find_source(const KilnTune *tune, const char *key, const char *option,
                              const char **ret, KilnError *err)
{
    char *text = NULL;
    const char *source = kiln_config_source(tune->config, key);

    if (kiln_config_text(tune->config, source, &text, NULL) < 0)
        return kiln_error_set(err, KILN_E_MISSING,
                              "the config has no %s to set; name the key with %s.%s", key,
                              tune->callback, option);
    free(text);
    *ret = source;
    return KILN_OK;
}

KilnStatus kiln_tune_lr_key(KilnTune *tune, const char *option, const char **ret, KilnError *err)
{
    KilnText key = { 0 };
    KilnStatus status = find_optimizer(tune, err);

    if (status < 0)
        return status;
    kiln_text_printf(&key, "%s.lr", tune->optimizer);
    status = key.failed ? kiln_error_nomem(err, 1) : find_source(tune, key.data, option, ret, err);
    kiln_text_release(&key);
    return status;
}

KilnStatus kiln_tune_batch_size_key(KilnTune *tune, const char *option, const char **ret,
                                    KilnError *err)
{
    return find_source(tune, "datamodule.batch_size", option, ret, err);
}

/* ---- Steps -------------------------------------------------------------------------- */

/* Train on a batch; *ret_diverged: the loss is not finite. */
static KilnStatus try_batch(KilnTrainer *trainer, const KilnTuneTrial *trial,
                            const KilnBatch *batch, bool *ret_diverged, KilnError *err)
{
    if (trial->rate != NULL)
        kiln_trainer_set_learning_rate(trainer, trial->rate(trial->ctx, trainer->at.step));
    KilnStatus status = kiln_fit_batch(trainer, batch, err);
    *ret_diverged = status == KILN_E_NUMERIC;
    return *ret_diverged ? KILN_OK : status;
}

/* Load the next batch, of the next epoch if this one is over. */
static KilnStatus next_batch(KilnTrainer *trainer, KilnLoader *loader, KilnBatch *ret,
                             KilnError *err)
{
    KilnStatus status = kiln_loader_next(loader, ret, err);

    if (status < 0 || ret->size > 0)
        return status;
    trainer->at.epoch++;
    trainer->at.batch = trainer->at.in_group = 0;
    status = kiln_lr_scales_apply(trainer, trainer->at.epoch, err);
    if (status >= 0)
        status = kiln_loader_start(loader, trainer->at.epoch, 0, err);
    if (status >= 0)
        status = kiln_loader_next(loader, ret, err);
    if (status >= 0 && ret->size == 0)
        status = kiln_error_set(err, KILN_E_MISSING, "no training sample can be read");
    return status;
}

static KilnStatus try_steps(KilnTrainer *trainer, KilnTuneTrial *trial, KilnError *err)
{
    KilnLoader *loader = NULL;
    double start = 0.0;
    bool may_continue = true;
    KilnStatus status = kiln_trainer_loader(trainer, KILN_TRAIN, 0, &loader, err);

    if (status >= 0)
        status = kiln_loader_start(loader, 0, 0, err);
    while (status >= 0 && may_continue && trainer->at.step < trial->steps) {
        const int64_t step = trainer->at.step;
        KilnBatch batch;
        bool broken = false;

        if (kiln_trainer_interrupted(trainer))
            return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted");
        status = next_batch(trainer, loader, &batch, err);
        if (status >= 0)
            status = try_batch(trainer, trial, &batch, &broken, err);
        if (status < 0)
            break;
        if (start > 0.0)
            trial->samples += batch.size;
        else
            start = kiln_clock();
        may_continue = !broken;
        if (trial->report != NULL && (broken || trainer->at.step > step))
            may_continue = trial->report(trial->ctx, step,
                                         broken ? (double)NAN : trainer->live.loss) &&
                           !broken;
    }
    trial->seconds = trial->samples > 0 ? kiln_clock() - start : 0.0;
    return status;
}

KilnStatus kiln_tune_try(KilnTune *tune, KilnTuneTrial *trial, KilnError *err)
{
    KilnConfigNode *before = NULL;
    KilnTrainer *trainer = NULL;
    KilnStatus status = change(tune, trial->option, &before, err);

    if (status < 0)
        return status;
    trial->seconds = 0.0;
    trial->samples = 0;
    status = dry_build(tune, &trainer, err);
    if (status >= 0)
        status = kiln_trainer_allocate(trainer, err);
    if (status >= 0)
        status = kiln_weights_load(trainer, err);
    if (status >= 0)
        status = try_steps(trainer, trial, err);
    free_trainer(trainer);
    restore(tune, trial->option, before);
    return status;
}

void kiln_tune_print(KilnTune *tune, const char *format, ...)
{
    KilnText line = { 0 };
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    kiln_text_printf(&line, "%s: %s", tune->callback, text);
    if (!line.failed) {
        kiln_output_print(&tune->output, "%s", line.data);
        json_array_append_new(tune->lines, json_string(line.data));
    }
    kiln_text_release(&line);
}

const char *kiln_tune_dir(const KilnTune *tune)
{
    return tune->request->dir;
}

void kiln_tune_status(KilnTune *tune, const char *text)
{
    kiln_output_status_line(&tune->output, text);
}

/* ---- Callbacks ------------------------------------------------------------------------- */

static KilnStatus save_state(KilnTune *tune, KilnInstance *callback, KilnError *err)
{
    KilnState state = { .path = kiln_instance_path(callback), .object = json_object() };

    kiln_call_enter(callback, "state_dict");
    if (state.object != NULL)
        kiln_instance_component(callback)->ops.callback->state_dict(callback, &state);
    kiln_call_leave();
    if (state.failed || state.object == NULL ||
        json_object_set(tune->states, kiln_instance_path(callback), state.object) != 0) {
        json_decref(state.object);
        kiln_state_release(&state);
        return kiln_error_nomem(err, 1);
    }
    json_decref(state.object);
    kiln_state_release(&state);
    return KILN_OK;
}

static KilnStatus call(KilnTune *tune, KilnInstance *callback, KilnError *err)
{
    const KilnCallbackOps *ops = kiln_instance_component(callback)->ops.callback;
    KilnState state = { .object = json_object_get(tune->request->saved,
                                                  kiln_instance_path(callback)) };
    KilnStatus status = KILN_OK;

    tune->callback = kiln_instance_path(callback);
    if (tune->request->saved != NULL && state.object == NULL) {
        kiln_tune_print(tune, "the checkpoint is of a run that did not search: nothing is changed");
        return KILN_OK;
    }
    if (state.object == NULL && tune->request->world > 1)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s: tries runs of one rank, and this one has %d; run kiln tune "
                              "with trainer.strategy=single, and write what it finds",
                              tune->callback, tune->request->world);
    if (state.object != NULL)
        status = KILN_CALLED(callback, "load_state_dict",
                             ops->load_state_dict(callback, &state, err), err);
    if (status >= 0)
        status = KILN_CALLED(callback, "tune", ops->tune(callback, tune, err), err);
    kiln_output_status_line(&tune->output, NULL);
    if (status >= 0)
        status = save_state(tune, callback, err);
    if (status < 0)
        (void)kiln_error_prefix(err, "%s: ", tune->callback);
    return status;
}

/* Whether to tune: not with fast_dev_run or barebones. */
static KilnStatus is_due(const KilnConfig *config, bool *ret, KilnError *err)
{
    KilnOptions options = { 0 };
    KilnStatus status = kiln_options_read(config, &options, err);

    *ret = options.monitors;
    kiln_options_release(&options);
    return status;
}

KilnStatus kiln_tune_run(KilnConfig *config, const KilnRunEnv *env, const KilnTuneRequest *request,
                         json_t **ret, KilnError *err)
{
    KilnTune tune = {
        .config = config,
        .env = *env,
        .request = request,
        .states = json_object(),
        .lines = json_array(),
        .options = json_object(),
    };
    KilnInstance **callbacks = NULL;
    size_t n = 0;
    bool due = false;
    json_t *tuned = json_pack("{s:o, s:o, s:o}", "states", tune.states, "lines", tune.lines,
                              "options", tune.options);
    KilnStatus status = tuned != NULL ? is_due(config, &due, err) : kiln_error_nomem(err, 1);

    tune.env.console = NULL;
    tune.env.progress = NULL;
    tune.env.save = NULL; /* a request to save stays pending for the run */
    kiln_output_init(&tune.output, env->console);
    if (status >= 0 && due)
        status = kiln_config_build_map(config, "callbacks", env->registry, KILN_KIND_CALLBACK,
                                       &callbacks, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        const bool wanted = request->only == NULL ||
                            strcmp(kiln_instance_path(callbacks[i]), request->only) == 0;

        if (wanted && kiln_instance_component(callbacks[i])->ops.callback->tune != NULL)
            status = call(&tune, callbacks[i], err);
    }
    kiln_instances_free(callbacks, n);
    kiln_output_release(&tune.output);
    free(tune.optimizer);
    if (status < 0) {
        json_decref(tuned);
        return status;
    }
    *ret = tuned;
    return KILN_OK;
}

KilnStatus kiln_trainer_take_tuned(KilnTrainer *trainer, const json_t *tuned, KilnError *err)
{
    const json_t *states = json_object_get(tuned, "states"),
                 *lines = json_object_get(tuned, "lines");
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < json_array_size(lines); i++)
        kiln_output_log(&trainer->output, json_string_value(json_array_get(lines, i)));
    for (size_t i = 0; i < trainer->n_callbacks && status >= 0; i++) {
        KilnInstance *callback = trainer->callbacks[i];
        KilnState state = { .object = json_object_get(states, kiln_instance_path(callback)) };

        if (state.object != NULL)
            status = KILN_CALLED(callback, "load_state_dict",
                                 kiln_instance_component(callback)->ops.callback->load_state_dict(
                                     callback, &state, err),
                                 err);
    }
    return status;
}
