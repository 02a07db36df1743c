/* A picture that is drawn on: the only place that knows how one begins and ends. */
#ifndef KILN_PLOT_CANVAS_H
#define KILN_PLOT_CANVAS_H

#include <cairo.h>

#include "kiln/plot.h"

typedef struct KilnCanvas {
    cairo_surface_t *surface;
    cairo_t *cr;
    double width, height;
} KilnCanvas;

/* Where text stands to its point: 0 begins there, 0.5 is in the middle, 1 ends there. */
typedef struct KilnAnchor {
    double x, y;
} KilnAnchor;

/* White, of so many pixels. Release also after an error. */
KILN_NODISCARD KilnStatus kiln_canvas_init(KilnCanvas *canvas, int width, int height,
                                           KilnError *err);
KILN_NODISCARD KilnStatus kiln_canvas_save(KilnCanvas *canvas, const char *path, KilnError *err);
/* Accepts a zeroed one. */
void kiln_canvas_release(KilnCanvas *canvas);

void kiln_canvas_grey(KilnCanvas *canvas, double level);
/* The i-th of eight colours that people with any colour vision tell apart (Okabe and Ito). */
void kiln_canvas_colour(KilnCanvas *canvas, size_t i);
/* A colour of a scale that also reads in grey: 0, the strongest, to 1 (viridis, its dark half
 * first; Smith and van der Walt 2015). */
void kiln_canvas_shade(KilnCanvas *canvas, double shade, double alpha);
void kiln_canvas_font(KilnCanvas *canvas, double size, bool bold);
double kiln_canvas_text_width(KilnCanvas *canvas, const char *text);
void kiln_canvas_text(KilnCanvas *canvas, double x, double y, KilnAnchor anchor, const char *text);
/* From bottom to top, its middle at the point. */
void kiln_canvas_text_up(KilnCanvas *canvas, double x, double y, const char *text);
/* One pixel wide. */
void kiln_canvas_line(KilnCanvas *canvas, double x0, double y0, double x1, double y1);

#endif
