/* Checks one subtree against its options table and reports all that is wrong. */
#include "schema/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/interpolate.h"
#include "schema/table.h"
#include "schema/value.h"

void kiln_check_report(const KilnCheck *check, const char *path, const KilnConfigNode *written,
                       const KilnConfigNode *value, const KilnError *err)
{
    KilnError whole = *err;

    if (value != NULL || err->origin.source == NULL)
        kiln_error_about(check->config, written, value, &whole);
    kiln_error_placed(&whole, path);
    check->report(check->ctx, written, &whole);
}

static void out_of_memory(const KilnCheck *check, const KilnConfigNode *at)
{
    KilnError err;

    kiln_error_nomem(&err, 0);
    check->report(check->ctx, at, &err);
}

/* "PARENT.KEY", "KEY" at the root, or "PARENT[I]" without a key; owned by the caller. */
static char *path_join(const char *parent, const char *key, size_t i)
{
    KilnText text = { 0 };

    if (key != NULL)
        kiln_text_printf(&text, "%s%s%s", parent, parent[0] != '\0' ? "." : "", key);
    else
        kiln_text_printf(&text, "%s[%zu]", parent, i);
    return kiln_text_take(&text);
}

static void unknown_key(const KilnCheck *check, const KilnEntry *entry, const char *path,
                        const char *owner, const KilnField *fields)
{
    const char *names[KILN_MAX_FIELDS], *near;
    size_t n = kiln_table_count(fields);
    KilnText text = { 0 };
    KilnError err;

    for (size_t i = 0; i < n; i++)
        names[i] = fields[i].name;
    near = kiln_nearest(entry->key, names, n);
    kiln_text_printf(&text, "unknown option of %s", owner);
    if (near != NULL)
        kiln_text_printf(&text, "; did you mean \"%s\"?", near);
    kiln_text_append(&text, n > 0 ? "\n  its options: " : "; it has no options");
    for (size_t i = 0; i < n; i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "", names[i]);
    if (text.failed) {
        out_of_memory(check, entry->value);
    } else {
        kiln_error_set(&err, KILN_E_KEY, "%s", text.data);
        err.origin = entry->key_origin;
        kiln_check_report(check, path, entry->value, NULL, &err);
    }
    kiln_text_release(&text);
}

/* True when the node stands for no component, which is reported if it may not. */
static bool no_component(const KilnCheck *check, const KilnField *field, const char *path,
                         const KilnConfigNode *written, const KilnConfigNode *value)
{
    KilnError err = { 0 };
    KilnValue ignored;

    if (value->kind == KILN_NODE_MAP ||
        (value->kind == KILN_NODE_SCALAR && value->scalar == KILN_SCALAR_STR))
        return false;
    bool null = value->kind == KILN_NODE_SCALAR && value->scalar == KILN_SCALAR_NULL;
    if (null && (field->optional || field->shape == KILN_MAP))
        return true;
    if (kiln_value_read(field, value, &ignored, &err) < 0)
        kiln_check_report(check, path, written, value, &err);
    return true;
}

/* True when a node that does not resolve takes its fault from another node of
 * the tree. */
static bool inherits_fault(const KilnConfig *config, const KilnConfigNode *written)
{
    const KilnConfigNode *root = kiln_config_root(config), *target, *top;

    target = kiln_interpolation_target(config, written);
    if (target == NULL || target == written || target->kind != KILN_NODE_SCALAR ||
        target->scalar != KILN_SCALAR_INTERPOLATION)
        return false;
    /* In a circle all are at fault. */
    const KilnConfigNode *hop = target;
    for (int i = 0; hop != NULL && i < KILN_INTERPOLATION_DEPTH; i++) {
        if (hop == written)
            return false;
        hop = kiln_interpolation_target(config, hop);
    }
    for (top = target; top->parent != NULL; top = top->parent)
        ;
    return hop == NULL && top == root;
}

void kiln_check_unresolved(const KilnCheck *check, const KilnConfigNode *written,
                           const KilnError *err)
{
    if (!inherits_fault(check->config, written))
        check->report(check->ctx, written, err);
}

/* One value, or one item of a list or mapping of them. */
static void check_one(const KilnCheck *check, const KilnField *field, const char *path,
                      const KilnConfigNode *written)
{
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };
    KilnValue ignored;

    if (kiln_config_resolve(check->config, written, &value, &err) < 0) {
        kiln_check_unresolved(check, written, &err);
    } else if (value == NULL) {
        kiln_error_set(&err, KILN_E_MISSING, "there is no such value");
        kiln_check_report(check, path, written, written, &err);
    } else if (field->type == KILN_TYPE_COMPONENT) {
        if (!no_component(check, field, path, written, value))
            check->component(check->ctx, field, path, written);
    } else if (kiln_value_read(field, value, &ignored, &err) < 0) {
        kiln_check_report(check, path, written, value, &err);
    }
}

static void expected_many(const KilnCheck *check, const KilnField *field, const char *path,
                          const KilnConfigNode *written, const KilnConfigNode *value)
{
    static const char *const of[] = { [KILN_TYPE_I64] = "integers",
                                      [KILN_TYPE_F64] = "numbers",
                                      [KILN_TYPE_STR] = "texts",
                                      [KILN_TYPE_COMPONENT] = NULL };
    const char *what = field->shape == KILN_MAP ? "a mapping" : "a list";
    char got[KILN_GOT_TEXT];
    KilnError err;

    kiln_value_got(value, got, sizeof(got));
    if (value->kind == KILN_NODE_SCALAR && value->scalar == KILN_SCALAR_MISSING)
        kiln_error_set(&err, KILN_E_MISSING, "required value missing (%s)", field->help);
    else if (field->type == KILN_TYPE_COMPONENT)
        kiln_error_set(&err, KILN_E_TYPE, "expected %s of %ss, got %s", what,
                       kiln_kind_name(field->component_kind), got);
    else
        kiln_error_set(&err, KILN_E_TYPE, "expected %s of %s, got %s", what, of[field->type], got);
    kiln_check_report(check, path, written, value, &err);
}

static void check_many(const KilnCheck *check, const KilnField *field, const char *path,
                       const KilnConfigNode *written)
{
    KilnNodeKind kind = field->shape == KILN_MAP ? KILN_NODE_MAP : KILN_NODE_LIST;
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };

    if (kiln_config_resolve(check->config, written, &value, &err) < 0) {
        kiln_check_unresolved(check, written, &err);
        return;
    }
    if (value == NULL)
        value = written;
    /* `callbacks: null` means none of them. */
    if (field->shape == KILN_MAP && value->kind == KILN_NODE_SCALAR &&
        value->scalar == KILN_SCALAR_NULL)
        return;
    if (value->kind != kind) {
        expected_many(check, field, path, written, value);
        return;
    }
    for (size_t i = 0; i < value->count; i++) {
        char *item = path_join(path, value->entries[i].key, i);

        if (item == NULL) {
            out_of_memory(check, written);
            return;
        }
        check_one(check, field, item, value->entries[i].value);
        free(item);
    }
}

static void check_entry(const KilnCheck *check, const KilnEntry *entry, const char *parent,
                        const char *owner, const KilnField *fields, bool open)
{
    const KilnField *field = kiln_table_find(fields, entry->key);
    char *path = path_join(parent, entry->key, 0);

    if (path == NULL)
        out_of_memory(check, entry->value);
    else if (field == NULL && !open)
        unknown_key(check, entry, path, owner, fields);
    else if (field != NULL && field->shape == KILN_ONE)
        check_one(check, field, path, entry->value);
    else if (field != NULL)
        check_many(check, field, path, entry->value);
    free(path);
}

static void missing(const KilnCheck *check, const KilnConfigNode *map, const char *parent,
                    const KilnField *field)
{
    char *path = path_join(parent, field->name, 0);
    KilnError err;

    if (path == NULL) {
        out_of_memory(check, map);
        return;
    }
    kiln_error_set(&err, KILN_E_MISSING, "required value missing (%s)", field->help);
    kiln_check_report(check, path, map, map, &err);
    free(path);
}

void kiln_check_table(const KilnCheck *check, const KilnConfigNode *map, const char *path,
                      const char *owner, const KilnField *fields, bool open, bool target)
{
    for (size_t i = 0; map != NULL && i < map->count; i++)
        if (!target || strcmp(map->entries[i].key, KILN_TARGET_KEY) != 0)
            check_entry(check, &map->entries[i], path, owner, fields, open);
    for (size_t i = 0; i < kiln_table_count(fields); i++)
        if (fields[i].value == NULL && (map == NULL || kiln_node_get(map, fields[i].name) == NULL))
            missing(check, map, path, &fields[i]);
}
