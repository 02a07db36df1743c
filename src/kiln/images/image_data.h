/* What datamodules of images share: the options of how images are read, a validation split held
 * out, the size of samples, statistics for normalizing, datasets, and images of a user.
 *
 * In setup say where the images of each split are with kiln_image_data_put(), then call
 * kiln_image_data_setup(). If the state begins with KilnImageState, the other functions of the
 * datamodule are ready (datamodules/image_list.c). */
#ifndef KILN_IMAGES_IMAGE_DATA_H
#define KILN_IMAGES_IMAGE_DATA_H

#include "kiln/tools/data_labels.h"
#include "kiln/data.h"
#include "kiln/field.h"
#include "kiln/image.h"

/* ---- Options --------------------------------------------------------------------------------- */

/* Members of a datamodule's options struct, and their rows in the options table. `applied_`: help
 * of transforms. */
#define KILN_IMAGE_OPTIONS                                                                         \
    int64_t channels;                                                                              \
    KilnSize *size;                                                                                \
    KilnInstance **transforms;                                                                     \
    size_t transforms_count;                                                                       \
    int64_t max_pixels
#define KILN_IMAGE_FIELDS(T, applied_)                                                             \
    KILN_FIELD_I64(                                                                                \
        T, channels, "3", 1, 3,                                                                    \
        "1: grey, 3: colour; other files are converted, transparency is laid over black"),         \
        KILN_FIELD_IMAGE_SIZE_OPT(T, size, "null", 1, 16384,                                       \
                                  "scale to [height, width], or one number for both, before the "  \
                                  "transforms; null: do not scale"),                               \
        KILN_FIELD_COMPONENT_LIST(T, transforms, KILN_KIND_TRANSFORM, "[]", applied_),             \
        KILN_FIELD_I64(T, max_pixels, "89478485", 1, 4294967296.0,                                 \
                       "largest image to read, in pixels; a small file can hold very many")
/* `skips_`: KilnImageForm.skips. */
#define KILN_IMAGE_FORM(opts, skips_)                                                              \
    ((KilnImageForm) { .channels = (opts)->channels,                                               \
                       .height = (opts)->size != NULL ? (opts)->size->height : -1,                 \
                       .width = (opts)->size != NULL ? (opts)->size->width : -1,                   \
                       .transforms = (opts)->transforms,                                           \
                       .n_transforms = (opts)->transforms_count,                                   \
                       .max_pixels = (opts)->max_pixels,                                           \
                       .skips = (skips_) })

/* For KilnComponent.check: KILN_E_RANGE for channels that are neither 1 nor 3. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_check_channels(int64_t channels,
                                                             const char **ret_option,
                                                             KilnError *err);

/* ---- Images ---------------------------------------------------------------------------------- */

/* How a sample is to be read. */
typedef struct KilnImageSample {
    int64_t number;       /* among the images */
    const int64_t *shape; /* [3]: height, width, channels */
    bool training;        /* for the transforms */
} KilnImageSample;

/* The images of a set, and what belongs to each. What it points to is borrowed. Paths and names
 * that images.get gives last as long as the set. */
typedef struct KilnImageSamples {
    KilnImageSource images;
    const int32_t *classes;       /* [images.count], for the feature "label"; or */
    const KilnDataLabels *labels; /* of this split. NULL, both: images alone */
    /* Optional: read a sample, in place of the image and its label: of images that are transformed
     * together with something else (masks). The context is images.ctx. */
    KilnStatus (*read)(void *ctx, const KilnImageSample *how, KilnRng *rng, KilnSample *sample,
                       KilnError *err);
} KilnImageSamples;

/* The images of all splits. Any number of threads may read samples. */
typedef struct KilnImageData KilnImageData;

/* `self` is the datamodule, for messages; what `form` points to is borrowed. Owned by the caller
 * (kiln_image_data_free). */
KILN_API KILN_NODISCARD KilnStatus kiln_image_data_new(const KilnInstance *self,
                                                       const KilnImageForm *form,
                                                       KilnImageData **ret, KilnError *err);
KILN_API void kiln_image_data_free(KilnImageData *data); /* NULL is fine */
/* The images of set `set` (0 is the first) of a split; before setup or reload. */
KILN_API void kiln_image_data_put(KilnImageData *data, KilnSplit split, size_t set,
                                  const KilnImageSamples *samples);
/* Forget all sets; their memory may then be freed. */
KILN_API void kiln_image_data_clear(KilnImageData *data);

/* Find the size of samples (kiln_image_reader_shape_of()), and give transforms their statistics. In
 * KILN_STAGE_PREDICT the size is that of the checkpoint. Where there are no images in the first
 * validation set, hold out `val_fraction` of the first training set: at least one, and fewer than
 * all (KILN_E_RANGE). */
KILN_API KILN_NODISCARD KilnStatus kiln_image_data_setup(KilnImageData *data,
                                                         const KilnDataContext *context,
                                                         double val_fraction, KilnError *err);
/* For KilnDataModuleOps.reload, after all sets were put again. KILN_E_SHAPE if samples have another
 * size now, KILN_E_FORMAT if other images would be held out. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_data_reload(KilnImageData *data, double val_fraction,
                                                          KilnError *err);
/* Height, width, channels of a sample, or of images before the transforms (-1: they differ); valid
 * after setup. */
KILN_API const int64_t *kiln_image_data_shape(const KilnImageData *data);
KILN_API const int64_t *kiln_image_data_decoded(const KilnImageData *data);
/* Whether the validation set is a part of the training set. */
KILN_API bool kiln_image_data_holds_out(const KilnImageData *data);
/* Keep decoded images of a set there from now on; borrowed until clear. */
KILN_API void kiln_image_data_set_cache(KilnImageData *data, KilnSplit split, size_t set,
                                        KilnCache *cache);

/* dataset; borrowed until the next call for the same set. */
KILN_API void kiln_image_data_dataset(KilnImageData *data, KilnSplit split, size_t set,
                                      KilnDataset *ret);
/* The feature "image", which is the first one; samples have their label in the second. */
KILN_API KilnFeature kiln_image_data_feature(const KilnImageData *data);
/* preprocess, memory, save_preprocessing. */
KILN_API KILN_NODISCARD KilnStatus kiln_image_data_preprocess(KilnImageData *data,
                                                              const KilnRawValue *values,
                                                              KilnSample *sample, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_image_data_save(const KilnImageData *data, const char *dir,
                                                        KilnError *err);
KILN_API int64_t kiln_image_data_memory(const KilnImageData *data);

/* ---- For KilnDataModuleOps ------------------------------------------------------------------- */

/* What the state of a datamodule begins with that has these functions in its table; they call those
 * above. */
typedef struct KilnImageState {
    KilnImageData *data;   /* freed by the datamodule */
    KilnDataLabels labels; /* for kiln_image_spec; released by the datamodule. Zeroed: none */
    KilnFeature features[2];
} KilnImageState;

/* An image and its label or labels, of the classes of KilnImageState.labels. */
KILN_API KilnStatus kiln_image_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err);
KILN_API KilnStatus kiln_image_dataset(KilnInstance *self, KilnSplit split, size_t set,
                                       KilnDataset *ret, KilnError *err);
/* kiln_raw_image. */
KILN_API size_t kiln_image_raw_fields(KilnInstance *self, const KilnRawField **ret);
KILN_API KilnStatus kiln_image_preprocess(KilnInstance *self, const KilnRawValue *values,
                                          KilnSample *sample, KilnError *err);
KILN_API int64_t kiln_image_memory(KilnInstance *self);
/* The statistics of transforms and the classes of labels. */
KILN_API KilnStatus kiln_image_save_preprocessing(KilnInstance *self, const char *dir,
                                                  KilnError *err);

/* Sizes and colours of the images of each set (kiln_image_source_check()). */
KILN_API KilnStatus kiln_image_check(KilnInstance *self, const KilnPoll *poll,
                                     void (*add)(void *ctx, const KilnDataFinding *finding),
                                     void *ctx, KilnError *err);

/* The first of KilnDataModuleOps.features. */
#define KILN_IMAGE_SPEC                                                                            \
    {                                                                                              \
        .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" \
    }

#endif
