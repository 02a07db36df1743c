/* What a model's forward asks for in steps that continue earlier ones (kiln/module.h). Each step
 * asks for the same caches in the same order, so a cache is known by its number. */
#include "train/step/decode.h"

#include <stdlib.h>

#include "train/step/module_step.h"

KilnStatus kiln_decode_init(KilnDecode *decode, KilnBackend *backend, int64_t batch, int64_t rows,
                            KilnError *err)
{
    int32_t *position = calloc((size_t)batch, sizeof(*position));

    if (position == NULL)
        return kiln_error_nomem(err, (size_t)batch * sizeof(*position));
    *decode =
        (KilnDecode) { .backend = backend, .batch = batch, .rows = rows, .position = position };
    return KILN_OK;
}

void kiln_decode_release(KilnDecode *decode)
{
    for (size_t i = 0; i < decode->n; i++)
        kiln_buffer_free(decode->caches[i].buffer);
    free(decode->caches);
    free(decode->position);
}

/* Of one cache, through `room` for all samples. */
static void reorder(const KilnDecodeCache *cache, const int32_t *parents, int64_t batch,
                    size_t bytes, char *room)
{
    const size_t stride = kiln_buffer_bytes(cache->buffer) / (size_t)batch;

    for (int64_t r = 0; r < batch; r++)
        if (parents[r] != r)
            kiln_buffer_download(cache->buffer, (size_t)parents[r] * stride,
                                 room + (size_t)r * bytes, bytes);
    for (int64_t r = 0; r < batch; r++)
        if (parents[r] != r)
            kiln_buffer_upload(cache->buffer, (size_t)r * stride, room + (size_t)r * bytes, bytes);
}

KilnStatus kiln_decode_reorder(KilnDecode *decode, const int32_t *parents, int64_t rows,
                               KilnError *err)
{
    size_t most = 0;

    for (size_t i = 0; i < decode->n; i++) {
        const size_t bytes = kiln_buffer_bytes(decode->caches[i].buffer) / (size_t)decode->batch;

        most = bytes > most ? bytes : most;
    }
    char *room = malloc(most * (size_t)decode->batch + 1);
    if (room == NULL)
        return kiln_error_nomem(err, most * (size_t)decode->batch);
    for (size_t i = 0; i < decode->n; i++) {
        const size_t bytes = kiln_buffer_bytes(decode->caches[i].buffer) / (size_t)decode->batch;

        reorder(&decode->caches[i], parents, decode->batch,
                bytes / (size_t)decode->rows * (size_t)rows, room);
    }
    free(room);
    return KILN_OK;
}

KilnTensor *kiln_step_position(KilnStep *step)
{
    const KilnDecode *decode = step->decode;

    if (decode == NULL)
        return NULL;
    if (step->position == NULL)
        step->position = kiln_graph_input(step->graph, KILN_I32, KILN_SHAPE(decode->batch),
                                          decode->position);
    return step->position;
}

KilnTensor *kiln_step_places(KilnStep *step, int64_t rows)
{
    const int64_t batch = step->batch.size;
    const KilnDecode *decode = step->decode;
    int32_t *places = kiln_arena_alloc(&step->graph->arena,
                                       (size_t)(batch * rows) * sizeof(*places));

    if (places == NULL)
        return kiln_graph_poison_nomem(step->graph, (size_t)(batch * rows) * sizeof(*places));
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < rows; i++)
            places[b * rows + i] = (int32_t)i + (decode != NULL ? decode->position[b] : 0);
    return kiln_graph_input(step->graph, KILN_I32, KILN_SHAPE(batch, rows), places);
}

/* Attention in bf16 rounds what it reads, so the rows may as well be kept so. */
static KilnDType kept_type(const KilnTensor *x)
{
    const KilnPrecision precision = x->graph->precision;

    return precision == KILN_BF16_MIXED || precision == KILN_BF16_TRUE ? KILN_BF16
                                                                       : kiln_tensor_dtype(x);
}

/* A cache for rows like those of x; NULL when memory is out. */
static KilnDecodeCache *add_cache(KilnDecode *decode, const KilnTensor *x, int axis)
{
    KilnError err;

    if (decode->n == decode->capacity) {
        const size_t capacity = decode->capacity > 0 ? 2 * decode->capacity : 32;
        KilnDecodeCache *caches = realloc(decode->caches, capacity * sizeof(*caches));

        if (caches == NULL)
            return NULL;
        decode->caches = caches;
        decode->capacity = capacity;
    }
    KilnDecodeCache *cache = &decode->caches[decode->n];
    *cache = (KilnDecodeCache) { .shape = *kiln_tensor_shape(x), .dtype = kept_type(x) };
    cache->shape.dim[axis] = decode->rows;
    const size_t bytes = (size_t)kiln_shape_count(&cache->shape) * kiln_dtype_size(cache->dtype);
    if (kiln_buffer_new(decode->backend, bytes, &cache->buffer, &err) < 0)
        return NULL;
    decode->n++;
    return cache;
}

KilnTensor *kiln_step_cache(KilnStep *step, KilnTensor *x, int axis)
{
    KilnDecode *decode = step->decode;
    KilnTensor *position = kiln_step_position(step);

    if (position == NULL || kiln_tensor_poisoned(x))
        return x;
    const KilnDecodeCache *cache = decode->used < decode->n ? &decode->caches[decode->used]
                                                            : add_cache(decode, x, axis);
    if (cache == NULL)
        return kiln_graph_poison_nomem(step->graph, kiln_tensor_bytes(x));
    decode->used++;
    KilnTensor *rows = kiln_graph_variable_at(step->graph, cache->dtype, cache->shape,
                                              (KilnLocation) { .buffer = cache->buffer }, false,
                                              (KilnLocation) { 0 });
    kiln_cache_write(rows, x, position, axis);
    return rows;
}
