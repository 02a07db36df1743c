/* Private to the reference backend: element access for its kernels, and the table in which each
 * file lists them. */
#ifndef KILN_BACKEND_REF_H
#define KILN_BACKEND_REF_H

#include "graph/backend.h"
#include "graph/map.h"
#include "tensor/bf16.h"

/* The kernels of one file. */
typedef struct KilnRefTable {
    const KilnKernel *kernels;
    size_t count;
} KilnRefTable;

extern const KilnRefTable kiln_ref_cast, kiln_ref_elementwise, kiln_ref_map, kiln_ref_reductions,
    kiln_ref_products, kiln_ref_convolution, kiln_ref_pooling, kiln_ref_normalization,
    kiln_ref_losses, kiln_ref_updates, kiln_ref_optimizers, kiln_ref_attention, kiln_ref_rotary,
    kiln_ref_recurrent, kiln_ref_movement, kiln_ref_embedding, kiln_ref_resample, kiln_ref_padding,
    kiln_ref_ctc, kiln_ref_set_norm, kiln_ref_sort, kiln_ref_segment, kiln_ref_random,
    kiln_ref_kv_cache, kiln_ref_resize, kiln_ref_patches, kiln_ref_sample, kiln_ref_boxes,
    kiln_ref_compact, kiln_ref_crf;

/* The kernel of an operation; NULL: none. Kernels serve any backend in the host's memory. */
const KilnKernel *kiln_ref_kernel(const KilnBackend *backend, const KilnOp *op);
/* The kernel of a custom operation; NULL: it has none for the backend's type. */
const KilnKernel *kiln_ref_custom(const KilnBackend *backend, const KilnCustomOp *op);

/* A step of a map, of the values of its registers. */
double kiln_ref_step(const KilnMapStep *step, double a, double b, double c);
/* Whether dropout keeps element i, with probability 1 - p, given key [2] and stream. */
bool kiln_ref_keeps(const int32_t *key, int64_t stream, int64_t i, double p);

/* ---- Elements. Inline, because kernels read and write nothing but single elements ---- */

static inline int64_t kiln_ref_count(const KilnArg *arg)
{
    return kiln_shape_count(&arg->shape);
}

/* The size of the last axis (1 for a scalar), and the number of such rows. */
static inline int64_t kiln_ref_columns(const KilnArg *arg)
{
    return arg->shape.rank > 0 ? arg->shape.dim[arg->shape.rank - 1] : 1;
}

static inline int64_t kiln_ref_rows(const KilnArg *arg)
{
    int64_t rows = 1;

    for (int axis = 0; axis + 1 < arg->shape.rank; axis++)
        rows *= arg->shape.dim[axis];
    return rows;
}

/* Element i in plain order, of any type, as a double. */
static inline double kiln_ref_get(const KilnArg *arg, int64_t i)
{
    switch (arg->dtype) {
    case KILN_F32:
        return ((const float *)arg->data)[i];
    case KILN_F64:
        return ((const double *)arg->data)[i];
    case KILN_I32:
        return ((const int32_t *)arg->data)[i];
    case KILN_I64:
        return (double)((const int64_t *)arg->data)[i];
    case KILN_U8:
        return ((const uint8_t *)arg->data)[i];
    case KILN_BF16:
        return (double)kiln_bf16_to(((const uint16_t *)arg->data)[i]);
    }
    return 0.0;
}

/* Rounds to the type. */
static inline void kiln_ref_set(const KilnArg *arg, int64_t i, double value)
{
    switch (arg->dtype) {
    case KILN_F32:
        ((float *)arg->data)[i] = (float)value;
        break;
    case KILN_F64:
        ((double *)arg->data)[i] = value;
        break;
    case KILN_I32:
        ((int32_t *)arg->data)[i] = (int32_t)value;
        break;
    case KILN_I64:
        ((int64_t *)arg->data)[i] = (int64_t)value;
        break;
    case KILN_U8:
        ((uint8_t *)arg->data)[i] = (uint8_t)value;
        break;
    case KILN_BF16:
        ((uint16_t *)arg->data)[i] = kiln_bf16_of((float)value);
        break;
    }
}

#endif
