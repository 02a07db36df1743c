/* Averages the weights of several checkpoints of a model, as fairseq's average_checkpoints does. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "tensor/bf16.h"
#include "train/checkpoint/checkpoint.h"

typedef struct Average {
    size_t n;
    KilnCheckpoint *checkpoints;
    KilnSafetensors **files; /* their weights */
    KilnStView *views;       /* of the average; `data` is owned */
    size_t n_views;
    double *sum, *part; /* of one tensor */
} Average;

/* ---- Reading --------------------------------------------------------------------------------- */

static KilnStatus open_all(Average *average, const char *const *paths, KilnError *err)
{
    KilnStatus status = KILN_OK;

    average->checkpoints = calloc(average->n, sizeof(*average->checkpoints));
    average->files = calloc(average->n, sizeof(*average->files));
    if (average->checkpoints == NULL || average->files == NULL)
        return kiln_error_nomem(err, average->n * sizeof(*average->checkpoints));
    for (size_t i = 0; i < average->n && status >= 0; i++) {
        char *path = NULL;

        status = kiln_checkpoint_open(paths[i], false, &average->checkpoints[i], err);
        if (status >= 0)
            status = kiln_checkpoint_tensors(&average->checkpoints[i], KILN_CHECKPOINT_MODEL,
                                             &average->files[i], &path, err);
        free(path);
    }
    return status;
}

static KilnStatus differ(const Average *average, size_t i, const char *what, const char *first,
                         const char *other, KilnError *err)
{
    return kiln_error_set(err, KILN_E_SHAPE,
                          "%s and %s are of different models: %s is %s in the first and %s in the "
                          "second",
                          average->checkpoints[0].path, average->checkpoints[i].path, what, first,
                          other);
}

static KilnStatus check_text(const Average *average, size_t i, const char *key, KilnError *err)
{
    const char *first = json_string_value(json_object_get(average->checkpoints[0].state, key));
    const char *other = json_string_value(json_object_get(average->checkpoints[i].state, key));

    if (first == NULL || other == NULL || strcmp(first, other) == 0)
        return KILN_OK;
    return differ(average, i, key, first, other, err);
}

/* Whether file i has the same tensors as the first. */
static KilnStatus check_tensors(const Average *average, size_t i, KilnError *err)
{
    const KilnSafetensors *first = average->files[0], *file = average->files[i];

    for (size_t k = 0; k < kiln_safetensors_count(file); k++) {
        const char *name = kiln_safetensors_at(file, k)->name;

        if (kiln_safetensors_find(first, name) == NULL)
            return differ(average, i, name, "missing", "there", err);
    }
    for (size_t k = 0; k < kiln_safetensors_count(first); k++) {
        const KilnStEntry *want = kiln_safetensors_at(first, k);
        const KilnStEntry *got = kiln_safetensors_find(file, want->name);
        char shapes[2][KILN_SHAPE_TEXT];

        if (got == NULL)
            return differ(average, i, want->name, "there", "missing", err);
        if (strcmp(want->dtype, got->dtype) != 0)
            return differ(average, i, want->name, want->dtype, got->dtype, err);
        if (!kiln_shape_equal(&want->shape, &got->shape))
            return differ(average, i, want->name,
                          kiln_shape_text(&want->shape, shapes[0], sizeof(shapes[0])),
                          kiln_shape_text(&got->shape, shapes[1], sizeof(shapes[1])), err);
    }
    return KILN_OK;
}

/* ---- Averaging ------------------------------------------------------------------------------- */

/* The type in which an entry is stored; false: kiln has no such type. */
static bool stored_type(const KilnStEntry *entry, KilnDType *ret)
{
    if (!kiln_safetensors_dtype(entry, ret))
        return false;
    if (strcmp(entry->dtype, kiln_safetensors_name(KILN_BF16)) == 0)
        *ret = KILN_BF16;
    if (strcmp(entry->dtype, kiln_safetensors_name(KILN_F64)) == 0)
        *ret = KILN_F64;
    return true;
}

static void store(const double *from, KilnDType dtype, int64_t n, void *to)
{
    for (int64_t i = 0; i < n; i++)
        if (dtype == KILN_F64)
            ((double *)to)[i] = from[i];
        else if (dtype == KILN_BF16)
            ((uint16_t *)to)[i] = kiln_bf16_of((float)from[i]);
        else
            ((float *)to)[i] = (float)from[i];
}

/* The mean of a tensor; of whole numbers, such as counts of batches, those of the last file. */
static KilnStatus mean_of(Average *average, const char *name, KilnStView *view, KilnError *err)
{
    const int64_t n = kiln_shape_count(&view->shape);
    const bool real = view->dtype == KILN_F32 || view->dtype == KILN_F64 ||
                      view->dtype == KILN_BF16;
    void *data = (void *)view->data;
    KilnStatus status = KILN_OK;

    if (!real) {
        const KilnSafetensors *last = average->files[average->n - 1];

        return kiln_safetensors_read(last, kiln_safetensors_find(last, name), view->dtype, data,
                                     err);
    }
    memset(average->sum, 0, (size_t)n * sizeof(*average->sum));
    for (size_t i = 0; i < average->n && status >= 0; i++) {
        status = kiln_safetensors_read(average->files[i],
                                       kiln_safetensors_find(average->files[i], name), KILN_F64,
                                       average->part, err);
        for (int64_t k = 0; k < n && status >= 0; k++)
            average->sum[k] += average->part[k];
    }
    for (int64_t k = 0; k < n; k++)
        average->sum[k] /= (double)average->n;
    store(average->sum, view->dtype, n, data);
    return status;
}

static KilnStatus make_views(Average *average, KilnError *err)
{
    const KilnSafetensors *first = average->files[0];
    const size_t n = kiln_safetensors_count(first);
    int64_t most = 1;

    average->views = calloc(n + 1, sizeof(*average->views));
    for (size_t k = 0; k < n && average->views != NULL; k++, average->n_views++) {
        const KilnStEntry *entry = kiln_safetensors_at(first, k);
        KilnStView *view = &average->views[k];
        const int64_t count = kiln_shape_count(&entry->shape);

        *view = (KilnStView) { .name = entry->name, .shape = entry->shape };
        if (!stored_type(entry, &view->dtype))
            return kiln_error_set(err, KILN_E_TYPE, "%s: %s has the type %s, which kiln lacks",
                                  average->checkpoints[0].path, entry->name, entry->dtype);
        most = count > most ? count : most;
        view->data = calloc((size_t)count + 1, kiln_dtype_size(view->dtype));
        if (view->data == NULL)
            return kiln_error_nomem(err, (size_t)count * kiln_dtype_size(view->dtype));
    }
    average->sum = malloc((size_t)most * sizeof(*average->sum));
    average->part = malloc((size_t)most * sizeof(*average->part));
    return average->views != NULL && average->sum != NULL && average->part != NULL
               ? KILN_OK
               : kiln_error_nomem(err, (size_t)most * sizeof(*average->sum));
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* state.json: the last one's, without what only resuming needs, and what was averaged. */
static json_t *state_of(const Average *average)
{
    static const char *const left_out[] = { "name",           "saved_by", "files",
                                            "tensors",        "xxh3",     "metrics",
                                            "metric_options", "loggers",  "optimizers" };
    const json_t *last = average->checkpoints[average->n - 1].state;
    json_t *state = json_deep_copy(last), *averaged = json_array(), *callbacks = json_object();
    json_t *module = json_object_get(json_object_get(last, "callbacks"), "task");

    for (size_t i = 0; i < KILN_COUNT(left_out); i++)
        (void)json_object_del(state, left_out[i]);
    for (size_t i = 0; i < average->n; i++)
        kiln_json_add(&averaged, json_string(average->checkpoints[i].path));
    if (module != NULL)
        kiln_json_put(&callbacks, "task", json_deep_copy(module));
    kiln_json_put(&state, "callbacks", callbacks);
    kiln_json_put(&state, "weights_only", json_true());
    kiln_json_put(&state, "averaged", averaged);
    return state;
}

/* Put what the datamodule and the module wrote into the folder that is going to be written. */
static KilnStatus copy_files(const Average *average, const char *folder, KilnError *err)
{
    static const char *const own[] = { KILN_CHECKPOINT_MODEL, KILN_CHECKPOINT_TRAINER,
                                       KILN_CHECKPOINT_CONFIG };
    char *to = kiln_path_join(folder, KILN_CHECKPOINT_UNFINISHED);
    KilnStatus status = to != NULL ? kiln_checkpoint_clone(
                                         average->checkpoints[average->n - 1].path, to, false, err)
                                   : kiln_error_nomem(err, strlen(folder));

    for (size_t i = 0; i < KILN_COUNT(own) && status >= 0; i++) {
        char *path = kiln_path_join(to, own[i]);

        /* The clone's are links to the files that are averaged. */
        status = path == NULL         ? kiln_error_nomem(err, strlen(to))
                 : kiln_is_file(path) ? kiln_path_remove(path, err)
                                      : KILN_OK;
        free(path);
    }
    free(to);
    return status;
}

static KilnStatus write_average(const Average *average, const char *folder, const char *name,
                                KilnError *err)
{
    char *path = kiln_path_join(average->checkpoints[average->n - 1].path, KILN_CHECKPOINT_CONFIG);
    char *config = NULL;
    size_t size = 0;
    KilnSnapshot snapshot = { .weights_only = true,
                              .model = average->views,
                              .n_model = average->n_views,
                              .state = state_of(average) };
    const KilnCheckpointTarget target = { .name = (char *)name, .saved_by = json_array() };
    KilnStatus status = path != NULL && snapshot.state != NULL && target.saved_by != NULL
                            ? kiln_file_read(path, 64 << 20, &config, &size, err)
                            : kiln_error_nomem(err, 1);

    snapshot.config = config;
    if (status >= 0)
        status = copy_files(average, folder, err);
    if (status >= 0)
        status = kiln_checkpoint_write(&snapshot, &target, folder, NULL, err);
    json_decref(snapshot.state);
    json_decref(target.saved_by);
    free(config);
    free(path);
    return status;
}

static void release(Average *average)
{
    for (size_t i = 0; i < average->n; i++) {
        if (average->files != NULL)
            kiln_safetensors_close(average->files[i]);
        if (average->checkpoints != NULL)
            kiln_checkpoint_close(&average->checkpoints[i]);
    }
    for (size_t i = 0; i < average->n_views; i++)
        free((void *)average->views[i].data);
    free(average->files);
    free(average->checkpoints);
    free(average->views);
    free(average->sum);
    free(average->part);
}

KilnStatus kiln_checkpoint_average(const char *const *paths, size_t n, const char *folder,
                                   const char *name, KilnError *err)
{
    static const char *const texts[] = { "task", "model" };
    Average average = { .n = n };
    KilnStatus status = open_all(&average, paths, err);

    for (size_t i = 1; i < n && status >= 0; i++) {
        for (size_t k = 0; k < KILN_COUNT(texts) && status >= 0; k++)
            status = check_text(&average, i, texts[k], err);
        if (status >= 0)
            status = check_tensors(&average, i, err);
    }
    if (status >= 0)
        status = make_views(&average, err);
    for (size_t k = 0; k < average.n_views && status >= 0; k++)
        status = mean_of(&average, average.views[k].name, &average.views[k], err);
    if (status >= 0)
        status = write_average(&average, folder, name, err);
    release(&average);
    return status;
}
