/* One optimizer step, recorded after the gradients of train/step/fit_batch.c or manual.c:
 * clipping, then the update of train/optim/optimizers.c's optimizer. The formula is in
 * nn/optimizers/NAME.c, which records update operations (graph/ops/training/optimizers.c). */
#include "train/optim/optimize.h"

#include <stdio.h>

#include "base/call.h"
#include "train/optim/lr_schedules.h"
#include "train/trainer.h"

/* ---- Clipping ------------------------------------------------------------------------ */

bool kiln_optimize_next_range(const KilnTrainer *trainer, size_t *next, int64_t *ret_begin,
                              int64_t *ret_count)
{
    const KilnParams *params = trainer->params;
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
    *ret_begin = begin;
    *ret_count = end - begin;
    return begin >= 0;
}

/* The same range as one leaf; NULL when there are no more. */
static KilnTensor *next_gradients(KilnTrainer *trainer, size_t *next)
{
    KilnParams *params = trainer->params;
    int64_t begin, count;

    if (!kiln_optimize_next_range(trainer, next, &begin, &count))
        return NULL;
    const KilnLocation at = { .buffer = params->gradients,
                              .offset = (size_t)begin * kiln_dtype_size(params->dtype) };
    return kiln_graph_variable_at(trainer->graph, params->dtype, KILN_SHAPE(count), at, false,
                                  (KilnLocation) { 0 });
}

/* The norm of all gradients that this step computes. */
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

static void log_norm(KilnTrainer *trainer, const char *optimizer, KilnTensor *norm)
{
    char metric[128];

    snprintf(metric, sizeof(metric), "train/grad_norm%s%s", optimizer != NULL ? "/" : "",
             optimizer != NULL ? optimizer : "");
    kiln_step_log(&trainer->step, metric, norm, KILN_LOG_STEP);
}

/* Clip by value, in place, or return the factor that clips by norm; NULL: none. */
static KilnTensor *record_clipping(KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                                   KilnClipping clipping)
{
    const bool clips = clipping.limit > 0.0, tracks = trainer->options.trainer->track_grad_norm;
    KilnTensor *norm = (clips && clipping.by_norm) || tracks ? record_norm(trainer) : NULL, *part;
    size_t next = 0;

    if (tracks)
        log_norm(trainer, optimizer->use.name, norm);
    while (clips && !clipping.by_norm && (part = next_gradients(trainer, &next)) != NULL)
        kiln_clamp_update(part, clipping.limit);
    return clips && clipping.by_norm ? kiln_clip_factor(norm, clipping.limit) : NULL;
}

/* ---- The update ------------------------------------------------------------------------ */

/* Set the learning rate and hyperparameters of the next update; returns their number. */
static size_t set_hyper(KilnTrainer *trainer, KilnOptimizerState *optimizer)
{
    const KilnInstance *self = optimizer->use.optimizer;
    const KilnOptimizerOps *ops = kiln_instance_component(self)->ops.optimizer;

    optimizer->rate = trainer->lr_override.active ? trainer->lr_override.rate
                                                  : kiln_lr_schedule_rate(trainer, optimizer);
    kiln_call_enter(self, "hyper");
    const size_t n = ops->hyper(self, optimizer->rate, optimizer->updates + 1, optimizer->hyper);
    kiln_call_leave();
    return n;
}

/* The leaves of the update: parameters, gradients, hyperparameters, segments and state. */
static KilnFlat flat_leaves(KilnTrainer *trainer, KilnOptimizerState *optimizer, size_t n_hyper,
                            KilnTensor *gradients)
{
    const KilnSegments *segments = &optimizer->segments;
    const int64_t n = (int64_t)segments->count;
    KilnGraph *graph = trainer->graph;
    KilnFlat flat = {
        .param = kiln_params_flat_values(trainer->params, graph),
        .grad = gradients,
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE((int64_t)n_hyper), optimizer->hyper),
        .segment_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(n), segments->ends),
        .rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n, 2), segments->rates),
    };

    for (size_t i = 0; i < optimizer->n_slots; i++)
        if (optimizer->slot_names[i] != NULL)
            flat.slots[i] = kiln_graph_variable_at(graph, kiln_params_dtype(trainer->params),
                                                   KILN_SHAPE(kiln_params_size(trainer->params)),
                                                   (KilnLocation) { .buffer = optimizer->slots[i] },
                                                   false, (KilnLocation) { 0 });
    return flat;
}

static void record_update(const KilnOptimizerState *optimizer, KilnFlat *flat)
{
    const KilnInstance *self = optimizer->use.optimizer;

    kiln_call_enter(self, "update");
    kiln_instance_component(self)->ops.optimizer->update(self, flat);
    kiln_call_leave();
}

void kiln_optimize_record(KilnTrainer *trainer, const KilnRecording *at, KilnClipping clipping)
{
    KilnOptimizerState *optimizer = &trainer->optimizers[at->optimizer];

    KILN_RECORD(trainer, on_before_optimizer_step, at);
    const size_t n_hyper = set_hyper(trainer, optimizer);
    KilnFlat flat = flat_leaves(trainer, optimizer, n_hyper, at->gradients);
    flat.scale = record_clipping(trainer, optimizer, clipping);
    kiln_batch_stats_prepare(trainer, &flat);
    record_update(optimizer, &flat);
    kiln_batch_stats_record(trainer, &flat);
    KILN_RECORD(trainer, record_update, at);
}
