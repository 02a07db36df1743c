/* Opens and closes the standard streams. */
#include "cli/screen/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/screen/screen.h"

void kiln_streams_open(void)
{
    /* Opened for the other direction, so that using one still fails. */
    static const int modes[] = { O_WRONLY, O_RDONLY, O_RDONLY };

    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", modes[fd]); /* takes the lowest number that is free */
}

KilnStatus kiln_streams_error(KilnError *err)
{
    return kiln_error_set(err, KILN_E_IO, "cannot write standard output: %s", strerror(errno));
}

/* Flush and close standard output; false: this or an earlier write failed, errno is set. */
static bool finish_output(void)
{
    int code = 0;

    errno = 0;
    if (fflush(stdout) != 0) {
        code = errno;
    } else if (ferror(stdout)) {
        /* The stream has forgotten the reason; another write fails for the same one. */
        code = write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
    }
    if (fclose(stdout) != 0 && code == 0)
        code = errno;
    errno = code;
    return code == 0;
}

int kiln_streams_close(const char *command, int status)
{
    KilnError err = { 0 };

    if (finish_output())
        return status;
    if (errno == EPIPE)
        return status != 0 ? status : 128 + SIGPIPE;
    if (status != 0)
        return status; /* reported already */
    kiln_streams_error(&err);
    kiln_screen_error(command, &err);
    return 1;
}
