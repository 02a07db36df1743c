/* Appending to the journal, owning it, and reading it back. */
#define _DEFAULT_SOURCE /* flock */
#include "base/system/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/json.h"
#include "base/text.h"

static const size_t largest = (size_t)1 << 30;
/* Workers of a launcher that was killed hold the journal a moment longer. */
enum { TRIES = 40, BETWEEN_TRIES_MS = 50 };

struct KilnJournal {
    int fd;
    char *path;
    char *text; /* the whole lines that were there when it was opened */
    size_t length;
};

const char *kiln_time_text(char buf[KILN_TIME_TEXT])
{
    time_t now = time(NULL);
    struct tm parts;

    buf[0] = '\0';
    if (localtime_r(&now, &parts) != NULL)
        strftime(buf, KILN_TIME_TEXT, "%Y-%m-%dT%H:%M:%S%z", &parts);
    return buf;
}

/* ---- Opening --------------------------------------------------------------------------- */

static KilnStatus own(const KilnJournal *journal, const char *dir, KilnError *err)
{
    const struct timespec pause = { .tv_nsec = BETWEEN_TRIES_MS * 1000000L };

    for (int i = 0; i < TRIES; i++) {
        if (flock(journal->fd, LOCK_EX | LOCK_NB) == 0)
            return KILN_OK;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return kiln_error_errno(err, journal->path);
        nanosleep(&pause, NULL);
    }
    return kiln_error_set(err, KILN_E_IO, "%s: another process runs this; only one can at a time",
                          dir);
}

/* Whole lines only: the text after the last newline is incomplete. */
static KilnStatus read_lines(KilnJournal *journal, KilnError *err)
{
    size_t size = 0;
    KilnStatus status = kiln_file_read(journal->path, largest, &journal->text, &size, err);

    if (status < 0)
        return status;
    while (size > 0 && journal->text[size - 1] != '\n')
        size--;
    journal->text[size] = '\0';
    journal->length = size;
    return ftruncate(journal->fd, (off_t)size) == 0 ? KILN_OK
                                                    : kiln_error_errno(err, journal->path);
}

KilnStatus kiln_journal_open(const char *dir, KilnJournal **ret, KilnError *err)
{
    KilnJournal *journal = calloc(1, sizeof(*journal));
    KilnStatus status = KILN_OK;

    if (journal == NULL)
        return kiln_error_nomem(err, sizeof(*journal));
    journal->fd = -1;
    journal->path = kiln_path_join(dir, KILN_JOURNAL_FILE);
    if (journal->path == NULL)
        status = kiln_error_nomem(err, strlen(dir));
    if (status >= 0)
        journal->fd = kiln_fd_open(journal->path, O_RDWR | O_APPEND | O_CREAT);
    if (status >= 0 && journal->fd < 0)
        status = kiln_error_errno(err, journal->path);
    if (status >= 0)
        status = own(journal, dir, err);
    if (status >= 0)
        status = read_lines(journal, err);
    if (status < 0) {
        kiln_journal_close(journal);
        return status;
    }
    *ret = journal;
    return KILN_OK;
}

void kiln_journal_close(KilnJournal *journal)
{
    if (journal == NULL)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->path);
    free(journal->text);
    free(journal);
}

bool kiln_journal_is_owned(const char *dir)
{
    char *path = kiln_path_join(dir, KILN_JOURNAL_FILE);
    const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const bool owned = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;

    if (fd >= 0)
        close(fd); /* which unlocks it: a process that opens the journal now tries again */
    free(path);
    return owned;
}

bool kiln_journal_is_new(const KilnJournal *journal)
{
    return journal->length == 0;
}

/* ---- Reading ----------------------------------------------------------------------------- */

/* `text` is whole lines. */
static KilnStatus each_line(const char *text, size_t size,
                            KilnStatus (*record)(void *ctx, const json_t *line, KilnError *err),
                            void *ctx, size_t *ret_skipped, KilnError *err)
{
    const char *end = text + size;
    KilnStatus status = KILN_OK;
    size_t skipped = 0;

    for (const char *p = text; p < end && status >= 0;) {
        size_t length = (size_t)((const char *)memchr(p, '\n', (size_t)(end - p)) - p);
        json_t *line = json_loadb(p, length, JSON_REJECT_DUPLICATES, NULL);

        if (json_is_object(line))
            status = record(ctx, line, err);
        else
            skipped++;
        json_decref(line);
        p += length + 1;
    }
    *ret_skipped = skipped;
    return status;
}

KilnStatus kiln_journal_replay(const KilnJournal *journal,
                               KilnStatus (*record)(void *ctx, const json_t *line, KilnError *err),
                               void *ctx, size_t *ret_skipped, KilnError *err)
{
    return each_line(journal->text, journal->length, record, ctx, ret_skipped, err);
}

KilnStatus kiln_journal_read(const char *dir,
                             KilnStatus (*record)(void *ctx, const json_t *line, KilnError *err),
                             void *ctx, KilnError *err)
{
    char *path = kiln_path_join(dir, KILN_JOURNAL_FILE), *text = NULL;
    size_t size = 0, skipped;
    KilnStatus status = path == NULL ? kiln_error_nomem(err, strlen(dir))
                                     : kiln_file_read(path, largest, &text, &size, err);

    while (size > 0 && text[size - 1] != '\n') /* its owner is writing */
        size--;
    if (status >= 0)
        status = each_line(text, size, record, ctx, &skipped, err);
    free(text);
    free(path);
    return status;
}

KilnStatus kiln_journal_peek(const char *dir, json_t **ret, KilnError *err)
{
    char *path = kiln_path_join(dir, KILN_JOURNAL_FILE), *text = NULL;
    size_t size = 0;
    KilnStatus status = path == NULL ? kiln_error_nomem(err, strlen(dir))
                                     : kiln_file_read(path, largest, &text, &size, err);
    json_t *line = NULL;

    if (status >= 0) {
        line = json_loadb(text, strcspn(text, "\n"), 0, NULL);
        if (!json_is_object(line)) {
            json_decref(line);
            status = kiln_error_set(err, KILN_E_FORMAT, "%s: is no journal", path);
        } else {
            *ret = line;
        }
    }
    free(text);
    free(path);
    return status;
}

/* ---- Appending ---------------------------------------------------------------------------- */

KilnStatus kiln_journal_append(KilnJournal *journal, json_t *record, KilnError *err)
{
    char *text = record != NULL ? kiln_json_dump(record, JSON_COMPACT | JSON_REAL_PRECISION(17))
                                : NULL;
    KilnText line = { 0 };
    KilnStatus status = KILN_OK;

    json_decref(record);
    if (text != NULL)
        kiln_text_printf(&line, "%s\n", text);
    if (text == NULL || line.failed)
        status = kiln_error_nomem(err, 1);
    else if (!kiln_fd_write(journal->fd, line.data, line.length))
        status = kiln_error_errno(err, journal->path);
    kiln_text_release(&line);
    free(text);
    return status;
}

KilnStatus kiln_journal_sync(KilnJournal *journal, KilnError *err)
{
    return fdatasync(journal->fd) == 0 ? KILN_OK : kiln_error_errno(err, journal->path);
}
