/* kiln_run_eval: evaluates a checkpoint on a split. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "kiln/tools/clock.h"
#include "train/assemble.h"
#include "train/checkpoint/checkpoint.h"
#include "train/loader/data_summary.h"

static json_t *metrics_json(const KilnTrainer *trainer)
{
    const KilnMetric *metrics;
    size_t n = kiln_metrics_list(trainer->metrics, &metrics);
    json_t *all = json_object();

    for (size_t i = 0; i < n; i++)
        kiln_json_put(&all, metrics[i].name,
                      isfinite(metrics[i].value) ? json_real(metrics[i].value) : json_null());
    return all;
}

/* {"checkpoint", "metrics": {name: value}, "samples", "wall_s"} as one line. */
static KilnStatus report(const KilnTrainer *trainer, const KilnCheckpoint *checkpoint,
                         char **ret_json, KilnError *err)
{
    json_t *json = json_pack("{s:s, s:o, s:I, s:f}", "checkpoint", checkpoint->path, "metrics",
                             metrics_json(trainer), "samples",
                             (json_int_t)trainer->timing.phase_samples, "wall_s",
                             kiln_clock() - trainer->timing.start);
    char *text = json != NULL ? kiln_json_dump(json, JSON_REAL_PRECISION(17)) : NULL;

    json_decref(json);
    if (text == NULL)
        return kiln_error_nomem(err, 1);
    if (ret_json != NULL)
        *ret_json = text;
    else
        free(text);
    return KILN_OK;
}

static KilnStatus evaluate(KilnTrainer *trainer, KilnConfig *config, const KilnRunEnv *env,
                           KilnSplit split, KilnCheckpoint *checkpoint, KilnError *err)
{
    const bool tests = split == KILN_TEST;

    trainer->split = split;
    KilnStatus status = kiln_checkpoint_open_configured(config, checkpoint, err);

    trainer->checkpoint = checkpoint->path;
    trainer->fitted = checkpoint->fitted;
    trainer->saved_class_counts = json_object_get(checkpoint->state, "class_counts");
    if (status >= 0)
        status = kiln_trainer_assemble(trainer, config, env,
                                       tests ? KILN_STAGE_TEST : KILN_STAGE_VALIDATE, NULL, err);
    if (status >= 0)
        status = kiln_checkpoint_load_weights(checkpoint, trainer, err);
    if (status < 0)
        return status;
    kiln_data_summary_warn(trainer);
    trainer->at = checkpoint->at;
    status = KILN_CALL(trainer, setup, err);
    if (status >= 0)
        status = kiln_checkpoint_load_module(checkpoint, trainer, err);
    kiln_stop_monitor_begin(trainer, false);
    if (status >= 0)
        status = kiln_eval_loop(trainer, tests ? KILN_PHASE_TEST : KILN_PHASE_VALIDATE, err);
    kiln_data_summary_warn_skipped(trainer);
    if (status >= 0 && kiln_trainer_split_batches(trainer, split) == 0)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "datamodule %s has no %s samples (or limit_%s_batches=0)",
                                kiln_instance_name(trainer->datamodule), kiln_split_name(split),
                                kiln_split_name(split));
    if (status >= 0 && trainer->state.interrupted)
        status = kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted before the end of the %s",
                                tests ? "test" : "validation");
    return kiln_hooks_end(trainer, status, err);
}

KilnStatus kiln_run_eval(KilnConfig *config, const KilnRunEnv *env, KilnSplit split,
                         char **ret_json, KilnError *err)
{
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));
    KilnCheckpoint checkpoint = { 0 };

    if (trainer == NULL)
        return kiln_error_nomem(err, sizeof(*trainer));
    KilnStatus status = evaluate(trainer, config, env, split, &checkpoint, err);
    if (status >= 0)
        status = report(trainer, &checkpoint, ret_json, err);
    kiln_trainer_release(trainer);
    kiln_checkpoint_close(&checkpoint);
    free(trainer);
    return status;
}
