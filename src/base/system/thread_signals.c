/* Which signals worker threads leave to the main thread. */
#include "base/system/thread_signals.h"

#include <stddef.h>

int kiln_signals_block(sigset_t *ret_before)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    sigset_t set;

    sigfillset(&set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&set, faults[i]);
    return pthread_sigmask(SIG_SETMASK, &set, ret_before);
}
