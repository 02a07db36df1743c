/* Test-time augmentation: a task for images predicts several views of each image, and the mean of
 * their probabilities counts. The views are those of torchvision's transforms: the image and its
 * mirror image, FiveCrop, TenCrop. */
#ifndef KILN_IMAGES_TEST_VIEWS_H
#define KILN_IMAGES_TEST_VIEWS_H

#include "kiln/field.h"
#include "kiln/model.h"
#include "kiln/ops.h"

/* The options of such a task (tasks/vision/vision.c), and their rows in the options table. */
#define KILN_TEST_VIEWS_OPTIONS                                                                    \
    int64_t test_augmentation;                                                                     \
    KilnSize *test_crop;                                                                           \
    bool test_resize
#define KILN_TEST_VIEWS_FIELDS(T)                                                                  \
    KILN_FIELD_ENUM(T, test_augmentation, "none", kiln_test_augmentations,                         \
                    "views of an image whose mean probabilities test and predict give: none: the " \
                    "image itself; flip: it and its mirror image; five_crop: its corners and its " \
                    "middle; ten_crop: these and their mirror images"),                            \
        KILN_FIELD_IMAGE_SIZE_OPT(T, test_crop, "null", 1, 16384,                                  \
                                  "of crops: [height, width], or one number for both; null: 7/8 "  \
                                  "of the image"),                                                 \
        KILN_FIELD_BOOL(T, test_resize, "true",                                                    \
                        "scale crops to the size of the image; false: give them to the model as "  \
                        "they are, which must take images of any size")

typedef enum KilnTestAugmentation {
    KILN_TEST_NONE,
    KILN_TEST_FLIP,
    KILN_TEST_FIVE_CROP,
    KILN_TEST_TEN_CROP
} KilnTestAugmentation;
/* none, flip, five_crop, ten_crop. */
KILN_API_TABLE const KilnChoice kiln_test_augmentations[5];
enum { KILN_TEST_VIEWS = 10 }; /* of an image, at most */

/* The options, and what setup finds out. */
typedef struct KilnTestViews {
    KilnTestAugmentation augmentation;
    KilnSize crop; /* 0 x 0: 7/8 of the image */
    bool resizes;
    const char *image; /* the feature that the model gets; of the data's spec */
    size_t feature;    /* its number */
} KilnTestViews;
#define KILN_TEST_VIEWS_OF(opts)                                                                   \
    ((KilnTestViews) { .augmentation = (KilnTestAugmentation)(opts)->test_augmentation,            \
                       .crop = (opts)->test_crop != NULL ? *(opts)->test_crop : (KilnSize) { 0 },  \
                       .resizes = (opts)->test_resize })

/* After kiln_model_setup with all features of `data`: find the image that the model gets.
 * KILN_E_SHAPE if there is none, or if the crop is larger. */
KILN_API KILN_NODISCARD KilnStatus kiln_test_views_setup(KilnTestViews *views,
                                                         const KilnInstance *model,
                                                         const KilnDataSpec *data, KilnError *err);
/* Record the views of f32 images [N, height, width, channels]: the image; the image, its mirror
 * image; top left, top right, bottom left, bottom right, middle; these of the image, then of its
 * mirror image. Returns their number. */
KILN_API int kiln_test_views(const KilnTestViews *views, KilnTensor *images,
                             KilnTensor *ret[KILN_TEST_VIEWS]);
/* Record the model's forward with one view in place of the batch's images. */
KILN_API KilnTensor *kiln_test_views_forward(const KilnTestViews *views, KilnInstance *model,
                                             KilnStep *step, KilnTensor *view);
/* The logarithm of the mean over n views of the probabilities softmax(logits[i]), over the last
 * axis: logits again, whose softmax is that mean. */
KILN_API KilnTensor *kiln_test_views_mean(KilnTensor *const *logits, int n);

#endif
