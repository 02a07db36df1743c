/* Learning rates of single parameters that callbacks scale or freeze by epoch (finetuning). The
 * optimizer's own rate and its schedule are in train/optim/optimize.c. */
#include "train/optim/lr_scales.h"

#include "base/call.h"
#include "train/trainer.h"

static const KilnCallbackOps *ops_of(const KilnTrainer *trainer, size_t i)
{
    return kiln_instance_component(trainer->callbacks[i])->ops.callback;
}

bool kiln_lr_scales_vary(const KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->n_callbacks; i++)
        if (ops_of(trainer, i)->lr_scale != NULL)
            return true;
    return false;
}

/* The product of all callbacks' scales. */
static double scale_of(const KilnTrainer *trainer, const KilnParam *param, int64_t epoch)
{
    double scale = 1.0;

    for (size_t i = 0; i < trainer->n_callbacks; i++) {
        KilnInstance *callback = trainer->callbacks[i];

        if (ops_of(trainer, i)->lr_scale == NULL)
            continue;
        kiln_call_enter(callback, "lr_scale");
        scale *= ops_of(trainer, i)->lr_scale(callback, trainer->params, param, epoch);
        kiln_call_leave();
    }
    return scale;
}

/* Scale the segments: one for each trained parameter, in order. Returns whether any still trains.
 */
static bool scale_segments(const KilnTrainer *trainer, KilnOptimizerState *optimizer, int64_t epoch)
{
    bool trains = false;
    size_t segment = 0;

    for (size_t i = 0; i < trainer->params->count; i++) {
        const KilnParam *param = trainer->params->items[i];

        if (!param->trained)
            continue;
        const float rate = optimizer->scales[segment] * (float)scale_of(trainer, param, epoch);
        optimizer->segments.rates[2 * segment++] = rate;
        trains = trains || rate > 0.0f;
    }
    return trains;
}

KilnStatus kiln_lr_scales_apply(KilnTrainer *trainer, int64_t epoch, KilnError *err)
{
    if (!kiln_lr_scales_vary(trainer))
        return KILN_OK;
    for (size_t i = 0; i < trainer->n_optimizers; i++)
        if (!scale_segments(trainer, &trainer->optimizers[i], epoch))
            return kiln_error_set(err, KILN_E_RANGE,
                                  "callbacks freeze all parameters in epoch %lld: nothing is left "
                                  "to train",
                                  (long long)epoch);
    for (size_t i = 0; i < trainer->params->count; i++) {
        KilnParam *param = trainer->params->items[i];

        if (!param->trained)
            param->frozen = !(scale_of(trainer, param, epoch) > 0.0);
    }
    if (trainer->n_optimizers > 0)
        kiln_segments_require_grad(&trainer->optimizers[0].segments, trainer->params);
    return KILN_OK;
}

int64_t kiln_lr_scales_next(const KilnTrainer *trainer, int64_t epoch)
{
    const int64_t end = kiln_loop_total_epochs(&trainer->schedule);
    int64_t next = -1;

    for (size_t i = 0; i < trainer->n_callbacks; i++) {
        const KilnCallbackOps *ops = ops_of(trainer, i);

        if (ops->next_freeze == NULL)
            continue;
        kiln_call_enter(trainer->callbacks[i], "next_freeze");
        const int64_t own = ops->next_freeze(trainer->callbacks[i], epoch);
        kiln_call_leave();
        if (own > epoch && (next < 0 || own < next) && (end < 0 || own < end))
            next = own;
    }
    return next;
}

bool kiln_lr_scales_trained(const KilnTrainer *trainer, const KilnParam *param)
{
    size_t segment = 0;

    for (size_t i = 0; i < param->index; i++)
        segment += trainer->params->items[i]->trained;
    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        const KilnOptimizerState *optimizer = &trainer->optimizers[i];

        if (!kiln_optimizer_has(optimizer, param))
            continue;
        if (optimizer->scales == NULL) /* neighbours share a segment */
            return true;
        for (int64_t epoch = 0; epoch >= 0 && optimizer->scales[segment] > 0.0f;
             epoch = kiln_lr_scales_next(trainer, epoch))
            if (scale_of(trainer, param, epoch) > 0.0)
                return true;
    }
    return false;
}
