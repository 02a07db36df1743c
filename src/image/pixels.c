/* Pixels of 1 to 4 samples as grey or colour. */
#include "image/pixels.h"

void kiln_pixels_convert(float *line, int64_t width, int64_t samples, int64_t channels, float *to)
{
    if (samples % 2 == 0)
        for (float *p = line; p < line + width * samples; p += samples)
            for (int64_t c = 0; c < samples - 1; c++)
                p[c] *= p[samples - 1];
    for (int64_t x = 0; x < width; x++) {
        const float *p = line + x * samples;
        const int colour = samples >= 3;

        if (channels == 1) {
            /* ITU-R 601 luma, as Pillow's convert("L"). */
            to[x] = colour ? 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2] : p[0];
        } else {
            to[3 * x] = p[0];
            to[3 * x + 1] = colour ? p[1] : p[0];
            to[3 * x + 2] = colour ? p[2] : p[0];
        }
    }
}
