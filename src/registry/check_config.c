/* Checks a whole tree: sections and components against their tables, every
 * component once, and every interpolation. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "config/compose.h"
#include "registry/registry.h"
#include "registry/unread_keys.h"
#include "schema/bind.h"
#include "schema/validate.h"
#include "schema/table.h"
#include "schema/field_value.h"

typedef struct Visit {
    const KilnConfigNode *map;
    const KilnComponent *component; /* NULL: names none, which was reported */
    bool open;                      /* being checked right now */
} Visit;

typedef struct Walk {
    KilnCheck check;
    const KilnRegistry *registry;
    KilnErrors *errors; /* NULL: none is reported */
    KilnOutputVisit *visit;
    void *visit_ctx;
    KilnStatus status; /* of the first error */
    Visit *visits;
    size_t visit_count, visit_capacity;
    int depth;
    bool fault; /* something is wrong in the options of the component at hand */
    bool out_of_memory;
} Walk;

/* Room for one more item of `size` bytes; false when memory is out. */
static bool room(Walk *walk, void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    size_t more = *capacity > 0 ? *capacity * 2 : 16;
    void *grown = realloc(*items, more * size);
    if (grown == NULL) {
        walk->out_of_memory = true;
        return false;
    }
    *items = grown;
    *capacity = more;
    return true;
}

static void report(void *ctx, const KilnError *err)
{
    Walk *walk = ctx;

    walk->fault = true;
    if (err == NULL || walk->errors == NULL)
        return;
    kiln_errors_add(walk->errors, err);
    if (walk->status == KILN_OK || err->status == KILN_E_NOMEM)
        walk->status = err->status;
}

/* ---- Components ------------------------------------------------------------------ */

static Visit *find_visit(const Walk *walk, const KilnConfigNode *map)
{
    for (size_t i = 0; i < walk->visit_count; i++)
        if (walk->visits[i].map == map)
            return &walk->visits[i];
    return NULL;
}

/* The index of a new visit; SIZE_MAX when memory is out. */
static size_t add_visit(Walk *walk, const KilnConfigNode *map, const KilnComponent *component)
{
    void *items = walk->visits;

    if (!room(walk, &items, walk->visit_count, &walk->visit_capacity, sizeof(Visit)))
        return SIZE_MAX;
    walk->visits = items;
    walk->visits[walk->visit_count] = (Visit) { map, component, true };
    return walk->visit_count++;
}

/* What the component itself has to say of its options, which are right each for
 * itself. `around` stands for them where no option does. */
static void check_across(Walk *walk, const KilnConfigNode *map, const char *path,
                         const KilnConfigNode *around, const KilnComponent *component)
{
    const KilnConfig *config = walk->check.config;
    const KilnConfigNode *written = around, *value = NULL;
    const char *option = NULL;
    void *options = NULL;
    KilnText place = { 0 };
    KilnError err = { 0 };
    KilnStatus status = kiln_bind(config, map, path, component->fields, component->opts_size,
                                  &options, &err);

    if (status < 0) { /* the message names the option */
        kiln_error_about(config, around, around, &err);
        kiln_error_placed(&err, "");
        report(walk, &err);
        return;
    }
    kiln_call_enter_component(component, path, "check");
    err.status = kiln_call_result(component->check(options, &option, &err), &err);
    if (err.status < 0) {
        if (option != NULL && map != NULL && kiln_node_find(map, option) != NULL)
            written = kiln_node_find(map, option);
        if (kiln_config_resolve(config, written, &value, NULL) < 0 || value == NULL)
            written = value = around;
        kiln_text_printf(&place, "%s%s%s", path, option != NULL ? "." : "",
                         option != NULL ? option : "");
        kiln_check_report(&walk->check, place.failed ? path : place.data, written, value, &err);
    }
    kiln_text_release(&place);
    kiln_options_free(component->fields, component->opts_size, options);
}

static void check_options(Walk *walk, const KilnConfigNode *map, const char *path,
                          const KilnConfigNode *written, const KilnComponent *component)
{
    KilnText owner = { 0 };
    bool around = walk->fault;
    KilnError err;

    if (walk->depth == KILN_MAX_NESTING) {
        kiln_error_set(&err, KILN_E_RANGE, "components within components, more than %d",
                       KILN_MAX_NESTING);
        kiln_check_report(&walk->check, path, written, written, &err);
        return;
    }
    kiln_text_printf(&owner, "%s/%s", kiln_kind_name(component->kind), component->name);
    walk->depth++;
    walk->fault = false;
    if (owner.failed)
        walk->out_of_memory = true;
    else
        kiln_check_table(&walk->check, map, path, owner.data, component->fields, false, true);
    if (!walk->fault && !owner.failed && component->check != NULL)
        check_across(walk, map, path, map != NULL ? map : written, component);
    walk->fault = around; /* a child's faults are its own */
    walk->depth--;
    kiln_text_release(&owner);
}

/* A mapping met before: it must fit this place too, and not contain itself. */
static void check_again(Walk *walk, const Visit *visit, KilnKind kind, const char *path,
                        const KilnConfigNode *written)
{
    KilnError err;

    if (kind != KILN_KIND_ANY && visit->component->kind != kind)
        kiln_error_set(&err, KILN_E_TYPE, "expected %s, got %s (%s)", kiln_value_kind(kind),
                       kiln_value_kind(visit->component->kind), visit->component->name);
    else if (visit->open)
        kiln_error_set(&err, KILN_E_RANGE, "a component that contains itself");
    else
        return;
    kiln_check_report(&walk->check, path, written, written, &err);
}

/* `map` was not met before, or only where another kind was expected. */
static void check_mapping(Walk *walk, KilnKind kind, const char *path,
                          const KilnConfigNode *written, const KilnConfigNode *map)
{
    const char *place = kiln_node_path(walk->check.config, map);
    const Visit *before = find_visit(walk, map);
    const KilnComponent *component = NULL;
    KilnError err = { 0 };

    if (kiln_node_component(walk->check.config, walk->registry, map, kind, &component, &err) < 0)
        kiln_check_report(&walk->check, path, written, written != map ? map : NULL, &err);
    size_t visit = before != NULL ? (size_t)(before - walk->visits)
                                  : add_visit(walk, map, component);
    if (component == NULL || visit == SIZE_MAX)
        return;
    walk->visits[visit] = (Visit) { map, component, true };
    check_options(walk, map, place[0] != '\0' ? place : path, written, component);
    walk->visits[visit].open = false;
}

/* `value` is a mapping or a plain name. */
static void check_component(Walk *walk, KilnKind kind, const char *path,
                            const KilnConfigNode *written, const KilnConfigNode *value)
{
    const Visit *before = find_visit(walk, value);
    const KilnComponent *component = NULL;
    KilnError err = { 0 };

    if (before != NULL && before->component != NULL) {
        check_again(walk, before, kind, path, written);
    } else if (before != NULL && kind == KILN_KIND_ANY) {
        return; /* it was said that this names nothing */
    } else if (value->kind == KILN_NODE_MAP) {
        check_mapping(walk, kind, path, written, value);
    } else if (kiln_node_component(walk->check.config, walk->registry, written, kind, &component,
                                   &err) < 0) {
        kiln_check_report(&walk->check, path, written, NULL, &err);
    } else {
        check_options(walk, NULL, path, written, component);
    }
}

static void on_component(void *ctx, const KilnField *field, const char *path,
                         const KilnConfigNode *node)
{
    Walk *walk = ctx;
    const KilnConfigNode *value = NULL;

    bool around = walk->fault;

    if (kiln_config_resolve(walk->check.config, node, &value, NULL) == KILN_OK && value != NULL)
        check_component(walk, field->component_kind, path, node, value);
    walk->fault = around; /* what a component is, is no matter of the one that holds it */
}

/* ---- Options of others ------------------------------------------------------------- */

/* The search for who has an option of some name. */
typedef struct Elsewhere {
    const Walk *walk;
    const char *name;
    KilnText found; /* its key */
    size_t count;
} Elsewhere;

static void remember_option(Elsewhere *search, const char *path, const KilnField *fields)
{
    if (kiln_table_find(fields, search->name) == NULL || search->count++ > 0)
        return;
    kiln_text_printf(&search->found, "%s%s%s", path, path[0] != '\0' ? "." : "", search->name);
}

static void search_components(Elsewhere *search, const KilnConfigNode *node)
{
    const Walk *walk = search->walk;
    const KilnComponent *component = NULL;

    if (kiln_node_get(node, KILN_TARGET_KEY) != NULL &&
        kiln_node_component(walk->check.config, walk->registry, node, KILN_KIND_ANY, &component,
                            NULL) >= 0)
        remember_option(search, kiln_node_path(walk->check.config, node), component->fields);
    for (size_t i = 0; i < node->count; i++)
        search_components(search, node->entries[i].value);
}

static void search_everywhere(Elsewhere *search)
{
    const KilnConfig *config = search->walk->check.config;

    for (const KilnSection *s = kiln_config_sections(config); s != NULL && s->key != NULL; s++)
        if (!s->hidden)
            remember_option(search, s->key, s->fields);
    search_components(search, kiln_config_root(config));
}

static const char *elsewhere(void *ctx, const char *path, const char *name)
{
    const Walk *walk = ctx;
    Elsewhere search = { .walk = walk, .name = name };
    const char *result = NULL;

    (void)path; /* it has no such option, or nobody would ask */
    search_everywhere(&search);
    if (search.count == 0 && kiln_usual_name(name) != NULL) {
        search.name = kiln_usual_name(name);
        search_everywhere(&search);
    }
    if (search.count == 1 && !search.found.failed)
        result = kiln_arena_strdup(kiln_config_arena(walk->check.config), search.found.data);
    kiln_text_release(&search.found);
    return result;
}

/* ---- The tree ----------------------------------------------------------------------- */

static void check_section(Walk *walk, const KilnSection *section)
{
    const KilnConfigNode *node = NULL;
    KilnError err = { 0 };

    if (kiln_config_at(walk->check.config, section->key, &node, &err) < 0) {
        report(walk, &err);
        return;
    }
    if (node != NULL && node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_NULL)
        node = NULL;
    if (node != NULL && node->kind != KILN_NODE_MAP) {
        kiln_error_set(&err, KILN_E_TYPE, "expected a mapping of options");
        kiln_check_report(&walk->check, section->key, node, node, &err);
        return;
    }
    kiln_check_table(&walk->check, node, section->key, section->key, section->fields, section->open,
                     false);
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

/* What no table led to: groups that are only referred to, free keys of the root. */
static void check_rest(Walk *walk, const KilnConfigNode *node)
{
    const KilnSection *hidden = node->parent == NULL ? kiln_config_sections(walk->check.config)
                                                     : NULL;
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };

    if (node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_INTERPOLATION &&
        kiln_config_resolve(walk->check.config, node, &value, &err) < 0)
        kiln_check_unresolved(&walk->check, node, &err);
    if (kiln_node_get(node, KILN_TARGET_KEY) != NULL && find_visit(walk, node) == NULL)
        check_component(walk, KILN_KIND_ANY, kiln_node_path(walk->check.config, node), node, node);
    for (size_t i = 0; i < node->count; i++)
        if (hidden == NULL || !is_hidden(hidden, node->entries[i].key))
            check_rest(walk, node->entries[i].value);
}

static void check_all(Walk *walk, const KilnConfig *config)
{
    const KilnSection *sections = kiln_config_sections(config);

    for (const KilnSection *s = sections; s != NULL && s->key != NULL; s++)
        check_section(walk, s);
    check_rest(walk, kiln_config_root(config));
}

static void on_output(void *ctx, const char *path, const KilnConfigNode *written,
                      const KilnConfigNode *value)
{
    const Walk *walk = ctx;

    walk->visit(walk->visit_ctx, path, written, value);
}

void kiln_config_visit_outputs(KilnConfig *config, const KilnRegistry *registry,
                               KilnOutputVisit *visit, void *ctx)
{
    Walk walk = { .registry = registry, .visit = visit, .visit_ctx = ctx };

    walk.check = (KilnCheck) { .config = config,
                               .ctx = &walk,
                               .report = report,
                               .component = on_component,
                               .output = on_output };
    check_all(&walk, config);
    free(walk.visits);
}

KilnStatus kiln_config_check(KilnConfig *config, const KilnRegistry *registry, KilnErrors *errors)
{
    Walk walk = { .registry = registry, .errors = errors };
    KilnError err;

    walk.check = (KilnCheck) { .config = config,
                               .ctx = &walk,
                               .report = report,
                               .component = on_component,
                               .elsewhere = elsewhere };
    check_all(&walk, config);
    kiln_unread_keys_check(&walk.check, errors);
    if (walk.out_of_memory) {
        kiln_error_nomem(&err, 0);
        report(&walk, &err);
    }
    kiln_config_warnings(config, errors);
    kiln_errors_sort(errors, config);
    free(walk.visits);
    return walk.status;
}
