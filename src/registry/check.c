/* Checks a whole tree: sections and components against their tables, every
 * component once, and every interpolation. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/compose.h"
#include "registry/registry.h"
#include "schema/bind.h"
#include "schema/check.h"
#include "schema/table.h"
#include "schema/value.h"

typedef struct Found {
    size_t position; /* of the node in the tree, depth first */
    KilnStatus status;
    char *text;
    KilnOrigin origin;
} Found;

typedef struct Visit {
    const KilnConfigNode *map;
    const KilnComponent *component; /* NULL: names none, which was reported */
    bool open;                      /* being checked right now */
} Visit;

typedef struct Walk {
    KilnCheck check;
    const KilnRegistry *registry;
    Found *found;
    size_t found_count, found_capacity;
    Visit *visits;
    size_t visit_count, visit_capacity;
    int depth;
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

/* ---- What was found ------------------------------------------------------------ */

/* Depth-first number of `at` below `node`; counts into *n until it is met. */
static bool number_of(const KilnConfigNode *node, const KilnConfigNode *at, size_t *n)
{
    if (node == at)
        return true;
    ++*n;
    for (size_t i = 0; i < node->count; i++)
        if (number_of(node->entries[i].value, at, n))
            return true;
    return false;
}

static void report(void *ctx, const KilnConfigNode *at, const KilnError *err)
{
    Walk *walk = ctx;
    size_t position = 0;
    void *items = walk->found;

    if (err->status == KILN_E_NOMEM)
        walk->out_of_memory = true;
    /* What is not in the tree (a section that is missing) comes last. */
    number_of(kiln_config_root(walk->check.config), at, &position);
    if (!room(walk, &items, walk->found_count, &walk->found_capacity, sizeof(Found)))
        return;
    walk->found = items;
    char *text = kiln_strdup(err->text);
    if (text == NULL) {
        walk->out_of_memory = true;
        return;
    }
    walk->found[walk->found_count++] = (Found) { position, err->status, text, err->origin };
}

/* Stable, so that what was found at one node stays in order. */
static void sort_found(Walk *walk)
{
    for (size_t i = 1; i < walk->found_count; i++) {
        Found now = walk->found[i];
        size_t j = i;

        for (; j > 0 && walk->found[j - 1].position > now.position; j--)
            walk->found[j] = walk->found[j - 1];
        walk->found[j] = now;
    }
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

static void check_options(Walk *walk, const KilnConfigNode *map, const char *path,
                          const KilnConfigNode *written, const KilnComponent *component)
{
    KilnText owner = { 0 };
    KilnError err;

    if (walk->depth == KILN_MAX_NESTING) {
        kiln_error_set(&err, KILN_E_RANGE, "components within components, more than %d",
                       KILN_MAX_NESTING);
        kiln_check_report(&walk->check, path, written, written, &err);
        return;
    }
    kiln_text_printf(&owner, "%s/%s", kiln_kind_name(component->kind), component->name);
    walk->depth++;
    if (owner.failed)
        walk->out_of_memory = true;
    else
        kiln_check_table(&walk->check, map, path, owner.data, component->fields, false, true);
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

    if (kiln_config_resolve(walk->check.config, node, &value, NULL) == KILN_OK && value != NULL)
        check_component(walk, field->component_kind, path, node, value);
}

/* ---- The tree ----------------------------------------------------------------------- */

static void check_section(Walk *walk, const KilnSection *section)
{
    const KilnConfigNode *node = NULL;
    KilnError err = { 0 };

    if (kiln_config_at(walk->check.config, section->key, &node, &err) < 0) {
        report(walk, NULL, &err);
        return;
    }
    if (node != NULL && node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_NULL)
        node = NULL;
    if (node != NULL && node->kind != KILN_NODE_MAP) {
        kiln_error_set(&err, KILN_E_TYPE, "expected a mapping");
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

static KilnStatus hand_over(Walk *walk, KilnErrors *errors)
{
    KilnStatus status = KILN_OK;
    KilnError err = { 0 };

    sort_found(walk);
    for (size_t i = 0; i < walk->found_count; i++) {
        kiln_error_set(&err, walk->found[i].status, "%s", walk->found[i].text);
        err.origin = walk->found[i].origin;
        kiln_errors_add(errors, &err);
        if (status == KILN_OK)
            status = err.status;
    }
    if (walk->out_of_memory) {
        kiln_error_nomem(&err, 0);
        status = kiln_errors_add(errors, &err);
    }
    return status;
}

KilnStatus kiln_config_check(KilnConfig *config, const KilnRegistry *registry, KilnErrors *errors)
{
    const KilnSection *sections = kiln_config_sections(config);
    Walk walk = { .registry = registry };

    walk.check =
        (KilnCheck) { .config = config, .ctx = &walk, .report = report, .component = on_component };
    for (const KilnSection *s = sections; s != NULL && s->key != NULL; s++)
        check_section(&walk, s);
    check_rest(&walk, kiln_config_root(config));
    KilnStatus status = hand_over(&walk, errors);
    kiln_errors_sort(errors, config);
    for (size_t i = 0; i < walk.found_count; i++)
        free(walk.found[i].text);
    free(walk.found);
    free(walk.visits);
    return status;
}
