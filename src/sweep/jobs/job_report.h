/* Reports of a job's process to its launcher: one JSON object a line, by a socket, or by a file
 * (sweep/remote/mailbox.h). */
#ifndef KILN_SWEEP_JOB_REPORT_H
#define KILN_SWEEP_JOB_REPORT_H

#include "sweep/jobs/jobs.h"
#include "sweep/sweep.h"

struct KilnReporter {
    int fd;                    /* a socket, or the mailbox's file; -1: reports go nowhere */
    const char *metric;        /* that jobs are compared by */
    const KilnObjective *more; /* and by these, too */
    size_t n_more;
    bool asks;                   /* wait for the sweeper's answer to progress */
    struct KilnMailbox *mailbox; /* answers come by it; NULL: by the socket */
};

#define KILN_REPLY_CONTINUE "continue\n"
#define KILN_REPLY_STOP "stop\n"

/* Read bytes that the job's process wrote; lines that are no report are skipped. New values are
 * appended to job->reports. Does the job wait for a reply? */
bool kiln_report_read(KilnArena *arena, KilnJob *job, const char *bytes, size_t size);

#endif
