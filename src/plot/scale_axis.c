/* Axes of scales. */
#include "plot/scale_axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Copy a name, cut to `width` characters of UTF-8. */
static void copy_name(char ret[KILN_PLOT_AXIS_LABEL], const char *name)
{
    enum { WIDTH = 14 };
    size_t n = 0;

    for (int columns = 0; name[n] != '\0' && n + 4 < KILN_PLOT_AXIS_LABEL; n++)
        if (((unsigned char)name[n] & 0xC0) != 0x80 && ++columns > WIDTH)
            break;
    while (((unsigned char)name[n] & 0xC0) == 0x80) /* no character is cut in half */
        n--;
    snprintf(ret, KILN_PLOT_AXIS_LABEL, "%.*s%s", (int)n, name, name[n] != '\0' ? "..." : "");
}

/* A tick for each category, or for every few of many. */
static void name_ticks(const KilnPlotScale *scale, KilnPlotAxis *axis)
{
    const size_t stride = (scale->n_names + KILN_PLOT_AXIS_TICKS - 1) / KILN_PLOT_AXIS_TICKS;

    axis->min = -0.5;
    axis->max = (double)scale->n_names - 0.5;
    for (size_t i = 0; i < scale->n_names; i += stride) {
        copy_name(axis->labels[axis->n_ticks], scale->names[i]);
        axis->ticks[axis->n_ticks++] = (double)i;
    }
}

void kiln_plot_scale_axis(const KilnPlotScale *scale, size_t n, int about, KilnPlotAxis *ret)
{
    *ret = (KilnPlotAxis) { .log = scale->log, .whole = scale->whole, .min = NAN, .max = NAN };
    if (scale->names != NULL) {
        name_ticks(scale, ret);
        return;
    }
    for (size_t i = 0; i < n; i++)
        kiln_plot_axis_include(ret, scale->values[i]);
    if (!isnan(ret->min) && ret->log) {
        const double factor = pow(ret->max / ret->min, 0.05);

        ret->min /= factor;
        ret->max *= factor;
    } else if (!isnan(ret->min)) {
        const double air = 0.05 * (ret->max - ret->min);

        ret->min -= air;
        ret->max += air;
    }
    kiln_plot_axis_finish(ret, about);
}

double kiln_plot_scale_spread(const KilnPlotScale *scale, size_t point)
{
    enum { PLACES = 9 };

    if (scale->names == NULL)
        return 0.0;
    return 0.36 * ((double)(point * 4 % PLACES) / (PLACES - 1) - 0.5);
}
