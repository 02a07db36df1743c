/* A thread that reports a request to stop at once, while a batch still runs. It does nothing else:
 * the loops handle the request between two batches (train/loop/signals.c). */
#include "train/loop/stop_monitor.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "train/trainer.h"

enum { POLL_MS = 50, STACK_BYTES = 256 << 10 };

/* Wait POLL_MS, or less when the monitor closes; with the lock held. */
static void wait_for_poll(KilnStopMonitor *monitor)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += POLL_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_cond_timedwait(&monitor->wake, &monitor->lock, &until);
}

static void report(KilnTrainer *trainer, int number)
{
    const char *signal = number != SIGINT ? kiln_signal_name(number) : NULL;
    /* Only the first one counts: the system repeats these, and no signal is a program's request. */
    const bool once = number == SIGXCPU || number == SIGPIPE ||
                      (signal == NULL && number != SIGINT);
    char text[128];

    snprintf(text, sizeof(text), "%s%sstopping after this batch%s%s", signal != NULL ? signal : "",
             signal != NULL ? ": " : "", trainer->stop_monitor.saves ? ", saving" : "",
             once               ? ""
             : number == SIGINT ? "; press again to end at once"
                                : "; a second one ends at once");
    kiln_output_notice(&trainer->output, text);
}

static void *run(void *arg)
{
    KilnTrainer *trainer = arg;
    KilnStopMonitor *monitor = &trainer->stop_monitor;
    int number = 0;

    pthread_mutex_lock(&monitor->lock);
    while (!monitor->closing && (number = *trainer->env->stop) == 0)
        wait_for_poll(monitor);
    const bool stops = !monitor->closing;
    pthread_mutex_unlock(&monitor->lock);
    if (stops)
        report(trainer, number);
    return NULL;
}

/* The thread blocks all signals, so that they interrupt the waits of other threads. Its stack is
 * small because the address space may be limited. */
static bool start(KilnTrainer *trainer)
{
    sigset_t all, before;
    pthread_attr_t small;

    sigfillset(&all);
    if (pthread_attr_init(&small) != 0)
        return false;
    bool started = pthread_attr_setstacksize(&small, STACK_BYTES) == 0 &&
                   pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
    if (started) {
        started = pthread_create(&trainer->stop_monitor.thread, &small, run, trainer) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&small);
    return started;
}

void kiln_stop_monitor_begin(KilnTrainer *trainer, bool saves)
{
    KilnStopMonitor *monitor = &trainer->stop_monitor;
    pthread_condattr_t monotonic;

    if (trainer->env->stop == NULL || monitor->running || pthread_condattr_init(&monotonic) != 0)
        return;
    monitor->saves = saves;
    monitor->closing = false;
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    const bool waits = pthread_cond_init(&monitor->wake, &monotonic) == 0;
    pthread_condattr_destroy(&monotonic);
    if (!waits || pthread_mutex_init(&monitor->lock, NULL) != 0)
        return;
    monitor->running = start(trainer);
}

void kiln_stop_monitor_end(KilnTrainer *trainer)
{
    KilnStopMonitor *monitor = &trainer->stop_monitor;

    if (!monitor->running)
        return;
    pthread_mutex_lock(&monitor->lock);
    monitor->closing = true;
    pthread_cond_signal(&monitor->wake);
    pthread_mutex_unlock(&monitor->lock);
    pthread_join(monitor->thread, NULL);
    pthread_cond_destroy(&monitor->wake);
    pthread_mutex_destroy(&monitor->lock);
    monitor->running = false;
}
