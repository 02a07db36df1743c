/* Checks the node `kiln` and fills in job, runtime and overrides. */
#include "config/kiln_node/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "config/defaults/defaults_list.h"
#include "config/kiln_node/kiln_keys.h"
#include "config/provenance/error_list.h"
#include "config/tree/tree.h"

typedef struct Filler {
    KilnConfig *config;
    KilnConfigNode *own; /* `kiln` */
    KilnMaker maker;
    KilnErrors *errors;
    KilnStatus status;
} Filler;

/* Set kiln.SECTION.KEY, which has a placeholder in the built-in file; nothing when memory is out.
 */
static void put(Filler *filler, const char *section, const char *key, KilnConfigNode *value)
{
    KilnConfigNode *map = kiln_node_get(filler->own, section);

    if (map == NULL || map->kind != KILN_NODE_MAP)
        return; /* reported by the check */
    KilnEntry *entry = kiln_node_entry(map, key);
    if (entry == NULL)
        entry = kiln_node_append(filler->maker.arena, map, key, filler->maker.origin, value);
    if (entry == NULL || value == NULL)
        return;
    value->parent = map;
    entry->value = value;
}

static KilnConfigNode *text(Filler *filler, const char *value)
{
    KilnConfigNode *node = kiln_node_string(&filler->maker, value);

    if (node != NULL)
        node->scalar = KILN_SCALAR_STR; /* not to be resolved */
    return node;
}

static void append_text(Filler *filler, KilnConfigNode *list, const char *value)
{
    (void)kiln_node_append(filler->maker.arena, list, NULL, filler->maker.origin,
                           text(filler, value));
}

static void fill_overrides(Filler *filler)
{
    const KilnConfig *config = filler->config;
    KilnConfigNode *own = kiln_node_new(&filler->maker, KILN_NODE_LIST);
    KilnConfigNode *task = kiln_node_new(&filler->maker, KILN_NODE_LIST);

    for (size_t i = 0; i < config->n_overrides; i++)
        append_text(filler, kiln_override_is_own(&config->overrides[i]) ? own : task,
                    config->overrides[i].text);
    put(filler, "overrides", "kiln", own);
    put(filler, "overrides", "task", task);
}

static void fill_choices(Filler *filler)
{
    const KilnDefaultsList *defaults = filler->config->defaults;
    KilnConfigNode *choices = kiln_node_new(&filler->maker, KILN_NODE_MAP);

    for (size_t i = 0; i < defaults->n_selections; i++) {
        const KilnSelection *selection = &defaults->selections[i];
        KilnConfigNode *option = selection->option != NULL
                                     ? text(filler, selection->option)
                                     : kiln_node_scalar(&filler->maker, KILN_SCALAR_NULL, "null");

        if (!selection->several) /* no list of options */
            (void)kiln_node_append(filler->maker.arena, choices, selection->key,
                                   filler->maker.origin, option);
    }
    put(filler, "runtime", "choices", choices);
}

static void fill_sources(Filler *filler)
{
    KilnConfigNode *sources = kiln_node_new(&filler->maker, KILN_NODE_LIST);

    for (const KilnSearchFolder *folder = filler->config->search.folders; folder != NULL;
         folder = folder->next)
        append_text(filler, sources, folder->path);
    put(filler, "runtime", "config_sources", sources);
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_listed(const KilnConfigNode *list, const char *key)
{
    for (size_t i = 0; list != NULL && list->kind == KILN_NODE_LIST && i < list->count; i++)
        if (list->entries[i].value->kind == KILN_NODE_SCALAR &&
            strcmp(list->entries[i].value->text, key) == 0)
            return true;
    return false;
}

/* override_dirname: the overrides, sorted and joined, as a name for a folder. */
static void fill_dirname(Filler *filler)
{
    const KilnOverride *overrides = filler->config->overrides;
    const size_t n = filler->config->n_overrides;
    const KilnConfigNode *how = kiln_node_find(filler->own, "job.config.override_dirname");
    const char *between = kiln_node_text(how, "item_sep"), *equals = kiln_node_text(how, "kv_sep");
    const KilnConfigNode *left_out = kiln_node_get(how, "exclude_keys");
    const char **lines = kiln_arena_alloc(filler->maker.arena, (n + 1) * sizeof(*lines));
    KilnText name = { 0 };
    size_t count = 0;

    for (size_t i = 0; lines != NULL && i < n; i++)
        if (!kiln_override_is_own(&overrides[i]) && !is_listed(left_out, overrides[i].key))
            lines[count++] = overrides[i].text;
    if (count > 0)
        qsort(lines, count, sizeof(*lines), compare_text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            kiln_text_append(&name, between != NULL ? between : ",");
        for (const char *p = lines[i]; *p != '\0'; p++) {
            if (*p == '=')
                kiln_text_append(&name, equals != NULL ? equals : "=");
            else
                kiln_text_char(&name, *p);
        }
    }
    const char *dirname = kiln_text_to_arena(&name, filler->maker.arena);
    put(filler, "job", "override_dirname", dirname != NULL ? text(filler, dirname) : NULL);
}

static void fill_job(Filler *filler)
{
    char cwd[4096];

    if (kiln_node_is_scalar(kiln_node_find(filler->own, "job.name"), KILN_SCALAR_MISSING))
        put(filler, "job", "name", text(filler, "train"));
    put(filler, "job", "config_name", text(filler, filler->config->config_name));
    put(filler, "runtime", "version", text(filler, KILN_VERSION));
    put(filler, "runtime", "cwd", text(filler, getcwd(cwd, sizeof(cwd)) != NULL ? cwd : "unknown"));
}

/* ---- Checks ------------------------------------------------------------------------ */

enum { BOOL_OR_NULL, TEXT, TEXT_OR_NULL, MAP, TEXTS };

static bool fits(const KilnConfigNode *node, int want)
{
    bool null = kiln_node_is_scalar(node, KILN_SCALAR_NULL);

    /* Values that are not known yet are checked where they are used. */
    if (kiln_node_is_scalar(node, KILN_SCALAR_MISSING) ||
        kiln_node_is_scalar(node, KILN_SCALAR_INTERPOLATION))
        return true;
    switch (want) {
    case BOOL_OR_NULL:
        return null || kiln_node_is_scalar(node, KILN_SCALAR_BOOL);
    case TEXT:
        return node->kind == KILN_NODE_SCALAR && !null;
    case TEXT_OR_NULL:
        return node->kind == KILN_NODE_SCALAR;
    case MAP:
        return node->kind == KILN_NODE_MAP;
    default:
        break;
    }
    for (size_t i = 0; i < node->count; i++)
        if (!fits(node->entries[i].value, TEXT))
            return false;
    return node->kind == KILN_NODE_LIST;
}

static void check(Filler *filler)
{
    static const struct {
        const char *path;
        int want;
        const char *text;
    } rows[] = {
        { "job", MAP, "a mapping" },
        { "job.name", TEXT, "text" },
        { "job.chdir", BOOL_OR_NULL, "true, false or null" },
        { "job.env_set", MAP, "a mapping" },
        { "job.env_copy", TEXTS, "a list of names" },
        { "runtime", MAP, "a mapping" },
        { "overrides", MAP, "a mapping" },
        { "run", MAP, "a mapping" },
        { "run.dir", TEXT, "text" },
        { "sweep", MAP, "a mapping" },
        { "sweep.dir", TEXT, "text" },
        { "sweep.subdir", TEXT, "text" },
        { "searchpath", TEXTS, "a list of folders" },
        { "plugins", TEXTS, "a list of files" },
        { "output_subdir", TEXT_OR_NULL, "text or null" },
    };

    for (size_t i = 0; i < KILN_COUNT(rows); i++) {
        const KilnConfigNode *node = kiln_node_find(filler->own, rows[i].path);

        if (node == NULL || fits(node, rows[i].want))
            continue;
        const char *quote = node->kind == KILN_NODE_SCALAR ? "\"" : "";
        filler->status = kiln_errors_report(
            filler->errors, &node->origin, KILN_E_TYPE, "kiln.%s: expected %s, got %s%s%s%s%s",
            rows[i].path, rows[i].text, kiln_node_kind_name(node), *quote != '\0' ? " " : "", quote,
            node->kind == KILN_NODE_SCALAR ? node->text : "", quote);
    }
}

KilnStatus kiln_runtime_fill(KilnConfig *config, KilnErrors *errors)
{
    Filler filler = { .config = config,
                      .own = kiln_node_get(config->root, "kiln"),
                      .maker = { .arena = config->arena,
                                 .origin = { .source = "kiln itself" },
                                 .layer = KILN_LAYER_DEFAULT },
                      .errors = errors };

    if (filler.own == NULL)
        filler.status = kiln_errors_report(errors, NULL, KILN_E_KEY,
                                           "the node 'kiln' cannot be deleted");
    else if (filler.own->kind != KILN_NODE_MAP)
        filler.status = kiln_errors_report(errors, &filler.own->origin, KILN_E_TYPE,
                                           "kiln: expected a mapping, got %s",
                                           kiln_node_kind_name(filler.own));
    else
        check(&filler);
    if (filler.status >= 0)
        filler.status = kiln_own_check(config, errors);
    if (filler.status < 0)
        return filler.status;
    fill_overrides(&filler);
    fill_choices(&filler);
    fill_sources(&filler);
    fill_dirname(&filler);
    fill_job(&filler);
    if (!config->arena->failed)
        return KILN_OK;
    KilnError err = { 0 };
    kiln_error_nomem(&err, sizeof(KilnConfigNode));
    return kiln_errors_add(errors, &err);
}
