/* Images as pictures of 8-bit RGB, and the colours of classes over them. */
#include "kiln/images/image_masks.h"
#include "kiln/images/sample_pictures.h"

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

void kiln_picture_image(const KilnPicture *to, const float *image, int64_t height, int64_t width,
                        int64_t channels, const float range[2])
{
    const int64_t by = to->height / height; /* pixels for one of the image, each way */
    float low = INFINITY, high = -INFINITY;

    for (int64_t i = 0; i < height * width * channels && range == NULL; i++) {
        low = fminf(low, image[i]);
        high = fmaxf(high, image[i]);
    }
    if (range != NULL) {
        low = range[0];
        high = range[1];
    }
    const float scale = high > low ? 255.0f / (high - low) : 0.0f;
    for (int64_t y = 0; y < height * by; y++)
        for (int64_t x = 0; x < width * by; x++) {
            const float *from = image + (y / by * width + x / by) * channels;
            uint8_t *pixel = to->pixels + (y * to->row + x) * COLOURS;

            for (int c = 0; c < COLOURS; c++) {
                const float value = (from[channels == COLOURS ? c : 0] - low) * scale + 0.5f;

                pixel[c] = (uint8_t)(value >= 0.0f ? fminf(value, 255.0f) : 0.0f);
            }
        }
}

void kiln_mask_overlay(const KilnMaskOverlay *overlay, uint8_t *to, int64_t to_width)
{
    const KilnPicture picture = {
        .pixels = to, .height = overlay->height, .width = overlay->width, .row = to_width
    };

    kiln_picture_image(&picture, overlay->image, overlay->height, overlay->width, overlay->channels,
                       NULL);
    for (int64_t i = 0; i < overlay->height * overlay->width; i++) {
        const int64_t class = (int64_t)overlay->classes[i];
        uint8_t *pixel = to + (i / overlay->width * to_width + i % overlay->width) * COLOURS;

        for (int c = 0; c < COLOURS && class >= 0; c++)
            pixel[c] = (uint8_t)((1.0 - overlay->opacity) * pixel[c] +
                                 overlay->opacity * colour_of(class, c) + 0.5);
    }
}
