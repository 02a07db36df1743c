/* Object detection: how boxes stand in samples, the and the targets and the loss of
 * boxes in training. Boxes are x1, y1, x2, y2 in pixels: the first pixel is from 0 to 1. */
#ifndef KILN_IMAGES_DETECTION_H
#define KILN_IMAGES_DETECTION_H

#include "kiln/custom_op.h"
#include "kiln/ops.h"

/* ---- Samples ----------------------------------------------------------------------------------
 * A datamodule of boxes gives
 *   image  KILN_IMAGE   f32 [height, width, channels]
 *   boxes  KILN_LABEL   f32 [most boxes of an image, KILN_BOX_COLUMNS]
 *   frame  KILN_VECTOR  f32 [KILN_FRAME_COLUMNS]: where the sample's pixels are in its file */

/* A row of "boxes". Rows that are not used have class -1 and come last. */
enum {
    KILN_BOX_SAMPLE = 0, /* 4: the box in the sample; all 0 if it is out of view */
    KILN_BOX_CLASS = 4,
    KILN_BOX_CROWD = 5, /* 1: a group of objects, COCO's iscrowd; training leaves it out */
    KILN_BOX_AREA = 6,  /* of the object, in pixels of the file; metrics sort objects by it */
    KILN_BOX_FILE = 7,  /* 4: the box in the file */
    KILN_BOX_COLUMNS = 11
};

/* "frame": a point (x, y) of the sample is at (scale_x x + left, scale_y y + top) of the file. */
enum {
    KILN_FRAME_SCALE = 0, /* 2 */
    KILN_FRAME_MOVE = 2,  /* 2: left, top */
    KILN_FRAME_SIZE = 4,  /* 2: width and height of the file */
    KILN_FRAME_COLUMNS = 6
};

/* ---- Training -------------------------------------------------------------------------------- */

/* What each place of a detector that predicts a box per place should predict, and the weight of
 * places that have a box: 1, else 0. All float, for a batch of B images. */
typedef struct KilnBoxTargets {
    KilnTensor *classes;    /* [B, places, classes]: 1 for the class of the place's box, else 0 */
    KilnTensor *boxes;      /* [B, places, 4]; a box around the place if it has none */
    KilnTensor *centerness; /* [B, places]: 1 in the middle of the box, 0 at its sides */
    KilnTensor *weight;     /* [B, places] */
} KilnBoxTargets;

/* Which box each place is to predict, as FCOS (Tian et al., "FCOS: Fully convolutional one-stage
 * object detection", 2019) and torchvision.models.detection.fcos: a place (x, y, stride) has a box
 * if it is in it, nearer to its center than `radius` strides along both axes, and the farthest side
 * is between 4 and 8 strides away; of the finest stride from 0 on, of the coarsest without end. Of
 * several boxes it has the smallest. boxes: float [B, n, KILN_BOX_COLUMNS]; places: float
 * [places, 3]. Constants: they have no gradient. */
KILN_API KilnBoxTargets kiln_fcos_targets(KilnTensor *boxes, KilnTensor *places, int64_t classes,
                                          double radius);

/* 1 - generalized intersection over union of pairs of boxes [..., 4] -> [...] (Rezatofighi et al.
 * 2019; torchvision.ops.generalized_box_iou_loss). */
KILN_API KilnTensor *kiln_giou_loss(KilnTensor *a, KilnTensor *b);

#endif
