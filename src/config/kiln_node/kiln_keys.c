/* Checks the keys of the node `kiln`. */
#include "config/kiln_node/kiln_keys.h"

#include <string.h>

#include "base/text.h"
#include "config/provenance/error_list.h"

enum { MAX_KEYS = 24 };

/* Mappings with fixed keys; the others (callbacks, launcher, job_logging, env_set) take any key. */
static const struct {
    const char *path;
    const char *keys[MAX_KEYS]; /* NULL-terminated */
} parts[] = {
    { "kiln",
      { "callbacks",   "env",      "help",    "hydra_help", "hydra_logging", "job",
        "job_logging", "launcher", "mode",    "needs",      "output",        "output_subdir",
        "overrides",   "plugins",  "pruner",  "python",     "run",           "runtime",
        "searchpath",  "sweep",    "sweeper", "verbose" } },
    { "kiln.needs", { "cpus", "memory" } },
    { "kiln.sweep", { "dir", "max_jobs", "max_steps", "patience", "subdir", "timeout" } },
    { "kiln.help", { "app_name", "footer", "header", "template" } },
    { "kiln.hydra_help", { "hydra_help", "template" } },
    { "kiln.overrides", { "hydra", "kiln", "task" } },
    { "kiln.job",
      { "chdir", "config", "config_name", "env_copy", "env_set", "id", "name", "num",
        "override_dirname" } },
    { "kiln.job.config", { "override_dirname" } },
    { "kiln.job.config.override_dirname", { "exclude_keys", "item_sep", "kv_sep" } },
    { "kiln.runtime",
      { "choices", "config_sources", "cwd", "output_dir", "version", "version_base" } },
};

bool kiln_own_checks(const char *path)
{
    for (size_t i = 0; i < KILN_COUNT(parts); i++)
        if (strcmp(parts[i].path, path) == 0)
            return true;
    return false;
}

/* An option that a section declares has its default in its history. */
static bool is_declared(const KilnConfigNode *value)
{
    while (value != NULL && value->layer != KILN_LAYER_DEFAULT)
        value = value->replaced;
    return value != NULL;
}

static bool is_key(const char *const *keys, const KilnEntry *entry)
{
    for (size_t i = 0; keys[i] != NULL; i++)
        if (strcmp(keys[i], entry->key) == 0)
            return true;
    return is_declared(entry->value);
}

static KilnStatus unknown_key(const char *path, const char *const *keys, const KilnEntry *entry,
                              KilnErrors *errors)
{
    KilnText text = { 0 };
    size_t n = 0;

    while (keys[n] != NULL)
        n++;
    const char *near = kiln_nearest(entry->key, keys, n);
    kiln_text_printf(&text, "%s.%s: kiln has no such key", path, entry->key);
    if (near != NULL)
        kiln_text_printf(&text, "; did you mean \"%s\"?", near);
    for (size_t i = 0; near == NULL && i < n; i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "\n  its keys: ", keys[i]);
    kiln_errors_report(errors, &entry->key_origin, KILN_E_KEY, "%s",
                       text.data != NULL ? text.data : path);
    kiln_text_release(&text);
    return KILN_E_KEY;
}

KilnStatus kiln_own_check(const KilnConfig *config, KilnErrors *errors)
{
    KilnStatus first = KILN_OK;

    for (size_t i = 0; i < KILN_COUNT(parts); i++) {
        const KilnConfigNode *map = kiln_node_find(kiln_config_root(config), parts[i].path);

        for (size_t j = 0; map != NULL && map->kind == KILN_NODE_MAP && j < map->count; j++) {
            if (map->entries[j].key_origin.line == 0 || /* an argument +key=value means it */
                is_key(parts[i].keys, &map->entries[j]))
                continue;
            KilnStatus status = unknown_key(parts[i].path, parts[i].keys, &map->entries[j], errors);
            if (first == KILN_OK)
                first = status;
        }
    }
    return first;
}
