/* Reports what is wrong with a mapping of options: with its values, keys and references. */
#include <string.h>

#include "config/interpolate/interpolate.h"
#include "config/provenance/error_origin.h"
#include "registry/check.h"
#include "schema/table.h"

void kiln_check_report(KilnCheck *check, const char *key, const KilnConfigNode *written,
                       const KilnConfigNode *value, const KilnError *err)
{
    KilnError whole = *err;

    if (value != NULL || err->origin.source == NULL)
        kiln_error_about(check->config, written, value, &whole);
    kiln_error_placed(&whole, key);
    kiln_check_add(check, &whole);
}

/* ---- References ------------------------------------------------------------------- */

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

static void unresolved(void *ctx, const KilnConfigNode *written, const KilnError *err)
{
    KilnCheck *check = ctx;

    if (!inherits_fault(check->config, written))
        kiln_check_add(check, err);
}

/* ---- Values ----------------------------------------------------------------------- */

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

/* Report what is wrong with a value, with the references through which it came. */
static void refused(void *ctx, const KilnOptionsScope *scope, const char *key,
                    const KilnConfigNode *written, const KilnConfigNode *value, KilnError *err)
{
    KilnCheck *check = ctx;
    const KilnEntry *defaults = written != NULL && written == kiln_config_root(check->config)
                                    ? find_misspelled_defaults(written)
                                    : NULL;

    if (defaults != NULL) {
        const KilnError plain = *err;

        kiln_error_set(err, err->status, "%s; is '%s' meant to be 'defaults'?", plain.text,
                       defaults->key);
        err->origin = defaults->key_origin;
    }
    if (scope->via != NULL && written != value)
        kiln_error_about(check->config, written, value, err);
    if (scope->via != NULL)
        written = scope->via;
    kiln_error_about(check->config, written, value, err);
    kiln_check_report(check, key, written, NULL, err);
}

/* ---- Unknown keys ----------------------------------------------------------------- */

/* `trainer:` in conf/trainer/x.yaml, whose keys belong to `trainer` anyway? */
static bool repeats_parent(const char *path, const char *key)
{
    size_t length = strlen(key), before = strlen(path) - length - 1; /* of ".KEY" at the end */

    return before >= length && strncmp(path + before - length, key, length) == 0 &&
           (before == length || path[before - length - 1] == '.');
}

/* "unknown option of pad of window of model/resnet" */
static void describe_owner(const KilnOptionsScope *scope, KilnText *text)
{
    kiln_text_append(text, "unknown option");
    for (; scope != NULL; scope = scope->outer)
        kiln_text_printf(text, " of %s", scope->name);
}

static void describe_unknown(const KilnCheck *check, const KilnOptionsScope *scope,
                             const char *path, const char *key, KilnText *text)
{
    const KilnField *former = kiln_table_renamed(scope->fields, key);
    const char *near = kiln_table_nearest(scope->fields, key), *separator = "\n  its options: ";
    const char *other = NULL;

    if (former != NULL) {
        kiln_text_printf(text, "it is now \"%s\": %s", former->renamed, former->help);
        return;
    }
    describe_owner(scope, text);
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

static void unknown(void *ctx, const KilnOptionsScope *scope, const char *key,
                    const KilnEntry *entry)
{
    KilnCheck *check = ctx;
    KilnText text = { 0 };
    KilnError err;

    describe_unknown(check, scope, key, entry->key, &text);
    kiln_text_to_error(&text, KILN_E_KEY, &err);
    if (scope->via != NULL)
        kiln_error_about(check->config, scope->via, entry->value, &err);
    err.origin = entry->key_origin;
    kiln_check_report(check, key, entry->value, NULL, &err);
}

KilnReport kiln_check_reports(KilnCheck *check)
{
    return (KilnReport) { check, refused, unresolved, unknown };
}
