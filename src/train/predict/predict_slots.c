/* The pool of slots for concurrent predictions. */
#include "train/predict/predict_slots.h"

#include <stdlib.h>

#include "train/assemble.h"
#include "train/step/row_results_state.h"
#include "train/trainer.h"

/* Limit the slot's plans to its share of all. */
static void limit_plans(const KilnPredictSlots *slots, KilnGraph *graph)
{
    graph->plan_cache.limit = (size_t)slots->trainer->options.trainer->plan_cache /
                              (size_t)slots->most;
}

static void slot_free(KilnPredictSlot *slot)
{
    kiln_step_release_results(&slot->own);
    kiln_graph_free(slot->graph);
    kiln_backend_free(slot->backend);
    free(slot);
}

KilnStatus kiln_predict_slots_init(KilnPredictSlots *slots, KilnTrainer *trainer, int most,
                                   KilnError *err)
{
    KilnPredictSlot *first = calloc(1, sizeof(*first));
    KilnPredictSlot **all = calloc((size_t)most, sizeof(KilnPredictSlot *));

    if (first == NULL || all == NULL) {
        free(first);
        free(all);
        return kiln_error_nomem(err, sizeof(*first));
    }
    first->step = &trainer->step;
    *slots =
        (KilnPredictSlots) { .trainer = trainer, .all = all, .n = 1, .most = most, .idle = first };
    all[0] = first;
    limit_plans(slots, trainer->graph);
    pthread_mutex_init(&slots->mutex, NULL);
    pthread_cond_init(&slots->given_back, NULL);
    return KILN_OK;
}

void kiln_predict_slots_release(KilnPredictSlots *slots)
{
    if (slots->all == NULL)
        return;
    for (int i = 0; i < slots->n; i++)
        slot_free(slots->all[i]);
    free(slots->all);
    pthread_mutex_destroy(&slots->mutex);
    pthread_cond_destroy(&slots->given_back);
}

/* Make a slot with a graph of its own. */
static KilnStatus make_slot(const KilnPredictSlots *slots, KilnPredictSlot **ret, KilnError *err)
{
    KilnPredictSlot *slot = calloc(1, sizeof(*slot));

    if (slot == NULL)
        return kiln_error_nomem(err, sizeof(*slot));
    KilnStatus status = kiln_trainer_new_graph(slots->trainer, &slot->backend, &slot->graph, err);
    if (status < 0) {
        free(slot);
        return status;
    }
    limit_plans(slots, slot->graph);
    kiln_trainer_set_up_step(slots->trainer, slot->graph, &slot->own);
    slot->step = &slot->own;
    *ret = slot;
    return KILN_OK;
}

KilnStatus kiln_predict_slot_take(KilnPredictSlots *slots, KilnPredictSlot **ret, KilnError *err)
{
    KilnStatus status = KILN_OK;

    pthread_mutex_lock(&slots->mutex);
    while (slots->idle == NULL && slots->n == slots->most)
        pthread_cond_wait(&slots->given_back, &slots->mutex);
    if (slots->idle != NULL) {
        *ret = slots->idle;
        slots->idle = slots->idle->next;
    } else {
        status = make_slot(slots, ret, err);
        if (status >= 0)
            slots->all[slots->n++] = *ret;
    }
    pthread_mutex_unlock(&slots->mutex);
    return status;
}

void kiln_predict_slot_give_back(KilnPredictSlots *slots, KilnPredictSlot *slot)
{
    pthread_mutex_lock(&slots->mutex);
    slot->next = slots->idle;
    slots->idle = slot;
    pthread_cond_signal(&slots->given_back);
    pthread_mutex_unlock(&slots->mutex);
}
