/* How a job and a launcher on different machines talk: by files in the sweep's folder, which both
 * machines have.
 *
 *  <job>/.kiln/reports.jsonl   what the job reports, one JSON object a line, appended: that a
 *                              process begins, its progress, errors, and that it ends; and the
 *                              launcher's mark at each submission. The process that runs the job
 *                              has it locked
 *  <job>/.kiln/answer          the answer to the last report that asks: "<number> stop"
 *  <sweep>/.kiln/launcher      is rewritten while a launcher lives
 *  <sweep>/.kiln/jobs/<n>.json what the process of job n needs to know */
#ifndef KILN_SWEEP_REMOTE_MAILBOX_H
#define KILN_SWEEP_REMOTE_MAILBOX_H

#include <sys/types.h>

#include "kiln/base.h"

#define KILN_REPORTS_FILE ".kiln/reports.jsonl"
#define KILN_ANSWER_FILE ".kiln/answer"
#define KILN_HEARTBEAT_FILE ".kiln/launcher"

/* Seconds between two heartbeats, and after how many without one a launcher counts as dead. */
static const double kiln_heartbeat_s = 4.0, kiln_heartbeat_patience_s = 30.0;

/* The job's end. */
typedef struct KilnMailbox {
    int fd; /* reports, for appending; -1: closed */
    char *answer, *heartbeat;
    int64_t silent; /* the heartbeat after which no other came; -1: none */
    bool stopped;   /* an answer was to stop */
} KilnMailbox;

/* Open the mailbox of the job in the folder `dir`, of the sweep in `sweep`; both absolute. */
KILN_NODISCARD KilnStatus kiln_mailbox_open(const char *sweep, const char *dir, KilnMailbox *ret,
                                            KilnError *err);
/* Accepts a zeroed one. */
void kiln_mailbox_release(KilnMailbox *mailbox);
/* Wait until this process is the only one that runs the job: one that Slurm lost may run on while
 * the next one begins. Held until the mailbox is released, also by the children of the process. */
KILN_NODISCARD KilnStatus kiln_mailbox_own(const KilnMailbox *mailbox, KilnError *err);
/* The number of a report that is written next; numbers rise. */
int64_t kiln_mailbox_number(const KilnMailbox *mailbox);
/* Wait for the answer to the report with that number: is it to stop? Continue when no launcher
 * lives: then jobs do not wait for one. */
bool kiln_mailbox_wait(KilnMailbox *mailbox, int64_t number);

#endif
