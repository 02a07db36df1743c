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

typedef struct Drawing {
    const char *line;
    size_t size;
    int at, end;  /* screen columns of what is underlined, from 0 */
    int total;    /* of the whole line */
    int from, to; /* the part that is shown */
} Drawing;

/* Advance *at over a character; its columns when it begins in column `column`. */
static int next_width(const Drawing *drawing, size_t *at, int column, uint32_t *ret)
{
    *at += kiln_utf8_next(drawing->line + *at, drawing->size - *at, ret);
    return *ret == '\t' ? TAB - column % TAB : kiln_utf8_width(*ret);
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

/* Screen columns of the first `bytes` bytes. */
static int columns_of(const Drawing *drawing, size_t bytes)
{
    int column = 0;

    for (size_t at = 0; at < drawing->size && at < bytes;) {
        uint32_t c;

        column += next_width(drawing, &at, column, &c);
    }
    return column;
}

/* Select the part of a long line around the caret. */
static void select_part(Drawing *drawing, int room)
{
    drawing->from = 0;
    drawing->to = drawing->total;
    if (drawing->total <= room)
        return;
    if (drawing->at > room / 2)
        drawing->from = drawing->at - room / 3;
    if (drawing->from > drawing->total - room)
        drawing->from = drawing->total - room;
    drawing->to = drawing->from + room;
}

static void draw_character(KilnText *text, const char *bytes, size_t n, uint32_t c, int width)
{
    if (c == '\t')
        kiln_text_printf(text, "%*s", width, "");
    else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        kiln_text_char(text, '?'); /* no control sequences for the terminal */
    else if (n == 1 && c >= 0x80)
        kiln_text_append(text, "\xef\xbf\xbd");
    else
        kiln_text_append_n(text, bytes, n);
}

static void draw_line(const Drawing *drawing, KilnText *text)
{
    int left = drawing->from > 0 ? drawing->from + 3 : 0;
    int right = drawing->to < drawing->total ? drawing->to - 3 : drawing->to;
    int column = 0, drawn = left;

    kiln_text_append(text, left > 0 ? "..." : "");
    for (size_t at = 0, next = 0; at < drawing->size; at = next) {
        uint32_t c;
        int width = next_width(drawing, &next, column, &c);

        column += width;
        if (column > right)
            break;
        if (column - width < left)
            continue;
        /* Half of a double-width character may be cut off. */
        kiln_text_printf(text, "%*s", column - width - drawn, "");
        draw_character(text, drawing->line + at, next - at, c, width);
        drawn = column;
    }
    kiln_text_append(text, drawing->to < drawing->total ? "...\n" : "\n");
}

static void draw_caret(const Drawing *drawing, bool colour, KilnText *text)
{
    int right = drawing->to < drawing->total ? drawing->to - 3 : drawing->to;

    kiln_text_printf(text, "%*s | %*s%s^", GUTTER - 3, "", drawing->at - drawing->from, "",
                     colour ? "\033[1;32m" : "");
    for (int i = drawing->at + 1; i < drawing->end && i < right; i++)
        kiln_text_char(text, '~');
    kiln_text_append(text, colour ? "\033[0m\n" : "\n");
}

static void draw(KilnText *text, const KilnOrigin *origin, const char *line, size_t size,
                 bool argument, int width, bool colour)
{
    Drawing drawing = { .line = line, .size = size };
    size_t start = offset_of(line, size, origin->column - 1);
    size_t end = argument ? kiln_token_argument(line, size, start)
                          : kiln_token_yaml(line, size, start);
    int room = (width > NARROWEST ? width : NARROWEST) - GUTTER;

    drawing.at = columns_of(&drawing, start);
    drawing.end = columns_of(&drawing, end);
    drawing.total = columns_of(&drawing, size);
    if (drawing.end <= drawing.at)
        drawing.end = drawing.at + 1;
    select_part(&drawing, room);
    if (argument)
        kiln_text_printf(text, "%*s | ", GUTTER - 3, "");
    else
        kiln_text_printf(text, "%*d | ", GUTTER - 3, origin->line);
    draw_line(&drawing, text);
    draw_caret(&drawing, colour, text);
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
