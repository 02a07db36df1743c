/* An axis: from values to pixels, with round numbers along it. No drawing. */
#ifndef KILN_PLOT_AXIS_H
#define KILN_PLOT_AXIS_H

#include "kiln/base.h"

enum { KILN_AXIS_TICKS = 16, KILN_AXIS_LABEL = 24 };

typedef struct KilnAxis {
    bool log;
    double min, max; /* values at its ends; of a logarithmic one, too */
    double from, to; /* pixels */
    size_t n_ticks;
    double ticks[KILN_AXIS_TICKS];
    char labels[KILN_AXIS_TICKS][KILN_AXIS_LABEL];
} KilnAxis;

/* Can the value be shown? */
bool kiln_axis_takes(const KilnAxis *axis, double value);
/* Widen min..max (both NAN: nothing yet) so that the value is in it. */
void kiln_axis_include(KilnAxis *axis, double value);
/* Ends and about `about` ticks at round values; an axis without values becomes 0..1 (1..10). */
void kiln_axis_finish(KilnAxis *axis, int about);
double kiln_axis_pixel(const KilnAxis *axis, double value);

#endif
