/* What is stored of one parameter: where it is, its leaf in a step, reading and writing values. */
#include "nn/params.h"

#include "graph/backend.h"
#include "graph/graph.h"
#include "tensor/bf16.h"

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

bool kiln_param_frozen(const KilnParam *param)
{
    return param->frozen;
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
