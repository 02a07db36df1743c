/* Composes a config: overrides, search path, defaults lists, merging, values. */
#include "config/compose.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/override/apply.h"
#include "config/defaults/defaults_list.h"
#include "config/defaults/group_files.h"
#include "config/defaults/own_lists.h"
#include "config/interpolate/interpolate.h"
#include "config/provenance/error_list.h"
#include "config/tree/edit.h"
#include "config/tree/merge.h"
#include "config/kiln_node/runtime.h"
#include "config/composed.h"

typedef struct Composer {
    KilnConfig *config;
    const KilnComposeRequest *request;
    const KilnComposeHooks *hooks;
    KilnErrors *errors;
    size_t n_nodes;              /* of the merged files */
    const KilnOverride *pending; /* the last override, when it requires merging the defaults layer
                                  * again and that was not done yet; NULL: done */
    KilnStatus status;           /* of the first error */
} Composer;

enum { MAX_NODES = 1000000 };

static void keep_status(Composer *composer, KilnStatus status)
{
    if (composer->status >= 0)
        composer->status = status;
}

static void report(Composer *composer, const KilnError *err)
{
    keep_status(composer, kiln_errors_add(composer->errors, err));
}

/* Report an error about `origin` (NULL: none). */
#define FAIL(composer, origin, ...)                                                                \
    keep_status(composer, kiln_errors_report((composer)->errors, origin, __VA_ARGS__))

/* Memory is out when the arena, or a buffer on the way, had none. */
static bool out_of_memory(const Composer *composer)
{
    return composer->status == KILN_E_NOMEM || composer->config->arena->failed;
}

static KilnConfig *config_new(const KilnComposeRequest *request)
{
    KilnConfig *config = calloc(1, sizeof(*config));
    time_t now = time(NULL);

    if (config == NULL)
        return NULL;
    config->arena = &config->storage;
    config->sections = request->sections;
    config->search.arena = config->arena;
    config->search.config = config;
    config->config_name = kiln_arena_strdup(
        config->arena, request->config_name != NULL ? request->config_name : "config");
    localtime_r(&now, &config->started);
    KilnMaker maker = { .arena = config->arena, .origin = { .source = "the config" } };
    config->root = kiln_node_new(&maker, KILN_NODE_MAP);
    config->warnings = kiln_arena_alloc(config->arena, sizeof(*config->warnings));
    config->variables = kiln_arena_alloc(config->arena, sizeof(*config->variables));
    config->environment = request->environment;
    config->defaults = kiln_arena_alloc(config->arena, sizeof(*config->defaults));
    if (config->arena->failed) {
        kiln_config_free(config);
        return NULL;
    }
    return config;
}

void kiln_config_free(KilnConfig *config)
{
    if (config == NULL)
        return;
    kiln_arena_release(config->arena);
    free(config);
}

/* ---- Overrides ---------------------------------------------------------------- */

static void reject_sweep(Composer *composer, const KilnOverride *override)
{
    const char *equals = strchr(override->assignment, '=');
    const char *written = equals != NULL ? equals + 1 : "";
    const KilnOrigin at = override->value != NULL ? override->value->origin
                                                  : kiln_override_key_origin(override);

    if (composer->config->partial)
        FAIL(composer, &at, KILN_E_USAGE,
             "%s is the same for all jobs of a sweep and cannot vary; quote text with commas: "
             "\"%s='...'\"",
             override->key, override->key);
    else
        FAIL(composer, &at, KILN_E_USAGE,
             "%s has several values, but a single run takes one; add -m for one run per value, "
             "write '%s=[%.200s]' for a list, quote text with commas: \"%s='%.200s'\"",
             override->key, override->key, written, override->key, written);
}

/* Is there one value to apply? If not, report why. The config of a sweep itself leaves out what the
 * jobs vary, and leaves errors in it to the jobs. */
static bool has_value(Composer *composer, const KilnOverride *override)
{
    bool ours = !composer->config->partial || kiln_override_is_own(override);

    if (ours && override->problem != NULL)
        report(composer, override->problem);
    else if (ours && override->sweep != NULL)
        reject_sweep(composer, override);
    return override->problem == NULL && override->sweep == NULL;
}

static KilnStatus read_override(const Composer *composer, const char *text, size_t i,
                                KilnOverride *ret, KilnError *err)
{
    KilnArena *arena = composer->config->arena;
    const KilnOrigin *origins = composer->hooks != NULL ? composer->hooks->origins : NULL;

    if (origins == NULL || origins[i].source == NULL)
        return kiln_override_read(arena, text, i + 1, ret, err);
    KilnOrigin origin = origins[i];
    origin.source = kiln_arena_strdup(arena, origin.source);
    return origin.source != NULL ? kiln_override_read_from(arena, text, &origin, ret, err)
                                 : kiln_error_nomem(err, strlen(text));
}

static void read_overrides(Composer *composer)
{
    KilnConfig *config = composer->config;
    const char *const *texts = composer->request->overrides;
    size_t n = 0;

    while (texts != NULL && texts[n] != NULL)
        n++;
    config->overrides = kiln_arena_alloc(config->arena, (n + 1) * sizeof(*config->overrides));
    for (size_t i = 0; i < n && config->overrides != NULL; i++) {
        KilnOverride *override = &config->overrides[config->n_overrides];
        KilnError err = { 0 };

        if (read_override(composer, texts[i], i, override, &err) < 0)
            report(composer, &err);
        else
            config->n_overrides++;
    }
}

/* ---- Search path ----------------------------------------------------------------- */

/* A folder of kiln.searchpath that does not exist is a warning. */
static void add_searchpath_folder(Composer *composer, const KilnConfigNode *item)
{
    KilnError err = { 0 };
    const char *folder = kiln_own_list_item(composer->config, item, "searchpath", "a folder", &err);

    if (folder == NULL) {
        report(composer, &err);
        return;
    }
    if (kiln_search_add(&composer->config->search, folder, "kiln.searchpath", &err) == KILN_OK)
        return;
    kiln_error_at(&err, &item->origin);
    if (err.status != KILN_E_IO)
        report(composer, &err);
    else
        kiln_errors_warn(composer->errors, &err);
}

static void set_search_path(Composer *composer)
{
    const KilnConfigNode *more;
    KilnError err = { 0 };

    keep_status(composer, kiln_search_request(&composer->config->search, composer->request,
                                              composer->errors, &err));
    if (composer->status < 0)
        return; /* else every file would be reported as missing */
    more = kiln_own_list_find(composer->config, "searchpath", &err);
    if (err.status < 0)
        report(composer, &err);
    for (size_t i = 0; more != NULL && more->kind == KILN_NODE_LIST && i < more->count; i++)
        if (more->entries[i].value->kind == KILN_NODE_SCALAR)
            add_searchpath_folder(composer, more->entries[i].value);
    if (kiln_search_add_plugins(&composer->config->search, &err) < 0)
        report(composer, &err);
}

/* ---- Files ------------------------------------------------------------------------- */

/* Accept Hydra's name of the node `kiln`. */
static void rename_hydra_node(KilnConfig *config, KilnConfigNode *content)
{
    KilnEntry *entry = content->kind == KILN_NODE_MAP && kiln_node_get(content, "kiln") == NULL
                           ? kiln_node_entry(content, "hydra")
                           : NULL;

    if (entry == NULL)
        return;
    kiln_node_rename(content, entry, "kiln");
    config->foreign = true;
}

/* `- override hydra/launcher: x`, `- hydra: default` */
static bool lists_hydra_group(const KilnConfigNode *defaults)
{
    for (size_t i = 0; defaults != NULL && i < defaults->count; i++) {
        const KilnConfigNode *item = defaults->entries[i].value;
        const char *name = item->kind == KILN_NODE_SCALAR ? item->text
                           : item->count == 1             ? item->entries[0].key
                                                          : NULL;
        const char *word = name != NULL ? strrchr(name, ' ') : NULL;

        name = word != NULL ? word + 1 : name;
        if (name != NULL && *name == '/')
            name++;
        if (name != NULL && kiln_is_foreign_node(name, strcspn(name, "/@")))
            return true;
    }
    return false;
}

/* `content` inside the mappings that the package names; NULL when memory is out. */
static KilnConfigNode *wrap(Composer *composer, KilnConfigNode *content, const char *package)
{
    KilnMaker maker = { .arena = composer->config->arena };
    KilnConfigNode *top = NULL, *map = NULL, *inner;
    char part[KILN_PATH_PART];

    if (content == NULL)
        return NULL;
    maker.origin = content->origin;
    maker.layer = content->layer;
    top = map = kiln_node_new(&maker, KILN_NODE_MAP);
    for (; kiln_path_next(&package, part) && !maker.arena->failed; map = inner) {
        inner = *package != '\0' ? kiln_node_new(&maker, KILN_NODE_MAP) : content;
        kiln_node_append(maker.arena, map, kiln_arena_strdup(maker.arena, part), maker.origin,
                         inner);
    }
    return maker.arena->failed ? NULL : top;
}

/* The file's content to merge: itself, or a copy when it is used again. */
static KilnConfigNode *take_content(Composer *composer, size_t index)
{
    const KilnDefaultsList *defaults = composer->config->defaults;
    const KilnConfigFile *file = defaults->files[index].entry->file;

    for (size_t i = index + 1; i < defaults->count; i++)
        if (defaults->files[i].entry->file == file)
            return kiln_node_copy(composer->config->arena, file->content);
    return file->content;
}

/* Can the file's content be merged at its package? If not, report why. */
static bool fits_package(Composer *composer, const KilnDefaultsEntry *entry,
                         const KilnConfigNode *content)
{
    const char *source = entry->file->source, *package = entry->into;
    const bool whole = *package == '\0';

    if (whole && content->kind != KILN_NODE_MAP)
        FAIL(composer, NULL, KILN_E_TYPE,
             "%s: a list cannot be the whole config; put it under a key, or give the file a "
             "package",
             source);
    else if (!kiln_path_fits(package))
        FAIL(composer, NULL, KILN_E_KEY,
             "%s: '%.200s' is not a package; expected up to %d names separated by dots, as in "
             "'model.optimizer'",
             source, package, KILN_PATH_PARTS);
    else if (whole && content->mark != KILN_EDIT_NONE)
        FAIL(composer, &content->origin, KILN_E_TYPE,
             "%s cannot apply to the whole config; put it after a key, or give the file a package",
             kiln_edit_tag(content->mark));
    else if (*package == '.' || kiln_ends_with(package, ".") || strstr(package, "..") != NULL)
        FAIL(composer, NULL, KILN_E_SYNTAX, "%s: the package '%s' has an empty name in it", source,
             package);
    else
        return true;
    return false;
}

static void check_own_lists(Composer *composer, const KilnDefaultsEntry *entry,
                            const KilnConfigNode *content)
{
    const KilnConfigNode *own = kiln_node_get(content, "kiln"), *list;
    const char *key;

    if (entry->primary || strcmp(entry->file->path, "kiln/config") == 0)
        return;
    for (size_t i = 0; (key = kiln_own_list_key(i)) != NULL; i++)
        if ((list = kiln_node_get(own, key)) != NULL)
            FAIL(composer, &list->origin, KILN_E_KEY,
                 "kiln.%s can be set only in the primary config or by an argument", key);
}

static void merge_file(Composer *composer, size_t index)
{
    KilnConfig *config = composer->config;
    const KilnDefaultsEntry *entry = config->defaults->files[index].entry;
    KilnConfigNode *content = take_content(composer, index);

    if (content != NULL && !fits_package(composer, entry, content))
        return;
    if (*entry->into != '\0')
        content = wrap(composer, content, entry->into);
    if (content == NULL)
        return;
    rename_hydra_node(config, content);
    config->foreign |= lists_hydra_group(entry->file->defaults);
    check_own_lists(composer, entry, content);
    composer->n_nodes += kiln_node_size(content);
    if (composer->n_nodes > MAX_NODES) {
        FAIL(composer, NULL, KILN_E_RANGE,
             "%s: the config exceeds %d values with it; put data into a file of its own, which "
             "the config names",
             entry->file->source, MAX_NODES);
        return;
    }
    keep_status(composer, kiln_merge(config, config->root, content, composer->errors));
}

static void merge_files(Composer *composer)
{
    KilnConfig *config = composer->config;
    size_t before = kiln_errors_failures(composer->errors);

    kiln_defaults_expand(config, composer->errors);
    if (composer->config->arena->failed)
        return;
    if (kiln_errors_failures(composer->errors) > before)
        keep_status(composer, KILN_E_KEY);
    for (size_t i = 0; i < config->defaults->count && composer->n_nodes <= MAX_NODES; i++)
        merge_file(composer, i);
}

/* ---- Values ------------------------------------------------------------------------- */

static void merge_defaults(Composer *composer)
{
    const KilnComposeHooks *hooks = composer->hooks;

    if (hooks != NULL && hooks->defaults_layer != NULL)
        keep_status(composer,
                    hooks->defaults_layer(hooks->ctx, composer->config, composer->errors));
}

/* Is the key in a package whose file could not be read? */
static bool is_in_failed_package(const Composer *composer, const char *key)
{
    const KilnDefaultsList *defaults = composer->config->defaults;

    for (size_t i = 0; i < defaults->n_failed; i++) {
        const char *package = defaults->failed[i];
        size_t n = strlen(package);

        if (n == 0 ||
            (strncmp(package, key, n) == 0 && (key[n] == '\0' || key[n] == '.' || key[n] == '/')))
            return true;
    }
    return false;
}

static void merge_pending_defaults(Composer *composer)
{
    if (composer->pending != NULL)
        merge_defaults(composer);
    composer->pending = NULL;
}

static void apply_override(Composer *composer, const KilnOverride *override)
{
    KilnError err = { 0 };
    bool needs_defaults = false;

    if (kiln_override_apply(composer->config, override, &needs_defaults, &err) < 0) {
        if (!composer->config->partial || kiln_override_is_own(override))
            report(composer, &err);
    } else if (needs_defaults) {
        composer->pending = override;
        if (kiln_override_may_add_keys(composer->config, override))
            merge_pending_defaults(composer);
    }
}

static void apply_overrides(Composer *composer)
{
    for (size_t i = 0; i < composer->config->n_overrides && !out_of_memory(composer); i++) {
        KilnOverride *override = &composer->config->overrides[i];

        if (override->is_group)
            continue;
        if (composer->pending != NULL &&
            !kiln_override_batches_with(composer->config, override, composer->pending))
            merge_pending_defaults(composer);
        kiln_override_accept_text(composer->config->arena, composer->config, composer->hooks,
                                  override);
        if (has_value(composer, override) && !is_in_failed_package(composer, override->key))
            apply_override(composer, override);
    }
    merge_pending_defaults(composer);
}

/* Check the values of a config whose overrides failed, so that all errors are reported at once. */
static void check_rest(Composer *composer)
{
    const KilnComposeHooks *hooks = composer->hooks;

    if (composer->status < 0 && composer->status != KILN_E_NOMEM && hooks != NULL &&
        hooks->check != NULL && !composer->config->partial)
        hooks->check(hooks->ctx, composer->config, composer->errors);
}

static void compose(Composer *composer)
{
    read_overrides(composer);
    if (out_of_memory(composer))
        return;
    size_t before = kiln_errors_failures(composer->errors);
    set_search_path(composer);
    if (kiln_errors_failures(composer->errors) > before) {
        /* Without files no key's type is known; still report every value that cannot be read. */
        for (size_t i = 0; i < composer->config->n_overrides; i++)
            (void)has_value(composer, &composer->config->overrides[i]);
        return;
    }
    merge_files(composer);
    if (out_of_memory(composer))
        return;
    bool merged = kiln_errors_failures(composer->errors) == before;
    merge_defaults(composer);
    apply_overrides(composer);
    if (out_of_memory(composer))
        return;
    KilnStatus status = kiln_runtime_fill(composer->config, composer->errors);
    keep_status(composer, status);
    if (merged && status >= 0)
        check_rest(composer);
}

static KilnStatus run(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                      bool partial, KilnConfig **ret, KilnErrors *errors)
{
    KilnConfig *config = config_new(request);
    Composer composer = { .config = config, .request = request, .hooks = hooks, .errors = errors };
    KilnErrors *own = NULL;

    /* Steps compare error counts, so there must be a collection. */
    if (config == NULL || (errors == NULL && kiln_errors_new(&own) < 0)) {
        kiln_config_free(config);
        return KILN_E_NOMEM;
    }
    if (errors == NULL)
        composer.errors = own;
    config->partial = partial;
    config->search.hooks = hooks;
    compose(&composer);
    if (config->arena->failed) {
        KilnError err = { 0 };

        kiln_error_nomem(&err, sizeof(KilnConfigNode));
        composer.status = kiln_errors_add(composer.errors, &err);
    }
    config->search.hooks = NULL;
    kiln_errors_sort(composer.errors, config);
    kiln_errors_free(own);
    if (composer.status < 0) {
        kiln_config_free(config);
        return composer.status;
    }
    *ret = config;
    return KILN_OK;
}

KilnStatus kiln_config_compose(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                               KilnConfig **ret, KilnErrors *errors)
{
    return run(request, hooks, false, ret, errors);
}

KilnStatus kiln_config_compose_sweep(const KilnComposeRequest *request,
                                     const KilnComposeHooks *hooks, KilnConfig **ret,
                                     KilnErrors *errors)
{
    return run(request, hooks, true, ret, errors);
}

const KilnSelection *kiln_config_selection(const KilnConfig *config, size_t i)
{
    const KilnDefaultsList *list = config->defaults;

    for (size_t k = 0; k < list->n_selections; k++)
        if (!kiln_starts_with(list->selections[k].key, "kiln/") && i-- == 0)
            return &list->selections[k];
    return NULL;
}

/* ---- What is needed before ------------------------------------------------------------------- */

static KilnStatus copy_own(KilnConfig *config, const KilnConfigNode *item, const char *key,
                           KilnArena *arena, KilnOwnValue *ret, KilnError *err)
{
    const char *text = kiln_own_list_item(config, item, key, "a file", err);
    const char *source = item->origin.source != NULL ? item->origin.source : "";

    if (text == NULL)
        return err->status;
    *ret = (KilnOwnValue) { kiln_arena_strdup(arena, text), kiln_arena_strdup(arena, source) };
    return arena->failed ? kiln_error_nomem(err, strlen(text)) : KILN_OK;
}

KilnStatus kiln_config_own(const KilnComposeRequest *request, const char *key, KilnArena *arena,
                           KilnOwnValue **ret, size_t *ret_count, KilnError *err)
{
    KilnConfig *config = config_new(request);
    Composer composer = { .config = config, .request = request };
    KilnError ignored = { 0 };
    KilnStatus status = KILN_OK;

    *ret_count = 0;
    if (config == NULL || kiln_errors_new(&composer.errors) < 0) {
        kiln_config_free(config);
        return kiln_error_nomem(err, sizeof(*config));
    }
    read_overrides(&composer);
    (void)!kiln_search_request(&config->search, request, composer.errors, &ignored);
    const KilnConfigNode *value = kiln_own_list_find(config, key, &ignored);
    const bool list = value != NULL && value->kind == KILN_NODE_LIST;
    const bool one = value != NULL && value->kind == KILN_NODE_SCALAR &&
                     value->scalar != KILN_SCALAR_NULL;
    const size_t n = list ? value->count : one ? 1 : 0;
    *ret = kiln_arena_alloc(arena, (n + 1) * sizeof(**ret));
    for (; *ret != NULL && *ret_count < n && status >= 0; ++*ret_count)
        status = copy_own(config, list ? value->entries[*ret_count].value : value, key, arena,
                          &(*ret)[*ret_count], err);
    if (status < 0 && err != NULL && err->origin.source != NULL) /* outlives the config */
        err->origin.source = kiln_arena_strdup(arena, err->origin.source);
    kiln_errors_free(composer.errors);
    kiln_config_free(config);
    return arena->failed ? kiln_error_nomem(err, n * sizeof(**ret)) : status;
}
