/* Pictures of a run as PNG: charts, matrices, grids of images. Needs a build with cairo. */
#ifndef KILN_PLOT_H
#define KILN_PLOT_H

#include "kiln/base.h"

/* KILN_OK if this build can draw; otherwise KILN_E_MISSING with what to install. */
KILN_API KILN_NODISCARD KilnStatus kiln_plot_supported(KilnError *err);

/* A curve. Points that are not finite are left out; the line connects their neighbours. */
typedef struct KilnPlotLine {
    const char *label; /* for the legend; NULL: not in it */
    const double *x, *y;
    size_t n;
    bool marks;  /* draw a ring around a point */
    size_t mark; /* the point's index */
} KilnPlotLine;

typedef struct KilnChart {
    const char *title, *x_label, *y_label; /* NULL: none */
    const KilnPlotLine *lines;
    size_t n_lines;
    bool log_x, log_y; /* logarithmic axes; values that are not positive are left out */
    int width, height; /* pixels; 0: 800 × 500 */
} KilnChart;

/* Draw lines over axes that fit their ranges, with round ticks and a legend. */
KILN_API KILN_NODISCARD KilnStatus kiln_plot_chart(const char *path, const KilnChart *chart,
                                                   KilnError *err);

/* A confusion matrix: a row per true class, a column per predicted class; a darker cell is a larger
 * share of its row. */
typedef struct KilnConfusion {
    const char *title;         /* NULL: none */
    const char *const *labels; /* [n] */
    const double *values;      /* [n, n]; negative or not finite counts as 0 */
    size_t n;                  /* 1 to 64 */
} KilnConfusion;

KILN_API KILN_NODISCARD KilnStatus kiln_plot_confusion(const char *path,
                                                       const KilnConfusion *confusion,
                                                       KilnError *err);

/* Horizontal bars from 0, one below the other. */
typedef struct KilnPlotBar {
    const char *label;
    double value; /* below 0 or not finite: no bar */
} KilnPlotBar;

typedef struct KilnPlotBars {
    const char *title; /* NULL: none */
    const KilnPlotBar *bars;
    size_t n; /* 0 to 200 */
} KilnPlotBars;

KILN_API KILN_NODISCARD KilnStatus kiln_plot_bars(const char *path, const KilnPlotBars *bars,
                                                  KilnError *err);

/* Images in rows, with a line of text below each. */
typedef struct KilnPlotImage {
    const float
        *data; /* [height, width, channels]; the smallest value is black, the largest white */
    const char *caption; /* one or two lines; NULL: none */
} KilnPlotImage;

typedef struct KilnPlotRows {
    const char *title; /* NULL: none */
    const KilnPlotImage *images;
    size_t n;
} KilnPlotRows;

typedef struct KilnPlotGallery {
    const KilnPlotRows *parts; /* one below the other */
    size_t n_parts;
    int height, width, channels; /* of all images; channels 1 or 3 */
    int columns;                 /* images in a row */
} KilnPlotGallery;

KILN_API KILN_NODISCARD KilnStatus kiln_plot_gallery(const char *path,
                                                     const KilnPlotGallery *gallery,
                                                     KilnError *err);

#endif
