/* Reads an image with the boxes of its objects as a sample: transforms both alike. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "image/read.h"
#include "kiln/metric.h"
#include "kiln/images/box_sets.h"

static const double least_part = 0.1;      /* of a box that must remain in view */
static const float grey = 114.0f / 255.0f; /* of the padding, as Ultralytics' */

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
                                  "crop, perspective, random_resized_crop, color_jitter",
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
    KilnWarp warp;   /* where its pixels are in the file, */
    int64_t file[2]; /* which has this height and width */
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

/* `to_sample` is the inverse of a KilnWarp: from the source to the result. */
static void move_box(const KilnWarp *to_sample, const float box[4], int64_t height, int64_t width,
                     float ret[4])
{
    double low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY }, whole = 1.0,
           seen = 1.0;
    const double size[2] = { (double)width, (double)height };

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

void kiln_box_move(const KilnWarp *warp, const float box[4], int64_t height, int64_t width,
                   float ret[4])
{
    const KilnWarp to_sample = invert(warp);

    move_box(&to_sample, box, height, width, ret);
}

static void write_boxes(const Sample *sample, const KilnBoxTruth *truth, int64_t most, float *boxes)
{
    const KilnWarp to_sample = invert(&sample->warp);
    const float width = truth->relative ? (float)sample->file[1] : 1.0f;
    const float height = truth->relative ? (float)sample->file[0] : 1.0f;

    for (int64_t i = 0; i < most * KILN_BOX_COLUMNS; i++)
        boxes[i] = -1.0f;
    for (int64_t i = 0; i < truth->n; i++) {
        const float *from = truth->rows + i * KILN_TRUTH_COLUMNS;
        float *row = boxes + i * KILN_BOX_COLUMNS, *file = row + KILN_BOX_FILE;

        for (int side = 0; side < 4; side++)
            file[side] = from[side] * (side % 2 == 0 ? width : height);
        move_box(&to_sample, file, sample->image.height, sample->image.width,
                 row + KILN_BOX_SAMPLE);
        row[KILN_BOX_CLASS] = from[4];
        row[KILN_BOX_CROWD] = from[5];
        row[KILN_BOX_AREA] = from[6] * width * height;
    }
}

/* ---- Reading and scaling --------------------------------------------------------------------- */

/* What an image is scaled to, before it is padded. */
typedef struct Fit {
    const KilnBoxForm *form;
    int64_t file[2], to[2]; /* height, width */
} Fit;

static void find_fit(Fit *fit, int64_t height, int64_t width)
{
    const int64_t *file = fit->file;
    const int64_t to[2] = { fit->form->image.height, fit->form->image.width };

    fit->file[0] = height;
    fit->file[1] = width;
    const double by = fmin((double)to[0] / (double)file[0], (double)to[1] / (double)file[1]);
    for (int axis = 0; axis < 2; axis++)
        fit->to[axis] = fit->form->letterbox ? (int64_t)fmax(round(by * (double)file[axis]), 1.0)
                                             : to[axis];
}

static KilnStatus choose_size(void *ctx, const int64_t size[3], KilnImageWindow *ret,
                              KilnError *err)
{
    Fit *fit = ctx;

    (void)err;
    find_fit(fit, size[0], size[1]);
    *ret = (KilnImageWindow) {
        .height = size[0], .width = size[1], .to_height = fit->to[0], .to_width = fit->to[1]
    };
    return KILN_OK;
}

static KilnStatus decode(const KilnRawValue *value, Fit *fit, KilnImage *ret, KilnError *err)
{
    const KilnImageSelect select = { .window = choose_size, .ctx = fit };
    KilnPngForm as = { .channels = fit->form->image.channels,
                       .max_pixels = fit->form->image.max_pixels };

    if (value->type != KILN_RAW_ARRAY)
        return kiln_image_read_part(value, &as, &select, ret, err);
    if (kiln_shape_count(&value->shape) > 0 && value->shape.rank >= 2) {
        find_fit(fit, value->shape.dim[0], value->shape.dim[1]);
        as.height = fit->to[0];
        as.width = fit->to[1];
    }
    return kiln_image_read_raw(value, &as, ret, err);
}

/* Put the image into the middle of a grey one. */
static KilnStatus pad(Sample *sample, const KilnImageForm *form, int64_t top, int64_t left,
                      KilnError *err)
{
    const KilnImage *from = &sample->image;
    const int64_t n = form->height * form->width * from->channels;
    KilnImage *to = &sample->spare;
    KilnStatus status = kiln_image_resize_buffer(to, form->height, form->width, from->channels,
                                                 err);

    if (status < 0)
        return status;
    for (int64_t i = 0; i < n; i++)
        to->data[i] = grey;
    for (int64_t y = 0; y < from->height; y++)
        memcpy(to->data + ((top + y) * to->width + left) * from->channels,
               from->data + y * from->width * from->channels,
               (size_t)(from->width * from->channels) * sizeof(*to->data));
    swap(sample);
    return KILN_OK;
}

static KilnStatus load(const KilnBoxForm *form, const KilnRawValue *value, Sample *sample,
                       KilnError *err)
{
    Fit fit = { .form = form };
    KilnStatus status = decode(value, &fit, &sample->image, err);

    if (status >= 0) {
        const int64_t top = (form->image.height - fit.to[0]) / 2;
        const int64_t left = (form->image.width - fit.to[1]) / 2;
        const double down = (double)fit.file[0] / (double)fit.to[0];
        const double across = (double)fit.file[1] / (double)fit.to[1];

        memcpy(sample->file, fit.file, sizeof(fit.file));
        sample->warp = (KilnWarp) { .matrix = { { across, 0.0, -across * (double)left },
                                                { 0.0, down, -down * (double)top },
                                                { 0.0, 0.0, 1.0 } } };
        if (fit.to[0] != form->image.height || fit.to[1] != form->image.width)
            status = pad(sample, &form->image, top, left, err);
    }
    return status < 0 && status != KILN_E_NOMEM && form->image.skips ? KILN_E_SKIP : status;
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

KilnStatus kiln_box_image_read(const KilnBoxForm *form, const KilnRawValue *value,
                               const KilnBoxTruth *truth, bool training, KilnRng *rng,
                               const KilnBoxSample *to, KilnError *err)
{
    Sample sample = { 0 };
    KilnStatus status = load(form, value, &sample, err);

    if (status >= 0)
        status = transform(&form->image, &sample, training, rng, err);
    if (status >= 0)
        status = check_size(&form->image, &sample.image, err);
    if (status >= 0) {
        const KilnImage *done = &sample.image;

        memcpy(to->image, done->data,
               (size_t)(done->height * done->width * done->channels) * sizeof(*to->image));
        if (to->boxes != NULL)
            write_boxes(&sample, truth, to->most, to->boxes);
        for (int i = 0; i < 2; i++) {
            to->frame[KILN_FRAME_SCALE + i] = (float)sample.warp.matrix[i][i];
            to->frame[KILN_FRAME_MOVE + i] = (float)sample.warp.matrix[i][2];
            to->frame[KILN_FRAME_SIZE + i] = (float)sample.file[1 - i];
        }
    } else if (status == KILN_E_SKIP && err != NULL)
        err->status = status;
    kiln_image_release(&sample.image);
    kiln_image_release(&sample.spare);
    return status;
}
