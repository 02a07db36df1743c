/* The gradient of the weight of a depthwise convolution of f32 with more than 3 x 3 taps, for which
 * oneDNN has only a product per channel. Results do not depend on the number of threads.
 *
 * kiln_depthwise_weight_prepare sets *ret_taken to false if the call is another, and
 * kiln_depthwise_weight_run returns false then. */
#ifndef KILN_BACKEND_CPU_IMAGES_DEPTHWISE_H
#define KILN_BACKEND_CPU_IMAGES_DEPTHWISE_H

#include "graph/backend.h"

KILN_NODISCARD KilnStatus kiln_depthwise_weight_prepare(KilnCall *call, bool *ret_taken,
                                                        KilnError *err);
bool kiln_depthwise_weight_run(KilnCall *call);

#endif
