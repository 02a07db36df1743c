/* Collects origins for a YAML text and writes them at the ends of its lines. */
#include "config/provenance/origin_comments.h"

#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "config/provenance/error_origin.h"

enum { MAX_WIDTH = 60 }; /* longer lines do not move the column of the comments */

typedef struct KilnOriginComment {
    size_t offset;
    const char *text;
} KilnOriginComment;

/* Without line breaks, and characters that YAML refuses. */
static const char *clean(const char *text, KilnArena *arena)
{
    KilnText clean = { 0 };
    size_t n = strlen(text);

    for (size_t at = 0, more; at < n; at += more) {
        uint32_t c;

        more = kiln_utf8_next(text + at, n - at, &c);
        if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
            c == 0xfffd || (c & 0xfffe) == 0xfffe)
            kiln_text_char(&clean, '?');
        else
            kiln_text_append_n(&clean, text + at, more);
    }
    return kiln_text_to_arena(&clean, arena);
}

void kiln_origin_comments_add(KilnOriginComments *comments, const KilnConfig *config,
                              const KilnConfigNode *written, const KilnConfigNode *value,
                              size_t offset)
{
    static const char from[] = "from ";
    KilnArena *arena = kiln_config_arena(config);
    char where[1024] = "";

    kiln_node_where(config, written, value, where, sizeof(where));
    const char *text = clean(where + (kiln_starts_with(where, from) ? sizeof(from) - 1 : 0), arena);
    if (text != NULL &&
        KILN_ARENA_RESERVE(arena, comments->list, comments->capacity, comments->count + 1))
        comments->list[comments->count++] = (KilnOriginComment) { offset, text };
    else
        comments->failed = true;
}

/* Columns of the line that ends at `end`. */
static int line_width(const KilnText *text, size_t end)
{
    size_t at = end;
    int width = 0;

    while (at > 0 && text->data[at - 1] != '\n')
        at--;
    while (at < end) {
        uint32_t c;

        at += kiln_utf8_next(text->data + at, end - at, &c);
        width += kiln_utf8_width(c);
    }
    return width;
}

void kiln_origin_comments_write(const KilnOriginComments *comments, const KilnText *text,
                                KilnText *ret)
{
    int column = 0;
    size_t at = 0;

    for (size_t i = 0; i < comments->count; i++) {
        int width = line_width(text, comments->list[i].offset);

        if (width <= MAX_WIDTH && width > column)
            column = width;
    }
    for (size_t i = 0; i < comments->count; i++) {
        size_t end = comments->list[i].offset;
        int width = line_width(text, end);

        kiln_text_append_n(ret, text->data + at, end - at);
        kiln_text_printf(ret, "%*s  # %s", width < column ? column - width : 0, "",
                         comments->list[i].text);
        at = end;
    }
    if (text->length > at)
        kiln_text_append_n(ret, text->data + at, text->length - at);
    ret->failed |= comments->failed || text->failed;
}
