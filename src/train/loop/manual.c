/* Manual optimization: training batches in the hands of a module that drives its own steps. */
#include "train/loop/manual.h"

#include "base/call.h"
#include "kiln/manual.h"

#include <math.h>

#include "graph/plan/plan_report.h"
#include "train/analysis/model_layers.h"
#include "train/trainer.h"

struct KilnManual {
    KilnTrainer *trainer;
    const KilnBatch *batch;
    bool planning;
    int64_t begun;    /* steps of this batch */
    size_t optimizer; /* of the step that is recorded */
    KilnClipping clip;
    double flops, flops_backward; /* of what was planned */
};

static const KilnModuleOps *ops_of(const KilnTrainer *trainer)
{
    return kiln_instance_component(trainer->module)->ops.module;
}

bool kiln_trainer_is_manual(const KilnTrainer *trainer)
{
    return ops_of(trainer)->manual_step != NULL;
}

/* ---- Recording ------------------------------------------------------------------------- */

/* Which parameters the next step trains; of no optimizer none. */
static void choose(KilnTrainer *trainer, size_t optimizer)
{
    const KilnSegments none = { 0 };

    kiln_segments_require_grad(
        optimizer < trainer->n_optimizers ? &trainer->optimizers[optimizer].segments : &none,
        trainer->params);
}

KilnStep *kiln_manual_begin(KilnManual *manual, size_t optimizer)
{
    KilnTrainer *trainer = manual->trainer;
    /* Each step of a batch has a dropout key of its own. */
    const int64_t number = trainer->at.batches + (manual->begun++ << 48);

    manual->optimizer = optimizer;
    manual->clip = (KilnClipping) { 0 };
    choose(trainer, optimizer);
    kiln_step_begin(&trainer->step, KILN_PHASE_FIT, true, manual->batch,
                    (uint64_t)trainer->options.root->seed, number);
    if (optimizer != KILN_NO_OPTIMIZER && optimizer >= trainer->n_optimizers)
        kiln_graph_poison(trainer->graph, "a step for optimizer %zu, but the task has %zu",
                          optimizer, trainer->n_optimizers);
    return &trainer->step;
}

void kiln_manual_clip_norm(KilnManual *manual, double limit)
{
    manual->clip = (KilnClipping) { .limit = limit, .by_norm = true };
}

void kiln_manual_clip_value(KilnManual *manual, double limit)
{
    manual->clip = (KilnClipping) { .limit = limit };
}

static void record_update(KilnManual *manual, KilnTensor *loss)
{
    KilnTrainer *trainer = manual->trainer;
    KilnRecording at = {
        .step = &trainer->step,
        .loss = loss,
        .steps = true,
        .optimizer = manual->optimizer,
    };

    KILN_RECORD(trainer, on_before_backward, &at);
    trainer->graph->accumulates = false;
    kiln_graph_backward(trainer->graph, loss);
    at.gradients = kiln_params_flat_gradients(trainer->params, trainer->graph);
    KILN_RECORD(trainer, on_after_backward, &at);
    kiln_optimize_record(trainer, &at, manual->clip);
}

/* ---- Planning and running ------------------------------------------------------------------ */

static KilnStatus plan(KilnManual *manual, KilnTensor *loss, KilnError *err)
{
    KilnTrainer *trainer = manual->trainer;
    KilnPlan *made = NULL;
    KilnStatus status = kiln_graph_check(trainer->graph, err);

    if (status >= 0 && trainer->layers == NULL)
        status = kiln_trainer_read_layers(trainer, err);
    if (status >= 0)
        status = kiln_step_plan(&trainer->step, loss, &made, err);
    if (status < 0)
        return status;
    kiln_memory_estimate_add_plan(&trainer->memory, made);
    kiln_memory_estimate_add_metrics(&trainer->memory, &trainer->step,
                                     kiln_trainer_set_samples(trainer, KILN_TRAIN, 0));
    manual->flops += kiln_plan_flops(made, false);
    manual->flops_backward += kiln_plan_flops(made, true);
    return KILN_OK;
}

static KilnStatus run(KilnManual *manual, KilnTensor *loss, KilnError *err)
{
    KilnTrainer *trainer = manual->trainer;
    KilnStatus status = kiln_step_run(&trainer->step, loss, err);

    trainer->state.params_invalid = status == KILN_E_NUMERIC;
    if (status == KILN_E_NUMERIC)
        return kiln_fit_prefix_error(trainer, err);
    if (status < 0)
        return status;
    if (loss != NULL)
        kiln_fit_publish_loss(trainer, kiln_tensor_scalar(loss));
    if (loss != NULL && !isfinite(kiln_tensor_scalar(loss)))
        return kiln_fit_not_finite(trainer, kiln_tensor_scalar(loss), err);
    return trainer->options.tracks
               ? kiln_step_count(&trainer->step, trainer->at.epoch, trainer->batch.log_step, err)
               : KILN_OK;
}

KilnStatus kiln_manual_update(KilnManual *manual, KilnTensor *loss, KilnError *err)
{
    KilnTrainer *trainer = manual->trainer;

    if (manual->begun == 0 || manual->optimizer == KILN_NO_OPTIMIZER)
        return kiln_error_set(err, KILN_E_RANGE,
                              "kiln_manual_update: no optimizer was named to kiln_manual_begin");
    if (manual->optimizer < trainer->n_optimizers)
        record_update(manual, loss);
    if (manual->planning)
        return plan(manual, loss, err);
    KilnStatus status = run(manual, loss, err);
    if (status >= 0)
        trainer->optimizers[manual->optimizer].updates++;
    return status;
}

KilnStatus kiln_manual_run(KilnManual *manual, KilnTensor *const *tensors, size_t n, KilnError *err)
{
    KilnStep *step = &manual->trainer->step;

    if (manual->begun == 0 || n > KILN_STEP_READS)
        return kiln_error_set(err, KILN_E_RANGE,
                              "kiln_manual_run: at most %d tensors, behind kiln_manual_begin",
                              (int)KILN_STEP_READS);
    step->reads = tensors;
    step->n_reads = n;
    return manual->planning ? plan(manual, NULL, err) : run(manual, NULL, err);
}

/* ---- A batch ------------------------------------------------------------------------------ */

/* What is recorded behind it is as if no step of the batch had been. */
static KilnStatus in_hands(KilnManual *manual, KilnError *err)
{
    KilnTrainer *trainer = manual->trainer;

    trainer->step.batch = *manual->batch;
    KilnStatus status = KILN_CALLED(trainer->module, "manual_step",
                                    ops_of(trainer)->manual_step(trainer->module, manual, err),
                                    err);
    choose(trainer, 0);
    return status;
}

KilnStatus kiln_manual_batch(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    KilnManual manual = { .trainer = trainer, .batch = batch };
    KilnStatus status = in_hands(&manual, err);

    if (status >= 0)
        trainer->at.step++;
    else
        trainer->state.params_invalid = true; /* by a part of what the batch was to do */
    return status;
}

KilnStatus kiln_manual_plan(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    KilnManual manual = { .trainer = trainer, .batch = batch, .planning = true };
    KilnStatus status = in_hands(&manual, err);

    trainer->memory.flops = manual.flops;
    trainer->memory.flops_backward = manual.flops_backward;
    if (status < 0)
        (void)kiln_error_prefix(err,
                                "training step of task %s: ", kiln_instance_name(trainer->module));
    return status;
}

/* ---- What the module can ask -------------------------------------------------------------- */

bool kiln_manual_planning(const KilnManual *manual)
{
    return manual->planning;
}

int64_t kiln_manual_batch_size(const KilnManual *manual)
{
    return manual->batch->size;
}

const void *kiln_manual_feature(const KilnManual *manual, const char *name)
{
    int64_t n;

    return kiln_trainer_feature(manual->trainer, name, &n);
}

void kiln_manual_rng(const KilnManual *manual, uint32_t purpose, KilnRng *ret)
{
    kiln_rng_init(ret, (uint64_t)manual->trainer->options.root->seed, purpose, 0,
                  (uint64_t)manual->trainer->at.batches);
}

void kiln_manual_log(KilnManual *manual, const char *name, double value, unsigned flags)
{
    KilnTrainer *trainer = manual->trainer;

    if (manual->planning)
        (void)kiln_metrics_declare(trainer->metrics, KILN_PHASE_FIT, name,
                                   kiln_log_flags(KILN_PHASE_FIT, flags));
    else
        kiln_trainer_log(trainer, name, value, flags);
}
