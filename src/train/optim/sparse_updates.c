/* Embeddings that are updated by rows: which they are, what they cannot be combined with, and the
 * inputs of their updates. The lists of rows are made with the gradients (graph/sparse_rows.h). */
#include "train/optim/sparse_updates.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "nn/params.h"
#include "train/trainer.h"

bool kiln_sparse_updates_has(const KilnOptimizerState *optimizer, const KilnParam *param)
{
    return optimizer->common.sparse && param->sparse_rows >= 0 &&
           kiln_optimizer_has(optimizer, param);
}

bool kiln_sparse_updates_any(const KilnTrainer *trainer, const KilnParam *param)
{
    for (size_t i = 0; i < trainer->n_optimizers; i++)
        if (kiln_sparse_updates_has(&trainer->optimizers[i], param))
            return true;
    return false;
}

/* The parameter's segment: there is one for each trained parameter. */
static size_t segment_of(const KilnParams *params, const KilnParam *param)
{
    size_t segment = 0;

    for (size_t i = 0; i < param->index; i++)
        segment += params->items[i]->trained;
    return segment;
}

/* ---- Set-up ---------------------------------------------------------------------- */

static KilnStatus check_run(const KilnTrainer *trainer, KilnError *err)
{
    if (kiln_ranks_several(&trainer->ranks))
        return kiln_error_set(err, KILN_E_RANGE,
                              "sparse: several ranks exchange whole gradients; train with one "
                              "rank, or set sparse=false");
    if (trainer->params->dtype == KILN_BF16)
        return kiln_error_set(err, KILN_E_RANGE,
                              "sparse: gradients of parameters in bf16 are dense; use "
                              "trainer.precision=bf16-mixed, or set sparse=false");
    return KILN_OK;
}

KilnStatus kiln_sparse_updates_set_up(const KilnTrainer *trainer, KilnOptimizerState *optimizer,
                                      KilnError *err)
{
    const KilnParams *params = trainer->params;
    const KilnSegments *segments = &optimizer->segments;
    size_t n = 0;

    if (!optimizer->common.sparse)
        return KILN_OK;
    KilnStatus status = check_run(trainer, err);
    for (size_t i = 0; status >= 0 && i < params->count; i++) {
        const KilnParam *param = params->items[i];

        if (!kiln_sparse_updates_has(optimizer, param))
            continue;
        n++;
        if (segments->rates[2 * segment_of(params, param) + 1] > 0.0f)
            status = kiln_error_set(err, KILN_E_RANGE,
                                    "weight_decay: rows of %s that a step does not use cannot "
                                    "decay with sparse=true; set weight_decay=0, or a group with "
                                    "params=['%s'] and weight_decay=0",
                                    param->name, param->name);
    }
    if (status >= 0 && n == 0)
        status = kiln_error_set(err, KILN_E_RANGE,
                                "sparse: it trains no embedding (kiln_nn_embedding); set "
                                "sparse=false");
    if (status < 0)
        return status;
    optimizer->flat_rates = calloc(segments->count + 1, 2 * sizeof(*optimizer->flat_rates));
    return optimizer->flat_rates != NULL ? KILN_OK : kiln_error_nomem(err, segments->count);
}

/* ---- Updates --------------------------------------------------------------------- */

const float *kiln_sparse_updates_flat_rates(const KilnTrainer *trainer,
                                            KilnOptimizerState *optimizer)
{
    const KilnParams *params = trainer->params;
    const KilnSegments *segments = &optimizer->segments;

    if (!optimizer->common.sparse)
        return segments->rates;
    memcpy(optimizer->flat_rates, segments->rates, segments->count * 2 * sizeof(float));
    for (size_t i = 0; i < params->count; i++)
        if (kiln_sparse_updates_has(optimizer, params->items[i]))
            optimizer->flat_rates[2 * segment_of(params, params->items[i])] = 0.0f;
    return optimizer->flat_rates;
}

static KilnTensor *variable(KilnTrainer *trainer, const KilnParam *param, KilnLocation at)
{
    return kiln_graph_variable_at(trainer->graph, trainer->params->dtype, param->shape, at, false,
                                  (KilnLocation) { 0 });
}

KilnTensor *kiln_sparse_gradient(KilnTrainer *trainer, const KilnParam *param)
{
    return variable(trainer, param, kiln_param_gradient_location(param));
}

KilnTensor *kiln_sparse_rows(KilnTrainer *trainer, const KilnParam *param)
{
    return kiln_graph_variable_at(
        trainer->graph, KILN_I32, KILN_SHAPE(kiln_param_sparse_rows_words(param)),
        kiln_param_sparse_rows_location(param), false, (KilnLocation) { 0 });
}

KilnFlat kiln_sparse_updates_flat(KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                                  const KilnParam *param, const KilnFlat *flat)
{
    const float *rates = optimizer->segments.rates + 2 * segment_of(trainer->params, param);
    KilnFlat own = {
        .param = variable(trainer, param, kiln_param_location(param)),
        .grad = kiln_sparse_gradient(trainer, param),
        .hyper = flat->hyper,
        .scale = flat->scale,
        .segment_ends = kiln_sparse_rows(trainer, param),
        .rates = kiln_graph_input(trainer->graph, KILN_F32, KILN_SHAPE(1, 2), rates),
    };

    for (size_t i = 0; i < optimizer->n_slots; i++)
        if (optimizer->slot_names[i] != NULL)
            own.slots[i] = variable(trainer, param, kiln_optimizer_slot(optimizer, i, param));
    return own;
}
