/* The launcher's end of jobs on other machines: prepares them, and reads and answers what they
 * write to their mailboxes (sweep/remote/mailbox.h). */
#ifndef KILN_SWEEP_REMOTE_REMOTE_LAUNCH_H
#define KILN_SWEEP_REMOTE_REMOTE_LAUNCH_H

#include "sweep/sweep_state.h"

/* What was read of a job's mailbox. */
typedef struct KilnRemoteJob {
    int64_t read; /* bytes of its reports */
    int64_t answered;
    double begun; /* when its process began, by the clock of its machine */
    bool over;
    KilnJobEnd end;
} KilnRemoteJob;

typedef struct KilnRemote {
    KilnSweep *sweep;
    const KilnLaunch *launch;
    KilnRemoteJob *jobs; /* by number */
    size_t capacity;
    const char **argv;
    double beat; /* when the last heartbeat was written, by kiln_clock; 0: never */
} KilnRemote;

/* KilnLaunch's functions of the same names. */
KilnStatus kiln_remote_command(KilnRemote *remote, size_t number, const char *const **ret_argv,
                               KilnError *err);
KilnStatus kiln_remote_attach(KilnRemote *remote, size_t number, KilnError *err);
KilnStatus kiln_remote_collect(KilnRemote *remote, size_t number, KilnJobNews *ret, KilnError *err);
/* The job waits to run again: how its last process ended is done with. */
void kiln_remote_requeued(KilnRemote *remote, size_t number);
/* Accepts a zeroed one. */
void kiln_remote_release(KilnRemote *remote);

/* request->command with the folder `dir`, NULL-terminated; the list is allocated. NULL when memory
 * is out. */
const char **kiln_remote_argv(const KilnSweepRequest *request, const char *dir);

#endif
