/* Starts and ends the processes of Python hosts. */
#define _GNU_SOURCE /* pipe2, execvpe, gettid, sigabbrev_np */
#include "python/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/tools/program.h"
#include "python/modules.h"

enum {
    CHANNEL = 3, /* descriptors of the host */
    MEMORY = 4,
    ABOVE = 10, /* where no descriptor of the host is */
    NOT_FOUND = 127,
    WAITS = 200, /* of 5 ms, for a process to end by itself */
};

extern char **environ;

/* ---- Its start --------------------------------------------------------------------------------
 */

/* The environment, with a fixed order of sets of texts: the same seed gives the same bytes. Owned
 * by the caller (free). */
static char **environment(void)
{
    static char hash_seed[] = "PYTHONHASHSEED=0";
    size_t n = 0;

    while (environ[n] != NULL)
        n++;
    char **copy = calloc(n + 2, sizeof(*copy));
    size_t kept = 0;
    for (size_t i = 0; copy != NULL && i < n; i++)
        if (strncmp(environ[i], hash_seed, sizeof("PYTHONHASHSEED")) != 0)
            copy[kept++] = environ[i];
    if (copy != NULL)
        copy[kept] = hash_seed;
    return copy;
}

/* Between fork and exec: only what is safe in a signal handler. Never returns. */
static void become(char *const *argv, char *const *env, const int fds[3], pid_t parent, bool dies)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    /* The signal comes when the thread ends that forked: not where threads come and go. */
    if (dies)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    const int channel = fcntl(fds[0], F_DUPFD_CLOEXEC, ABOVE);
    const int memory = fcntl(fds[1], F_DUPFD_CLOEXEC, ABOVE);
    const int output = fcntl(fds[2], F_DUPFD_CLOEXEC, ABOVE);
    if ((dies && getppid() != parent) || null < 0 || channel < 0 || memory < 0 || output < 0 ||
        dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0 || dup2(channel, CHANNEL) < 0 || dup2(memory, MEMORY) < 0)
        _exit(NOT_FOUND);
    execvpe(argv[0], argv, env);
    _exit(NOT_FOUND);
}

static KilnStatus make_files(int channel[2], int output[2], KilnError *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0)
        return kiln_error_errno(err, "socket to Python");
    if (pipe2(output, O_CLOEXEC) == 0)
        return KILN_OK;
    KilnStatus status = kiln_error_errno(err, "pipe from Python");
    close(channel[0]);
    close(channel[1]);
    return status;
}

KilnStatus kiln_python_process_start(const char *python, const char *name, int memory_fd,
                                     KilnPythonProcess *ret, KilnError *err)
{
    char *const argv[] = { (char *)python, "-u", "-c", (char *)kiln_python_boot(), "3", "4", NULL };
    int channel[2], output[2];

    if (!kiln_program_exists(python))
        return kiln_error_set(err, KILN_E_MISSING,
                              "%s needs Python, and there is no %s: install it (Debian: apt "
                              "install python3), or name one with kiln.python=/path/to/python or "
                              "the environment variable KILN_PYTHON",
                              name, python);
    KilnStatus status = make_files(channel, output, err);
    if (status < 0)
        return status;
    char **env = environment();
    const bool dies = gettid() == getpid();
    const pid_t parent = getpid(), pid = env != NULL ? fork() : -1;
    if (pid == 0)
        become(argv, env, (const int[]) { channel[1], memory_fd, output[1] }, parent, dies);
    if (pid < 0)
        status = kiln_error_errno(err, python);
    free(env);
    close(channel[1]);
    close(output[1]);
    *ret = (KilnPythonProcess) { .pid = pid > 0 ? pid : 0,
                                 .channel = channel[0],
                                 .output = output[0] };
    return status;
}

/* ---- Its end
 * -------------------------------------------------------------------------------------- */

/* Whether it has ended, within a second. */
static bool ends(KilnPythonProcess *process, int *ret_status)
{
    for (int i = 0; i < WAITS; i++) {
        const pid_t pid = waitpid(process->pid, ret_status, WNOHANG);

        if (pid == process->pid || (pid < 0 && errno != EINTR))
            return true;
        (void)usleep(5000);
    }
    return false;
}

static void kill_now(KilnPythonProcess *process, int *ret_status)
{
    (void)kill(-process->pid, SIGKILL); /* with what it started */
    (void)kill(process->pid, SIGKILL);
    while (waitpid(process->pid, ret_status, 0) < 0 && errno == EINTR)
        ;
}

void kiln_python_process_end(KilnPythonProcess *process)
{
    int status = 0;

    if (process->pid > 0)
        kill_now(process, &status);
    process->pid = 0;
}

void kiln_python_process_wait(KilnPythonProcess *process, char *how, size_t size)
{
    int status = 0;

    snprintf(how, size, "it closed its socket");
    if (process->pid <= 0)
        return;
    const bool ended = ends(process, &status);
    if (!ended)
        kill_now(process, &status);
    else if (WIFEXITED(status))
        snprintf(how, size, "exit status %d", WEXITSTATUS(status));
    else
        snprintf(how, size, "killed by SIG%s",
                 sigabbrev_np(WTERMSIG(status)) != NULL ? sigabbrev_np(WTERMSIG(status)) : "?");
    process->pid = 0;
}

void kiln_python_process_close(KilnPythonProcess *process)
{
    if (process->channel >= 0)
        close(process->channel);
    if (process->output >= 0)
        close(process->output);
    *process = (KilnPythonProcess) { .channel = -1, .output = -1 };
}
