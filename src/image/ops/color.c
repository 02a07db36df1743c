/* Changing the colors of an image pixel by pixel. */
#include "kiln/images/image_ops.h"

#include <math.h>

static int64_t count_of(const KilnImage *image)
{
    return image->height * image->width * image->channels;
}

static float cut(float value)
{
    return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f;
}

static float grey_of(const float *pixel)
{
    return 0.2989f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2];
}

void kiln_image_adjust_brightness(KilnImage *image, float factor)
{
    for (int64_t i = 0; i < count_of(image); i++)
        image->data[i] = cut(image->data[i] * factor);
}

void kiln_image_adjust_contrast(KilnImage *image, float factor)
{
    const int64_t pixels = image->height * image->width, c = image->channels;
    double sum = 0.0;

    for (int64_t i = 0; i < pixels; i++)
        sum += (double)(c == 3 ? grey_of(image->data + 3 * i) : image->data[i * c]);
    const float mean = (1.0f - factor) * (float)(sum / (double)pixels);
    for (int64_t i = 0; i < pixels * c; i++)
        image->data[i] = cut(factor * image->data[i] + mean);
}

void kiln_image_adjust_saturation(KilnImage *image, float factor)
{
    for (int64_t i = 0; i < count_of(image) && image->channels == 3; i += 3) {
        float *pixel = image->data + i;
        const float grey = (1.0f - factor) * grey_of(pixel);

        for (int c = 0; c < 3; c++)
            pixel[c] = cut(factor * pixel[c] + grey);
    }
}

/* The hue turned in the hexagon of colors of equal value and saturation. */
static void turn_hue(float *pixel, float shift)
{
    const float r = pixel[0], g = pixel[1], b = pixel[2];
    const float most = fmaxf(r, fmaxf(g, b)), least = fminf(r, fminf(g, b)), range = most - least;

    if (!(range > 0.0f))
        return;
    float hue = most == r   ? (g - b) / range
                : most == g ? 2.0f + (b - r) / range
                            : 4.0f + (r - g) / range;
    hue = hue / 6.0f + shift;
    hue = 6.0f * (hue - floorf(hue));
    const int side = (int)hue % 6;
    const float part = hue - (float)(int)hue, saturation = range / most;
    const float p = cut(most * (1.0f - saturation)), q = cut(most * (1.0f - saturation * part));
    const float t = cut(most * (1.0f - saturation * (1.0f - part)));
    const float sides[6][3] = { { most, t, p }, { q, most, p }, { p, most, t },
                                { p, q, most }, { t, p, most }, { most, p, q } };

    for (int c = 0; c < 3; c++)
        pixel[c] = sides[side][c];
}

void kiln_image_adjust_hue(KilnImage *image, float shift)
{
    for (int64_t i = 0; i < count_of(image) && image->channels == 3; i += 3)
        turn_hue(image->data + i, shift);
}

void kiln_image_grayscale(KilnImage *image)
{
    for (int64_t i = 0; i < count_of(image) && image->channels == 3; i += 3) {
        float *pixel = image->data + i;

        pixel[0] = pixel[1] = pixel[2] = grey_of(pixel);
    }
}

void kiln_image_invert(KilnImage *image)
{
    for (int64_t i = 0; i < count_of(image); i++)
        image->data[i] = 1.0f - image->data[i];
}

void kiln_image_solarize(KilnImage *image, float threshold)
{
    for (int64_t i = 0; i < count_of(image); i++)
        if (image->data[i] >= threshold)
            image->data[i] = 1.0f - image->data[i];
}

void kiln_image_posterize(KilnImage *image, int bits)
{
    const float levels = (float)(1 << bits);

    for (int64_t i = 0; i < count_of(image); i++) {
        const float level = floorf(image->data[i] * levels);

        image->data[i] = fminf(fmaxf(level, 0.0f), levels - 1.0f) / levels;
    }
}

/* ---- Histograms -------------------------------------------------------------------------------
 */

static void stretch(float *values, int64_t n, int64_t step)
{
    float least = values[0], most = values[0];

    for (int64_t i = 0; i < n; i += step) {
        least = fminf(least, values[i]);
        most = fmaxf(most, values[i]);
    }
    if (most == least)
        return;
    for (int64_t i = 0; i < n; i += step)
        values[i] = cut((values[i] - least) / (most - least));
}

void kiln_image_autocontrast(KilnImage *image)
{
    for (int64_t c = 0; c < image->channels; c++)
        stretch(image->data + c, count_of(image) - c, image->channels);
}

static int level_of(float value)
{
    return (int)(cut(value) * 255.999f);
}

static void equalize(float *values, int64_t n, int64_t step)
{
    enum { LEVELS = 256 };
    int64_t counts[LEVELS] = { 0 }, total = 0, last = 0, sum = 0;
    int table[LEVELS];

    for (int64_t i = 0; i < n; i += step, total++)
        counts[level_of(values[i])]++;
    for (int i = 0; i < LEVELS; i++)
        last = counts[i] > 0 ? counts[i] : last;
    const int64_t each = (total - last) / (LEVELS - 1); /* pixels to a new level */
    for (int i = 0; i < LEVELS; i++) {
        const int64_t level = each > 0 ? (sum + each / 2) / each : i;

        table[i] = level < LEVELS - 1 ? (int)level : LEVELS - 1;
        sum += counts[i];
    }
    for (int64_t i = 0; i < n; i += step)
        values[i] = (float)table[level_of(values[i])] / 255.0f;
}

void kiln_image_equalize(KilnImage *image)
{
    for (int64_t c = 0; c < image->channels; c++)
        equalize(image->data + c, count_of(image) - c, image->channels);
}
