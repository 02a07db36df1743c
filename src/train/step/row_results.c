/* Results of rows that a module's finish_step makes with further steps (kiln/tools/row_results.h).
 */
#include "train/step/row_results_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "train/assemble.h"
#include "train/trainer.h"

/* ---- The step that has run --------------------------------------------------------------- */

const char *kiln_results_phase(const KilnResults *results)
{
    const KilnPhase phase = results->step->phase;

    return phase == KILN_PHASE_TEST ? "test" : phase == KILN_PHASE_PREDICT ? "predict" : "validate";
}

int64_t kiln_results_size(const KilnResults *results)
{
    return results->step->batch.size;
}

int64_t kiln_results_sample(const KilnResults *results, int64_t row)
{
    return results->step->batch.samples[row];
}

static const KilnBatchFeature *feature_of(const KilnResults *results, const char *name)
{
    const KilnStep *step = results->step;
    const KilnFeature *feature = kiln_spec_feature(step->spec, name);

    return feature != NULL && step->batch.features != NULL && kiln_step_has(step, name)
               ? &step->batch.features[feature - step->spec->features]
               : NULL;
}

const int32_t *kiln_results_lengths(const KilnResults *results, const char *name)
{
    const KilnBatchFeature *feature = feature_of(results, name);

    return feature != NULL ? feature->lengths : NULL;
}

const char *kiln_results_text(const KilnResults *results, const char *name, int64_t row)
{
    const KilnFeature *declared = kiln_spec_feature(results->step->spec, name);
    const KilnBatchFeature *feature = feature_of(results, name);

    return feature != NULL && declared->content == KILN_TEXT && feature->data != NULL
               ? ((char *const *)feature->data)[row]
               : NULL;
}

const void *kiln_results_values(const KilnResults *results, const char *name, KilnShape *ret)
{
    const KilnFeature *declared = kiln_spec_feature(results->step->spec, name);
    const KilnBatchFeature *feature = feature_of(results, name);

    if (feature == NULL || declared->content == KILN_TEXT || feature->data == NULL)
        return NULL;
    *ret = (KilnShape) { .rank = declared->shape.rank + 1, .dim = { kiln_results_size(results) } };
    for (int axis = 0; axis < declared->shape.rank; axis++)
        ret->dim[axis + 1] = declared->shape.dim[axis];
    if (declared->varies)
        ret->dim[1] = feature->padded;
    return feature->data;
}

const void *kiln_results_kept(const KilnResults *results, const char *name, KilnShape *ret)
{
    const KilnStep *step = results->step;

    for (size_t i = 0; i < step->n_kept; i++)
        if (strcmp(step->kept[i].name, name) == 0) {
            *ret = *kiln_tensor_shape(step->kept[i].value);
            return kiln_tensor_data(step->kept[i].value);
        }
    return NULL;
}

const KilnInstance *kiln_results_tokenizer(const KilnResults *results)
{
    const KilnInstance *datamodule = results->trainer->datamodule;
    const KilnDataModuleOps *ops = kiln_instance_component(datamodule)->ops.datamodule;

    return ops->tokenizer != NULL ? ops->tokenizer(datamodule) : NULL;
}

/* ---- Further steps ------------------------------------------------------------------------ */

KilnStep *kiln_results_begin_batch(KilnResults *results, const KilnBatch *batch)
{
    if (results->recording != NULL)
        pthread_mutex_lock(results->recording);
    kiln_step_begin(&results->own, results->step->phase, false, batch,
                    (uint64_t)results->trainer->options.root->seed, 0);
    return &results->own;
}

KilnStep *kiln_results_begin(KilnResults *results)
{
    return kiln_results_begin_batch(results, &results->step->batch);
}

KilnStatus kiln_results_run(KilnResults *results, KilnTensor *const *tensors, size_t n,
                            KilnError *err)
{
    KilnPlan *plan = NULL;

    results->own.extra_reads = tensors;
    results->own.n_extra_reads = n;
    KilnStatus status = kiln_step_plan(&results->own, NULL, &plan, err);
    if (results->recording != NULL)
        pthread_mutex_unlock(results->recording);
    return status >= 0 ? kiln_step_execute(&results->own, NULL, plan, err) : status;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static void clear(KilnResults *results)
{
    for (size_t i = 0; i < results->n; i++) {
        for (int64_t row = 0; row < results->size; row++)
            free(results->list[i].values[row]);
        free(results->list[i].values);
    }
    results->n = 0;
}

static KilnStatus result_of(KilnResults *results, const char *name, KilnRowResult **ret,
                            KilnError *err)
{
    const size_t bytes = (size_t)results->size * sizeof(char *);

    for (size_t i = 0; i < results->n; i++)
        if (strcmp(results->list[i].name, name) == 0) {
            *ret = &results->list[i];
            return KILN_OK;
        }
    if (results->n == KILN_RESULT_NAMES)
        return kiln_error_set(err, KILN_E_RANGE, "result \"%s\": at most %d are possible", name,
                              (int)KILN_RESULT_NAMES);
    *ret = &results->list[results->n];
    **ret = (KilnRowResult) { .name = name, .values = calloc(1, bytes) };
    if ((*ret)->values == NULL)
        return kiln_error_nomem(err, bytes);
    results->n++;
    return KILN_OK;
}

KilnStatus kiln_results_set(KilnResults *results, const char *name, int64_t row, const char *json,
                            KilnError *err)
{
    KilnRowResult *result = NULL;
    KilnStatus status = result_of(results, name, &result, err);

    if (status < 0)
        return status;
    free(result->values[row]);
    result->values[row] = kiln_strdup(json);
    return result->values[row] != NULL ? KILN_OK : kiln_error_nomem(err, strlen(json));
}

/* ---- finish_step ---------------------------------------------------------------------------- */

static KilnStatus make(const KilnTrainer *trainer, KilnStep *step, KilnError *err)
{
    KilnResults *results = calloc(1, sizeof(*results));
    KilnStatus status = KILN_E_NOMEM;

    if (results != NULL)
        status = kiln_graph_new(step->graph->backend, &results->graph, err);
    if (status < 0) {
        free(results);
        return results == NULL ? kiln_error_nomem(err, sizeof(*results)) : status;
    }
    results->trainer = trainer;
    results->step = step;
    kiln_trainer_set_up_step(trainer, results->graph, &results->own);
    step->results = results;
    return KILN_OK;
}

KilnStatus kiln_step_finish(const KilnTrainer *trainer, KilnStep *step, pthread_mutex_t *recording,
                            KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;

    if (ops->finish_step == NULL)
        return KILN_OK;
    KilnStatus status = step->results != NULL ? KILN_OK : make(trainer, step, err);
    if (status < 0)
        return status;
    clear(step->results);
    step->results->size = step->batch.size;
    step->results->recording = recording;
    return KILN_CALLED(trainer->module, "finish_step",
                       ops->finish_step(trainer->module, step->results, err), err);
}

size_t kiln_step_results(const KilnStep *step, const KilnRowResult **ret)
{
    *ret = step->results != NULL ? step->results->list : NULL;
    return step->results != NULL && step->has_run ? step->results->n : 0;
}

void kiln_step_release_results(KilnStep *step)
{
    KilnResults *results = step->results;

    if (results == NULL)
        return;
    clear(results);
    kiln_graph_free(results->graph);
    free(results);
    step->results = NULL;
}
