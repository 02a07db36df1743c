/* Reading images by the part that a transform takes, which depends on their size. */
#ifndef KILN_IMAGE_READ_H
#define KILN_IMAGE_READ_H

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

#endif
