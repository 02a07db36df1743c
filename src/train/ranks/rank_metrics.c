/* Metrics of several ranks. Rank 0 counts for all: the others pass on what their steps have logged
 * and counted, in the order of the ranks, and get the values that come of it. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "train/trainer.h"

/* What rank 0 gets of the others, in order. */
static KilnStatus merge_others(KilnTrainer *trainer, KilnPhase phase, int64_t step, const char *all,
                               size_t stride, const int64_t *sizes, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int r = 1; r < trainer->ranks.world && status >= 0; r++)
        if (sizes[r] > 0)
            status = kiln_metrics_merge(trainer->metrics, phase, trainer->at.epoch, step,
                                        all + (size_t)r * stride, (size_t)sizes[r], err);
    return status;
}

KilnStatus kiln_ranks_collect_metrics(KilnTrainer *trainer, KilnPhase phase, int64_t step,
                                      KilnOwnMetrics *own, KilnError *err)
{
    KilnRanks *ranks = &trainer->ranks;
    KilnText packed = { 0 };
    int64_t *sizes = NULL;
    char *all = NULL;
    size_t stride = 0;
    KilnStatus status = ranks->rank > 0 && own != NULL ? own(trainer, err) : KILN_OK;

    if (status >= 0 && ranks->rank > 0)
        kiln_metrics_pack(trainer->metrics, phase, step, &packed);
    if (status >= 0 && packed.failed)
        status = kiln_error_nomem(err, packed.length);
    if (status >= 0)
        status = kiln_ranks_gather_bytes(ranks, packed.data, packed.length, &all, &stride, &sizes,
                                         err);
    kiln_text_release(&packed);
    if (status >= 0 && ranks->rank == 0 && own != NULL)
        status = own(trainer, err);
    if (status >= 0 && ranks->rank == 0)
        status = merge_others(trainer, phase, step, all, stride, sizes, err);
    free(sizes);
    free(all);
    return status;
}

/* The values as JSON, which has their exact bits; sums stay with rank 0. */
static KilnStatus values_text(const KilnTrainer *trainer, char **ret, KilnError *err)
{
    json_t *saved = kiln_metrics_save(trainer->metrics);

    if (saved != NULL && json_object_del(saved, "sums") == 0)
        *ret = json_dumps(saved, JSON_COMPACT);
    json_decref(saved);
    return *ret != NULL ? KILN_OK : kiln_error_nomem(err, 1);
}

KilnStatus kiln_ranks_publish_metrics(KilnTrainer *trainer, KilnError *err)
{
    KilnRanks *ranks = &trainer->ranks;
    char *text = NULL;
    KilnStatus status = ranks->rank == 0 ? values_text(trainer, &text, err) : KILN_OK;

    if (status >= 0)
        status = kiln_ranks_broadcast_text(ranks, &text, err);
    if (status >= 0 && ranks->rank > 0) {
        json_t *values = json_loads(text, 0, NULL);

        status = values != NULL ? kiln_metrics_load(trainer->metrics, values, err)
                                : kiln_error_nomem(err, 1);
        json_decref(values);
    }
    free(text);
    return status;
}
