/* Runs programs and reads what they write. */
#define _GNU_SOURCE /* pipe2, prctl's constants */
#include "kiln/tools/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "kiln/array.h"
#include "kiln/tools/clock.h"

enum { NOT_FOUND = 127 };
static const size_t most_output = (size_t)1 << 26;

/* ---- Words ------------------------------------------------------------------------------ */

void kiln_argv_add(KilnArgv *words, const char *format, ...)
{
    KilnText word = { 0 };
    va_list args;

    va_start(args, format);
    kiln_text_vprintf(&word, format, args);
    va_end(args);
    char *text = kiln_text_take(&word);
    if (text == NULL || words->failed ||
        !KILN_RESERVE(words->items, words->capacity, words->count + 2)) {
        words->failed = true;
        free(text);
        return;
    }
    words->items[words->count++] = text;
    words->items[words->count] = NULL;
}

void kiln_argv_write(const KilnArgv *words, KilnText *text)
{
    for (size_t i = 0; i < words->count; i++) {
        kiln_text_append(text, i > 0 ? " " : "");
        kiln_text_shell_word(text, words->items[i]);
    }
    text->failed = text->failed || words->failed;
}

void kiln_argv_release(KilnArgv *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
    *words = (KilnArgv) { .items = NULL };
}

/* ---- Running ---------------------------------------------------------------------------- */

/* Never returns. */
static void become(char *const *argv, int output, int errors, pid_t parent)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() != parent || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(output, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0)
        _exit(NOT_FOUND);
    execvp(argv[0], argv);
    _exit(NOT_FOUND);
}

/* Read what is there. False: the other end is closed, or there is too much. */
static bool read_some(int fd, KilnText *text)
{
    char bytes[4096];
    const ssize_t n = read(fd, bytes, sizeof(bytes));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    kiln_text_append_n(text, bytes, (size_t)n);
    return n > 0 && !text->failed && text->length < most_output;
}

/* Read both until they are closed; false: `seconds` are over. */
static bool read_both(int output, int errors, double seconds, KilnProgramEnd *ret)
{
    const double end = kiln_clock() + seconds;
    struct pollfd polls[] = { { .fd = output, .events = POLLIN },
                              { .fd = errors, .events = POLLIN } };
    KilnText *const texts[] = { &ret->output, &ret->errors };

    while (polls[0].fd >= 0 || polls[1].fd >= 0) {
        if (kiln_clock() > end)
            return false;
        if (poll(polls, KILN_COUNT(polls), 100) <= 0)
            continue;
        for (size_t i = 0; i < KILN_COUNT(polls); i++)
            if (polls[i].fd >= 0 && polls[i].revents != 0 && !read_some(polls[i].fd, texts[i]))
                polls[i].fd = -1;
    }
    return true;
}

static KilnStatus run(const KilnArgv *words, double seconds, const int output[2],
                      const int errors[2], KilnProgramEnd *ret, KilnError *err)
{
    const pid_t parent = getpid(), pid = fork();
    int status = 0;

    if (pid == 0)
        become(words->items, output[1], errors[1], parent);
    if (pid < 0)
        return kiln_error_errno(err, words->items[0]);
    close(output[1]);
    close(errors[1]);
    const bool ended = read_both(output[0], errors[0], seconds, ret);
    if (!ended)
        (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    ret->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ended ? KILN_OK
                 : kiln_error_set(err, KILN_E_IO, "%s does not end; killed after %.0f s",
                                  words->items[0], seconds);
}

KilnStatus kiln_program_run(const KilnArgv *words, double seconds, KilnProgramEnd *ret,
                            KilnError *err)
{
    int output[2], errors[2];

    *ret = (KilnProgramEnd) { .status = 0 };
    if (words->failed || words->count == 0)
        return kiln_error_nomem(err, words->count);
    if (!kiln_program_exists(words->items[0]))
        return kiln_error_set(err, KILN_E_IO, "%s is not on the PATH", words->items[0]);
    if (pipe2(output, O_CLOEXEC) != 0)
        return kiln_error_errno(err, words->items[0]);
    if (pipe2(errors, O_CLOEXEC) != 0) {
        close(output[0]);
        close(output[1]);
        return kiln_error_errno(err, words->items[0]);
    }
    fflush(NULL); /* or both processes would write what is buffered */
    KilnStatus status = run(words, seconds, output, errors, ret, err);
    close(output[0]);
    close(errors[0]);
    return status;
}

void kiln_program_release(KilnProgramEnd *end)
{
    kiln_text_release(&end->output);
    kiln_text_release(&end->errors);
}

bool kiln_program_exists(const char *name)
{
    const char *path = getenv("PATH");
    bool there = strchr(name, '/') != NULL && access(name, X_OK) == 0;

    while (!there && path != NULL && *path != '\0' && strchr(name, '/') == NULL) {
        const size_t n = strcspn(path, ":");
        KilnText file = { 0 };

        kiln_text_printf(&file, "%.*s%s%s", (int)n, path, n > 0 ? "/" : "./", name);
        there = !file.failed && access(file.data, X_OK) == 0;
        kiln_text_release(&file);
        path += n + (path[n] == ':');
    }
    return there;
}
