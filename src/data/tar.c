/* Reading tar archives: blocks of 512 bytes, a header of text fields before each file. */
#include "kiln/files/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "data/records/mapped_file.h"

enum { BLOCK = 512 };

/* Fields of a header, and where they are. */
enum {
    NAME = 0,
    NAME_SIZE = 100,
    SIZE = 124,
    CHECKSUM = 148,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345
};

typedef struct Member {
    const char *name;
    size_t at, size;
} Member;

typedef struct Name {
    const char *name;
    int64_t member;
} Name;

struct KilnTar {
    KilnMappedFile file;
    KilnArena names;
    Member *members;
    int64_t count, capacity;
    Name *by_name; /* sorted; of equal ones those that come first in the archive first */
};

/* What the next header's file has from entries before it. */
typedef struct Longer {
    const char *name; /* NULL: that of the header */
    int64_t size;     /* -1: that of the header */
} Longer;

static KilnStatus damaged(const KilnTar *tar, size_t at, const char *why, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged tar, at byte %zu: %s", tar->file.path,
                          at, why);
}

/* ---- Headers ----------------------------------------------------------------------------------
 */

/* Octal digits, or with the first bit set a binary number; -1: neither. */
static int64_t read_number(const uint8_t *field, size_t size)
{
    int64_t value = 0;

    if (field[0] == 0x80) {
        for (size_t i = 1; i < size; i++) {
            if (value > INT64_MAX >> 9)
                return -1;
            value = value << 8 | field[i];
        }
        return value;
    }
    for (size_t i = 0; i < size && field[i] != '\0'; i++) {
        if (field[i] == ' ')
            continue;
        if (field[i] < '0' || field[i] > '7')
            return -1;
        value = value << 3 | (field[i] - '0');
    }
    return value;
}

/* The sum of all bytes, those of the field itself as blanks. */
static bool checksum_is_right(const uint8_t *header)
{
    int64_t sum = 0;

    for (int i = 0; i < BLOCK; i++)
        sum += i >= CHECKSUM && i < CHECKSUM + 8 ? ' ' : header[i];
    return sum == read_number(header + CHECKSUM, 8);
}

static bool is_zero(const uint8_t *block)
{
    for (int i = 0; i < BLOCK; i++)
        if (block[i] != 0)
            return false;
    return true;
}

/* The name of a header: the field, with ustar's prefix before it. */
static const char *header_name(KilnTar *tar, const uint8_t *header)
{
    const bool has_prefix = memcmp(header + MAGIC, "ustar", 6) == 0 && header[PREFIX] != '\0';

    return kiln_arena_printf(&tar->names, "%.*s%s%.*s", has_prefix ? 155 : 0,
                             (const char *)header + PREFIX, has_prefix ? "/" : "", NAME_SIZE,
                             (const char *)header + NAME);
}

/* The records "LENGTH KEY=VALUE\n" of a pax header: path and size. False: damaged. */
static bool read_pax(KilnTar *tar, const char *text, size_t size, Longer *longer)
{
    while (size > 0) {
        size_t length = 0, digits = 0;

        while (digits < size && digits < 10 && text[digits] >= '0' && text[digits] <= '9')
            length = 10 * length + (size_t)(text[digits++] - '0');
        if (digits == 0 || length <= digits + 1 || length > size || text[digits] != ' ')
            return false;
        const char *record = text + digits + 1;
        const size_t n = length - digits - 2; /* without the line end */
        if (n >= 5 && memcmp(record, "path=", 5) == 0)
            longer->name = kiln_arena_printf(&tar->names, "%.*s", (int)(n - 5), record + 5);
        if (n >= 5 && memcmp(record, "size=", 5) == 0)
            longer->size = strtoll(record + 5, NULL, 10);
        text += length;
        size -= length;
    }
    return true;
}

/* ---- The index --------------------------------------------------------------------------------
 */

static KilnStatus add_member(KilnTar *tar, const char *name, size_t at, size_t size, KilnError *err)
{
    if (tar->count == tar->capacity) {
        const int64_t capacity = tar->capacity == 0 ? 1024 : 2 * tar->capacity;
        Member *members = capacity <= INT32_MAX
                              ? realloc(tar->members, (size_t)capacity * sizeof(*members))
                              : NULL;

        if (members == NULL)
            return kiln_error_nomem(err, (size_t)capacity * sizeof(*members));
        tar->members = members;
        tar->capacity = capacity;
    }
    while (name != NULL && strncmp(name, "./", 2) == 0)
        name += 2;
    if (name == NULL)
        return kiln_error_nomem(err, NAME_SIZE);
    tar->members[tar->count++] = (Member) { .name = name, .at = at, .size = size };
    return KILN_OK;
}

/* An entry whose content begins at `at`; what is for the next one goes to `longer`. */
static KilnStatus take_entry(KilnTar *tar, const uint8_t *header, size_t at, size_t size,
                             Longer *longer, KilnError *err)
{
    const char *data = tar->file.data + at;
    const char type = (char)header[TYPE];
    const Longer own = *longer;

    if (type == 'x')
        return read_pax(tar, data, size, longer) ? KILN_OK
                                                 : damaged(tar, at, "a wrong pax header", err);
    if (type == 'L') {
        longer->name = kiln_arena_printf(&tar->names, "%.*s", (int)size, data);
        return longer->name != NULL ? KILN_OK : kiln_error_nomem(err, size);
    }
    if (type == 'g' || type == 'K')
        return KILN_OK;
    *longer = (Longer) { .size = -1 };
    if (type != '0' && type != '\0' && type != '7')
        return KILN_OK;
    return add_member(tar, own.name != NULL ? own.name : header_name(tar, header), at, size, err);
}

static KilnStatus read_headers(KilnTar *tar, const KilnPoll *poll, KilnError *err)
{
    const size_t end = tar->file.size;
    Longer longer = { .size = -1 };

    for (size_t at = 0;;) {
        const uint8_t *header = (const uint8_t *)tar->file.data + at;
        KilnStatus status = kiln_poll_check(poll, "reading the index of a tar", (int64_t)at,
                                            (int64_t)end, err);

        if (status < 0)
            return status;
        if (end - at < BLOCK)
            return damaged(tar, at, "the file ends before the archive does", err);
        if (is_zero(header))
            return KILN_OK;
        if (!checksum_is_right(header))
            return damaged(tar, at, at == 0 ? "no tar header" : "the header's checksum is wrong",
                           err);
        const bool own = header[TYPE] != 'x' && header[TYPE] != 'L' && longer.size >= 0;
        const int64_t size = own ? longer.size : read_number(header + SIZE, 12);
        at += BLOCK;
        if (size < 0 || (uint64_t)size > end - at)
            return damaged(tar, at, "the file ends before the archive does", err);
        status = take_entry(tar, header, at, (size_t)size, &longer, err);
        if (status < 0)
            return status;
        const size_t padded = ((size_t)size + BLOCK - 1) / BLOCK * BLOCK;
        at = padded < end - at ? at + padded : end;
    }
}

static int compare(const void *a, const void *b)
{
    const Name *x = a, *y = b;
    const int order = strcmp(x->name, y->name);

    return order != 0 ? order : (x->member > y->member) - (x->member < y->member);
}

static KilnStatus sort_names(KilnTar *tar, KilnError *err)
{
    const size_t n = (size_t)tar->count;

    tar->by_name = malloc((n + 1) * sizeof(*tar->by_name));
    if (tar->by_name == NULL)
        return kiln_error_nomem(err, n * sizeof(*tar->by_name));
    for (size_t i = 0; i < n; i++)
        tar->by_name[i] = (Name) { .name = tar->members[i].name, .member = (int64_t)i };
    qsort(tar->by_name, n, sizeof(*tar->by_name), compare);
    return KILN_OK;
}

/* ---- The archive ------------------------------------------------------------------------------
 */

KilnStatus kiln_tar_open(const char *path, const char *cache, const KilnPoll *poll, KilnTar **ret,
                         KilnError *err)
{
    KilnTar *tar = calloc(1, sizeof(*tar));
    KilnStatus status = tar != NULL ? kiln_mapped_file_open(&tar->file, path, cache, poll, err)
                                    : kiln_error_nomem(err, sizeof(*tar));

    if (status >= 0)
        status = read_headers(tar, poll, err);
    if (status >= 0)
        status = sort_names(tar, err);
    if (status < 0) {
        kiln_tar_close(tar);
        return status;
    }
    *ret = tar;
    return KILN_OK;
}

void kiln_tar_close(KilnTar *tar)
{
    if (tar == NULL)
        return;
    kiln_mapped_file_close(&tar->file);
    kiln_arena_release(&tar->names);
    free(tar->members);
    free(tar->by_name);
    free(tar);
}

int64_t kiln_tar_count(const KilnTar *tar)
{
    return tar->count;
}

KilnTarMember kiln_tar_member(const KilnTar *tar, int64_t i)
{
    const Member *member = &tar->members[i];

    return (KilnTarMember) { .name = member->name,
                             .data = tar->file.data + member->at,
                             .size = member->size };
}

/* The place in by_name of the first name that is not before `name`; with `after`, of the first that
 * is after it. */
static int64_t place_of(const KilnTar *tar, const char *name, bool after)
{
    int64_t low = 0, high = tar->count;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(tar->by_name[middle].name, name);

        if (order > 0 || (order == 0 && !after))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int64_t kiln_tar_find(const KilnTar *tar, const char *name)
{
    const int64_t next = place_of(tar, name, true);

    return next > 0 && strcmp(tar->by_name[next - 1].name, name) == 0
               ? tar->by_name[next - 1].member
               : -1;
}

bool kiln_tar_has_folder(const KilnTar *tar, const char *folder)
{
    return kiln_tar_child(tar, folder, &(KilnTarChild) { 0 });
}

bool kiln_tar_child(const KilnTar *tar, const char *folder, KilnTarChild *child)
{
    const size_t n = strlen(folder);
    const char *before = child->name;
    const size_t before_length = child->length;

    if (child->name == NULL) {
        char *inside = malloc(n + 2);

        if (inside == NULL)
            return false;
        snprintf(inside, n + 2, "%s%s", folder, n > 0 ? "/" : "");
        child->next = place_of(tar, inside, false);
        free(inside);
    }
    for (; child->next < tar->count; child->next++) {
        const char *name = tar->by_name[child->next].name;

        if (strncmp(name, folder, n) != 0 || (n > 0 && name[n] != '/'))
            break;
        child->name = name + n + (n > 0);
        child->length = strcspn(child->name, "/");
        child->is_folder = child->name[child->length] == '/';
        if (before == NULL || child->length != before_length ||
            memcmp(child->name, before, before_length) != 0)
            return true;
    }
    return false;
}

bool kiln_is_tar(const char *path)
{
    static const char *const endings[] = { ".tar", ".tar.gz", ".tar.zst" };
    const size_t length = strlen(path);

    for (size_t i = 0; i < KILN_COUNT(endings); i++) {
        const size_t n = strlen(endings[i]);

        if (length > n && strcasecmp(path + length - n, endings[i]) == 0)
            return true;
    }
    return false;
}
