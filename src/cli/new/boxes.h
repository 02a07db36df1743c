/* Images with boxes of objects, for `kiln new`. */
#ifndef KILN_CLI_NEW_BOXES_H
#define KILN_CLI_NEW_BOXES_H

#include "cli/new/new_config.h"

/* Where annotations in COCO's format are: options of datamodule coco. */
typedef struct KilnNewCoco {
    const char *root, *annotations, *images;
} KilnNewCoco;

/* Whether a file is JSON that begins as COCO's annotations do. */
bool kiln_new_is_coco(const char *path);
/* Whether a file is YAML with names of classes and images to train on, as YOLO's. */
bool kiln_new_is_yolo(const char *path);

/* What a folder with boxes has. */
typedef struct KilnNewBoxes {
    KilnNewCoco coco; /* annotations NULL: none */
    const char *yolo; /* the YAML file; NULL: there is none */
} KilnNewBoxes;

/* Find annotations in a folder and the folders in it; *ret is zeroed if it has none. KILN_E_USAGE
 * if it is not clear which ones train; KILN_E_MISSING for texts of boxes without YOLO's YAML file,
 * with the file to write. */
KILN_NODISCARD KilnStatus kiln_new_boxes_find(KilnNewConfig *config, const char *path,
                                              KilnNewBoxes *ret, KilnError *err);
/* The same for a file of annotations. */
KILN_NODISCARD KilnStatus kiln_new_coco_of(KilnNewConfig *config, const char *path,
                                           KilnNewCoco *ret, KilnError *err);

/* The configs. */
KILN_NODISCARD KilnStatus kiln_new_coco(KilnNewConfig *config, const KilnNewCoco *coco,
                                        KilnError *err);
KILN_NODISCARD KilnStatus kiln_new_yolo(KilnNewConfig *config, const char *yaml, KilnError *err);

#endif
