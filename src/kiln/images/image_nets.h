/* Parts of networks for images that several models share, with the names, shapes and initial
 * distributions of torchvision's modules. Images are [N, H, W, C]. */
#ifndef KILN_IMAGES_IMAGE_NETS_H
#define KILN_IMAGES_IMAGE_NETS_H

#include "kiln/nn.h"

/* ---- Convolution, batch normalization, activation ------------------------------------------ */

typedef enum KilnActivation {
    KILN_ACTIVATION_NONE,
    KILN_ACTIVATION_RELU,
    KILN_ACTIVATION_HARD_SWISH,
    KILN_ACTIVATION_SILU
} KilnActivation;

KILN_API KilnTensor *kiln_activate(KilnTensor *x, KilnActivation activation);

typedef struct KilnConvNormSpec {
    int64_t in, out, kernel;          /* kernel: odd; padded, so that only the stride shrinks */
    int64_t stride, dilation, groups; /* 0: 1 */
    KilnActivation activation;
    bool kaiming_fan_out; /* as KilnConv2dSpec */
    double eps, momentum; /* 0: PyTorch's, 1e-5 and 0.1 */
} KilnConvNormSpec;

typedef struct KilnConvNorm {
    KilnConv2d conv;
    KilnBatchNorm2d norm;
    KilnActivation activation;
} KilnConvNorm;

/* torchvision.ops.Conv2dNormActivation: a convolution without bias, named `conv` below `scope`, and
 * its batch normalization `norm`. */
KILN_API KILN_NODISCARD KilnStatus kiln_conv_norm_init(KilnConvNorm *layer, const KilnScope *scope,
                                                       const char *conv, const char *norm,
                                                       KilnConvNormSpec spec, KilnError *err);
KILN_API KilnTensor *kiln_conv_norm(const KilnConvNorm *layer, KilnTensor *x, bool training);

/* ---- Inverted residual blocks --------------------------------------------------------------- */

typedef struct KilnInvertedResidualSpec {
    int64_t in, expanded, out; /* channels */
    int64_t kernel, stride;    /* of the depthwise convolution */
    int64_t squeezed;          /* channels of squeeze-excitation; 0: there is none */
    KilnActivation activation, squeeze_activation;
    bool hard_gate;       /* hard-sigmoid instead of sigmoid */
    double depth_dropout; /* the probability of stochastic depth */
    double eps, momentum; /* of the norms; 0: PyTorch's */
} KilnInvertedResidualSpec;

typedef struct KilnInvertedResidual {
    KilnInvertedResidualSpec spec;
    KilnConvNorm expand, depthwise, project; /* expand only where `expanded` differs from `in` */
    KilnConv2d fc1, fc2;                     /* squeeze-excitation */
    char path[128];
} KilnInvertedResidual;

/* The block of MobileNet V3 and EfficientNet (Howard et al. 2019, Tan and Le 2019; torchvision's
 * InvertedResidual and MBConv): 1×1 to more channels, depthwise, squeeze-excitation (Hu et al.
 * 2018), 1×1 to `out`; plus its input where the shapes agree. Names: NAME.block.0 and so on. */
KILN_API KILN_NODISCARD KilnStatus kiln_inverted_residual_init(KilnInvertedResidual *block,
                                                               const KilnScope *scope,
                                                               const char *name,
                                                               KilnInvertedResidualSpec spec,
                                                               KilnError *err);
/* `drop` NULL: not training. */
KILN_API KilnTensor *kiln_inverted_residual(const KilnInvertedResidual *block, KilnTensor *x,
                                            bool training, KilnDropoutState *drop);

/* The nearest multiple of 8 to `channels`, at least 8 and not below 9/10 of it: torchvision's
 * _make_divisible. */
KILN_API int64_t kiln_round_channels(double channels);

/* ---- Residual networks -------------------------------------------------------------------------
 */

typedef struct KilnResnetSpec {
    int64_t channels;                /* of the images */
    int64_t depth;                   /* 18, 34, 50, 101 or 152 */
    int64_t groups, width_per_group; /* of the 3×3 convolutions in bottlenecks; 0: 1 and 64 */
    bool large_stem; /* 7×7 with stride 2 and max-pooling, as torchvision; else one 3×3 */
    bool zero_init;  /* as KilnResidualSpec */
    int64_t dilated; /* of the last layers, how many dilate instead of shrinking: 0, 1 or 2 */
    int64_t width;   /* of the first layer's 3×3 convolutions and of the stem; 0: 64 */
} KilnResnetSpec;

/* torchvision.models.ResNet without avgpool and fc (He et al. 2016; groups: Xie et al. 2017; wide:
 * Zagoruyko and Komodakis 2016). */
typedef struct KilnResnet KilnResnet;

enum { KILN_RESNET_LAYERS = 4 };

/* Declares conv1, bn1 and layer1 to layer4 below `scope`. Owned by the caller. KILN_E_SHAPE for
 * images, of height and width, that it shrinks to nothing; KILN_E_RANGE for options that do not go
 * together. */
KILN_API KILN_NODISCARD KilnStatus kiln_resnet_new(const KilnScope *scope, KilnResnetSpec spec,
                                                   const KilnShape *image, KilnResnet **ret,
                                                   KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_resnet_free(KilnResnet *net);
/* Channels of the result of layer4. */
KILN_API int64_t kiln_resnet_channels(const KilnResnet *net);
/* Channels of the result of layer number `layer`, from 0. */
KILN_API int64_t kiln_resnet_layer_channels(const KilnResnet *net, int layer);
/* The result of layer4: [N, H, W, channels] of images. */
KILN_API KilnTensor *kiln_resnet(const KilnResnet *net, KilnTensor *images, bool training);
/* The results of all layers, from images of 1/4 (1/1 with the small stem) to 1/32 (1/8) of the
 * size, rounded up. */
KILN_API void kiln_resnet_layers(const KilnResnet *net, KilnTensor *images, bool training,
                                 KilnTensor *ret[KILN_RESNET_LAYERS]);

#endif
