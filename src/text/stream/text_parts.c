/* Parts of text files: splitting off the end, and training a tokenizer on their lines. */
#include "text/stream/text_parts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

KilnStatus kiln_text_map_open(KilnTextMap *map, const char *path, KilnError *err)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *data = NULL;

    if (fd < 0)
        return kiln_error_errno(err, path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return kiln_error_set(err, KILN_E_IO, "%s: is no file", path);
    }
    if (st.st_size > 0)
        data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return kiln_error_errno(err, path);
    *map = (KilnTextMap) { data, (uint64_t)st.st_size };
    return KILN_OK;
}

void kiln_text_map_close(KilnTextMap *map)
{
    if (map->data != NULL)
        munmap((void *)map->data, (size_t)map->size);
    *map = (KilnTextMap) { 0 };
}

/* The next place from `at` on where a character, or a line, begins. */
static uint64_t begin_after(const KilnTextMap *map, uint64_t at, bool lines)
{
    if (at == 0 || at >= map->size)
        return at < map->size ? at : map->size;
    if (!lines) {
        while (at < map->size && ((unsigned char)map->data[at] & 0xc0) == 0x80)
            at++;
        return at;
    }
    const char *end = memchr(map->data + at - 1, '\n', (size_t)(map->size - at + 1));
    return end != NULL ? (uint64_t)(end - map->data) + 1 : map->size;
}

static KilnStatus size_of(const char *path, uint64_t *ret, KilnError *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return kiln_error_errno(err, path);
    *ret = (uint64_t)st.st_size;
    return KILN_OK;
}

KilnStatus kiln_text_parts_split(char *const *files, size_t n, double share, bool lines,
                                 KilnTextPart *head, size_t *ret_head, KilnTextPart *tail,
                                 size_t *ret_tail, KilnError *err)
{
    uint64_t total = 0, before = 0, size = 0;
    KilnStatus status = KILN_OK;

    *ret_head = *ret_tail = 0;
    for (size_t i = 0; i < n && status >= 0; i++) {
        status = size_of(files[i], &size, err);
        total += size;
    }
    const uint64_t cut = (uint64_t)((double)total * (1.0 - share));
    for (size_t i = 0; i < n && status >= 0; i++) {
        KilnTextMap map = { 0 };
        uint64_t at;

        status = kiln_text_map_open(&map, files[i], err);
        if (status < 0)
            break;
        at = before >= cut              ? 0
             : before + map.size <= cut ? map.size
                                        : begin_after(&map, cut - before, lines);
        if (at > 0)
            head[(*ret_head)++] = (KilnTextPart) { files[i], 0, at };
        if (at < map.size)
            tail[(*ret_tail)++] = (KilnTextPart) { files[i], at, map.size };
        before += map.size;
        kiln_text_map_close(&map);
    }
    return status;
}

/* ---- Lines of parts ---------------------------------------------------------------------- */

typedef struct Lines {
    const KilnTextPart *parts;
    size_t n, part;
    uint64_t at;
    KilnTextMap map;
} Lines;

static bool next_line(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err)
{
    Lines *lines = ctx;

    while (lines->part < lines->n) {
        const KilnTextPart *part = &lines->parts[lines->part];

        if (lines->map.data == NULL) {
            *ret_status = kiln_text_map_open(&lines->map, part->path, err);
            if (*ret_status < 0)
                return false;
            lines->at = part->begin;
        }
        const uint64_t end = part->end < lines->map.size ? part->end : lines->map.size;
        if (lines->at < end) {
            const char *line = lines->map.data + lines->at;
            const char *stop = memchr(line, '\n', (size_t)(end - lines->at));
            const uint64_t length = stop != NULL ? (uint64_t)(stop - line) + 1 : end - lines->at;

            lines->at += length;
            *ret = (KilnString) { line, (size_t)length };
            return true;
        }
        kiln_text_map_close(&lines->map);
        lines->part++;
    }
    return false;
}

KilnStatus kiln_text_parts_train(const KilnTextPart *parts, size_t n, KilnInstance *tokenizer,
                                 const KilnPoll *poll, KilnError *err)
{
    Lines lines = { .parts = parts, .n = n };
    const KilnTexts texts = { next_line, &lines };
    KilnStatus status = kiln_tokenizer_train(tokenizer, &texts, poll, err);

    if (status == KILN_E_FORMAT && lines.part < n)
        kiln_error_prefix(err, "%s: line that ends at byte %llu: ", parts[lines.part].path,
                          (unsigned long long)lines.at);
    kiln_text_map_close(&lines.map);
    return status;
}
