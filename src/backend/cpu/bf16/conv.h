/* Convolutions and their gradients in bf16 by tiles. */
#ifndef KILN_BACKEND_CPU_BF16_CONV_H
#define KILN_BACKEND_CPU_BF16_CONV_H

#include "graph/backend.h"

/* The gradient of a weight in bf16. prepare returns false to leave the call to oneDNN. */
bool kiln_bf16_conv_weight_prepare(KilnCall *call);
void kiln_bf16_conv_weight_run(KilnCall *call);

/* The same for 3 x 3 convolutions with stride 1 by vdpbf16ps, with Winograd's algorithm if the
 * backend may use it; run returns false if it was not prepared. */
bool kiln_bf16_conv_weight_winograd_prepare(KilnCall *call);
bool kiln_bf16_conv_weight_winograd_run(KilnCall *call);

/* The same for conv2d and conv2d_grad_input with bf16 images and an f32 weight. */
bool kiln_bf16_conv_image_prepare(KilnCall *call, bool gradient);
void kiln_bf16_conv_image_run(KilnCall *call, bool gradient);

/* The same for 1 x 1 convolutions; run returns false if it was not prepared. */
bool kiln_bf16_conv_point_prepare(KilnCall *call, bool gradient);
bool kiln_bf16_conv_point_run(KilnCall *call, bool gradient);

/* The same, with any weight, for 3 x 3 convolutions with stride 1 by vdpbf16ps, with Winograd's
 * algorithm if the backend may use it. */
bool kiln_bf16_conv_winograd_prepare(KilnCall *call, bool gradient);
bool kiln_bf16_conv_winograd_run(KilnCall *call, bool gradient);

#endif
