/* 3 x 3 convolutions with stride 1 and their gradients in f32 by Winograd's algorithm
 * F(4 x 4, 3 x 3) (Lavin and Gray 2016): 36 products for 16 pixels instead of 144. Sums differ from
 * direct ones by up to 2e-6 (64 channels) to 5e-6 (512) of the largest, with random numbers. For
 * conv2d, conv2d_grad_input (`gradient`) and conv2d_grad_weight; results do not depend on the
 * number of threads.
 *
 * *_prepare sets *ret_taken to false if the algorithm does not fit or would not pay, and *_run
 * returns false then. */
#ifndef KILN_BACKEND_CPU_WINOGRAD_CONV_H
#define KILN_BACKEND_CPU_WINOGRAD_CONV_H

#include "graph/backend.h"

KILN_NODISCARD KilnStatus kiln_winograd_conv_prepare(KilnCall *call, bool gradient, bool *ret_taken,
                                                     KilnError *err);
bool kiln_winograd_conv_run(KilnCall *call, bool gradient);

KILN_NODISCARD KilnStatus kiln_winograd_weight_prepare(KilnCall *call, bool *ret_taken,
                                                       KilnError *err);
bool kiln_winograd_weight_run(KilnCall *call);

#endif
