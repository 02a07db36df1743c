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

#endif
