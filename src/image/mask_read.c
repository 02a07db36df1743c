/* Reads an image and its mask as a sample: scales and transforms both alike. */
#include "kiln/images/image_masks.h"

#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "image/read.h"

/* While transforms work on it, a mask is an image of one channel that holds the class plus 1: what
 * they fill in from outside, 0, is a pixel without class. */
typedef struct Sample {
    KilnImage image, mask, spare;
} Sample;

KilnStatus kiln_mask_check_transforms(const KilnImageForm *form, KilnError *err)
{
    for (size_t i = 0; i < form->n_transforms; i++) {
        KilnInstance *transform = form->transforms[i];
        const KilnTransformOps *ops = kiln_instance_component(transform)->ops.transform;

        if (ops->kind == KILN_TRANSFORM_OTHER && ops->window == NULL)
            return kiln_error_set(
                err, KILN_E_RANGE,
                "transforms: %s would mix the classes of neighbouring pixels in "
                "masks; use those that take a part (random_resized_crop, center_crop, "
                "resize), crop, flip, and those of colours",
                kiln_instance_name(transform));
    }
    return KILN_OK;
}

/* The value in the working mask: class + 1, or 0. */
static KilnStatus convert(const KilnMaskForm *form, const char *path, uint8_t value, float *ret,
                          KilnError *err)
{
    if (value < form->n_classes) {
        *ret = (float)value + 1.0f;
        return KILN_OK;
    }
    for (size_t i = 0; i < form->n_ignored; i++)
        if (form->ignored[i] == value) {
            *ret = 0.0f;
            return KILN_OK;
        }
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: a pixel has the value %d, but the classes are 0 to %lld; name more "
                          "classes, or list it in ignore",
                          path, value, (long long)form->n_classes - 1);
}

/* Take the nearest of the file's pixels for each of the working mask's. */
static KilnStatus scale_mask(const KilnMaskForm *form, const char *path, const uint8_t *values,
                             int64_t height, int64_t width, KilnImage *mask, KilnError *err)
{
    float to_class[UINT8_MAX + 1] = { 0 };
    bool known[UINT8_MAX + 1] = { false };
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < height * width && status >= 0; i++)
        if (!known[values[i]]) {
            known[values[i]] = true;
            status = convert(form, path, values[i], &to_class[values[i]], err);
        }
    for (int64_t y = 0; y < mask->height && status >= 0; y++) {
        const uint8_t *row = values + (2 * y + 1) * height / (2 * mask->height) * width;

        for (int64_t x = 0; x < mask->width; x++)
            mask->data[y * mask->width + x] =
                to_class[row[(2 * x + 1) * width / (2 * mask->width)]];
    }
    return status;
}

/* The values of a mask that lies as its image is stored, as the image is seen. */
static KilnStatus turn_upright(const KilnImageHead *head, uint8_t **values, KilnError *err)
{
    int64_t size[3];
    uint8_t *upright = malloc((size_t)(head->height * head->width));

    if (upright == NULL)
        return kiln_error_nomem(err, (size_t)(head->height * head->width));
    kiln_image_upright_size(head, 1, size);
    for (int64_t y = 0; y < size[0]; y++)
        for (int64_t x = 0; x < size[1]; x++)
            upright[y * size[1] + x] = (*values)[kiln_image_stored_pixel(
                head->orientation, head->height, head->width, y, x)];
    free(*values);
    *values = upright;
    return KILN_OK;
}

/* Read a mask's values, as its image of height size[0] and width size[1] is seen. */
static KilnStatus read_values(const KilnMaskForm *form, const char *image, const char *path,
                              uint8_t **values, int64_t size[3], KilnError *err)
{
    const int64_t max_pixels = form->image->max_pixels;
    int64_t height = 0, width = 0;
    KilnImageHead head;
    KilnStatus status = kiln_image_file_head(image, max_pixels, &head, err);

    if (status >= 0)
        status = kiln_mask_read_png(path, max_pixels, values, &height, &width, err);
    if (status < 0)
        return status;
    kiln_image_upright_size(&head, 1, size);
    const bool turns = form->as_stored && head.orientation != 1;
    const int64_t expected[2] = { turns ? head.height : size[0], turns ? head.width : size[1] };
    if (height != expected[0] || width != expected[1])
        return kiln_error_set(
            err, KILN_E_FORMAT, "%s is %lld x %lld pixels, but its image %s is %lld x %lld%s", path,
            (long long)height, (long long)width, image, (long long)expected[0],
            (long long)expected[1],
            head.orientation == 1 ? ""
            : turns               ? " as its pixels are stored"
                    : " as its EXIF orientation turns it; for masks of the stored pixels set "
                      "datamodule.mask_orientation=stored");
    return turns ? turn_upright(&head, values, err) : KILN_OK;
}

static KilnStatus read_mask(const KilnMaskForm *form, const char *image, const char *path,
                            Sample *sample, KilnError *err)
{
    int64_t size[3];
    uint8_t *values = NULL;
    KilnStatus status = read_values(form, image, path, &values, size, err);

    if (status >= 0)
        status = kiln_image_resize_buffer(&sample->mask, sample->image.height, sample->image.width,
                                          1, err);
    if (status >= 0)
        status = scale_mask(form, path, values, size[0], size[1], &sample->mask, err);
    free(values);
    return status;
}

/* Take the same part of both, of the mask the nearest pixels. */
static KilnStatus take_part(KilnInstance *transform, Sample *sample, bool training, KilnRng *rng,
                            KilnError *err)
{
    KilnImage *const both[] = { &sample->image, &sample->mask };
    const int64_t size[3] = { sample->image.height, sample->image.width, sample->image.channels };
    KilnImageWindow window;
    KilnStatus status = kiln_image_window_of(transform, size, rng, training, &window, err);

    for (size_t i = 0; i < KILN_COUNT(both) && status >= 0; i++) {
        const KilnImage whole = *both[i];

        status = kiln_image_scale_part(&whole, &window, &sample->spare, err);
        if (status < 0)
            return status;
        *both[i] = sample->spare;
        sample->spare = whole;
        window.filter = KILN_FILTER_NEAREST;
    }
    return status;
}

/* Both with the same random numbers. */
static KilnStatus transform(const KilnImageForm *form, Sample *sample, bool training, KilnRng *rng,
                            KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < form->n_transforms && status >= 0; i++) {
        KilnInstance *one = form->transforms[i];
        const KilnTransformOps *ops = kiln_instance_component(one)->ops.transform;
        KilnRng same = *rng;

        if (ops->window != NULL) {
            status = take_part(one, sample, training, rng, err);
            continue;
        }
        status = KILN_CALLED(
            one, "apply", ops->apply(one, &sample->image, &sample->spare, rng, training, err), err);
        if (status >= 0 && ops->kind == KILN_TRANSFORM_MOVES)
            status = KILN_CALLED(
                one, "apply", ops->apply(one, &sample->mask, &sample->spare, &same, training, err),
                err);
    }
    return status;
}

static KilnStatus write(const Sample *sample, const int64_t shape[3], float *image, int32_t *mask,
                        KilnError *err)
{
    const KilnImage *from = &sample->image;
    const int64_t pixels = from->height * from->width;

    if (from->height != shape[0] || from->width != shape[1] || from->channels != shape[2])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%lld x %lld x %lld after the transforms, expected %lld x %lld x "
                              "%lld; datamodule.size brings all images to one size",
                              (long long)from->height, (long long)from->width,
                              (long long)from->channels, (long long)shape[0], (long long)shape[1],
                              (long long)shape[2]);
    memcpy(image, from->data, (size_t)(pixels * from->channels) * sizeof(*image));
    for (int64_t i = 0; i < pixels; i++)
        mask[i] = sample->mask.data[i] > 0.0f ? (int32_t)sample->mask.data[i] - 1
                                              : KILN_MASK_IGNORED;
    return KILN_OK;
}

KilnStatus kiln_mask_pair_read(const KilnMaskForm *form, const KilnMaskPairs *pairs, int64_t i,
                               const int64_t shape[3], bool training, KilnRng *rng, float *image,
                               int32_t *mask, KilnError *err)
{
    const char *image_path = pairs->images.paths[i], *mask_path = pairs->masks[i];
    const KilnImageForm *as = form->image;
    const KilnPngForm png = { .channels = as->channels,
                              .height = as->height,
                              .width = as->width,
                              .max_pixels = as->max_pixels };
    Sample sample = { 0 };
    KilnStatus status = kiln_image_read(image_path, &png, &sample.image, err);

    if (status >= 0)
        status = read_mask(form, image_path, mask_path, &sample, err);
    if (status < 0 && status != KILN_E_NOMEM && as->skips) {
        status = KILN_E_SKIP;
        if (err != NULL)
            err->status = status;
    } else if (status >= 0) {
        status = transform(as, &sample, training, rng, err);
        if (status >= 0)
            status = write(&sample, shape, image, mask, err);
        if (status < 0)
            kiln_error_prefix(err, "%s: ", image_path);
    }
    kiln_image_release(&sample.image);
    kiln_image_release(&sample.mask);
    kiln_image_release(&sample.spare);
    return status;
}
