/* torchvision's transforms and data sets. */
#include "cli/hydra/classes_rows.h"

/* ---- Transforms ------------------------------------------------------------------------------ */

#define FILTERS "0=nearest 2=bilinear 3=bicubic nearest=nearest bilinear=bilinear bicubic=bicubic"
#define INTERPOLATION                                                                              \
    {                                                                                              \
        "interpolation", "interpolation", KILN_IMPORT_CHOICE, FILTERS, NULL                        \
    }
#define FILL                                                                                       \
    {                                                                                              \
        "fill", "fill", KILN_IMPORT_NOT_NULL, NULL, "one number for all channels"                  \
    }

static const KilnImportOption resize[] = {
    { "size", "size", KILN_IMPORT_SHORTER, NULL, NULL },
    INTERPOLATION,
    ABSENT("max_size", "null", "a crop after it limits the longer side"),
    NEEDLESS("antialias"),
    END,
};
static const KilnImportOption size[] = { SAME("size"), END };
static const KilnImportOption crop[] = {
    SAME("size"),
    NOT_NULL("padding"),
    ABSENT("pad_if_needed", "false", "padding pads always"),
    ABSENT("fill", "0", "padding is black"),
    { "padding_mode", "padding_mode", KILN_IMPORT_CHOICE,
      "constant=zeros edge=edge reflect=reflect", "zeros, edge or reflect" },
    END,
};
static const KilnImportOption resized_crop[] = {
    SAME("size"), SAME("scale"), SAME("ratio"), INTERPOLATION, NEEDLESS("antialias"), END,
};
static const KilnImportOption probability[] = { SAME("p"), END };
static const KilnImportOption rotation[] = {
    { "degrees", "degrees", KILN_IMPORT_SPAN, NULL, "the largest angle, to either side" },
    INTERPOLATION,
    ABSENT("expand", "false", "images keep their size"),
    ABSENT("center", "null", "images turn around their middle"),
    FILL,
    END,
};
static const KilnImportOption affine[] = {
    { "degrees", "degrees", KILN_IMPORT_SPAN, NULL, "the largest angle, to either side" },
    NOT_NULL("translate"),
    NOT_NULL("scale"),
    NOT_NULL("shear"),
    INTERPOLATION,
    FILL,
    ABSENT("center", "null", "images turn around their middle"),
    END,
};
static const KilnImportOption perspective[] = { NAMED("distortion_scale", "distortion"), SAME("p"),
                                                INTERPOLATION, FILL, END };
static const KilnImportOption jitter[] = { NOT_NULL("brightness"), NOT_NULL("contrast"),
                                           NOT_NULL("saturation"), NOT_NULL("hue"), END };
static const KilnImportOption blur[] = { SAME("kernel_size"), SAME("sigma"), END };
static const KilnImportOption erasing[] = {
    SAME("p"), SAME("scale"), SAME("ratio"), SAME("value"), NEEDLESS("inplace"), END,
};
static const KilnImportOption rand_augment[] = {
    SAME("num_ops"), SAME("magnitude"), NEEDLESS("num_magnitude_bins"), INTERPOLATION, FILL, END
};
static const KilnImportOption trivial_augment[] = { NEEDLESS("num_magnitude_bins"), INTERPOLATION,
                                                    FILL, END };
static const KilnImportOption normalize[] = { SAME("mean"), SAME("std"), NEEDLESS("inplace"), END };
static const KilnImportOption compose[] = {
    { "transforms", NULL, KILN_IMPORT_INSIDE, NULL, NULL },
    END,
};
static const KilnImportOption mixing[] = { SAME("alpha"), NEEDLESS("num_classes"),
                                           NEEDLESS("labels_getter"), END };
#define READY "kiln's images are numbers of 0..1 already"

/* ---- Data sets ------------------------------------------------------------------------------- */

#define TRANSFORM                                                                                  \
    NAMED("transform", "transforms"),                                                              \
        ABSENT("target_transform", "null", "a datamodule of your own is a plugin")

static const KilnImportOption mnist[] = {
    { "root", "root", KILN_IMPORT_FOLDER, "/MNIST/raw", "torchvision puts the files there" },
    NEEDLESS("train"),
    ABSENT("download", "false true",
           "datamodule.download=true, with the sources of kiln's datamodule/mnist"),
    ABSENT("transform", "null", "has its own mean, std and shift: no transforms"),
    ABSENT("target_transform", "null", NULL),
    END,
};
static const KilnImportOption image_folder[] = {
    SAME("root"), TRANSFORM, NEEDLESS("loader"), NEEDLESS("is_valid_file"), NEEDLESS("allow_empty"),
    END,
};
static const KilnImportOption coco[] = {
    SAME("root"), NAMED("annFile", "annotations"), TRANSFORM, SAME("transforms"), END,
};

#define TRANSFORM_OF(name, component, extra, options)                                              \
    {                                                                                              \
        "torchvision", name, KILN_IMPORT_TRANSFORM, component, extra, NULL, options                \
    }
#define NO_TRANSFORM(name, note) NONE("torchvision", name, KILN_IMPORT_TRANSFORM, note)
#define PLUGIN_TRANSFORM(name) NO_TRANSFORM(name, "another transform is one C file, a plugin")
#define PLUGIN_DATA(name, note) NONE("torchvision", name, KILN_IMPORT_DATA, note)

const KilnImportClass kiln_import_vision[] = {
    TRANSFORM_OF("Resize", "transform/resize", NULL, resize),
    TRANSFORM_OF("CenterCrop", "transform/center_crop", NULL, size),
    TRANSFORM_OF("RandomCrop", "transform/crop", NULL, crop),
    TRANSFORM_OF("RandomResizedCrop", "transform/random_resized_crop", NULL, resized_crop),
    TRANSFORM_OF("RandomHorizontalFlip", "transform/flip", NULL, probability),
    TRANSFORM_OF("RandomVerticalFlip", "transform/flip", "vertical: true", probability),
    TRANSFORM_OF("RandomRotation", "transform/rotation", NULL, rotation),
    TRANSFORM_OF("RandomAffine", "transform/affine", NULL, affine),
    TRANSFORM_OF("RandomPerspective", "transform/perspective", NULL, perspective),
    TRANSFORM_OF("ColorJitter", "transform/color_jitter", NULL, jitter),
    TRANSFORM_OF("RandomGrayscale", "transform/grayscale", NULL, probability),
    TRANSFORM_OF("GaussianBlur", "transform/gaussian_blur", NULL, blur),
    TRANSFORM_OF("RandomErasing", "transform/erasing", NULL, erasing),
    TRANSFORM_OF("RandAugment", "transform/rand_augment", NULL, rand_augment),
    TRANSFORM_OF("TrivialAugmentWide", "transform/trivial_augment", NULL, trivial_augment),
    TRANSFORM_OF("Normalize", "transform/normalize", NULL, normalize),
    { "torchvision", "MixUp", KILN_IMPORT_TRANSFORM, "batch_transform/mixup", "alpha: 1.0",
      "goes to datamodule.batch_transforms", mixing },
    { "torchvision", "CutMix", KILN_IMPORT_TRANSFORM, "batch_transform/cutmix", NULL,
      "goes to datamodule.batch_transforms", mixing },
    { "torchvision", "Compose", KILN_IMPORT_WRAPPER, NULL, NULL, NULL, compose },
    NO_TRANSFORM("ToTensor", READY),
    NO_TRANSFORM("PILToTensor", READY),
    NO_TRANSFORM("ToImage", READY),
    NO_TRANSFORM("ToPILImage", READY),
    NO_TRANSFORM("ToDtype", READY),
    NO_TRANSFORM("ConvertImageDtype", READY),
    NO_TRANSFORM("Grayscale", "datamodule.channels=1 reads grey images"),
    NO_TRANSFORM("FiveCrop", "task.test_augmentation=five_crop"),
    NO_TRANSFORM("TenCrop", "task.test_augmentation=ten_crop"),
    NO_TRANSFORM("Pad", "transform/crop pads"),
    NO_TRANSFORM("AutoAugment", "the nearest are transform/rand_augment and trivial_augment"),
    NO_TRANSFORM("AugMix", "the nearest are transform/rand_augment and trivial_augment"),
    PLUGIN_TRANSFORM("RandomApply"),
    PLUGIN_TRANSFORM("RandomChoice"),
    PLUGIN_TRANSFORM("RandomOrder"),
    PLUGIN_TRANSFORM("Lambda"),
    PLUGIN_TRANSFORM("LinearTransformation"),
    PLUGIN_TRANSFORM("ElasticTransform"),
    PLUGIN_TRANSFORM("GaussianNoise"),
    PLUGIN_TRANSFORM("RandomAdjustSharpness"),
    PLUGIN_TRANSFORM("RandomAutocontrast"),
    PLUGIN_TRANSFORM("RandomEqualize"),
    PLUGIN_TRANSFORM("RandomInvert"),
    PLUGIN_TRANSFORM("RandomPosterize"),
    PLUGIN_TRANSFORM("RandomSolarize"),
    PLUGIN_TRANSFORM("RandomPhotometricDistort"),
    { "torchvision", "MNIST", KILN_IMPORT_DATA, "datamodule/mnist", NULL, NULL, mnist },
    { "torchvision", "ImageFolder", KILN_IMPORT_DATA, "datamodule/image_folder", NULL,
      "one folder of classes; root/train and root/val, if there are both, are root", image_folder },
    { "torchvision", "CocoDetection", KILN_IMPORT_DATA, "datamodule/coco", "size: ???",
      "annFile is below root; size is that of all images", coco },
    PLUGIN_DATA("FashionMNIST", "datamodule/mnist with datamodule.root=ROOT/FashionMNIST/raw"),
    PLUGIN_DATA("KMNIST", "datamodule/mnist with datamodule.root=ROOT/KMNIST/raw"),
    PLUGIN_DATA("CIFAR10", "datamodule/cifar10 reads it as folders of PNG images"),
    PLUGIN_DATA("CIFAR100", "datamodule/image_folder reads it as folders of PNG images"),
    PLUGIN_DATA("FakeData", "datamodule/noise has random images"),
    { .name = NULL },
};
