/* Finds the lines of a file, and reads them one by one. */
#include "data/raw/line_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"
#include "kiln/array.h"

enum {
    BLOCK = 1 << 16,
    LONGEST = 1 << 28 /* bytes of a line */
};

/* Where the search for lines is. */
typedef struct Scan {
    int64_t line;  /* number of the line, from 1 */
    int64_t start; /* its first byte */
    bool blank;    /* so far */
} Scan;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Add the line that has ended, unless it is blank. */
static bool add_line(KilnLineIndex *self, const Scan *scan)
{
    const char *slash = strrchr(self->path, '/'), *name = slash != NULL ? slash + 1 : self->path;
    const size_t room = strlen(name) + 24;
    char *text;

    if (scan->blank)
        return true;
    text = malloc(room);
    if (text == NULL || !KILN_RESERVE(self->lines, self->capacity, self->count + 1)) {
        free(text);
        return false;
    }
    snprintf(text, room, "%s:%lld", name, (long long)scan->line);
    self->lines[self->count].start = scan->start;
    self->lines[self->count++].name = text;
    return true;
}

static bool add_block(KilnLineIndex *self, Scan *scan, const char *block, ssize_t n)
{
    bool good = true;

    for (ssize_t i = 0; i < n && good; i++) {
        if (block[i] != '\n') {
            scan->blank = scan->blank && is_blank(block[i]);
            continue;
        }
        good = add_line(self, scan);
        *scan = (Scan) { scan->line + 1, self->size + i + 1, true };
    }
    self->size += n;
    return good;
}

static KilnStatus find_lines(KilnLineIndex *self, const KilnPoll *poll, KilnError *err)
{
    Scan scan = { .line = 1, .blank = true };
    char *block = malloc(BLOCK);
    KilnStatus status = block != NULL ? KILN_OK : kiln_error_nomem(err, BLOCK);
    ssize_t n = 1;

    while (status >= 0 && n > 0) {
        status = kiln_poll_check(poll, "reading lines", (int64_t)self->count, 0, err);
        if (status < 0)
            break;
        n = read(self->fd, block, BLOCK);
        if (n < 0)
            status = kiln_error_errno(err, self->path);
        else if (!add_block(self, &scan, block, n) || (n == 0 && !add_line(self, &scan)))
            status = kiln_error_nomem(err, self->count * sizeof(*self->lines));
    }
    free(block);
    return status;
}

KilnStatus kiln_line_index_open(KilnLineIndex *self, const char *path, const KilnPoll *poll,
                                KilnError *err)
{
    *self = (KilnLineIndex) { .fd = -1, .path = kiln_strdup(path) };
    KilnStatus status = self->path != NULL ? kiln_file_open_regular(path, &self->fd, err)
                                           : kiln_error_nomem(err, strlen(path));

    if (status >= 0)
        status = find_lines(self, poll, err);
    if (status >= 0 && self->count == 0)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: has no line that is not blank; expected a sample per line",
                                path);
    return status;
}

void kiln_line_index_close(KilnLineIndex *self)
{
    if (self->path == NULL)
        return;
    if (self->fd >= 0)
        close(self->fd);
    for (size_t i = 0; i < self->count; i++)
        free((char *)self->lines[i].name);
    free(self->lines);
    free((char *)self->path);
    *self = (KilnLineIndex) { 0 };
}

/* Read `n` bytes from `start` on; fewer are left only if the file has changed. */
static KilnStatus read_at(const KilnLineIndex *self, int64_t start, char *to, size_t n,
                          KilnError *err)
{
    size_t got = 0;

    while (got < n) {
        const ssize_t more = pread(self->fd, to + got, n - got, (off_t)(start + (int64_t)got));

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return kiln_error_errno(err, self->path);
        if (more == 0)
            return kiln_error_set(err, KILN_E_FORMAT, "%s: was truncated while it was read",
                                  self->path);
        got += (size_t)more;
    }
    return KILN_OK;
}

KilnStatus kiln_line_index_read(const KilnLineIndex *self, int64_t i, char **ret,
                                size_t *ret_length, KilnError *err)
{
    const size_t at = (size_t)i;
    const int64_t start = self->lines[at].start;
    const int64_t end = at + 1 < self->count ? self->lines[at + 1].start : self->size;
    const size_t n = (size_t)(end - start); /* also of the blank lines after it */
    char *text = n <= LONGEST ? malloc(n + 1) : NULL;

    if (n > LONGEST)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: the line has %zu bytes; at most %d are read",
                              self->lines[at].name, n, (int)LONGEST);
    if (text == NULL)
        return kiln_error_nomem(err, n);
    KilnStatus status = read_at(self, start, text, n, err);
    if (status >= 0) {
        const char *newline = memchr(text, '\n', n);
        size_t length = newline != NULL ? (size_t)(newline - text) : n;

        length -= length > 0 && text[length - 1] == '\r';
        text[length] = '\0';
        if (strlen(text) != length)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: the line has a NUL byte; expected text",
                                    self->lines[at].name);
        *ret_length = length;
    }
    if (status < 0)
        free(text);
    else
        *ret = text;
    return status;
}
