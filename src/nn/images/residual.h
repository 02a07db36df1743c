/* Residual blocks with groups and dilation, beyond what kiln_nn_residual_block_init offers. */
#ifndef KILN_NN_IMAGES_RESIDUAL_H
#define KILN_NN_IMAGES_RESIDUAL_H

#include "kiln/nn.h"

typedef struct KilnResidualShape {
    int64_t in, width, out; /* channels: of the input, of the 3×3 convolutions, of the result */
    int64_t stride, dilation, groups;
    bool bottleneck, zero_init;
} KilnResidualShape;

KILN_NODISCARD KilnStatus kiln_residual_block_declare(KilnResidualBlock *block,
                                                      const KilnScope *scope, const char *name,
                                                      KilnResidualShape shape, KilnError *err);

#endif
