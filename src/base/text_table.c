/* Tables of text. */
#include "base/text_table.h"

#include <string.h>

enum { GAP = 2 /* between columns */, NARROWEST = 12 /* of a column that shrinks */ };

static int width_of(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80; /* UTF-8 characters */
    return n;
}

void kiln_text_table_measure(KilnTextTable *table, KilnTextCells cells)
{
    for (int i = 0; i < table->n; i++) {
        KilnTextColumn *column = &table->columns[i];
        const int title = width_of(column->title), cell = width_of(cells[i]);

        column->width = column->width > title ? column->width : title;
        column->width = column->width > cell ? column->width : cell;
    }
}

/* By how many columns the table is wider than the page; *ret_slack: by how many it can shrink. */
static int excess(const KilnTextTable *table, int width, int *ret_slack)
{
    int sum = -GAP - width;

    *ret_slack = 0;
    for (int i = 0; i < table->n; i++) {
        const KilnTextColumn *column = &table->columns[i];

        sum += column->width > 0 ? column->width + GAP : 0;
        if (column->shrinks && column->width > NARROWEST)
            *ret_slack += column->width - NARROWEST;
    }
    return sum;
}

void kiln_text_table_fit(KilnTextTable *table, int width)
{
    int slack, over;

    while ((over = excess(table, width, &slack)) > slack) {
        KilnTextColumn *lowest = NULL;

        for (int i = 0; i < table->n; i++) {
            KilnTextColumn *column = &table->columns[i];

            if (column->width > 0 && column->rank < KILN_TABLE_KEPT &&
                (lowest == NULL || column->rank < lowest->rank))
                lowest = column;
        }
        if (lowest == NULL)
            break;
        lowest->width = 0;
    }
    over = over < slack ? over : slack;
    for (int i = 0; i < table->n && over > 0; i++) {
        KilnTextColumn *column = &table->columns[i];
        const int room = column->shrinks ? column->width - NARROWEST : 0;
        const int cut = room < over ? room : over;

        column->width -= cut > 0 ? cut : 0;
        over -= cut > 0 ? cut : 0;
    }
}

static void put_cell(KilnText *text, const KilnTextColumn *column, const char *cell)
{
    const int pad = column->width - width_of(cell);

    if (column->width == 0)
        return;
    kiln_text_printf(text, "%*s", column->number && pad > 0 ? pad : 0, "");
    if (column->shrinks && pad < 0)
        kiln_text_printf(text, "<%s", cell - pad + 1);
    else
        kiln_text_append(text, cell);
    kiln_text_printf(text, "%*s", (!column->number && pad > 0 ? pad : 0) + GAP, "");
}

static void end_row(KilnText *text)
{
    while (text->length > 0 && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
    kiln_text_char(text, '\n');
}

void kiln_text_table_put(const KilnTextTable *table, KilnText *text, KilnTextCells cells)
{
    for (int i = 0; i < table->n; i++)
        put_cell(text, &table->columns[i], cells[i]);
    end_row(text);
}

void kiln_text_table_put_titles(const KilnTextTable *table, KilnText *text)
{
    for (int i = 0; i < table->n; i++)
        put_cell(text, &table->columns[i], table->columns[i].title);
    end_row(text);
}
