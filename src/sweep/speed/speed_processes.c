/* Runs the processes that measure a division. They build what they train each for itself, wait for
 * each other, and then train for a second at the same time. What they find is in shared memory. */
#define _GNU_SOURCE /* wait4, sigabbrev_np, prctl's constants */
#include "sweep/speed/speed_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double measured_seconds = 1.0;
static const struct timespec pause_of_child = { .tv_nsec = 1000000 },
                             pause_of_parent = { .tv_nsec = 5000000 };

/* What a process tells its parent. */
typedef struct Answer {
    _Atomic bool ready, answered;
    double steps_per_s;
    char error[KILN_DIVISION_REASON]; /* "": none */
} Answer;

/* What the processes share. */
struct KilnSpeedPage {
    _Atomic bool go;
    Answer answers[];
};

typedef struct Processes {
    struct KilnSpeedPage *page;
    pid_t *pids; /* 0: it has ended */
    size_t count, running;
    int64_t peak;
    char *failed; /* of the division: KILN_DIVISION_REASON bytes */
} Processes;

/* ---- In a process --------------------------------------------------------------------------- */

void kiln_speed_wait(const KilnSpeedTask *task)
{
    task->page->answers[task->process].ready = true;
    while (!task->page->go)
        nanosleep(&pause_of_child, NULL);
}

static bool be_silent(void)
{
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    return nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
           dup2(nothing, STDERR_FILENO) >= 0;
}

static KilnStatus train(KilnSweep *sweep, const KilnSpeedTask *task, size_t number, double *ret,
                        KilnError *err)
{
    KilnJobErrors warnings = { .items = NULL };

    if (!be_silent())
        return kiln_error_errno(err, "/dev/null");
    KilnStatus status = kiln_sweep_share_threads(sweep, task->config, number, &warnings, err);
    kiln_job_errors_release(&warnings);
    return status >= 0 ? sweep->request->measure(sweep->request->ctx, task, ret, err) : status;
}

/* Never returns. The process is killed when its parent ends. */
static void be_child(KilnSweep *sweep, const KilnSpeedTask *task, size_t number,
                     const KilnDivision *division, pid_t parent)
{
    Answer *answer = &task->page->answers[task->process];
    KilnError err = { 0 };

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(KILN_JOB_EXIT_FAILED);
    (void)setpgid(0, 0);
    sweep->division = *division; /* of this process alone */
    if (train(sweep, task, number, &answer->steps_per_s, &err) < 0)
        snprintf(answer->error, sizeof(answer->error), "%.*s", (int)strcspn(err.text, "\n"),
                 err.text);
    answer->answered = true;
    _exit(KILN_JOB_EXIT_OK);
}

/* ---- In their parent ------------------------------------------------------------------------ */

static void fail(const Processes *processes, const char *why)
{
    if (processes->failed[0] == '\0')
        snprintf(processes->failed, KILN_DIVISION_REASON, "%s", why);
}

static bool allocate(Processes *processes, size_t n)
{
    const size_t bytes = sizeof(*processes->page) + n * sizeof(Answer);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    processes->pids = calloc(n, sizeof(*processes->pids));
    processes->page = page != MAP_FAILED ? page : NULL;
    return processes->pids != NULL && processes->page != NULL;
}

static void release(Processes *processes, size_t n)
{
    if (processes->page != NULL)
        munmap(processes->page, sizeof(*processes->page) + n * sizeof(Answer));
    free(processes->pids);
}

static void start(Processes *processes, KilnSweep *sweep, KilnConfig *config, size_t number,
                  const KilnDivision *division)
{
    const KilnSpeedTask task = {
        .config = config,
        .overrides = sweep->jobs.items[number].overrides,
        .seconds = measured_seconds,
        .page = processes->page,
        .process = processes->count,
    };
    const pid_t parent = getpid(), pid = fork();

    if (pid == 0)
        be_child(sweep, &task, number, division, parent);
    if (pid < 0) {
        fail(processes, strerror(errno));
        return;
    }
    (void)setpgid(pid, pid);
    processes->pids[processes->count++] = pid;
    processes->running++;
}

/* A process that has ended: did it answer? */
static void check_end(const Processes *processes, size_t i, int status)
{
    const Answer *answer = &processes->page->answers[i];
    char why[64];

    if (answer->answered && answer->error[0] != '\0')
        fail(processes, answer->error);
    if (answer->answered)
        return;
    if (WIFSIGNALED(status))
        snprintf(why, sizeof(why), "killed by SIG%s",
                 sigabbrev_np(WTERMSIG(status)) != NULL ? sigabbrev_np(WTERMSIG(status)) : "?");
    else
        snprintf(why, sizeof(why), "exit status %d", WEXITSTATUS(status));
    fail(processes, why);
}

static void reap(Processes *processes)
{
    for (size_t i = 0; i < processes->count; i++) {
        struct rusage usage = { 0 };
        int status = 0;

        if (processes->pids[i] == 0 ||
            wait4(processes->pids[i], &status, WNOHANG, &usage) != processes->pids[i])
            continue;
        if ((int64_t)usage.ru_maxrss * 1024 > processes->peak)
            processes->peak = (int64_t)usage.ru_maxrss * 1024;
        (void)kill(-processes->pids[i], SIGKILL); /* what it may have started itself */
        check_end(processes, i, status);
        processes->pids[i] = 0;
        processes->running--;
    }
}

static void kill_all(const Processes *processes)
{
    for (size_t i = 0; i < processes->count; i++)
        if (processes->pids[i] != 0)
            (void)kill(-processes->pids[i], SIGKILL);
}

static bool all_ready(const Processes *processes)
{
    for (size_t i = 0; i < processes->count; i++)
        if (!processes->page->answers[i].ready && !processes->page->answers[i].answered)
            return false;
    return true;
}

/* False: `stop` was set. */
static bool wait_for_all(Processes *processes, const volatile int *stop)
{
    bool stopped = false;

    while (processes->running > 0) {
        reap(processes);
        stopped |= stop != NULL && *stop != 0;
        if (processes->failed[0] != '\0' || stopped)
            kill_all(processes);
        else if (!processes->page->go && all_ready(processes))
            processes->page->go = true;
        nanosleep(&pause_of_parent, NULL);
    }
    return !stopped;
}

bool kiln_speed_measure(KilnSweep *sweep, KilnConfig *config, size_t number, KilnDivision *division,
                        int64_t *ret_peak)
{
    Processes processes = { .failed = division->failed };

    if (!allocate(&processes, division->n_jobs))
        fail(&processes, "out of memory");
    fflush(NULL); /* or all processes would write what is buffered */
    while (processes.failed[0] == '\0' && processes.count < division->n_jobs)
        start(&processes, sweep, config, number, division);
    const bool whole = wait_for_all(&processes, sweep->request->stop);
    if (division->failed[0] == '\0') {
        division->steps_per_s = 0.0;
        for (size_t i = 0; i < processes.count; i++)
            division->steps_per_s += processes.page->answers[i].steps_per_s;
    }
    *ret_peak = processes.peak;
    release(&processes, division->n_jobs);
    return whole;
}
