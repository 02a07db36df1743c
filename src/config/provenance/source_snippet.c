/* Draws source snippets: finds the line, cuts it, puts the caret under it. config/override/token.c
 * determines what is underlined. */
#include "config/provenance/source_snippet.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/utf8.h"
#include "config/provenance/origin.h"
#include "config/yaml/yaml_reader.h"
#include "config/defaults/search_path.h"
#include "config/override/token.h"

enum { GUTTER = 8, TAB = 8, NARROWEST = 20 };

/* ---- The line ----------------------------------------------------------------------- */

/* Length of the line break at `p`, as YAML has them; 0: none. */
static size_t break_length(const char *p, const char *end)
{
    static const char *const breaks[] = { "\n",       "\r\n",         "\r",
                                          "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9" };

    for (size_t i = 0; i < KILN_COUNT(breaks); i++) {
        const size_t n = strlen(breaks[i]);

        if (n <= (size_t)(end - p) && memcmp(p, breaks[i], n) == 0)
            return n;
    }
    return 0;
}

static const char *line_end(const char *p, const char *end)
{
    while (p < end && break_length(p, end) == 0)
        p++;
    return p;
}

static bool take_line(const char *text, size_t size, int number, KilnText *ret)
{
    const char *p = text, *end = text + size;

    if (size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return false; /* UTF-16 */
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    for (int line = 1; line < number; line++) {
        p = line_end(p, end);
        if (p == end)
            return false;
        p += break_length(p, end);
    }
    kiln_text_append_n(ret, p, (size_t)(line_end(p, end) - p));
    return true;
}

static bool find_line(const KilnOrigin *origin, KilnText *ret)
{
    static const char inside[] = "kiln:conf/";
    char *text = NULL;
    size_t size = 0;
    bool found;

    if (kiln_starts_with(origin->source, inside)) {
        const KilnShippedFile *file = kiln_shipped_find(origin->source + sizeof(inside) - 1);

        return file != NULL && take_line(file->text, file->size, origin->line, ret);
    }
    if (!kiln_is_file(origin->source) ||
        kiln_file_read(origin->source, KILN_YAML_BYTES, &text, &size, NULL) < 0)
        return false;
    found = take_line(text, size, origin->line, ret);
    free(text);
    return found;
}

/* ---- Drawing --------------------------------------------------------------------------- */

/* Append text as a terminal can show it: no tabs, and no control sequences. */
static void append_clean(KilnText *text, const char *line, size_t size)
{
    for (size_t n; size > 0; line += n, size -= n) {
        uint32_t c;

        n = kiln_utf8_next(line, size, &c);
        if (c == '\t')
            kiln_text_printf(text, "%*s", TAB - kiln_utf8_columns(text->data, text->length) % TAB,
                             "");
        else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
            kiln_text_char(text, '?');
        else if (n == 1 && c >= 0x80)
            kiln_text_append(text, "\xef\xbf\xbd");
        else
            kiln_text_append_n(text, line, n);
    }
}

/* Append the columns from `left` to `right`; half of a double-width character becomes blank. */
static void append_columns(KilnText *text, const KilnText *line, int left, int right)
{
    int column = 0, drawn = left;

    for (size_t at = 0, n; at < line->length; at += n) {
        uint32_t c;

        n = kiln_utf8_next(line->data + at, line->length - at, &c);
        const int next = column + kiln_utf8_width(c);
        if (next > right)
            break;
        if (column >= left) {
            kiln_text_printf(text, "%*s%.*s", column - drawn, "", (int)n, line->data + at);
            drawn = next;
        }
        column = next;
    }
}

void kiln_snippet_draw(KilnText *text, const char *gutter, const char *line, size_t size,
                       size_t start, size_t end, int width, bool colour)
{
    KilnText clean = { 0 };

    append_clean(&clean, line, start);
    const int at = kiln_utf8_columns(clean.data, clean.length);
    append_clean(&clean, line + start, end - start);
    const int stop = kiln_utf8_columns(clean.data, clean.length);
    append_clean(&clean, line + end, size - end);
    const int total = kiln_utf8_columns(clean.data, clean.length);
    int left = total > width && at > width / 2 ? at - width / 3 : 0;
    if (left > 0 && left > total - width)
        left = total - width;
    const bool more = total > left + width;
    const int right = more ? left + width - 3 : total;

    kiln_text_append(text, left > 0 ? "..." : "");
    append_columns(text, &clean, left > 0 ? left + 3 : 0, right);
    kiln_text_printf(text, "%s\n%s%*s%s^", more ? "..." : "", gutter, at - left, "",
                     colour ? "\033[1;32m" : "");
    for (int i = at + 1; i < stop && i < right; i++)
        kiln_text_char(text, '~');
    kiln_text_append(text, colour ? "\033[0m\n" : "\n");
    kiln_text_release(&clean);
}

/* Byte offset of the n-th character (from 0), at most the line's end. */
static size_t offset_of(const char *line, size_t size, int n)
{
    size_t at = 0;
    uint32_t c;

    while (n-- > 0 && at < size)
        at += kiln_utf8_next(line + at, size - at, &c);
    return at;
}

static void draw(KilnText *text, const KilnOrigin *origin, const char *line, size_t size,
                 bool argument, int width, bool colour)
{
    size_t start = offset_of(line, size, origin->column - 1);
    size_t end = kiln_token_end(line, size, start, argument);

    if (argument)
        kiln_text_printf(text, "%*s | ", GUTTER - 3, "");
    else
        kiln_text_printf(text, "%*d | ", GUTTER - 3, origin->line);
    kiln_snippet_draw(text, "      | ", line, size, start,
                      end < start  ? start
                      : end < size ? end
                                   : size,
                      (width > NARROWEST ? width : NARROWEST) - GUTTER, colour);
}

void kiln_source_snippet_write(KilnText *text, const KilnOrigin *origin, int width, bool colour)
{
    const char *argument = kiln_origin_argument(origin->source, NULL);
    KilnText line = { 0 };

    if (origin->source == NULL || origin->column <= 0)
        return;
    if (argument != NULL)
        draw(text, origin, argument, strlen(argument) - 1, true, width, colour);
    else if (origin->line > 0 && find_line(origin, &line) && !line.failed)
        draw(text, origin, line.data != NULL ? line.data : "", line.length, false, width, colour);
    kiln_text_release(&line);
}
