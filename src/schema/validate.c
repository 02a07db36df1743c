/* Checks one subtree against its options table and reports all that is wrong. */
#include "schema/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/interpolate/interpolate.h"
#include "schema/table.h"
#include "schema/field_value.h"

/* ---- Reports ---------------------------------------------------------------------- */

void kiln_check_report(const KilnCheck *check, const char *path, const KilnConfigNode *written,
                       const KilnConfigNode *value, const KilnError *err)
{
    KilnError whole = *err;

    if (value != NULL || err->origin.source == NULL)
        kiln_error_about(check->config, written, value, &whole);
    kiln_error_placed(&whole, path);
    check->report(check->ctx, &whole);
}

static void out_of_memory(const KilnCheck *check)
{
    KilnError err;

    kiln_error_nomem(&err, 0);
    check->report(check->ctx, &err);
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

/* A table, and the mapping that is checked against it. */
typedef struct Place {
    const KilnConfigNode *map; /* NULL: nothing but defaults */
    const char *path, *owner;
    const KilnField *fields;
    const KilnConfigNode *via; /* the reference through which the mapping came; NULL: none */
} Place;

static void check_place(const KilnCheck *check, const Place *place, bool open, bool target);

static void say_options(KilnText *text, const KilnField *fields)
{
    const char *separator = "\n  its options: ";

    for (size_t i = 0; i < kiln_table_count(fields); i++)
        if (fields[i].renamed == NULL) {
            kiln_text_printf(text, "%s%s", separator, fields[i].name);
            separator = ", ";
        }
}

/* `trainer:` in conf/trainer/x.yaml, whose keys go to `trainer` anyway? */
static bool is_doubled(const char *path, const char *key)
{
    const char *dot = strrchr(path, '.');

    return strcmp(dot != NULL ? dot + 1 : path, key) == 0;
}

static void say_unknown(const KilnCheck *check, const char *key, const Place *place, KilnText *text)
{
    const KilnField *former = kiln_table_renamed(place->fields, key);
    const char *near = kiln_table_nearest(place->fields, key), *other = NULL;

    if (former != NULL) {
        kiln_text_printf(text, "it is now \"%s\": %s", former->renamed, former->help);
        return;
    }
    kiln_text_printf(text, "unknown option of %s", place->owner);
    if (is_doubled(place->path, key))
        kiln_text_printf(text,
                         "; the keys of this mapping are below `%s` already: leave the inner "
                         "`%s:` out",
                         place->path, key);
    else if (near != NULL)
        kiln_text_printf(text, "; did you mean \"%s\"?", near);
    else if (check->elsewhere != NULL)
        other = check->elsewhere(check->ctx, place->path, key);
    if (other != NULL)
        kiln_text_printf(text, "; did you mean %s?", other);
    if (kiln_table_count(place->fields) == 0)
        kiln_text_append(text, "; it has no options");
    say_options(text, place->fields);
}

/* Report what is wrong with a value, and through which references it came. */
static void report_value(const KilnCheck *check, const char *path, const Place *place,
                         const KilnConfigNode *written, const KilnConfigNode *value,
                         const KilnError *err)
{
    KilnError whole = *err;

    if (place->via != NULL && written != value)
        kiln_error_about(check->config, written, value, &whole);
    if (place->via != NULL)
        written = place->via;
    kiln_error_about(check->config, written, value, &whole);
    kiln_check_report(check, path, written, NULL, &whole);
}

static void unknown_key(const KilnCheck *check, const KilnEntry *entry, const char *path,
                        const Place *place)
{
    KilnText text = { 0 };
    KilnError err;

    say_unknown(check, entry->key, place, &text);
    if (text.failed) {
        out_of_memory(check);
    } else {
        kiln_error_set(&err, KILN_E_KEY, "%s", text.data);
        if (place->via != NULL)
            kiln_error_about(check->config, place->via, entry->value, &err);
        err.origin = entry->key_origin;
        kiln_check_report(check, path, entry->value, NULL, &err);
    }
    kiln_text_release(&text);
}

/* ---- Values ----------------------------------------------------------------------- */

/* True when the node stands for no component, which is reported if it may not. */
static bool no_component(const KilnCheck *check, const KilnField *field, const char *path,
                         const Place *place, const KilnConfigNode *written,
                         const KilnConfigNode *value)
{
    KilnError err = { 0 };
    KilnValue ignored;

    if (value->kind == KILN_NODE_MAP ||
        (value->kind == KILN_NODE_SCALAR && value->scalar == KILN_SCALAR_STR))
        return false;
    bool null = value->kind == KILN_NODE_SCALAR && value->scalar == KILN_SCALAR_NULL;
    if (!(null && field->optional) && kiln_value_read(field, value, &ignored, &err) < 0)
        report_value(check, path, place, written, value, &err);
    return true;
}

/* True when a node that does not resolve takes its fault from another node of
 * the tree. */
static bool inherits_fault(const KilnConfig *config, const KilnConfigNode *written)
{
    const KilnConfigNode *root = kiln_config_root(config), *target, *top, *value;

    target = kiln_interpolation_target(config, written);
    if (target == NULL || target == written || target->kind != KILN_NODE_SCALAR ||
        target->scalar != KILN_SCALAR_INTERPOLATION ||
        kiln_config_resolve(config, target, &value, NULL) >= 0)
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
    check->report(check->ctx, inherits_fault(check->config, written) ? NULL : err);
}

/* A nested mapping of options. */
static void check_struct(const KilnCheck *check, const KilnField *field, const char *path,
                         const Place *around, const KilnConfigNode *written,
                         const KilnConfigNode *map)
{
    const KilnConfigNode *via = written != map ? written : around->via;
    KilnText name = { 0 };

    kiln_text_printf(&name, "%s of %s", field->name, around->owner);
    if (name.failed) {
        out_of_memory(check);
    } else {
        const Place place = { map, path, name.data, field->fields, via };
        check_place(check, &place, false, false);
    }
    kiln_text_release(&name);
}

static bool is_null(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_NULL;
}

/* `value` is resolved: one value, or one item of a list or mapping. */
static void check_one(const KilnCheck *check, const KilnField *field, const char *path,
                      const Place *place, const KilnConfigNode *written,
                      const KilnConfigNode *value)
{
    KilnError err = { 0 };
    KilnValue ignored;

    if (field->type == KILN_TYPE_COMPONENT) {
        if (!no_component(check, field, path, place, written, value))
            check->component(check->ctx, field, path, written);
    } else if (field->type == KILN_TYPE_STRUCT && value->kind == KILN_NODE_MAP) {
        check_struct(check, field, path, place, written, value);
    } else if (kiln_value_read(field, value, &ignored, &err) < 0) {
        report_value(check, path, place, written, value, &err);
    } else if (field->writes && check->output != NULL) {
        check->output(check->ctx, path, written, value);
    }
}

static void expected_many(const KilnCheck *check, const KilnField *field, const char *path,
                          const Place *place, const KilnConfigNode *written,
                          const KilnConfigNode *value)
{
    KilnText text = { 0 };
    char got[KILN_GOT_TEXT];
    KilnError err;

    kiln_value_expected_many(&text, field);
    kiln_value_got(value, got, sizeof(got));
    if (value->kind == KILN_NODE_SCALAR && value->scalar == KILN_SCALAR_MISSING)
        kiln_error_set(&err, KILN_E_MISSING, "required value missing (%s)", field->help);
    else
        kiln_error_set(&err, KILN_E_TYPE, "expected %s, got %s", text.data != NULL ? text.data : "",
                       got);
    report_value(check, path, place, written, value, &err);
    kiln_text_release(&text);
}

/* What stands at an option, as written; false: it does not resolve, which was told. */
static bool resolve(const KilnCheck *check, const char *path, const KilnConfigNode *written,
                    const KilnConfigNode **ret)
{
    KilnError err = { 0 };

    *ret = NULL;
    if (kiln_config_resolve(check->config, written, ret, &err) < 0) {
        kiln_check_unresolved(check, written, &err);
    } else if (*ret == NULL) {
        kiln_error_set(&err, KILN_E_MISSING, "there is no such value");
        kiln_check_report(check, path, written, written, &err);
    }
    return *ret != NULL;
}

static void check_items(const KilnCheck *check, const KilnField *field, const char *path,
                        const Place *place, const KilnConfigNode *written,
                        const KilnConfigNode *many)
{
    const KilnConfigNode *via = written != many ? written : place->via;
    const Place items = { many, path, place->owner, place->fields, via };
    const KilnField item = kiln_field_item(field);
    const KilnConfigNode *value;

    for (size_t i = 0; i < many->count; i++) {
        const KilnEntry *entry = &many->entries[i];
        char *key = path_join(path, entry->key, i);

        if (key == NULL)
            out_of_memory(check);
        else if (resolve(check, key, entry->value, &value))
            check_one(check, &item, key, &items, entry->value, value);
        free(key);
    }
}

static void check_option(const KilnCheck *check, const KilnField *field, const char *path,
                         const Place *place, const KilnConfigNode *written)
{
    /* `callbacks: null` means none of them. */
    bool nullable = field->optional ||
                    (field->shape == KILN_MAP && field->type == KILN_TYPE_COMPONENT);
    const KilnConfigNode *value;

    if (!resolve(check, path, written, &value) || (nullable && is_null(value)))
        return;
    if (field->shape == KILN_ONE)
        check_one(check, field, path, place, written, value);
    else if (value->kind == (field->shape == KILN_MAP ? KILN_NODE_MAP : KILN_NODE_LIST))
        check_items(check, field, path, place, written, value);
    else
        expected_many(check, field, path, place, written, value);
}

/* ---- Tables ----------------------------------------------------------------------- */

static void check_entry(const KilnCheck *check, const KilnEntry *entry, const Place *place,
                        bool open)
{
    const KilnField *field = kiln_table_find(place->fields, entry->key);
    char *path = path_join(place->path, entry->key, 0);

    if (path == NULL)
        out_of_memory(check);
    else if (field != NULL)
        check_option(check, field, path, place, entry->value);
    else if (!open || kiln_table_renamed(place->fields, entry->key) != NULL)
        unknown_key(check, entry, path, place);
    free(path);
}

/* What is missing at the root usually comes by the defaults list: is its key misspelled? */
static void say_defaults(const KilnConfigNode *root, KilnError *err)
{
    static const char *const name[] = { "defaults" };

    for (size_t i = 0; i < root->count; i++) {
        const KilnEntry *entry = &root->entries[i];
        KilnError before = *err;

        if (entry->value->kind != KILN_NODE_LIST || kiln_nearest(entry->key, name, 1) == NULL)
            continue;
        kiln_error_set(err, before.status, "%s; is '%s' meant to be 'defaults'?", before.text,
                       entry->key);
        err->origin = entry->key_origin;
        return;
    }
}

/* An option that is not written, where no defaults were laid below what is. */
static void check_absent(const KilnCheck *check, const KilnField *field, const Place *place)
{
    char *path = path_join(place->path, field->name, 0);
    KilnError err;

    if (path == NULL) {
        out_of_memory(check);
    } else if (field->value == NULL) {
        kiln_error_set(&err, KILN_E_MISSING, "required value missing (%s)", field->help);
        if (place->path[0] == '\0' && place->map != NULL)
            say_defaults(place->map, &err);
        report_value(check, path, place, place->map, place->map, &err);
    } else if (field->type == KILN_TYPE_STRUCT && field->shape == KILN_ONE && !field->optional) {
        /* Its own options may be required. */
        const Place nested = { place->map, path, place->owner, field->fields, place->via };
        for (size_t i = 0; i < kiln_table_count(field->fields); i++)
            if (field->fields[i].renamed == NULL)
                check_absent(check, &field->fields[i], &nested);
    }
    free(path);
}

static void check_place(const KilnCheck *check, const Place *place, bool open, bool target)
{
    const KilnConfigNode *map = place->map;

    for (size_t i = 0; map != NULL && i < map->count; i++)
        if (!target || strcmp(map->entries[i].key, KILN_TARGET_KEY) != 0)
            check_entry(check, &map->entries[i], place, open);
    for (size_t i = 0; i < kiln_table_count(place->fields); i++)
        if (place->fields[i].renamed == NULL && kiln_node_get(map, place->fields[i].name) == NULL)
            check_absent(check, &place->fields[i], place);
}

void kiln_check_table(const KilnCheck *check, const KilnConfigNode *map, const char *path,
                      const char *owner, const KilnField *fields, bool open, bool target)
{
    const Place place = { map, path, owner, fields, NULL };

    check_place(check, &place, open, target);
}
