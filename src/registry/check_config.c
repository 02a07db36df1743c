/* Checks a whole config: every section and component against its table, each component once, and
 * every interpolation. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "config/compose.h"
#include "config/provenance/error_list.h"
#include "config/provenance/error_origin.h"
#include "kiln/array.h"
#include "registry/check.h"
#include "registry/unread_keys.h"
#include "schema/bind.h"
#include "schema/field_value.h"
#include "schema/table.h"

void kiln_check_add(KilnCheck *check, const KilnError *err)
{
    if (check->errors == NULL)
        return;
    kiln_errors_add(check->errors, err);
    if (check->status == KILN_OK || err->status == KILN_E_NOMEM)
        check->status = err->status;
}

/* ---- Components ------------------------------------------------------------------ */

static KilnCheckVisit *find_visit(const KilnCheck *check, const KilnConfigNode *map)
{
    for (size_t i = 0; i < check->visit_count; i++)
        if (check->visits[i].map == map)
            return &check->visits[i];
    return NULL;
}

/* The index of the visit, which is new or begins again; SIZE_MAX when memory is out. */
static size_t open_visit(KilnCheck *check, const KilnConfigNode *map,
                         const KilnComponent *component)
{
    const KilnCheckVisit *before = find_visit(check, map);
    size_t i = before != NULL ? (size_t)(before - check->visits) : check->visit_count;
    KilnError err;

    if (!KILN_RESERVE(check->visits, check->visit_capacity, i + 1)) {
        kiln_error_nomem(&err, sizeof(*check->visits));
        kiln_check_add(check, &err);
        return SIZE_MAX;
    }
    check->visits[i] = (KilnCheckVisit) { map, component, component != NULL };
    check->visit_count += i == check->visit_count;
    return i;
}

/* Run the component's own check of its options, each of which is right for itself. An error that
 * names no option is about `around`. */
static void check_together(KilnCheck *check, const KilnDocument *document, const char *key,
                           const KilnConfigNode *around, const KilnComponent *component)
{
    const KilnConfigNode *written = around, *value = NULL;
    const char *option = NULL;
    void *options = NULL;
    KilnText path = { 0 };
    KilnError err = { 0 };

    kiln_text_append(&path, key);
    if (kiln_options_load(document, key, component->fields, component->opts_size, &options, &err) <
        0) {
        kiln_check_add(check, &err);
        return;
    }
    kiln_call_enter_component(component, key, "check");
    err.status = kiln_call_result(component->check(options, &option, &err), &err);
    if (err.status < 0) {
        if (option != NULL)
            kiln_key_push(&path, option, 0);
        if (option != NULL && kiln_node_find(around, option) != NULL)
            written = kiln_node_find(around, option);
        if (kiln_config_resolve(check->config, written, &value, NULL) < 0 || value == NULL)
            written = value = around;
        kiln_check_report(check, path.data != NULL ? path.data : key, written, value, &err);
    }
    kiln_text_release(&path);
    kiln_options_free(component->fields, component->opts_size, options);
}

static void check_component(KilnCheck *check, KilnKind kind, const char *key,
                            const KilnConfigNode *written, const KilnConfigNode *value);

/* Check a mapping of options, and the components in it. `component`: the one that it is, which
 * `written` refers to; NULL: a section. */
static void check_options(KilnCheck *check, const KilnOptionsScope *scope, const char *key,
                          const KilnConfigNode *written, const KilnComponent *component)
{
    const KilnReport report = kiln_check_reports(check);
    KilnDocument document = { 0 };
    KilnError err = { 0 };

    if (kiln_document_read(check->config, key, scope, &report, &document, &err) == KILN_OK &&
        component != NULL && component->check != NULL)
        check_together(check, &document, key, scope->map != NULL ? scope->map : written, component);
    if (err.status == KILN_E_NOMEM)
        kiln_check_add(check, &err);
    for (size_t i = 0; i < document.slot_count; i++) {
        const KilnSlot *slot = &document.slots[i];

        for (size_t j = 0; j < slot->count; j++) {
            const KilnPart *part = &slot->parts[j];

            if (slot->field->type == KILN_TYPE_COMPONENT)
                check_component(check, slot->field->component_kind, part->key, part->written,
                                part->value);
            else if (check->visit_output != NULL)
                check->visit_output(check->visit_ctx, part->key, part->written, part->value);
        }
    }
    kiln_document_release(&document);
}

/* Check the options of `component`: `map` (NULL: only defaults), which `written` refers to. `open`:
 * the mapping has other keys, too. */
static void check_own(KilnCheck *check, const KilnConfigNode *map, const char *key,
                      const KilnConfigNode *written, const KilnComponent *component, bool open)
{
    char name[256];
    KilnError err;

    if (check->depth == KILN_MAX_NESTING) {
        kiln_error_set(&err, KILN_E_RANGE, "components within components, more than %d",
                       KILN_MAX_NESTING);
        kiln_check_report(check, key, written, written, &err);
        return;
    }
    snprintf(name, sizeof(name), "%s/%s", kiln_kind_name(component->kind), component->name);
    check->depth++;
    check_options(check,
                  &(KilnOptionsScope) { .fields = component->fields,
                                        .map = map,
                                        .missing = map,
                                        .name = name,
                                        .open = open,
                                        .target = true },
                  key, written, component);
    check->depth--;
}

/* A mapping that was met before must fit here too, and must not contain itself. */
static void check_again(KilnCheck *check, const KilnCheckVisit *visit, KilnKind kind,
                        const char *key, const KilnConfigNode *written)
{
    KilnError err;

    if (kind != KILN_KIND_ANY && visit->component->kind != kind)
        kiln_error_set(&err, KILN_E_TYPE, "expected %s, got %s (%s)", kiln_value_kind(kind),
                       kiln_value_kind(visit->component->kind), visit->component->name);
    else if (visit->open)
        kiln_error_set(&err, KILN_E_RANGE, "a component that contains itself");
    else
        return;
    kiln_check_report(check, key, written, written, &err);
}

/* Check the component of `kind` at `key`: `written`, whose value is a mapping or a plain name. The
 * options of a mapping are reported under its own key, not that of a reference. */
static void check_component(KilnCheck *check, KilnKind kind, const char *key,
                            const KilnConfigNode *written, const KilnConfigNode *value)
{
    const KilnCheckVisit *before = find_visit(check, value);
    const bool map = value->kind == KILN_NODE_MAP;
    const KilnComponent *component = NULL;
    KilnError err = { 0 };

    if (before != NULL && before->component != NULL) {
        check_again(check, before, kind, key, written);
        return;
    }
    if (before != NULL && kind == KILN_KIND_ANY)
        return; /* reported before: it names no component */
    if (kiln_node_component(check->config, check->registry, map ? value : written, kind, &component,
                            &err) < 0)
        kiln_check_report(check, key, written, map && written != value ? value : NULL, &err);
    size_t visit = map ? open_visit(check, value, component) : SIZE_MAX;
    if (component == NULL || (map && visit == SIZE_MAX))
        return;
    const char *own = map ? kiln_node_path(check->config, value) : "";
    check_own(check, map ? value : NULL, own[0] != '\0' ? own : key, written, component, false);
    if (map)
        check->visits[visit].open = false;
}

/* ---- Options elsewhere ----------------------------------------------------------- */

/* A search for the tables that have an option of some name. */
typedef struct Search {
    const KilnCheck *check;
    const char *name;
    const char *key; /* of the table that was found first */
    size_t count;
} Search;

static void search_table(Search *search, const char *key, const KilnField *fields)
{
    if (kiln_table_find(fields, search->name) != NULL && search->count++ == 0)
        search->key = key;
}

static void search_components(Search *search, const KilnConfigNode *node)
{
    const KilnCheck *check = search->check;
    const KilnComponent *component = NULL;

    if (kiln_node_get(node, KILN_TARGET_KEY) != NULL &&
        kiln_node_component(check->config, check->registry, node, KILN_KIND_ANY, &component,
                            NULL) >= 0)
        search_table(search, kiln_node_path(check->config, node), component->fields);
    for (size_t i = 0; i < node->count; i++)
        search_components(search, node->entries[i].value);
}

const char *kiln_check_elsewhere(const KilnCheck *check, const char *name)
{
    const KilnSection *sections = kiln_config_sections(check->config);
    Search search = { .check = check, .name = name };

    for (int i = 0; i < 2 && search.name != NULL && search.count == 0; i++) {
        for (const KilnSection *s = sections; s != NULL && s->key != NULL; s++)
            if (!s->hidden)
                search_table(&search, s->key, s->fields);
        search_components(&search, kiln_config_root(check->config));
        if (search.count == 0)
            search.name = kiln_usual_name(name);
    }
    if (search.count != 1)
        return NULL;
    return kiln_arena_printf(kiln_config_arena(check->config), "%s%s%s", search.key,
                             search.key[0] != '\0' ? "." : "", search.name);
}

/* ---- The tree ----------------------------------------------------------------------- */

/* A section with the option _target_ has the options of the component that it names, too. */
static void check_named_component(KilnCheck *check, const KilnSection *section,
                                  const KilnConfigNode *map)
{
    const KilnComponent *component = NULL;

    if (map != NULL && kiln_table_find(section->fields, KILN_TARGET_KEY) != NULL &&
        kiln_node_component(check->config, check->registry, map, KILN_KIND_ANY, &component, NULL) >=
            0)
        check_own(check, map, section->key, map, component, true);
}

static void check_section(KilnCheck *check, const KilnSection *section)
{
    const KilnConfigNode *node = NULL;
    KilnError err = { 0 };

    if (kiln_config_at(check->config, section->key, &node, &err) < 0) {
        kiln_check_add(check, &err);
        return;
    }
    if (kiln_node_is_null(node))
        node = NULL;
    if (node != NULL && node->kind != KILN_NODE_MAP) {
        kiln_error_set(&err, KILN_E_TYPE, "expected a mapping of options");
        kiln_check_report(check, section->key, node, node, &err);
        return;
    }
    check_options(check,
                  &(KilnOptionsScope) { .fields = section->fields,
                                        .map = node,
                                        .missing = node,
                                        .name = section->key,
                                        .open = section->open },
                  section->key, node, NULL);
    check_named_component(check, section, node);
}

static bool is_hidden(const KilnSection *sections, const char *key)
{
    size_t length = strlen(key);

    for (const KilnSection *s = sections; s != NULL && s->key != NULL; s++)
        if (s->hidden && strncmp(s->key, key, length) == 0 &&
            (s->key[length] == '\0' || s->key[length] == '.'))
            return true;
    return false;
}

/* Check what no table led to: groups that are only referred to, free keys of the root. */
static void check_rest(KilnCheck *check, const KilnConfigNode *node)
{
    const KilnSection *hidden = node->parent == NULL ? kiln_config_sections(check->config) : NULL;
    const KilnReport report = kiln_check_reports(check);
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };

    if (node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_INTERPOLATION &&
        kiln_config_resolve(check->config, node, &value, &err) < 0)
        report.unresolved(check, node, &err);
    if (kiln_node_get(node, KILN_TARGET_KEY) != NULL && find_visit(check, node) == NULL)
        check_component(check, KILN_KIND_ANY, kiln_node_path(check->config, node), node, node);
    for (size_t i = 0; i < node->count; i++)
        if (hidden == NULL || !is_hidden(hidden, node->entries[i].key))
            check_rest(check, node->entries[i].value);
}

static void check_all(KilnCheck *check)
{
    const KilnSection *sections = kiln_config_sections(check->config);

    for (const KilnSection *s = sections; s != NULL && s->key != NULL; s++)
        check_section(check, s);
    check_rest(check, kiln_config_root(check->config));
}

void kiln_config_visit_outputs(KilnConfig *config, const KilnRegistry *registry,
                               KilnOutputVisit *visit, void *ctx)
{
    KilnCheck check = {
        .config = config, .registry = registry, .visit_output = visit, .visit_ctx = ctx
    };

    check_all(&check);
    free(check.visits);
}

KilnStatus kiln_config_check(KilnConfig *config, const KilnRegistry *registry, KilnErrors *errors)
{
    KilnCheck check = { .config = config, .registry = registry, .errors = errors };

    check_all(&check);
    kiln_unread_keys_check(&check);
    kiln_check_models(&check);
    kiln_config_warnings(config, errors);
    kiln_errors_sort(errors, config);
    free(check.visits);
    return check.status;
}

KilnStatus kiln_config_check_own(KilnConfig *config, const KilnRegistry *registry,
                                 KilnErrors *errors)
{
    KilnCheck check = { .config = config, .registry = registry, .errors = errors };

    for (const KilnSection *s = kiln_config_sections(config); s != NULL && s->key != NULL; s++)
        if (strcmp(s->key, "kiln") == 0 || strncmp(s->key, "kiln.", 5) == 0)
            check_section(&check, s);
    kiln_errors_sort(errors, config);
    free(check.visits);
    return check.status;
}
