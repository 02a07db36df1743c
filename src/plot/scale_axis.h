/* A scale as an axis: its range and ticks, of numbers or of categories. */
#ifndef KILN_PLOT_SCALE_AXIS_H
#define KILN_PLOT_SCALE_AXIS_H

#include "kiln/plot.h"
#include "plot/axis.h"

/* The axis of n values of a scale, with about `about` ticks and air at its ends; its pixels are
 * unset. */
void kiln_plot_scale_axis(const KilnPlotScale *scale, size_t n, int about, KilnPlotAxis *ret);

/* How far a point is from the middle of its category, so that those of a category stand beside each
 * other; 0 for numbers. */
double kiln_plot_scale_spread(const KilnPlotScale *scale, size_t point);

#endif
