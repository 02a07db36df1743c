/* The gradient of a convolution's weight on AMX. */
#ifndef KILN_BACKEND_CPU_AMX_CONV_H
#define KILN_BACKEND_CPU_AMX_CONV_H

#include "graph/backend.h"

/* Prepare a conv2d_grad_weight of bf16; false: this one is left to others. */
bool kiln_amx_conv_weight_prepare(KilnCall *call);
void kiln_amx_conv_weight_run(KilnCall *call);

#endif
