/* Activations. Each has its own gradient operation, so that the backward pass stores only one
 * tensor. */
#include "graph/ops/activation.h"

#include "graph/graph.h"
#include "graph/ops/mapped.h"

/* Records the gradient `op` of dy and the node's input or output, with the node's numbers. */
static KilnTensor *grad_of(const KilnOp *op, const KilnNode *node, KilnTensor *dy, KilnTensor *x)
{
    const KilnNumberAttrs none = { 0 };
    const KilnNumberAttrs *numbers = op->attrs_size > 0 ? node->attrs : &none;

    return kiln_record_mapped(op, dy, x, NULL, numbers->p, numbers->q);
}

#define GRADIENT(NAME, OF)                                                                         \
    static void gradient_##NAME(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)            \
    {                                                                                              \
        dx[0] = grad_of(&kiln_op_##NAME##_grad, node, dy[0], node->OF[0]);                         \
    }
/* An activation, and its gradient, which is computed from its input or its output. */
#define ACTIVATION(NAME, CODE, OF, NUMBERS)                                                        \
    GRADIENT(NAME, OF)                                                                             \
    KILN_MAPPED(NAME, CODE, 1, gradient_##NAME, FOLLOW, NUMBERS)                                   \
    KILN_MAPPED(NAME##_grad, CODE##_GRAD, 2, NULL, FOLLOW, NUMBERS)

ACTIVATION(relu, RELU, outputs, 0)
ACTIVATION(sigmoid, SIGMOID, outputs, 0)
ACTIVATION(tanh, TANH, outputs, 0)
ACTIVATION(leaky_relu, LEAKY_RELU, inputs, 1)
ACTIVATION(elu, ELU, inputs, 1)
ACTIVATION(gelu, GELU, inputs, 0)
ACTIVATION(gelu_tanh, GELU_TANH, inputs, 0)
ACTIVATION(silu, SILU, inputs, 0)
ACTIVATION(hard_swish, HARD_SWISH, inputs, 0)
ACTIVATION(hard_sigmoid, HARD_SIGMOID, inputs, 0)
ACTIVATION(softplus, SOFTPLUS, inputs, 1)

KilnTensor *kiln_relu(KilnTensor *x)
{
    return kiln_record_mapped(&kiln_op_relu, x, NULL, NULL, 0.0, 0.0);
}

KilnTensor *kiln_leaky_relu(KilnTensor *x, double slope)
{
    return kiln_record_mapped(&kiln_op_leaky_relu, x, NULL, NULL, slope, 0.0);
}

KilnTensor *kiln_elu(KilnTensor *x, double alpha)
{
    return kiln_record_mapped(&kiln_op_elu, x, NULL, NULL, alpha, 0.0);
}

KilnTensor *kiln_gelu(KilnTensor *x, KilnGelu form)
{
    const KilnOp *op = form == KILN_GELU_TANH ? &kiln_op_gelu_tanh : &kiln_op_gelu;

    return kiln_record_mapped(op, x, NULL, NULL, 0.0, 0.0);
}

KilnTensor *kiln_silu(KilnTensor *x)
{
    return kiln_record_mapped(&kiln_op_silu, x, NULL, NULL, 0.0, 0.0);
}

KilnTensor *kiln_hard_swish(KilnTensor *x)
{
    return kiln_record_mapped(&kiln_op_hard_swish, x, NULL, NULL, 0.0, 0.0);
}

KilnTensor *kiln_hard_sigmoid(KilnTensor *x)
{
    return kiln_record_mapped(&kiln_op_hard_sigmoid, x, NULL, NULL, 0.0, 0.0);
}

KilnTensor *kiln_softplus(KilnTensor *x, double beta, double threshold)
{
    return kiln_record_mapped(&kiln_op_softplus, x, NULL, NULL, beta, threshold);
}

KilnTensor *kiln_sigmoid(KilnTensor *x)
{
    return kiln_record_mapped(&kiln_op_sigmoid, x, NULL, NULL, 0.0, 0.0);
}

KilnTensor *kiln_tanh(KilnTensor *x)
{
    return kiln_record_mapped(&kiln_op_tanh, x, NULL, NULL, 0.0, 0.0);
}
