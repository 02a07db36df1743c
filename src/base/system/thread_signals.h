/* Signal masks of worker threads. */
#ifndef KILN_BASE_SYSTEM_THREAD_SIGNALS_H
#define KILN_BASE_SYSTEM_THREAD_SIGNALS_H

#include <signal.h>

/* Block all signals in this thread and those that it starts, except those of its own faults: a
 * blocked fault would end the process before a handler can report it. `ret_before` is for
 * pthread_sigmask(SIG_SETMASK). Returns an errno, or 0. */
int kiln_signals_block(sigset_t *ret_before);

#endif
