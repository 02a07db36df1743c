/* Prints the search path and the defaults list. */
#include "config/provenance/info.h"

#include <string.h>

#include "base/array.h"
#include "config/composed.h"
#include "config/defaults/defaults_list.h"
#include "config/provenance/origin.h"

enum { MAX_COLUMNS = 8 };

typedef struct Table {
    KilnArena *arena;
    const char **cells; /* row by row; the first row is the heading */
    size_t count, capacity, columns;
    bool failed; /* memory ran out */
} Table;

static void put_row(Table *table, const char *const *cells)
{
    table->failed |= !KILN_ARENA_RESERVE(table->arena, table->cells, table->capacity,
                                         table->count + table->columns);
    for (size_t i = 0; i < table->columns && !table->failed; i++)
        table->cells[table->count++] = cells[i];
}

/* Columns as wide as needed, the heading underlined. */
static void print_table(const Table *table, KilnText *text)
{
    size_t widths[MAX_COLUMNS] = { 0 }, line = 0;

    for (size_t i = 0; i < table->count; i++) {
        size_t *width = &widths[i % table->columns];

        if (strlen(table->cells[i]) > *width)
            *width = strlen(table->cells[i]);
    }
    for (size_t i = 0; i < table->columns; i++)
        line += widths[i] + (i > 0 ? 2 : 0);
    for (size_t i = 0; i < table->count; i++) {
        if ((i + 1) % table->columns != 0)
            kiln_text_printf(text, "%-*s  ", (int)widths[i % table->columns], table->cells[i]);
        else
            kiln_text_printf(text, "%s\n", table->cells[i]);
        for (size_t k = 0; i + 1 == table->columns && k <= line; k++)
            kiln_text_char(text, k < line ? '-' : '\n');
    }
    text->failed |= table->failed;
}

void kiln_info_searchpath(const KilnConfig *config, KilnText *text)
{
    Table table = { .arena = config->arena, .columns = 2 };

    put_row(&table, (const char *[]) { "added by", "path" });
    for (const KilnSearchFolder *folder = config->search.folders; folder != NULL;
         folder = folder->next)
        put_row(&table, (const char *[]) { folder->provider, folder->path });
    put_row(&table, (const char *[]) {
                        "components",
                        "options without a file: the registered components and those of plugins" });
    put_row(&table, (const char *[]) { "kiln", "kiln:conf (inside the program)" });
    print_table(&table, text);
}

void kiln_info_defaults(const KilnConfig *config, KilnText *text)
{
    static const char *const heading[] = { "config", "package", "_self_", "listed by", "file" };
    Table table = { .arena = config->arena, .columns = KILN_COUNT(heading) };
    const KilnDefaultsList *list = config->defaults;

    put_row(&table, heading);
    for (size_t i = 0; i < list->count; i++) {
        const KilnMergeFile *merge = &list->files[i];
        const KilnDefaultsEntry *parent = merge->entry->parent;
        const char *const row[] = { merge->entry->file->path,
                                    *merge->entry->into != '\0' ? merge->entry->into : "_global_",
                                    merge->self ? "yes" : "-", parent != NULL ? parent->path : "-",
                                    merge->entry->file->source };
        put_row(&table, row);
    }
    print_table(&table, text);
}

/* "  (selected by argument 1 `db=mysql`)" */
static void print_cause(const KilnDefaultsEntry *entry, KilnText *text)
{
    const char *cause = entry->deleted      ? "deleted by "
                        : entry->appended   ? "added by "
                        : entry->overridden ? "selected by "
                                            : NULL;

    if (cause != NULL) {
        kiln_text_printf(text, "  (%s", cause);
        kiln_origin_write(text, &entry->origin);
        kiln_text_char(text, ')');
    }
    if (entry->gone && entry->optional && entry->option != NULL && !entry->deleted)
        kiln_text_append(text, "  (optional, not found)");
}

static void print_entry(const KilnDefaultsEntry *entry, int depth, KilnText *text)
{
    kiln_text_printf(text, "%*s", 2 * depth, "");
    kiln_text_append(text, entry->kind == KILN_DEFAULTS_SELF    ? "_self_"
                           : entry->kind == KILN_DEFAULTS_GROUP ? entry->key
                                                                : entry->path);
    if (entry->kind == KILN_DEFAULTS_GROUP)
        kiln_text_printf(text, ": %s", entry->option != NULL ? entry->option : "null");
    print_cause(entry, text);
    kiln_text_char(text, '\n');
    if (entry->gone)
        return;
    for (size_t i = entry->n_children; i-- > 0;) /* last to first */
        print_entry(entry->children[i], depth + 1, text);
}

void kiln_info_tree(const KilnConfig *config, KilnText *text)
{
    print_entry(config->defaults->roots[1], 0, text);
    print_entry(config->defaults->roots[0], 0, text);
}
