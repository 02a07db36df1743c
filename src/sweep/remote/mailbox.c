/* The job's end of a mailbox: appends reports and waits for answers. */
#define _DEFAULT_SOURCE /* flock */
#include "sweep/remote/mailbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/system/file.h"
#include "base/text.h"
#include "kiln/tools/clock.h"

enum { SHORTEST_PAUSE_MS = 20, LONGEST_PAUSE_MS = 500, MAX_ANSWER = 64, OWN_PAUSE_MS = 200 };
/* How long a job waits that got a signal to stop, since it needs the time to save. */
static const double hurried_s = 2.0;

KilnStatus kiln_mailbox_open(const char *sweep, const char *dir, KilnMailbox *ret, KilnError *err)
{
    char *reports = kiln_path_join(dir, KILN_REPORTS_FILE);
    KilnMailbox mailbox = {
        .fd = -1,
        .silent = -1,
        .answer = kiln_path_join(dir, KILN_ANSWER_FILE),
        .heartbeat = kiln_path_join(sweep, KILN_HEARTBEAT_FILE),
    };
    KilnStatus status = KILN_OK;

    if (reports == NULL || mailbox.answer == NULL || mailbox.heartbeat == NULL)
        status = kiln_error_nomem(err, strlen(dir));
    else if ((mailbox.fd = kiln_fd_open(reports, O_WRONLY | O_CREAT | O_APPEND)) < 0)
        status = kiln_error_errno(err, reports);
    free(reports);
    if (status < 0)
        kiln_mailbox_release(&mailbox);
    else
        *ret = mailbox;
    return status;
}

void kiln_mailbox_release(KilnMailbox *mailbox)
{
    if (mailbox->answer != NULL && mailbox->fd >= 0)
        close(mailbox->fd);
    free(mailbox->answer);
    free(mailbox->heartbeat);
    *mailbox = (KilnMailbox) { .fd = -1 };
}

KilnStatus kiln_mailbox_own(const KilnMailbox *mailbox, KilnError *err)
{
    const struct timespec pause = { .tv_nsec = OWN_PAUSE_MS * 1000000L };

    while (flock(mailbox->fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return kiln_error_errno(err, KILN_REPORTS_FILE);
        nanosleep(&pause, NULL);
    }
    return KILN_OK;
}

int64_t kiln_mailbox_number(const KilnMailbox *mailbox)
{
    return (int64_t)lseek(mailbox->fd, 0, SEEK_END) + 1;
}

/* Is the file's answer one to that report? *ret_stop: which. */
static bool read_answer(const char *path, int64_t number, bool *ret_stop)
{
    char *text = NULL;
    size_t size = 0;
    int64_t answered = 0;

    if (kiln_file_read(path, MAX_ANSWER, &text, &size, NULL) < 0)
        return false;
    char *space = strchr(text, ' ');
    if (space != NULL) {
        *space = '\0';
        *ret_stop = kiln_starts_with(space + 1, "stop");
    }
    const bool is = space != NULL && kiln_parse_i64(text, &answered, NULL) >= 0 &&
                    answered == number;
    free(text);
    return is;
}

/* A number that changes with each heartbeat; 0: there was none. Opening the file makes a network
 * file system ask its server. */
static int64_t heartbeat(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    int64_t beat = 0;

    if (fd >= 0 && fstat(fd, &st) == 0)
        beat = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (fd >= 0)
        close(fd);
    return beat;
}

bool kiln_mailbox_wait(KilnMailbox *mailbox, int64_t number)
{
    int64_t beat = heartbeat(mailbox->heartbeat);
    double heard = kiln_clock(), patience = kiln_heartbeat_patience_s;
    bool stop = false, answered = false;

    /* The clocks of two machines differ, so what counts is whether the heartbeat continues. */
    for (long ms = SHORTEST_PAUSE_MS;; ms = ms * 2 < LONGEST_PAUSE_MS ? ms * 2 : LONGEST_PAUSE_MS) {
        const struct timespec pause = { .tv_nsec = ms * 1000000L };
        const int64_t now = heartbeat(mailbox->heartbeat);

        answered = read_answer(mailbox->answer, number, &stop);
        if (answered)
            break;
        if (now != beat) {
            beat = now;
            heard = kiln_clock();
        }
        if (beat == mailbox->silent || kiln_clock() - heard > patience)
            break;
        if (nanosleep(&pause, NULL) != 0)
            patience = hurried_s;
    }
    mailbox->silent = answered ? -1 : beat;
    mailbox->stopped = mailbox->stopped || (answered && stop);
    return answered && stop;
}
