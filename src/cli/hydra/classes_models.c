/* torchvision's networks. */
#include "cli/hydra/classes_rows.h"

#define WEIGHTS                                                                                    \
    NEEDLESS("num_classes"), NEEDLESS("progress"),                                                 \
        ABSENT("weights", "null", "weights=FILE.safetensors begins with them: docs/vision.md"),    \
        ABSENT("pretrained", "false",                                                              \
               "weights=FILE.safetensors begins with them: "                                       \
               "docs/vision.md"),                                                                  \
        ABSENT("norm_layer", "null", "a network of your own is a plugin")

static const KilnImportOption resnet[] = {
    WEIGHTS,
    SAME("zero_init_residual"),
    SAME("groups"),
    SAME("width_per_group"),
    ABSENT("replace_stride_with_dilation", "null", "is model/deeplab_v3's network"),
    END,
};
static const KilnImportOption convnext[] = {
    WEIGHTS,
    NAMED("stochastic_depth_prob", "stochastic_depth"),
    SAME("layer_scale"),
    END,
};
static const KilnImportOption mobilenet[] = { WEIGHTS, SAME("dropout"), END };
static const KilnImportOption efficientnet[] = {
    WEIGHTS,
    SAME("dropout"),
    NAMED("stochastic_depth_prob", "stochastic_depth"),
    END,
};
static const KilnImportOption vit[] = {
    WEIGHTS,
    NEEDLESS("image_size"),
    SAME("dropout"),
    SAME("attention_dropout"),
    ABSENT("representation_size", "null", "a network of your own is a plugin"),
    END,
};
static const KilnImportOption detector[] = {
    WEIGHTS,
    ABSENT("weights_backbone", NULL, "weights=FILE.safetensors begins with them"),
    ABSENT("aux_loss", "null false", "kiln's deeplab_v3 has one loss"),
    NEEDLESS("trainable_backbone_layers"),
    END,
};

#define MODEL(name, component, extra, options)                                                     \
    {                                                                                              \
        "torchvision", name, KILN_IMPORT_MODEL, "model/" component, extra, NULL, options           \
    }
#define VIT(patch, width, layers, heads, mlp)                                                      \
    "embed: {_target_: model/patch_embedding, patch_size: " patch "}, width: " width               \
    ", layers: " layers ", heads: " heads ", mlp_dim: " mlp

const KilnImportClass kiln_import_models[] = {
    MODEL("resnet18", "resnet", "depth: 18, stem: large", resnet),
    MODEL("resnet34", "resnet", "depth: 34, stem: large", resnet),
    MODEL("resnet50", "resnet", "depth: 50, stem: large", resnet),
    MODEL("resnet101", "resnet", "depth: 101, stem: large", resnet),
    MODEL("resnet152", "resnet", "depth: 152, stem: large", resnet),
    MODEL("resnext50_32x4d", "resnet", "depth: 50, stem: large, groups: 32, width_per_group: 4",
          resnet),
    MODEL("resnext101_32x8d", "resnet", "depth: 101, stem: large, groups: 32, width_per_group: 8",
          resnet),
    MODEL("resnext101_64x4d", "resnet", "depth: 101, stem: large, groups: 64, width_per_group: 4",
          resnet),
    MODEL("wide_resnet50_2", "resnet", "depth: 50, stem: large, width_per_group: 128", resnet),
    MODEL("wide_resnet101_2", "resnet", "depth: 101, stem: large, width_per_group: 128", resnet),
    MODEL("convnext_tiny", "convnext", "size: tiny, stochastic_depth: 0.1", convnext),
    MODEL("convnext_small", "convnext", "size: small, stochastic_depth: 0.4", convnext),
    MODEL("convnext_base", "convnext", "size: base, stochastic_depth: 0.5", convnext),
    MODEL("convnext_large", "convnext", "size: large, stochastic_depth: 0.5", convnext),
    MODEL("mobilenet_v3_small", "mobilenet_v3", "size: small", mobilenet),
    MODEL("mobilenet_v3_large", "mobilenet_v3", "size: large", mobilenet),
    MODEL("efficientnet_b0", "efficientnet", "size: b0", efficientnet),
    MODEL("efficientnet_b1", "efficientnet", "size: b1", efficientnet),
    MODEL("efficientnet_b2", "efficientnet", "size: b2", efficientnet),
    MODEL("efficientnet_b3", "efficientnet", "size: b3", efficientnet),
    MODEL("efficientnet_b4", "efficientnet", "size: b4", efficientnet),
    MODEL("efficientnet_b5", "efficientnet", "size: b5", efficientnet),
    MODEL("efficientnet_b6", "efficientnet", "size: b6", efficientnet),
    MODEL("efficientnet_b7", "efficientnet", "size: b7", efficientnet),
    MODEL("vit_b_16", "transformer", VIT("16", "768", "12", "12", "3072"), vit),
    MODEL("vit_b_32", "transformer", VIT("32", "768", "12", "12", "3072"), vit),
    MODEL("vit_l_16", "transformer", VIT("16", "1024", "24", "16", "4096"), vit),
    MODEL("vit_l_32", "transformer", VIT("32", "1024", "24", "16", "4096"), vit),
    MODEL("vit_h_14", "transformer", VIT("14", "1280", "32", "16", "5120"), vit),
    MODEL("deeplabv3_resnet50", "deeplab_v3", "depth: 50", detector),
    MODEL("deeplabv3_resnet101", "deeplab_v3", "depth: 101", detector),
    MODEL("fcos_resnet50_fpn", "fcos", "depth: 50", detector),
    { .name = NULL },
};
