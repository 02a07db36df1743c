/* Writes an options table as aligned rows. */
#include "schema/options_help.h"

#include <math.h>
#include <string.h>

#include "schema/field_value.h"
#include "schema/table.h"

/* A bound as people write it: 0.5, 1e9 for a one with nine zeros, 90s of a duration. */
static void append_bound(KilnText *text, const KilnField *f, double bound)
{
    char digits[KILN_BOUND_TEXT];
    size_t length = strlen(kiln_value_bound(bound, digits)), zeros = 0;

    while (zeros < length && digits[length - 1 - zeros] == '0')
        zeros++;
    if (zeros >= 6 && strchr(digits, '.') == NULL)
        kiln_text_printf(text, "%.*se%zu", (int)(length - zeros), digits, zeros);
    else
        kiln_text_append(text, digits);
    if (f->type == KILN_TYPE_DURATION && bound != 0)
        kiln_text_char(text, 's');
}

static void describe_range(KilnText *text, const KilnField *f)
{
    bool low = !isinf(f->min), high = !isinf(f->max);

    kiln_text_append(text, low && high ? " " : low ? " >= " : high ? " <= " : "");
    if (low)
        append_bound(text, f, f->min);
    kiln_text_append(text, low && high ? ".." : "");
    if (high)
        append_bound(text, f, f->max);
}

/* "count|fraction|duration" */
static void describe_quantity(KilnText *text, const KilnField *f)
{
    const char *between = "";

    for (size_t i = 0; i < KILN_QUANTITY_FORMS; i++)
        if ((f->allowed & kiln_quantity_forms[i].allowed) != 0) {
            kiln_text_printf(text, "%s%s", between, kiln_quantity_forms[i].name);
            between = "|";
        }
}

void kiln_help_type(KilnText *text, const KilnField *f)
{
    if (f->shape != KILN_ONE)
        kiln_text_append(text, f->shape == KILN_LIST ? "list of " : "map of ");
    if (f->type == KILN_TYPE_ENUM) {
        for (const KilnChoice *c = f->choices; c->name != NULL; c++)
            kiln_text_printf(text, "%s%s", c == f->choices ? "" : "|", c->name);
    } else if (f->type == KILN_TYPE_QUANTITY) {
        describe_quantity(text, f);
    } else if (f->type == KILN_TYPE_COMPONENT) {
        kiln_text_append(text, kiln_kind_name(f->component_kind));
    } else {
        kiln_text_append(text, kiln_type_info(f->type)->name);
    }
    if (kiln_type_info(f->type)->bounded)
        describe_range(text, f);
    if (f->optional)
        kiln_text_append(text, " or null");
}

/* ---- Rows ------------------------------------------------------------------------ */

/* The columns of a table; widths without the gap between them. */
typedef struct Columns {
    int name, type, value, help; /* where they start */
    bool narrow;                 /* help stands below, at `help` */
} Columns;

/* A cell that would be wider than this does not set the width for the others. */
enum { WIDEST = 28, GAP = 2, NARROWEST_HELP = 24 };

static int greater(int a, int b)
{
    return a > b ? a : b;
}

static int widen(int width, size_t length)
{
    return length <= WIDEST ? greater(width, (int)length) : width;
}

static const char *default_text(const KilnField *field)
{
    if (field->type == KILN_TYPE_STRUCT && field->shape == KILN_ONE && field->value == NULL)
        return "";
    return field->value != NULL ? field->value : "required";
}

/* The prefix of a struct's own options: "limits.", "rules[].", "rules.NAME.". */
static void inner_prefix(KilnText *text, const char *prefix, const KilnField *f)
{
    static const char *const ends[] = {
        [KILN_ONE] = ".", [KILN_LIST] = "[].", [KILN_MAP] = ".NAME."
    };

    kiln_text_printf(text, "%s%s%s", prefix, f->name, ends[f->shape]);
}

static void measure(const KilnField *fields, const char *prefix, Columns *widths)
{
    KilnText text = { 0 };

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        if (f->renamed != NULL)
            continue;
        kiln_text_clear(&text);
        kiln_help_type(&text, f);
        widths->name = widen(widths->name, strlen(prefix) + strlen(f->name));
        widths->type = widen(widths->type, text.length);
        widths->value = widen(widths->value, strlen(default_text(f)));
        if (f->type != KILN_TYPE_STRUCT)
            continue;
        kiln_text_clear(&text);
        inner_prefix(&text, prefix, f);
        if (!text.failed)
            measure(f->fields, text.data, widths);
    }
    kiln_text_release(&text);
}

static Columns columns_of(const KilnPage *page, const KilnHelpTable *table)
{
    Columns widths = { 0 }, starts;

    measure(table->fields, table->prefix, &widths);
    starts.name = table->indent;
    starts.type = starts.name + widths.name + GAP;
    starts.value = starts.type + widths.type + GAP;
    starts.help = starts.value + widths.value + GAP;
    starts.narrow = starts.help + NARROWEST_HELP > page->width;
    if (starts.narrow)
        starts.help = table->indent + 4;
    return starts;
}

/* The help text, with the option's former names behind it. */
static void put_help(KilnText *text, const KilnField *fields, const KilnField *field)
{
    const char *before = " (formerly ";

    kiln_text_append(text, field->help != NULL ? field->help : "");
    for (const KilnField *f = fields; f->type != KILN_TYPE_END; f++)
        if (f->renamed != NULL && strcmp(f->renamed, field->name) == 0) {
            kiln_text_printf(text, "%s%s", before, f->name);
            before = ", ";
        }
    if (before[0] == ',')
        kiln_text_char(text, ')');
}

/* Columns that the longest word takes, with what is before the first place to break it. */
static int longest_word(const char *words)
{
    int longest = 0;

    for (words += strspn(words, " "); *words != '\0'; words += strspn(words, " ")) {
        int length = (int)strcspn(words, " |,");

        longest = greater(longest, length);
        words += length + (words[length] == '|' || words[length] == ',');
    }
    return longest;
}

/* A word that is too long for its column, a path say, makes its cell start further left. */
static void put_cell(KilnPage *page, const Columns *columns, int column, const char *words)
{
    bool fits = column + longest_word(words) <= page->width;
    int start = fits || column <= columns->name + 4 ? column : columns->name + 4;

    kiln_page_tab(page, start);
    kiln_page_words(page, start, words);
}

/* Cells of a narrow page follow each other without columns. */
static void put_narrow(KilnPage *page, const Columns *columns, const char *name, const char *type,
                       const char *value)
{
    kiln_page_tab(page, columns->name);
    kiln_page_words(page, columns->help, name);
    kiln_text_append(&page->text, "  ");
    kiln_page_words(page, columns->help, type);
    if (value[0] != '\0') {
        kiln_text_append(&page->text, ", ");
        kiln_page_words(page, columns->help, value);
    }
    kiln_page_end(page);
}

static void put_row(KilnPage *page, const KilnHelpTable *table, const Columns *columns,
                    const KilnField *field, const char *path)
{
    KilnText type = { 0 }, help = { 0 }, note = { 0 };

    kiln_help_type(&type, field);
    put_help(&help, table->fields, field);
    if (table->note != NULL)
        table->note(table->ctx, field, path, &note);
    if (type.failed || help.failed || note.failed) {
        page->text.failed = true;
    } else if (columns->narrow) {
        put_narrow(page, columns, path, type.data, default_text(field));
        put_cell(page, columns, columns->help, help.data);
    } else {
        put_cell(page, columns, columns->name, path);
        put_cell(page, columns, columns->type, type.data);
        put_cell(page, columns, columns->value, default_text(field));
        put_cell(page, columns, columns->help, help.data);
    }
    kiln_page_end(page);
    if (note.length > 0)
        put_cell(page, columns, columns->help, note.data);
    kiln_page_end(page);
    kiln_text_release(&type);
    kiln_text_release(&help);
    kiln_text_release(&note);
}

static void put_rows(KilnPage *page, const KilnHelpTable *table, const Columns *columns)
{
    KilnHelpTable inner = *table;
    KilnText path = { 0 };

    for (const KilnField *f = table->fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        if (f->renamed != NULL)
            continue;
        kiln_text_clear(&path);
        kiln_text_printf(&path, "%s%s", table->prefix, f->name);
        if (path.failed)
            break;
        put_row(page, table, columns, f, path.data);
        if (f->type != KILN_TYPE_STRUCT)
            continue;
        kiln_text_clear(&path);
        inner_prefix(&path, table->prefix, f);
        inner.fields = f->fields;
        inner.prefix = path.data;
        if (!path.failed)
            put_rows(page, &inner, columns);
    }
    page->text.failed = page->text.failed || path.failed;
    kiln_text_release(&path);
}

void kiln_help_table(KilnPage *page, const KilnHelpTable *table)
{
    Columns columns = columns_of(page, table);

    kiln_page_end(page);
    put_rows(page, table, &columns);
}
