/* Queries on recorded tensors. */
#include <math.h>

#include "graph/graph.h"
#include "tensor/bf16.h"

const KilnShape *kiln_tensor_shape(const KilnTensor *tensor)
{
    return &tensor->shape;
}

KilnDType kiln_tensor_dtype(const KilnTensor *tensor)
{
    return tensor->dtype;
}

int64_t kiln_tensor_dim(const KilnTensor *tensor, int axis)
{
    if (axis < 0)
        axis += tensor->shape.rank;
    return axis >= 0 && axis < tensor->shape.rank ? tensor->shape.dim[axis] : 0;
}

KilnGraph *kiln_tensor_graph(const KilnTensor *tensor)
{
    return tensor->graph;
}

bool kiln_tensor_poisoned(const KilnTensor *tensor)
{
    return tensor->poisoned;
}

const void *kiln_tensor_data(const KilnTensor *tensor)
{
    return tensor->data;
}

size_t kiln_tensor_bytes(const KilnTensor *tensor)
{
    const KilnDType dtype = tensor->stored_bf16 ? KILN_BF16 : tensor->dtype;

    return (size_t)kiln_shape_count(&tensor->shape) * kiln_dtype_size(dtype);
}

double kiln_tensor_scalar(const KilnTensor *tensor)
{
    if (tensor->data == NULL || kiln_shape_count(&tensor->shape) != 1)
        return NAN;
    switch (tensor->stored_bf16 ? KILN_BF16 : tensor->dtype) {
    case KILN_F32:
        return (double)*(const float *)tensor->data;
    case KILN_F64:
        return *(const double *)tensor->data;
    case KILN_I32:
        return (double)*(const int32_t *)tensor->data;
    case KILN_I64:
        return (double)*(const int64_t *)tensor->data;
    case KILN_U8:
        return (double)*(const uint8_t *)tensor->data;
    case KILN_BF16:
        return (double)kiln_bf16_to(*(const uint16_t *)tensor->data);
    }
    return NAN;
}

KilnTensor *kiln_tensor_grad(const KilnTensor *variable)
{
    return variable->grad;
}
