/* Parts of text files: splitting off the end, and training a tokenizer on their lines. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "kiln/tools/token_stream.h"
#include "text/stream/text_place.h"
#include "text/stream/windowed_text.h"

/* The next place from `at` on where a character, or a line, begins. */
static uint64_t begin_after(const KilnMappedFile *map, uint64_t at, bool lines)
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

/* Cut the open files. */
static void split_maps(const KilnMappedFile *maps, char *const *files, size_t n, double share,
                       bool lines, KilnTextPart *head, size_t *ret_head, KilnTextPart *tail,
                       size_t *ret_tail)
{
    uint64_t total = 0, before = 0;

    for (size_t i = 0; i < n; i++)
        total += maps[i].size;
    const uint64_t cut = (uint64_t)((double)total * (1.0 - share));
    for (size_t i = 0; i < n; i++) {
        const uint64_t size = maps[i].size;
        const uint64_t at = before >= cut          ? 0
                            : before + size <= cut ? size
                                                   : begin_after(&maps[i], cut - before, lines);

        if (at > 0)
            head[(*ret_head)++] = (KilnTextPart) { files[i], 0, at };
        if (at < size)
            tail[(*ret_tail)++] = (KilnTextPart) { files[i], at, size };
        before += size;
    }
}

KilnStatus kiln_text_parts_split(char *const *files, size_t n, double share, bool lines,
                                 KilnTextPart *head, size_t *ret_head, KilnTextPart *tail,
                                 size_t *ret_tail, KilnError *err)
{
    KilnMappedFile *maps = calloc(n + 1, sizeof(*maps));
    KilnStatus status = maps != NULL ? KILN_OK : kiln_error_nomem(err, n * sizeof(*maps));

    *ret_head = *ret_tail = 0;
    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_mapped_file_open(&maps[i], files[i], NULL, NULL, err);
    if (status >= 0)
        split_maps(maps, files, n, share, lines, head, ret_head, tail, ret_tail);
    for (size_t i = 0; i < n && maps != NULL; i++)
        kiln_mapped_file_close(&maps[i]);
    free(maps);
    return status;
}

/* ---- Places ------------------------------------------------------------------------------ */

static long long line_of(const KilnMappedFile *map, uint64_t at)
{
    const char *rest = map->data, *newline;
    long long line = 1;

    while ((newline = memchr(rest, '\n', (size_t)(map->data + at - rest))) != NULL) {
        rest = newline + 1;
        line++;
    }
    return line;
}

KilnStatus kiln_text_place_error(const KilnMappedFile *map, uint64_t at, uint64_t end,
                                 KilnError *err)
{
    const size_t n = (size_t)(end - at), good = kiln_utf8_check(map->data + at, n);

    if (good == n)
        return kiln_error_prefix(err, "%s:%lld: ", map->path, line_of(map, at));
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s:%lld: byte %llu of the file (0x%02x) is not UTF-8; convert the file, "
                          "such as by iconv -f ISO-8859-1 -t UTF-8",
                          map->path, line_of(map, at + good), (unsigned long long)(at + good),
                          (unsigned char)map->data[at + good]);
}

/* ---- Lines of parts ---------------------------------------------------------------------- */

typedef struct Lines {
    const KilnTextPart *parts;
    size_t n, part;
    uint64_t at, begin; /* where the next line begins, and the last one */
    KilnMappedFile map; /* path NULL: of the next part, not open yet */
    const KilnPoll *poll;
} Lines;

/* The end of the line at `at`, with its line end; of a long line that of its next part. */
static uint64_t line_end(const KilnMappedFile *map, uint64_t at, uint64_t end)
{
    const uint64_t most = end - at > KILN_TEXT_WINDOW ? at + KILN_TEXT_WINDOW : end;
    const char *stop = memchr(map->data + at, '\n', (size_t)(most - at));

    return stop != NULL ? (uint64_t)(stop - map->data) + 1 : kiln_text_cut(map->data, at, end);
}

static bool next_line(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err)
{
    Lines *lines = ctx;

    while (lines->part < lines->n) {
        const KilnTextPart *part = &lines->parts[lines->part];

        if (lines->map.path == NULL) {
            *ret_status = kiln_mapped_file_open(&lines->map, part->path, NULL, lines->poll, err);
            if (*ret_status < 0)
                return false;
            lines->at = part->begin > lines->map.begin ? part->begin : lines->map.begin;
        }
        const uint64_t end = part->end < lines->map.size ? part->end : lines->map.size;
        if (lines->at < end) {
            lines->begin = lines->at;
            lines->at = line_end(&lines->map, lines->at, end);
            *ret = (KilnString) { lines->map.data + lines->begin,
                                  (size_t)(lines->at - lines->begin) };
            return true;
        }
        kiln_mapped_file_close(&lines->map);
        lines->part++;
    }
    return false;
}

KilnStatus kiln_text_parts_train(const KilnTextPart *parts, size_t n, KilnInstance *tokenizer,
                                 const KilnPoll *poll, KilnError *err)
{
    Lines lines = { .parts = parts, .n = n, .poll = poll };
    const KilnTexts texts = { next_line, &lines };
    KilnStatus status = kiln_tokenizer_train(tokenizer, &texts, poll, err);

    if (status == KILN_E_FORMAT && lines.map.data != NULL)
        (void)kiln_text_place_error(&lines.map, lines.begin, lines.at, err);
    kiln_mapped_file_close(&lines.map);
    return status;
}
