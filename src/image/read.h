/* Reading images by the part that a transform takes, which depends on their size. */
#ifndef KILN_IMAGE_READ_H
#define KILN_IMAGE_READ_H

#include "image/decode/image_formats.h"
#include "kiln/image.h"

/* Says which part of an upright image of that height, width and channels is read. */
typedef struct KilnImageSelect {
    KilnStatus (*window)(void *ctx, const int64_t size[3], KilnImageWindow *ret, KilnError *err);
    void *ctx;
} KilnImageSelect;

/* As kiln_image_read_raw of a path or bytes, but the part that `select` says, instead of
 * form->height and form->width. */
KILN_NODISCARD KilnStatus kiln_image_read_part(const KilnRawValue *value, const KilnPngForm *form,
                                               const KilnImageSelect *select, KilnImage *image,
                                               KilnError *err);

/* What a transform that has `window` takes of an image of that size. KILN_E_INTERNAL if it is not
 * in the image. */
KILN_NODISCARD KilnStatus kiln_image_window_of(KilnInstance *transform, const int64_t size[3],
                                               KilnRng *rng, bool training, KilnImageWindow *ret,
                                               KilnError *err);
/* The header of a file, without decoding its pixels; `max_pixels` as in KilnPngForm. */
KILN_NODISCARD KilnStatus kiln_image_file_head(const char *path, int64_t max_pixels,
                                               KilnImageHead *ret, KilnError *err);
/* The size of the upright image. */
void kiln_image_upright_size(const KilnImageHead *head, int64_t channels, int64_t ret[3]);
/* Which of the pixels [height, width] of a stored image is pixel (y, x) of the upright one. */
int64_t kiln_image_stored_pixel(int orientation, int64_t height, int64_t width, int64_t y,
                                int64_t x);
/* Whether a file is an image by the ending of its name. */
bool kiln_is_image_name(const char *name);

#endif
