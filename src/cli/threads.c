/* How long idle threads of the OpenMP library wait by spinning. */
#define _GNU_SOURCE
#include "cli/screen/screen.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Enough for the pauses between the kernels of a step. GNU's own default is
 * some ten milliseconds, which on a machine that others use too makes every
 * kernel wait for a core that a spinning thread holds. */
static const char spin_count[] = "3000";

/* The library reads its settings before main, so a process can only give them
 * to its successor. */
void kiln_screen_settle_threads(char **argv)
{
    (void)prctl(PR_SET_NAME, program_invocation_short_name); /* a successor is named "exe" */
    if (getenv("GOMP_SPINCOUNT") != NULL || getenv("OMP_WAIT_POLICY") != NULL ||
        setenv("GOMP_SPINCOUNT", spin_count, 1) != 0)
        return;
    execv("/proc/self/exe", argv); /* where that fails, training is only slower */
}
