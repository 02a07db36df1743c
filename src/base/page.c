/* Lays out text in columns. Knows nothing of what the text is about. */
#include "base/page.h"

#include <string.h>

enum { CONTINUED = 4 }; /* where the left part of a pair continues */

/* Columns that `n` bytes of UTF-8 take; every character counts for one. */
static int columns(const char *text, size_t n)
{
    int count = 0;

    for (size_t i = 0; i < n; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80)
            count++;
    return count;
}

int kiln_page_column(const KilnPage *page)
{
    size_t start = page->text.length;

    while (start > 0 && page->text.data[start - 1] != '\n')
        start--;
    return page->text.length > 0 ? columns(page->text.data + start, page->text.length - start) : 0;
}

static void new_line(KilnPage *page, int indent)
{
    KilnText *text = &page->text;

    while (text->length > 0 && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
    kiln_text_printf(&page->text, "\n%*s", indent, "");
}

/* Bytes of the start of a word that stay together: all of it where it fits a line of
 * `room` columns, else up to a separator. */
static size_t piece_length(const char *word, size_t length, int room)
{
    size_t piece = strcspn(word, "|,") + 1;

    return columns(word, length) > room && piece < length ? piece : length;
}

/* Is there no room for so many more columns on this line? */
static bool is_full(const KilnPage *page, int indent, int more)
{
    int here = kiln_page_column(page);

    return here > indent && here + more > page->width;
}

static void put_word(KilnPage *page, int indent, const char *word, size_t length)
{
    while (length > 0) {
        size_t piece = piece_length(word, length, page->width - indent);

        if (is_full(page, indent, columns(word, piece)))
            new_line(page, indent);
        kiln_text_append_n(&page->text, word, piece);
        word += piece;
        length -= piece;
    }
}

void kiln_page_words(KilnPage *page, int indent, const char *words)
{
    bool first = true;

    for (words += strspn(words, " "); *words != '\0'; words += strspn(words, " ")) {
        size_t length = strcspn(words, " ");
        size_t piece = piece_length(words, length, page->width - indent);

        if (!first && is_full(page, indent, columns(words, piece) + 1))
            new_line(page, indent);
        else if (!first)
            kiln_text_char(&page->text, ' ');
        put_word(page, indent, words, length);
        words += length;
        first = false;
    }
}

void kiln_page_tab(KilnPage *page, int column)
{
    int here = kiln_page_column(page);

    if (here > 0 && here + 2 > column) {
        new_line(page, 0);
        here = 0;
    }
    kiln_text_printf(&page->text, "%*s", column - here, "");
}

void kiln_page_end(KilnPage *page)
{
    if (kiln_page_column(page) > 0)
        kiln_text_char(&page->text, '\n');
}

/* Columns of the longest piece that stays together. */
static int longest_piece(const char *words, int room)
{
    int longest = 0;

    for (words += strspn(words, " "); *words != '\0'; words += strspn(words, " ")) {
        const size_t length = strcspn(words, " "), piece = piece_length(words, length, room);
        const int n = columns(words, piece);

        longest = n > longest ? n : longest;
        words += length;
    }
    return longest;
}

static void beside(KilnPage *page, int column, const char *format, va_list args)
{
    enum { BELOW = 6, NARROWEST = 24 };
    KilnText right = { 0 };

    kiln_text_vprintf(&right, format, args);
    if (column + NARROWEST > page->width ||
        (right.length > 0 &&
         column + longest_piece(right.data, page->width - column) > page->width))
        column = BELOW;
    if (right.length > 0) {
        kiln_page_tab(page, column);
        kiln_page_words(page, column, right.data);
    }
    kiln_page_end(page);
    page->text.failed |= right.failed;
    kiln_text_release(&right);
}

void kiln_page_beside(KilnPage *page, int column, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    beside(page, column, format, args);
    va_end(args);
}

void kiln_page_pair(KilnPage *page, int column, const char *left, const char *format, ...)
{
    va_list args;

    kiln_page_end(page);
    kiln_text_append(&page->text, "  ");
    if (columns(left, strlen(left)) + 2 > page->width)
        kiln_page_words(page, CONTINUED, left);
    else
        kiln_text_append(&page->text, left); /* blanks in it stay */
    va_start(args, format);
    beside(page, column, format, args);
    va_end(args);
}

void kiln_page_line(KilnPage *page, int indent, const char *text)
{
    kiln_page_end(page);
    kiln_text_printf(&page->text, "%*s%s\n", indent, "", text);
}

void kiln_page_heading(KilnPage *page, const char *format, ...)
{
    KilnText text = { 0 };
    va_list args;

    va_start(args, format);
    kiln_text_vprintf(&text, format, args);
    va_end(args);
    kiln_page_end(page);
    if (page->text.length > 0)
        kiln_text_char(&page->text, '\n');
    if (page->colour)
        kiln_text_append(&page->text, "\033[1m");
    kiln_page_words(page, 0, text.data != NULL ? text.data : "");
    kiln_text_append(&page->text, page->colour ? "\033[0m\n" : "\n");
    page->text.failed = page->text.failed || text.failed;
    kiln_text_release(&text);
}
