/* Images with masks, for segmentation: pairs of files, and reading a pair as a sample. The pixels
 * of a mask are classes: a PNG file of grey values or of a palette, of which the indices count and
 * not the colours. */
#ifndef KILN_IMAGES_IMAGE_MASKS_H
#define KILN_IMAGES_IMAGE_MASKS_H

#include "kiln/image.h"

/* The class of pixels that have none; losses leave it out (KilnCrossEntropy.ignore_index). */
enum { KILN_MASK_IGNORED = -100 };

/* Images and masks of the same name, without its ending. */
typedef struct KilnMaskPairs {
    KilnImageSet images;           /* without classes */
    const char *const *masks;      /* of each image */
    const KilnOmission *no_images; /* masks without an image; NULL: none */
    void *memory;
} KilnMaskPairs;

/* The image files (.png, .jpg, .jpeg, .webp) directly in a folder of images, in byte order, and the
 * PNG files of the same name in a folder of masks. Other files among the images are in
 * images.left_out. KILN_E_IO if there is no such folder, KILN_E_FORMAT if an image has no mask or
 * there are no images; the messages name the files. Release with kiln_mask_pairs_release. */
KILN_API KILN_NODISCARD KilnStatus kiln_mask_pairs_scan(const char *images, const char *masks,
                                                        const KilnPoll *poll, KilnMaskPairs *ret,
                                                        KilnError *err);
/* Accepts zeroed pairs. */
KILN_API void kiln_mask_pairs_release(KilnMaskPairs *pairs);

/* How masks are read. */
typedef struct KilnMaskForm {
    const KilnImageForm *image;
    int64_t n_classes;      /* their pixels are 0 to n_classes - 1, */
    const int64_t *ignored; /* or one of these, for pixels without class */
    size_t n_ignored;
    bool as_stored; /* masks lie as the pixels of their images are stored, and are turned with them
                     * (EXIF); false: as the images are seen */
} KilnMaskForm;

/* Whether all transforms can change a mask with its image: KilnTransformOps.kind and .window.
 * KILN_E_RANGE with the first that can't. */
KILN_API KILN_NODISCARD KilnStatus kiln_mask_check_transforms(const KilnImageForm *form,
                                                              KilnError *err);

/* Read image and mask number `i`, the image upright. Both are scaled to the form's size, the mask
 * to the class of the nearest pixel, and get the same random transforms. Pixels from outside of the
 * image (padding) are ignored. With form->image->skips, files that can't be read are KILN_E_SKIP.
 * Writes floats of `shape` to `image` and classes or KILN_MASK_IGNORED [height, width] to `mask`.
 * KILN_E_FORMAT for a mask of another size than its image and for a value that is neither a class
 * nor ignored, with the file and the value. Any number of threads may read at once. */
KILN_API KILN_NODISCARD KilnStatus kiln_mask_pair_read(const KilnMaskForm *form,
                                                       const KilnMaskPairs *pairs, int64_t i,
                                                       const int64_t shape[3], bool training,
                                                       KilnRng *rng, float *image, int32_t *mask,
                                                       KilnError *err);
/* The values of a mask file: u8 [*ret_height, *ret_width], owned by the caller (free).
 * KILN_E_FORMAT if it is no PNG of grey values or of a palette, of at most 8 bits. */
KILN_API KILN_NODISCARD KilnStatus kiln_mask_read_png(const char *path, int64_t max_pixels,
                                                      uint8_t **ret, int64_t *ret_height,
                                                      int64_t *ret_width, KilnError *err);

/* An image and the class of each of its pixels. */
typedef struct KilnMaskOverlay {
    const float *image;              /* [height, width, channels], of any range */
    int64_t height, width, channels; /* 1 or 3 channels */
    const float *classes;            /* [height, width]; negative: none */
    double opacity;                  /* of the classes' colours, 0 to 1 */
} KilnMaskOverlay;

/* Draw the image, its smallest value black and its largest white, under the colours of its classes,
 * which are those of Pascal VOC: 8-bit RGB in rows of `to_width` pixels, which may be more than the
 * image has. */
KILN_API void kiln_mask_overlay(const KilnMaskOverlay *overlay, uint8_t *to, int64_t to_width);

#endif
