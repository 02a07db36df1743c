/* Shortens how long idle OpenMP threads spin. */
#define _GNU_SOURCE
#include "cli/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Enough for the pauses between the kernels of a step. GNU's default is about 10 ms; on a shared
 * machine every kernel would wait for a core that a spinning thread holds. */
static const char spin_count[] = "3000";

void kiln_threads_settle(char **argv)
{
    (void)prctl(PR_SET_NAME, program_invocation_short_name); /* exec names the process "exe" */
    if (getenv("GOMP_SPINCOUNT") != NULL || getenv("OMP_WAIT_POLICY") != NULL ||
        setenv("GOMP_SPINCOUNT", spin_count, 1) != 0)
        return;
    execv("/proc/self/exe", argv); /* if it fails, training is only slower */
}
