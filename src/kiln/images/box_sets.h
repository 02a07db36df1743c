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
    bool relative;   /* boxes are in parts of the image's width, height and area; false: pixels */
    float *boxes;    /* [starts[count], KILN_TRUTH_COLUMNS], as kiln/metric.h says */
    int64_t most;    /* boxes of an image */
    int64_t n_classes;
    char **classes;
    int64_t *ids; /* of the classes in COCO's file, ascending; NULL: none */
    int64_t skipped_images, skipped_boxes;
    char example[640];   /* the first thing that was skipped, and why */
    int64_t other_files; /* in folders of images, which are no images that can be read */
    char other_example[640];
    /* What is read nevertheless: boxes that reach out of the image by more than rounding, and rows
     * of YOLO's that are there twice; where the first of each is. */
    int64_t cut_boxes, copies;
    char cut_example[320], copy_example[320];
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

/* Read a split of data as Ultralytics' YOLO lays them out. The YAML file `path` has "names" (a
 * list, or a mapping from 0 on) and, for each split, a folder of images, which may have folders, or
 * a .txt list of them, or several of both; relative ones are below its "path", which is relative to
 * the file, or below `root` (NULL: as the file says). A split that is not named is an empty set;
 * only train must be there.
 *
 * The boxes of images/x.jpg are the rows "class center-x center-y width height" of labels/x.txt, in
 * parts of the image (without a folder images/ the text is beside the image). A row with more
 * numbers is a polygon, of which the box is read. Without a text an image has no objects, and rows
 * that are there twice count once. Boxes are cut at the image. A wrong row and a file of a list
 * that is not there are KILN_E_FORMAT with file and line; with `skips` they are left out and
 * counted. */
KILN_API KILN_NODISCARD KilnStatus kiln_yolo_read(const char *path, const char *root,
                                                  KilnSplit split, bool skips, const KilnPoll *poll,
                                                  KilnBoxSet *ret, KilnError *err);
/* Move a part of the images, drawn by the seed, to `ret`, a set without images: fraction × count of
 * them, at least one. The classes stay with `set`. KILN_E_RANGE: none would be left. */
KILN_API KILN_NODISCARD KilnStatus kiln_box_set_hold_out(KilnBoxSet *set, double fraction,
                                                         uint64_t seed, KilnBoxSet *ret,
                                                         KilnError *err);
/* Accepts a zeroed set. */
KILN_API void kiln_box_set_release(KilnBoxSet *set);

/* How images with boxes are read. */
typedef struct KilnBoxForm {
    KilnImageForm image; /* of a size */
    bool letterbox; /* scale to the size without changing proportions, and pad with grey, 114/255,
                     * on both sides; false: stretch */
} KilnBoxForm;

/* Whether boxes can follow all transforms of the form: those that move nothing, take a part of the
 * image, or have KilnTransformOps.warp. KILN_E_RANGE with the first that they can't. */
KILN_API KILN_NODISCARD KilnStatus kiln_box_check_transforms(const KilnImageForm *form,
                                                             KilnError *err);

/* The boxes of an image: rows of a KilnBoxSet. */
typedef struct KilnBoxTruth {
    const float *rows;
    int64_t n;
    bool relative;
} KilnBoxTruth;

/* What is written of an image: its pixels, of the form's size; its boxes, [most,
 * KILN_BOX_COLUMNS], NULL: none; where the sample is in the file, if no transform turns it,
 * [KILN_FRAME_COLUMNS]. */
typedef struct KilnBoxSample {
    float *image, *boxes, *frame;
    int64_t most;
} KilnBoxSample;

/* Read an image, scale it to the form's size and transform it with its boxes (kiln_box_move). Any
 * number of threads may read at once. */
KILN_API KILN_NODISCARD KilnStatus kiln_box_image_read(const KilnBoxForm *form,
                                                       const KilnRawValue *value,
                                                       const KilnBoxTruth *truth, bool training,
                                                       KilnRng *rng, const KilnBoxSample *to,
                                                       KilnError *err);

/* Where a box is after a warp of its image, whose size is height × width then: what the rectangle
 * around its moved corners and the image have in common, as torchvision.transforms.v2 has it; all 0
 * if that is less than a tenth of the rectangle (out of view). */
KILN_API void kiln_box_move(const KilnWarp *warp, const float box[4], int64_t height, int64_t width,
                            float ret[4]);

#endif
