/* A job for several threads. */
#ifndef KILN_BASE_SYSTEM_THREADS_H
#define KILN_BASE_SYSTEM_THREADS_H

#include <stddef.h>

/* Call `run` in `n` threads, this one included, and wait for all. Thread i gets the argument
 * `first` + i * `stride` bytes. The others block all signals. A thread that cannot start is left
 * out, so the threads must share the work as they take it. */
void kiln_run_in_threads(size_t n, void *(*run)(void *), void *first, size_t stride);

#endif
