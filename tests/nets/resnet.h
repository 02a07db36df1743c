/* A ResNet-18 of any width: with the small stem as class NarrowResNet of tests/record/curves.py,
 * with the large one as torchvision's. */
#ifndef KILN_TESTS_NETS_RESNET_H
#define KILN_TESTS_NETS_RESNET_H

#include "kiln/nn.h"

enum { RESNET_BLOCKS = 8 };

typedef struct ResNetPart {
    KilnConv2d conv;
    KilnBatchNorm2d bn;
} ResNetPart;

typedef struct ResNetBlock {
    ResNetPart first, second, down;
    bool shrinks; /* halves the image and doubles the channels; `down` is used */
} ResNetBlock;

typedef struct ResNet {
    ResNetPart stem;
    ResNetBlock blocks[RESNET_BLOCKS];
    KilnLinear fc;
    bool large_stem; /* 7x7 with stride 2 and pooling; else 3x3 */
} ResNet;

/* Set `large_stem` before. */
KilnStatus resnet_net_init(ResNet *net, const KilnScope *scope, int64_t width, int64_t classes,
                           KilnError *err);

/* Class scores of images [N, H, W, 3]. */
KilnTensor *resnet_net_scores(const ResNet *net, KilnTensor *x, bool training);

/* Mean cross-entropy in training: images [N, H, W, 3], labels i32 [N]. */
KilnTensor *resnet_net_loss(const ResNet *net, KilnTensor *x, KilnTensor *labels);

#endif
