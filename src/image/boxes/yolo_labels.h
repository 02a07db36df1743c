/* The text of boxes of an image, in YOLO's format. */
#ifndef KILN_IMAGE_BOXES_YOLO_LABELS_H
#define KILN_IMAGE_BOXES_YOLO_LABELS_H

#include "kiln/images/box_sets.h"
#include "kiln/metric.h"

/* Rows of boxes of all images, in parts of them. */
typedef struct KilnYoloRows {
    float (*rows)[KILN_TRUTH_COLUMNS]; /* freed by the owner */
    size_t n, capacity;
} KilnYoloRows;

/* Add the boxes of the file, without those that are there twice; *ret_found: there is such a file.
 * KILN_E_FORMAT for a wrong row, with file and line; with `skips` it is counted in `set`. */
KILN_NODISCARD KilnStatus kiln_yolo_labels_read(const char *path, bool skips, KilnBoxSet *set,
                                                KilnYoloRows *to, bool *ret_found, KilnError *err);
/* Something is wrong in line `line` of a file: count it in *skipped, or KILN_E_FORMAT. */
KILN_NODISCARD KilnStatus kiln_yolo_wrong(const char *path, size_t line, const char *why,
                                          bool skips, KilnBoxSet *set, int64_t *skipped,
                                          KilnError *err);

#endif
