/* Runs a fit, from a checked config to a complete run folder: kiln_run_fit, and the same batch by
 * batch (kiln/embed/fit.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/sync.h"
#include "kiln/embed/fit.h"
#include "registry/registry.h"
#include "train/analysis/time_profile.h"
#include "train/assemble.h"
#include "train/checkpoint/initial_weights.h"
#include "train/checkpoint/resume.h"
#include "train/loader/inferred_options.h"
#include "train/loop/failure.h"
#include "train/loop/fit.h"
#include "train/optim/averaged_weights.h"
#include "train/report/run_messages.h"
#include "train/report/summary.h"
#include "train/run/run_folder.h"
#include "train/run/run_journal.h"
#include "train/analysis/tune.h"

/* ---- The end of training ------------------------------------------------------------------ */

/* The folder of the best checkpoint, which rank 0 knows; NULL: none. Owned by the caller. */
static KilnStatus find_best(KilnTrainer *trainer, char **ret, KilnError *err)
{
    KilnText path = { 0 };
    char name[256];

    if (kiln_trainer_link_target(trainer, "best", name, sizeof(name))) {
        kiln_text_printf(&path, "%s/checkpoints/%s", trainer->run_dir, name);
        if ((*ret = kiln_text_take(&path)) == NULL)
            return kiln_error_nomem(err, strlen(name));
    }
    return kiln_ranks_broadcast_text(&trainer->ranks, ret, err);
}

/* Test the best checkpoint, or the current weights when there is none. Meanwhile trainer->at is the
 * checkpoint's position, which is logged with the test's values. */
static KilnStatus test(KilnTrainer *trainer, KilnError *err)
{
    const KilnPosition end = trainer->at;
    KilnCheckpoint best = { 0 };
    char *path = NULL;
    KilnStatus status = find_best(trainer, &path, err);

    if (status >= 0 && path != NULL) {
        status = kiln_checkpoint_open(path, false, &best, err);
        if (status >= 0)
            status = kiln_checkpoint_load_weights(&best, trainer, err);
        if (status >= 0)
            status = kiln_checkpoint_load_module(&best, trainer, err);
        /* A checkpoint's model file holds the averaged weights that validation used. */
        kiln_averaged_free(trainer->averaged);
        trainer->averaged = NULL;
        if (status >= 0)
            trainer->at = best.at;
        kiln_checkpoint_close(&best);
    }
    free(path);
    trainer->phase = KILN_PHASE_TEST; /* also of the rows that are sent after the loop */
    if (status >= 0)
        status = kiln_eval_loop(trainer, KILN_PHASE_TEST, err);
    if (status >= 0)
        status = kiln_loggers_send(trainer, true, err);
    trainer->at = end;
    return status;
}

/* ---- The run --------------------------------------------------------------------------------- */

static void print_threads(KilnTrainer *trainer)
{
    char why[128];

    if (trainer->options.trainer->threads != 0)
        return;
    kiln_processors_why(&trainer->processors, why, sizeof(why));
    kiln_output_detail(&trainer->output, "%d thread%s%s%s", trainer->threads,
                       trainer->threads == 1 ? "" : "s", why[0] != '\0' ? ": " : "", why);
}

static void print_plugins(KilnTrainer *trainer)
{
    const KilnRegistry *registry = trainer->env->registry;

    for (size_t i = 0; i < registry->plugin_count; i++) {
        const KilnPlugin *plugin = &registry->plugins[i];

        kiln_output_detail(&trainer->output, "%s %s (%s), sha256 %s",
                           plugin->python ? "Python module" : "plugin",
                           kiln_path_near(plugin->path), plugin->from, plugin->sum);
    }
}

/* Hint when rows of step values would be rarer than one per epoch; modules that read whole sets
 * have values of epochs. */
static void print_log_interval(KilnTrainer *trainer)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    const int64_t every = trainer->schedule.log_steps;
    const int64_t steps = kiln_loop_epoch_steps(&trainer->schedule, trainer->at.epoch);

    if (trainer->loggers.n > 0 && ops->whole_sets == NULL && every > steps)
        kiln_output_print(&trainer->output,
                          "trainer.log_every_n_steps=%lld is larger than the %lld step%s of an "
                          "epoch: lower it to log more step values",
                          (long long)every, (long long)steps, steps == 1 ? "" : "s");
}

/* Let callbacks tune the config; a resumed run takes what they found before its start. */
static KilnStatus tune(KilnConfig *config, const KilnRunEnv *env, const KilnRanks *ranks,
                       const KilnCheckpoint *checkpoint, json_t **ret, KilnError *err)
{
    const KilnTuneRequest request = {
        .saved = json_object_get(checkpoint->state, "callbacks"),
        .world = ranks->world,
    };

    return kiln_tune_run(config, env, &request, ret, err);
}

/* Rank 0 alone has a run folder. */
static KilnStatus make_folder(KilnTrainer *trainer, const KilnCheckpoint *checkpoint,
                              KilnError *err)
{
    if (kiln_trainer_rank(trainer) > 0)
        return KILN_OK;
    KilnStatus status = kiln_run_folder_make(trainer, checkpoint->path, err);
    if (status >= 0)
        status = kiln_run_journal_begin(trainer, err);
    if (status >= 0)
        status = kiln_save_requests_open(trainer, err);
    if (status < 0)
        return status;
    kiln_resume_note_newest(checkpoint, trainer);
    kiln_report_config(trainer);
    return KILN_OK;
}

/* Build and load everything before a file is written, so that most errors leave none; then create
 * the run folder. */
static KilnStatus prepare(KilnTrainer *trainer, KilnConfig *config, const KilnRunEnv *env,
                          KilnCheckpoint *checkpoint, KilnError *err)
{
    json_t *tuned = NULL;
    KilnStatus status = kiln_ranks_open(&trainer->ranks, config, env->registry, err);

    if (status >= 0)
        status = kiln_resume_open(config, env, &trainer->ranks, checkpoint, err);
    if (status >= 0)
        status = tune(config, env, &trainer->ranks, checkpoint, &tuned, err);
    if (status >= 0) {
        trainer->threads = kiln_resume_threads(checkpoint);
        trainer->checkpoint = checkpoint->path;
        trainer->fitted = checkpoint->fitted;
        status = kiln_trainer_assemble(trainer, config, env, KILN_STAGE_FIT, NULL, err);
    }
    if (status >= 0)
        status = kiln_inferred_options_keep(trainer, err);
    if (status >= 0 && checkpoint->path == NULL)
        status = kiln_weights_load(trainer, err);
    if (status >= 0 && checkpoint->path == NULL && trainer->adapters != NULL &&
        trainer->adapters->source != NULL)
        status = kiln_adapters_load(trainer->adapters, trainer->params, err);
    if (status >= 0)
        status = kiln_resume_load(checkpoint, trainer, err);
    if (status >= 0)
        status = KILN_CALL(trainer, setup, err);
    if (status >= 0)
        status = kiln_trainer_take_tuned(trainer, tuned, err);
    json_decref(tuned);
    if (status >= 0 && checkpoint->path != NULL)
        status = kiln_checkpoint_load_callbacks(checkpoint, trainer, err);
    if (status >= 0)
        status = make_folder(trainer, checkpoint, err);
    if (status < 0)
        return status;
    if (checkpoint->path != NULL)
        kiln_output_print(&trainer->output, "resuming from %s", kiln_path_near(checkpoint->path));
    print_plugins(trainer);
    print_threads(trainer);
    print_log_interval(trainer);
    if (kiln_trainer_rank(trainer) == 0)
        kiln_live_status_begin(trainer);
    return KILN_OK;
}

static const char *status_of(const KilnTrainer *trainer)
{
    return trainer->state.interrupted ? "interrupted"
           : trainer->at.should_stop  ? "stopped"
                                      : "finished";
}

/* Set the stop reason of an interrupted run; returns it as the error for on_exception hooks. */
static const KilnError *interrupt(KilnTrainer *trainer, KilnError *why)
{
    const char *signal = kiln_signal_name(trainer->env->stop != NULL ? *trainer->env->stop : 0);

    kiln_error_set(why, KILN_E_INTERRUPTED, "interrupted%s%s", signal != NULL ? " by " : "",
                   signal != NULL ? signal : "");
    snprintf(trainer->state.stop_reason, sizeof(trainer->state.stop_reason), "%.500s", why->text);
    return why;
}

static KilnStatus begin(KilnTrainer *trainer, const KilnCheckpoint *checkpoint, KilnError *err)
{
    KilnStatus status = kiln_loggers_open(trainer, json_object_get(checkpoint->state, "loggers"),
                                          err);

    kiln_live_status_phase(trainer, KILN_LIVE_FIT);
    kiln_stop_monitor_begin(trainer, trainer->options.trainer->enable_checkpointing);
    return status >= 0 ? kiln_fit_loop_begin(trainer, err) : status;
}

/* After the last batch: save, test, and close what a run has opened. */
static KilnStatus end(KilnTrainer *trainer, KilnError *err)
{
    const bool writes = kiln_trainer_rank(trainer) == 0;
    KilnError why = { 0 };
    KilnStatus status = kiln_fit_loop_end(trainer, err);

    if (status >= 0 && writes)
        status = kiln_profile_close(trainer, err);
    if (status >= 0 && writes && trainer->options.trainer->enable_checkpointing)
        status = kiln_trainer_save_here(trainer, trainer->state.interrupted, err);
    if (status >= 0 && !trainer->state.interrupted && trainer->options.root->test)
        status = test(trainer, err);
    if (status >= 0 && trainer->state.interrupted)
        kiln_hooks_exception(trainer, interrupt(trainer, &why));
    if (status >= 0)
        status = kiln_loggers_flush(trainer, err); /* teardown may read the loggers' files */
    if (status >= 0)
        status = KILN_CALL(trainer, teardown, err);
    if (status >= 0)
        status = kiln_save_requests_finish(trainer, err);
    return status >= 0 ? kiln_loggers_close(trainer, status_of(trainer), err) : status;
}

static KilnStatus close_run(KilnTrainer *trainer, KilnError *err)
{
    kiln_stop_monitor_end(trainer);
    if (kiln_trainer_rank(trainer) > 0)
        return KILN_OK;
    kiln_output_status_line(&trainer->output, NULL);
    kiln_summary_print(trainer, status_of(trainer));
    KilnStatus status = kiln_summary_write(trainer, status_of(trainer), trainer->state.stop_reason,
                                           err);
    if (status >= 0) /* a sweep does not run a finished job again */
        status = kiln_tree_sync(trainer->run_dir, err);
    kiln_run_journal_end(trainer, status >= 0 ? status_of(trainer) : "failed",
                         status >= 0 ? trainer->state.stop_reason : err->text);
    return status;
}

static void set_result(const KilnTrainer *trainer, KilnStatus status, KilnRunResult *ret)
{
    if (ret == NULL || (trainer->run_dir == NULL && kiln_trainer_rank(trainer) == 0))
        return;
    snprintf(ret->run_dir, sizeof(ret->run_dir), "%s", kiln_trainer_run_dir(trainer));
    snprintf(ret->status, sizeof(ret->status), "%s", status < 0 ? "failed" : status_of(trainer));
}

/* ---- Batch by batch ------------------------------------------------------------------------ */

struct KilnFit {
    KilnTrainer trainer;
    KilnCheckpoint checkpoint;
    KilnRunEnv env;
    KilnStatus status; /* of the call that failed */
    KilnError why;
};

static void fit_free(KilnFit *fit)
{
    kiln_checkpoint_close(&fit->checkpoint);
    kiln_trainer_release(&fit->trainer);
    free(fit);
}

static KilnStatus report(KilnFit *fit, KilnError *err)
{
    if (fit->status < 0 && err != NULL) {
        *err = fit->why;
        err->status = fit->status;
    }
    return fit->status < 0 ? fit->status : KILN_OK;
}

/* The run failed with `status`: it saves what it can. */
static void fail(KilnFit *fit, KilnStatus status)
{
    fit->status = status;
    if (status < 0)
        kiln_failure_close(&fit->trainer, &fit->why);
}

static KilnStatus open_fit(KilnConfig *config, const KilnRunEnv *env, KilnRunResult *ret_result,
                           KilnFit **ret, KilnError *err)
{
    KilnFit *fit = calloc(1, sizeof(*fit));

    if (fit == NULL)
        return kiln_error_nomem(err, sizeof(*fit));
    fit->env = *env;
    fit->status = prepare(&fit->trainer, config, &fit->env, &fit->checkpoint, &fit->why);
    if (fit->status >= 0)
        fail(fit, begin(&fit->trainer, &fit->checkpoint, &fit->why));
    if (fit->status >= 0) {
        *ret = fit;
        return KILN_OK;
    }
    const KilnStatus status = report(fit, err);
    set_result(&fit->trainer, status, ret_result);
    fit_free(fit);
    return status;
}

KilnStatus kiln_fit_open(KilnConfig *config, const KilnRunEnv *env, KilnFit **ret, KilnError *err)
{
    return open_fit(config, env, NULL, ret, err);
}

KilnStatus kiln_fit_step(KilnFit *fit, bool *ret_more, KilnError *err)
{
    if (fit->status >= 0)
        fail(fit, kiln_fit_loop_step(&fit->trainer, &fit->why));
    const KilnStatus status = report(fit, err);
    if (status >= 0)
        *ret_more = !kiln_fit_loop_is_over(&fit->trainer);
    return status;
}

KilnTrainer *kiln_fit_trainer(KilnFit *fit)
{
    return &fit->trainer;
}

KilnStatus kiln_fit_close(KilnFit *fit, KilnRunResult *ret, KilnError *err)
{
    if (fit == NULL)
        return KILN_OK;
    if (fit->status >= 0) {
        fail(fit, end(&fit->trainer, &fit->why));
        if (fit->status >= 0)
            fit->status = close_run(&fit->trainer, &fit->why);
    }
    const KilnStatus status = report(fit, err);
    set_result(&fit->trainer, status, ret);
    fit_free(fit);
    return status;
}

KilnStatus kiln_run_fit(KilnConfig *config, const KilnRunEnv *env, KilnRunResult *ret,
                        KilnError *err)
{
    KilnFit *fit = NULL;
    KilnStatus status = open_fit(config, env, ret, &fit, err);

    if (status < 0)
        return status;
    while (status >= 0 && !kiln_fit_loop_is_over(&fit->trainer))
        status = kiln_fit_loop_step(&fit->trainer, &fit->why);
    fail(fit, status);
    return kiln_fit_close(fit, ret, err);
}
