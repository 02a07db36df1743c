#define _GNU_SOURCE /* prctl's constants */
#include "sweep/jobs/data_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kiln/usage.h"
#include "registry/shared_data.h"

enum { REQUEST_SIZE = 65536 };

/* What a data process says first. */
typedef struct Ready {
    pid_t pid;     /* its own; 0: the data can't be shared */
    int64_t bytes; /* of memory that it holds */
} Ready;

/* ---- Orphans --------------------------------------------------------------------------- */

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Become a child of the launcher once `parent` has ended, and die with it. */
static void enter(pid_t launcher, pid_t parent)
{
    static const struct timespec moment = { .tv_nsec = 50000 };

    (void)setpgid(0, 0);
    while (getppid() == parent)
        nanosleep(&moment, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(KILN_JOB_EXIT_FAILED);
}

/* fork() a process that is a child of the launcher. */
static pid_t fork_orphan(pid_t launcher)
{
    int ends[2];
    pid_t pid = -1;
    ssize_t n = 0;

    if (pipe(ends) != 0)
        return -1;
    fflush(NULL); /* or both processes would write what is buffered */
    const pid_t between = fork();
    if (between == 0) {
        const pid_t parent = getpid();

        pid = fork();
        if (pid != 0) {
            n = write(ends[1], &pid, sizeof(pid));
            _exit(n != (ssize_t)sizeof(pid));
        }
        close(ends[0]);
        close(ends[1]);
        enter(launcher, parent);
        return 0;
    }
    close(ends[1]);
    while (between > 0 && (n = read(ends[0], &pid, sizeof(pid))) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    if (between > 0)
        wait_for(between);
    return n == (ssize_t)sizeof(pid) ? pid : -1;
}

/* ---- The data process ---------------------------------------------------------------------- */

/* A request: number, folder and overrides of a job, each text with its NUL. */
static size_t pack(const KilnJob *job, size_t number, char bytes[REQUEST_SIZE])
{
    size_t size = sizeof(number), i = 0;

    memcpy(bytes, &number, sizeof(number));
    for (const char *text = job->dir; text != NULL; text = job->overrides[i++]) {
        const size_t length = strlen(text) + 1;

        if (length > REQUEST_SIZE - size)
            return 0;
        memcpy(bytes + size, text, length);
        size += length;
    }
    return size;
}

/* In the job's process, forked from the data process. */
static void run_job(const KilnDataProcesses *processes, const char *bytes, size_t size, int report)
{
    struct pollfd go = { .fd = report, .events = POLLIN };
    static const char *texts[REQUEST_SIZE / 2]; /* the last one stays NULL */
    size_t number, n = 0;
    char word[8];

    memcpy(&number, bytes, sizeof(number));
    for (size_t at = sizeof(number); at < size && n + 1 < KILN_COUNT(texts);
         at += strlen(bytes + at) + 1)
        texts[n++] = bytes + at;
    while (poll(&go, 1, -1) < 0 && errno == EINTR)
        ;
    if (read(report, word, sizeof(word)) <= 0) /* the launcher does not know this process */
        _exit(KILN_JOB_EXIT_FAILED);
    const int status = kiln_sweep_run_frozen(processes->sweep, number, texts[0], texts + 1, report);
    fflush(NULL);
    _exit(status);
}

/* The next request, and the report of its job; 0: the launcher has closed the socket. */
static ssize_t receive(int from, char bytes[REQUEST_SIZE], int *ret_report)
{
    char room[CMSG_SPACE(sizeof(int))];
    struct iovec part = { .iov_base = bytes, .iov_len = REQUEST_SIZE };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
    };
    ssize_t n;

    while ((n = recvmsg(from, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    const struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header == NULL || header->cmsg_type != SCM_RIGHTS)
        return 0;
    memcpy(ret_report, CMSG_DATA(header), sizeof(int));
    return n;
}

/* Never returns. */
static void serve(const KilnDataProcesses *processes)
{
    static char bytes[REQUEST_SIZE];
    const int with_launcher = processes->offer;
    int report = -1;
    ssize_t n;

    while ((n = receive(with_launcher, bytes, &report)) > (ssize_t)sizeof(size_t)) {
        const pid_t pid = fork_orphan(processes->launcher);

        if (pid == 0) {
            close(with_launcher);
            run_job(processes, bytes, (size_t)n, report);
        }
        close(report);
        if (send(with_launcher, &pid, sizeof(pid), MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}

/* Nothing of the job that set up the data remains: its log, its report, its signals. */
static void leave_job(const KilnDataProcesses *processes)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; i < KILN_COUNT(signals); i++)
        (void)signal(signals[i], SIG_DFL);
    for (int fd = STDIN_FILENO; nowhere >= 0 && fd <= STDERR_FILENO; fd++)
        (void)dup2(nowhere, fd);
    close(nowhere);
    close(processes->report);
}

/* The job has set up data: leave a process behind that has it. */
static void ready(void *ctx, bool good)
{
    KilnDataProcesses *processes = ctx;
    const pid_t pid = good ? fork_orphan(processes->launcher) : 0;
    Ready word = { .pid = 0 };

    if (good && pid == 0) {
        leave_job(processes);
        word = (Ready) { .pid = getpid(), .bytes = kiln_usage_now().resident };
        if (send(processes->offer, &word, sizeof(word), MSG_NOSIGNAL) > 0)
            serve(processes);
        _exit(0);
    }
    if (!good || pid < 0)
        (void)!send(processes->offer, &word, sizeof(word), MSG_NOSIGNAL);
    kiln_data_forked(processes);
}

/* ---- The launcher's list ------------------------------------------------------------------ */

void kiln_data_processes_init(KilnDataProcesses *processes, const KilnSweep *sweep)
{
    int adopted = 0;

    *processes = (KilnDataProcesses) { .sweep = sweep, .launcher = getpid(), .offer = -1 };
    processes->adopted = prctl(PR_GET_CHILD_SUBREAPER, &adopted) == 0 && adopted != 0;
    processes->adopts = prctl(PR_SET_CHILD_SUBREAPER, 1L) == 0;
    processes->room = kiln_usage_now().available;
    if (processes->room > 0)
        processes->room /= 2;
}

static KilnDataProcess *find(KilnDataProcesses *processes, size_t number)
{
    const uint64_t key = processes->sweep->jobs.items[number].data;

    for (size_t i = 0; i < processes->n && key != 0; i++)
        if (processes->list[i].key == key)
            return &processes->list[i];
    return NULL;
}

static void end(KilnDataProcesses *processes, KilnDataProcess *process)
{
    if (process->fd >= 0)
        close(process->fd);
    if (process->pid > 0) {
        (void)kill(process->pid, SIGKILL);
        wait_for(process->pid);
    }
    *process = processes->list[--processes->n];
}

void kiln_data_processes_release(KilnDataProcesses *processes)
{
    while (processes->n > 0)
        end(processes, &processes->list[0]);
    kiln_data_forked(processes);
    if (processes->adopts && !processes->adopted)
        (void)prctl(PR_SET_CHILD_SUBREAPER, 0L);
}

/* The one that was used longest ago, except those that are being set up; NULL: none. */
static KilnDataProcess *oldest(KilnDataProcesses *processes)
{
    KilnDataProcess *found = NULL;

    for (size_t i = 0; i < processes->n; i++) {
        KilnDataProcess *process = &processes->list[i];

        if (process->pid != 0 && (found == NULL || process->used < found->used))
            found = process;
    }
    return found;
}

static int64_t largest(const KilnDataProcesses *processes)
{
    int64_t most = 0;

    for (size_t i = 0; i < processes->n; i++)
        most = processes->list[i].bytes > most ? processes->list[i].bytes : most;
    return most;
}

/* A job is about to set up more data, which may be as large as the largest so far. */
static void make_room(KilnDataProcesses *processes)
{
    KilnDataProcess *process;

    while ((processes->n == KILN_MAX_DATA_PROCESSES ||
            (processes->room >= 0 &&
             kiln_data_held(processes) + largest(processes) > processes->room)) &&
           (process = oldest(processes)) != NULL)
        end(processes, process);
}

/* The job that is forked next sets up the data for others, too. */
static void prepare_offer(KilnDataProcesses *processes, uint64_t key)
{
    int ends[2];

    if (key == 0 || !processes->adopts || processes->n == KILN_MAX_DATA_PROCESSES ||
        socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return;
    for (int i = 0; i < 2; i++)
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    processes->list[processes->n++] =
        (KilnDataProcess) { .key = key, .fd = ends[0], .used = ++processes->uses };
    processes->offer = ends[1];
    processes->key = key;
}

/* What a job that sets up data says of it; false: it has ended without a word. */
static bool hear(KilnDataProcess *process)
{
    Ready word = { .pid = 0 };
    const ssize_t n = recv(process->fd, &word, sizeof(word), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n != (ssize_t)sizeof(word))
        return false;
    process->pid = word.pid;
    process->bytes = word.bytes;
    if (word.pid == 0) {
        close(process->fd);
        process->fd = process->pid = -1;
    }
    return true;
}

bool kiln_data_loading(KilnDataProcesses *processes, size_t number)
{
    for (size_t i = processes->n; i-- > 0;)
        if (processes->list[i].pid == 0 && !hear(&processes->list[i]))
            end(processes, &processes->list[i]);

    const KilnDataProcess *process = find(processes, number);
    return process != NULL && process->pid == 0;
}

/* Send a request; false if it is too long, or the process has died. */
static bool request(const KilnDataProcess *process, const KilnJob *job, size_t number, int report)
{
    static char bytes[REQUEST_SIZE];
    char room[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec part = { .iov_base = bytes, .iov_len = pack(job, number, bytes) };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    ssize_t n;

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &report, sizeof(int));
    while ((n = sendmsg(process->fd, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return part.iov_len > 0 && n == (ssize_t)part.iov_len;
}

KilnStatus kiln_data_fork_loaded(KilnDataProcesses *processes, size_t number, const int ends[2],
                                 int64_t *ret_pid, KilnError *err)
{
    const KilnJob *job = &processes->sweep->jobs.items[number];
    KilnDataProcess *process = find(processes, number);
    pid_t pid = -1;
    ssize_t n = -1;

    *ret_pid = 0;
    kiln_data_forked(processes);
    if (process == NULL) {
        make_room(processes);
        prepare_offer(processes, job->data);
    }
    if (process == NULL || process->pid <= 0)
        return KILN_OK;
    process->used = ++processes->uses;
    if (request(process, job, number, ends[1]))
        while ((n = recv(process->fd, &pid, sizeof(pid), 0)) < 0 && errno == EINTR)
            ;
    if (n != (ssize_t)sizeof(pid) || pid <= 0) {
        end(processes, process);
        return KILN_OK;
    }
    *ret_pid = pid;
    if (send(ends[0], "go", 2, MSG_NOSIGNAL) == 2)
        return KILN_OK;
    return kiln_error_errno(err, "socket to a job");
}

int64_t kiln_data_shared(KilnDataProcesses *processes, size_t number)
{
    const KilnDataProcess *process = find(processes, number);

    return process != NULL ? process->bytes : 0;
}

int64_t kiln_data_held(const KilnDataProcesses *processes)
{
    int64_t sum = 0;

    for (size_t i = 0; i < processes->n; i++)
        sum += processes->list[i].bytes;
    return sum;
}

void kiln_data_forked(KilnDataProcesses *processes)
{
    if (processes->offer >= 0)
        close(processes->offer);
    processes->offer = -1;
}

void kiln_data_enter_job(KilnDataProcesses *processes, int report)
{
    for (size_t i = 0; i < processes->n; i++)
        if (processes->list[i].fd >= 0)
            close(processes->list[i].fd);
    processes->report = report;
    if (processes->offer >= 0)
        kiln_shared_data_ask(processes->key, ready, processes);
}
