/* Ranges and ticks. */
#include "plot/axis.h"

#include <math.h>
#include <stdio.h>

bool kiln_plot_axis_takes(const KilnPlotAxis *axis, double value)
{
    return isfinite(value) && (!axis->log || value > 0.0);
}

void kiln_plot_axis_include(KilnPlotAxis *axis, double value)
{
    if (!kiln_plot_axis_takes(axis, value))
        return;
    axis->min = isnan(axis->min) || value < axis->min ? value : axis->min;
    axis->max = isnan(axis->max) || value > axis->max ? value : axis->max;
}

double kiln_plot_axis_pixel(const KilnPlotAxis *axis, double value)
{
    double share = axis->log ? log(value / axis->min) / log(axis->max / axis->min)
                             : (value - axis->min) / (axis->max - axis->min);

    return axis->from + share * (axis->to - axis->from);
}

/* 1, 2 or 5 times a power of ten, at least `least`. */
static double round_step(double least)
{
    double power = pow(10.0, floor(log10(least)));

    for (int i = 0; i < 3; i++) {
        static const double factors[] = { 1.0, 2.0, 5.0 };

        if (factors[i] * power >= least * (1.0 - 1e-9))
            return factors[i] * power;
    }
    return 10.0 * power;
}

static void add_tick(KilnPlotAxis *axis, double value)
{
    if (axis->n_ticks == KILN_PLOT_AXIS_TICKS)
        return;
    snprintf(axis->labels[axis->n_ticks], KILN_PLOT_AXIS_LABEL, "%.6g", value);
    axis->ticks[axis->n_ticks++] = value;
}

/* Powers of ten, every one or every few; between them when there are hardly two. */
static void log_ticks(KilnPlotAxis *axis, int about)
{
    double first = floor(log10(axis->min) + 1e-9), last = ceil(log10(axis->max) - 1e-9);
    double stride = ceil((last - first) / (double)about);

    if (last - first < 2.0) {
        for (double power = first; power <= last; power += 1.0)
            for (int i = 0; i < 3; i++) {
                static const double factors[] = { 1.0, 2.0, 5.0 };
                double value = factors[i] * pow(10.0, power);

                if (value >= axis->min * (1.0 - 1e-9) && value <= axis->max * (1.0 + 1e-9))
                    add_tick(axis, value);
            }
        return;
    }
    for (double power = first; power <= last; power += stride)
        if (pow(10.0, power) >= axis->min * (1.0 - 1e-9) &&
            pow(10.0, power) <= axis->max * (1.0 + 1e-9))
            add_tick(axis, pow(10.0, power));
}

void kiln_plot_axis_finish(KilnPlotAxis *axis, int about)
{
    axis->n_ticks = 0;
    if (isnan(axis->min)) {
        axis->min = axis->log ? 1.0 : 0.0;
        axis->max = axis->log ? 10.0 : 1.0;
    }
    if (axis->log) {
        if (axis->max < axis->min * 1.05) {
            axis->min /= 2.0;
            axis->max *= 2.0;
        }
        log_ticks(axis, about);
        return;
    }
    /* A constant stands in the middle; far from zero the ends must still differ as doubles. */
    if (axis->max - axis->min <= 1e-9 * fmax(fabs(axis->min), fabs(axis->max))) {
        double room = axis->min != 0.0 ? 0.1 * fabs(axis->min) : 0.5;

        axis->min -= room;
        axis->max += room;
    }
    double step = round_step((axis->max - axis->min) / (double)about);
    if (axis->whole && step < 1.0)
        step = 1.0;
    double first = ceil(axis->min / step - 1e-9);
    for (double i = first; i * step <= axis->max + 1e-9 * step; i += 1.0)
        add_tick(axis, i * step + 0.0);
}
