/* Prints the search path and the defaults list. */
#include "config/provenance/info.h"

#include <string.h>

#include "config/defaults/defaults_list.h"
#include "config/composed.h"

enum { MOST_COLUMNS = 8 };

void kiln_info_table(const char *const *cells, size_t n_cells, size_t columns, KilnText *text)
{
    size_t widths[MOST_COLUMNS] = { 0 }, line = 0;

    for (size_t i = 0; i < n_cells; i++)
        if (strlen(cells[i]) > widths[i % columns])
            widths[i % columns] = strlen(cells[i]);
    for (size_t i = 0; i < columns; i++)
        line += widths[i] + (i > 0 ? 2 : 0);
    for (size_t i = 0; i < n_cells; i++) {
        size_t column = i % columns;

        if (column + 1 < columns)
            kiln_text_printf(text, "%-*s  ", (int)widths[column], cells[i]);
        else
            kiln_text_printf(text, "%s\n", cells[i]);
        for (size_t k = 0; i + 1 == columns && k <= line; k++)
            kiln_text_char(text, k < line ? '-' : '\n');
    }
}

void kiln_info_searchpath(const KilnConfig *config, KilnText *text)
{
    const char *cells[2 * 256] = { "named by", "place" };
    size_t n = 2;

    for (const KilnSearchFolder *folder = config->search.folders;
         folder != NULL && n + 6 < KILN_COUNT(cells); folder = folder->next) {
        cells[n++] = folder->provider;
        cells[n++] = folder->path;
    }
    cells[n++] = "components";
    cells[n++] = "options without a file: the registered components and those of plugins";
    cells[n++] = "kiln";
    cells[n++] = "kiln:conf (inside the program)";
    kiln_info_table(cells, n, 2, text);
}

void kiln_info_defaults(const KilnConfig *config, KilnText *text)
{
    enum { COLUMNS = 5 };
    const KilnDefaultsList *list = config->defaults;
    const char **cells = kiln_arena_alloc(config->arena,
                                          (list->count + 1) * COLUMNS * sizeof(*cells));
    size_t n = 0;

    if (cells == NULL) {
        text->failed = true;
        return;
    }
    cells[n++] = "config";
    cells[n++] = "package";
    cells[n++] = "_self_";
    cells[n++] = "listed by";
    cells[n++] = "file";
    for (size_t i = 0; i < list->count; i++) {
        const KilnMergeFile *result = &list->files[i];
        const KilnDefaultsEntry *parent = result->entry->parent;
        const char *by = parent != NULL ? kiln_defaults_entry_path(config->arena, parent) : "-";

        cells[n++] = result->file->path;
        cells[n++] = *result->package != '\0' ? result->package : "_global_";
        cells[n++] = result->self ? "yes" : "-";
        cells[n++] = by != NULL ? by : "-";
        cells[n++] = result->file->source;
    }
    kiln_info_table(cells, n, COLUMNS, text);
}

static void say_origin(KilnText *text, const KilnOrigin *origin)
{
    kiln_text_append(text, origin->source != NULL ? origin->source : "kiln");
    if (origin->line > 0)
        kiln_text_printf(text, ":%d:%d", origin->line, origin->column);
}

/* "  (chosen by argument 1 `db=mysql`)" */
static void say_how(const KilnDefaultsEntry *entry, KilnText *text)
{
    const char *how = NULL;

    if (entry->deleted)
        how = "deleted by ";
    else if (entry->appended)
        how = "added by ";
    else if (entry->overridden)
        how = "chosen by ";
    if (how != NULL) {
        kiln_text_printf(text, "  (%s", how);
        say_origin(text, &entry->origin);
        kiln_text_char(text, ')');
    }
    if (entry->gone && entry->optional && entry->option != NULL && !entry->deleted)
        kiln_text_append(text, "  (optional, not there)");
}

static void say_entry(const KilnConfig *config, const KilnDefaultsEntry *entry, int depth,
                      KilnText *text)
{
    const char *name = entry->kind == KILN_DEFAULTS_SELF ? "_self_"
                       : entry->kind == KILN_DEFAULTS_GROUP
                           ? kiln_defaults_entry_key(config->arena, entry)
                           : kiln_defaults_entry_path(config->arena, entry);

    kiln_text_printf(text, "%*s", 2 * depth, "");
    kiln_text_append(text, name != NULL ? name : "?");
    if (entry->kind == KILN_DEFAULTS_GROUP)
        kiln_text_printf(text, ": %s", entry->option != NULL ? entry->option : "null");
    say_how(entry, text);
    kiln_text_char(text, '\n');
    if (entry->gone)
        return;
    for (size_t i = entry->n_children; i-- > 0;) /* they were met from the last on */
        say_entry(config, entry->children[i], depth + 1, text);
}

void kiln_info_tree(const KilnConfig *config, KilnText *text)
{
    say_entry(config, config->defaults->roots[1], 0, text);
    say_entry(config, config->defaults->roots[0], 0, text);
}
