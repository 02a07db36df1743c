/* Reports of a job's process to its launcher: one JSON object a line. */
#ifndef KILN_SWEEP_JOB_REPORT_H
#define KILN_SWEEP_JOB_REPORT_H

#include "sweep/jobs.h"
#include "sweep/sweep.h"

struct KilnReporter {
    int fd;
    const char *metric; /* shown as progress */
};

/* Read bytes that the job's process wrote; lines that are no report are skipped. */
void kiln_report_read(KilnArena *arena, KilnJob *job, const char *bytes, size_t size);

#endif
