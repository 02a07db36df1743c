/* Pixels of 1 to 4 samples as grey or colour. */
#ifndef KILN_IMAGE_PIXELS_H
#define KILN_IMAGE_PIXELS_H

#include <stdint.h>

/* Convert a row of `width` pixels with `samples` values each (grey, grey and alpha, RGB, RGBA) to
 * `channels` (1 or 3) at `to`; alpha is laid over black. `line` is overwritten. */
void kiln_pixels_convert(float *line, int64_t width, int64_t samples, int64_t channels, float *to);

#endif
