/* The optimizers of a run: set up from the module's configure_optimizers, with their state tensors.
 * Their formulas are components (nn/optimizers/); train/optim/optimize.c records their updates. */
#include "train/optim/optimizers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "train/optim/lr_scales.h"
#include "train/optim/lr_schedules.h"
#include "train/optim/sparse_updates.h"
#include "train/trainer.h"

static const KilnOptimizerOps *ops_of(const KilnOptimizerState *optimizer)
{
    return kiln_instance_component(optimizer->use.optimizer)->ops.optimizer;
}

/* ---- Set-up --------------------------------------------------------------------------- */

/* Names occur between dots in checkpoints, and after a slash in metrics. */
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
    return kiln_error_set(
        err, KILN_E_RANGE,
        "task %s configures %zu optimizers: a training_step has one; several need "
        "a module with manual_step",
        kiln_instance_name(trainer->module), all->n);
}

/* Copy the rates of the segments, which callbacks scale later. */
static KilnStatus copy_scales(KilnOptimizerState *optimizer, KilnError *err)
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
    kiln_call_enter(use->optimizer, "common");
    ops->common(use->optimizer, &optimizer->common);
    kiln_call_leave();
    const bool vary = kiln_lr_scales_vary(trainer);
    KilnStatus status = kiln_segments_new(trainer->params, use->params, &optimizer->common,
                                          ops->per_parameter || vary || optimizer->common.sparse,
                                          &optimizer->segments, err);
    if (status >= 0)
        status = kiln_sparse_updates_set_up(trainer, optimizer, err);
    if (status < 0) {
        (void)kiln_error_prefix(err, "%s.", kiln_instance_path(use->optimizer));
        return status;
    }
    if (vary)
        status = copy_scales(optimizer, err);
    if (status < 0)
        return status;
    optimizer->n_slots = ops->slots(use->optimizer, optimizer->slot_names);
    return kiln_lr_schedule_check(trainer, optimizer, err);
}

KilnStatus kiln_optimizers_set_up(KilnTrainer *trainer, KilnError *err)
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

KilnStatus kiln_optimizers_allocate(KilnTrainer *trainer, KilnError *err)
{
    const size_t bytes = (size_t)kiln_params_size(trainer->params) *
                         kiln_dtype_size(kiln_params_dtype(trainer->params));
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        KilnOptimizerState *optimizer = &trainer->optimizers[i];

        for (size_t s = 0; s < optimizer->n_slots && status >= 0; s++) {
            if (optimizer->slot_names[s] == NULL)
                continue;
            status = kiln_buffer_new(trainer->backend, bytes, &optimizer->slots[s], err);
        }
    }
    return status;
}

void kiln_optimizers_release(KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        for (size_t s = 0; s < trainer->optimizers[i].n_slots; s++)
            kiln_buffer_free(trainer->optimizers[i].slots[s]);
        kiln_segments_release(&trainer->optimizers[i].segments);
        free(trainer->optimizers[i].scales);
        free(trainer->optimizers[i].flat_rates);
    }
    trainer->n_optimizers = 0;
}

/* ---- State ------------------------------------------------------------------------------- */

bool kiln_optimizer_has(const KilnOptimizerState *optimizer, const KilnParam *param)
{
    return kiln_param_trained(param) &&
           kiln_name_fits(optimizer->use.params, kiln_param_name(param));
}

int64_t kiln_optimizers_slots(const KilnTrainer *trainer, const KilnParam *param)
{
    int64_t used = 0;

    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        const KilnOptimizerState *optimizer = &trainer->optimizers[i];

        for (size_t s = 0; s < optimizer->n_slots && kiln_optimizer_has(optimizer, param); s++)
            used += optimizer->slot_names[s] != NULL;
    }
    return used;
}

KilnLocation kiln_optimizer_slot(const KilnOptimizerState *optimizer, size_t slot,
                                 const KilnParam *param)
{
    const size_t size = kiln_dtype_size(kiln_param_dtype(param));

    return (KilnLocation) { .buffer = optimizer->slots[slot],
                            .offset = (size_t)kiln_param_offset(param) * size };
}

const char *kiln_optimizer_slot_name(const KilnOptimizerState *optimizer, size_t slot,
                                     const KilnParam *param, char *buf, size_t size)
{
    const char *name = optimizer->use.name;

    snprintf(buf, size, "optimizer.%s%s%s.%s", name != NULL ? name : "", name != NULL ? "." : "",
             optimizer->slot_names[slot], kiln_param_name(param));
    return buf;
}
