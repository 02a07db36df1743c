/* Measures a division: so many processes train the same job at the same time, and write nothing. */
#ifndef KILN_SWEEP_SPEED_SPEED_PROCESSES_H
#define KILN_SWEEP_SPEED_SPEED_PROCESSES_H

#include "sweep/sweep_state.h"

/* Set steps_per_s of the division, or why it failed, by training job `number`, whose config this
 * is. *ret_peak: bytes of memory that the largest process took. False: the user has stopped the
 * sweep. */
bool kiln_speed_measure(KilnSweep *sweep, KilnConfig *config, size_t number, KilnDivision *division,
                        int64_t *ret_peak);

#endif
