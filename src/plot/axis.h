/* An axis: from values to pixels, with round numbers along it. No drawing. */
#ifndef KILN_PLOT_AXIS_H
#define KILN_PLOT_AXIS_H

#include "kiln/base.h"

enum { KILN_PLOT_AXIS_TICKS = 16, KILN_PLOT_AXIS_LABEL = 24 };

typedef struct KilnPlotAxis {
    bool log;
    double min, max; /* values at its ends; of a logarithmic one, too */
    double from, to; /* pixels */
    bool whole;      /* its values are whole numbers, and so are the ticks */
    size_t n_ticks;
    double ticks[KILN_PLOT_AXIS_TICKS];
    char labels[KILN_PLOT_AXIS_TICKS][KILN_PLOT_AXIS_LABEL];
} KilnPlotAxis;

/* Can the value be shown? */
bool kiln_plot_axis_takes(const KilnPlotAxis *axis, double value);
/* Widen min..max (both NAN: nothing yet) so that the value is in it. */
void kiln_plot_axis_include(KilnPlotAxis *axis, double value);
/* Ends and about `about` ticks at round values; an axis without values becomes 0..1 (1..10). */
void kiln_plot_axis_finish(KilnPlotAxis *axis, int about);
double kiln_plot_axis_pixel(const KilnPlotAxis *axis, double value);

#endif
