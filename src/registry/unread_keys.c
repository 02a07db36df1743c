/* Finds keys without effect: those of the root that nothing reads, and those of other open sections
 * that are nearly the name of an option. */
#include "registry/unread_keys.h"

#include <string.h>

#include "base/text.h"
#include "config/compose.h"
#include "config/defaults/defaults_list.h"
#include "config/kiln_node/kiln_keys.h"
#include "config/interpolate/root_readers.h"
#include "config/composed.h"
#include "config/provenance/error_list.h"
#include "config/provenance/error_origin.h"
#include "config/tree/tree.h"
#include "registry/option_defaults.h"
#include "schema/table.h"

enum { MOST_NAMES = KILN_MAX_FIELDS + 32 };

/* Keys of the root that describe the run, for people and other programs. */
static const char *const notes[] = {
    "author", "comment", "description", "name",  "note",
    "notes",  "project", "tags",        "title", "version",
};

typedef struct Search {
    KilnCheck *check;
    KilnReads reads;
} Search;

/* The names that mean something in a section. */
typedef struct Names {
    const char *items[MOST_NAMES];
    size_t count;
} Names;

static void add_name(Names *names, const char *name)
{
    if (name != NULL && names->count < MOST_NAMES)
        names->items[names->count++] = name;
}

static bool has_name(const Names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

/* The options of a section, and the first keys of the sections below it. */
static void collect(const KilnConfig *config, const KilnSection *section, Names *names)
{
    const size_t length = strlen(section->key);
    char part[KILN_PATH_PART];

    names->count = 0;
    for (size_t i = 0; i < kiln_table_count(section->fields); i++)
        add_name(names, section->fields[i].name);
    for (const KilnSection *s = kiln_config_sections(config); s->key != NULL; s++) {
        const char *rest = s->key + length + (length > 0);

        if (strncmp(s->key, section->key, length) == 0 && (length == 0 || s->key[length] == '.') &&
            kiln_path_next(&rest, part))
            add_name(names, kiln_arena_strdup(kiln_config_arena(config), part));
    }
}

static bool is_written(const KilnEntry *entry)
{
    return entry->key_origin.line > 0; /* in a file: an argument that adds a key means it */
}

/* ---- The root -------------------------------------------------------------------- */

/* The names of the root that are read, for suggestions. */
static void add_variables(Search *search, Names *names, const KilnConfigNode *root)
{
    for (size_t i = 0; i < root->count; i++)
        if (!has_name(names, root->entries[i].key) &&
            (kiln_node_get(root->entries[i].value, KILN_TARGET_KEY) != NULL ||
             kiln_reads_key(&search->reads, &root->entries[i])))
            add_name(names, root->entries[i].key);
}

/* A file that was merged, without a package, whose group the key is; NULL: there is none. */
static const KilnConfigFile *find_file(const KilnConfig *config, const char *key)
{
    const KilnDefaultsList *list = config->defaults;
    size_t length = strlen(key);

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const KilnConfigFile *file = list->files[i].entry->file;

        if (file->package == NULL && strncmp(file->path, key, length) == 0 &&
            file->path[length] == '/')
            return file;
    }
    return NULL;
}

/* Has the file any key that means something at the root? */
static bool is_recipe(const KilnConfigFile *file, const Names *names)
{
    for (size_t i = 0; i < file->content->count; i++)
        if (file->content->entries[i].key != NULL && has_name(names, file->content->entries[i].key))
            return true;
    return file->defaults != NULL;
}

static void describe(const Search *search, const char *key, const Names *names, KilnText *text)
{
    const KilnCheck *check = search->check;
    const KilnConfigFile *file = find_file(check->config, key);
    const char *near = kiln_nearest(key, names->items, names->count);

    if (near == NULL)
        near = kiln_check_elsewhere(check, key);
    kiln_text_printf(text, "nothing reads this key: it is no option, and no ${%s} refers to it",
                     key);
    if (file != NULL && is_recipe(file, names))
        kiln_text_printf(text,
                         "\n  %s has no `# @package _global_`, so all its keys are below `%s`; "
                         "begin the file with that line",
                         file->source, key);
    else if (near != NULL)
        kiln_text_printf(text, "; did you mean \"%s\"?", near);
    else
        kiln_text_append(text, "; remove it, or put it below `notes`");
}

static void report(Search *search, const char *path, const KilnOrigin *origin, const char *text)
{
    KilnError err;

    kiln_error_set(&err, KILN_E_KEY, "%s", text);
    err.origin = *origin;
    if (!search->check->config->foreign) {
        kiln_check_report(search->check, path, NULL, NULL, &err);
        return;
    }
    kiln_error_placed(&err, path);
    kiln_errors_warn(search->check->errors, &err);
}

/* `model2` beside a `model` is a second model, no misspelling. */
static bool is_another(const KilnConfig *config, const char *near)
{
    const KilnConfigNode *other = kiln_node_get(kiln_config_root(config), near);

    return other != NULL && other->layer != KILN_LAYER_DEFAULT;
}

/* May the key be without effect? A component that nothing refers to is accepted, since another task
 * may use it, and so is an empty mapping, unless its key is a misspelled one. */
static bool is_suspect(const Search *search, const KilnEntry *entry, const Names *names)
{
    const KilnConfigNode *value = entry->value;
    const bool may_be_idle = kiln_node_get(value, KILN_TARGET_KEY) != NULL ||
                             (value->kind == KILN_NODE_MAP && value->count == 0);
    const char *near;

    if (!is_written(entry) || has_name(names, entry->key))
        return false;
    for (size_t i = 0; i < KILN_COUNT(notes); i++)
        if (strcmp(entry->key, notes[i]) == 0)
            return false;
    near = kiln_nearest(entry->key, names->items, names->count);
    return !may_be_idle || (near != NULL && !is_another(search->check->config, near));
}

static void check_root(Search *search, const KilnSection *section)
{
    const KilnConfigNode *root = kiln_config_root(search->check->config);
    Names names, all;
    KilnText text = { 0 };

    collect(search->check->config, section, &names);
    all.count = 0;
    for (size_t i = 0; i < root->count; i++) {
        const KilnEntry *entry = &root->entries[i];

        if (!is_suspect(search, entry, &names) || kiln_reads_key(&search->reads, entry))
            continue;
        if (all.count == 0) {
            all = names;
            add_variables(search, &all, root);
        }
        describe(search, entry->key, &all, &text);
        report(search, entry->key, &entry->key_origin, text.data != NULL ? text.data : "");
        kiln_text_release(&text);
    }
}

/* ---- Other sections -------------------------------------------------------------- */

static void check_key(const Search *search, const KilnSection *section, const KilnEntry *entry,
                      const Names *names)
{
    const char *near = kiln_nearest(entry->key, names->items, names->count);
    KilnText path = { 0 };
    KilnError err;

    if (has_name(names, entry->key) || near == NULL || kiln_starts_with(near, entry->key))
        return;
    kiln_text_printf(&path, "%s.%s", section->key, entry->key);
    kiln_error_set(&err, KILN_E_KEY, "there is no such option; did you mean \"%s\"?", near);
    err.origin = entry->key_origin;
    kiln_check_report(search->check, path.data != NULL ? path.data : entry->key, NULL, NULL, &err);
    kiln_text_release(&path);
}

static void check_section(const Search *search, const KilnSection *section)
{
    const KilnConfigNode *map = kiln_node_find(kiln_config_root(search->check->config),
                                               section->key);
    Names names;

    if (map == NULL || map->kind != KILN_NODE_MAP)
        return;
    collect(search->check->config, section, &names);
    for (size_t i = 0; i < map->count; i++)
        if (is_written(&map->entries[i]))
            check_key(search, section, &map->entries[i], &names);
}

void kiln_unread_keys_check(KilnCheck *check)
{
    const KilnSection *sections = kiln_config_sections(check->config);
    Search search = { .check = check, .reads.config = check->config };

    for (const KilnSection *s = sections; s != NULL && s->key != NULL; s++) {
        if (!s->open)
            continue;
        if (s->key[0] != '\0' && !kiln_own_checks(s->key))
            check_section(&search, s);
        else if (s->key[0] == '\0' && kiln_option_defaults_is_about(check->config) &&
                 !kiln_config_is_recorded(check->config))
            check_root(&search, s);
    }
    kiln_reads_release(&search.reads);
}
