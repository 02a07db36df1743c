/* A U-Net (Ronneberger et al. 2015) as it is built today: padded convolutions, batch normalization,
 * bilinear upsampling. For tests and benchmarks; class UNet of bench/peer.py is the same. */
#ifndef KILN_TESTS_NETS_UNET_H
#define KILN_TESTS_NETS_UNET_H

#include "kiln/nn.h"

enum { UNET_LEVELS = 4 };

/* Two 3x3 convolutions, each with batch normalization and ReLU. */
typedef struct UNetStage {
    KilnConv2d conv[2];
    KilnBatchNorm2d bn[2];
} UNetStage;

typedef struct UNet {
    UNetStage down[UNET_LEVELS], up[UNET_LEVELS - 1];
    KilnConv2d head;
} UNet;

/* `width` channels at full size, twice as many on each level below. */
KilnStatus unet_net_init(UNet *net, const KilnScope *scope, int64_t width, int64_t classes,
                         KilnError *err);

/* Class scores [N, H, W, classes] of images [N, H, W, 3]; H and W are multiples of 8. `dropout` is
 * that of the lowest level, NULL: none. */
KilnTensor *unet_net_scores(const UNet *net, KilnTensor *x, bool training,
                            KilnDropoutState *dropout);

#endif
