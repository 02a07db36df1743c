/* Writes origins into a YAML text and aligns them at the ends of its lines. */
#include "config/provenance/origin_comments.h"

#include <string.h>

#include "base/utf8.h"
#include "config/provenance/error_origin.h"

/* Separates a value from its origin until they are aligned; YAML escapes it in text. */
static const char separator = '\1';

enum { MAX_WIDTH = 60 }; /* longer lines do not move the column of the comments */

void kiln_origin_comment_add(KilnText *text, const KilnConfig *config,
                             const KilnConfigNode *written, const KilnConfigNode *value)
{
    static const char from[] = "from ";
    char where[1024] = "";

    kiln_node_where(config, written, value, where, sizeof(where));
    kiln_text_char(text, separator);
    const size_t n = strlen(where);
    for (size_t at = kiln_starts_with(where, from) ? sizeof(from) - 1 : 0, more; at < n;
         at += more) {
        uint32_t c;

        more = kiln_utf8_next(where + at, n - at, &c);
        /* Line breaks, and characters that YAML refuses. */
        if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
            c == 0xfffd || (c & 0xfffe) == 0xfffe)
            kiln_text_char(text, '?');
        else
            kiln_text_append_n(text, where + at, more);
    }
}

/* The widest line with a comment that may move the column of the comments. */
static int comment_column(const char *text)
{
    int column = 0;

    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        const size_t n = strcspn(line, "\1\n");
        const int width = line[n] == separator ? kiln_utf8_columns(line, n) : 0;

        if (width <= MAX_WIDTH && width > column)
            column = width;
    }
    return column;
}

void kiln_origin_comments_align(KilnText *text)
{
    KilnText aligned = { .failed = text->failed };
    const char *line = text->data != NULL ? text->data : "";
    const int column = comment_column(line);

    while (*line != '\0') {
        const size_t n = strcspn(line, "\1\n");
        const int width = kiln_utf8_columns(line, n);

        kiln_text_append_n(&aligned, line, n);
        if (line[n] == separator)
            kiln_text_printf(&aligned, "%*s  # ", width < column ? column - width : 0, "");
        line += n + (line[n] == separator);
        const size_t rest = strcspn(line, "\n") + 1;
        kiln_text_append_n(&aligned, line, rest);
        line += rest;
    }
    kiln_text_release(text);
    *text = aligned;
}
