/* Images and their masks in two folders, for segmentation: the pixels of a mask are classes. Files
 * are decoded when a sample is read. */
#include "kiln.h"
#include "kiln/images/image_data.h"
#include "kiln/images/image_masks.h"
#include "kiln/tools/text_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_IMAGE_OPTIONS;
    char *root, *images, *masks;
    char **classes;
    size_t classes_count;
    int64_t *ignore;
    size_t ignore_count;
    double val_fraction;
    int64_t on_error, mask_orientation;
} Opts;

enum { SEEN, STORED };
static const KilnChoice orientations[] = { { "seen", SEEN }, { "stored", STORED }, { NULL, 0 } };

static const char split_word[] = "SPLIT";

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "8"),
    KILN_FIELD_PATH(Opts, root, NULL, "folder with images and masks"),
    KILN_FIELD_STR(Opts, images, "images/SPLIT",
                   "folder of the images below root; SPLIT stands for train, val and test. Without "
                   "it all are training images"),
    KILN_FIELD_STR(Opts, masks, "masks/SPLIT",
                   "folder of the masks below root: PNG files of the images' names, with a palette "
                   "or grey values, that have the number of the class in each pixel"),
    KILN_FIELD_STR_LIST(Opts, classes, NULL, "names of the classes 0, 1, ..."),
    KILN_FIELD_I64_LIST(Opts, ignore, "[255]", 0, 255,
                        "values of pixels without class, which losses and metrics leave out"),
    KILN_IMAGE_FIELDS(Opts, "applied in this order to each image, and those that move pixels "
                            "(crop, flip, random_resized_crop) to its mask"),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0, 0.9,
                   "fraction of the training images held out for validation if there is no folder "
                   "for it"),
    KILN_FIELD_ENUM(Opts, on_error, "stop", kiln_on_error_choices,
                    "at an image or mask that can't be read: stop the run, or leave both out and "
                    "count them"),
    KILN_FIELD_ENUM(Opts, mask_orientation, "seen", orientations,
                    "how masks lie whose images have an EXIF orientation: as the image is seen, or "
                    "as its pixels are stored (then the mask is turned with it)"),
    KILN_FIELD_END,
};

typedef struct State State;

/* The images and masks of a split. */
typedef struct Pairs {
    const State *state;
    KilnMaskPairs files;
} Pairs;

struct State {
    KilnImageState image;
    const Opts *opts;
    KilnImageForm form;
    KilnMaskForm mask_form;
    Pairs pairs[KILN_SPLIT_COUNT];
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    if (kiln_image_check_channels(opts->channels, ret_option, err) < 0)
        return KILN_E_RANGE;
    *ret_option = "classes";
    if (opts->classes_count < 2 || opts->classes_count > UINT8_MAX + 1)
        return kiln_error_set(err, KILN_E_RANGE, "expected the names of 2 to 256 classes, got %zu",
                              opts->classes_count);
    *ret_option = "ignore";
    for (size_t i = 0; i < opts->ignore_count; i++)
        if (opts->ignore[i] < (int64_t)opts->classes_count)
            return kiln_error_set(err, KILN_E_RANGE, "%lld is class \"%s\"",
                                  (long long)opts->ignore[i], opts->classes[opts->ignore[i]]);
    *ret_option = "masks";
    if ((strstr(opts->images, split_word) == NULL) != (strstr(opts->masks, split_word) == NULL))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "expected SPLIT in both paths or in none, got \"%s\" for images "
                              "and \"%s\" for masks",
                              opts->images, opts->masks);
    return KILN_OK;
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = kiln_opts(self);

    state->opts = opts;
    state->form = KILN_IMAGE_FORM(opts, opts->on_error == KILN_ON_ERROR_SKIP);
    state->mask_form = (KilnMaskForm) {
        .image = &state->form,
        .n_classes = (int64_t)opts->classes_count,
        .ignored = opts->ignore,
        .n_ignored = opts->ignore_count,
        .as_stored = opts->mask_orientation == STORED,
    };
    if (kiln_mask_check_transforms(&state->form, err) < 0)
        return err->status;
    return kiln_image_data_new(self, &state->form, &state->image.data, err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        kiln_mask_pairs_release(&state->pairs[split].files);
    kiln_image_data_free(state->image.data);
}

/* ---- Finding files --------------------------------------------------------------------------- */

enum { PATH_ROOM = 4096 };

/* root/pattern with the split's name in place of SPLIT, if it is there. */
static void folder_of(const State *state, const char *pattern, KilnSplit split, char ret[PATH_ROOM])
{
    const char *at = strstr(pattern, split_word);

    if (at == NULL) {
        snprintf(ret, PATH_ROOM, "%s/%s", state->opts->root, pattern);
        return;
    }
    snprintf(ret, PATH_ROOM, "%s/%.*s%s%s", state->opts->root, (int)(at - pattern), pattern,
             kiln_split_name(split), at + sizeof(split_word) - 1);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The pairs of a split; none if there is no folder of images for it. */
static KilnStatus scan(State *state, KilnSplit split, bool needed, const KilnPoll *poll,
                       KilnError *err)
{
    char images[PATH_ROOM], masks[PATH_ROOM];

    if (split != KILN_TRAIN && strstr(state->opts->images, split_word) == NULL)
        return needed ? kiln_error_set(err, KILN_E_IO,
                                       "images: %s: has no SPLIT, so there are no %s images",
                                       state->opts->images, kiln_split_name(split))
                      : KILN_OK;
    folder_of(state, state->opts->images, split, images);
    folder_of(state, state->opts->masks, split, masks);
    if (!is_folder(images))
        return needed ? kiln_error_set(err, KILN_E_IO,
                                       "images: %s: no such folder; expected the %s images in it",
                                       images, kiln_split_name(split))
                      : KILN_OK;
    if (!is_folder(masks))
        return kiln_error_set(err, KILN_E_IO,
                              "masks: %s: no such folder; expected the masks of the images in %s",
                              masks, images);
    return kiln_mask_pairs_scan(images, masks, poll, &state->pairs[split].files, err);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static void get_image(void *ctx, int64_t i, KilnRawValue *ret)
{
    const Pairs *pairs = ctx;

    *ret = (KilnRawValue) { .type = KILN_RAW_PATH, .text = pairs->files.images.paths[i] };
}

static KilnStatus read_pair(void *ctx, const KilnImageSample *how, KilnRng *rng, KilnSample *sample,
                            KilnError *err)
{
    const Pairs *pairs = ctx;

    return kiln_mask_pair_read(&pairs->state->mask_form, &pairs->files, how->number, how->shape,
                               how->training, rng, sample->data[0], sample->data[1], err);
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    const bool has_files = context->stage != KILN_STAGE_PREDICT;
    KilnStatus status = KILN_OK;

    for (int i = 0; i < KILN_SPLIT_COUNT && has_files && status >= 0; i++) {
        const bool tested = i == KILN_TEST && context->stage == KILN_STAGE_TEST;
        Pairs *pairs = &state->pairs[i];

        pairs->state = state;
        status = scan(state, (KilnSplit)i, i == KILN_TRAIN || tested, context->poll, err);
        kiln_image_data_put(
            state->image.data, (KilnSplit)i, 0,
            &(KilnImageSamples) { .images = { pairs->files.images.count, pairs, get_image },
                                  .read = read_pair });
    }
    return status >= 0
               ? kiln_image_data_setup(state->image.data, context, state->opts->val_fraction, err)
               : status;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);
    const int64_t *shape = kiln_image_data_shape(state->image.data);

    (void)err;
    state->image.features[0] = kiln_image_data_feature(state->image.data);
    state->image.features[1] = (KilnFeature) { .name = "mask",
                                               .content = KILN_LABEL,
                                               .dtype = KILN_I32,
                                               .shape = KILN_SHAPE(shape[0], shape[1]) };
    *ret = (KilnDataSpec) {
        .features = state->image.features,
        .n_features = KILN_COUNT(state->image.features),
        .n_classes = (int64_t)state->opts->classes_count,
        .class_names = (const char *const *)state->opts->classes,
    };
    return KILN_OK;
}

/* An image and its mask, as floats and as bytes. */
static int64_t memory(KilnInstance *self)
{
    return 2 * kiln_image_data_memory(((const State *)kiln_state(self))->image.data);
}

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    const State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        const KilnMaskPairs *pairs = &state->pairs[split].files;

        kiln_image_set_left_out(&pairs->images, add, ctx);
        if (pairs->no_images != NULL)
            add(ctx, pairs->no_images);
    }
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnTensorSpec features[] = {
    KILN_IMAGE_SPEC,
    { .name = "mask", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "height width" },
};

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = features,
    .n_features = KILN_COUNT(features),
    .setup = setup,
    .spec = spec,
    .dataset = kiln_image_dataset,
    .raw_fields = kiln_image_raw_fields,
    .preprocess = kiln_image_preprocess,
    .save_preprocessing = kiln_image_save_preprocessing,
    .loading = loading,
    .memory = memory,
    .left_out = left_out,
    .check = kiln_image_check,
};

const KilnComponent kiln_datamodule_mask_folder = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "mask_folder",
    .summary = "Images and masks in two folders, for segmentation",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_mask_folder, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
