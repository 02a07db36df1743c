/* Writes an options table as aligned rows, or as JSON. */
#include "schema/options_help.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
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

/* "list of int >= 1", "min|max", "float 0..1", "path or null". */
static void describe_type(KilnText *text, const KilnField *f)
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

typedef struct Row {
    const KilnField *field;
    const char *path, *type, *value, *help;
} Row;

/* The rows of a table, with those of nested structs. */
typedef struct Rows {
    KilnArena arena;
    Row *items;
    size_t count, capacity;
    bool failed; /* memory is out */
} Rows;

static const char *default_text(const KilnField *field)
{
    if (field->type == KILN_TYPE_STRUCT && field->shape == KILN_ONE && field->value == NULL)
        return "";
    return field->value != NULL ? field->value : "required";
}

/* Append the help text and the option's former names. */
static void describe(KilnText *text, const KilnField *fields, const KilnField *field)
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

static void add_rows(Rows *rows, const KilnField *fields, const char *prefix)
{
    /* "limits.", "rules[].", "rules.NAME." before the options of a struct */
    static const char *const ends[] = {
        [KILN_ONE] = ".", [KILN_LIST] = "[].", [KILN_MAPPING] = ".NAME."
    };

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        KilnText type = { 0 }, help = { 0 };

        if (f->renamed != NULL)
            continue;
        describe_type(&type, f);
        describe(&help, fields, f);
        const Row row = { .field = f,
                          .path = kiln_arena_printf(&rows->arena, "%s%s", prefix, f->name),
                          .type = kiln_text_to_arena(&type, &rows->arena),
                          .value = default_text(f),
                          .help = kiln_text_to_arena(&help, &rows->arena) };
        rows->failed = rows->failed || row.path == NULL || row.type == NULL || row.help == NULL ||
                       !KILN_ARENA_RESERVE(&rows->arena, rows->items, rows->capacity,
                                           rows->count + 1);
        if (rows->failed)
            return;
        rows->items[rows->count++] = row;
        const char *inner = f->type == KILN_TYPE_STRUCT
                                ? kiln_arena_printf(&rows->arena, "%s%s", row.path, ends[f->shape])
                                : NULL;
        if (inner != NULL)
            add_rows(rows, f->fields, inner);
        rows->failed = rows->failed || (inner == NULL && f->type == KILN_TYPE_STRUCT);
    }
}

/* ---- Columns --------------------------------------------------------------------- */

/* Where the columns of a table start. */
typedef struct Columns {
    int name, type, value, help;
    bool stacked; /* the page is narrow: help is below, at `help` */
} Columns;

/* A cell wider than this does not set the width of its column. */
enum { MAX_WIDTH = 28, GAP = 2, MIN_HELP_WIDTH = 24 };

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

static int column_width(int width, const char *cell)
{
    size_t length = strlen(cell);

    return length <= MAX_WIDTH ? max_of(width, (int)length) : width;
}

static Columns columns_of(const KilnPage *page, int indent, const Rows *rows)
{
    Columns widths = { 0 }, starts = { .name = indent };

    for (size_t i = 0; i < rows->count; i++) {
        widths.name = column_width(widths.name, rows->items[i].path);
        widths.type = column_width(widths.type, rows->items[i].type);
        widths.value = column_width(widths.value, rows->items[i].value);
    }
    starts.type = starts.name + widths.name + GAP;
    starts.value = starts.type + widths.type + GAP;
    starts.help = starts.value + widths.value + GAP;
    starts.stacked = starts.help + MIN_HELP_WIDTH > page->width;
    if (starts.stacked)
        starts.help = indent + 4;
    return starts;
}

/* The length of the longest part that is not broken over lines. */
static int longest_word(const char *words)
{
    int longest = 0;

    for (words += strspn(words, " "); *words != '\0'; words += strspn(words, " ")) {
        int length = (int)strcspn(words, " |,");

        longest = max_of(longest, length);
        words += length + (words[length] == '|' || words[length] == ',');
    }
    return longest;
}

/* A word that is too long for its column, such as a path, makes its cell start further left. */
static void put_cell(KilnPage *page, const Columns *columns, int column, const char *words)
{
    bool fits = column + longest_word(words) <= page->width;
    int start = fits || column <= columns->name + 4 ? column : columns->name + 4;

    kiln_page_tab(page, start);
    kiln_page_words(page, start, words);
}

/* On a narrow page cells follow each other without columns. */
static void put_stacked(KilnPage *page, const Columns *columns, const Row *row)
{
    KilnText cells = { 0 };

    kiln_text_printf(&cells, "%s%s%s", row->type, row->value[0] != '\0' ? ", " : "", row->value);
    kiln_page_tab(page, columns->name);
    kiln_page_words(page, columns->help, row->path);
    kiln_text_append(&page->text, "  ");
    kiln_page_words(page, columns->help, cells.data != NULL ? cells.data : "");
    kiln_page_end(page);
    page->text.failed = page->text.failed || cells.failed;
    kiln_text_release(&cells);
}

static void put_row(KilnPage *page, const KilnHelpTable *table, const Columns *columns,
                    const Row *row)
{
    KilnText note = { 0 };

    if (columns->stacked) {
        put_stacked(page, columns, row);
    } else {
        put_cell(page, columns, columns->name, row->path);
        put_cell(page, columns, columns->type, row->type);
        put_cell(page, columns, columns->value, row->value);
    }
    put_cell(page, columns, columns->help, row->help);
    kiln_page_end(page);
    if (table->note != NULL)
        table->note(table->ctx, row->field, row->path, &note);
    if (note.length > 0)
        put_cell(page, columns, columns->help, note.data);
    kiln_page_end(page);
    page->text.failed = page->text.failed || note.failed;
    kiln_text_release(&note);
}

void kiln_help_table(KilnPage *page, const KilnHelpTable *table)
{
    Rows rows = { .items = NULL };

    add_rows(&rows, table->fields, table->prefix);
    const Columns columns = columns_of(page, table->indent, &rows);
    kiln_page_end(page);
    for (size_t i = 0; i < rows.count; i++)
        put_row(page, table, &columns, &rows.items[i]);
    page->text.failed = page->text.failed || rows.failed;
    kiln_arena_release(&rows.arena);
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *row_json(const Row *row)
{
    const char *value = row->field->value;

    return json_pack("{s:s, s:s, s:s?, s:b, s:s}", "name", row->path, "type", row->type, "default",
                     value, "required", strcmp(row->value, "required") == 0, "help", row->help);
}

json_t *kiln_help_json(const KilnField *fields)
{
    Rows rows = { .items = NULL };
    json_t *list = json_array();

    add_rows(&rows, fields, "");
    for (size_t i = 0; i < rows.count; i++)
        kiln_json_add(&list, row_json(&rows.items[i]));
    if (rows.failed) {
        json_decref(list);
        list = NULL;
    }
    kiln_arena_release(&rows.arena);
    return list;
}
