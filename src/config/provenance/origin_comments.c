/* Collects places for a YAML text, and writes them behind its lines. */
#include "config/provenance/origin_comments.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { WIDEST_LINE = 60 }; /* longer lines don't move the column of the comments */

typedef struct KilnRemark {
    size_t offset;
    char *text;
} KilnRemark;

void kiln_remarks_release(KilnRemarks *remarks)
{
    for (size_t i = 0; i < remarks->count; i++)
        free(remarks->list[i].text);
    free(remarks->list);
    *remarks = (KilnRemarks) { 0 };
}

/* A comment must not hold what ends a line or is no text to YAML. */
static char *clean(const char *text)
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
    return kiln_text_take(&clean);
}

void kiln_remarks_add(KilnRemarks *remarks, const KilnConfig *config, const KilnConfigNode *written,
                      const KilnConfigNode *value, size_t offset)
{
    static const char from[] = "from ";
    char where[1024] = "";

    if (remarks->count == remarks->capacity) {
        size_t capacity = remarks->capacity > 0 ? remarks->capacity * 2 : 64;
        KilnRemark *list = realloc(remarks->list, capacity * sizeof(*list));

        if (list == NULL) {
            remarks->failed = true;
            return;
        }
        remarks->list = list;
        remarks->capacity = capacity;
    }
    kiln_node_where(config, written, value, where, sizeof(where));
    char *text = clean(where + (kiln_starts_with(where, from) ? sizeof(from) - 1 : 0));
    remarks->failed |= text == NULL;
    if (text != NULL)
        remarks->list[remarks->count++] = (KilnRemark) { offset, text };
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

void kiln_remarks_write(const KilnRemarks *remarks, const KilnText *text, KilnText *ret)
{
    int column = 0;
    size_t at = 0;

    for (size_t i = 0; i < remarks->count; i++) {
        int width = line_width(text, remarks->list[i].offset);

        if (width <= WIDEST_LINE && width > column)
            column = width;
    }
    for (size_t i = 0; i < remarks->count; i++) {
        size_t end = remarks->list[i].offset;
        int width = line_width(text, end);

        kiln_text_append_n(ret, text->data + at, end - at);
        kiln_text_printf(ret, "%*s  # %s", width < column ? column - width : 0, "",
                         remarks->list[i].text);
        at = end;
    }
    if (text->length > at)
        kiln_text_append_n(ret, text->data + at, text->length - at);
    ret->failed |= remarks->failed || text->failed;
}
