/* Manual optimization: a module with manual_step drives the steps of its training batches. The
 * functions of kiln/manual.h that it calls are here; recording, running and checking a step are
 * shared with train/step/fit_batch.c. */
#include "train/step/manual.h"

#include "base/call.h"
#include "kiln/manual.h"

#include "graph/plan/plan_report.h"
#include "train/analysis/model_layers.h"
#include "train/optim/optimize.h"
#include "train/trainer.h"

struct KilnManual {
    KilnTrainer *trainer;
    const KilnBatch *batch;
    bool planning;
    int64_t begun;    /* steps of this batch so far */
    size_t optimizer; /* of the step that is being recorded */
    KilnClipping clip;
    double flops, flops_backward; /* of the planned steps */
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

/* Select the parameters that the next step trains: those of the optimizer, or none. */
static void select_parameters(KilnTrainer *trainer, size_t optimizer)
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
    const int64_t number = kiln_fit_batch_number(trainer) + (manual->begun++ << 48);

    manual->optimizer = optimizer;
    manual->clip = (KilnClipping) { 0 };
    select_parameters(trainer, optimizer);
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
    if (kiln_ranks_several(&trainer->ranks) && !kiln_tensor_poisoned(loss))
        loss = kiln_scale(loss, 1.0 / (double)kiln_trainer_world(trainer));
    kiln_fit_record_gradients(trainer, &at, loss, false);
    if (!kiln_ranks_several(&trainer->ranks))
        kiln_optimize_record(trainer, &at, manual->clip);
}

/* ---- Planning and running ------------------------------------------------------------------ */

static KilnStatus plan_step(KilnManual *manual, KilnTensor *loss, KilnError *err)
{
    KilnTrainer *trainer = manual->trainer;
    KilnPlan *plan = NULL;
    KilnStatus status = kiln_graph_check(trainer->graph, err);

    if (status >= 0 && trainer->layers == NULL)
        status = kiln_trainer_read_layers(trainer, err);
    if (status >= 0)
        status = kiln_step_plan(&trainer->step, loss, &plan, err);
    if (status < 0)
        return status;
    kiln_memory_estimate_add_plan(&trainer->memory, plan);
    kiln_memory_estimate_add_metrics(&trainer->memory, &trainer->step,
                                     kiln_trainer_set_samples(trainer, KILN_TRAIN, 0));
    manual->flops += kiln_plan_flops(plan, false);
    manual->flops_backward += kiln_plan_flops(plan, true);
    return KILN_OK;
}

static KilnStatus run_step(KilnManual *manual, KilnTensor *loss, KilnError *err)
{
    KilnTrainer *trainer = manual->trainer;
    KilnStatus status = kiln_fit_run_step(trainer, loss, err);

    return status >= 0 ? kiln_fit_update_metrics(trainer, trainer->batch.log_step, err) : status;
}

/* The update from the gradients of all ranks, a step of its own. */
static KilnStatus update_with_ranks(KilnManual *manual, KilnError *err)
{
    KilnTrainer *trainer = manual->trainer;

    if (manual->planning) {
        kiln_fit_update_record(trainer, manual->optimizer, manual->clip);
        return plan_step(manual, NULL, err);
    }
    trainer->ranks.computed = true;
    KilnStatus status = kiln_ranks_reduce(trainer, err);
    return status >= 0 ? kiln_fit_update(trainer, manual->optimizer, manual->clip,
                                         trainer->batch.log_step, err)
                       : status;
}

KilnStatus kiln_manual_update(KilnManual *manual, KilnTensor *loss, KilnError *err)
{
    KilnTrainer *trainer = manual->trainer;

    if (manual->begun == 0 || manual->optimizer == KILN_NO_OPTIMIZER)
        return kiln_error_set(err, KILN_E_RANGE,
                              "kiln_manual_update: no optimizer was named to kiln_manual_begin");
    if (manual->optimizer < trainer->n_optimizers)
        record_update(manual, loss);
    KilnStatus status = manual->planning ? plan_step(manual, loss, err)
                                         : run_step(manual, loss, err);
    if (status >= 0 && kiln_ranks_several(&trainer->ranks))
        status = update_with_ranks(manual, err);
    if (status >= 0 && !manual->planning)
        trainer->optimizers[manual->optimizer].updates++;
    return status;
}

KilnStatus kiln_manual_run(KilnManual *manual, KilnTensor *const *tensors, size_t n, KilnError *err)
{
    KilnStep *step = &manual->trainer->step;

    if (manual->begun == 0 || n > KILN_STEP_EXTRA_READS)
        return kiln_error_set(err, KILN_E_RANGE,
                              "kiln_manual_run: at most %d tensors, after kiln_manual_begin",
                              (int)KILN_STEP_EXTRA_READS);
    step->extra_reads = tensors;
    step->n_extra_reads = n;
    return manual->planning ? plan_step(manual, NULL, err) : run_step(manual, NULL, err);
}

/* ---- A batch ------------------------------------------------------------------------------ */

/* Afterwards the parameters of optimizer 0 are selected again, as before any step. */
static KilnStatus call_manual_step(KilnManual *manual, KilnError *err)
{
    KilnTrainer *trainer = manual->trainer;

    trainer->step.batch = *manual->batch;
    KilnStatus status = KILN_CALLED(trainer->module, "manual_step",
                                    ops_of(trainer)->manual_step(trainer->module, manual, err),
                                    err);
    select_parameters(trainer, 0);
    return status;
}

/* Steps without an update may have changed running statistics since the last one. */
static KilnStatus end_round(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_ranks_share_statistics(trainer, err);

    return status >= 0 ? kiln_ranks_collect_metrics(trainer, KILN_PHASE_FIT,
                                                    trainer->batch.log_step, NULL, err)
                       : status;
}

KilnStatus kiln_manual_batch(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    KilnManual manual = { .trainer = trainer, .batch = batch };

    if (batch->size == 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "rank %d has no batch to train, and manual optimization needs one on "
                              "each rank: do not leave out batches, and resume with the ranks of "
                              "the checkpoint",
                              kiln_trainer_rank(trainer));
    KilnStatus status = call_manual_step(&manual, err);

    if (status >= 0 && kiln_ranks_several(&trainer->ranks))
        status = end_round(trainer, err);
    if (status >= 0)
        trainer->at.step++;
    else
        trainer->state.params_invalid = true; /* the batch was trained in part */
    return status;
}

KilnStatus kiln_manual_plan(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    KilnManual manual = { .trainer = trainer, .batch = batch, .planning = true };
    KilnStatus status = call_manual_step(&manual, err);

    trainer->memory.flops = manual.flops;
    trainer->memory.flops_backward = manual.flops_backward;
    if (status < 0)
        (void)kiln_error_prefix(err,
                                "training step of task %s: ", kiln_instance_name(trainer->module));
    return status;
}

/* ---- Queries by the module ---------------------------------------------------------------- */

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
                  (uint64_t)kiln_fit_batch_number(manual->trainer));
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
