/* Turning, moving and distorting images: one resampler for every map of the plane that is a matrix.
 */
#include "kiln/images/image_ops.h"

#include <math.h>
#include <string.h>

const KilnChoice kiln_warp_filters[3] = { { "nearest", KILN_FILTER_NEAREST },
                                          { "bilinear", KILN_FILTER_BILINEAR },
                                          { NULL, 0 } };

void kiln_image_swap(KilnImage *a, KilnImage *b)
{
    const KilnImage before = *a;

    *a = *b;
    *b = before;
}

void kiln_image_flip(KilnImage *image, bool vertical)
{
    const int64_t c = image->channels, length = image->width * c;

    for (int64_t y = 0; y < (vertical ? image->height / 2 : image->height); y++) {
        float *left = image->data + y * length;
        float *right = vertical ? image->data + (image->height - 1 - y) * length
                                : left + length - c;

        for (int64_t x = 0; x < (vertical ? image->width : image->width / 2); x++) {
            for (int64_t i = 0; i < c; i++) {
                const float value = left[i];

                left[i] = right[i];
                right[i] = value;
            }
            left += c;
            right += vertical ? c : -c;
        }
    }
}

/* ---- Matrices ---------------------------------------------------------------------------------
 */

static double radians(double degrees)
{
    return degrees * 3.14159265358979323846 / 180.0;
}

/* The inverse of translation · center · rotation · scale · shear · center⁻¹, around the image's
 * center (torchvision's _get_inverse_affine_matrix). */
KilnWarp kiln_affine_warp(const KilnAffine *affine, int64_t height, int64_t width)
{
    const double rot = radians(affine->angle),
                 middle[2] = { 0.5 * (double)width, 0.5 * (double)height };
    const double sx = radians(affine->shear[0]), sy = radians(affine->shear[1]);
    const double a = cos(rot - sy) / cos(sy), c = sin(rot - sy) / cos(sy);
    const double b = -a * tan(sx) - sin(rot), d = -c * tan(sx) + cos(rot);
    const double inverse[2][2] = { { d / affine->scale, -b / affine->scale },
                                   { -c / affine->scale, a / affine->scale } };
    KilnWarp warp = { .matrix[2][2] = 1.0 };

    for (int i = 0; i < 2; i++) {
        double moved = affine->center[i] + middle[i];

        for (int k = 0; k < 2; k++) {
            warp.matrix[i][k] = inverse[i][k];
            moved -= inverse[i][k] * (affine->center[k] + affine->translate[k] + middle[k]);
        }
        warp.matrix[i][2] = moved;
    }
    return warp;
}

/* Solve 8 equations by elimination with pivots. */
static bool solve(double rows[8][9], double ret[8])
{
    for (int i = 0; i < 8; i++) {
        int best = i;

        for (int k = i + 1; k < 8; k++)
            if (fabs(rows[k][i]) > fabs(rows[best][i]))
                best = k;
        if (!(fabs(rows[best][i]) > 1e-9))
            return false;
        for (int k = 0; k < 9; k++) {
            const double value = rows[i][k];

            rows[i][k] = rows[best][k];
            rows[best][k] = value;
        }
        for (int r = i + 1; r < 8; r++) {
            const double factor = rows[r][i] / rows[i][i];

            for (int k = i; k < 9; k++)
                rows[r][k] -= factor * rows[i][k];
        }
    }
    for (int i = 7; i >= 0; i--) {
        double sum = rows[i][8];

        for (int k = i + 1; k < 8; k++)
            sum -= rows[i][k] * ret[k];
        ret[i] = sum / rows[i][i];
    }
    return true;
}

bool kiln_perspective_warp(const double from[4][2], const double to[4][2], KilnWarp *ret)
{
    double rows[8][9] = { 0 }, found[8];

    for (int i = 0; i < 4; i++)
        for (int axis = 0; axis < 2; axis++) {
            double *row = rows[2 * i + axis];
            const double value = from[i][axis], x = to[i][0], y = to[i][1];

            row[3 * axis] = x;
            row[3 * axis + 1] = y;
            row[3 * axis + 2] = 1.0;
            row[6] = -value * x;
            row[7] = -value * y;
            row[8] = value;
        }
    if (!solve(rows, found))
        return false;
    for (int i = 0; i < 8; i++)
        ret->matrix[i / 3][i % 3] = found[i];
    ret->matrix[2][2] = 1.0;
    return true;
}

/* ---- Resampling -------------------------------------------------------------------------------
 */

static bool is_inside(const KilnImage *image, int64_t y, int64_t x)
{
    return y >= 0 && y < image->height && x >= 0 && x < image->width;
}

/* The four pixels around (y, x), those outside black, and blended with `fill` by the weight of
 * those inside, as torchvision blends. */
static void take_bilinear(const KilnImage *image, double y, double x, float fill, float *to)
{
    const int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
    const float down = (float)(y - (double)top), right = (float)(x - (double)left);
    const float weights[4] = { (1.0f - down) * (1.0f - right), (1.0f - down) * right,
                               down * (1.0f - right), down * right };
    const int64_t c = image->channels;
    float mask = 0.0f;

    for (int64_t i = 0; i < c; i++)
        to[i] = 0.0f;
    for (int k = 0; k < 4; k++) {
        const int64_t row = top + k / 2, column = left + k % 2;

        if (!is_inside(image, row, column))
            continue;
        const float *pixel = image->data + (row * image->width + column) * c;
        mask += weights[k];
        for (int64_t i = 0; i < c; i++)
            to[i] += weights[k] * pixel[i];
    }
    if (mask < 0.999999f)
        for (int64_t i = 0; i < c; i++)
            to[i] = (to[i] - fill) * mask + fill;
}

static void take_nearest(const KilnImage *image, double y, double x, float fill, float *to)
{
    const int64_t row = (int64_t)nearbyint(y), column = (int64_t)nearbyint(x);
    const bool inside = is_inside(image, row, column);
    const float *pixel = image->data +
                         (inside ? (row * image->width + column) * image->channels : 0);

    for (int64_t i = 0; i < image->channels; i++)
        to[i] = inside ? pixel[i] : fill;
}

KilnStatus kiln_image_warp(const KilnImage *from, const KilnWarp *warp, KilnImageFilter filter,
                           float fill, KilnImage *to, KilnError *err)
{
    const double(*m)[3] = warp->matrix;
    KilnStatus status = kiln_image_resize_buffer(to, from->height, from->width, from->channels,
                                                 err);

    if (status < 0)
        return status;
    float *pixel = to->data;
    for (int64_t j = 0; j < to->height; j++)
        for (int64_t i = 0; i < to->width; i++, pixel += to->channels) {
            const double x = (double)i + 0.5, y = (double)j + 0.5;
            const double c = m[2][0] * x + m[2][1] * y + m[2][2];
            const double u = (m[0][0] * x + m[0][1] * y + m[0][2]) / c - 0.5;
            const double v = (m[1][0] * x + m[1][1] * y + m[1][2]) / c - 0.5;

            if (!(u > -1.0 && u < (double)from->width && v > -1.0 && v < (double)from->height))
                for (int64_t k = 0; k < to->channels; k++)
                    pixel[k] = fill;
            else if (filter == KILN_FILTER_NEAREST)
                take_nearest(from, v, u, fill, pixel);
            else
                take_bilinear(from, v, u, fill, pixel);
        }
    return KILN_OK;
}
