/* Convolutions and their gradients on AMX. */
#ifndef KILN_BACKEND_CPU_AMX_AMX_CONV_H
#define KILN_BACKEND_CPU_AMX_AMX_CONV_H

#include "graph/backend.h"

/* Prepare a conv2d_grad_weight of bf16; false: this one is left to others. */
bool kiln_amx_conv_weight_prepare(KilnCall *call);
void kiln_amx_conv_weight_run(KilnCall *call);

/* The same for a conv2d, or a conv2d_grad_input, of bf16 images and an f32 weight. */
bool kiln_amx_conv_image_prepare(KilnCall *call, bool gradient);
void kiln_amx_conv_image_run(KilnCall *call, bool gradient);

/* The same for those of 1 x 1; run returns false for others. */
bool kiln_amx_conv_point_prepare(KilnCall *call, bool gradient);
bool kiln_amx_conv_point_run(KilnCall *call, bool gradient);

#endif
