/* Finds keys that are free, used by nobody, and nearly the name of an option. */
#include "registry/stray.h"

#include <string.h>

#include "base/text.h"
#include "config/compose.h"
#include "config/tree.h"
#include "schema/table.h"

enum { MOST_NAMES = KILN_MAX_FIELDS + 32 };

/* What a config made for Hydra may have in `kiln`, beside what has a table. */
static const char *const foreign[] = {
    "callbacks",   "env",        "help",  "hydra_help", "hydra_logging", "job",
    "job_logging", "launcher",   "mode",  "output",     "output_subdir", "overrides",
    "runtime",     "searchpath", "sweep", "sweeper",    "verbose",
};

/* The names that mean something in a section. */
typedef struct Names {
    const char *items[MOST_NAMES];
    size_t count;
    char parts[MOST_NAMES][KILN_PATH_PART]; /* of sections below it */
} Names;

static void add_name(Names *names, const char *name)
{
    if (names->count < MOST_NAMES)
        names->items[names->count++] = name;
}

/* The first name of what follows "KEY." in a deeper section's key; NULL: it is not below. */
static const char *below(const char *key, const char *deeper)
{
    size_t length = strlen(key);

    if (length == 0)
        return deeper[0] != '\0' ? deeper : NULL;
    return strncmp(deeper, key, length) == 0 && deeper[length] == '.' ? deeper + length + 1 : NULL;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Does an interpolation below `node` have `name` in it, or one that was replaced? */
static bool is_named(const KilnConfigNode *node, const char *name)
{
    size_t length = strlen(name);

    if (node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_INTERPOLATION)
        for (const char *p = node->text; (p = strstr(p, name)) != NULL; p++)
            if ((p == node->text || !is_word(p[-1])) && !is_word(p[length]))
                return true;
    for (size_t i = 0; i < node->count; i++)
        if (is_named(node->entries[i].value, name))
            return true;
    return node->replaced != NULL && is_named(node->replaced, name);
}

/* `optimizer`, which the task refers to: other variables may well look like each other. */
static void add_components(Names *names, const KilnConfigNode *root)
{
    for (size_t i = 0; i < root->count; i++) {
        const KilnEntry *entry = &root->entries[i];

        if (kiln_node_get(entry->value, KILN_TARGET_KEY) != NULL && is_named(root, entry->key))
            add_name(names, entry->key);
    }
}

static void collect(const KilnConfig *config, const KilnSection *section, Names *names)
{
    names->count = 0;
    for (size_t i = 0; i < kiln_table_count(section->fields); i++)
        add_name(names, section->fields[i].name);
    for (const KilnSection *s = kiln_config_sections(config); s->key != NULL; s++) {
        const char *rest = below(section->key, s->key);

        if (rest != NULL && names->count < MOST_NAMES &&
            kiln_path_next(&rest, names->parts[names->count]))
            add_name(names, names->parts[names->count]);
    }
    if (section->key[0] == '\0')
        add_components(names, kiln_config_root(config));
    for (size_t i = 0; strcmp(section->key, "kiln") == 0 && i < KILN_COUNT(foreign); i++)
        add_name(names, foreign[i]);
}

/* `model2` beside a `model` is another one, not a misspelled one. */
static bool is_another(const KilnCheck *check, const KilnEntry *entry, const char *near)
{
    const KilnConfigNode *other = kiln_node_get(kiln_config_root(check->config), near);

    return kiln_node_get(entry->value, KILN_TARGET_KEY) != NULL && other != NULL &&
           other->layer != KILN_LAYER_DEFAULT;
}

static void check_key(const KilnCheck *check, const KilnSection *section, const KilnEntry *entry,
                      const Names *names)
{
    const char *near;
    KilnText path = { 0 };
    KilnError err;

    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], entry->key) == 0)
            return;
    near = kiln_nearest(entry->key, names->items, names->count);
    if (near == NULL || kiln_starts_with(near, entry->key) || /* `data` need be no datamodule */
        is_another(check, entry, near) || is_named(kiln_config_root(check->config), entry->key))
        return;
    kiln_text_printf(&path, "%s%s%s", section->key, section->key[0] != '\0' ? "." : "", entry->key);
    kiln_error_set(&err, KILN_E_KEY,
                   "nothing has an option of this name, and nothing refers to it; did you mean "
                   "\"%s\"?\n  a variable of your own that looks like an option must be used "
                   "somewhere, as ${%s}",
                   near, path.data != NULL ? path.data : entry->key);
    err.origin = entry->key_origin;
    kiln_check_report(check, path.data != NULL ? path.data : entry->key, NULL, NULL, &err);
    kiln_text_release(&path);
}

void kiln_stray_check(const KilnCheck *check)
{
    for (const KilnSection *s = kiln_config_sections(check->config); s != NULL && s->key != NULL;
         s++) {
        const KilnConfigNode *map = kiln_node_find(kiln_config_root(check->config), s->key);
        Names names;

        if (!s->open || map == NULL || map->kind != KILN_NODE_MAP)
            continue;
        collect(check->config, s, &names);
        for (size_t i = 0; i < map->count; i++)
            if (map->entries[i].value->layer == KILN_LAYER_FILE &&
                map->entries[i].key_origin.line > 0)
                check_key(check, s, &map->entries[i], &names);
    }
}
