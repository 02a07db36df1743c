/* Pictures of a run as PNG: charts, matrices, grids of images. Needs a build with cairo. */
#ifndef KILN_PLOT_H
#define KILN_PLOT_H

#include "kiln/base.h"

/* KILN_OK if this build can draw; otherwise KILN_E_MISSING with what to install. */
KILN_API KILN_NODISCARD KilnStatus kiln_plot_supported(KilnError *err);

/* Load the fonts of charts, which takes some milliseconds. Processes that are forked later have
 * them. Does nothing in a build without cairo. */
KILN_API void kiln_plot_load_fonts(void);

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

/* Values along an axis: numbers, or categories by their index. */
typedef struct KilnPlotScale {
    const char *label;        /* NULL: none */
    bool log;                 /* logarithmic; values that are not positive are left out */
    bool whole;               /* its ticks are whole numbers */
    const char *const *names; /* [n_names], of categories; NULL: numbers */
    size_t n_names;
    const double *values; /* one for each point; NaN: none */
} KilnPlotScale;

/* Points in panels side by side, which share the points and the vertical axis: a panel for each
 * horizontal one. Points without a value in a panel are left out of it. */
typedef struct KilnPlotPanels {
    const char *title;       /* NULL: none */
    KilnPlotScale y;         /* of numbers */
    const KilnPlotScale *xs; /* [n_panels] */
    size_t n_panels;         /* 1 to 64 */
    size_t n;                /* points */
    const double *shades;    /* [n]: 0, the best, to 1; NULL: all points are equal */
    size_t mark;             /* the point with a ring; n: none */
    const double *steps;     /* [n]: a line in steps through all panels' points; NULL: none */
    const char *steps_label; /* NULL: none */
} KilnPlotPanels;

KILN_API KILN_NODISCARD KilnStatus kiln_plot_panels(const char *path, const KilnPlotPanels *panels,
                                                    KilnError *err);

/* Parallel coordinates: an upright axis for each scale, and a line through all of them for each
 * point. A point without a value goes through the end of the axis marked "none". */
typedef struct KilnPlotParallel {
    const char *title;           /* NULL: none */
    const KilnPlotScale *scales; /* [n_scales], from left to right */
    size_t n_scales;             /* 1 to 64 */
    size_t n;                    /* points */
    const double *shades;        /* [n]: 0, the best, which is drawn on top, to 1 */
} KilnPlotParallel;

KILN_API KILN_NODISCARD KilnStatus kiln_plot_parallel(const char *path,
                                                      const KilnPlotParallel *parallel,
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

/* 8-bit RGB pixels that are drawn on: all of a picture, or a part of a larger one. */
typedef struct KilnPicture {
    uint8_t *pixels; /* the first; borrowed */
    int64_t height, width;
    int64_t row; /* pixels from a row to the next, at least `width` */
} KilnPicture;

/* A rectangle with a line of text at its upper left corner. */
typedef struct KilnPlotBox {
    double box[4];     /* left, top, right, bottom in pixels of the picture; may reach beyond it */
    const char *label; /* NULL: none */
    size_t colour;     /* boxes of the same number have the same colour, one of eight */
} KilnPlotBox;

/* Draw boxes over a picture of at most 8192 pixels each way, the last one on top. The text is above
 * its box, or in it where there is no room above, and as large as the picture needs. KILN_E_RANGE
 * for a larger picture. */
KILN_API KILN_NODISCARD KilnStatus kiln_plot_boxes(const KilnPicture *picture,
                                                   const KilnPlotBox *boxes, size_t n,
                                                   KilnError *err);

/* Whether the system has a font family of that name: KILN_E_MISSING with what to install. */
KILN_API KILN_NODISCARD KilnStatus kiln_plot_font_check(const char *family, KilnError *err);

/* A line of text, drawn in the middle of its height. */
typedef struct KilnPlotText {
    const char *text; /* UTF-8 */
    const char *family;
    bool bold, italic;
    double size;     /* of the font, pixels */
    double stretch;  /* letters are so many times as wide as the font has them; 1: as they are */
    double rotation; /* degrees, clockwise around its middle */
    double slant;    /* columns to the right per row upwards */
} KilnPlotText;

/* Draw it to `ret` [height, max_width]: 0 is paper, 255 ink; NULL: only measure it. *ret_width: the
 * columns that it takes, with a margin; if that is more than max_width, nothing is drawn. Any
 * number of threads. */
KILN_API KILN_NODISCARD KilnStatus kiln_plot_text_line(const KilnPlotText *line, int height,
                                                       int max_width, uint8_t *ret, int *ret_width,
                                                       KilnError *err);

#endif
