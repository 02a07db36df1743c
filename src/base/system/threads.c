#include "base/system/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/system/thread_signals.h"

void kiln_run_in_threads(size_t n, void *(*run)(void *), void *first, size_t stride)
{
    pthread_t *threads = n > 1 ? calloc(n, sizeof(*threads)) : NULL;
    sigset_t before;
    size_t started = 1;

    const bool blocked = threads != NULL && kiln_signals_block(&before) == 0;
    while (blocked && started < n &&
           pthread_create(&threads[started], NULL, run, (char *)first + started * stride) == 0)
        started++;
    if (blocked)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)run(first);
    for (size_t i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}
