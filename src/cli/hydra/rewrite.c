/* Rewrites the content of a file: classes become components, options get their names and values,
 * keys go where kiln has them. What has no counterpart becomes a comment. */
#include "cli/hydra/rewrite.h"

#include <string.h>

#include "base/array.h"
#include "config/yaml/yaml_writer.h"

void kiln_import_changed(KilnImportRewrite *rewrite, KilnOrigin origin, const char *what,
                         const char *format, ...)
{
    KilnImportChanges *changes = rewrite->changes;
    KilnText text = { 0 };
    va_list args;

    va_start(args, format);
    kiln_text_vprintf(&text, format, args);
    va_end(args);
    const char *copy = kiln_text_to_arena(&text, rewrite->arena);
    if (copy != NULL &&
        KILN_ARENA_RESERVE(rewrite->arena, changes->items, changes->capacity, changes->n + 1))
        changes->items[changes->n++] = (KilnImportChange) { origin, what, copy };
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static const char *key_text(KilnImportRewrite *rewrite, const KilnEntry *entry)
{
    const char *text = kiln_import_spelling(rewrite->file, entry->key_origin);
    KilnText other = { 0 };

    if (text != NULL && text[0] != '&')
        return text;
    kiln_write_string(&other, entry->key);
    return kiln_text_to_arena(&other, rewrite->arena);
}

static void set_comments(KilnImportRewrite *rewrite, KilnImportNode *node, const KilnEntry *entry)
{
    const KilnImportComments *comments = kiln_import_comments_of(rewrite->file, entry);

    if (comments == NULL || node == NULL || node->before != NULL || node->after != NULL)
        return;
    node->before = comments->before;
    node->after = comments->after;
    node->below = comments->below;
}

static KilnImportNode *add(KilnImportRewrite *rewrite, KilnImportNode *at, const char *key,
                           const KilnEntry *entry)
{
    KilnImportNode *node = kiln_import_node_add(rewrite->arena, at, key);

    rewrite->failed = rewrite->failed || node == NULL;
    set_comments(rewrite, node, entry);
    return node;
}

static const char *flow_text(KilnImportRewrite *rewrite, const KilnConfigNode *node,
                             const char *path)
{
    static const KilnImportOption same = { "", "", KILN_IMPORT_SAME, NULL, NULL };
    /* The entry is only for changes, of which there are none. */
    const KilnEntry entry = { .value = (KilnConfigNode *)node };

    return kiln_import_value(rewrite, &same, &entry, path);
}

/* The value as it was, with its comments. */
static void copy_value(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnConfigNode *value,
                       const char *path)
{
    if (at == NULL)
        return;
    if (!kiln_import_is_block(rewrite->file, value)) {
        at->text = flow_text(rewrite, value, path);
        return;
    }
    at->list = value->kind == KILN_NODE_LIST;
    for (size_t i = 0; i < value->count; i++) {
        const KilnEntry *entry = &value->entries[i];
        KilnImportNode *node = add(rewrite, at,
                                   entry->key != NULL ? key_text(rewrite, entry) : NULL, entry);

        copy_value(rewrite, node, entry->value,
                   kiln_import_path(rewrite->arena, path, entry->key, i));
    }
}

/* The entry as a comment. */
static KilnImportNode *leave_out(KilnImportRewrite *rewrite, KilnImportNode *at,
                                 const KilnEntry *entry, const char *path)
{
    KilnImportNode *node = add(rewrite, at, entry->key != NULL ? key_text(rewrite, entry) : NULL,
                               entry);

    rewrite->raw = true;
    copy_value(rewrite, node, entry->value, path);
    rewrite->raw = false;
    if (node != NULL)
        node->left_out = true;
    return node;
}

/* ---- Classes --------------------------------------------------------------------------------- */

static void put_value(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnConfigNode *value,
                      const char *path);
static void put_entry(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnEntry *entry,
                      const char *path);
static void put_map(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnConfigNode *map,
                    const char *path);

/* Whether something in the value is a class, or goes elsewhere. */
static bool is_touched(KilnImportRewrite *rewrite, const KilnConfigNode *value, const char *path)
{
    const KilnImportPlace *place = kiln_import_place_at(rewrite->places, rewrite->file, path, 0);

    if (value->kind == KILN_NODE_SCALAR)
        return false;
    if ((place != NULL && value->kind == KILN_NODE_MAP) ||
        kiln_node_get(value, "_target_") != NULL ||
        kiln_import_moved(rewrite->places, rewrite->arena, rewrite->file, path, true) != NULL)
        return true;
    for (size_t i = 0; i < value->count; i++)
        if (is_touched(rewrite, value->entries[i].value,
                       kiln_import_path(rewrite->arena, path, value->entries[i].key, i)))
            return true;
    return false;
}

/* The component's name in place of one that the user has to give. */
static void set_target(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnEntry *entry,
                       const char *target)
{
    KilnImportNode *node = kiln_import_node_get(at, "_target_");

    if (node == NULL) {
        node = kiln_import_node_put_first(rewrite->arena, at, "_target_");
        rewrite->failed = rewrite->failed || node == NULL;
    } else if (strcmp(target, "???") == 0) {
        return;
    }
    set_comments(rewrite, node, entry);
    if (node != NULL)
        node->text = target;
}

/* Whether the mapping has an option that becomes `to`. */
static bool sets(const KilnConfigNode *map, const KilnImportClass *type, const char *to, size_t n)
{
    for (size_t i = 0; i < map->count; i++) {
        const KilnImportOption *option = kiln_import_option_find(type, map->entries[i].key);

        if (option != NULL && option->to != NULL && strlen(option->to) == n &&
            strncmp(option->to, to, n) == 0)
            return true;
    }
    return false;
}

/* Options that follow from the class: "depth: 50, embed: {a: 1, b: 2}". */
static void put_extra(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnConfigNode *map,
                      const KilnImportClass *type)
{
    for (const char *extra = type->extra; extra != NULL && *extra != '\0';) {
        const size_t key = strcspn(extra, ":");
        const char *value = extra + key + 2, *end = value;

        for (int depth = 0; *end != '\0' && (*end != ',' || depth > 0); end++)
            depth += (*end == '{') - (*end == '}');
        if (!sets(map, type, extra, key)) {
            KilnImportNode *node = kiln_import_node_add(
                rewrite->arena, at, kiln_arena_strndup(rewrite->arena, extra, key));

            if (node != NULL)
                node->text = kiln_arena_strndup(rewrite->arena, value, (size_t)(end - value));
        }
        extra = *end == ',' ? end + 2 : end;
    }
}

/* The options of a class are those of another mapping: Compose, or a loader's data set. */
static const KilnEntry *inside_of(const KilnConfigNode *map, const KilnImportClass *type)
{
    for (size_t i = 0; i < map->count; i++) {
        const KilnImportOption *option = kiln_import_option_find(type, map->entries[i].key);

        if (option != NULL && option->rule == KILN_IMPORT_INSIDE)
            return &map->entries[i];
    }
    return NULL;
}

static void put_params(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnEntry *params,
                       const char *path)
{
    KilnImportNode *node = add(rewrite, at, "params", params);

    if (node == NULL)
        return;
    for (size_t i = 0; i < params->value->count; i++) {
        const KilnEntry *entry = &params->value->entries[i];
        const char *key = kiln_import_key(rewrite, entry->key);

        if (key != NULL) {
            KilnImportNode *param = add(rewrite, node, key, entry);

            copy_value(rewrite, param, entry->value, path);
        } else {
            leave_out(rewrite, node, entry, path);
            kiln_import_changed(rewrite, entry->key_origin, entry->key,
                                "left out: it belongs to code that has no counterpart");
        }
    }
}

/* The component of Lightning's {scheduler: ..., interval: ...}; "": it is not known. */
static const char *component_inside(const KilnConfigNode *map)
{
    const KilnConfigNode *inside = kiln_node_get(map, "scheduler");
    const char *target = inside != NULL ? kiln_node_text(inside, "_target_") : NULL;
    const KilnImportClass *type = target != NULL ? kiln_import_class_find(target) : NULL;

    return type != NULL && type->component != NULL ? type->component : "";
}

static void put_option(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnConfigNode *map,
                       const KilnEntry *entry, const KilnImportOption *option, const char *path)
{
    const bool touched = is_touched(rewrite, entry->value, path);
    KilnImportNode *node;
    const char *text;

    if (option->rule == KILN_IMPORT_PARAMS) {
        put_params(rewrite, at, entry, path);
        return;
    }
    if (kiln_import_moved(rewrite->places, rewrite->arena, rewrite->file, path, true) != NULL) {
        put_entry(rewrite, at, entry, path);
        return;
    }
    if (option->rule == KILN_IMPORT_INSIDE) {
        if (entry->value->kind == KILN_NODE_MAP)
            put_map(rewrite, at, entry->value, path);
        else
            put_value(rewrite, at, entry->value, path);
        return;
    }
    if ((option->rule == KILN_IMPORT_SAME || option->rule == KILN_IMPORT_METRIC) &&
        option->arg != NULL && !kiln_import_lists(option->arg, component_inside(map))) {
        leave_out(rewrite, at, entry, path);
        return;
    }
    if (touched && (option->rule == KILN_IMPORT_ABSENT || option->rule == KILN_IMPORT_NEEDLESS)) {
        put_value(rewrite, at, entry->value, path); /* classes in it may go elsewhere */
        return;
    }
    if (touched && option->rule == KILN_IMPORT_SAME) {
        node = add(rewrite, at, option->to, entry);
        if (node != NULL)
            put_value(rewrite, node, entry->value, path);
        return;
    }
    text = kiln_import_value(rewrite, option, entry, path);
    if (text == NULL) {
        leave_out(rewrite, at, entry, path);
        return;
    }
    KilnImportNode *parent = at;
    const char *dot = strrchr(option->to, '.');
    if (dot != NULL)
        parent = kiln_import_node_make(
            rewrite->arena, at,
            kiln_arena_strndup(rewrite->arena, option->to, (size_t)(dot - option->to)));
    node = add(rewrite, parent, dot != NULL ? dot + 1 : option->to, entry);
    if (node != NULL)
        node->text = text;
    if (option->rule == KILN_IMPORT_SHORTER && entry->value->kind == KILN_NODE_SCALAR) {
        node = kiln_import_node_add(rewrite->arena, at, "keep_ratio");
        if (node != NULL)
            node->text = "true";
    }
}

/* The option in the table of one of the classes that may be there. */
static const KilnImportOption *find_option(KilnImportRewrite *rewrite, const char *path,
                                           const char *name, bool *ret_own)
{
    const KilnImportPlace *place;

    *ret_own = false;
    for (size_t i = 0;
         (place = kiln_import_place_at(rewrite->places, rewrite->file, path, i)) != NULL; i++) {
        const KilnImportClass *type = place->type;

        if (type == NULL && place->kind == KILN_IMPORT_DATA)
            type = &kiln_import_own_data;
        if (type == NULL && place->kind == KILN_IMPORT_TASK)
            type = &kiln_import_own_task;
        const KilnImportOption *option = type != NULL ? kiln_import_option_find(type, name) : NULL;
        if (option != NULL)
            return option;
        *ret_own = *ret_own || place->type == NULL || place->type->component == NULL;
    }
    return NULL;
}

/* A key of a mapping that is, or may be, a class. */
static void put_keyword(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnConfigNode *map,
                        const KilnEntry *entry, const char *path)
{
    static const char hydra[] = "_partial_ _convert_ _recursive_";
    const char *child = kiln_import_path(rewrite->arena, path, entry->key, 0);
    bool own;
    const KilnImportOption *option = find_option(rewrite, path, entry->key, &own);

    if (child == NULL || kiln_import_lists(hydra, entry->key))
        return;
    if (option != NULL) {
        put_option(rewrite, at, map, entry, option, child);
    } else if (is_touched(rewrite, entry->value, child) || path[0] == '\0') {
        put_entry(rewrite, at, entry, child);
    } else {
        leave_out(rewrite, at, entry, child);
        if (!own)
            kiln_import_changed(rewrite, entry->key_origin, entry->key,
                                strcmp(entry->key, "_args_") == 0
                                    ? "left out: give the arguments their names"
                                    : "left out: kiln's component has no such option");
    }
}

/* The comments above a key that is gone. */
static void keep_comments(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnEntry *entry)
{
    const KilnImportComments *comments = kiln_import_comments_of(rewrite->file, entry);

    if (comments == NULL || comments->before == NULL || at->first != NULL)
        return;
    KilnImportNode *node = kiln_import_node_add(rewrite->arena, at, NULL);
    if (node != NULL) {
        node->before = comments->before;
        node->left_out = true;
    }
}

/* The component of a mapping with _target_, or what stands in for it. */
static void put_target(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnConfigNode *map,
                       const KilnImportPlace *place)
{
    const KilnEntry *entry = kiln_node_get(map, "_target_") != NULL ? map->entries : NULL;
    const char *stand_in;

    while (entry != NULL && strcmp(entry->key, "_target_") != 0)
        entry++;
    if (entry == NULL)
        return;
    if (place->type != NULL && place->type->component != NULL) {
        set_target(rewrite, at, entry, place->type->component);
        put_extra(rewrite, at, map, place->type);
        return;
    }
    if (place->type != NULL &&
        (place->kind == KILN_IMPORT_TRAINER || place->kind == KILN_IMPORT_WRAPPER ||
         (place->kind == KILN_IMPORT_DATA && inside_of(map, place->type) != NULL))) {
        keep_comments(rewrite, at, entry);
        return;
    }
    if (kiln_import_gap(place->kind, &stand_in) == KILN_IMPORT_STAND_IN)
        set_target(rewrite, at, entry, place->kind == KILN_IMPORT_TASK ? rewrite->task : stand_in);
}

static void put_map(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnConfigNode *map,
                    const char *path)
{
    const KilnImportPlace *place = kiln_import_place_at(rewrite->places, rewrite->file, path, 0);

    if (at == NULL || path == NULL)
        return;
    if (place != NULL && place->file == rewrite->file)
        put_target(rewrite, at, map, place);
    for (size_t i = 0; i < map->count; i++) {
        const KilnEntry *entry = &map->entries[i];

        if (map == rewrite->file->root && strcmp(entry->key, "defaults") == 0)
            continue;
        if (strcmp(entry->key, "_target_") == 0 && place != NULL)
            continue;
        if (place != NULL)
            put_keyword(rewrite, at, map, entry, path);
        else
            put_entry(rewrite, at, entry, kiln_import_path(rewrite->arena, path, entry->key, 0));
    }
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* A class without a counterpart that becomes a comment, with null in its place or nothing. */
static bool is_gone(const KilnImportRewrite *rewrite, const KilnConfigNode *value, const char *path,
                    KilnImportGap *ret_gap)
{
    const KilnImportPlace *place = kiln_import_place_at(rewrite->places, rewrite->file, path, 0);
    const char *stand_in;

    if (place == NULL || value->kind != KILN_NODE_MAP || place->target == NULL)
        return false;
    *ret_gap = place->second ? KILN_IMPORT_LEFT_OUT : kiln_import_gap(place->kind, &stand_in);
    if (place->second)
        return true;
    if (place->type != NULL &&
        (place->type->component != NULL || place->kind == KILN_IMPORT_WRAPPER ||
         place->kind == KILN_IMPORT_TRAINER))
        return false;
    return *ret_gap != KILN_IMPORT_STAND_IN;
}

/* An item of a list: where a class of it goes, if it has a place of its own. */
static void put_item(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnEntry *entry,
                     const char *path)
{
    const char *to = kiln_import_moved(rewrite->places, rewrite->arena, rewrite->file, path, true);
    KilnImportGap gap;

    if (is_gone(rewrite, entry->value, path, &gap)) {
        leave_out(rewrite, at, entry, path);
    } else if (to != NULL) {
        put_map(rewrite, kiln_import_node_make(rewrite->arena, &rewrite->root, to), entry->value,
                path);
    } else {
        KilnImportNode *node = add(rewrite, at, NULL, entry);

        if (node != NULL)
            put_value(rewrite, node, entry->value, path);
    }
}

static void put_value(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnConfigNode *value,
                      const char *path)
{
    const KilnImportPlace *place = kiln_import_place_at(rewrite->places, rewrite->file, path, 0);

    if (at == NULL || path == NULL)
        return;
    if (!kiln_import_is_block(rewrite->file, value) && !is_touched(rewrite, value, path)) {
        at->text = flow_text(rewrite, value, path);
        return;
    }
    if (value->kind == KILN_NODE_MAP) {
        const KilnEntry *inside = place != NULL && place->kind == KILN_IMPORT_WRAPPER
                                      ? inside_of(value, place->type)
                                      : NULL;

        if (inside != NULL && inside->value->kind == KILN_NODE_LIST)
            put_value(rewrite, at, inside->value,
                      kiln_import_path(rewrite->arena, path, inside->key, 0));
        else
            put_map(rewrite, at, value, path);
        return;
    }
    at->list = true;
    for (size_t i = 0; i < value->count; i++)
        put_item(rewrite, at, &value->entries[i], kiln_import_path(rewrite->arena, path, NULL, i));
}

/* null in place of the class, and what it was below it. */
static void put_null(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnEntry *entry,
                     const char *to, const char *path)
{
    const char *dot = strrchr(to, '.');
    const char *above = kiln_arena_strndup(rewrite->arena, to,
                                           dot != NULL ? (size_t)(dot - to) : 0);
    KilnImportNode *parent = kiln_import_node_make(rewrite->arena, &rewrite->root, above);
    KilnImportNode *node = add(rewrite, parent, dot != NULL ? dot + 1 : to, NULL);
    KilnImportNode copy = { 0 };
    KilnText text = { 0 };

    (void)at;
    if (node == NULL)
        return;
    set_comments(rewrite, node, entry);
    rewrite->raw = true;
    copy_value(rewrite, &copy, entry->value, path);
    rewrite->raw = false;
    copy.left_out = true;
    for (KilnImportNode *child = copy.first; child != NULL; child = child->next)
        child->left_out = true;
    kiln_import_node_write(&text, &copy, 2);
    node->below = kiln_text_to_arena(&text, rewrite->arena);
    node->text = "null";
}

static void put_entry(KilnImportRewrite *rewrite, KilnImportNode *at, const KilnEntry *entry,
                      const char *path)
{
    const char *to;
    KilnImportNode *node;
    KilnImportGap gap;

    if (path == NULL)
        return;
    to = kiln_import_moved(rewrite->places, rewrite->arena, rewrite->file, path, true);
    if (is_gone(rewrite, entry->value, path, &gap)) {
        if (gap == KILN_IMPORT_NULL)
            put_null(rewrite, at, entry, to != NULL ? to : path, path);
        else
            leave_out(rewrite, at, entry, path);
        return;
    }
    if (to != NULL) {
        node = kiln_import_node_make(rewrite->arena, &rewrite->root, to);
        set_comments(rewrite, node, entry);
    } else {
        node = kiln_import_node_get(at, entry->key);
        if (node == NULL)
            node = add(rewrite, at, key_text(rewrite, entry), entry);
    }
    put_value(rewrite, node, entry->value, path);
}

KilnStatus kiln_import_rewrite(KilnImportRewrite *rewrite, KilnError *err)
{
    const KilnImportFile *file = rewrite->file;
    const char *to = kiln_import_moved(rewrite->places, rewrite->arena, file, file->package, false);
    const KilnImportComments *foot = kiln_import_comments_of(file, NULL);
    KilnImportNode *at = kiln_import_node_make(rewrite->arena, &rewrite->root, to);

    if (file->root != NULL) {
        KilnImportGap gap;
        const KilnEntry whole = { .value = file->root };

        if (is_gone(rewrite, file->root, file->package, &gap))
            put_null(rewrite, at, &whole, to, file->package);
        else
            put_map(rewrite, at, file->root, file->package);
    }
    if (foot != NULL && foot->before != NULL) {
        KilnImportNode *node = at != NULL && at->last != NULL ? at->last : at;

        if (node != NULL)
            node->below = kiln_arena_printf(rewrite->arena, "%s%s",
                                            node->below != NULL ? node->below : "", foot->before);
    }
    return rewrite->failed || rewrite->arena->failed ? kiln_error_nomem(err, 0) : KILN_OK;
}
