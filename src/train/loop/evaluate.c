/* Runs the validation, test and sanity loops; train/loop/loop_schedule.c decides when training
 * validates. */
#include "train/loop/evaluate.h"

#include "base/call.h"
#include "kiln/tools/clock.h"
#include "train/optim/averaged_weights.h"
#include "train/step/row_results_state.h"
#include "train/trainer.h"

/* The hooks of one phase, by offset in KilnCallbackOps. */
typedef struct EvalHooks {
    size_t start, epoch_start, batch_start, batch_end, epoch_end, end;
} EvalHooks;

#define EVAL_HOOKS(phase)                                                                          \
    {                                                                                              \
        offsetof(KilnCallbackOps, on_##phase##_start),                                             \
            offsetof(KilnCallbackOps, on_##phase##_epoch_start),                                   \
            offsetof(KilnCallbackOps, on_##phase##_batch_start),                                   \
            offsetof(KilnCallbackOps, on_##phase##_batch_end),                                     \
            offsetof(KilnCallbackOps, on_##phase##_epoch_end),                                     \
            offsetof(KilnCallbackOps, on_##phase##_end)                                            \
    }

static const EvalHooks validation_hooks = EVAL_HOOKS(validation);
static const EvalHooks test_hooks = EVAL_HOOKS(test);

static KilnStatus call(KilnTrainer *trainer, size_t hook, KilnError *err)
{
    return kiln_hooks_call(trainer, hook, KILN_HOOKS_ALL, err);
}

void kiln_eval_record(KilnTrainer *trainer, KilnPhase phase, const KilnBatch *batch)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;

    kiln_step_begin(&trainer->step, phase == KILN_PHASE_SANITY ? KILN_PHASE_VALIDATE : phase, false,
                    batch, (uint64_t)trainer->options.root->seed, batch->index);
    const bool tests = phase == KILN_PHASE_TEST && ops->test_step != NULL;
    kiln_call_enter(trainer->module, tests ? "test_step" : "validation_step");
    if (tests)
        ops->test_step(trainer->module, &trainer->step);
    else if (ops->validation_step != NULL)
        ops->validation_step(trainer->module, &trainer->step);
    kiln_call_leave();
}

/* `done` batches of all sets are over after this one. */
static KilnStatus eval_batch(KilnTrainer *trainer, KilnPhase phase, const EvalHooks *hooks,
                             int64_t done, const KilnBatch *batch, KilnError *err)
{
    KilnStatus status = call(trainer, hooks->batch_start, err);

    if (status < 0)
        return status;
    kiln_eval_record(trainer, phase, batch);
    status = kiln_step_run(&trainer->step, NULL, err);
    if (status >= 0 && phase != KILN_PHASE_SANITY)
        status = kiln_step_finish(trainer, &trainer->step, NULL, err);
    if (status >= 0 && trainer->options.tracks && phase != KILN_PHASE_SANITY)
        status = kiln_step_update_metrics(&trainer->step, trainer->at.epoch, trainer->at.step, err);
    trainer->eval.batch = done;
    trainer->timing.phase_samples += batch->size;
    const int64_t every = trainer->options.trainer->log_every_n_steps;
    if (status >= 0 && every > 0 && trainer->eval.batch % every == 0)
        status = kiln_loggers_send(trainer, false, err);
    return status >= 0 ? call(trainer, hooks->batch_end, err) : status;
}

/* Batches of a set in this evaluation. */
static int64_t batches_of(const KilnTrainer *trainer, KilnPhase phase, KilnSplit split, size_t set)
{
    const int64_t all = kiln_trainer_set_batches(trainer, split, set);
    const int64_t limit = trainer->options.trainer->num_sanity_val_steps;

    return phase == KILN_PHASE_SANITY && limit >= 0 && limit < all ? limit : all;
}

/* Evaluate a set together with other ranks: in each round, a batch of it on each. */
static KilnStatus eval_rounds(KilnTrainer *trainer, KilnPhase phase, const EvalHooks *hooks,
                              KilnLoader *loader, int64_t batches, KilnError *err)
{
    const int64_t world = kiln_trainer_world(trainer), before = trainer->eval.batch;
    KilnStatus status = kiln_ranks_agree(trainer, err);

    for (int64_t first = 0;
         status >= 0 && first < batches && loader != NULL && !kiln_trainer_interrupted(trainer);
         first += world) {
        const int64_t end = first + world < batches ? first + world : batches;
        KilnBatch batch = { 0 };

        if (first + trainer->ranks.rank < end)
            status = kiln_trainer_next_batch(trainer, loader, &batch, err);
        if (status >= 0 && batch.size > 0)
            status = eval_batch(trainer, phase, hooks, before + end, &batch, err);
        kiln_live_status_update(trainer, kiln_clock());
        if (status >= 0)
            status = kiln_ranks_agree(trainer, err);
    }
    return status;
}

static KilnStatus eval_batches(KilnTrainer *trainer, KilnPhase phase, const EvalHooks *hooks,
                               KilnLoader *loader, int64_t end, KilnError *err)
{
    const int64_t before = trainer->eval.batch;
    KilnStatus status = KILN_OK;
    KilnBatch batch;

    while (status >= 0 && loader != NULL && trainer->eval.batch < end &&
           !kiln_trainer_interrupted(trainer)) {
        status = kiln_trainer_next_batch(trainer, loader, &batch, err);
        if (status == KILN_E_INTERRUPTED && kiln_trainer_interrupted(trainer))
            return KILN_OK;
        if (status < 0 || batch.size == 0)
            break;
        status = eval_batch(trainer, phase, hooks, before + batch.index + 1, &batch, err);
        kiln_live_status_update(trainer, kiln_clock());
    }
    return status;
}

static KilnStatus eval_set(KilnTrainer *trainer, KilnPhase phase, const EvalHooks *hooks,
                           KilnSplit split, KilnError *err)
{
    const size_t set = trainer->eval.set;
    const int64_t batches = batches_of(trainer, phase, split, set);
    const int64_t end = trainer->eval.batch + batches;
    KilnLoader *loader = NULL;
    KilnStatus status = kiln_trainer_loader(trainer, split, set, &loader, err);

    if (status >= 0 && loader != NULL)
        status = kiln_loader_start(loader, 0, 0, err);
    if (status == KILN_E_INTERRUPTED && kiln_trainer_interrupted(trainer))
        return KILN_OK;
    if (status >= 0)
        status = kiln_ranks_several(&trainer->ranks)
                     ? eval_rounds(trainer, phase, hooks, loader, batches, err)
                     : eval_batches(trainer, phase, hooks, loader, end, err);
    trainer->eval.batch = end;
    return status;
}

static KilnStatus eval_sets(KilnTrainer *trainer, KilnPhase phase, const EvalHooks *hooks,
                            KilnSplit split, KilnError *err)
{
    const KilnSplitSets *sets = &trainer->data.sets[split];
    KilnStatus status = KILN_OK;

    for (size_t set = 0; set < sets->n && status >= 0 && !trainer->state.interrupted; set++) {
        trainer->eval.set = set;
        trainer->step.set = sets->list[set].name;
        status = eval_set(trainer, phase, hooks, split, err);
    }
    trainer->eval.set = 0;
    trainer->step.set = "";
    return status;
}

/* Values are sent to the loggers before callbacks save checkpoints. */
static KilnStatus call_end(KilnTrainer *trainer, KilnPhase phase, const EvalHooks *hooks,
                           KilnError *err)
{
    KilnStatus status = kiln_hooks_call(trainer, hooks->end, KILN_HOOKS_NOT_SAVING, err);

    if (status >= 0 && phase == KILN_PHASE_VALIDATE)
        status = kiln_loggers_send(trainer, true, err);
    return status >= 0 ? kiln_hooks_call(trainer, hooks->end, KILN_HOOKS_SAVING, err) : status;
}

/* Create the loaders of all sets, and count their batches. */
static KilnStatus open_sets(KilnTrainer *trainer, KilnPhase phase, KilnSplit split,
                            int64_t *ret_batches, KilnError *err)
{
    KilnStatus status = kiln_trainer_open_split(trainer, split, err);

    *ret_batches = 0;
    for (size_t set = 0; set < trainer->data.sets[split].n && status >= 0; set++) {
        KilnLoader *loader = NULL;

        status = kiln_trainer_loader(trainer, split, set, &loader, err);
        if (status >= 0 && loader != NULL)
            *ret_batches += batches_of(trainer, phase, split, set);
    }
    return status;
}

static void enter(KilnTrainer *trainer, KilnPhase phase, int64_t batches)
{
    trainer->phase = phase;
    trainer->eval.batch = 0;
    trainer->eval.batches = batches;
    trainer->timing.phase_start = kiln_clock();
    trainer->timing.phase_samples = 0;
    kiln_live_status_update(trainer, trainer->timing.phase_start);
    kiln_metrics_clear(trainer->metrics, phase);
    kiln_loggers_discard_steps(trainer);
}

/* The start hooks and all sets, with the averaged weights in use. */
static KilnStatus run_sets(KilnTrainer *trainer, KilnPhase phase, const EvalHooks *hooks,
                           KilnSplit split, KilnError *err)
{
    kiln_averaged_swap_in(trainer->averaged);
    KilnStatus status = call(trainer, hooks->start, err);
    if (status >= 0)
        status = call(trainer, hooks->epoch_start, err);
    if (status >= 0)
        status = eval_sets(trainer, phase, hooks, split, err);
    kiln_averaged_swap_out(trainer->averaged);
    return status;
}

KilnStatus kiln_trainer_end_metrics(KilnTrainer *trainer, KilnPhase phase, KilnError *err)
{
    const bool several = kiln_ranks_several(&trainer->ranks);
    KilnStatus status = KILN_OK;

    if (several && phase != KILN_PHASE_FIT) /* those of training came round by round */
        status = kiln_ranks_collect_metrics(trainer, phase, trainer->at.step, NULL, err);
    if (status >= 0 && trainer->ranks.rank == 0)
        status = kiln_metrics_end_epoch(trainer->metrics, phase, trainer->at.epoch,
                                        trainer->at.step, err);
    if (trainer->ranks.rank > 0)
        kiln_metrics_clear(trainer->metrics, phase);
    return status >= 0 && several ? kiln_ranks_publish_metrics(trainer, err) : status;
}

/* The values of the whole evaluation, and the end hooks. */
static KilnStatus end_epoch(KilnTrainer *trainer, KilnPhase phase, const EvalHooks *hooks,
                            KilnError *err)
{
    KilnStatus status = kiln_trainer_end_metrics(trainer, phase, err);

    if (status >= 0 && phase == KILN_PHASE_VALIDATE)
        trainer->at.last_val_batch = trainer->at.batches;
    if (status >= 0)
        status = call(trainer, hooks->epoch_end, err);
    return status >= 0 && !trainer->state.interrupted ? call_end(trainer, phase, hooks, err)
                                                      : status;
}

KilnStatus kiln_eval_loop(KilnTrainer *trainer, KilnPhase phase, KilnError *err)
{
    const KilnSplit split = kiln_trainer_eval_split(trainer, phase);
    const EvalHooks *hooks = phase == KILN_PHASE_TEST ? &test_hooks : &validation_hooks;
    const KilnPhase before = trainer->phase;
    const double phase_start = trainer->timing.phase_start;
    const int64_t phase_samples = trainer->timing.phase_samples;
    int64_t batches = 0;
    KilnStatus status = open_sets(trainer, phase, split, &batches, err);

    if (status < 0 || batches == 0)
        return status;
    enter(trainer, phase, batches);
    status = run_sets(trainer, phase, hooks, split, err);
    if (status < 0 || trainer->state.interrupted)
        kiln_metrics_clear(trainer->metrics, phase);
    else
        status = end_epoch(trainer, phase, hooks, err);
    if (status >= 0)
        status = kiln_ranks_agree(trainer, err);
    trainer->phase = before;
    if (before == KILN_PHASE_FIT && phase == KILN_PHASE_VALIDATE) {
        /* Validation does not count as training time. */
        trainer->timing.phase_samples = phase_samples;
        trainer->timing.phase_start = phase_start + (kiln_clock() - trainer->timing.phase_start);
    }
    return status;
}
