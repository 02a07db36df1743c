/* Writing a checkpoint folder, publishing it by rename, and the links to it. */
#define _GNU_SOURCE /* renameat2 */
#include "train/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/text.h"
#include "tensor/bf16.h"
#include "tensor/safetensors.h"
#include "train/state.h"

/* ---- Hashes ------------------------------------------------------------------------ */

static KilnStatus hash_fd(int fd, const char *path, uint64_t *ret_hash, int64_t *ret_size,
                          KilnError *err)
{
    enum { PART = 1 << 16 };
    XXH3_state_t *hash = XXH3_createState();
    char *part = malloc(PART);
    int64_t size = 0;
    ssize_t got = -1;

    if (hash == NULL || part == NULL) {
        XXH3_freeState(hash);
        free(part);
        return kiln_error_nomem(err, PART);
    }
    XXH3_64bits_reset(hash);
    do {
        got = read(fd, part, PART);
        if (got > 0) {
            XXH3_64bits_update(hash, part, (size_t)got);
            size += got;
        }
    } while (got > 0 || (got < 0 && errno == EINTR));
    KilnStatus status = got < 0 ? kiln_error_errno(err, path) : KILN_OK;
    if (status >= 0) {
        *ret_hash = XXH3_64bits_digest(hash);
        *ret_size = size;
    }
    XXH3_freeState(hash);
    free(part);
    return status;
}

KilnStatus kiln_file_hash(const char *path, uint64_t *ret_hash, int64_t *ret_size, KilnError *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return kiln_error_errno(err, path);
    KilnStatus status = hash_fd(fd, path, ret_hash, ret_size, err);
    close(fd);
    return status;
}

/* ---- Tensors ------------------------------------------------------------------------- */

static bool is_finite(KilnParam *param)
{
    const int64_t count = kiln_shape_count(kiln_param_shape(param));
    const void *data = kiln_param_data(param);
    bool finite = true;

    for (int64_t i = 0; i < count && kiln_param_dtype(param) == KILN_F32; i++)
        finite &= isfinite(((const float *)data)[i]) != 0;
    for (int64_t i = 0; i < count && kiln_param_dtype(param) == KILN_BF16; i++)
        finite &= isfinite(kiln_bf16_to(((const uint16_t *)data)[i])) != 0;
    return finite;
}

/* A loss can be finite while the update after it is not: such parameters must
 * not replace good ones. */
static KilnStatus check_finite(KilnTrainer *trainer, KilnError *err)
{
    for (size_t i = 0; i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);

        if (!is_finite(param))
            return kiln_error_set(err, KILN_E_NUMERIC,
                                  "%s is not finite after step %lld (learning rate %g): "
                                  "nothing is saved and training stops; try a lower "
                                  "learning rate or a warmup",
                                  kiln_param_name(param), (long long)trainer->at.step,
                                  kiln_trainer_learning_rate(trainer));
    }
    return KILN_OK;
}

/* What others shall use: the shadow's value where there is one. */
static KilnStView value_of(const KilnTrainer *trainer, KilnParam *param)
{
    const float *shadow = trainer->shadow != NULL ? kiln_shadow_data(trainer->shadow, param) : NULL;

    return (KilnStView) {
        .name = kiln_param_name(param),
        .dtype = shadow != NULL ? KILN_F32 : kiln_param_dtype(param),
        .shape = *kiln_param_shape(param),
        .data = shadow != NULL ? shadow : kiln_param_data(param),
    };
}

static KilnStatus write_model(KilnTrainer *trainer, const char *path, KilnError *err)
{
    size_t n = kiln_params_count(trainer->params);
    KilnStView *views = calloc(n + 1, sizeof(*views));

    if (views == NULL)
        return kiln_error_nomem(err, (n + 1) * sizeof(*views));
    for (size_t i = 0; i < n; i++)
        views[i] = value_of(trainer, kiln_params_at(trainer->params, i));
    const KilnStText mark = { KILN_CHECKPOINT_MARK, KILN_VERSION };
    KilnStatus status = kiln_safetensors_write(path, views, n, &mark, 1, err);
    free(views);
    return status;
}

/* "weights.<name>" for everything of which the model's file has the shadow. */
static KilnStatus add_weights(KilnTrainer *trainer, KilnArena *names, KilnStView *views, size_t *n,
                              KilnError *err)
{
    for (size_t i = 0; trainer->shadow != NULL && i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);

        if (kiln_shadow_data(trainer->shadow, param) == NULL)
            continue;
        views[*n] = (KilnStView) {
            .name = kiln_arena_printf(names, KILN_CHECKPOINT_WEIGHTS "%s", kiln_param_name(param)),
            .dtype = kiln_param_dtype(param),
            .shape = *kiln_param_shape(param),
            .data = kiln_param_data(param),
        };
        if (views[(*n)++].name == NULL)
            return kiln_error_nomem(err, 1);
    }
    return KILN_OK;
}

/* "gradients.<name>" of the batches that wait for the others of their group. */
static KilnStatus add_gradients(KilnTrainer *trainer, KilnArena *names, KilnStView *views,
                                size_t *n, KilnError *err)
{
    for (size_t i = 0; trainer->at.in_group > 0 && i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);

        if (!kiln_param_trained(param))
            continue;
        views[*n] = (KilnStView) {
            .name = kiln_arena_printf(names, KILN_CHECKPOINT_GRADIENTS "%s",
                                      kiln_param_name(param)),
            .dtype = kiln_param_dtype(param),
            .shape = *kiln_param_shape(param),
            .data = param->gradient,
        };
        if (views[(*n)++].name == NULL)
            return kiln_error_nomem(err, 1);
    }
    return KILN_OK;
}

/* The state of an optimizer. */
static KilnStatus add_slots(KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                            KilnArena *names, KilnStView *views, size_t *n, KilnError *err)
{
    for (size_t s = 0; s < optimizer->n_slots; s++)
        for (size_t i = 0; i < kiln_params_count(trainer->params); i++) {
            KilnParam *param = kiln_params_at(trainer->params, i);
            char name[512];

            if (optimizer->slots[s] == NULL || !kiln_optimizer_has(optimizer, param))
                continue;
            kiln_optimizer_slot_name(optimizer, s, param, name, sizeof(name));
            views[*n] = (KilnStView) {
                .name = kiln_arena_strdup(names, name),
                .dtype = kiln_param_dtype(param),
                .shape = *kiln_param_shape(param),
                .data = kiln_optimizer_slot(optimizer, s, param),
            };
            if (views[(*n)++].name == NULL)
                return kiln_error_nomem(err, 1);
        }
    return KILN_OK;
}

/* The optimizers' state, and what the epoch's metrics have counted. */
static KilnStatus write_optimizer(KilnTrainer *trainer, const char *path, KilnError *err)
{
    const KilnTallies *tallies = kiln_metrics_tallies(trainer->metrics);
    size_t n_params = kiln_params_count(trainer->params), n = 0;
    size_t most = n_params * (trainer->n_optimizers * KILN_MAX_SLOTS + 2) +
                  tallies->n * KILN_TALLY_ARRAYS;
    KilnStView *views = calloc(most + 1, sizeof(*views));
    KilnArena names = { 0 };
    KilnStatus status = views != NULL ? KILN_OK : kiln_error_nomem(err, n_params);

    for (size_t i = 0; i < trainer->n_optimizers && status >= 0; i++)
        status = add_slots(trainer, &trainer->optimizers[i], &names, views, &n, err);
    if (status >= 0)
        status = add_weights(trainer, &names, views, &n, err);
    if (status >= 0)
        status = add_gradients(trainer, &names, views, &n, err);
    if (status >= 0)
        status = kiln_tallies_save(tallies, KILN_PHASE_FIT, &names, views, &n, err);
    if (status >= 0)
        status = kiln_safetensors_write(path, views, n, NULL, 0, err);
    kiln_arena_release(&names);
    free(views);
    return status;
}

/* ---- state.json ------------------------------------------------------------------------- */

static json_t *spec_json(const KilnDataSpec *spec)
{
    json_t *features = json_array(), *classes = json_array();

    for (size_t i = 0; i < spec->n_features; i++) {
        json_t *shape = json_array();

        for (int axis = 0; axis < spec->features[i].shape.rank; axis++)
            json_array_append_new(shape, json_integer(spec->features[i].shape.dim[axis]));
        json_array_append_new(features,
                              json_pack("{s:s, s:s, s:o, s:b, s:f}", "name", spec->features[i].name,
                                        "dtype", kiln_dtype_name(spec->features[i].dtype), "shape",
                                        shape, "varies", (int)spec->features[i].varies, "pad",
                                        spec->features[i].pad));
    }
    for (int64_t i = 0; i < spec->n_classes; i++)
        json_array_append_new(classes, json_string(spec->class_names[i]));
    return json_pack("{s:o, s:o}", "features", features, "classes", classes);
}

static json_t *callbacks_json(const KilnTrainer *trainer, bool *failed)
{
    json_t *all = json_object();

    for (size_t i = 0; i < trainer->hooks.n_all; i++) {
        KilnInstance *callback = trainer->hooks.all[i].who;
        const KilnCallbackOps *ops = trainer->hooks.all[i].ops;
        KilnState state = { .object = json_object() };

        if (ops->state_dict != NULL && state.object != NULL)
            ops->state_dict(callback, &state);
        *failed = *failed || state.failed || state.object == NULL;
        if (ops->state_dict != NULL)
            json_object_set_new(all, kiln_instance_path(callback), state.object);
        else
            json_decref(state.object);
    }
    return all;
}

/* A scheduler's state; null when it has none. */
static json_t *scheduler_json(KilnInstance *scheduler, bool *failed)
{
    KilnState state = { 0 };

    if (scheduler == NULL || kiln_instance_component(scheduler)->ops.scheduler->state_dict == NULL)
        return json_null();
    state.object = json_object();
    if (state.object != NULL)
        kiln_instance_component(scheduler)->ops.scheduler->state_dict(scheduler, &state);
    *failed = *failed || state.failed || state.object == NULL;
    return state.object;
}

/* What the optimizers have that is no tensor: [{"name", "updates", "scheduler"}]. */
static json_t *optimizers_json(const KilnTrainer *trainer, bool *failed)
{
    json_t *all = json_array();

    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        const KilnOptimizerState *one = &trainer->optimizers[i];

        json_array_append_new(all, json_pack("{s:s?, s:I, s:o}", "name", one->use.name, "updates",
                                             (json_int_t)one->updates, "scheduler",
                                             scheduler_json(one->use.scheduler, failed)));
    }
    *failed = *failed || json_array_size(all) != trainer->n_optimizers;
    return all;
}

/* Size and checksum of a file of the folder. */
static KilnStatus file_json(const char *folder, const char *name, json_t *files, KilnError *err)
{
    char *path = kiln_path_join(folder, name), hex[17];
    uint64_t hash = 0;
    int64_t size = 0;

    if (path == NULL)
        return kiln_error_nomem(err, strlen(folder));
    KilnStatus status = kiln_file_hash(path, &hash, &size, err);
    free(path);
    if (status < 0)
        return status;
    snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
    json_t *file = json_pack("{s:I, s:s}", "size", (json_int_t)size, "xxh3", hex);
    if (file == NULL || json_object_set_new(files, name, file) != 0)
        return kiln_error_nomem(err, sizeof(hex));
    return KILN_OK;
}

static KilnStatus files_json(const char *folder, json_t *files, KilnError *err)
{
    static const char *const names[] = { KILN_CHECKPOINT_MODEL, KILN_CHECKPOINT_TRAINER,
                                         KILN_CHECKPOINT_CONFIG };
    KilnStatus status = files != NULL ? KILN_OK : kiln_error_nomem(err, 1);

    for (size_t i = 0; i < KILN_COUNT(names) && status >= 0; i++)
        status = file_json(folder, names[i], files, err);
    return status;
}

/* Write a new file of the folder and flush it; the folder itself is flushed when
 * it is whole. */
static KilnStatus write_text(const char *path, const char *text, KilnError *err)
{
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fputs(text, file) != EOF && fflush(file) == 0 &&
              fsync(fileno(file)) == 0;
    KilnStatus status = ok ? KILN_OK : kiln_error_errno(err, path);

    if (file != NULL && fclose(file) != 0 && ok)
        status = kiln_error_errno(err, path);
    return status;
}

/* What format 1 did not have of the position. */
static bool add_position(const KilnTrainer *trainer, json_t *state)
{
    const KilnPosition *at = &trainer->at;
    json_t *more = json_pack(
        "{s:I, s:I, s:I, s:I, s:b, s:b, s:s}", "batches", (json_int_t)at->batches, "samples",
        (json_int_t)at->samples, "in_group", (json_int_t)at->in_group, "last_val_batch",
        (json_int_t)at->last_val_batch, "epoch_begun", at->epoch_begun ? 1 : 0, "should_stop",
        at->should_stop ? 1 : 0, "stop_reason", trainer->stop_reason);
    bool good = more != NULL && json_object_update(state, more) == 0;

    json_decref(more);
    return good;
}

static KilnStatus write_state(const KilnTrainer *trainer, const char *folder, KilnError *err)
{
    char *path = kiln_path_join(folder, KILN_CHECKPOINT_STATE), *text = NULL;
    char *model = kiln_trainer_model(trainer);
    json_t *files = json_object();
    bool failed = false;
    KilnStatus status = files_json(folder, files, err);

    if (status >= 0) {
        json_t *state = json_pack(
            "{s:i, s:s, s:s, s:s?, s:I, s:I, s:I, s:b, s:I, s:i, s:I, s:I, s:I, s:s, s:o, s:o, "
            "s:o, s:o, s:o, s:O}",
            "format", (int)KILN_CHECKPOINT_FORMAT, "version", KILN_VERSION, "task",
            kiln_instance_name(trainer->module), "model", model, "epoch",
            (json_int_t)trainer->at.epoch, "step", (json_int_t)trainer->at.step, "batch",
            (json_int_t)trainer->at.batch, "epoch_done", trainer->at.epoch_done ? 1 : 0, "seed",
            (json_int_t)trainer->options.root->seed, "threads", trainer->threads, "batch_size",
            (json_int_t)trainer->batch_size, "train_samples",
            (json_int_t)trainer->datasets[KILN_TRAIN].count, "parameters",
            (json_int_t)kiln_params_size(trainer->params), "weights",
            kiln_dtype_name(kiln_params_dtype(trainer->params)), "data", spec_json(&trainer->spec),
            "metrics", kiln_metrics_save(trainer->metrics), "callbacks",
            callbacks_json(trainer, &failed), "optimizers", optimizers_json(trainer, &failed),
            "loggers", kiln_loggers_state(trainer, &failed), "files", files);

        if (state == NULL || !add_position(trainer, state))
            failed = true;
        text = state != NULL && !failed
                   ? json_dumps(state, JSON_INDENT(1) | JSON_REAL_PRECISION(17))
                   : NULL;
        json_decref(state);
        if (text == NULL || path == NULL)
            status = kiln_error_nomem(err, 1);
    }
    if (status >= 0)
        status = write_text(path, text, err);
    json_decref(files);
    free(model);
    free(text);
    free(path);
    return status;
}

/* ---- The folder ----------------------------------------------------------------------------- */

static KilnStatus write_files(KilnTrainer *trainer, const char *folder, KilnError *err)
{
    char *model = kiln_path_join(folder, KILN_CHECKPOINT_MODEL);
    char *optimizer = kiln_path_join(folder, KILN_CHECKPOINT_TRAINER);
    char *config = kiln_path_join(folder, KILN_CHECKPOINT_CONFIG);
    KilnStatus status = model == NULL || optimizer == NULL || config == NULL
                            ? kiln_error_nomem(err, strlen(folder))
                            : kiln_dir_make(folder, err);

    if (status >= 0)
        status = write_model(trainer, model, err);
    if (status >= 0)
        status = write_optimizer(trainer, optimizer, err);
    if (status >= 0)
        status = write_text(config, trainer->config_yaml, err);
    if (status >= 0)
        status = write_state(trainer, folder, err);
    if (status >= 0)
        status = kiln_path_sync(folder, err);
    free(model);
    free(optimizer);
    free(config);
    return status;
}

/* Put `fresh` in the place of `path`. A folder that is there is exchanged with
 * it in one step, so that at no moment there is none. */
static KilnStatus publish(const char *fresh, const char *path, KilnError *err)
{
    if (rename(fresh, path) == 0)
        return KILN_OK;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return kiln_error_errno(err, path);
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, path, RENAME_EXCHANGE) == 0)
        return kiln_path_remove(fresh, err);
    /* A file system that can't exchange. */
    KilnStatus status = kiln_path_remove(path, err);
    if (status >= 0 && rename(fresh, path) != 0)
        status = kiln_error_errno(err, path);
    return status;
}

KilnStatus kiln_checkpoint_save(KilnTrainer *trainer, const char *path, KilnError *err)
{
    const char *name = strrchr(path, '/');
    KilnText text = { 0 }, folder = { 0 };
    KilnStatus status = check_finite(trainer, err);

    if (status < 0)
        return status;
    kiln_text_append_n(&folder, path, (size_t)(name - path));
    /* One process writes a run folder: what a killed one left is in the way. */
    kiln_text_printf(&text, "%s/.saving", folder.data != NULL ? folder.data : "");
    if (text.failed || folder.failed)
        status = kiln_error_nomem(err, strlen(path));
    if (status >= 0)
        status = kiln_path_remove(text.data, err);
    if (status >= 0)
        status = write_files(trainer, text.data, err);
    if (status >= 0)
        status = publish(text.data, path, err);
    if (status >= 0)
        status = kiln_path_sync(folder.data, err);
    if (status < 0 && text.data != NULL) {
        (void)!kiln_path_remove(text.data, NULL);
        (void)kiln_error_prefix(err, "checkpoint %s is not saved: ", name + 1);
    }
    kiln_text_release(&text);
    kiln_text_release(&folder);
    return status;
}

/* ---- For components -----------------------------------------------------------------------------
 */

/* <run folder>/checkpoints/<name>, owned by the caller. */
static KilnStatus checkpoint_path(const KilnTrainer *trainer, const char *name, char **ret,
                                  KilnError *err)
{
    KilnText text = { 0 };

    if (trainer->run_dir == NULL)
        return kiln_error_set(err, KILN_E_INTERNAL, "checkpoint %s: this run has no folder", name);
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "checkpoint \"%s\": a name without / that does not begin with a dot "
                              "is needed",
                              name);
    kiln_text_printf(&text, "%s/checkpoints/%s", trainer->run_dir, name);
    *ret = kiln_text_take(&text);
    return *ret != NULL ? KILN_OK : kiln_error_nomem(err, strlen(name));
}

KilnStatus kiln_trainer_save(KilnTrainer *trainer, const char *name, char *ret_path, size_t size,
                             KilnError *err)
{
    char *path = NULL;
    KilnStatus status = checkpoint_path(trainer, name, &path, err);

    if (status >= 0)
        status = kiln_loggers_flush(trainer, err);
    if (trainer->failing && status < 0) /* it may be what failed; the parameters matter more */
        status = KILN_OK;
    kiln_live_saving(trainer->telling.page, true);
    if (status >= 0)
        status = kiln_checkpoint_save(trainer, path, err);
    kiln_live_saving(trainer->telling.page, false);
    if (status >= 0) {
        trainer->saved = trainer->at;
        snprintf(trainer->saved_name, sizeof(trainer->saved_name), "%s", name);
        kiln_output_detail(&trainer->output, "checkpoints/%s is saved", name);
        if (ret_path != NULL)
            snprintf(ret_path, size, "%s", path);
    }
    free(path);
    return status;
}

KilnStatus kiln_trainer_link(KilnTrainer *trainer, const char *link, const char *name,
                             KilnError *err)
{
    char *path = NULL;
    KilnStatus status = checkpoint_path(trainer, link, &path, err);

    if (status >= 0)
        status = kiln_link_write(name, path, err);
    free(path);
    return status;
}

bool kiln_trainer_link_target(const KilnTrainer *trainer, const char *link, char *buf, size_t size)
{
    char *path = NULL;
    ssize_t length = -1;

    if (checkpoint_path(trainer, link, &path, NULL) >= 0 && size > 0)
        length = readlink(path, buf, size - 1);
    if (length >= 0)
        buf[length] = '\0';
    free(path);
    return length >= 0;
}

KilnStatus kiln_trainer_remove(KilnTrainer *trainer, const char *name, KilnError *err)
{
    char *path = NULL;
    KilnStatus status = checkpoint_path(trainer, name, &path, err);

    if (status >= 0)
        status = kiln_path_remove(path, err);
    free(path);
    return status;
}
