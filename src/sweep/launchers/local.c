/* Runs jobs on this machine, some at a time, each a forked process in its own process group, with
 * limits. The launcher starts no threads, so that a fork loses none. */
#define _GNU_SOURCE /* sigabbrev_np, prctl's constants */
#include "kiln.h"
#include "kiln/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 100, MAX_AT_ONCE = 1024, REPORT_SIZE = 4096 };

typedef struct Opts {
    int64_t n_jobs;
    double timeout, grace;
    int64_t memory, nice;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, n_jobs, "1", -1, MAX_AT_ONCE,
                   "jobs that run at a time; 0: as many as a short measurement finds fastest; -1: "
                   "one for each processor"),
    KILN_FIELD_DURATION(Opts, timeout, "0", 0.0, 1e9,
                        "a job that runs longer is stopped; 0: no limit"),
    KILN_FIELD_DURATION(Opts, grace, "30s", 0.0, 1e6,
                        "time to stop after SIGTERM before a job is killed"),
    KILN_FIELD_SIZE(Opts, memory, "0", 0, 1e15, "memory that a job may take; 0: no limit"),
    KILN_FIELD_I64(Opts, nice, "0", 0, 19, "added to the niceness of jobs"),
    KILN_FIELD_END,
};

typedef struct Slot {
    pid_t pid; /* 0: free */
    size_t job;
    int report;                 /* socket to the job; -1: closed */
    double started, terminated; /* when SIGTERM was sent; 0: not */
    bool timed_out, killed;
} Slot;

typedef struct State {
    Slot *slots;
    struct pollfd *polls;
    size_t n_slots, running;
    KilnUsage before; /* what there was before jobs ran */
    int64_t peak;     /* the most memory of its own that a job has taken, or wanted */
    bool holds;       /* a job waits until there is room for it */
    size_t held;
} State;

static size_t n_jobs(const KilnInstance *self)
{
    const Opts *opts = kiln_opts(self);

    if (opts->n_jobs >= 0)
        return (size_t)opts->n_jobs;
    const size_t n = kiln_processors();
    return n < MAX_AT_ONCE ? n : MAX_AT_ONCE;
}

/* ---- The job's process ---------------------------------------------------------------- */

static void set_limits(const Opts *opts)
{
    struct rlimit limit;

    if (opts->memory > 0 && getrlimit(RLIMIT_DATA, &limit) == 0) {
        limit.rlim_cur = (rlim_t)opts->memory;
        (void)setrlimit(RLIMIT_DATA, &limit);
    }
    if (opts->nice > 0)
        (void)setpriority(PRIO_PROCESS, 0, (int)opts->nice);
}

/* Never returns. The process is killed when its launcher ends. */
static void become_job(const Opts *opts, const State *state, const KilnLaunch *launch, size_t job,
                       int report, pid_t launcher)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(KILN_JOB_EXIT_FAILED);
    (void)setpgid(0, 0);
    sigaction(SIGPIPE, &ignore, NULL);
    for (size_t i = 0; i < state->n_slots; i++)
        if (state->slots[i].pid != 0 && state->slots[i].report >= 0)
            close(state->slots[i].report);
    set_limits(opts);
    int status = launch->run(launch->ctx, job, report);
    fflush(NULL);
    _exit(status);
}

/* Sockets that keep messages whole. A full one must not block: what does not fit is lost. */
static bool make_sockets(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    return true;
}

/* Fork the job's process, from one that has its data if there is one. */
static KilnStatus fork_job(KilnInstance *self, const KilnLaunch *launch, size_t job,
                           const int ends[2], int64_t *ret_pid, KilnError *err)
{
    const pid_t launcher = getpid();
    KilnStatus status = launch->fork_loaded(launch->ctx, job, ends, ret_pid, err);

    if (status < 0 || *ret_pid > 0)
        return status;
    fflush(NULL); /* or both processes would write what is buffered */
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        become_job(kiln_opts(self), kiln_state(self), launch, job, ends[1], launcher);
    }
    *ret_pid = pid;
    return pid > 0 ? KILN_OK : kiln_error_errno(err, "process for a job");
}

static KilnStatus start(KilnInstance *self, const KilnLaunch *launch, Slot *slot, size_t job,
                        KilnError *err)
{
    State *state = kiln_state(self);
    int64_t forked = 0;
    int ends[2];

    if (!make_sockets(ends))
        return kiln_error_errno(err, "socket to a job");
    KilnStatus status = fork_job(self, launch, job, ends, &forked, err);
    close(ends[1]);
    if (status < 0) {
        close(ends[0]);
        return status;
    }
    const pid_t pid = (pid_t)forked;
    (void)setpgid(pid, pid);
    *slot = (Slot) { .pid = pid, .job = job, .report = ends[0], .started = kiln_clock() };
    state->running++;
    return launch->started(launch->ctx, job, (int64_t)pid, err);
}

/* ---- How a job ended --------------------------------------------------------------------- */

static void name_signal(int number, char *buf, size_t size)
{
    const char *name = sigabbrev_np(number);

    if (name != NULL)
        snprintf(buf, size, "SIG%s", name);
    else
        snprintf(buf, size, "signal %d", number);
}

/* "2GiB": in the largest unit that gives a whole number. */
static void format_size(int64_t bytes, char *buf, size_t size)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    size_t unit = 0;

    while (unit + 1 < KILN_COUNT(units) && bytes > 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(buf, size, "%lld%s", (long long)bytes, units[unit]);
}

/* Was the signal sent by another program or the system, rather than by a crash? */
static bool is_from_outside(int number)
{
    return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP;
}

static KilnJobEnd end_by_signal(const Opts *opts, int number, bool expected)
{
    KilnJobEnd end = { .status = expected                  ? KILN_JOB_INTERRUPTED
                                 : is_from_outside(number) ? KILN_JOB_KILLED
                                                           : KILN_JOB_FAILED };
    const char *hint = "";
    char name[32];

    name_signal(number, name, sizeof(name));
    if (!expected && number == SIGKILL)
        hint = "; the system does that when memory runs out";
    else if (!expected && opts->memory > 0)
        hint = "; it may have reached kiln.launcher.memory";
    snprintf(end.reason, sizeof(end.reason), "%s by %s%s",
             expected ? "did not stop in kiln.launcher.grace; killed" : "killed", name, hint);
    return end;
}

static KilnJobEnd end_of(const Opts *opts, const Slot *slot, int status)
{
    KilnJobEnd end = { .status = KILN_JOB_OK };
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    char limit[32];

    if (code == KILN_JOB_EXIT_OK)
        return end;
    if (slot->timed_out) {
        end.status = KILN_JOB_TIMEOUT;
        snprintf(end.reason, sizeof(end.reason), "timeout after %.4gs%s", opts->timeout,
                 slot->killed ? "; it did not stop and was killed" : "");
    } else if (WIFSIGNALED(status)) {
        end = end_by_signal(opts, WTERMSIG(status), slot->killed);
    } else if (code == KILN_JOB_EXIT_NOMEM && opts->memory > 0) {
        end.status = KILN_JOB_FAILED;
        format_size(opts->memory, limit, sizeof(limit));
        snprintf(end.reason, sizeof(end.reason), "out of memory, limit %s", limit);
    } else if (code > KILN_JOB_EXIT_SIGNAL) {
        end.status = KILN_JOB_INTERRUPTED;
        snprintf(end.reason, sizeof(end.reason), "stopped with a checkpoint");
    } else {
        end.status = KILN_JOB_FAILED;
        snprintf(end.reason, sizeof(end.reason), "exit status %d", code);
    }
    return end;
}

static KilnStatus read_report(const KilnLaunch *launch, Slot *slot, KilnError *err)
{
    char bytes[REPORT_SIZE];
    KilnStatus status = KILN_OK;
    ssize_t n = 0;

    while (slot->report >= 0 && status >= 0 && (n = read(slot->report, bytes, sizeof(bytes))) > 0) {
        const char *reply = "";

        status = launch->reported(launch->ctx, slot->job, bytes, (size_t)n, &reply, err);
        if (status >= 0 && *reply != '\0')
            (void)!send(slot->report, reply, strlen(reply), MSG_NOSIGNAL);
    }
    if (slot->report >= 0 && status >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
        close(slot->report);
        slot->report = -1;
    }
    return status;
}

/* Bytes that a job will take of its own; 0: not known. */
static int64_t memory_of(const KilnLaunch *launch, size_t job)
{
    const int64_t all = launch->needs(launch->ctx, job).memory;
    const int64_t own = all - launch->shared(launch->ctx, job);

    return all > 0 && own < 1 ? 1 : own < 0 ? 0 : own;
}

/* If the job has ended, report that and free its slot. */
static KilnStatus reap(KilnInstance *self, const KilnLaunch *launch, Slot *slot, KilnError *err)
{
    State *state = kiln_state(self);
    size_t job = slot->job;
    struct rusage usage = { 0 };
    int status = 0;

    if (wait4(slot->pid, &status, WNOHANG, &usage) != slot->pid)
        return KILN_OK;
    const int64_t own = (int64_t)usage.ru_maxrss * 1024 - launch->shared(launch->ctx, job);
    const int64_t most = own > memory_of(launch, job) ? own : memory_of(launch, job);
    if (most > state->peak)
        state->peak = most;
    KilnStatus read = read_report(launch, slot, err);
    if (slot->report >= 0)
        close(slot->report);
    KilnJobEnd end = end_of(kiln_opts(self), slot, status);
    (void)kill(-slot->pid, SIGKILL); /* what the job may have started itself */
    *slot = (Slot) { .report = -1 };
    state->running--;
    return read >= 0 ? launch->ended(launch->ctx, job, &end, err) : read;
}

/* ---- Stopping ----------------------------------------------------------------------------- */

static void terminate(Slot *slot, double time)
{
    if (slot->terminated > 0.0)
        return;
    slot->terminated = time;
    (void)kill(slot->pid, SIGTERM);
}

static void enforce_limits(const Opts *opts, Slot *slot, bool stop)
{
    double time = kiln_clock();

    if (opts->timeout > 0.0 && slot->terminated == 0.0 && time - slot->started >= opts->timeout) {
        slot->timed_out = true;
        terminate(slot, time);
    }
    if (stop)
        terminate(slot, time);
    if (slot->terminated > 0.0 && !slot->killed && time - slot->terminated >= opts->grace) {
        slot->killed = true;
        (void)kill(-slot->pid, SIGKILL);
    }
}

/* ---- The loop ------------------------------------------------------------------------------- */

/* Wait until a job reports or ends (which closes its socket), or for a tick. */
static void wait_for_reports(State *state)
{
    nfds_t n = 0;
    bool closed = false;

    for (size_t i = 0; i < state->n_slots; i++) {
        if (state->slots[i].pid == 0)
            continue;
        if (state->slots[i].report >= 0)
            state->polls[n++] = (struct pollfd) { .fd = state->slots[i].report, .events = POLLIN };
        else
            closed = true; /* is about to end */
    }
    (void)poll(state->polls, n, closed ? 1 : TICK_MS);
}

/* The most that a job has taken or will take, which the others may, too; 0: not known yet. */
static int64_t largest(const State *state, const KilnLaunch *launch)
{
    int64_t most = state->peak;

    for (size_t i = 0; i < state->n_slots; i++) {
        const Slot *slot = &state->slots[i];
        const int64_t memory = slot->pid != 0 ? memory_of(launch, slot->job) : 0;

        most = memory > most ? memory : most;
    }
    return most;
}

/* Is there room for the memory of another job? As long as none is known, there may be none. */
static bool has_memory(const State *state, const KilnLaunch *launch, size_t job)
{
    const int64_t most = largest(state, launch), own = memory_of(launch, job);
    int64_t sum = launch->held(launch->ctx) + (own > 0 ? own : most);
    bool known = own > 0;

    for (size_t i = 0; i < state->n_slots; i++) {
        const Slot *slot = &state->slots[i];
        const int64_t memory = slot->pid != 0 ? memory_of(launch, slot->job) : 0;

        if (slot->pid == 0)
            continue;
        sum += memory > 0 ? memory : most;
        known = known && memory > 0;
    }
    return state->before.available < 0 || ((known || most > 0) && sum <= state->before.available);
}

static bool has_processors(const State *state, const KilnLaunch *launch, size_t job)
{
    const int64_t own = launch->needs(launch->ctx, job).cpus;
    int64_t sum = own;

    for (size_t i = 0; i < state->n_slots; i++)
        if (state->slots[i].pid != 0)
            sum += launch->needs(launch->ctx, state->slots[i].job).cpus;
    return own == 0 || (double)sum <= state->before.processors;
}

/* Is there room for another job? One that runs alone always has it: its own check says what it
 * lacks. */
static bool has_room(const State *state, const KilnLaunch *launch, size_t job)
{
    return state->running == 0 ||
           (has_memory(state, launch, job) && has_processors(state, launch, job));
}

static KilnStatus fill_slots(KilnInstance *self, const KilnLaunch *launch, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < state->n_slots && status >= 0; i++) {
        KilnNextJob next = KILN_NEXT_JOB;

        if (state->slots[i].pid != 0)
            continue;
        if (!state->holds)
            status = launch->next(launch->ctx, &next, &state->held, err);
        state->holds = status >= 0 && next == KILN_NEXT_JOB;
        if (!state->holds)
            break;
        if (launch->loading(launch->ctx, state->held) || !has_room(state, launch, state->held))
            break;
        state->holds = false;
        status = start(self, launch, &state->slots[i], state->held, err);
    }
    return status;
}

static KilnStatus poll_jobs(KilnInstance *self, const KilnLaunch *launch, bool stop, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < state->n_slots && status >= 0; i++) {
        Slot *slot = &state->slots[i];

        if (slot->pid == 0)
            continue;
        status = read_report(launch, slot, err);
        enforce_limits(kiln_opts(self), slot, stop || launch->stops(launch->ctx, slot->job));
        if (status >= 0)
            status = reap(self, launch, slot, err);
    }
    return status;
}

static KilnStatus allocate(State *state, size_t n, KilnError *err)
{
    state->slots = calloc(n, sizeof(*state->slots));
    state->polls = calloc(n, sizeof(*state->polls));
    if (state->slots == NULL || state->polls == NULL)
        return kiln_error_nomem(err, n * sizeof(*state->slots));
    state->n_slots = n;
    state->before = kiln_usage_now();
    return KILN_OK;
}

static KilnStatus launch_jobs(KilnInstance *self, const KilnLaunch *launch, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = allocate(state, launch->n_jobs, err), first = KILN_OK;
    KilnError later = { 0 };

    while (status >= 0) {
        bool stop = first < 0 || (launch->stop != NULL && *launch->stop != 0);

        if (!stop && (first = fill_slots(self, launch, err)) < 0)
            continue;
        if (state->running == 0)
            break;
        wait_for_reports(state);
        status = poll_jobs(self, launch, stop, first < 0 ? &later : err);
        if (status < 0 && first >= 0)
            first = status; /* stop the other jobs before returning */
        status = KILN_OK;
        launch->tick(launch->ctx);
    }
    return status < 0 ? status : first;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->slots);
    free(state->polls);
}

static const KilnLauncherOps ops = { .n_jobs = n_jobs, .launch = launch_jobs };

const KilnComponent kiln_launcher_local = {
    .kind = KILN_KIND_LAUNCHER,
    .name = "local",
    .summary = "Processes on this machine, with limits of time and memory",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.launcher = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_launcher_local, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
