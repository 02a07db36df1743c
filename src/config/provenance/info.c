/* Prints the search path and the defaults list. */
#include "config/provenance/info.h"

#include <string.h>

#include "config/composed.h"
#include "config/defaults/defaults_list.h"
#include "config/provenance/origin.h"

enum { MAX_COLUMNS = 8 };

/* Print lines whose cells tabs separate: columns as wide as needed, the first line underlined. */
static void print_table(KilnText *rows, KilnText *text)
{
    const char *start = rows->data != NULL ? rows->data : "";
    size_t widths[MAX_COLUMNS] = { 0 }, line = 0, column = 0, n;

    for (const char *p = start; *p != '\0'; p += n + 1) {
        n = strcspn(p, "\t\n");
        if (n > widths[column])
            widths[column] = n;
        column = p[n] == '\t' ? column + 1 : 0;
    }
    for (size_t i = 0; i < MAX_COLUMNS && widths[i] > 0; i++)
        line += widths[i] + (i > 0 ? 2 : 0);
    for (const char *p = start; *p != '\0'; p += n + 1) {
        n = strcspn(p, "\t\n");
        kiln_text_append_n(text, p, n);
        if (p[n] == '\t') {
            kiln_text_printf(text, "%*s", (int)(widths[column++] - n) + 2, "");
            continue;
        }
        column = 0;
        kiln_text_char(text, '\n');
        for (; line > 0; line--)
            kiln_text_append(text, line > 1 ? "-" : "-\n");
    }
    text->failed |= rows->failed;
    kiln_text_release(rows);
}

void kiln_info_searchpath(const KilnConfig *config, KilnText *text)
{
    KilnText rows = { 0 };

    kiln_text_append(&rows, "added by\tpath\n");
    for (const KilnSearchFolder *folder = config->search.folders; folder != NULL;
         folder = folder->next)
        kiln_text_printf(&rows, "%s\t%s\n", folder->provider, folder->path);
    kiln_text_append(&rows, "components\toptions without a file: the registered components and "
                            "those of plugins\nkiln\tkiln:conf (inside the program)\n");
    print_table(&rows, text);
}

void kiln_info_defaults(const KilnConfig *config, KilnText *text)
{
    KilnText rows = { 0 };
    const KilnDefaultsList *list = config->defaults;

    kiln_text_append(&rows, "config\tpackage\t_self_\tlisted by\tfile\n");
    for (size_t i = 0; i < list->count; i++) {
        const KilnMergeFile *merge = &list->files[i];
        const KilnDefaultsEntry *entry = merge->entry;

        kiln_text_printf(&rows, "%s\t%s\t%s\t%s\t%s\n", entry->file->path,
                         *entry->into != '\0' ? entry->into : "_global_", merge->self ? "yes" : "-",
                         entry->parent != NULL ? entry->parent->path : "-", entry->file->source);
    }
    print_table(&rows, text);
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
