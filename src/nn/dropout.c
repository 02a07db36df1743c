/* The dropout layer. */
#include "kiln/nn.h"

KilnTensor *kiln_nn_dropout(KilnTensor *x, double p, KilnDropoutState *drop)
{
    if (drop == NULL || p == 0.0)
        return x;
    return kiln_dropout(x, p, drop->key, drop->stream++);
}
