/* Between gradients and weights: clipping, the schedules, the optimizers' updates. */
#include "train/optim/optimize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/system/zeros.h"
#include "train/optim/learning_rates.h"
#include "train/trainer.h"

static const KilnOptimizerOps *ops_of(const KilnOptimizerState *optimizer)
{
    return kiln_instance_component(optimizer->use.optimizer)->ops.optimizer;
}

/* NULL: no scheduler. */
static const KilnSchedulerOps *scheduler_ops(const KilnOptimizerState *optimizer)
{
    const KilnInstance *scheduler = optimizer->use.scheduler;

    return scheduler != NULL ? kiln_instance_component(scheduler)->ops.scheduler : NULL;
}

/* ---- Schedules ------------------------------------------------------------------------ */

/* All follow the steps of the run, so that they are over when it is. */
static KilnProgress progress_of(const KilnTrainer *trainer)
{
    return (KilnProgress) {
        .step = trainer->at.step,
        .epoch = trainer->at.epoch,
        .steps_per_epoch = kiln_loop_epoch_steps(&trainer->schedule, 0),
        .total_steps = kiln_loop_total_steps(&trainer->schedule),
        .total_epochs = kiln_loop_total_epochs(&trainer->schedule),
    };
}

/* The scheduler's factor for the next step. */
static double schedule(const KilnTrainer *trainer, const KilnOptimizerState *optimizer)
{
    KilnProgress at = progress_of(trainer);
    const KilnSchedulerOps *ops = scheduler_ops(optimizer);

    if (ops == NULL)
        return 1.0;
    kiln_call_enter(optimizer->use.scheduler, "factor");
    const double factor = ops->factor(optimizer->use.scheduler, &at);
    kiln_call_leave();
    return factor;
}

static KilnOptimizerCommon common_of(const KilnOptimizerState *optimizer)
{
    kiln_call_enter(optimizer->use.optimizer, "common");
    const KilnOptimizerCommon common = ops_of(optimizer)->common(optimizer->use.optimizer);
    kiln_call_leave();
    return common;
}

double kiln_optimize_rate(const KilnTrainer *trainer, const KilnOptimizerState *optimizer)
{
    return common_of(optimizer).lr * schedule(trainer, optimizer);
}

static KilnStatus check_schedule(const KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                                 KilnError *err)
{
    KilnProgress at = progress_of(trainer);
    const KilnSchedulerOps *ops = scheduler_ops(optimizer);
    KilnStatus status = KILN_OK;

    if (ops != NULL && ops->check != NULL)
        status = KILN_CALLED(optimizer->use.scheduler, "check",
                             ops->check(optimizer->use.scheduler, &at, err), err);
    if (status < 0)
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(optimizer->use.scheduler));
    return status;
}

static KilnStatus check_monitor(KilnTrainer *trainer, KilnOptimizerState *optimizer, KilnError *err)
{
    const KilnSchedulerOps *ops = scheduler_ops(optimizer);
    char option[256];
    int64_t mode;

    if (ops == NULL || ops->monitor == NULL)
        return KILN_OK;
    const KilnInstance *scheduler = optimizer->use.scheduler;
    const char *name = ops->monitor(scheduler, &mode);
    if (kiln_trainer_logs(trainer, name)) {
        KilnStatus status = kiln_trainer_mode(trainer, scheduler, name, mode,
                                              &optimizer->monitors_higher, err);

        return status >= 0 ? status : kiln_error_prefix(err, "%s: ", kiln_instance_path(scheduler));
    }
    snprintf(option, sizeof(option), "%s.monitor", kiln_instance_path(scheduler));
    return kiln_trainer_unknown_metric(trainer, option, name, err);
}

KilnStatus kiln_optimize_check(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->n_optimizers && status >= 0; i++)
        status = check_monitor(trainer, &trainer->optimizers[i], err);
    return status;
}

void kiln_optimize_observe(KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        const KilnOptimizerState *optimizer = &trainer->optimizers[i];
        const KilnSchedulerOps *ops = scheduler_ops(optimizer);
        int64_t mode;
        double value;

        if (ops == NULL || ops->monitor == NULL ||
            !kiln_trainer_step_metric(trainer, ops->monitor(optimizer->use.scheduler, &mode),
                                      &value))
            continue;
        kiln_call_enter(optimizer->use.scheduler, "observe");
        ops->observe(optimizer->use.scheduler, value, optimizer->monitors_higher);
        kiln_call_leave();
    }
}

/* ---- Set-up --------------------------------------------------------------------------- */

/* Names stand in checkpoints, between dots, and behind metrics. */
static KilnStatus check_names(const KilnTrainer *trainer, const KilnOptimizers *all, KilnError *err)
{
    const char *task = kiln_instance_name(trainer->module);

    for (size_t i = 0; i < all->n; i++) {
        const char *name = all->use[i].name;

        if (name == NULL && all->n > 1)
            return kiln_error_set(err, KILN_E_MISSING,
                                  "task %s: optimizer %zu of %zu has no name; each needs one", task,
                                  i + 1, all->n);
        if (name != NULL && (name[0] == '\0' || strpbrk(name, "./") != NULL))
            return kiln_error_set(err, KILN_E_RANGE,
                                  "task %s: optimizer \"%s\": a name without dots and slashes is "
                                  "needed",
                                  task, name);
        for (size_t k = 0; k < i && name != NULL; k++)
            if (strcmp(all->use[k].name, name) == 0)
                return kiln_error_set(err, KILN_E_KEY, "task %s has two optimizers named \"%s\"",
                                      task, name);
    }
    return KILN_OK;
}

static KilnStatus check_number(const KilnTrainer *trainer, const KilnOptimizers *all,
                               KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    const bool manual = ops->manual_step != NULL;

    if (manual || all->n == 1)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "task %s asks for %zu optimizers: a training_step has one; several are "
                          "for a module with manual_step",
                          kiln_instance_name(trainer->module), all->n);
}

/* What callbacks' factors are on top of. */
static KilnStatus keep_scales(KilnOptimizerState *optimizer, KilnError *err)
{
    const KilnSegments *segments = &optimizer->segments;

    optimizer->scales = calloc(segments->count + 1, sizeof(*optimizer->scales));
    if (optimizer->scales == NULL)
        return kiln_error_nomem(err, segments->count * sizeof(*optimizer->scales));
    for (size_t i = 0; i < segments->count; i++)
        optimizer->scales[i] = segments->rates[2 * i];
    return KILN_OK;
}

static KilnStatus set_up_one(KilnTrainer *trainer, const KilnOptimizerUse *use, KilnError *err)
{
    KilnOptimizerState *optimizer = &trainer->optimizers[trainer->n_optimizers++];

    optimizer->use = *use;
    const KilnOptimizerOps *ops = ops_of(optimizer);
    const KilnOptimizerCommon common = common_of(optimizer);
    const bool vary = kiln_learning_rates_vary(trainer);
    KilnStatus status = kiln_segments_new(trainer->params, use->params, &common,
                                          ops->per_parameter || vary, &optimizer->segments, err);
    if (status < 0) {
        (void)kiln_error_prefix(err, "%s.", kiln_instance_path(use->optimizer));
        return status;
    }
    if (vary)
        status = keep_scales(optimizer, err);
    if (status < 0)
        return status;
    optimizer->n_slots = ops->slots(use->optimizer, optimizer->slot_names);
    return check_schedule(trainer, optimizer, err);
}

KilnStatus kiln_optimize_set_up(KilnTrainer *trainer, KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    KilnOptimizers all = { 0 };
    KilnStatus status = KILN_OK;

    if (ops->configure_optimizers != NULL)
        status = KILN_CALLED(trainer->module, "configure_optimizers",
                             ops->configure_optimizers(trainer->module, &all, err), err);
    if (status >= 0)
        status = check_number(trainer, &all, err);
    if (status >= 0)
        status = check_names(trainer, &all, err);
    for (size_t i = 0; i < all.n && status >= 0; i++)
        status = set_up_one(trainer, &all.use[i], err);
    if (status >= 0 && all.n > 0)
        kiln_segments_require_grad(&trainer->optimizers[0].segments, trainer->params);
    return status;
}

KilnStatus kiln_optimize_allocate(KilnTrainer *trainer, KilnError *err)
{
    const size_t bytes = (size_t)kiln_params_size(trainer->params) *
                         kiln_dtype_size(kiln_params_dtype(trainer->params));

    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        KilnOptimizerState *optimizer = &trainer->optimizers[i];

        for (size_t s = 0; s < optimizer->n_slots; s++) {
            if (optimizer->slot_names[s] == NULL)
                continue;
            optimizer->slots[s] = kiln_zeros(bytes);
            if (optimizer->slots[s] == NULL)
                return kiln_error_nomem(err, bytes);
        }
    }
    return KILN_OK;
}

void kiln_optimize_release(KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        for (size_t s = 0; s < trainer->optimizers[i].n_slots; s++)
            kiln_zeros_free(trainer->optimizers[i].slots[s]);
        kiln_segments_release(&trainer->optimizers[i].segments);
        free(trainer->optimizers[i].scales);
    }
    trainer->n_optimizers = 0;
}

/* ---- State ------------------------------------------------------------------------------- */

bool kiln_optimizer_has(const KilnOptimizerState *optimizer, const KilnParam *param)
{
    return kiln_param_trained(param) &&
           kiln_name_fits(optimizer->use.params, kiln_param_name(param));
}

int64_t kiln_optimize_slots(const KilnTrainer *trainer, const KilnParam *param)
{
    int64_t used = 0;

    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        const KilnOptimizerState *optimizer = &trainer->optimizers[i];

        for (size_t s = 0; s < optimizer->n_slots && kiln_optimizer_has(optimizer, param); s++)
            used += optimizer->slot_names[s] != NULL;
    }
    return used;
}

void *kiln_optimizer_slot(const KilnOptimizerState *optimizer, size_t slot, const KilnParam *param)
{
    const size_t size = kiln_dtype_size(kiln_param_dtype(param));

    return (char *)optimizer->slots[slot] + (size_t)kiln_param_offset(param) * size;
}

const char *kiln_optimizer_slot_name(const KilnOptimizerState *optimizer, size_t slot,
                                     const KilnParam *param, char *buf, size_t size)
{
    const char *name = optimizer->use.name;

    snprintf(buf, size, "optimizer.%s%s%s.%s", name != NULL ? name : "", name != NULL ? "." : "",
             optimizer->slot_names[slot], kiln_param_name(param));
    return buf;
}

/* ---- One step -------------------------------------------------------------------------- */

/* Neighbours among the gradients that this step computes, from parameter *next on, as one leaf;
 * NULL when there are no more. Others may be left from a step of another optimizer. */
static KilnTensor *next_gradients(KilnTrainer *trainer, size_t *next)
{
    KilnParams *params = trainer->params;
    int64_t begin = -1, end = -1;

    for (; *next < params->count; ++*next) {
        const KilnParam *param = params->items[*next];

        if (!param->trained)
            continue;
        if (param->frozen && begin >= 0)
            break;
        if (param->frozen)
            continue;
        begin = begin < 0 ? param->offset : begin;
        end = param->offset + param->count;
    }
    if (begin < 0)
        return NULL;
    const size_t at = (size_t)begin * kiln_dtype_size(params->dtype);
    return kiln_graph_variable(trainer->graph, params->dtype, KILN_SHAPE(end - begin),
                               (char *)params->gradients + at, false, NULL);
}

/* Of all gradients that this step computes. */
static KilnTensor *record_norm(KilnTrainer *trainer)
{
    KilnTensor *part, *sum = NULL, *norm = NULL;
    size_t next = 0;

    while ((part = next_gradients(trainer, &next)) != NULL) {
        KilnTensor *own = kiln_l2_norm(part);

        if (norm == NULL) {
            norm = own;
            continue;
        }
        sum = kiln_add(sum != NULL ? sum : kiln_square(norm), kiln_square(own));
    }
    return sum != NULL ? kiln_sqrt(sum) : norm;
}

/* What the gradients are multiplied by, NULL: nothing; or limits them in place. */
static KilnTensor *record_clip(KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                               KilnClipping clip)
{
    const bool clips = clip.limit > 0.0, tracks = trainer->options.trainer->track_grad_norm;
    KilnTensor *norm = (clips && clip.by_norm) || tracks ? record_norm(trainer) : NULL, *part;
    const char *name = optimizer->use.name;
    char metric[128];
    size_t next = 0;

    if (tracks) {
        snprintf(metric, sizeof(metric), "train/grad_norm%s%s", name != NULL ? "/" : "",
                 name != NULL ? name : "");
        kiln_step_log(&trainer->step, metric, norm, KILN_LOG_STEP);
    }
    while (clips && !clip.by_norm && (part = next_gradients(trainer, &next)) != NULL)
        kiln_clamp_update(part, clip.limit);
    return clips && clip.by_norm ? kiln_clip_factor(norm, clip.limit) : NULL;
}

void kiln_optimize_record(KilnTrainer *trainer, const KilnRecording *at, KilnClipping clip)
{
    KilnOptimizerState *optimizer = &trainer->optimizers[at->optimizer];
    const KilnOptimizerOps *ops = ops_of(optimizer);
    const KilnInstance *self = optimizer->use.optimizer;
    const KilnSegments *segments = &optimizer->segments;
    KilnGraph *graph = trainer->graph;
    KilnShape size = KILN_SHAPE(kiln_params_size(trainer->params));

    KILN_RECORD(trainer, on_before_optimizer_step, at);
    optimizer->rate = trainer->lr_override.active ? trainer->lr_override.rate
                                                  : kiln_optimize_rate(trainer, optimizer);
    kiln_call_enter(self, "hyper");
    size_t n = ops->hyper(self, optimizer->rate, optimizer->updates + 1, optimizer->hyper);
    kiln_call_leave();
    KilnFlat flat = {
        .param = kiln_params_flat_values(trainer->params, graph),
        .grad = at->gradients,
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE((int64_t)n), optimizer->hyper),
        .segment_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE((int64_t)segments->count),
                                         segments->ends),
        .rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE((int64_t)segments->count, 2),
                                  segments->rates),
    };
    for (size_t i = 0; i < optimizer->n_slots; i++)
        if (optimizer->slot_names[i] != NULL)
            flat.slots[i] = kiln_graph_variable(graph, kiln_params_dtype(trainer->params), size,
                                                optimizer->slots[i], false, NULL);
    flat.scale = record_clip(trainer, optimizer, clip);
    kiln_batch_stats_record(trainer, &flat);
    kiln_call_enter(self, "update");
    ops->update(self, &flat);
    kiln_call_leave();
    KILN_RECORD(trainer, record_update, at);
}
