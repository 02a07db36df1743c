/* Text in columns for a screen or a pipe: words wrapped, cells aligned, nothing
 * cut, headings bold where that is possible. */
#ifndef KILN_BASE_PAGE_H
#define KILN_BASE_PAGE_H

#include "base/text.h"

/* Set width and colour. More can be appended to `text` at any time; it is the
 * user's to release (kiln_text_release(&page.text)). */
typedef struct KilnPage {
    KilnText text;
    int width;   /* columns of a line */
    bool colour; /* headings are bold, by escape sequences */
} KilnPage;

/* The column that the next character goes to, from 0. */
int kiln_page_column(const KilnPage *page);
/* Append words from here on, wrapped; further lines start at column `indent`. What
 * is too long for a line is broken behind '|' and ',' too, else it stands out. */
void kiln_page_words(KilnPage *page, int indent, const char *words);
/* Go to a column: with spaces, or on a new line where the text ends less than two
 * columns before it. */
void kiln_page_tab(KilnPage *page, int column);
/* End the line, if one has begun. */
void kiln_page_end(KilnPage *page);
/* "  left   right" on a line of its own, right wrapped at `column`; on a narrow page it
 * stands below. */
void kiln_page_pair(KilnPage *page, int column, const char *left, const char *right);
/* A line of its own that people may copy: never wrapped. */
void kiln_page_line(KilnPage *page, int indent, const char *text);
/* A heading on a line of its own, with an empty line above unless it is the first. */
void kiln_page_heading(KilnPage *page, const char *format, ...) KILN_PRINTF(2, 3);

#endif
