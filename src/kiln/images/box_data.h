/* What datamodules of images with boxes share: options, samples, images of a user.
 *
 * The state of such a datamodule begins with KilnBoxState. Its setup reads the sets of all splits,
 * unless the stage is KILN_STAGE_PREDICT, and calls kiln_box_setup(); the other functions of the
 * datamodule are ready (datamodules/coco.c). */
#ifndef KILN_IMAGES_BOX_DATA_H
#define KILN_IMAGES_BOX_DATA_H

#include "kiln/field.h"
#include "kiln/images/box_sets.h"

/* Members of a datamodule's options struct, and their rows in the options table. */
#define KILN_BOX_OPTIONS                                                                           \
    int64_t channels;                                                                              \
    KilnSize size;                                                                                 \
    bool letterbox;                                                                                \
    double val_fraction;                                                                           \
    KilnInstance **transforms;                                                                     \
    size_t transforms_count;                                                                       \
    int64_t on_error, max_pixels
#define KILN_BOX_FIELDS(T)                                                                         \
    KILN_FIELD_I64(T, channels, "3", 1, 3,                                                         \
                   "of images; 1: grey, 3: colour; other files are converted"),                    \
        KILN_FIELD_IMAGE_SIZE(T, size, NULL, 1, 16384,                                             \
                              "scale to [height, width], or one number for both, before the "      \
                              "transforms"),                                                       \
        KILN_FIELD_BOOL(T, letterbox, "false",                                                     \
                        "scale without changing proportions, and pad to the size with grey; "      \
                        "false: stretch"),                                                         \
        KILN_FIELD_F64(T, val_fraction, "0.1", 0.0, 0.9,                                           \
                       "part of the training images that validates if there are none for val"),    \
        KILN_FIELD_COMPONENT_LIST(T, transforms, KILN_KIND_TRANSFORM, "[]",                        \
                                  "applied in this order to each image; boxes follow all but "     \
                                  "rand_augment and trivial_augment"),                             \
        KILN_FIELD_ENUM(T, on_error, "stop", kiln_on_error_choices,                                \
                        "what a wrong image or box does: stop with its place, or skip it and "     \
                        "count it"),                                                               \
        KILN_FIELD_I64(T, max_pixels, "89478485", 1, 4294967296.0,                                 \
                       "largest image to read, in pixels; a small file can hold very many")
#define KILN_BOX_FORM(opts)                                                                        \
    ((KilnBoxForm) { .image = { .channels = (opts)->channels,                                      \
                                .height = (opts)->size.height,                                     \
                                .width = (opts)->size.width,                                       \
                                .transforms = (opts)->transforms,                                  \
                                .n_transforms = (opts)->transforms_count,                          \
                                .max_pixels = (opts)->max_pixels,                                  \
                                .skips = (opts)->on_error == KILN_ON_ERROR_SKIP },                 \
                     .letterbox = (opts)->letterbox })

enum { KILN_BOX_FEATURES = 3 }; /* image, boxes, frame: kiln/images/detection.h */

typedef struct KilnBoxState KilnBoxState;
typedef struct KilnBoxDataset {
    const KilnBoxState *state;
    const KilnBoxSet *set;
    bool training;
} KilnBoxDataset;

struct KilnBoxState {
    KilnBoxForm form;
    KilnBoxSet sets[KILN_SPLIT_COUNT]; /* read by setup */
    /* The rest is set by kiln_box_setup(). */
    uint64_t seed;
    int64_t most, n_classes;
    const char **class_names;
    KilnFeature features[KILN_BOX_FEATURES];
    KilnBoxDataset datasets[KILN_SPLIT_COUNT];
    bool augments;
};

/* Keep the form; KILN_E_RANGE for transforms that boxes can't follow. */
KILN_API KILN_NODISCARD KilnStatus kiln_box_init(KilnInstance *self, const KilnBoxForm *form,
                                                 KilnError *err);
/* After the sets are read: hold a part of the training images out if there are none for validation,
 * and take the classes of the training set, or of the checkpoint. */
KILN_API KILN_NODISCARD KilnStatus kiln_box_setup(KilnInstance *self,
                                                  const KilnDataContext *context,
                                                  double val_fraction, KilnError *err);
/* For KilnComponent and KilnDataModuleOps. */
KILN_API void kiln_box_release(KilnInstance *self);
KILN_API KilnStatus kiln_box_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err);
KILN_API KilnStatus kiln_box_dataset(KilnInstance *self, KilnSplit split, size_t set,
                                     KilnDataset *ret, KilnError *err);
/* kiln_raw_image. */
KILN_API size_t kiln_box_raw_fields(KilnInstance *self, const KilnRawField **ret);
KILN_API KilnStatus kiln_box_preprocess(KilnInstance *self, const KilnRawValue *values,
                                        KilnSample *sample, KilnError *err);
KILN_API void kiln_box_left_out(KilnInstance *self,
                                void (*add)(void *ctx, const KilnOmission *omission), void *ctx);
/* Numbers, copies and classes of the boxes, those that are cut at their images, and sizes of the
 * images. */
KILN_API KilnStatus kiln_box_check(KilnInstance *self, const KilnPoll *poll,
                                   void (*add)(void *ctx, const KilnDataFinding *finding),
                                   void *ctx, KilnError *err);
/* KilnDataModuleOps.features. */
KILN_API_TABLE const KilnTensorSpec kiln_box_specs[KILN_BOX_FEATURES];

#endif
