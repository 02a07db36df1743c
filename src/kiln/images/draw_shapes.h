/* Plain shapes drawn into images, for data sets that need no files. */
#ifndef KILN_IMAGES_DRAW_SHAPES_H
#define KILN_IMAGES_DRAW_SHAPES_H

#include "kiln/image.h"

typedef enum KilnShapeKind {
    KILN_SHAPE_CIRCLE,
    KILN_SHAPE_SQUARE,
    KILN_SHAPE_TRIANGLE,
    KILN_SHAPE_KINDS
} KilnShapeKind;

/* Where a shape is, in pixels from the upper left corner of the image. */
typedef struct KilnDrawnShape {
    KilnShapeKind kind;
    float x, y;      /* the centre */
    float radius;    /* of the circle, or of the circle around the corners */
    float angle;     /* of squares and triangles, in radians; 0: upright */
    float colour[3]; /* 0..1, of the first channels of the image */
} KilnDrawnShape;

/* "circle", "square", "triangle", NULL. */
KILN_API_TABLE const char *const kiln_shape_names[KILN_SHAPE_KINDS + 1];
/* Draw a filled shape over the image, its edge smooth over one pixel. Parts outside of the image
 * are left out. */
KILN_API void kiln_draw_shape(KilnImage *image, const KilnDrawnShape *shape);

#endif
