/* Signals of threads that work beside the one that runs the loop. */
#ifndef KILN_BASE_SYSTEM_THREAD_SIGNALS_H
#define KILN_BASE_SYSTEM_THREAD_SIGNALS_H

#include <signal.h>

/* Block, in this thread and those that it starts, all signals but those of its own faults: a fault
 * that is blocked ends the process before a handler can say where it was. `ret_before` for
 * pthread_sigmask(SIG_SETMASK). Returns an errno, or 0. */
int kiln_signals_block(sigset_t *ret_before);

#endif
