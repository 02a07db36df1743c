/* Views of images for test-time augmentation, and the mean of what a model says about them. */
#include "kiln/images/test_views.h"

#include <math.h>

enum { HEIGHT = 1, WIDTH = 2 }; /* axes of images */
enum { CROPS = 5, MOST_FEATURES = 64 };

const KilnChoice kiln_test_augmentations[5] = { { "none", KILN_TEST_NONE },
                                                { "flip", KILN_TEST_FLIP },
                                                { "five_crop", KILN_TEST_FIVE_CROP },
                                                { "ten_crop", KILN_TEST_TEN_CROP },
                                                { NULL, 0 } };

static bool crops(const KilnTestViews *views)
{
    return views->augmentation == KILN_TEST_FIVE_CROP || views->augmentation == KILN_TEST_TEN_CROP;
}

static KilnSize crop_of(const KilnTestViews *views, int64_t height, int64_t width)
{
    return views->crop.height > 0
               ? views->crop
               : (KilnSize) { .height = (7 * height + 4) / 8, .width = (7 * width + 4) / 8 };
}

KilnStatus kiln_test_views_setup(KilnTestViews *views, const KilnInstance *model,
                                 const KilnDataSpec *data, KilnError *err)
{
    const size_t n = data->n_features < MOST_FEATURES ? data->n_features : MOST_FEATURES;

    views->image = NULL;
    for (size_t i = 0; i < n && views->image == NULL; i++)
        if (kiln_model_takes(model, data->features[i].name)) {
            views->image = data->features[i].name;
            views->feature = i;
        }
    if (views->augmentation == KILN_TEST_NONE)
        return KILN_OK;
    if (views->image == NULL)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "test_augmentation: none of the first %d features is an image that "
                              "the model takes",
                              MOST_FEATURES);
    const KilnShape *image = &data->features[views->feature].shape;
    return !crops(views) ||
                   (views->crop.height <= image->dim[0] && views->crop.width <= image->dim[1])
               ? KILN_OK
               : kiln_error_set(err, KILN_E_SHAPE,
                                "test_crop: %lld x %lld is larger than the images of %lld x %lld",
                                (long long)views->crop.height, (long long)views->crop.width,
                                (long long)image->dim[0], (long long)image->dim[1]);
}

/* Corners and middle. */
static void five_crops(const KilnTestViews *views, KilnTensor *images, KilnTensor *ret[CROPS])
{
    const int64_t height = kiln_tensor_dim(images, HEIGHT), width = kiln_tensor_dim(images, WIDTH);
    const KilnSize crop = crop_of(views, height, width);
    const int64_t bottom = height - crop.height, right = width - crop.width;
    const int64_t places[CROPS][2] = {
        { 0, 0 },
        { 0, right },
        { bottom, 0 },
        { bottom, right },
        { (int64_t)nearbyint(0.5 * (double)bottom), (int64_t)nearbyint(0.5 * (double)right) },
    };

    for (int i = 0; i < CROPS; i++) {
        ret[i] = kiln_narrow(kiln_narrow(images, HEIGHT, places[i][0], crop.height), WIDTH,
                             places[i][1], crop.width);
        if (views->resizes)
            ret[i] = kiln_upsample_bilinear(ret[i], (KilnSize) { height, width }, false);
    }
}

int kiln_test_views(const KilnTestViews *views, KilnTensor *images,
                    KilnTensor *ret[KILN_TEST_VIEWS])
{
    ret[0] = images;
    if (views->augmentation == KILN_TEST_NONE || kiln_tensor_poisoned(images))
        return 1;
    if (views->augmentation == KILN_TEST_FLIP) {
        ret[1] = kiln_flip(images, WIDTH);
        return 2;
    }
    five_crops(views, images, ret);
    if (views->augmentation == KILN_TEST_FIVE_CROP)
        return CROPS;
    five_crops(views, kiln_flip(images, WIDTH), ret + CROPS);
    return 2 * CROPS;
}

KilnTensor *kiln_test_views_forward(const KilnTestViews *views, KilnInstance *model, KilnStep *step,
                                    KilnTensor *view)
{
    KilnModelValue values[MOST_FEATURES] = { 0 }, ret;

    values[views->feature].tensor = view;
    kiln_model_forward(model, step, values, &ret);
    return ret.tensor;
}

KilnTensor *kiln_test_views_mean(KilnTensor *const *logits, int n)
{
    static const int views[] = { 0 };
    KilnTensor *all[KILN_TEST_VIEWS];

    for (int i = 0; i < n; i++)
        all[i] = kiln_log_softmax(logits[i], -1);
    return kiln_shift(kiln_logsumexp(kiln_stack(all, n, 0), views, 1, false), -log((double)n));
}
