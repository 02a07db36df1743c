/* The dropout layers. */
#include "kiln/nn.h"

KilnTensor *kiln_nn_dropout(KilnTensor *x, double p, KilnDropoutState *drop)
{
    if (drop == NULL || p == 0.0)
        return x;
    return kiln_dropout(x, p, drop->key, drop->stream++);
}

KilnTensor *kiln_nn_stochastic_depth(KilnTensor *x, double p, KilnDropoutState *drop)
{
    KilnShape samples = *kiln_tensor_shape(x);

    if (drop == NULL || p == 0.0)
        return x;
    for (int axis = 1; axis < samples.rank; axis++)
        samples.dim[axis] = 1;
    KilnTensor *ones = kiln_reshape(
        kiln_arange(kiln_tensor_graph(x), kiln_tensor_dtype(x), 1.0, 0.0, samples.dim[0]), samples);
    return kiln_mul(x, kiln_nn_dropout(ones, p, drop));
}
