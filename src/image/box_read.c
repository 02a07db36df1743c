/* Reads an image with the boxes of its objects as a sample: transforms both alike. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "kiln/metric.h"
#include "kiln/images/box_sets.h"

static const double least_part = 0.1; /* of a box that must remain in view */

static const KilnTransformOps *ops_of(const KilnInstance *transform)
{
    return kiln_instance_component(transform)->ops.transform;
}

KilnStatus kiln_box_check_transforms(const KilnImageForm *form, KilnError *err)
{
    for (size_t i = 0; i < form->n_transforms; i++) {
        const KilnTransformOps *ops = ops_of(form->transforms[i]);

        if (ops->kind != KILN_TRANSFORM_VALUES && ops->window == NULL && ops->warp == NULL)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "transforms: boxes can't follow %s; use flip, affine, "
                                  "random_resized_crop, color_jitter, normalize",
                                  kiln_instance_name(form->transforms[i]));
    }
    return KILN_OK;
}

static KilnWarp multiply(const KilnWarp *a, const KilnWarp *b)
{
    KilnWarp ret = { 0 };

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                ret.matrix[i][j] += a->matrix[i][k] * b->matrix[k][j];
    return ret;
}

/* The inverse up to a factor, which does not change a warp: the transposed cofactors. */
static KilnWarp invert(const KilnWarp *warp)
{
    KilnWarp ret;

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const double *a = warp->matrix[(j + 1) % 3], *b = warp->matrix[(j + 2) % 3];

            ret.matrix[i][j] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
        }
    return ret;
}

typedef struct Sample {
    KilnImage image, spare;
    KilnWarp warp; /* where its pixels are in the file */
} Sample;

static void swap(Sample *sample)
{
    const KilnImage before = sample->image;

    sample->image = sample->spare;
    sample->spare = before;
}

static KilnStatus apply(KilnInstance *transform, Sample *sample, bool training, KilnRng *rng,
                        KilnWarp *ret, KilnError *err)
{
    const KilnTransformOps *ops = ops_of(transform);
    const int64_t size[3] = { sample->image.height, sample->image.width, sample->image.channels };
    KilnRng same = *rng;
    KilnStatus status = KILN_OK;

    *ret = (KilnWarp) { .matrix = { { 1.0 }, { 0.0, 1.0 }, { 0.0, 0.0, 1.0 } } };
    if (ops->window != NULL) {
        KilnImageWindow part = { 0 };

        status = KILN_CALLED(transform, "window",
                             ops->window(transform, size, rng, training, &part, err), err);
        if (status >= 0)
            status = kiln_image_scale_part(&sample->image, &part, &sample->spare, err);
        if (status < 0)
            return status;
        swap(sample);
        ret->matrix[0][0] = (double)part.width / (double)part.to_width;
        ret->matrix[1][1] = (double)part.height / (double)part.to_height;
        ret->matrix[0][2] = (double)part.left;
        ret->matrix[1][2] = (double)part.top;
        return KILN_OK;
    }
    if (ops->warp != NULL)
        status = KILN_CALLED(transform, "warp",
                             ops->warp(transform, size, &same, training, ret, err), err);
    return status < 0 ? status
                      : KILN_CALLED(transform, "apply",
                                    ops->apply(transform, &sample->image, &sample->spare, rng,
                                               training, err),
                                    err);
}

static KilnStatus transform(const KilnImageForm *form, Sample *sample, bool training, KilnRng *rng,
                            KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnWarp one;

    for (size_t i = 0; i < form->n_transforms && status >= 0; i++) {
        status = apply(form->transforms[i], sample, training, rng, &one, err);
        if (status >= 0)
            sample->warp = multiply(&sample->warp, &one);
    }
    return status;
}

/* The rectangle around the moved corners of a box, cut at the image; all 0: out of view. */
static void move_box(const KilnWarp *to_sample, const float *box, const KilnImage *image,
                     float ret[4])
{
    double low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY }, whole = 1.0,
           seen = 1.0;
    const double size[2] = { (double)image->width, (double)image->height };

    for (int corner = 0; corner < 4; corner++) {
        const double at[3] = { (double)box[corner & 1 ? 2 : 0], (double)box[corner & 2 ? 3 : 1],
                               1.0 };
        double to[3] = { 0 };

        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 3; k++)
                to[i] += to_sample->matrix[i][k] * at[k];
        for (int i = 0; i < 2; i++) {
            low[i] = fmin(low[i], to[i] / to[2]);
            high[i] = fmax(high[i], to[i] / to[2]);
        }
    }
    for (int i = 0; i < 2; i++) {
        ret[i] = (float)fmin(fmax(low[i], 0.0), size[i]);
        ret[i + 2] = (float)fmin(fmax(high[i], 0.0), size[i]);
        whole *= high[i] - low[i];
        seen *= (double)(ret[i + 2] - ret[i]);
    }
    if (!(seen > 0.0 && seen >= least_part * whole))
        memset(ret, 0, 4 * sizeof(*ret));
}

static void write_boxes(const Sample *sample, const float *truth, int64_t n, int64_t most,
                        float *boxes)
{
    const KilnWarp to_sample = invert(&sample->warp);

    for (int64_t i = 0; i < most * KILN_BOX_COLUMNS; i++)
        boxes[i] = -1.0f;
    for (int64_t i = 0; i < n; i++) {
        const float *from = truth + i * KILN_TRUTH_COLUMNS;
        float *row = boxes + i * KILN_BOX_COLUMNS;

        move_box(&to_sample, from, &sample->image, row + KILN_BOX_SAMPLE);
        row[KILN_BOX_CLASS] = from[4];
        row[KILN_BOX_CROWD] = from[5];
        row[KILN_BOX_AREA] = from[6];
        memcpy(row + KILN_BOX_FILE, from, 4 * sizeof(*row));
    }
}

/* Height and width of the image of `value`. */
static KilnStatus size_of(const KilnImageForm *form, const KilnRawValue *value, int64_t ret[3],
                          KilnError *err)
{
    if (value->type == KILN_RAW_PATH)
        return kiln_image_size(value->text, form->max_pixels, ret, err);
    if (value->type == KILN_RAW_BYTES)
        return kiln_image_size_bytes(value->data, value->bytes, value->name, form->max_pixels, ret,
                                     err);
    ret[0] = value->shape.dim[0];
    ret[1] = value->shape.dim[1];
    return KILN_OK;
}

static KilnStatus decode(const KilnImageForm *form, const KilnRawValue *value, Sample *sample,
                         int64_t size[3], KilnError *err)
{
    const KilnPngForm as = { .channels = form->channels,
                             .height = form->height,
                             .width = form->width,
                             .max_pixels = form->max_pixels };
    KilnStatus status = kiln_image_read_raw(value, &as, &sample->image, err);

    if (status >= 0)
        status = size_of(form, value, size, err);
    if (status >= 0)
        sample->warp = (KilnWarp) { .matrix = { { (double)size[1] / (double)form->width },
                                                { 0.0, (double)size[0] / (double)form->height },
                                                { 0.0, 0.0, 1.0 } } };
    return status < 0 && status != KILN_E_NOMEM && form->skips ? KILN_E_SKIP : status;
}

static KilnStatus check_size(const KilnImageForm *form, const KilnImage *image, KilnError *err)
{
    return image->height == form->height && image->width == form->width
               ? KILN_OK
               : kiln_error_set(err, KILN_E_SHAPE,
                                "%lld x %lld after the transforms, expected datamodule.size, "
                                "%lld x %lld",
                                (long long)image->height, (long long)image->width,
                                (long long)form->height, (long long)form->width);
}

KilnStatus kiln_box_image_read(const KilnImageForm *form, const KilnRawValue *value,
                               const float *truth, int64_t n, int64_t most, bool training,
                               KilnRng *rng, float *image, float *boxes, float *frame,
                               KilnError *err)
{
    Sample sample = { 0 };
    int64_t size[3];
    KilnStatus status = decode(form, value, &sample, size, err);

    if (status >= 0)
        status = transform(form, &sample, training, rng, err);
    if (status >= 0)
        status = check_size(form, &sample.image, err);
    if (status >= 0) {
        const KilnImage *done = &sample.image;

        memcpy(image, done->data,
               (size_t)(done->height * done->width * done->channels) * sizeof(*image));
        if (boxes != NULL)
            write_boxes(&sample, truth, n, most, boxes);
        for (int i = 0; i < 2; i++) {
            frame[KILN_FRAME_SCALE + i] = (float)sample.warp.matrix[i][i];
            frame[KILN_FRAME_MOVE + i] = (float)sample.warp.matrix[i][2];
            frame[KILN_FRAME_SIZE + i] = (float)size[1 - i];
        }
    } else if (status == KILN_E_SKIP && err != NULL)
        err->status = status;
    kiln_image_release(&sample.image);
    kiln_image_release(&sample.spare);
    return status;
}
