/* Copies a run's tensors into a snapshot. */
#include "train/checkpoint/snapshot.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/zeros.h"
#include "tensor/bf16.h"
#include "train/checkpoint/checkpoint.h"
#include "train/optim/averaged_weights.h"
#include "train/optim/sparse_updates.h"

enum {
    ALIGN = 64,
    METRIC_COUNTS = 1 << 20 /* bytes for metric state besides sample rows */
};

/* ---- Listing tensors ---------------------------------------------------------------- */

/* Append to one of the two lists; reserve_views has made room. */
static KilnStatus add(KilnSnapshot *snapshot, KilnStView *views, size_t *n, const char *name,
                      KilnDType dtype, const KilnShape *shape, KilnLocation from, KilnError *err)
{
    if (name == NULL)
        return kiln_error_nomem(err, 1);
    KilnStView *view = &views[(*n)++];
    *view = (KilnStView) { .name = name, .dtype = dtype, .shape = *shape, .data = from.host };
    snapshot->from[view - snapshot->model] = from;
    return KILN_OK;
}

static KilnStatus add_to_trainer(KilnSnapshot *snapshot, const char *name, const KilnParam *param,
                                 KilnLocation from, KilnError *err)
{
    return add(snapshot, snapshot->trainer, &snapshot->n_trainer, name, kiln_param_dtype(param),
               kiln_param_shape(param), from, err);
}

/* The model's file: averaged weights where they exist, else the weights. */
static KilnStatus add_model(KilnSnapshot *snapshot, const KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < kiln_params_count(trainer->params) && status >= 0; i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);
        const KilnLocation averaged = kiln_averaged_location(trainer->averaged, param);
        const bool has_average = averaged.buffer != NULL;

        status = add(snapshot, snapshot->model, &snapshot->n_model, kiln_param_name(param),
                     has_average ? kiln_averaged_dtype(trainer->averaged) : kiln_param_dtype(param),
                     kiln_param_shape(param), has_average ? averaged : kiln_param_location(param),
                     err);
    }
    return status;
}

/* "weights.<name>" for each parameter whose average is in the model's file. */
static KilnStatus add_weights(KilnSnapshot *snapshot, const KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < kiln_params_count(trainer->params) && status >= 0; i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);

        if (kiln_averaged_location(trainer->averaged, param).buffer != NULL)
            status = add_to_trainer(snapshot,
                                    kiln_arena_printf(&snapshot->names,
                                                      KILN_CHECKPOINT_WEIGHTS "%s",
                                                      kiln_param_name(param)),
                                    param, kiln_param_location(param), err);
    }
    return status;
}

/* One state slot of an optimizer ("exp_avg"). */
static KilnStatus add_slots(KilnSnapshot *snapshot, const KilnTrainer *trainer,
                            const KilnOptimizerState *optimizer, size_t slot, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < kiln_params_count(trainer->params) && status >= 0; i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);
        char name[512];

        if (optimizer->slots[slot] == NULL || !kiln_optimizer_has(optimizer, param))
            continue;
        kiln_optimizer_slot_name(optimizer, slot, param, name, sizeof(name));
        status = add_to_trainer(snapshot, kiln_arena_strdup(&snapshot->names, name), param,
                                kiln_optimizer_slot(optimizer, slot, param), err);
    }
    return status;
}

/* "sparse_rows.<name>", the rows of an embedding's accumulated gradient. */
static KilnStatus add_sparse_rows(KilnSnapshot *snapshot, const KilnParam *param, KilnError *err)
{
    return add(snapshot, snapshot->trainer, &snapshot->n_trainer,
               kiln_arena_printf(&snapshot->names, KILN_CHECKPOINT_SPARSE_ROWS "%s", param->name),
               KILN_I32, &KILN_SHAPE(kiln_param_sparse_rows_words(param)),
               kiln_param_sparse_rows_location(param), err);
}

/* "gradients.<name>" accumulated by an unfinished group of batches. */
static KilnStatus add_gradients(KilnSnapshot *snapshot, const KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; trainer->at.in_group > 0 && i < kiln_params_count(trainer->params); i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);

        if (status >= 0 && kiln_param_trained(param))
            status = add_to_trainer(snapshot,
                                    kiln_arena_printf(&snapshot->names,
                                                      KILN_CHECKPOINT_GRADIENTS "%s",
                                                      kiln_param_name(param)),
                                    param, kiln_param_gradient_location(param), err);
        if (status >= 0 && kiln_sparse_updates_any(trainer, param))
            status = add_sparse_rows(snapshot, param, err);
    }
    return status;
}

/* Reserve as many views as there can be. */
static KilnStatus reserve_views(KilnSnapshot *snapshot, const KilnTrainer *trainer, KilnError *err)
{
    const size_t n_params = kiln_params_count(trainer->params);
    const size_t n = n_params * (trainer->n_optimizers * KILN_MAX_SLOTS + 4) + snapshot->n_tensors +
                     trainer->metrics->collection.n * KILN_METRIC_STATE_ARRAYS + 1;

    snapshot->n_model = snapshot->n_trainer = 0;
    if (n > snapshot->views_capacity) {
        free(snapshot->model);
        free(snapshot->from);
        snapshot->model = calloc(n, sizeof(*snapshot->model));
        snapshot->from = calloc(n, sizeof(*snapshot->from));
        snapshot->views_capacity = snapshot->model != NULL && snapshot->from != NULL ? n : 0;
    }
    if (n > snapshot->views_capacity)
        return kiln_error_nomem(err, n * sizeof(*snapshot->model));
    snapshot->trainer = snapshot->model + n_params;
    memset(snapshot->from, 0, n * sizeof(*snapshot->from));
    return KILN_OK;
}

/* What resuming needs besides weights, in the order of the file. */
static KilnStatus add_trainer(KilnSnapshot *snapshot, const KilnTrainer *trainer, KilnError *err)
{
    const KilnMetricCollection *states = &trainer->metrics->collection;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->n_optimizers; i++)
        for (size_t slot = 0; slot < trainer->optimizers[i].n_slots && status >= 0; slot++)
            status = add_slots(snapshot, trainer, &trainer->optimizers[i], slot, err);
    if (status >= 0)
        status = add_gradients(snapshot, trainer, err);
    if (status >= 0)
        status = kiln_metric_collection_save(states, KILN_PHASE_FIT, &snapshot->names,
                                             snapshot->trainer, &snapshot->n_trainer, err);
    return status;
}

static KilnStatus add_tensors(KilnSnapshot *snapshot, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < snapshot->n_tensors && status >= 0; i++) {
        const KilnStateTensor *tensor = &snapshot->tensors[i];

        status = add(snapshot, snapshot->trainer, &snapshot->n_trainer, tensor->name, tensor->dtype,
                     &tensor->shape, (KilnLocation) { .host = tensor->data }, err);
    }
    return status;
}

/* ---- Copying ------------------------------------------------------------------------ */

static size_t bytes_of(const KilnStView *view)
{
    return (size_t)kiln_shape_count(&view->shape) * kiln_dtype_size(view->dtype);
}

static bool is_finite(const void *data, KilnDType dtype, size_t bytes)
{
    int finite = 1;

    for (size_t i = 0; dtype == KILN_F32 && i < bytes / sizeof(float); i++)
        finite &= fabsf(((const float *)data)[i]) <= FLT_MAX;
    for (size_t i = 0; dtype == KILN_F64 && i < bytes / sizeof(double); i++)
        finite &= fabs(((const double *)data)[i]) <= DBL_MAX;
    for (size_t i = 0; dtype == KILN_BF16 && i < bytes / sizeof(uint16_t); i++)
        finite &= (((const uint16_t *)data)[i] & 0x7f80) != 0x7f80;
    return finite;
}

/* Copy a tensor part by part; `check`: each part is checked while it is in cache, and a value that
 * is not finite returns false. */
static bool copy(const KilnSnapshot *snapshot, KilnStView *view, char *to, bool check)
{
    enum { PART = 1 << 15 };
    const size_t bytes = bytes_of(view);
    const KilnLocation *from = &snapshot->from[view - snapshot->model];
    bool finite = true;

    const void *own = snapshot->in_place && from->buffer != NULL
                          ? kiln_buffer_host_data(from->buffer, from->offset)
                          : NULL;
    if (own != NULL) {
        view->data = own;
        return !check || is_finite(own, view->dtype, bytes);
    }
    for (size_t at = 0; at < bytes; at += PART) {
        const size_t n = bytes - at < PART ? bytes - at : PART;

        if (from->buffer != NULL)
            kiln_buffer_download(from->buffer, from->offset + at, to + at, n);
        else
            memcpy(to + at, (const char *)view->data + at, n);
        if (check)
            finite = is_finite(to + at, view->dtype, n) && finite;
    }
    view->data = to;
    return finite;
}

static size_t size_of(const KilnStView *views, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (bytes_of(&views[i]) + ALIGN - 1) / ALIGN * ALIGN;
    return sum;
}

/* The loss can be finite when the update that follows is not. */
static KilnStatus not_finite(const KilnTrainer *trainer, const char *name, KilnError *err)
{
    return kiln_error_set(err, KILN_E_NUMERIC,
                          "%s is not finite after step %lld (learning rate %g): nothing is saved "
                          "and training stops; try a lower learning rate or a warmup",
                          name, (long long)trainer->at.step, kiln_trainer_learning_rate(trainer));
}

static KilnStatus reserve_bytes(KilnSnapshot *snapshot, size_t more, KilnError *err)
{
    const size_t size = size_of(snapshot->model, snapshot->n_model) +
                        size_of(snapshot->trainer, snapshot->n_trainer) + more;

    if (size > snapshot->bytes_capacity) {
        kiln_zeros_free(snapshot->bytes);
        snapshot->bytes = kiln_zeros(size);
        snapshot->bytes_capacity = snapshot->bytes != NULL ? size : 0;
    }
    return size > snapshot->bytes_capacity ? kiln_error_nomem(err, size) : KILN_OK;
}

static KilnStatus copy_all(KilnSnapshot *snapshot, const KilnTrainer *trainer, size_t n_weights,
                           KilnError *err)
{
    char *to = snapshot->bytes;

    for (size_t i = 0; i < snapshot->n_model; i++) {
        if (!copy(snapshot, &snapshot->model[i], to, true))
            return not_finite(trainer, snapshot->model[i].name, err);
        to += size_of(&snapshot->model[i], 1);
    }
    for (size_t i = 0; i < snapshot->n_trainer; i++) {
        if (!copy(snapshot, &snapshot->trainer[i], to, i < n_weights))
            return not_finite(trainer, snapshot->trainer[i].name + strlen(KILN_CHECKPOINT_WEIGHTS),
                              err);
        to += size_of(&snapshot->trainer[i], 1);
    }
    return kiln_backend_synchronize(trainer->backend, err);
}

/* ---- Snapshots ----------------------------------------------------------------------- */

static void clear(KilnSnapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n_tensors; i++) {
        free(snapshot->tensors[i].name);
        free(snapshot->tensors[i].data);
    }
    free(snapshot->tensors);
    snapshot->tensors = NULL;
    snapshot->n_tensors = snapshot->tensors_capacity = 0;
    json_decref(snapshot->state);
    snapshot->state = NULL;
    kiln_arena_clear(&snapshot->names);
}

/* List what to copy; *ret_weights: how many tensors of the trainer's file are weights. */
static KilnStatus list_tensors(KilnSnapshot *snapshot, KilnTrainer *trainer, bool weights_only,
                               size_t *ret_weights, KilnError *err)
{
    clear(snapshot);
    snapshot->weights_only = weights_only;
    snapshot->config = trainer->config_yaml;
    snapshot->adapters = trainer->adapters;
    snapshot->state = kiln_snapshot_state(snapshot, trainer);
    if (snapshot->state == NULL)
        return kiln_error_nomem(err, 1);
    KilnStatus status = reserve_views(snapshot, trainer, err);
    if (status >= 0)
        status = add_model(snapshot, trainer, err);
    if (status >= 0 && !weights_only)
        status = add_weights(snapshot, trainer, err);
    *ret_weights = snapshot->n_trainer;
    if (status >= 0 && !weights_only)
        status = add_trainer(snapshot, trainer, err);
    return status >= 0 ? add_tensors(snapshot, err) : status;
}

KilnStatus kiln_snapshot_take(KilnSnapshot *snapshot, KilnTrainer *trainer, bool weights_only,
                              bool in_place, KilnError *err)
{
    size_t n_weights = 0;

    snapshot->in_place = in_place;
    KilnStatus status = list_tensors(snapshot, trainer, weights_only, &n_weights, err);

    if (status >= 0)
        status = reserve_bytes(snapshot, 0, err);
    return status >= 0 ? copy_all(snapshot, trainer, n_weights, err) : status;
}

KilnStatus kiln_snapshot_reserve(KilnSnapshot *snapshot, KilnTrainer *trainer, KilnError *err)
{
    size_t n_weights = 0;
    KilnStatus status = list_tensors(snapshot, trainer, false, &n_weights, err);
    /* Accumulated gradients, which are no larger than the parameters, and their lists of rows. */
    const bool groups = trainer->schedule.accumulate > 1 || trainer->schedule.n_changes > 0;
    const size_t gradients = groups ? size_of(snapshot->model, snapshot->n_model) +
                                          kiln_buffer_bytes(trainer->params->sparse_rows)
                                    : 0;

    return status >= 0
               ? reserve_bytes(snapshot,
                               gradients + (size_t)trainer->memory.metrics + METRIC_COUNTS, err)
               : status;
}

void kiln_snapshot_release(KilnSnapshot *snapshot)
{
    clear(snapshot);
    free(snapshot->model);
    free(snapshot->from);
    kiln_zeros_free(snapshot->bytes);
    kiln_arena_release(&snapshot->names);
    *snapshot = (KilnSnapshot) { 0 };
}
