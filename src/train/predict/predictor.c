/* Opens and frees predictors, and runs their steps. */
#include "train/predict/predictor.h"

#include <stdlib.h>

#include "base/call.h"
#include "base/system/machine.h"
#include "train/assemble.h"
#include "train/predict/prepare.h"
#include "train/run/checkpoint_config.h"
#include "train/step/row_results_state.h"
#include "train/trainer.h"

/* ---- Opening ------------------------------------------------------------------------------- */

KilnStatus kiln_predictor_build(const KilnPredictorBuild *build, KilnPredictor **ret,
                                KilnError *err)
{
    KilnPredictor *predictor = calloc(1, sizeof(*predictor));
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));

    if (predictor == NULL || trainer == NULL) {
        free(predictor);
        free(trainer);
        return kiln_error_nomem(err, sizeof(*trainer));
    }
    predictor->trainer = trainer;
    predictor->env = *build->env;
    trainer->split = build->split;
    trainer->no_callbacks = !build->callbacks;
    pthread_mutex_init(&predictor->recording, NULL);
    KilnStatus status = kiln_checkpoint_open_configured(build->config, &predictor->checkpoint, err);
    trainer->checkpoint = predictor->checkpoint.path;
    trainer->fitted = predictor->checkpoint.fitted;
    if (status >= 0)
        status = kiln_trainer_assemble(trainer, build->config, &predictor->env, KILN_STAGE_PREDICT,
                                       build->remembered ? &predictor->checkpoint.spec : NULL, err);
    if (status >= 0)
        status = kiln_checkpoint_load_weights(&predictor->checkpoint, trainer, err);
    if (status >= 0)
        status = kiln_predict_slots_init(&predictor->slots, trainer, build->max_calls, err);
    if (status < 0) {
        kiln_predictor_free(predictor);
        return status;
    }
    *ret = predictor;
    return KILN_OK;
}

KilnStatus kiln_predictor_start(KilnPredictor *predictor, KilnError *err)
{
    KilnStatus status = KILN_CALL(predictor->trainer, setup, err);

    predictor->started = true;
    return status >= 0
               ? kiln_checkpoint_load_module(&predictor->checkpoint, predictor->trainer, err)
               : status;
}

KilnStatus kiln_predictor_end(KilnPredictor *predictor, KilnStatus status, KilnError *err)
{
    if (!predictor->started)
        return status;
    predictor->started = false;
    return kiln_hooks_end(predictor->trainer, status, err);
}

/* Build it for the checkpoint at `path`, and have it start. */
static KilnStatus open_checkpoint(const KilnPredictorSpec *spec, const char *path,
                                  KilnPredictor **ret, KilnError *err)
{
    const KilnRunEnv env = { .registry = spec->registry, .console = spec->console };
    KilnPredictorBuild build = {
        .env = &env,
        .remembered = true,
        .split = KILN_TEST,
        .max_calls = spec->max_calls > 0 ? spec->max_calls : kiln_processors_here().threads,
    };
    KilnPredictor *predictor = NULL;
    KilnStatus status = kiln_checkpoint_config_compose(path, spec->registry, spec->overrides,
                                                       &build.config, err);

    if (status >= 0)
        status = kiln_predictor_build(&build, &predictor, err);
    if (status < 0) {
        kiln_config_free(build.config);
        return status;
    }
    predictor->config = build.config;
    status = kiln_preprocessor_init(&predictor->preprocessor, predictor->trainer->datamodule,
                                    &predictor->trainer->data.spec, err);
    if (status >= 0)
        status = kiln_predictor_start(predictor, err);
    if (status < 0)
        kiln_predictor_free(predictor);
    else
        *ret = predictor;
    return status;
}

KilnStatus kiln_predictor_open(const KilnPredictorSpec *spec, KilnPredictor **ret, KilnError *err)
{
    char *path = NULL;
    KilnStatus status = kiln_checkpoint_resolve(spec->ckpt_path, "outputs", &path, err);

    if (status >= 0)
        status = open_checkpoint(spec, path, ret, err);
    free(path);
    return status;
}

void kiln_predictor_free(KilnPredictor *predictor)
{
    if (predictor == NULL)
        return;
    (void)!kiln_predictor_end(predictor, KILN_OK, NULL);
    kiln_predict_slots_release(&predictor->slots);
    kiln_preprocessor_release(&predictor->preprocessor);
    kiln_trainer_release(predictor->trainer);
    kiln_checkpoint_close(&predictor->checkpoint);
    pthread_mutex_destroy(&predictor->recording);
    kiln_config_free(predictor->config);
    free(predictor->trainer);
    free(predictor);
}

/* ---- What it is ---------------------------------------------------------------------------- */

const char *kiln_predictor_checkpoint(const KilnPredictor *predictor)
{
    return predictor->checkpoint.path;
}

const KilnDataSpec *kiln_predictor_data_spec(const KilnPredictor *predictor)
{
    return &predictor->trainer->data.spec;
}

size_t kiln_predictor_fields(const KilnPredictor *predictor, const KilnRawField **ret)
{
    *ret = predictor->preprocessor.fields;
    return predictor->preprocessor.n_fields;
}

KilnStatus kiln_predictor_preprocess(const KilnPredictor *predictor, const KilnRawSample *raw,
                                     KilnSample **ret, KilnError *err)
{
    return kiln_features_make(&predictor->preprocessor, raw, ret, err);
}

void kiln_predictor_sample_free(const KilnPredictor *predictor, KilnSample *sample)
{
    kiln_features_free(&predictor->trainer->data.spec, sample);
}

/* ---- Steps --------------------------------------------------------------------------------- */

KilnStatus kiln_predictor_record(KilnPredictor *predictor, KilnPredictSlot *slot,
                                 const KilnBatch *batch, KilnPlan **ret, KilnError *err)
{
    KilnInstance *module = predictor->trainer->module;

    pthread_mutex_lock(&predictor->recording);
    kiln_step_begin(slot->step, KILN_PHASE_PREDICT, false, batch,
                    (uint64_t)predictor->trainer->options.root->seed, 0);
    kiln_call_enter(module, "predict_step");
    kiln_instance_component(module)->ops.module->predict_step(module, slot->step);
    kiln_call_leave();
    KilnStatus status = kiln_step_plan(slot->step, NULL, ret, err);
    pthread_mutex_unlock(&predictor->recording);
    return status;
}

KilnStatus kiln_predictor_step(KilnPredictor *predictor, KilnPredictSlot *slot,
                               const KilnBatch *batch, KilnError *err)
{
    KilnPlan *plan = NULL;
    KilnStatus status = kiln_predictor_record(predictor, slot, batch, &plan, err);

    if (status >= 0)
        status = kiln_step_execute(slot->step, NULL, plan, err);
    return status >= 0
               ? kiln_step_finish(predictor->trainer, slot->step, &predictor->recording, err)
               : status;
}
