/* Opening a checkpoint folder: is it whole, does it fit; and loading it. */
#include "train/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "tensor/safetensors.h"
#include "train/state.h"

enum { LARGEST_STATE = 64 << 20 };

/* ---- Is it whole? ------------------------------------------------------------------ */

/* <checkpoint>/<name>, owned by the caller. */
static KilnStatus file_of(const KilnCheckpoint *checkpoint, const char *name, char **ret,
                          KilnError *err)
{
    *ret = kiln_path_join(checkpoint->path, name);
    return *ret != NULL ? KILN_OK : kiln_error_nomem(err, strlen(name));
}

/* The tensors in <checkpoint>/<name>. The file is closed, and its path freed, by the
 * caller, also after an error. */
static KilnStatus open_tensors(const KilnCheckpoint *checkpoint, const char *name,
                               KilnSafetensors **ret, char **ret_path, KilnError *err)
{
    KilnStatus status = file_of(checkpoint, name, ret_path, err);

    return status < 0 ? status : kiln_safetensors_open(*ret_path, ret, err);
}

static KilnStatus check_file(const KilnCheckpoint *checkpoint, const char *name, KilnError *err)
{
    const json_t *file = json_object_get(json_object_get(checkpoint->state, "files"), name);
    const char *want = json_string_value(json_object_get(file, "xxh3"));
    json_int_t want_size = json_integer_value(json_object_get(file, "size"));
    uint64_t hash = 0;
    int64_t size = 0;
    char *path = NULL, hex[17];

    if (want == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s/%s: has no checksum of %s", checkpoint->path,
                              KILN_CHECKPOINT_STATE, name);
    KilnStatus status = file_of(checkpoint, name, &path, err);
    if (status >= 0)
        status = kiln_file_hash(path, &hash, &size, err);
    if (status >= 0) {
        snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
        if (size != want_size)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: is %s: %lld bytes where %lld were saved; use another "
                                    "checkpoint",
                                    path, size < want_size ? "truncated" : "too long",
                                    (long long)size, (long long)want_size);
        else if (strcmp(hex, want) != 0)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: is damaged: its checksum is %s where %s was saved; use "
                                    "another checkpoint",
                                    path, hex, want);
    }
    free(path);
    return status;
}

/* Whether the weights come from another program, which has put its own there. */
static bool foreign_weights(const KilnCheckpoint *checkpoint)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    bool foreign = open_tensors(checkpoint, KILN_CHECKPOINT_MODEL, &file, &path, NULL) >= 0 &&
                   kiln_safetensors_metadata(file, KILN_CHECKPOINT_MARK) == NULL;

    kiln_safetensors_close(file);
    free(path);
    return foreign;
}

static KilnStatus read_state(KilnCheckpoint *checkpoint, KilnError *err)
{
    char *path = NULL, *text = NULL;
    size_t size = 0;
    json_error_t why;
    KilnStatus status = file_of(checkpoint, KILN_CHECKPOINT_STATE, &path, err);

    if (status >= 0)
        status = kiln_file_read(path, LARGEST_STATE, &text, &size, err);
    if (status >= 0) {
        checkpoint->state = json_loadb(text, size, 0, &why);
        if (!json_is_object(checkpoint->state))
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: is truncated or damaged: %s in line %d; use another "
                                    "checkpoint",
                                    path, checkpoint->state == NULL ? why.text : "no object",
                                    why.line);
    }
    json_int_t format = json_integer_value(json_object_get(checkpoint->state, "format"));
    if (status >= 0 && (format < 1 || format > KILN_CHECKPOINT_FORMAT))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: has format %lld; this version of kiln reads up to format %d",
                                path, (long long)format, (int)KILN_CHECKPOINT_FORMAT);
    free(text);
    free(path);
    return status;
}

/* ---- What it says ------------------------------------------------------------------- */

static bool read_dtype(const char *name, KilnDType *ret)
{
    static const KilnDType all[] = { KILN_F32, KILN_I32, KILN_U8, KILN_I64, KILN_F64 };

    for (size_t i = 0; name != NULL && i < KILN_COUNT(all); i++)
        if (strcmp(kiln_dtype_name(all[i]), name) == 0) {
            *ret = all[i];
            return true;
        }
    return false;
}

static bool read_feature(const json_t *saved, KilnFeature *feature)
{
    const json_t *shape = json_object_get(saved, "shape");

    feature->name = json_string_value(json_object_get(saved, "name"));
    feature->shape.rank = (int)json_array_size(shape);
    if (feature->name == NULL || json_array_size(shape) > KILN_MAX_RANK ||
        !read_dtype(json_string_value(json_object_get(saved, "dtype")), &feature->dtype))
        return false;
    feature->varies = json_is_true(json_object_get(saved, "varies"));
    feature->pad = json_number_value(json_object_get(saved, "pad"));
    for (int axis = 0; axis < feature->shape.rank; axis++)
        feature->shape.dim[axis] = json_integer_value(json_array_get(shape, (size_t)axis));
    return kiln_shape_count(&feature->shape) >= 0;
}

static bool read_spec(KilnCheckpoint *checkpoint)
{
    const json_t *data = json_object_get(checkpoint->state, "data");
    const json_t *features = json_object_get(data, "features");
    const json_t *classes = json_object_get(data, "classes");
    KilnDataSpec *spec = &checkpoint->spec;

    spec->n_features = json_array_size(features);
    spec->n_classes = (int64_t)json_array_size(classes);
    checkpoint->class_names = calloc((size_t)spec->n_classes + 1, sizeof(const char *));
    if (spec->n_features > KILN_MAX_FEATURES || checkpoint->class_names == NULL)
        return false;
    spec->class_names = checkpoint->class_names;
    for (size_t i = 0; i < spec->n_features; i++)
        if (!read_feature(json_array_get(features, i), &spec->features[i]))
            return false;
    for (size_t i = 0; i < (size_t)spec->n_classes; i++) {
        checkpoint->class_names[i] = json_string_value(json_array_get(classes, i));
        if (checkpoint->class_names[i] == NULL)
            return false;
    }
    return true;
}

/* Of format 1: what it leaves out follows from the epoch and its batches, of which one was one
 * optimizer step. Validation at the end of an epoch was over when the epoch was. */
static void complete_position(const json_t *state, KilnPosition *at)
{
    const int64_t in_epoch = at->batch * json_integer_value(json_object_get(state, "batch_size"));
    const int64_t all = json_integer_value(json_object_get(state, "train_samples"));
    const bool whole = at->epoch_done || in_epoch > all;

    at->batches = at->step;
    at->samples = at->epoch * all + (whole ? all : in_epoch);
    at->epoch_begun = at->batch > 0;
    at->last_val_batch = at->epoch_done ? at->batches : -1;
}

static bool read_count(const json_t *position, const char *name, int64_t least, int64_t *ret)
{
    const json_t *value = json_object_get(position, name);

    *ret = json_integer_value(value);
    return json_is_integer(value) && *ret >= least;
}

static bool read_position(KilnCheckpoint *checkpoint)
{
    const json_t *state = checkpoint->state;
    KilnPosition *at = &checkpoint->at;
    bool good = read_count(state, "epoch", 0, &at->epoch) &&
                read_count(state, "step", 0, &at->step) &&
                read_count(state, "batch", 0, &at->batch);

    at->epoch_done = json_is_true(json_object_get(state, "epoch_done"));
    if (json_integer_value(json_object_get(state, "format")) < 2) {
        complete_position(state, at);
        return good;
    }
    at->epoch_begun = json_is_true(json_object_get(state, "epoch_begun"));
    at->should_stop = json_is_true(json_object_get(state, "should_stop"));
    return good && read_count(state, "batches", 0, &at->batches) &&
           read_count(state, "samples", 0, &at->samples) &&
           read_count(state, "in_group", 0, &at->in_group) &&
           read_count(state, "last_val_batch", -1, &at->last_val_batch);
}

KilnStatus kiln_checkpoint_open(const char *path, bool resume, KilnCheckpoint *ret, KilnError *err)
{
    KilnCheckpoint checkpoint = { .path = kiln_strdup(path) };
    KilnStatus status = checkpoint.path != NULL ? read_state(&checkpoint, err)
                                                : kiln_error_nomem(err, 1);

    if (status >= 0 && (!read_spec(&checkpoint) || !read_position(&checkpoint)))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s/%s: is damaged: epoch, step, batch or data are not what was "
                                "saved; use another checkpoint",
                                path, KILN_CHECKPOINT_STATE);
    if (status >= 0 && (resume || !foreign_weights(&checkpoint)))
        status = check_file(&checkpoint, KILN_CHECKPOINT_MODEL, err);
    if (status >= 0 && resume)
        status = check_file(&checkpoint, KILN_CHECKPOINT_TRAINER, err);
    if (status < 0) {
        kiln_checkpoint_close(&checkpoint);
        return status;
    }
    *ret = checkpoint;
    return KILN_OK;
}

KilnStatus kiln_checkpoint_open_configured(const KilnConfig *config, KilnCheckpoint *ret,
                                           KilnError *err)
{
    KilnOptions options = { 0 };
    char *path = NULL;
    KilnStatus status = kiln_options_read(config, &options, err);

    if (status >= 0 && options.root->ckpt_path == NULL)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "ckpt_path is missing: a checkpoint folder, a run folder, last or "
                                "best");
    if (status >= 0)
        status = kiln_checkpoint_resolve(options.root->ckpt_path, "outputs", &path, err);
    if (status >= 0)
        status = kiln_checkpoint_open(path, false, ret, err);
    free(path);
    kiln_options_release(&options);
    return status;
}

void kiln_checkpoint_close(KilnCheckpoint *checkpoint)
{
    json_decref(checkpoint->state);
    free(checkpoint->class_names);
    free(checkpoint->path);
    *checkpoint = (KilnCheckpoint) { 0 };
}

/* ---- Weights ---------------------------------------------------------------------------- */

static KilnStatus compare_params(const KilnSafetensors *file, KilnTrainer *trainer,
                                 const char *source, KilnError *err)
{
    size_t n = kiln_safetensors_count(file);
    KilnParamForm *forms = calloc(n + 1, sizeof(*forms));
    KilnStatus status = forms != NULL ? KILN_OK : kiln_error_nomem(err, n * sizeof(*forms));

    for (size_t i = 0; i < n && status >= 0; i++) {
        const KilnStEntry *entry = kiln_safetensors_at(file, i);

        forms[i] = (KilnParamForm) { .name = entry->name, .shape = entry->shape };
        if (!kiln_safetensors_dtype(entry, &forms[i].dtype))
            status = kiln_error_set(err, KILN_E_FORMAT, "%s: %s has type %s, which kiln lacks",
                                    source, entry->name, entry->dtype);
    }
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

/* Say whose the checkpoint is, in front of what differs. */
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

/* Whether the file says more of a parameter than this run keeps. */
static bool rounds(const KilnSafetensors *file, const KilnTrainer *trainer)
{
    for (size_t i = 0; i < kiln_params_count(trainer->params); i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);
        const KilnStEntry *entry = kiln_safetensors_find(file, kiln_param_name(param));

        if (kiln_param_dtype(param) == KILN_BF16 && strcmp(entry->dtype, "BF16") != 0)
            return true;
    }
    return false;
}

KilnStatus kiln_checkpoint_load_weights(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                        KilnError *err)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = open_tensors(checkpoint, KILN_CHECKPOINT_MODEL, &file, &path, err);

    if (status >= 0) {
        status = compare_params(file, trainer, path, err);
        if (status == KILN_E_FORMAT)
            status = name_models(checkpoint, trainer, err);
    }
    /* A run that resumes says more, and one that tests its best rounds as it did before. */
    if (status >= 0 && trainer->phase != KILN_PHASE_FIT && rounds(file, trainer))
        kiln_output_print(&trainer->output,
                          "warning: weights are f32 in the checkpoint and rounded to bf16 here "
                          "(trainer.precision=bf16-true): results may differ from those of f32");
    for (size_t i = 0; status >= 0 && i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);

        status = kiln_safetensors_read(file, kiln_safetensors_find(file, kiln_param_name(param)),
                                       kiln_param_dtype(param), kiln_param_data(param), err);
    }
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
                                  "%s: has no %s of that shape, which optimizer %s needs: it was "
                                  "saved with another optimizer; go on with that one, or start "
                                  "anew",
                                  path, name, kiln_instance_name(optimizer->use.optimizer));
        status = kiln_safetensors_read(file, entry, kiln_param_dtype(param),
                                       kiln_optimizer_slot(optimizer, slot, param), err);
    }
    return status;
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
                                  "%s: has no %s of that shape, though it was saved between the "
                                  "batches of a step; use another checkpoint",
                                  path, name);
        status = kiln_safetensors_read(file, entry, kiln_param_dtype(param), param->gradient, err);
    }
    return status;
}

/* The optimizers' state, and what the epoch's metrics had counted. */
static KilnStatus load_optimizer(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                 KilnError *err)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = open_tensors(checkpoint, KILN_CHECKPOINT_TRAINER, &file, &path, err);

    for (size_t i = 0; i < trainer->n_optimizers; i++)
        for (size_t slot = 0; status >= 0 && slot < trainer->optimizers[i].n_slots; slot++)
            status = load_slot(trainer, &trainer->optimizers[i], file, path, slot, err);
    if (status >= 0 && checkpoint->at.in_group > 0)
        status = load_gradients(trainer, file, path, err);
    if (status >= 0)
        status = kiln_tallies_load(kiln_metrics_tallies(trainer->metrics), KILN_PHASE_FIT, file,
                                   err);
    kiln_safetensors_close(file);
    free(path);
    return status;
}

static KilnStatus load_scheduler(KilnInstance *scheduler, json_t *saved, KilnError *err)
{
    KilnState state = { .object = saved };
    KilnStatus status = KILN_OK;

    if (scheduler == NULL || !json_is_object(state.object) ||
        kiln_instance_component(scheduler)->ops.scheduler->load_state_dict == NULL)
        return KILN_OK;
    status = kiln_instance_component(scheduler)->ops.scheduler->load_state_dict(scheduler, &state,
                                                                                err);
    if (status < 0)
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(scheduler));
    return status;
}

/* What the checkpoint has of the optimizer of that name (NULL: without), for its tensors were
 * there; NULL: nothing. */
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

/* Format 1 had one optimizer, which had made every step. */
static KilnStatus load_updates(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                               KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->n_optimizers && status >= 0; i++) {
        KilnOptimizerState *one = &trainer->optimizers[i];
        json_t *saved = saved_optimizer(checkpoint, one->use.name);

        one->updates = saved != NULL ? json_integer_value(json_object_get(saved, "updates"))
                                     : checkpoint->at.step;
        if (one->updates < 0)
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s/%s: is damaged: an optimizer made %lld updates; use another "
                                  "checkpoint",
                                  checkpoint->path, KILN_CHECKPOINT_STATE, (long long)one->updates);
        status = load_scheduler(
            one->use.scheduler,
            json_object_get(saved != NULL ? saved : checkpoint->state, "scheduler"), err);
    }
    return status;
}

/* The shadow from the model's file, for the weights may hold it rounded. */
static KilnStatus load_shadow(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                              KilnError *err)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = open_tensors(checkpoint, KILN_CHECKPOINT_MODEL, &file, &path, err);

    for (size_t i = 0; status >= 0 && i < kiln_params_count(trainer->params); i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);
        float *data = kiln_shadow_data(trainer->shadow, param);

        if (data != NULL)
            status = kiln_safetensors_read(
                file, kiln_safetensors_find(file, kiln_param_name(param)), KILN_F32, data, err);
    }
    kiln_safetensors_close(file);
    free(path);
    return status;
}

/* The weights hold the average when it begins. */
static KilnStatus load_shadowed(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                KilnError *err)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = open_tensors(checkpoint, KILN_CHECKPOINT_TRAINER, &file, &path, err);

    for (size_t i = 0; status >= 0 && i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);
        char name[512];

        snprintf(name, sizeof(name), KILN_CHECKPOINT_WEIGHTS "%s", kiln_param_name(param));
        const KilnStEntry *entry = kiln_safetensors_find(file, name);
        if (entry == NULL)
            continue;
        if (!kiln_shape_equal(&entry->shape, kiln_param_shape(param)))
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: %s has another shape than the network's; use another "
                                    "checkpoint",
                                    path, name);
        else
            status = kiln_safetensors_read(file, entry, kiln_param_dtype(param),
                                           kiln_param_data(param), err);
    }
    kiln_safetensors_close(file);
    free(path);
    return status;
}

/* What a resume that differs from the saved run can't reproduce. */
static void warn_of_differences(const KilnCheckpoint *checkpoint, KilnTrainer *trainer)
{
    const struct {
        const char *name;
        int64_t now;
    } all[] = {
        { "seed", trainer->options.root->seed },
        { "threads", trainer->threads },
        { "batch_size", trainer->batch_size },
        { "train_samples", trainer->datasets[KILN_TRAIN].count },
    };

    const char *now = kiln_dtype_name(kiln_params_dtype(trainer->params));
    const char *then = json_string_value(json_object_get(checkpoint->state, "weights"));
    if (then != NULL && strcmp(then, now) != 0)
        kiln_output_print(&trainer->output,
                          "warning: weights and optimizer state were %s in the checkpoint and are "
                          "%s now (trainer.precision): they are converted, and the run goes on, "
                          "but not exactly as it would have",
                          then, now);
    for (size_t i = 0; i < KILN_COUNT(all); i++) {
        const json_t *saved = json_object_get(checkpoint->state, all[i].name);

        if (json_is_integer(saved) && json_integer_value(saved) != all[i].now)
            kiln_output_print(&trainer->output,
                              "warning: %s was %lld in the checkpoint and is %lld now: the run "
                              "goes on, but not exactly as it would have",
                              all[i].name, (long long)json_integer_value(saved),
                              (long long)all[i].now);
    }
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
    warn_of_differences(checkpoint, trainer);
    trainer->at = checkpoint->at;
    const char *reason = json_string_value(json_object_get(checkpoint->state, "stop_reason"));
    if (trainer->at.should_stop && reason != NULL)
        snprintf(trainer->stop_reason, sizeof(trainer->stop_reason), "%s", reason);
    return KILN_OK;
}

KilnStatus kiln_checkpoint_load_callbacks(const KilnCheckpoint *checkpoint, KilnTrainer *trainer,
                                          KilnError *err)
{
    const json_t *all = json_object_get(checkpoint->state, "callbacks");
    KilnStatus status = KILN_OK;

    if (trainer->shadow != NULL)
        status = load_shadow(checkpoint, trainer, err);
    if (status >= 0)
        status = load_shadowed(checkpoint, trainer, err);
    for (size_t i = 0; i < trainer->hooks.n_all && status >= 0; i++) {
        KilnInstance *callback = trainer->hooks.all[i].who;
        const KilnCallbackOps *ops = trainer->hooks.all[i].ops;
        KilnState state = { .object = json_object_get(all, kiln_instance_path(callback)) };

        if (ops->load_state_dict != NULL && json_is_object(state.object))
            status = ops->load_state_dict(callback, &state, err);
        if (status < 0)
            (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(callback));
    }
    return status;
}
