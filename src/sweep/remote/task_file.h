/* What the process of a job on another machine needs to know, in a file of the sweep's folder. */
#ifndef KILN_SWEEP_REMOTE_TASK_FILE_H
#define KILN_SWEEP_REMOTE_TASK_FILE_H

#include "sweep/sweep_state.h"

typedef struct KilnTaskFile {
    KilnSweepTask task;        /* without its report */
    const KilnObjective *more; /* metrics by which jobs are compared, too */
    size_t n_more;
    bool asks;       /* it waits for answers to its reports */
    KilnArena arena; /* has the texts */
} KilnTaskFile;

/* Write the file of a frozen job. */
KILN_NODISCARD KilnStatus kiln_task_file_write(const KilnSweep *sweep, size_t number,
                                               KilnError *err);
/* Read the file of job `number` of the sweep in the folder `sweep` (absolute). */
KILN_NODISCARD KilnStatus kiln_task_file_read(const char *sweep, size_t number, KilnTaskFile *ret,
                                              KilnError *err);
/* Accepts a zeroed one. */
void kiln_task_file_release(KilnTaskFile *file);

#endif
