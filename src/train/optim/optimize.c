/* One optimizer step, recorded after the gradients of train/step/fit_batch.c or manual.c:
 * clipping, then the update of train/optim/optimizers.c's optimizer. The formula is in
 * nn/optimizers/NAME.c, which records update operations (graph/ops/training/optimizers.c). */
#include "train/optim/optimize.h"

#include <stdio.h>

#include "base/call.h"
#include "graph/sparse_rows.h"
#include "train/optim/lr_schedules.h"
#include "train/optim/sparse_updates.h"
#include "train/trainer.h"

/* ---- Clipping ------------------------------------------------------------------------ */

bool kiln_optimize_next_range(const KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                              size_t *next, int64_t *ret_begin, int64_t *ret_count)
{
    const KilnParams *params = trainer->params;
    int64_t begin = -1, end = -1;

    for (; *next < params->count; ++*next) {
        const KilnParam *param = params->items[*next];

        if (!param->trained)
            continue;
        const bool left_out = param->frozen ||
                              (optimizer != NULL && kiln_sparse_updates_has(optimizer, param));
        if (left_out && begin >= 0)
            break;
        if (left_out)
            continue;
        begin = begin < 0 ? param->offset : begin;
        end = param->offset + param->count;
    }
    *ret_begin = begin;
    *ret_count = end - begin;
    return begin >= 0;
}

/* The same range as one leaf; NULL when there are no more. */
static KilnTensor *next_gradients(KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                                  size_t *next)
{
    KilnParams *params = trainer->params;
    int64_t begin, count;

    if (!kiln_optimize_next_range(trainer, optimizer, next, &begin, &count))
        return NULL;
    const KilnLocation at = { .buffer = params->gradients,
                              .offset = (size_t)begin * kiln_dtype_size(params->dtype) };
    return kiln_graph_variable_at(trainer->graph, params->dtype, KILN_SHAPE(count), at, false,
                                  (KilnLocation) { 0 });
}

/* The next parameter from *next (0 at first) on that the optimizer updates by rows and this step
 * computes a gradient of; NULL when there are no more. */
static const KilnParam *next_embedding(const KilnTrainer *trainer,
                                       const KilnOptimizerState *optimizer, size_t *next)
{
    const KilnParams *params = trainer->params;

    while (*next < params->count) {
        const KilnParam *param = params->items[(*next)++];

        if (!param->frozen && kiln_sparse_updates_has(optimizer, param))
            return param;
    }
    return NULL;
}

/* The norm of parts of the gradient, from that of some and the norm of one more. */
typedef struct Norm {
    KilnTensor *first, *squares; /* squares: of all, once there are two */
} Norm;

static void add_norm(Norm *norm, KilnTensor *own)
{
    if (norm->first == NULL)
        norm->first = own;
    else
        norm->squares = kiln_add(norm->squares != NULL ? norm->squares : kiln_square(norm->first),
                                 kiln_square(own));
}

/* The norm of all gradients that this step computes. */
static KilnTensor *record_norm(KilnTrainer *trainer, const KilnOptimizerState *optimizer)
{
    const KilnParam *param;
    KilnTensor *part;
    Norm norm = { 0 };
    size_t next = 0;

    while ((part = next_gradients(trainer, optimizer, &next)) != NULL)
        add_norm(&norm, kiln_l2_norm(part));
    for (next = 0; (param = next_embedding(trainer, optimizer, &next)) != NULL;)
        add_norm(&norm, kiln_l2_norm_sparse(kiln_sparse_gradient(trainer, param),
                                            kiln_sparse_rows(trainer, param)));
    return norm.squares != NULL ? kiln_sqrt(norm.squares) : norm.first;
}

static void record_clamping(KilnTrainer *trainer, const KilnOptimizerState *optimizer, double limit)
{
    const KilnParam *param;
    KilnTensor *part;
    size_t next = 0;

    while ((part = next_gradients(trainer, optimizer, &next)) != NULL)
        kiln_clamp_update(part, limit);
    for (next = 0; (param = next_embedding(trainer, optimizer, &next)) != NULL;)
        kiln_clamp_update_sparse(kiln_sparse_gradient(trainer, param),
                                 kiln_sparse_rows(trainer, param), limit);
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
    KilnTensor *norm = (clips && clipping.by_norm) || tracks ? record_norm(trainer, optimizer)
                                                             : NULL;

    if (tracks)
        log_norm(trainer, optimizer->use.name, norm);
    if (clips && !clipping.by_norm)
        record_clamping(trainer, optimizer, clipping.limit);
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
        .rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n, 2),
                                  kiln_sparse_updates_flat_rates(trainer, optimizer)),
    };

    for (size_t i = 0; i < optimizer->n_slots; i++)
        if (optimizer->slot_names[i] != NULL)
            flat.slots[i] = kiln_graph_variable_at(graph, kiln_params_dtype(trainer->params),
                                                   KILN_SHAPE(kiln_params_size(trainer->params)),
                                                   (KilnLocation) { .buffer = optimizer->slots[i] },
                                                   false, (KilnLocation) { 0 });
    return flat;
}

static void record_update(const KilnOptimizerState *optimizer, const KilnFlat *flat)
{
    const KilnInstance *self = optimizer->use.optimizer;

    kiln_call_enter(self, "update");
    kiln_instance_component(self)->ops.optimizer->update(self, flat);
    kiln_call_leave();
}

/* The embeddings that are updated by rows. */
static void record_row_updates(KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                               const KilnFlat *flat)
{
    const KilnParam *param;

    for (size_t next = 0; (param = next_embedding(trainer, optimizer, &next)) != NULL;) {
        const KilnFlat own = kiln_sparse_updates_flat(trainer, optimizer, param, flat);

        record_update(optimizer, &own);
        if (flat->norms != NULL)
            kiln_batch_stats_store(trainer, param, kiln_l2_norm_sparse(own.grad, own.segment_ends));
    }
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
    record_row_updates(trainer, optimizer, &flat);
    KILN_RECORD(trainer, record_update, at);
}
