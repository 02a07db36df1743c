/* Composes a config: overrides, search path, defaults lists, merging, values. */
#include "config/compose.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/override/apply.h"
#include "config/defaults/defaults_list.h"
#include "config/interpolate/interpolate.h"
#include "config/tree/edit.h"
#include "config/tree/merge.h"
#include "config/kiln_node/runtime.h"
#include "config/composed.h"

typedef struct Composer {
    KilnConfig *config;
    const KilnComposeRequest *request;
    const KilnComposeHooks *hooks;
    KilnErrors *errors;
    KilnOverride *overrides;
    size_t n_overrides;
    KilnDefaultsList *defaults; /* in the config's arena */
    size_t n_nodes;             /* of the files that were merged */
    const KilnOverride *unlaid; /* the last that was applied, when the bottom is to be laid after
                                 * it and is not yet; NULL: it is laid */
    KilnStatus status;          /* of the first error */
} Composer;

enum { MOST_NODES = 1000000 };

static void tell(Composer *composer, const KilnError *err)
{
    if (composer->status >= 0)
        composer->status = err->status;
    kiln_errors_add(composer->errors, err);
}

static void no_memory(Composer *composer)
{
    KilnError err = { 0 };

    kiln_error_nomem(&err, sizeof(KilnConfigNode));
    tell(composer, &err);
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
    if (config->config_name == NULL || config->root == NULL || config->warnings == NULL) {
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

static void sweep_alone(Composer *composer, const KilnOverride *override)
{
    const char *written = strchr(override->assignment, '=');
    KilnError err = { 0 };

    if (composer->config->partial)
        kiln_error_set(&err, KILN_E_USAGE,
                       "%s is the same for all jobs of a sweep and can't be varied; text with "
                       "commas is quoted: \"%s='...'\"",
                       override->key, override->key);
    else
        kiln_error_set(&err, KILN_E_USAGE,
                       "%s has several values, which a single run can't take; for a run of each "
                       "add -m, for a list write '%s=[%.200s]', for text with commas quote it: "
                       "\"%s='%.200s'\"",
                       override->key, override->key, written != NULL ? written + 1 : "",
                       override->key, written != NULL ? written + 1 : "");
    KilnOrigin at = kiln_override_key_origin(override);
    if (override->value != NULL)
        at = override->value->origin;
    kiln_error_at(&err, &at);
    tell(composer, &err);
}

/* Has it one value to apply? Tell what is wrong with it otherwise. A sweep's own
 * config leaves out what the jobs vary, and leaves errors of theirs to them. */
static bool has_value(Composer *composer, const KilnOverride *override)
{
    bool sure = !composer->config->partial || kiln_override_is_own(override);

    if (sure && override->problem != NULL)
        tell(composer, override->problem);
    else if (sure && override->sweep != NULL)
        sweep_alone(composer, override);
    return override->problem == NULL && override->sweep == NULL;
}

/* What can't be read might be plain text, but it will not be known of which type its
 * key is. */
static void give_up_values(Composer *composer)
{
    for (size_t i = 0; i < composer->n_overrides; i++)
        (void)has_value(composer, &composer->overrides[i]);
}

static void read_overrides(Composer *composer)
{
    const char *const *texts = composer->request->overrides;
    size_t n = 0;

    while (texts != NULL && texts[n] != NULL)
        n++;
    composer->overrides = kiln_arena_alloc(composer->config->arena,
                                           (n + 1) * sizeof(*composer->overrides));
    if (composer->overrides == NULL) {
        no_memory(composer);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        KilnOverride *override = &composer->overrides[composer->n_overrides];
        KilnError err = { 0 };

        if (kiln_override_read(composer->config->arena, texts[i], i + 1, override, &err) < 0)
            tell(composer, &err);
        else
            composer->n_overrides++;
    }
}

static void keep_arguments(Composer *composer)
{
    KilnConfig *config = composer->config;

    config->arguments = kiln_arena_alloc(config->arena,
                                         (composer->n_overrides + 1) * sizeof(char *));
    if (config->arguments == NULL) {
        no_memory(composer);
        return;
    }
    for (size_t i = 0; i < composer->n_overrides; i++)
        config->arguments[i] = composer->overrides[i].text;
    config->n_arguments = composer->n_overrides;
}

/* ---- Search path ----------------------------------------------------------------- */

static void add_folder(Composer *composer, const char *path, const char *what)
{
    KilnError err = { 0 };

    if (kiln_search_add(&composer->config->search, path, what, &err) < 0)
        tell(composer, &err);
}

/* A folder of kiln.searchpath may be absent: it is told, and passed over. What its text refers to
 * is the environment, or the file that lists it: nothing is composed yet. */
static void add_listed(Composer *composer, const KilnConfigNode *item)
{
    const KilnConfigNode *root = item, *folder = NULL;
    KilnError err = { 0 };

    while (root->parent != NULL)
        root = root->parent;
    KilnResolution resolving = { .config = composer->config, .root = root, .err = &err };
    if (kiln_resolve_node(&resolving, item, &folder) < 0) {
        tell(composer, &err);
        return;
    }
    if (folder->kind != KILN_NODE_SCALAR)
        kiln_error_set(&err, KILN_E_TYPE, "kiln.searchpath: expected a folder, got %s",
                       kiln_node_kind_name(folder));
    else if (kiln_search_add(&composer->config->search, folder->text, "kiln.searchpath", &err) ==
             KILN_OK)
        return;
    kiln_error_at(&err, &item->origin);
    if (err.status != KILN_E_IO)
        tell(composer, &err);
    else
        kiln_errors_warn(composer->errors, &err);
}

/* kiln.searchpath: the argument's list, else the primary config's. */
static const KilnConfigNode *find_searchpath(Composer *composer)
{
    KilnConfigFile *file = NULL;
    const KilnConfigNode *own;
    KilnError err = { 0 };

    for (size_t i = 0; i < composer->n_overrides; i++)
        if (strcmp(composer->overrides[i].key, "kiln.searchpath") == 0 &&
            composer->overrides[i].value != NULL)
            return composer->overrides[i].value;
    if (kiln_search_file(&composer->config->search, composer->config->config_name, &file, &err) <
        0) {
        tell(composer, &err);
        return NULL;
    }
    if (file == NULL || file->content == NULL)
        return NULL;
    own = kiln_node_get(file->content, "kiln");
    if (own == NULL)
        own = kiln_node_get(file->content, "hydra");
    return kiln_node_get(own, "searchpath");
}

static void set_search_path(Composer *composer)
{
    const KilnComposeRequest *request = composer->request;
    const char *const *dirs = request->config_dirs;
    const KilnConfigNode *more;
    KilnError err = { 0 };

    if (request->config_path != NULL)
        add_folder(composer, request->config_path, "--config-path");
    else if (kiln_is_dir("conf"))
        add_folder(composer, "conf", "./conf");
    for (; dirs != NULL && *dirs != NULL; dirs++)
        add_folder(composer, *dirs, "--config-dir");
    if (composer->status < 0)
        return; /* nothing would be found, and everything reported */
    more = find_searchpath(composer);
    for (size_t i = 0; more != NULL && more->kind == KILN_NODE_LIST && i < more->count; i++)
        if (more->entries[i].value->kind == KILN_NODE_SCALAR)
            add_listed(composer, more->entries[i].value);
    if (kiln_search_add_plugins(&composer->config->search, &err) < 0)
        tell(composer, &err);
}

/* ---- Files ------------------------------------------------------------------------- */

/* Hydra's name for our node. */
static void adopt_foreign(KilnConfig *config, KilnConfigNode *content)
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
static bool lists_foreign(const KilnConfigNode *defaults)
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

/* `content` below the mappings that the package names. */
static KilnConfigNode *wrap(Composer *composer, KilnConfigNode *content, const char *package)
{
    KilnMaker maker = { .arena = composer->config->arena,
                        .origin = content->origin,
                        .layer = content->layer };
    KilnConfigNode *top = kiln_node_new(&maker, KILN_NODE_MAP), *map = top;
    char part[KILN_PATH_PART];

    while (map != NULL && kiln_path_next(&package, part)) {
        const char *key = kiln_arena_strdup(maker.arena, part);
        KilnConfigNode *value = *package != '\0' ? kiln_node_new(&maker, KILN_NODE_MAP) : content;

        if (key == NULL || kiln_node_append(maker.arena, map, key, content->origin, value) == NULL)
            return NULL;
        map = value;
    }
    return *package == '\0' ? top : NULL;
}

/* The file's content to merge: itself, or a copy when it is used again. */
static KilnConfigNode *take_content(Composer *composer, size_t index)
{
    KilnConfigFile *file = composer->defaults->files[index].file;

    for (size_t i = index + 1; i < composer->defaults->count; i++)
        if (composer->defaults->files[i].file == file)
            return kiln_node_copy(composer->config->arena, file->content);
    return file->content;
}

static size_t count_nodes(const KilnConfigNode *node)
{
    size_t n = 1;

    for (size_t i = 0; i < node->count; i++)
        n += count_nodes(node->entries[i].value);
    return n;
}

/* "a..b", "a.": no place in a tree. */
static bool has_empty_part(const char *package)
{
    size_t n = strlen(package);

    return n > 0 && (package[0] == '.' || package[n - 1] == '.' || strstr(package, "..") != NULL);
}

static void merge_file(Composer *composer, size_t index)
{
    const KilnMergeFile *result = &composer->defaults->files[index];
    KilnConfig *config = composer->config;
    KilnConfigFile *file = result->file;
    KilnConfigNode *content = take_content(composer, index);
    KilnError err = { 0 };
    KilnStatus status;

    if (content == NULL) {
        no_memory(composer);
        return;
    }
    if (*result->package == '\0' && content->kind != KILN_NODE_MAP) {
        kiln_error_set(&err, KILN_E_TYPE,
                       "%s: a list can't be the whole config; put it below a "
                       "key, or give the file a package",
                       file->source);
        tell(composer, &err);
        return;
    }
    if (!kiln_path_fits(result->package)) {
        kiln_error_set(&err, KILN_E_KEY,
                       "%s: '%.200s' is no package; expected up to %d names with dots between "
                       "them, as in 'model.optimizer'",
                       file->source, result->package, KILN_PATH_PARTS);
        tell(composer, &err);
        return;
    }
    if (*result->package == '\0' && content->mark != KILN_EDIT_NONE) {
        kiln_error_set(&err, KILN_E_TYPE,
                       "%s can't stand in front of the whole config; put it behind a key, or give "
                       "the file a package",
                       kiln_edit_tag(content->mark));
        kiln_error_at(&err, &content->origin);
        tell(composer, &err);
        return;
    }
    if (has_empty_part(result->package)) {
        kiln_error_set(&err, KILN_E_SYNTAX, "%s: the package '%s' has an empty name in it",
                       file->source, result->package);
        tell(composer, &err);
        return;
    }
    if (*result->package != '\0')
        content = wrap(composer, content, result->package);
    if (content == NULL) {
        no_memory(composer);
        return;
    }
    adopt_foreign(config, content);
    config->foreign |= lists_foreign(file->defaults);
    const KilnConfigNode *own = kiln_node_get(content, "kiln");
    if (!result->primary && kiln_node_get(own, "searchpath") != NULL &&
        strcmp(file->path, "kiln/config") != 0) {
        kiln_error_set(&err, KILN_E_KEY,
                       "kiln.searchpath can be set in the primary config only, or by an argument");
        kiln_error_at(&err, &kiln_node_get(own, "searchpath")->origin);
        tell(composer, &err);
    }
    composer->n_nodes += count_nodes(content);
    if (composer->n_nodes > MOST_NODES) {
        kiln_error_set(&err, KILN_E_RANGE,
                       "%s: the config has more than %d values with it; data belongs into a file "
                       "of its own, which the config names",
                       file->source, MOST_NODES);
        tell(composer, &err);
        return;
    }
    status = kiln_merge(config, config->root, content, composer->errors);
    if (composer->status >= 0)
        composer->status = status;
}

static void merge_files(Composer *composer)
{
    size_t before = kiln_errors_failures(composer->errors);

    composer->defaults = kiln_arena_alloc(composer->config->arena, sizeof(*composer->defaults));
    if (composer->defaults == NULL ||
        kiln_defaults_expand(composer->config, composer->overrides, composer->n_overrides,
                             composer->errors, composer->defaults) < 0) {
        no_memory(composer);
        return;
    }
    composer->config->defaults = composer->defaults;
    composer->config->selections = composer->defaults->selections;
    composer->config->n_selections = composer->defaults->n_selections;
    if (composer->status >= 0 && kiln_errors_failures(composer->errors) > before)
        composer->status = KILN_E_KEY;
    for (size_t i = 0; i < composer->defaults->count && composer->n_nodes <= MOST_NODES; i++)
        merge_file(composer, i);
}

/* ---- Values ------------------------------------------------------------------------- */

static void lay_bottom(Composer *composer)
{
    KilnStatus status;

    if (composer->hooks == NULL || composer->hooks->defaults_layer == NULL)
        return;
    status = composer->hooks->defaults_layer(composer->hooks->ctx, composer->config,
                                             composer->errors);
    if (composer->status >= 0)
        composer->status = status;
}

/* Is the key below a package whose config could not be had? */
static bool is_broken(const Composer *composer, const char *key)
{
    for (size_t i = 0; i < composer->defaults->n_failed; i++) {
        const char *package = composer->defaults->failed[i];
        size_t n = strlen(package);

        if (n == 0 ||
            (strncmp(package, key, n) == 0 && (key[n] == '\0' || key[n] == '.' || key[n] == '/')))
            return true;
    }
    return false;
}

static void lay_unlaid(Composer *composer)
{
    if (composer->unlaid != NULL)
        lay_bottom(composer);
    composer->unlaid = NULL;
}

static void apply_override(Composer *composer, const KilnOverride *override)
{
    KilnError err = { 0 };
    bool defaults_layer = false;

    if (kiln_override_apply(composer->config, override, &defaults_layer, &err) < 0) {
        if (!composer->config->partial || kiln_override_is_own(override))
            tell(composer, &err);
    } else if (defaults_layer) {
        composer->unlaid = override;
        if (kiln_override_may_add_keys(composer->config, override))
            lay_unlaid(composer);
    }
}

static void apply_overrides(Composer *composer)
{
    for (size_t i = 0; i < composer->n_overrides; i++) {
        KilnOverride *override = &composer->overrides[i];
        KilnError err = { 0 };

        if (override->is_group)
            continue;
        if (composer->unlaid != NULL &&
            !kiln_override_batches_with(composer->config, override, composer->unlaid))
            lay_unlaid(composer);
        if (kiln_override_accept_text(composer->config->arena, composer->config, composer->hooks,
                                      override, &err) < 0)
            tell(composer, &err);
        if (has_value(composer, override) && !is_broken(composer, override->key))
            apply_override(composer, override);
    }
    lay_unlaid(composer);
}

/* What is left of a config whose overrides failed is worth a look all the same. */
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
    keep_arguments(composer);
    if (composer->status == KILN_E_NOMEM)
        return;
    size_t before = kiln_errors_failures(composer->errors);
    set_search_path(composer);
    if (kiln_errors_failures(composer->errors) > before) {
        give_up_values(composer);
        return;
    }
    merge_files(composer);
    if (composer->status == KILN_E_NOMEM)
        return;
    bool merged = kiln_errors_failures(composer->errors) == before;
    lay_bottom(composer);
    apply_overrides(composer);
    KilnStatus status = kiln_runtime_fill(composer->config, composer->overrides,
                                          composer->n_overrides, composer->errors);
    if (composer->status >= 0)
        composer->status = status;
    if (merged && status >= 0)
        check_rest(composer);
}

static KilnStatus run(Composer *composer, KilnConfig **ret)
{
    KilnErrors *own = NULL;

    if (composer->config == NULL)
        return KILN_E_NOMEM;
    /* Whether a step failed is seen by the count: have a collection at any rate. */
    if (composer->errors == NULL && kiln_errors_new(&own) < 0) {
        kiln_config_free(composer->config);
        return KILN_E_NOMEM;
    }
    if (composer->errors == NULL)
        composer->errors = own;
    composer->config->search.hooks = composer->hooks;
    compose(composer);
    composer->config->search.hooks = NULL;
    kiln_errors_sort(composer->errors, composer->config);
    kiln_errors_free(own);
    if (composer->status < 0) {
        kiln_config_free(composer->config);
        return composer->status;
    }
    *ret = composer->config;
    return KILN_OK;
}

KilnStatus kiln_config_compose(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                               KilnConfig **ret, KilnErrors *errors)
{
    Composer composer = {
        .config = config_new(request), .request = request, .hooks = hooks, .errors = errors
    };

    return run(&composer, ret);
}

KilnStatus kiln_config_compose_sweep(const KilnComposeRequest *request,
                                     const KilnComposeHooks *hooks, KilnConfig **ret,
                                     KilnErrors *errors)
{
    Composer composer = {
        .config = config_new(request), .request = request, .hooks = hooks, .errors = errors
    };

    if (composer.config != NULL)
        composer.config->partial = true;
    return run(&composer, ret);
}
