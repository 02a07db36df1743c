/* Loads an opened checkpoint into a run, after checking that it fits. */
#include "base/call.h"
#include "train/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "train/checkpoint/component_state.h"
#include "train/checkpoint/read_tensor.h"
#include "train/optim/averaged_weights.h"
#include "train/optim/sparse_updates.h"

/* ---- Weights ---------------------------------------------------------------------------- */

/* Whether adapters of lora.weights are put on a checkpoint that has none. */
static bool adds_adapters(const KilnTrainer *trainer)
{
    const KilnAdapters *adapters = trainer->adapters;

    return adapters != NULL && adapters->source != NULL && !adapters->is_saved &&
           trainer->stage != KILN_STAGE_FIT;
}

static KilnStatus compare_params(const KilnSafetensors *file, KilnTrainer *trainer,
                                 const char *source, KilnError *err)
{
    const KilnParams *params = trainer->params;
    const size_t in_file = kiln_safetensors_count(file);
    size_t n = in_file;
    KilnParamForm *forms = calloc(n + params->count + 1, sizeof(*forms));
    KilnStatus status = forms != NULL ? KILN_OK : kiln_error_nomem(err, n * sizeof(*forms));

    for (size_t i = 0; i < in_file && status >= 0; i++) {
        const KilnStEntry *entry = kiln_safetensors_at(file, i);

        forms[i] = (KilnParamForm) { .name = entry->name, .shape = entry->shape };
        if (!kiln_safetensors_dtype(entry, &forms[i].dtype))
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: %s has type %s, which kiln does not support", source,
                                    entry->name, entry->dtype);
    }
    for (size_t i = 0; i < params->count && status >= 0 && adds_adapters(trainer); i++)
        if (params->items[i]->is_adapter) /* they come from lora.weights */
            forms[n++] = (KilnParamForm) { params->items[i]->name, params->items[i]->dtype,
                                           params->items[i]->shape };
    if (status >= 0)
        status = kiln_params_compare(trainer->params, forms, n, source, err);
    free(forms);
    return status;
}

char *kiln_trainer_model(const KilnTrainer *trainer)
{
    char *model = NULL;

    if (trainer->config != NULL)
        (void)!kiln_config_text(trainer->config, "task.model._target_", &model, NULL);
    return model;
}

/* Prefix an error with the networks of checkpoint and run. */
static KilnStatus name_models(const KilnCheckpoint *checkpoint, const KilnTrainer *trainer,
                              KilnError *err)
{
    const char *saved = json_string_value(json_object_get(checkpoint->state, "model"));
    char *model = kiln_trainer_model(trainer);

    if (saved != NULL && model != NULL)
        (void)kiln_error_prefix(err, "a checkpoint of %s for %s: ", saved, model);
    free(model);
    return KILN_E_FORMAT;
}

/* Whether loading rounds: the run's parameters are bf16 and the file's are not. */
static bool rounds(const KilnSafetensors *file, const KilnTrainer *trainer)
{
    for (size_t i = 0; i < kiln_params_count(trainer->params); i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);
        const KilnStEntry *entry = kiln_safetensors_find(file, kiln_param_name(param));

        if (entry != NULL && kiln_param_dtype(param) == KILN_BF16 &&
            strcmp(entry->dtype, "BF16") != 0)
            return true;
    }
    return false;
}

KilnStatus kiln_checkpoint_load_weights(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                        KilnError *err)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = kiln_checkpoint_tensors(checkpoint, KILN_CHECKPOINT_MODEL, &file, &path,
                                                err);

    if (status >= 0) {
        status = compare_params(file, trainer, path, err);
        if (status == KILN_E_FORMAT)
            status = name_models(checkpoint, trainer, err);
    }
    /* resume.c warns for a resumed run; a fit that tests its best weights rounds as it did. */
    if (status >= 0 && trainer->phase != KILN_PHASE_FIT && rounds(file, trainer))
        kiln_output_print(&trainer->output,
                          "warning: the checkpoint's f32 weights are rounded to bf16 "
                          "(trainer.precision=bf16-true): results may differ from f32");
    for (size_t i = 0; status >= 0 && i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);
        const KilnStEntry *entry = kiln_safetensors_find(file, kiln_param_name(param));

        if (entry != NULL)
            status = kiln_read_tensor(file, entry, kiln_param_dtype(param),
                                      kiln_param_location(param), err);
    }
    if (status >= 0 && adds_adapters(trainer))
        status = kiln_adapters_load(trainer->adapters, trainer->params, err);
    kiln_safetensors_close(file);
    free(path);
    return status;
}

/* ---- Everything ---------------------------------------------------------------------------- */

static KilnStatus load_slot(KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                            const KilnSafetensors *file, const char *path, size_t slot,
                            KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; status >= 0 && i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);
        char name[512];

        if (optimizer->slots[slot] == NULL || !kiln_optimizer_has(optimizer, param))
            continue;
        kiln_optimizer_slot_name(optimizer, slot, param, name, sizeof(name));
        const KilnStEntry *entry = kiln_safetensors_find(file, name);
        if (entry == NULL || !kiln_shape_equal(&entry->shape, kiln_param_shape(param)))
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s: has no %s of the right shape, which optimizer %s needs: it "
                                  "was saved with another optimizer; resume with that one, or "
                                  "start a new run",
                                  path, name, kiln_instance_name(optimizer->use.optimizer));
        status = kiln_read_tensor(file, entry, kiln_param_dtype(param),
                                  kiln_optimizer_slot(optimizer, slot, param), err);
    }
    return status;
}

/* Kernels trust the list. */
static bool are_rows(const int32_t *list, int64_t rows)
{
    bool fits = list[0] >= -1 && list[0] <= rows;

    for (int32_t i = 0; fits && i < list[0]; i++)
        fits = list[1 + i] >= 0 && list[1 + i] < rows;
    return fits;
}

static KilnStatus read_sparse_rows(const KilnParam *param, const KilnSafetensors *file,
                                   const KilnStEntry *entry, KilnError *err)
{
    const size_t bytes = (size_t)kiln_param_sparse_rows_words(param) * sizeof(int32_t);
    const KilnLocation to = kiln_param_sparse_rows_location(param);
    int32_t *list = malloc(bytes);
    KilnStatus status = list != NULL ? kiln_safetensors_read(file, entry, KILN_I32, list, err)
                                     : kiln_error_nomem(err, bytes);

    if (status >= 0 && !are_rows(list, kiln_param_shape(param)->dim[0]))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: is no list of rows of %s; use another checkpoint", entry->name,
                                kiln_param_name(param));
    if (status >= 0)
        kiln_buffer_upload(to.buffer, to.offset, list, bytes);
    free(list);
    return status;
}

/* The rows of an embedding's gradient, if an optimizer updates those alone. */
static KilnStatus load_sparse_rows(const KilnTrainer *trainer, const KilnParam *param,
                                   const KilnSafetensors *file, const char *path, KilnError *err)
{
    char name[512];

    if (!kiln_sparse_updates_any(trainer, param))
        return KILN_OK;
    snprintf(name, sizeof(name), KILN_CHECKPOINT_SPARSE_ROWS "%s", kiln_param_name(param));
    const KilnStEntry *entry = kiln_safetensors_find(file, name);
    if (entry == NULL ||
        !kiln_shape_equal(&entry->shape, &KILN_SHAPE(kiln_param_sparse_rows_words(param))))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: has no %s of the right shape: it was saved between the batches "
                              "of a step with sparse=false; resume with that, or use another "
                              "checkpoint",
                              path, name);
    return read_sparse_rows(param, file, entry, err);
}

static KilnStatus load_gradients(KilnTrainer *trainer, const KilnSafetensors *file,
                                 const char *path, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; status >= 0 && i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);
        char name[512];

        if (!kiln_param_trained(param))
            continue;
        snprintf(name, sizeof(name), KILN_CHECKPOINT_GRADIENTS "%s", kiln_param_name(param));
        const KilnStEntry *entry = kiln_safetensors_find(file, name);
        if (entry == NULL || !kiln_shape_equal(&entry->shape, kiln_param_shape(param)))
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s: has no %s of the right shape, though it was saved between "
                                  "the batches of a step; use another checkpoint",
                                  path, name);
        status = kiln_read_tensor(file, entry, kiln_param_dtype(param),
                                  kiln_param_gradient_location(param), err);
        kiln_param_gradient_written(param);
        if (status >= 0)
            status = load_sparse_rows(trainer, param, file, path, err);
    }
    return status;
}

typedef KilnStatus LoadState(KilnInstance *self, const KilnState *state, KilnError *err);

/* Give a component its saved state, if there is any. */
static KilnStatus load_component(const KilnCheckpoint *checkpoint, KilnInstance *self,
                                 json_t *saved, LoadState *load, KilnError *err)
{
    KilnState state = { .path = kiln_instance_path(self), .object = saved };
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = KILN_OK;

    if (!json_is_object(saved))
        return KILN_OK;
    if (json_object_get(json_object_get(checkpoint->state, "files"), KILN_CHECKPOINT_TRAINER) !=
        NULL)
        status = kiln_checkpoint_tensors(checkpoint, KILN_CHECKPOINT_TRAINER, &file, &path, err);
    state.file = file;
    if (status >= 0)
        status = KILN_CALLED(self, "load_state_dict", load(self, &state, err), err);
    if (status < 0)
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(self));
    kiln_safetensors_close(file);
    free(path);
    return status;
}

/* Load the optimizers' state and the metrics' state of the epoch. */
static KilnStatus load_optimizer(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                 KilnError *err)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = kiln_checkpoint_tensors(checkpoint, KILN_CHECKPOINT_TRAINER, &file, &path,
                                                err);

    for (size_t i = 0; i < trainer->n_optimizers; i++)
        for (size_t slot = 0; status >= 0 && slot < trainer->optimizers[i].n_slots; slot++)
            status = load_slot(trainer, &trainer->optimizers[i], file, path, slot, err);
    if (status >= 0 && checkpoint->at.in_group > 0)
        status = load_gradients(trainer, file, path, err);
    if (status >= 0)
        status = kiln_metric_collection_load(&trainer->metrics->collection, KILN_PHASE_FIT, file,
                                             err);
    kiln_safetensors_close(file);
    free(path);
    return status;
}

static KilnStatus load_scheduler(const KilnCheckpoint *checkpoint, KilnInstance *scheduler,
                                 json_t *saved, KilnError *err)
{
    if (scheduler == NULL ||
        kiln_instance_component(scheduler)->ops.scheduler->load_state_dict == NULL)
        return KILN_OK;
    return load_component(checkpoint, scheduler, saved,
                          kiln_instance_component(scheduler)->ops.scheduler->load_state_dict, err);
}

/* The checkpoint's entry for the optimizer of that name (NULL: unnamed); NULL: none. */
static json_t *saved_optimizer(const KilnCheckpoint *checkpoint, const char *name)
{
    const json_t *all = json_object_get(checkpoint->state, "optimizers");

    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *one = json_array_get(all, i);
        const char *saved = json_string_value(json_object_get(one, "name"));

        if (name == NULL ? saved == NULL : saved != NULL && strcmp(saved, name) == 0)
            return one;
    }
    return NULL;
}

/* Load the optimizers' update counts and schedulers. Formats 1 and 2 had one optimizer, which made
 * every step. */
static KilnStatus load_updates(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                               KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->n_optimizers && status >= 0; i++) {
        KilnOptimizerState *one = &trainer->optimizers[i];
        json_t *saved = saved_optimizer(checkpoint, one->use.name);

        one->updates = saved != NULL ? json_integer_value(json_object_get(saved, "updates"))
                                     : checkpoint->at.step;
        (void)kiln_json_get_f64(json_object_get(saved, "rate"), &one->rate);
        if (one->updates < 0)
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s/%s: is damaged: an optimizer made %lld updates; use another "
                                  "checkpoint",
                                  checkpoint->path, KILN_CHECKPOINT_STATE, (long long)one->updates);
        status = load_scheduler(
            checkpoint, one->use.scheduler,
            json_object_get(saved != NULL ? saved : checkpoint->state, "scheduler"), err);
    }
    return status;
}

/* Load the averaged weights from the model's file: as parameters they may be rounded. */
static KilnStatus load_averaged(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                KilnError *err)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = kiln_checkpoint_tensors(checkpoint, KILN_CHECKPOINT_MODEL, &file, &path,
                                                err);

    for (size_t i = 0; status >= 0 && i < kiln_params_count(trainer->params); i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);
        const KilnLocation location = kiln_averaged_location(trainer->averaged, param);

        if (location.buffer != NULL)
            status = kiln_read_tensor(file, kiln_safetensors_find(file, kiln_param_name(param)),
                                      kiln_averaged_dtype(trainer->averaged), location, err);
    }
    kiln_safetensors_close(file);
    free(path);
    return status;
}

/* Load the training weights from the trainer's file: the parameters hold the averages so far. */
static KilnStatus load_training_weights(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                        KilnError *err)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = kiln_checkpoint_tensors(checkpoint, KILN_CHECKPOINT_TRAINER, &file, &path,
                                                err);

    for (size_t i = 0; status >= 0 && i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);
        char name[512];

        snprintf(name, sizeof(name), KILN_CHECKPOINT_WEIGHTS "%s", kiln_param_name(param));
        const KilnStEntry *entry = kiln_safetensors_find(file, name);
        if (entry == NULL)
            continue;
        if (!kiln_shape_equal(&entry->shape, kiln_param_shape(param)))
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: %s has a different shape than in the network; use "
                                    "another checkpoint",
                                    path, name);
        else
            status = kiln_read_tensor(file, entry, kiln_param_dtype(param),
                                      kiln_param_location(param), err);
    }
    kiln_safetensors_close(file);
    free(path);
    return status;
}

KilnStatus kiln_checkpoint_load(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                KilnError *err)
{
    KilnStatus status = kiln_checkpoint_load_weights(checkpoint, trainer, err);

    if (status >= 0)
        status = load_optimizer(checkpoint, trainer, err);
    if (status >= 0)
        status = load_updates(checkpoint, trainer, err);
    if (status >= 0)
        status = kiln_metrics_load(trainer->metrics, json_object_get(checkpoint->state, "metrics"),
                                   err);
    if (status < 0)
        return status;
    trainer->at = checkpoint->at;
    const char *reason = json_string_value(json_object_get(checkpoint->state, "stop_reason"));
    if (trainer->at.should_stop && reason != NULL)
        snprintf(trainer->state.stop_reason, sizeof(trainer->state.stop_reason), "%s", reason);
    return KILN_OK;
}

/* Load a component's numbers and tensors, then its files. */
static KilnStatus load_hooks(const KilnCheckpoint *checkpoint, KilnTrainer *trainer, size_t i,
                             KilnError *err)
{
    KilnInstance *who = trainer->hooks.all[i].instance;
    const KilnCallbackOps *ops = trainer->hooks.all[i].ops;
    json_t *saved = json_object_get(json_object_get(checkpoint->state, "callbacks"),
                                    kiln_instance_path(who));
    KilnStatus status = KILN_OK;

    if (ops->load_state_dict != NULL)
        status = load_component(checkpoint, who, saved, ops->load_state_dict, err);
    if (status >= 0 && ops->on_load_checkpoint != NULL) {
        status = KILN_CALLED(who, "on_load_checkpoint",
                             ops->on_load_checkpoint(who, trainer, checkpoint->path, err), err);
        if (status < 0)
            (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(who));
    }
    return status;
}

KilnStatus kiln_checkpoint_load_module(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                       KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->hooks.n_all && status >= 0; i++)
        if (trainer->hooks.all[i].instance == trainer->module)
            status = load_hooks(checkpoint, trainer, i, err);
    return status;
}

KilnStatus kiln_checkpoint_load_callbacks(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                          KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (trainer->averaged != NULL)
        status = load_averaged(checkpoint, trainer, err);
    if (status >= 0)
        status = load_training_weights(checkpoint, trainer, err);
    for (size_t i = 0; i < trainer->hooks.n_all && status >= 0; i++)
        status = load_hooks(checkpoint, trainer, i, err);
    return status;
}
