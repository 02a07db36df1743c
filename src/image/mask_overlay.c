/* Pictures of classes: an image under their colours. */
#include "kiln/images/image_masks.h"

#include <math.h>

enum { COLOURS = 3 };

/* The colour map of Pascal VOC: bits of the number, from the last, spread over the channels. */
static uint8_t colour_of(int64_t class, int channel)
{
    unsigned value = 0;

    for (int bit = 7; bit >= 0 && class > 0; bit--, class >>= 3)
        value |= (unsigned)(class >> channel & 1) << bit;
    return (uint8_t)value;
}

void kiln_mask_overlay(const KilnMaskOverlay *overlay, uint8_t *to, int64_t to_width)
{
    const int64_t width = overlay->width, channels = overlay->channels;
    const int64_t pixels = overlay->height * width;
    const float *image = overlay->image;
    float low = INFINITY, high = -INFINITY;

    for (int64_t i = 0; i < pixels * channels; i++) {
        low = fminf(low, image[i]);
        high = fmaxf(high, image[i]);
    }
    const float scale = high > low ? 255.0f / (high - low) : 0.0f;
    for (int64_t i = 0; i < pixels; i++) {
        const int64_t class = (int64_t)overlay->classes[i];
        const double opacity = class >= 0 ? overlay->opacity : 0.0;

        for (int c = 0; c < COLOURS; c++) {
            const float value = (image[i * channels + (channels == COLOURS ? c : 0)] - low) * scale;

            to[(i / width * to_width + i % width) * COLOURS + c] =
                (uint8_t)((1.0 - opacity) * (value >= 0.0f ? (double)value : 0.0) +
                          opacity * colour_of(class, c) + 0.5);
        }
    }
}
