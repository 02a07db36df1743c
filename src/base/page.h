/* Formats text for a screen or a pipe: wrapped words, aligned columns, bold headings. Cuts nothing.
 */
#ifndef KILN_BASE_PAGE_H
#define KILN_BASE_PAGE_H

#include "base/text.h"

/* Set width and colour. The caller may append to `text` at any time, and releases it
 * (kiln_text_release(&page.text)). */
typedef struct KilnPage {
    KilnText text;
    int width;   /* columns per line */
    bool colour; /* use escape sequences for bold headings */
} KilnPage;

/* The column of the next character, from 0. */
int kiln_page_column(const KilnPage *page);
/* Append words, wrapped; continuation lines start at column `indent`. A word that is too long is
 * broken after '|' and ',', or exceeds the width. */
void kiln_page_words(KilnPage *page, int indent, const char *words);
/* Move to a column with spaces, or on a new line if fewer than two columns are left. */
void kiln_page_tab(KilnPage *page, int column);
/* End the line, if one has begun. */
void kiln_page_end(KilnPage *page);
/* Append text at a column of the line that has begun, wrapped there, and end the line; on a narrow
 * page, or where a word would not fit beside, the text moves to the next line. */
void kiln_page_beside(KilnPage *page, int column, const char *format, ...) KILN_PRINTF(3, 4);
/* A line "  left   right": the right part is as in kiln_page_beside, and a left part that is wider
 * than the page is wrapped. */
void kiln_page_pair(KilnPage *page, int column, const char *left, const char *format, ...)
    KILN_PRINTF(4, 5);
/* A line for copying, which is never wrapped. */
void kiln_page_line(KilnPage *page, int indent, const char *text);
/* A heading line, with an empty line above unless it is the first. */
void kiln_page_heading(KilnPage *page, const char *format, ...) KILN_PRINTF(2, 3);

#endif
