/* Builds the JSON of state.json from a run. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/call.h"
#include "base/json.h"
#include "kiln/array.h"
#include "train/checkpoint/checkpoint.h"
#include "graph/backend.h"
#include "train/checkpoint/snapshot.h"

/* ---- Components ------------------------------------------------------------------------ */

/* Move the tensors that a component set to the snapshot. */
static bool take_tensors(KilnSnapshot *snapshot, KilnState *state)
{
    if (!KILN_RESERVE(snapshot->tensors, snapshot->tensors_capacity,
                      snapshot->n_tensors + state->n_tensors))
        return false;
    for (size_t i = 0; i < state->n_tensors; i++)
        snapshot->tensors[snapshot->n_tensors++] = state->tensors[i];
    state->n_tensors = 0;
    return true;
}

/* A component's state_dict; NULL when memory runs out. */
static json_t *state_of(KilnSnapshot *snapshot, KilnInstance *self,
                        void (*state_dict)(KilnInstance *, KilnState *))
{
    KilnState state = { .path = kiln_instance_path(self), .object = json_object() };

    kiln_call_enter(self, "state_dict");
    if (state.object != NULL)
        state_dict(self, &state);
    kiln_call_leave();
    if (state.failed || !take_tensors(snapshot, &state)) {
        json_decref(state.object);
        state.object = NULL;
    }
    kiln_state_release(&state);
    return state.object;
}

/* The state of callbacks and module; with weights_only the module's only. */
static json_t *callbacks_json(KilnSnapshot *snapshot, const KilnTrainer *trainer)
{
    json_t *all = json_object();

    for (size_t i = 0; i < trainer->hooks.n_all && all != NULL; i++) {
        KilnInstance *who = trainer->hooks.all[i].instance;
        const KilnCallbackOps *ops = trainer->hooks.all[i].ops;

        if (ops->state_dict == NULL || (snapshot->weights_only && who != trainer->module))
            continue;
        if (json_object_set_new(all, kiln_instance_path(who),
                                state_of(snapshot, who, ops->state_dict)) != 0) {
            json_decref(all);
            all = NULL;
        }
    }
    return all;
}

/* A scheduler's state; null when it has none. */
static json_t *scheduler_json(KilnSnapshot *snapshot, KilnInstance *scheduler)
{
    if (scheduler == NULL || kiln_instance_component(scheduler)->ops.scheduler->state_dict == NULL)
        return json_null();
    return state_of(snapshot, scheduler,
                    kiln_instance_component(scheduler)->ops.scheduler->state_dict);
}

/* The optimizers' state besides tensors: [{"name", "updates", "rate", "scheduler"}]. */
static json_t *optimizers_json(KilnSnapshot *snapshot, const KilnTrainer *trainer)
{
    json_t *all = json_array();

    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        const KilnOptimizerState *one = &trainer->optimizers[i];

        kiln_json_add(&all, json_pack("{s:s?, s:I, s:o, s:o}", "name", one->use.name, "updates",
                                      (json_int_t)one->updates, "rate", kiln_json_f64(one->rate),
                                      "scheduler", scheduler_json(snapshot, one->use.scheduler)));
    }
    if (json_array_size(all) == trainer->n_optimizers)
        return all;
    json_decref(all);
    return NULL;
}

/* ---- Checksums of what results depend on -------------------------------------------------- */

static json_t *hash_json(const char *text)
{
    return json_sprintf("%016" PRIx64, (uint64_t)XXH3_64bits(text, strlen(text)));
}

json_t *kiln_snapshot_metric_options(const KilnTrainer *trainer)
{
    const KilnMetricCollection *states = &trainer->metrics->collection;
    json_t *all = json_object();

    for (size_t i = 0; i < states->n && trainer->config != NULL; i++) {
        char *yaml = NULL;

        if (states->list[i].phase != KILN_PHASE_FIT)
            continue;
        KilnStatus status = kiln_config_yaml(
            trainer->config, kiln_instance_path(states->list[i].metric), true, &yaml, NULL);
        if (status >= 0 || status == KILN_E_NOMEM)
            kiln_json_put(&all, states->list[i].name, status >= 0 ? hash_json(yaml) : NULL);
        free(yaml);
    }
    return all;
}

/* Hash a file's name without its folders: a moved data set is the same. */
static uint64_t hash_name(const char *name, uint64_t seed)
{
    const char *slash = strrchr(name, '/');

    name = slash != NULL ? slash + 1 : name;
    return XXH3_64bits_withSeed(name, strlen(name), seed);
}

uint64_t kiln_snapshot_index(const KilnDataset *dataset)
{
    enum { MAX_HASHED = 1 << 16 };
    const int64_t stride = dataset->count / MAX_HASHED + 1;
    uint64_t hash = (uint64_t)dataset->count;

    for (int64_t i = 0; i < dataset->count; i += stride) {
        const char *name = dataset->name != NULL ? dataset->name(dataset->ctx, i) : NULL;
        const int64_t label = dataset->label != NULL ? dataset->label(dataset->ctx, i) : -1;

        if (name != NULL)
            hash = hash_name(name, hash);
        hash = XXH3_64bits_withSeed(&label, sizeof(label), hash);
    }
    return hash;
}

/* ---- The run --------------------------------------------------------------------------- */

static json_t *position_json(const KilnTrainer *trainer)
{
    const KilnPosition *at = &trainer->at;
    const bool stops = at->should_stop && !trainer->state.paused;

    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:s}", "epoch",
                     (json_int_t)at->epoch, "step", (json_int_t)at->step, "batch",
                     (json_int_t)at->batch, "batches", (json_int_t)at->batches, "samples",
                     (json_int_t)at->samples, "in_group", (json_int_t)at->in_group,
                     "last_val_batch", (json_int_t)at->last_val_batch, "last_end_batch",
                     (json_int_t)at->last_end_batch, "epoch_begun", at->epoch_begun ? 1 : 0,
                     "epoch_done", at->epoch_done ? 1 : 0, "should_stop", stops ? 1 : 0,
                     "stop_reason", stops ? trainer->state.stop_reason : "");
}

/* What results depend on: the run and the machine. */
static json_t *run_json(const KilnTrainer *trainer)
{
    char *model = kiln_trainer_model(trainer);
    json_t *run = json_pack(
        "{s:i, s:s, s:s, s:s, s:s?, s:I, s:i, s:i, s:I, s:I, s:I, s:s, s:o}", "format",
        (int)KILN_CHECKPOINT_FORMAT, "version", KILN_VERSION, "machine", trainer->backend->machine,
        "task", kiln_instance_name(trainer->module), "model", model, "seed",
        (json_int_t)trainer->options.root->seed, "threads", trainer->threads, "world",
        kiln_trainer_world(trainer), "batch_size", (json_int_t)trainer->data.batch_size,
        "train_samples", (json_int_t)kiln_trainer_train_samples(trainer), "parameters",
        (json_int_t)kiln_params_size(trainer->params), "weights",
        kiln_dtype_name(kiln_params_dtype(trainer->params)), "data",
        kiln_data_spec_json(&trainer->data.spec));

    free(model);
    return run;
}

/* Add the members of `part`, which is consumed. */
static bool add(json_t *state, json_t *part)
{
    bool good = state != NULL && part != NULL && json_object_update(state, part) == 0;

    json_decref(part);
    return good;
}

json_t *kiln_snapshot_state(KilnSnapshot *snapshot, const KilnTrainer *trainer)
{
    json_t *state = run_json(trainer);
    json_t *counts = kiln_class_counts_json(trainer->data.class_counts);
    bool failed = !add(state, position_json(trainer)) ||
                  (counts != NULL && !add(state, json_pack("{s:o}", "class_counts", counts))) ||
                  !add(state, json_pack("{s:o, s:b, s:o}", "train_index",
                                        json_sprintf("%016" PRIx64, trainer->train_index),
                                        "weights_only", snapshot->weights_only ? 1 : 0, "callbacks",
                                        callbacks_json(snapshot, trainer)));

    if (!failed && !snapshot->weights_only)
        failed = !add(state, json_pack("{s:o, s:o, s:o, s:o}", "metrics",
                                       kiln_metrics_save(trainer->metrics), "metric_options",
                                       kiln_snapshot_metric_options(trainer), "optimizers",
                                       optimizers_json(snapshot, trainer), "loggers",
                                       kiln_loggers_state(trainer, &failed))) ||
                 failed;
    if (failed) {
        json_decref(state);
        return NULL;
    }
    return state;
}
