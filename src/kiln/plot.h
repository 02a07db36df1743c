/* Pictures of a run: charts, matrices, grids of images, as PNG. Needs cairo when kiln is
 * built. */
#ifndef KILN_PLOT_H
#define KILN_PLOT_H

#include "kiln/base.h"

/* KILN_OK when this build can draw; else KILN_E_MISSING and what to do. */
KILN_API KILN_NODISCARD KilnStatus kiln_plot_supported(KilnError *err);

/* A curve; points that are not finite are left out, and the line goes on behind them. */
typedef struct KilnPlotLine {
    const char *label; /* for the legend; NULL: not in it */
    const double *x, *y;
    size_t n;
    bool marks;  /* a ring around... */
    size_t mark; /* ...this point */
} KilnPlotLine;

typedef struct KilnChart {
    const char *title, *x_label, *y_label; /* NULL: none */
    const KilnPlotLine *lines;
    size_t n_lines;
    bool log_x, log_y; /* values that are not positive are left out */
    int width, height; /* pixels; 0: 800 × 500 */
} KilnChart;

/* Draw lines over axes whose ranges fit them, with round ticks and a legend. */
KILN_API KILN_NODISCARD KilnStatus kiln_plot_chart(const char *path, const KilnChart *chart,
                                                   KilnError *err);

/* How often each class was taken for each other: a row for each true class, a column for each
 * that was predicted, darker the larger a row's share. */
typedef struct KilnConfusion {
    const char *title;         /* NULL: none */
    const char *const *labels; /* [n] */
    const double *values;      /* [n, n]; what is not finite or negative counts as 0 */
    size_t n;                  /* 1 to 64 */
} KilnConfusion;

KILN_API KILN_NODISCARD KilnStatus kiln_plot_confusion(const char *path,
                                                       const KilnConfusion *confusion,
                                                       KilnError *err);

/* Images in rows, with a line of text below each. */
typedef struct KilnPlotImage {
    const float *data; /* [height, width, channels]; the least value is black, the largest white */
    const char *caption; /* of one line or two; NULL: none */
} KilnPlotImage;

typedef struct KilnPlotRows {
    const char *title; /* of these rows; NULL: none */
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
