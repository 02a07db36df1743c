/* Tables of text: aligned columns, which are left out or shortened where the page is narrow. */
#ifndef KILN_BASE_TEXT_TABLE_H
#define KILN_BASE_TEXT_TABLE_H

#include "base/text.h"

enum { KILN_TABLE_COLUMNS = 9, KILN_TABLE_CELL = 256, KILN_TABLE_KEPT = 9 };

typedef struct KilnTextColumn {
    const char *title;
    int rank;     /* the lowest is left out first; KILN_TABLE_KEPT: never */
    bool number;  /* aligned right */
    bool shrinks; /* shortened at its start ("<") before columns are left out */
    int width;    /* set by kiln_text_table_measure; 0: left out */
} KilnTextColumn;

typedef struct KilnTextTable {
    int n;
    KilnTextColumn columns[KILN_TABLE_COLUMNS];
} KilnTextTable;

/* The cells of one row, in the order of the columns. */
typedef char KilnTextCells[KILN_TABLE_COLUMNS][KILN_TABLE_CELL];

/* Widen the columns for a row; call it for every row, then fit, then put the titles and rows. */
void kiln_text_table_measure(KilnTextTable *table, KilnTextCells cells);
/* Make the table fit a page of `width` columns. */
void kiln_text_table_fit(KilnTextTable *table, int width);
void kiln_text_table_put_titles(const KilnTextTable *table, KilnText *text);
void kiln_text_table_put(const KilnTextTable *table, KilnText *text, KilnTextCells cells);

#endif
