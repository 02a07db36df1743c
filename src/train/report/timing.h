/* The times that a run measures of itself, for the summary, the profile and the live status. */
#ifndef KILN_TRAIN_REPORT_TIMING_H
#define KILN_TRAIN_REPORT_TIMING_H

#include "kiln/base.h"

/* Training steps measured so far; the newest KILN_STEP_TIMES are kept. */
enum { KILN_STEP_TIMES = 1 << 15 };

/* Times are seconds, points in time are from kiln_clock. */
typedef struct KilnTiming {
    double start;           /* of the run */
    double loop_s;          /* spent in training batches, data and hooks included */
    double waited_s;        /* of that, waiting for data */
    double copied_s;        /* training paused while checkpoints were copied, */
    double written_s;       /* and until an earlier one was on disk */
    int64_t copies;         /* checkpoints */
    int64_t samples;        /* trained in loop_s */
    double train_start;     /* of this session; 0: training has not begun */
    double last_validation; /* when the last one ended */
    double phase_start;     /* of the current loop */
    int64_t phase_samples;
    float *step_ms;
    int64_t steps; /* measured, kept or not */
} KilnTiming;

#endif
