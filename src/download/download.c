#include "download/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/sha256.h"
#include "download/transfer.h"
#include "kiln/tools/clock.h"

enum { TRIES = 3 };

/* PATH.part, locked. */
typedef struct Part {
    char *path;
    int fd;
} Part;

static bool pause_of(double seconds, const KilnPoll *poll, const char *what)
{
    const struct timespec piece = { .tv_nsec = 50000000 };
    const double end = kiln_clock() + seconds;

    while (kiln_clock() < end) {
        if (kiln_poll(poll, what, 0, 0))
            return false;
        nanosleep(&piece, NULL);
    }
    return true;
}

/* ---- The part -------------------------------------------------------------------- */

/* Whether the open file is still the one at the path: another process may have renamed it. */
static bool is_at_path(const Part *part)
{
    struct stat open_file, named;

    return fstat(part->fd, &open_file) == 0 && stat(part->path, &named) == 0 &&
           open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

/* Open and lock it; waits for a process that has it. */
static KilnStatus part_open(Part *part, const KilnDownload *download, const KilnPoll *poll,
                            KilnError *err)
{
    const size_t size = strlen(download->path) + sizeof(".part");
    static const char waiting[] = "waiting for another process's download";

    part->path = malloc(size);
    if (part->path == NULL)
        return kiln_error_nomem(err, size);
    snprintf(part->path, size, "%s.part", download->path);
    for (;;) {
        part->fd = kiln_fd_open(part->path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW);
        if (part->fd < 0)
            return kiln_error_errno(err, part->path);
        while (flock(part->fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK && errno != EINTR)
                return kiln_error_errno(err, part->path);
            if (!pause_of(0.2, poll, waiting))
                return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted while %s", waiting);
        }
        if (is_at_path(part))
            return KILN_OK;
        close(part->fd);
    }
}

static int64_t part_size(const Part *part)
{
    struct stat info;

    return fstat(part->fd, &info) == 0 ? info.st_size : 0;
}

/* An empty one is removed. */
static void part_close(Part *part)
{
    if (part->fd >= 0 && part_size(part) == 0 && is_at_path(part))
        (void)unlink(part->path);
    if (part->fd >= 0)
        close(part->fd);
    free(part->path);
}

static KilnStatus part_empty(const Part *part, KilnError *err)
{
    return ftruncate(part->fd, 0) == 0 ? KILN_OK : kiln_error_errno(err, part->path);
}

/* ---- Filling it ------------------------------------------------------------------ */

/* What the server has beyond the part, with more tries where that may help. */
static KilnStatus fetch(const KilnDownload *download, const Part *part, const KilnPoll *poll,
                        KilnError *err)
{
    KilnTransfer transfer = {
        .url = download->url, .what = download->what, .poll = poll, .fd = part->fd
    };
    KilnStatus status = KILN_OK;

    for (int try = 1;; try++) {
        transfer.have = part_size(part);
        status = kiln_transfer(&transfer, err);
        if (status >= 0)
            return status;
        if (transfer.from_start && transfer.have > 0) {
            status = part_empty(part, err);
            if (status < 0)
                return status;
        } else if (!transfer.may_pass || try == TRIES) {
            return status;
        } else if (!pause_of((double)try, poll, download->what)) {
            return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted while %s", download->what);
        }
    }
}

static KilnStatus check_sum(const KilnDownload *download, const Part *part, const KilnPoll *poll,
                            KilnError *err)
{
    char sum[KILN_SHA256_TEXT];
    KilnStatus status = KILN_OK;

    if (download->sha256[0] == '\0')
        return KILN_OK;
    if (lseek(part->fd, 0, SEEK_SET) < 0)
        return kiln_error_errno(err, part->path);
    status = kiln_fd_sha256(part->fd, poll, "checking the SHA-256 sum", sum, err);
    if (status < 0)
        return kiln_error_prefix(err, "%s: ", part->path);
    if (strcasecmp(sum, download->sha256) == 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_FORMAT, "%s: its SHA-256 sum is %s, expected %s",
                          download->url, sum, download->sha256);
}

static KilnStatus complete(const KilnDownload *download, const Part *part, const KilnPoll *poll,
                           KilnError *err)
{
    KilnStatus status = fetch(download, part, poll, err);

    return status >= 0 ? check_sum(download, part, poll, err) : status;
}

/* A part of another version of the file is found by the sum, and begun again once. */
static KilnStatus fill(const KilnDownload *download, const Part *part, const KilnPoll *poll,
                       KilnError *err)
{
    KilnStatus status = download->sha256[0] == '\0' ? part_empty(part, err) : KILN_OK;
    const bool continued = part_size(part) > 0;

    if (status < 0)
        return status;
    status = complete(download, part, poll, err);
    if (status == KILN_E_FORMAT && continued) {
        status = part_empty(part, err);
        if (status >= 0)
            status = complete(download, part, poll, err);
    }
    if (status == KILN_E_FORMAT)
        (void)!ftruncate(part->fd, 0);
    if (status >= 0 && fsync(part->fd) != 0)
        status = kiln_error_errno(err, part->path);
    return status;
}

KilnStatus kiln_download(const KilnDownload *download, const KilnPoll *poll, KilnError *err)
{
    Part part = { .fd = -1 };
    KilnStatus status = kiln_transfer_supported(err);

    if (status < 0 || access(download->path, F_OK) == 0)
        return status;
    status = kiln_dir_make_parent(download->path, err);
    if (status >= 0)
        status = part_open(&part, download, poll, err);
    /* It is there if the process that had the lock fetched it. */
    if (status >= 0 && access(download->path, F_OK) != 0) {
        status = fill(download, &part, poll, err);
        if (status >= 0)
            status = kiln_file_rename(part.path, download->path, err);
    }
    part_close(&part);
    return status;
}
