/* Images with boxes of objects, for detection: reading annotations, and images with their boxes. */
#ifndef KILN_IMAGES_BOX_SETS_H
#define KILN_IMAGES_BOX_SETS_H

#include "kiln/image.h"
#include "kiln/images/detection.h"
#include "kiln/tools/text_data.h"

/* Images of a split. Everything belongs to the set. */
typedef struct KilnBoxSet {
    int64_t count;
    char **paths;
    int64_t *starts; /* [count + 1]: of each image's boxes */
    float *boxes; /* [starts[count], KILN_TRUTH_COLUMNS], as kiln/metric.h says, in file pixels */
    int64_t most; /* boxes of an image */
    int64_t n_classes;
    char **classes;
    int64_t *ids; /* of the classes in the file, ascending */
    int64_t skipped_images, skipped_boxes;
    char example[640]; /* the first thing that was skipped, and why */
} KilnBoxSet;

/* Read a file of COCO's format (images, annotations, categories), whose images are in `folder`.
 * Images are in the order of their ids, and may have no boxes; the classes are the categories in
 * the order of theirs, or those of `known` (NULL: none), by which annotations are understood then.
 * Boxes are cut at the image if the file says its size. What is wrong with an image or annotation
 * (no such file, an unknown category, a box without area, an id that is there twice) is
 * KILN_E_FORMAT with the file and the id; with `skips` it is left out and counted. */
KILN_API KILN_NODISCARD KilnStatus kiln_coco_read(const char *path, const char *folder,
                                                  const KilnBoxSet *known, bool skips,
                                                  const KilnPoll *poll, KilnBoxSet *ret,
                                                  KilnError *err);
/* Accepts a zeroed set. */
KILN_API void kiln_box_set_release(KilnBoxSet *set);

/* Whether boxes can follow all transforms of the form: those that move nothing, take a part of the
 * image, or have KilnTransformOps.warp. KILN_E_RANGE with the first that they can't. */
KILN_API KILN_NODISCARD KilnStatus kiln_box_check_transforms(const KilnImageForm *form,
                                                             KilnError *err);
/* Read an image, scale it to form->height × form->width and transform it. Writes floats of that
 * size to `image`, KILN_FRAME_COLUMNS numbers to `frame` (where the sample is in the file, if no
 * transform turns it), and the `n` boxes as rows [most, KILN_BOX_COLUMNS] to `boxes` (NULL: none).
 * A box is what the rectangle around its moved corners and the image have in common, and out of
 * view if that is less than a tenth of it. Any number of threads may read at once. */
KILN_API KILN_NODISCARD KilnStatus kiln_box_image_read(const KilnImageForm *form,
                                                       const KilnRawValue *value,
                                                       const float *truth, int64_t n, int64_t most,
                                                       bool training, KilnRng *rng, float *image,
                                                       float *boxes, float *frame, KilnError *err);

#endif
