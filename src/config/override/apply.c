/* Applies value overrides to the tree; a group override is applied by
 * defaults/group_overrides.c. */
#include "config/override/apply.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/interpolate/interpolate.h"
#include "config/provenance/error_origin.h"
#include "config/tree/edit.h"
#include "config/tree/merge.h"
#include "config/composed.h"

typedef struct Target {
    KilnConfig *config;
    const KilnOverride *override;
    KilnConfigNode *parent; /* of the key's last part */
    char part[KILN_PATH_PART];
    KilnError *err;
} Target;

/* ---- Keys that are not there ----------------------------------------------------- */

/* The path of the only key called `name` in the tree; NULL when there is none or
 * more than one. */
static const KilnConfigNode *find_anywhere(const KilnConfigNode *node, const char *name,
                                           size_t *found)
{
    const KilnConfigNode *result = NULL;

    for (size_t i = 0; i < node->count && *found < 2; i++) {
        const KilnEntry *entry = &node->entries[i];
        const KilnConfigNode *below;

        if (node->parent == NULL && entry->key != NULL && strcmp(entry->key, "kiln") == 0)
            continue;
        if (entry->key != NULL && strcmp(entry->key, name) == 0) {
            ++*found;
            result = entry->value;
        }
        below = find_anywhere(entry->value, name, found);
        if (below != NULL)
            result = below;
    }
    return *found == 1 ? result : NULL;
}

static bool append_near(const Target *target, const KilnConfigNode *at, const char *part,
                        KilnText *text)
{
    const char *near = kiln_node_nearest(at, part);
    size_t found = 0;
    const char *path = at != NULL ? kiln_node_path(target->config, at) : "";
    const bool below_kiln = strncmp(path, "kiln.", strlen("kiln.")) == 0;
    const KilnConfigNode *root = target->config->root;
    const KilnConfigNode *top = below_kiln ? kiln_node_get(root, "kiln") : root;
    const KilnConfigNode *elsewhere = kiln_node_get(top, part);

    if (near != NULL) {
        kiln_text_printf(text, "; did you mean '%s%s%s'?", path, *path != '\0' ? "." : "", near);
        return true;
    }
    if (elsewhere == NULL)
        elsewhere = find_anywhere(top, part, &found);
    if (elsewhere != NULL)
        kiln_text_printf(text, "; did you mean '%s'?", kiln_node_path(target->config, elsewhere));
    return elsewhere != NULL;
}

/* The origin of a part of the argument's key, or of the whole key. */
static KilnOrigin part_origin(const Target *target, const char *part)
{
    const KilnOverride *override = target->override;
    KilnOrigin at = kiln_override_key_origin(override);
    size_t key = strcspn(override->assignment, "=@"), n = strlen(part);

    for (size_t i = 0; at.line == 0 && i + n <= key; i++)
        if (strncmp(override->assignment + i, part, n) == 0 &&
            (i == 0 || override->assignment[i - 1] == '.')) {
            at.column += (int)i;
            break;
        }
    return at;
}

/* Has the mapping exactly the options of a component or a section? */
static bool is_closed(const Target *target, const KilnConfigNode *map, const char *path)
{
    bool known = false;

    for (const KilnSection *s = target->config->sections; s != NULL && s->key != NULL; s++)
        if (s->open && strcmp(s->key, path) == 0)
            return false;
    for (size_t i = 0; map->kind == KILN_NODE_MAP && i < map->count; i++)
        for (const KilnConfigNode *v = map->entries[i].value; v != NULL; v = v->replaced)
            known = known || v->layer == KILN_LAYER_DEFAULT;
    return known;
}

/* `callbacks.early_stopping`, where `callbacks=early_stopping` is not selected. */
static bool is_option(const Target *target, const char *group, const char *name)
{
    const char *const *options = kiln_search_options(&target->config->search, group, false);

    for (; *options != NULL; options++)
        if (strcmp(*options, name) == 0)
            return *group != '\0' && strchr(group, '.') == NULL;
    return false;
}

/* What the options of a component or section are, or how to see them if they are many. */
static void append_options(const KilnConfigNode *map, const char *name, bool near, KilnText *text)
{
    enum { FEW = 8 };
    const char *comma = near ? " " : "; ";

    if (map->count > FEW) {
        kiln_text_printf(text, "%s`kiln show %s` lists its options", comma, name);
        return;
    }
    kiln_text_printf(text, "%sits options: ", comma);
    comma = "";
    for (size_t i = 0; i < map->count; i++) {
        if (map->entries[i].key[0] == '_')
            continue;
        kiln_text_printf(text, "%s%s", comma, map->entries[i].key);
        comma = ", ";
    }
}

static KilnStatus no_key(const Target *target, const KilnConfigNode *at, const char *part)
{
    const KilnOverride *override = target->override;
    const char *path = kiln_node_path(target->config, at);
    const KilnConfigNode *component = kiln_node_get(at, "_target_");
    KilnText text = { 0 };
    bool near;

    kiln_text_printf(&text, "%s has no key '%s'", *path != '\0' ? path : "the config", part);
    for (size_t i = 0; i < target->config->n_removed; i++)
        if (strcmp(target->config->removed[i].path, override->key) == 0)
            kiln_text_printf(&text, " (%s removed it)", target->config->removed[i].origin.source);
    near = append_near(target, at, part, &text);
    if (is_closed(target, at, path)) {
        if (component != NULL || *path != '\0')
            append_options(at, component != NULL ? component->text : path, near, &text);
    } else if (is_option(target, path, part))
        kiln_text_printf(&text, "%s select it with %s=%s", near ? "" : ";", path, part);
    else if (override->kind == KILN_OVERRIDE_APPEND)
        kiln_text_printf(&text, "%s to add a new list write +%s=[...]", near ? " Or" : ";",
                         override->key);
    else if (override->kind == KILN_OVERRIDE_REPLACE)
        kiln_text_printf(&text, "%s to add a new key write +%s=%s", near ? " Or" : ";",
                         override->key, override->value_text);
    else if (override->kind == KILN_OVERRIDE_SET)
        kiln_text_printf(&text, "%s to add a new key write +%s", near ? " Or" : ";",
                         override->assignment);
    if (override->kind == KILN_OVERRIDE_SET && strcmp(path, override->key) == 0)
        kiln_text_printf(&text, ", or to replace what is there %s:=%s", path, override->value_text);
    kiln_error_set(target->err, KILN_E_KEY, "%s", text.data != NULL ? text.data : part);
    kiln_text_release(&text);
    target->err->origin = part_origin(target, part);
    return KILN_E_KEY;
}

static KilnStatus no_index(const Target *target, const KilnConfigNode *list, const char *part)
{
    const char *path = kiln_node_path(target->config, list);

    return kiln_error_set(target->err, KILN_E_RANGE,
                          "%s is a list of %zu item%s, '%s' is none of them (the first is 0, the "
                          "last -1); to append write %s+=..., or set the whole list: %s=[...]",
                          path, list->count, list->count == 1 ? "" : "s", part, path, path);
}

/* The entry of a key, or of the new name of a renamed key. */
static KilnEntry *find_entry(const Target *target, const KilnConfigNode *node, const char *key)
{
    const KilnComposeHooks *hooks = target->config->search.hooks;
    KilnEntry *entry = kiln_node_entry(node, key);
    const char *name;

    if (entry != NULL || node->kind != KILN_NODE_MAP || hooks == NULL || hooks->rename == NULL)
        return entry;
    KilnOrigin at = part_origin(target, key);
    name = hooks->rename(hooks->ctx, target->config, node, key, &at);
    return name != NULL ? kiln_node_entry(node, name) : NULL;
}

/* ---- Finding the entry ------------------------------------------------------------------- */

/* A node on the path has no keys. */
static KilnStatus blocked(const Target *target, const KilnConfigNode *node, const char *part)
{
    const char *path = kiln_node_path(target->config, node);

    if (kiln_node_is_scalar(node, KILN_SCALAR_INTERPOLATION))
        return kiln_error_set(target->err, KILN_E_KEY,
                              "%s refers to another node (%s): override '%s' there, or replace "
                              "the reference",
                              path, node->text, part);
    return kiln_error_set(target->err, KILN_E_KEY, "%s is %s, it has no key '%s'", path,
                          kiln_node_kind_name(node), part);
}

/* Adds a mapping (NULL: memory is out), or replaces a scalar by one, for ++a.b.c=1 and +a.b.c=1. */
static KilnConfigNode *make_map(Target *target, KilnConfigNode *parent, KilnEntry *entry,
                                const char *part)
{
    KilnMaker maker = { .arena = target->config->arena,
                        .origin = target->override->origin,
                        .layer = KILN_LAYER_ARGUMENT };
    KilnConfigNode *map = kiln_node_new(&maker, KILN_NODE_MAP);

    if (entry != NULL && map != NULL)
        kiln_node_replace(entry, parent, map);
    else
        kiln_node_append(maker.arena, parent, kiln_arena_strdup(maker.arena, part),
                         part_origin(target, part), map);
    return map;
}

/* "-1" is the last item of a list. */
static void count_from_end(const KilnConfigNode *list, char part[KILN_PATH_PART])
{
    int64_t index = 0;

    if (list->kind != KILN_NODE_LIST || *part != '-' || kiln_parse_i64(part, &index, NULL) < 0)
        return;
    index += (int64_t)list->count;
    if (index >= 0)
        (void)snprintf(part, KILN_PATH_PART, "%lld", (long long)index);
}

/* Walk to the mapping or list that holds the last part of the key. */
static KilnStatus find_parent(Target *target)
{
    const char *path = target->override->key;
    bool force = target->override->kind == KILN_OVERRIDE_ADD ||
                 target->override->kind == KILN_OVERRIDE_FORCE;
    KilnConfigNode *node = target->config->root;

    if (!kiln_path_fits(path))
        return kiln_error_set(target->err, KILN_E_RANGE,
                              "expected a key of up to %d names with dots between them, each "
                              "shorter than %d letters",
                              KILN_PATH_PARTS, KILN_PATH_PART);
    if (!kiln_path_next(&path, target->part))
        return kiln_error_set(target->err, KILN_E_SYNTAX, "there is no key");
    for (;;) {
        if (node == NULL || !kiln_list_own(target->config->arena, node))
            return kiln_error_nomem(target->err, sizeof(*node));
        count_from_end(node, target->part);
        target->parent = node;
        if (*path == '\0')
            return KILN_OK;
        KilnEntry *entry = find_entry(target, node, target->part);

        if (entry == NULL && node->kind == KILN_NODE_LIST)
            return no_index(target, node, target->part);
        if (entry == NULL && !force)
            return no_key(target, node, target->part);
        if (entry == NULL || (entry->value->kind == KILN_NODE_SCALAR && force))
            node = make_map(target, node, entry, target->part);
        else
            node = entry->value;
        kiln_path_next(&path, target->part);
        if (node != NULL && node->kind == KILN_NODE_SCALAR)
            return blocked(target, node, target->part);
    }
}

/* The entry of the key; *ret is NULL when the override may add it. */
static KilnStatus find_target(Target *target, KilnEntry **ret)
{
    KilnOverrideKind kind = target->override->kind;
    KilnStatus status = find_parent(target);

    if (status < 0)
        return status;
    *ret = find_entry(target, target->parent, target->part);
    if (*ret != NULL)
        return KILN_OK;
    if (target->parent->kind == KILN_NODE_LIST)
        return no_index(target, target->parent, target->part);
    if (kind == KILN_OVERRIDE_ADD || kind == KILN_OVERRIDE_FORCE)
        return KILN_OK;
    return no_key(target, target->parent, target->part);
}

/* ---- Setting ----------------------------------------------------------------------- */

static KilnStatus check_merge(const Target *target, const KilnConfigNode *dest,
                              const KilnConfigNode *src)
{
    KilnStatus status = kiln_merge_fits(target->config, dest, src,
                                        kiln_node_path(target->config, dest), target->err);

    if (status < 0 || dest->kind != KILN_NODE_MAP || src->kind != KILN_NODE_MAP)
        return status;
    bool retarget = kiln_merge_is_retarget(target->config, dest, kiln_node_get(src, "_target_"));
    for (size_t i = 0; i < src->count && status >= 0; i++) {
        const KilnEntry *entry = find_entry(target, dest, src->entries[i].key);

        if (entry == NULL && target->override->kind == KILN_OVERRIDE_SET && !retarget)
            return no_key(target, dest, src->entries[i].key);
        if (entry != NULL)
            status = check_merge(target, entry->value, src->entries[i].value);
    }
    return status;
}

static KilnStatus put(Target *target, KilnEntry *entry, bool *ret_add_defaults)
{
    KilnConfig *config = target->config;
    KilnConfigNode *value = target->override->value;
    KilnStatus status;

    if (entry == NULL) {
        *ret_add_defaults = true;
        kiln_node_append(config->arena, target->parent,
                         kiln_arena_strdup(config->arena, target->part),
                         part_origin(target, target->part), value);
        return KILN_OK;
    }
    status = check_merge(target, entry->value, value);
    if (status < 0)
        return status;
    /* Plain text may name a component: `task.loss=focal`. */
    if (value->kind != KILN_NODE_SCALAR || value->scalar == KILN_SCALAR_STR ||
        entry->value->kind != KILN_NODE_SCALAR || strcmp(target->part, "_target_") == 0)
        *ret_add_defaults = true;
    if (value->kind == KILN_NODE_MAP && entry->value->kind == KILN_NODE_MAP)
        return kiln_merge(config, entry->value, value, NULL);
    if (strcmp(target->part, "_target_") == 0) {
        status = kiln_merge_retarget(config, target->parent, value, NULL, target->err);
        entry = kiln_node_entry(target->parent, target->part); /* it moved up */
        if (status < 0)
            return status;
    }
    kiln_node_replace(entry, target->parent, value);
    return KILN_OK;
}

static KilnStatus set(Target *target, KilnEntry *entry, bool *ret_add_defaults)
{
    const KilnOverride *override = target->override;

    if (entry != NULL && override->kind == KILN_OVERRIDE_ADD &&
        override->value->kind == KILN_NODE_SCALAR &&
        !kiln_node_is_scalar(entry->value, KILN_SCALAR_NULL) &&
        !kiln_node_is_scalar(entry->value, KILN_SCALAR_MISSING)) {
        char where[512] = "";

        kiln_node_where(target->config, entry->value, entry->value, where, sizeof(where));
        return kiln_error_set(target->err, KILN_E_KEY,
                              "%s is there already (%s); to change it write %s, to set it whether "
                              "it is there or not ++%s",
                              override->key, where, override->assignment, override->assignment);
    }
    return put(target, entry, ret_add_defaults);
}

/* ---- Lists, and replacing ------------------------------------------------------------ */

static KilnStatus no_list(const Target *target, const KilnConfigNode *node)
{
    const KilnOverride *override = target->override;
    char where[512] = "";
    bool append = override->kind == KILN_OVERRIDE_APPEND;

    kiln_node_where(target->config, node, node, where, sizeof(where));
    if (node->kind == KILN_NODE_MAP)
        return kiln_error_set(target->err, KILN_E_TYPE,
                              "%s is a mapping, not a list (%s); to %s write %s%s.NAME%s",
                              override->key, where, append ? "add a key" : "delete a key",
                              append ? "+" : "~", override->key, append ? "=..." : "");
    return kiln_error_set(target->err, KILN_E_TYPE,
                          "%s is %s, not a list (%s); only lists can be appended to and removed "
                          "from",
                          override->key, kiln_node_kind_name(node), where);
}

static KilnStatus change_list(Target *target, KilnEntry *entry)
{
    const KilnOverride *override = target->override;
    const KilnConfigNode *node = entry->value;

    if (node->kind == KILN_NODE_MAP ||
        (node->kind == KILN_NODE_SCALAR && !kiln_node_is_scalar(node, KILN_SCALAR_NULL) &&
         !kiln_node_is_scalar(node, KILN_SCALAR_MISSING) &&
         !kiln_node_is_scalar(node, KILN_SCALAR_INTERPOLATION)))
        return no_list(target, node);
    return override->kind == KILN_OVERRIDE_APPEND
               ? kiln_list_append(target->config, target->parent, entry, override->value,
                                  target->err)
               : kiln_list_remove(target->config, target->parent, entry, override->value,
                                  target->err);
}

/* key+=value, key-=value, key:=value */
static KilnStatus change(Target *target, KilnEntry *entry, bool *ret_add_defaults)
{
    *ret_add_defaults = true;
    if (target->override->kind != KILN_OVERRIDE_REPLACE)
        return change_list(target, entry);
    if (entry->value->kind == KILN_NODE_SCALAR)
        return put(target, entry, ret_add_defaults);
    kiln_node_replace(entry, target->parent, target->override->value);
    return KILN_OK;
}

/* ---- Deleting ---------------------------------------------------------------------- */

static KilnStatus delete (Target *target, KilnEntry *entry)
{
    const KilnOverride *override = target->override;
    const KilnConfigNode *value = NULL;

    if (override->value != NULL) {
        KilnStatus status = kiln_config_resolve(target->config, entry->value, &value, target->err);

        if (status < 0)
            return status;
        if (!kiln_node_equal(value, override->value) &&
            !kiln_node_equal(entry->value, override->value))
            return kiln_error_set(target->err, KILN_E_KEY,
                                  "%s has another value (%s), so it is kept; ~%s deletes it "
                                  "whatever its value is",
                                  override->key,
                                  value->kind == KILN_NODE_SCALAR ? value->text
                                                                  : kiln_node_kind_name(value),
                                  override->key);
    }
    return kiln_entry_delete(target->config, target->parent, entry,
                             part_origin(target, target->part), NULL, target->err);
}

KilnStatus kiln_override_apply(KilnConfig *config, const KilnOverride *override,
                               bool *ret_add_defaults, KilnError *err)
{
    Target target = { .config = config, .override = override, .err = err };
    KilnEntry *entry = NULL;
    KilnStatus status;

    *ret_add_defaults = false;
    if (override->kind > KILN_OVERRIDE_DELETE &&
        (override->package != NULL || strchr(override->key, '/') != NULL))
        status = kiln_error_set(err, KILN_E_KEY,
                                "+=, -= and := change values, and '%s' is written like a group: "
                                "select an option with =, add a group with +GROUP=, delete it "
                                "with ~",
                                override->key);
    else if (override->package != NULL)
        status = kiln_error_set(err, KILN_E_KEY,
                                "'%s@%s' names a group, but there is no group '%s'", override->key,
                                override->package, override->key);
    else if (strchr(override->key, '/') != NULL)
        status = kiln_error_set(err, KILN_E_KEY,
                                "there is no group '%s' (searched %s); a key is written with dots",
                                override->key, kiln_search_describe(&config->search));
    else
        status = find_target(&target, &entry);
    if (status >= 0 && override->kind == KILN_OVERRIDE_DELETE)
        status = delete (&target, entry);
    else if (status >= 0)
        status = override->kind > KILN_OVERRIDE_DELETE ? change(&target, entry, ret_add_defaults)
                                                       : set(&target, entry, ret_add_defaults);
    if (override->kind == KILN_OVERRIDE_DELETE)
        *ret_add_defaults = true; /* an option falls back to its default */
    if (status >= 0)
        return status;
    KilnOrigin at = kiln_override_key_origin(override);
    if (err != NULL && err->origin.source != NULL)
        at = err->origin;
    return kiln_error_at(err, &at);
}

/* ---- When component defaults are added ---------------------------------------------------------
 */

bool kiln_override_may_add_keys(const KilnConfig *config, const KilnOverride *override)
{
    const char *dot = strrchr(override->key, '.');

    if (dot != NULL)
        return strcmp(dot + 1, "_target_") == 0;
    for (const KilnSection *s = config->sections; s != NULL && s->key != NULL; s++)
        for (const KilnField *f = s->fields;
             s->key[0] == '\0' && f != NULL && f->type != KILN_TYPE_END; f++)
            if (strcmp(f->name, override->key) == 0)
                return true;
    return strcmp(override->key, "_target_") == 0;
}

bool kiln_override_batches_with(const KilnConfig *config, const KilnOverride *override,
                                const KilnOverride *last)
{
    const char *dot = strrchr(override->key, '.');
    const size_t n = dot != NULL ? (size_t)(dot - override->key) + 1 : 0;

    if (override->kind != last->kind)
        return false;
    if (override->kind == KILN_OVERRIDE_APPEND)
        return strcmp(override->key, last->key) == 0;
    return (override->kind == KILN_OVERRIDE_ADD || override->kind == KILN_OVERRIDE_FORCE) &&
           strncmp(override->key, last->key, n) == 0 && strchr(last->key + n, '.') == NULL &&
           kiln_node_find(config->root, override->key) == NULL;
}
