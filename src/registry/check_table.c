/* Checks one mapping against its options table and reports everything that is wrong. */
#include <string.h>

#include "config/interpolate/interpolate.h"
#include "config/provenance/error_origin.h"
#include "registry/check.h"
#include "schema/field_value.h"
#include "schema/table.h"

/* A mapping and the table that it is checked against. */
typedef struct Scope {
    const KilnConfigNode *map; /* NULL: only defaults */
    const char *owner;         /* of the table, for messages */
    const KilnField *fields;
    const KilnConfigNode *via; /* the reference through which the mapping came; NULL: none */
} Scope;

static void check_scope(KilnCheck *check, const Scope *scope, bool open, bool target);

/* ---- Reports ---------------------------------------------------------------------- */

void kiln_check_report(KilnCheck *check, const char *key, const KilnConfigNode *written,
                       const KilnConfigNode *value, const KilnError *err)
{
    KilnError whole = *err;

    if (key == NULL)
        key = check->key.data != NULL ? check->key.data : "";
    if (value != NULL || err->origin.source == NULL)
        kiln_error_about(check->config, written, value, &whole);
    kiln_error_placed(&whole, key);
    kiln_check_add(check, &whole);
}

/* True when a node that does not resolve inherits the error of another node in the tree. */
static bool inherits_fault(const KilnConfig *config, const KilnConfigNode *written)
{
    const KilnConfigNode *target = kiln_interpolation_target(config, written), *top, *value;

    if (target == NULL || target == written || target->kind != KILN_NODE_SCALAR ||
        target->scalar != KILN_SCALAR_INTERPOLATION ||
        kiln_config_resolve(config, target, &value, NULL) >= 0)
        return false;
    /* In a cycle every node is at fault. */
    const KilnConfigNode *hop = target;
    for (int i = 0; hop != NULL && i < KILN_INTERPOLATION_DEPTH; i++) {
        if (hop == written)
            return false;
        hop = kiln_interpolation_target(config, hop);
    }
    for (top = target; top->parent != NULL; top = top->parent)
        ;
    return hop == NULL && top == kiln_config_root(config);
}

void kiln_check_unresolved(KilnCheck *check, const KilnConfigNode *written, const KilnError *err)
{
    kiln_check_add(check, inherits_fault(check->config, written) ? NULL : err);
}

/* Report what is wrong with a value, with the references through which it came. */
static void report(KilnCheck *check, const Scope *scope, const KilnConfigNode *written,
                   const KilnConfigNode *value, const KilnError *err)
{
    KilnError whole = *err;

    if (scope->via != NULL && written != value)
        kiln_error_about(check->config, written, value, &whole);
    if (scope->via != NULL)
        written = scope->via;
    kiln_error_about(check->config, written, value, &whole);
    kiln_check_report(check, NULL, written, NULL, &whole);
}

static void report_missing(KilnCheck *check, const Scope *scope, const KilnField *field,
                           const KilnConfigNode *written, const KilnConfigNode *value)
{
    KilnError err;

    kiln_error_set(&err, KILN_E_MISSING, "required value missing (%s)", field->help);
    report(check, scope, written, value, &err);
}

/* ---- Unknown keys ----------------------------------------------------------------- */

/* `trainer:` in conf/trainer/x.yaml, whose keys belong to `trainer` anyway? */
static bool repeats_parent(const char *path, const char *key)
{
    size_t length = strlen(key), before = strlen(path) - length - 1; /* of ".KEY" at the end */

    return before >= length && strncmp(path + before - length, key, length) == 0 &&
           (before == length || path[before - length - 1] == '.');
}

static void describe_unknown(KilnCheck *check, const char *key, const Scope *scope, KilnText *text)
{
    const KilnField *former = kiln_table_renamed(scope->fields, key);
    const char *near = kiln_table_nearest(scope->fields, key), *separator = "\n  its options: ";
    const char *other = NULL, *path = check->key.data;

    if (former != NULL) {
        kiln_text_printf(text, "it is now \"%s\": %s", former->renamed, former->help);
        return;
    }
    kiln_text_printf(text, "unknown option of %s", scope->owner);
    if (strlen(path) > strlen(key) && repeats_parent(path, key))
        kiln_text_printf(text,
                         "; the keys of this mapping are already below `%.*s`: remove the inner "
                         "`%s:`",
                         (int)(strlen(path) - strlen(key) - 1), path, key);
    else if (near != NULL)
        kiln_text_printf(text, "; did you mean \"%s\"?", near);
    else if ((other = kiln_check_elsewhere(check, key)) != NULL)
        kiln_text_printf(text, "; did you mean %s?", other);
    if (kiln_table_count(scope->fields) == 0)
        kiln_text_append(text, "; it has no options");
    for (const KilnField *f = scope->fields; f != NULL && f->type != KILN_TYPE_END; f++)
        if (f->renamed == NULL) {
            kiln_text_printf(text, "%s%s", separator, f->name);
            separator = ", ";
        }
}

static void report_unknown(KilnCheck *check, const KilnEntry *entry, const Scope *scope)
{
    KilnText text = { 0 };
    KilnError err;

    if (check->key.failed)
        return;
    describe_unknown(check, entry->key, scope, &text);
    check->key.failed = text.failed;
    kiln_error_set(&err, KILN_E_KEY, "%s", text.failed ? "unknown option" : text.data);
    if (scope->via != NULL)
        kiln_error_about(check->config, scope->via, entry->value, &err);
    err.origin = entry->key_origin;
    kiln_check_report(check, NULL, entry->value, NULL, &err);
    kiln_text_release(&text);
}

/* ---- Values ----------------------------------------------------------------------- */

/* A nested mapping of options. */
static void check_struct(KilnCheck *check, const KilnField *field, const Scope *around,
                         const KilnConfigNode *written, const KilnConfigNode *map)
{
    const char *owner = kiln_arena_printf(kiln_config_arena(check->config), "%s of %s", field->name,
                                          around->owner);

    check_scope(check,
                &(Scope) { .map = map,
                           .owner = owner != NULL ? owner : field->name,
                           .fields = field->fields,
                           .via = written != map ? written : around->via },
                false, false);
}

/* `value` is resolved: one value, or one item of a list or mapping. */
static void check_one(KilnCheck *check, const KilnField *field, const Scope *scope,
                      const KilnConfigNode *written, const KilnConfigNode *value)
{
    KilnError err = { 0 };
    KilnValue ignored;

    if (field->type == KILN_TYPE_COMPONENT &&
        (value->kind == KILN_NODE_MAP || kiln_node_is_scalar(value, KILN_SCALAR_STR)))
        kiln_check_component(check, field->component_kind, written, value);
    else if (field->type == KILN_TYPE_COMPONENT && field->optional &&
             kiln_node_is_scalar(value, KILN_SCALAR_NULL))
        ; /* none */
    else if (field->type == KILN_TYPE_STRUCT && value->kind == KILN_NODE_MAP)
        check_struct(check, field, scope, written, value);
    else if (kiln_value_read(field, value, &ignored, &err) < 0)
        report(check, scope, written, value, &err);
    else if (field->writes && check->visit_output != NULL)
        check->visit_output(check->visit_ctx, check->key.data, written, value);
}

/* The value of `written`; NULL: it does not resolve, which is reported. */
static const KilnConfigNode *resolve(KilnCheck *check, const KilnConfigNode *written)
{
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };

    if (kiln_config_resolve(check->config, written, &value, &err) < 0) {
        kiln_check_unresolved(check, written, &err);
        return NULL;
    }
    if (value == NULL) {
        kiln_error_set(&err, KILN_E_MISSING, "there is no such value");
        kiln_check_report(check, NULL, written, written, &err);
    }
    return value;
}

static void check_items(KilnCheck *check, const KilnField *field, const Scope *scope,
                        const KilnConfigNode *written, const KilnConfigNode *many)
{
    const KilnField item = kiln_field_item(field);
    Scope items = *scope;

    items.map = many;
    items.via = written != many ? written : scope->via;
    for (size_t i = 0; i < many->count; i++) {
        const KilnEntry *entry = &many->entries[i];
        size_t before = kiln_key_push(&check->key, entry->key, i);
        const KilnConfigNode *value = resolve(check, entry->value);

        if (value != NULL)
            check_one(check, &item, &items, entry->value, value);
        kiln_key_pop(&check->key, before);
    }
}

static void check_option(KilnCheck *check, const KilnField *field, const Scope *scope,
                         const KilnConfigNode *written)
{
    /* `callbacks: null` means none of them. */
    bool nullable = field->optional ||
                    (field->shape == KILN_MAPPING && field->type == KILN_TYPE_COMPONENT);
    const KilnConfigNode *value = resolve(check, written);
    KilnError err;

    if (value == NULL || (nullable && kiln_node_is_scalar(value, KILN_SCALAR_NULL)))
        return;
    if (field->shape == KILN_ONE) {
        check_one(check, field, scope, written, value);
    } else if (value->kind == (field->shape == KILN_MAPPING ? KILN_NODE_MAP : KILN_NODE_LIST)) {
        check_items(check, field, scope, written, value);
    } else if (kiln_node_is_scalar(value, KILN_SCALAR_MISSING)) {
        report_missing(check, scope, field, written, value);
    } else {
        kiln_value_wrong_shape(field, value, &err);
        report(check, scope, written, value, &err);
    }
}

/* ---- Tables ----------------------------------------------------------------------- */

/* A component that is missing at the root usually comes from the defaults list: is a key a
 * misspelled `defaults`? */
static const KilnEntry *find_misspelled_defaults(const KilnConfigNode *root)
{
    static const char *const name[] = { "defaults" };

    for (size_t i = 0; i < root->count; i++)
        if (root->entries[i].value->kind == KILN_NODE_LIST &&
            kiln_nearest(root->entries[i].key, name, 1) != NULL)
            return &root->entries[i];
    return NULL;
}

static void report_missing_at_root(KilnCheck *check, const Scope *scope, const KilnField *field)
{
    const KilnEntry *defaults = find_misspelled_defaults(scope->map);
    KilnError err;

    if (defaults == NULL) {
        report_missing(check, scope, field, scope->map, scope->map);
        return;
    }
    kiln_error_set(&err, KILN_E_MISSING,
                   "required value missing (%s); is '%s' meant to be 'defaults'?", field->help,
                   defaults->key);
    err.origin = defaults->key_origin;
    report(check, scope, scope->map, scope->map, &err);
}

static void check_options(KilnCheck *check, const Scope *scope, bool absent);

/* An option that is not written, in a mapping without a defaults layer. */
static void check_absent(KilnCheck *check, const KilnField *field, const Scope *scope)
{
    Scope nested = *scope;
    bool at_root = check->key.length == 0;
    size_t before = kiln_key_push(&check->key, field->name, 0);

    if (field->value == NULL && at_root && scope->map != NULL) {
        report_missing_at_root(check, scope, field);
    } else if (field->value == NULL) {
        report_missing(check, scope, field, scope->map, scope->map);
    } else if (field->type == KILN_TYPE_STRUCT && field->shape == KILN_ONE && !field->optional) {
        nested.fields = field->fields; /* its own options may be required */
        check_options(check, &nested, true);
    }
    kiln_key_pop(&check->key, before);
}

/* The options of the table that the mapping does not have; all of them with `absent`. */
static void check_options(KilnCheck *check, const Scope *scope, bool absent)
{
    for (const KilnField *f = scope->fields; f != NULL && f->type != KILN_TYPE_END; f++)
        if (f->renamed == NULL && (absent || kiln_node_get(scope->map, f->name) == NULL))
            check_absent(check, f, scope);
}

static void check_scope(KilnCheck *check, const Scope *scope, bool open, bool target)
{
    for (size_t i = 0; scope->map != NULL && i < scope->map->count; i++) {
        const KilnEntry *entry = &scope->map->entries[i];
        const KilnField *field = kiln_table_find(scope->fields, entry->key);
        size_t before = kiln_key_push(&check->key, entry->key, 0);

        if (target && strcmp(entry->key, KILN_TARGET_KEY) == 0)
            ; /* the component itself */
        else if (field != NULL)
            check_option(check, field, scope, entry->value);
        else if (!open || kiln_table_renamed(scope->fields, entry->key) != NULL)
            report_unknown(check, entry, scope);
        kiln_key_pop(&check->key, before);
    }
    check_options(check, scope, false);
}

void kiln_check_table(KilnCheck *check, const KilnConfigNode *map, const char *owner,
                      const KilnField *fields, bool open, bool target)
{
    check_scope(check, &(Scope) { .map = map, .owner = owner, .fields = fields }, open, target);
}
