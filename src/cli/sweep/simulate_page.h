/* A simulated sweep on the screen. */
#ifndef KILN_CLI_SWEEP_SIMULATE_PAGE_H
#define KILN_CLI_SWEEP_SIMULATE_PAGE_H

#include "sweep/simulate/simulate_sweep.h"

/* A loss as the value that it is of. */
double kiln_simulated_value(const KilnSimulatedSweep *sweep, double loss);
/* Print one run with its best trial, with `decisions` also what happened, or the medians of several
 * runs. */
KilnStatus kiln_simulated_print(const KilnSimulatedSweep *sweep, const char *source, bool decisions,
                                KilnError *err);

#endif
