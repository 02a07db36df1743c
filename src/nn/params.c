/* The parameter store: parameters declared by full name, then sealed into flat buffers. Initial
 * values are in nn/initial_values.c. */
#include "nn/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/ops/sequence/embedding.h"
#include "tensor/bf16.h"

enum { ALIGNMENT = 64, LONGEST_NAME = 255 };

/* Most elements, or bytes of buffers: far above any memory, far below an overflow. */
static const int64_t largest_store = INT64_C(1) << 50;

/* ---- Scopes ----------------------------------------------------------------- */

/* A path that is too long cannot be reported here; the store notes it, and the next declaration
 * fails. */
KilnScope kiln_scope(const KilnScope *parent, const char *format, ...)
{
    KilnScope scope = { .params = parent->params };
    size_t room = sizeof(scope.path), used = 0;
    va_list args;

    if (parent->path[0] != '\0')
        used = (size_t)snprintf(scope.path, room, "%s.", parent->path);
    if (used < room) {
        va_start(args, format);
        int more = vsnprintf(scope.path + used, room - used, format, args);
        va_end(args);
        used += more > 0 ? (size_t)more : 0;
    }
    if (used >= room)
        scope.params->scope_too_long = true;
    return scope;
}

KilnScope kiln_params_root(KilnParams *params)
{
    return (KilnScope) { .params = params };
}

/* ---- Declarations ------------------------------------------------------------ */

static KilnParam *find(const KilnParams *params, const char *name, uint64_t hash)
{
    for (size_t i = 0; i < params->count; i++)
        if (params->items[i]->hash == hash && strcmp(params->items[i]->name, name) == 0)
            return params->items[i];
    return NULL;
}

static KilnStatus check_declaration(const KilnParams *params, const char *full, size_t length,
                                    const KilnShape *shape, KilnError *err)
{
    char text[KILN_SHAPE_TEXT];

    if (params->allocated)
        return kiln_error_set(err, KILN_E_INTERNAL,
                              "parameter %s is declared after the store was sealed; declare "
                              "parameters in setup only",
                              full);
    if (params->scope_too_long || length > LONGEST_NAME)
        return kiln_error_set(err, KILN_E_RANGE,
                              "the name of parameter %s is too long: layer paths hold %zu "
                              "characters, names %d; use fewer or shorter levels",
                              full, sizeof(((KilnScope *)0)->path) - 1, LONGEST_NAME);
    if (kiln_shape_count(shape) < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "parameter %s has shape %s; every size must be at least 1", full,
                              kiln_shape_text(shape, text, sizeof(text)));
    if (find(params, full, XXH3_64bits(full, strlen(full))) != NULL)
        return kiln_error_set(err, KILN_E_KEY,
                              "parameter %s is declared twice; give one of both layers "
                              "another name",
                              full);
    return KILN_OK;
}

/* Adds `param` to the store under its full name, and checks it. */
static KilnStatus declare(const KilnScope *scope, const char *name, KilnParam param,
                          KilnParam **ret, KilnError *err)
{
    KilnParams *params = scope->params;
    char full[LONGEST_NAME + 2];
    int length = snprintf(full, sizeof(full), "%s%s%s", scope->path,
                          scope->path[0] != '\0' ? "." : "", name);
    KilnStatus status = check_declaration(params, full, (size_t)length, &param.shape, err);

    if (status < 0)
        return status;
    if (params->count == params->capacity) {
        size_t capacity = params->capacity > 0 ? params->capacity * 2 : 64;
        KilnParam **items = realloc(params->items, capacity * sizeof(KilnParam *));

        if (items == NULL)
            return kiln_error_nomem(err, capacity * sizeof(KilnParam *));
        params->items = items;
        params->capacity = capacity;
    }
    KilnParam *made = kiln_arena_alloc(&params->arena, sizeof(*made));
    const char *copy = kiln_arena_strdup(&params->arena, full);
    if (made == NULL || copy == NULL)
        return kiln_error_nomem(err, sizeof(*made));
    *made = param;
    made->store = params;
    made->sparse_rows = -1;
    made->name = copy;
    made->hash = XXH3_64bits(full, strlen(full));
    made->count = kiln_shape_count(&param.shape);
    made->index = params->count;
    params->items[params->count++] = made;
    *ret = made;
    return KILN_OK;
}

static KilnStatus too_large(const KilnScope *scope, const char *name, KilnError *err)
{
    return kiln_error_set(err, KILN_E_RANGE, "%s%s%s makes the network too large for memory",
                          scope->path, scope->path[0] != '\0' ? "." : "", name);
}

KilnStatus kiln_param_new(const KilnScope *scope, const char *name, KilnShape shape, KilnInit init,
                          KilnParam **ret, KilnError *err)
{
    KilnParams *params = scope->params;
    KilnParam param = {
        .dtype = KILN_F32,
        .shape = shape,
        .trained = true,
        .init = init,
        .offset = params->size,
    };
    int64_t count = kiln_shape_count(&shape);
    KilnParam *made = NULL;

    if (count > largest_store - params->size)
        return too_large(scope, name, err);
    KilnStatus status = declare(scope, name, param, &made, err);
    if (status < 0)
        return status;
    params->size += count;
    *ret = made;
    return KILN_OK;
}

KilnStatus kiln_register_buffer(const KilnScope *scope, const char *name, KilnDType dtype,
                                KilnShape shape, double value, KilnParam **ret, KilnError *err)
{
    KilnParams *params = scope->params;
    KilnParam param = {
        .dtype = dtype,
        .shape = shape,
        .init = { .kind = KILN_INIT_CONSTANT, .a = value },
    };
    int64_t count = kiln_shape_count(&shape);
    KilnParam *made = NULL;

    if (dtype != KILN_F32 && dtype != KILN_I64)
        return kiln_error_set(err, KILN_E_TYPE, "buffer %s has type %s; f32 and i64 are possible",
                              name, kiln_dtype_name(dtype));
    int64_t *size = dtype == KILN_F32 ? &params->n_statistics : &params->n_counters;
    /* Floats may be stored as bf16. */
    const int64_t align = ALIGNMENT /
                          (int64_t)(dtype == KILN_F32 ? sizeof(uint16_t) : sizeof(int64_t));
    if (count > largest_store - *size)
        return too_large(scope, name, err);
    param.offset = *size;
    KilnStatus status = declare(scope, name, param, &made, err);
    if (status < 0)
        return status;
    *size += (count + align - 1) / align * align;
    *ret = made;
    return KILN_OK;
}

void kiln_param_set_init(KilnParam *param, KilnInit init)
{
    param->init = init;
}

void kiln_param_set_head(KilnParam *param)
{
    param->head = true;
}

KilnStatus kiln_param_foreign(KilnParam *param, KilnForeignTensor part, KilnError *err,
                              const char *format, ...)
{
    KilnArena *arena = &param->store->arena;
    KilnForeignName *foreign = kiln_arena_alloc(arena, sizeof(*foreign));
    char name[LONGEST_NAME + 1];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    const char *copy = kiln_arena_strdup(arena, name);
    if (foreign == NULL || copy == NULL)
        return kiln_error_nomem(err, sizeof(*foreign));
    *foreign = (KilnForeignName) { .name = copy, .part = part };
    if (param->foreign == NULL)
        param->foreign = foreign;
    else
        *param->foreign_end = foreign;
    param->foreign_end = &foreign->next;
    return KILN_OK;
}

/* ---- The store ----------------------------------------------------------------- */

KilnStatus kiln_params_new(uint64_t seed, KilnParams **ret, KilnError *err)
{
    KilnParams *params = calloc(1, sizeof(*params));

    if (params == NULL)
        return kiln_error_nomem(err, sizeof(*params));
    params->seed = seed;
    params->dtype = KILN_F32;
    *ret = params;
    return KILN_OK;
}

void kiln_params_free(KilnParams *params)
{
    if (params == NULL)
        return;
    kiln_buffer_free(params->values);
    kiln_buffer_free(params->gradients);
    kiln_buffer_free(params->fixed);
    kiln_buffer_free(params->statistics);
    kiln_buffer_free(params->counters);
    kiln_buffer_free(params->sparse_rows);
    free(params->items);
    kiln_arena_release(&params->arena);
    free(params);
}

void kiln_params_set_dtype(KilnParams *params, KilnDType dtype)
{
    params->dtype = dtype;
}

KilnDType kiln_params_dtype(const KilnParams *params)
{
    return params->dtype;
}

KilnDType kiln_params_step_dtype(const KilnParams *params)
{
    return params->dtype == KILN_F64 ? KILN_F64 : KILN_F32;
}

void kiln_param_add_sparse_rows(KilnParam *param, int64_t rows)
{
    KilnParams *params = param->store;
    const int64_t align = ALIGNMENT / (int64_t)sizeof(int32_t);

    param->sparse_rows = params->n_sparse_rows;
    params->n_sparse_rows += (kiln_sparse_rows_words(rows) + align - 1) / align * align;
}

int64_t kiln_param_sparse_rows_words(const KilnParam *param)
{
    return kiln_sparse_rows_words(param->shape.dim[0]);
}

KilnStatus kiln_params_allocate(KilnParams *params, KilnBackend *backend, KilnError *err)
{
    const size_t size = kiln_dtype_size(params->dtype);
    const struct {
        KilnBuffer **buffer;
        size_t bytes;
    } buffers[] = {
        { &params->values, (size_t)params->size * size },
        { &params->gradients, (size_t)params->size * size },
        { &params->fixed, (size_t)params->n_fixed * size },
        { &params->statistics, (size_t)params->n_statistics * size },
        { &params->counters, (size_t)params->n_counters * sizeof(int64_t) },
        { &params->sparse_rows, (size_t)params->n_sparse_rows * sizeof(int32_t) },
    };
    KilnStatus status = KILN_OK;

    if (params->allocated)
        return kiln_error_set(err, KILN_E_INTERNAL, "the parameter store is already sealed");
    if (params->dtype != KILN_F32 && params->dtype != KILN_BF16 && params->dtype != KILN_F64)
        return kiln_error_set(err, KILN_E_TYPE,
                              "parameters can be stored as f32, bf16 or f64, not as %s",
                              kiln_dtype_name(params->dtype));
    for (size_t i = 0; i < KILN_COUNT(buffers) && status >= 0; i++)
        status = kiln_buffer_new(backend, buffers[i].bytes, buffers[i].buffer, err);
    params->threads = backend->threads;
    params->allocated = status >= 0; /* the store frees what exists */
    return status;
}

/* Draws values in f32, in place if they are stored so; writing rounds them to another type. */
static KilnStatus draw_floats(KilnParam *param, uint64_t seed, KilnError *err)
{
    const size_t bytes = (size_t)param->count * sizeof(float);
    const KilnLocation location = kiln_param_location(param);
    float *view = kiln_param_dtype(param) == KILN_F32
                      ? kiln_buffer_host_view(location.buffer, location.offset)
                      : NULL;

    if (view != NULL) {
        kiln_param_draw(param, seed, param->store->threads, view);
        return KILN_OK;
    }
    float *values = malloc(bytes);
    if (values == NULL)
        return kiln_error_nomem(err, bytes);
    kiln_param_draw(param, seed, param->store->threads, values);
    kiln_param_write(param, KILN_F32, values);
    free(values);
    return KILN_OK;
}

static KilnStatus draw(KilnParam *param, uint64_t seed, KilnError *err)
{
    const int64_t value = (int64_t)param->init.a;
    KilnLocation location = kiln_param_location(param);

    if (param->dtype != KILN_I64)
        return draw_floats(param, seed, err);
    for (int64_t i = 0; i < param->count; i++, location.offset += sizeof(value))
        kiln_buffer_upload(location.buffer, location.offset, &value, sizeof(value));
    return KILN_OK;
}

KilnStatus kiln_params_draw(KilnParams *params, KilnError *err)
{
    KilnStatus status = KILN_OK;

    /* First written by the backend's threads: near those that update them. */
    kiln_buffer_clear(params->values, 0, kiln_buffer_bytes(params->values));
    kiln_buffer_clear(params->fixed, 0, kiln_buffer_bytes(params->fixed));
    for (size_t i = 0; i < params->count && status >= 0; i++)
        status = draw(params->items[i], params->seed, err);
    return status;
}

KilnStatus kiln_params_seal(KilnParams *params, KilnBackend *backend, KilnError *err)
{
    KilnStatus status = kiln_params_allocate(params, backend, err);

    return status >= 0 ? kiln_params_draw(params, err) : status;
}

KilnStatus kiln_param_redraw(KilnParam *param, KilnError *err)
{
    return draw(param, param->store->seed, err);
}

size_t kiln_params_count(const KilnParams *params)
{
    return params->count;
}

KilnParam *kiln_params_at(const KilnParams *params, size_t i)
{
    return i < params->count ? params->items[i] : NULL;
}

KilnParam *kiln_params_find(const KilnParams *params, const char *name)
{
    return find(params, name, XXH3_64bits(name, strlen(name)));
}

int64_t kiln_params_size(const KilnParams *params)
{
    return params->size;
}

int64_t kiln_params_largest(const KilnParams *params)
{
    int64_t most = 0;

    for (size_t i = 0; i < params->count; i++)
        most = params->items[i]->count > most ? params->items[i]->count : most;
    return most;
}

/* ---- One parameter ---------------------------------------------------------------- */

/* Where parameter data is, in bytes from element `at` of a flat buffer. */
static KilnLocation place_in(KilnBuffer *buffer, int64_t at, KilnDType dtype)
{
    return (KilnLocation) { .buffer = buffer,
                            .offset = buffer != NULL ? (size_t)at * kiln_dtype_size(dtype) : 0 };
}

KilnLocation kiln_param_location(const KilnParam *param)
{
    const KilnParams *params = param->store;

    return place_in(param->trained             ? params->values
                    : param->fixed             ? params->fixed
                    : param->dtype == KILN_F32 ? params->statistics
                                               : params->counters,
                    param->offset, kiln_param_dtype(param));
}

KilnLocation kiln_param_gradient_location(const KilnParam *param)
{
    return place_in(param->trained ? param->store->gradients : NULL, param->offset,
                    param->store->dtype);
}

KilnLocation kiln_param_sparse_rows_location(const KilnParam *param)
{
    return place_in(param->sparse_rows >= 0 ? param->store->sparse_rows : NULL, param->sparse_rows,
                    KILN_I32);
}

/* The leaf made earlier in this step, or NULL. Steps reuse memory, so an address proves nothing:
 * checks what the graph now has at the noted index. */
static KilnTensor *leaf_of_step(const KilnParam *param, const KilnGraph *graph, KilnLocation at,
                                KilnLocation gradient)
{
    if (param->leaf == NULL || param->leaf_id < 0 || (size_t)param->leaf_id >= graph->n_tensors)
        return NULL;
    KilnTensor *leaf = graph->tensors[param->leaf_id];
    bool same = leaf == param->leaf && leaf->node == NULL && leaf->variable &&
                kiln_location_equal(&leaf->at, &at) &&
                kiln_location_equal(&leaf->grad_dest, &gradient) &&
                leaf->wants_grad == (param->trained && !param->frozen) &&
                kiln_shape_equal(&leaf->shape, &param->shape);

    return same ? leaf : NULL;
}

KilnTensor *kiln_param_tensor(KilnParam *param, KilnGraph *graph)
{
    const bool wants = param->trained && !param->frozen;
    const KilnLocation at = kiln_param_location(param);
    const KilnLocation gradient = wants ? kiln_param_gradient_location(param)
                                        : (KilnLocation) { 0 };

    if (!param->store->allocated)
        return kiln_graph_poison(graph, "parameter %s is used before its store is sealed",
                                 param->name);
    KilnTensor *leaf = leaf_of_step(param, graph, at, gradient);
    if (leaf != NULL)
        return leaf;
    leaf = kiln_graph_variable_at(graph, kiln_param_dtype(param), param->shape, at, wants,
                                  gradient);
    param->leaf = kiln_tensor_poisoned(leaf) ? NULL : leaf;
    param->leaf_id = leaf->id;
    return leaf;
}

const char *kiln_param_name(const KilnParam *param)
{
    return param->name;
}

const KilnShape *kiln_param_shape(const KilnParam *param)
{
    return &param->shape;
}

KilnDType kiln_param_dtype(const KilnParam *param)
{
    return param->dtype == KILN_F32 ? param->store->dtype : param->dtype;
}

bool kiln_param_trained(const KilnParam *param)
{
    return param->trained;
}

bool kiln_param_fixed(const KilnParam *param)
{
    return param->fixed;
}

int64_t kiln_param_offset(const KilnParam *param)
{
    return param->trained ? param->offset : -1;
}

/* ---- Values -------------------------------------------------------------------------- */

enum { PART = 4096 }; /* elements that are converted at a time */

/* Part of a store, as it is stored: bf16 or f64. */
typedef union Stored {
    uint16_t bf16[PART];
    double f64[PART];
} Stored;

static void to_f32(float *to, const Stored *from, KilnDType stored, int64_t n)
{
    if (stored == KILN_BF16)
        kiln_bf16_to_f32(to, from->bf16, n);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)from->f64[i];
}

static void from_f32(Stored *to, const float *from, KilnDType stored, int64_t n)
{
    if (stored == KILN_BF16)
        kiln_bf16_from_f32(to->bf16, from, n);
    else
        for (int64_t i = 0; i < n; i++)
            to->f64[i] = (float)to->f64[i] == from[i] ? to->f64[i] : (double)from[i];
}

static void read_location(KilnLocation from, KilnDType stored, KilnDType dtype, int64_t n,
                          void *ret)
{
    const size_t size = kiln_dtype_size(stored);
    Stored part;

    if (stored == dtype) {
        kiln_buffer_download(from.buffer, from.offset, ret, (size_t)n * size);
        return;
    }
    for (int64_t at = 0; at < n; at += PART) {
        const int64_t count = n - at < PART ? n - at : PART;

        kiln_buffer_download(from.buffer, from.offset + (size_t)at * size, &part,
                             (size_t)count * size);
        to_f32((float *)ret + at, &part, stored, count);
    }
}

/* An f64 that the given f32 is the rounded value of stays as it is. */
static void write_location(KilnLocation to, KilnDType stored, KilnDType dtype, int64_t n,
                           const void *data)
{
    const size_t size = kiln_dtype_size(stored);
    Stored part;

    if (stored == dtype) {
        kiln_buffer_upload(to.buffer, to.offset, data, (size_t)n * size);
        return;
    }
    for (int64_t at = 0; at < n; at += PART) {
        const int64_t count = n - at < PART ? n - at : PART;
        const size_t offset = to.offset + (size_t)at * size;

        if (stored == KILN_F64)
            kiln_buffer_download(to.buffer, offset, &part, (size_t)count * size);
        from_f32(&part, (const float *)data + at, stored, count);
        kiln_buffer_upload(to.buffer, offset, &part, (size_t)count * size);
    }
}

void kiln_param_read(const KilnParam *param, KilnDType dtype, void *ret)
{
    read_location(kiln_param_location(param), kiln_param_dtype(param), dtype, param->count, ret);
}

void kiln_param_write(KilnParam *param, KilnDType dtype, const void *data)
{
    write_location(kiln_param_location(param), kiln_param_dtype(param), dtype, param->count, data);
}

void kiln_param_read_gradient(const KilnParam *param, KilnDType dtype, void *ret)
{
    read_location(kiln_param_gradient_location(param), kiln_param_dtype(param), dtype, param->count,
                  ret);
}

void kiln_param_gradient_written(KilnParam *param)
{
    const int32_t all = KILN_SPARSE_ROWS_ALL;
    const KilnLocation rows = kiln_param_sparse_rows_location(param);

    if (rows.buffer != NULL)
        kiln_buffer_upload(rows.buffer, rows.offset, &all, sizeof(all));
}

/* ---- Flat leaves ----------------------------------------------------------------------- */

static KilnTensor *flat_leaf(const KilnParams *params, KilnGraph *graph, KilnBuffer *buffer,
                             int64_t n)
{
    return kiln_graph_variable_at(graph, params->dtype, KILN_SHAPE(n),
                                  (KilnLocation) { .buffer = buffer }, false, (KilnLocation) { 0 });
}

KilnTensor *kiln_params_flat_values(KilnParams *params, KilnGraph *graph)
{
    return flat_leaf(params, graph, params->values, params->size);
}

KilnTensor *kiln_params_flat_gradients(KilnParams *params, KilnGraph *graph)
{
    return flat_leaf(params, graph, params->gradients, params->size);
}

KilnTensor *kiln_params_flat_statistics(KilnParams *params, KilnGraph *graph)
{
    return params->n_statistics > 0
               ? flat_leaf(params, graph, params->statistics, params->n_statistics)
               : NULL;
}
