/* The parameter store: parameters declared by full name, then sealed into flat buffers. Initial
 * values are in nn/initial_values.c, what is stored of one parameter in nn/params_values.c. */
#include "nn/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/ops/sequence/embedding.h"

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
