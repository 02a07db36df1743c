/* Makes examples from options tables. All of them compose (tests/cli/help/test_show.py). */
#include "cli/help/example.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "cli/help/selection.h"
#include "registry/registry.h"
#include "schema/bind.h"
#include "schema/table.h"
#include "schema/field_value.h"

/* ---- Values -------------------------------------------------------------------------- */

static bool in_range(const KilnField *field, double value)
{
    return value >= field->min && value <= field->max;
}

/* Another number near the default, as people would try it: twice, half, ... An odd integer stays
 * odd, as kernel sizes must. */
static const char *other_number(KilnArena *arena, const KilnField *field)
{
    char digits[KILN_BOUND_TEXT];
    double now = 0;
    bool known = field->value != NULL && kiln_parse_f64(field->value, &now, NULL) >= 0 && now > 0;
    bool whole = field->type == KILN_TYPE_I64;
    double odd = known && whole && fmod(now, 2) == 1 ? now + 2 : NAN;
    const double tries[] = {
        odd, known ? now * 2 : NAN, known ? now / 2 : NAN, 0.1, 10, 100, 2, 1, 0.5, 0
    };

    for (size_t i = 0; i < KILN_COUNT(tries); i++)
        if (in_range(field, tries[i]) && tries[i] != now && (!whole || floor(tries[i]) == tries[i]))
            return kiln_arena_strdup(arena, kiln_value_bound(tries[i], digits));
    return NULL;
}

static const char *other_choice(const KilnField *field)
{
    const KilnChoice *choice = field->choices;

    while (choice->name != NULL && field->value != NULL && strcmp(choice->name, field->value) == 0)
        choice++;
    return choice->name;
}

/* A valid value that is not the default; NULL when none is known. */
static const char *other_value(KilnArena *arena, const KilnField *field)
{
    if (field->shape != KILN_ONE || field->renamed != NULL)
        return NULL;
    switch (field->type) {
    case KILN_TYPE_BOOL:
        return field->value != NULL && strcmp(field->value, "true") == 0 ? "false" : "true";
    case KILN_TYPE_ENUM:
        return other_choice(field);
    case KILN_TYPE_I64:
    case KILN_TYPE_F64:
        return other_number(arena, field);
    case KILN_TYPE_DURATION:
        return in_range(field, 90) ? "90s" : NULL;
    case KILN_TYPE_QUANTITY:
        return (field->allowed & KILN_ALLOW_COUNT) != 0      ? "2"
               : (field->allowed & KILN_ALLOW_FRACTION) != 0 ? "0.5"
                                                             : "90s";
    case KILN_TYPE_SIZE:
        return in_range(field, 0x1p26) ? "64MiB" : NULL;
    case KILN_TYPE_IMAGE_SIZE:
        return in_range(field, 64) ? "64" : NULL;
    default:
        return NULL;
    }
}

const KilnField *kiln_example_field(KilnArena *arena, const KilnField *fields,
                                    const char **ret_value)
{
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++)
        if (f->value != NULL && (*ret_value = other_value(arena, f)) != NULL)
            return f;
    return NULL;
}

/* A placeholder for a value of the user's. Keys of a mapping of numbers are numbers, such as
 * epochs. */
static const char *placeholder(KilnArena *arena, const KilnField *field)
{
    const KilnField item = kiln_field_item(field);
    const char *value = other_value(arena, &item);

    if (field->shape == KILN_MAPPING)
        return value != NULL ? kiln_arena_printf(arena, "{0:%s}", value) : "{}";
    if (field->type == KILN_TYPE_PATH)
        value = "DIR";
    else if (value == NULL)
        value = field->shape == KILN_LIST ? "VALUE,ANOTHER" : "VALUE";
    return field->shape == KILN_LIST ? kiln_arena_printf(arena, "[%s]", value) : value;
}

/* `before`, name, `equals` and a placeholder for each required option. */
static const char *required(KilnArena *arena, const KilnField *fields, const char *before,
                            const char *equals)
{
    const char *all = "";

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++)
        if (f->value == NULL && f->renamed == NULL && f->type != KILN_TYPE_STRUCT &&
            f->type != KILN_TYPE_COMPONENT)
            all = kiln_arena_printf(arena, "%s%s%s%s%s", all, before, f->name, equals,
                                    placeholder(arena, f));
    return all;
}

const char *kiln_example_required(KilnArena *arena, const KilnField *fields, const char *key)
{
    return required(arena, fields, kiln_arena_printf(arena, " %s.", key), "=");
}

/* ---- Files ----------------------------------------------------------------------------- */

static void append_fields(KilnText *text, const KilnField *fields, int indent)
{
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        if (f->renamed != NULL)
            continue;
        kiln_text_printf(text, "%*s%s:", indent, "", f->name);
        if (f->value == NULL && f->type == KILN_TYPE_STRUCT && f->shape == KILN_ONE) {
            kiln_text_char(text, '\n');
            append_fields(text, f->fields, indent + 2);
        } else if (f->value != NULL) {
            kiln_text_printf(text, " %s\n", f->value[0] != '\0' ? f->value : "''");
        } else {
            kiln_text_printf(text, " %s # required: %s\n", "?\?\?", f->help);
        }
    }
}

void kiln_example_file(KilnText *text, const KilnComponent *component, int indent)
{
    kiln_text_printf(text, "%*s_target_: %s/%s\n", indent, "", kiln_kind_name(component->kind),
                     component->name);
    append_fields(text, component->fields, indent);
}

/* ---- Slots ----------------------------------------------------------------------------- */

typedef struct Search {
    KilnArena *arena;
    const KilnComponent *component;
    const char *key;
} Search;

static void visit(void *ctx, const KilnConfigNode *node, const char *path,
                  const KilnComponent *component)
{
    Search *search = ctx;

    if (component == search->component && search->key == NULL && node->parent != NULL &&
        node->parent->kind == KILN_NODE_MAP)
        search->key = kiln_arena_strdup(search->arena, path);
}

/* The option of a component (*ret_owner) that holds a list or mapping of components of the kind,
 * such as a datamodule's transforms; NULL: none. */
static const KilnField *list_for(const KilnRegistry *registry, KilnKind kind,
                                 const KilnComponent **ret_owner)
{
    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *c = kiln_registry_at(registry, i);

        for (const KilnField *f = c->fields; f != NULL && f->type != KILN_TYPE_END; f++)
            if (f->type == KILN_TYPE_COMPONENT && f->component_kind == kind &&
                f->shape != KILN_ONE) {
                *ret_owner = c;
                return f;
            }
    }
    return NULL;
}

/* The option of the top level that holds components of the kind; NULL: none. */
static const KilnField *root_field(const KilnSection *sections, KilnKind kind)
{
    const KilnSection *root = kiln_section_find(sections, "");

    for (const KilnField *f = root != NULL ? root->fields : NULL;
         f != NULL && f->type != KILN_TYPE_END; f++)
        if (f->type == KILN_TYPE_COMPONENT && f->component_kind == kind)
            return f;
    return NULL;
}

/* What a mapping calls the component: its name, or that of its class without the module of Python,
 * in lower case. */
static const char *key_name(KilnArena *arena, const KilnComponent *component)
{
    const char *dot = strrchr(component->name, '.');
    char *key = kiln_arena_strdup(arena, dot != NULL ? dot + 1 : component->name);

    for (char *at = key; at != NULL && *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    return key;
}

/* Where a component of its kind can go. */
static KilnComponentSlot new_slot(KilnArena *arena, const KilnComposeRequest *request,
                                  const KilnComponent *component)
{
    const KilnField *field = root_field(request->sections, component->kind);
    const char *kind = kiln_kind_name(component->kind), *name = component->name;
    const KilnComponent *owner = NULL;
    KilnComponentSlot slot = { 0 }, outer;

    if (field != NULL && field->shape != KILN_ONE) {
        slot.key = kiln_arena_printf(arena, "%s.%s", field->name, key_name(arena, component));
        slot.overrides = kiln_arena_printf(arena, " +%s=%s", slot.key, name);
    } else if (component->kind == KILN_KIND_SWEEPER || component->kind == KILN_KIND_PRUNER ||
               component->kind == KILN_KIND_LAUNCHER) {
        slot.key = kiln_arena_printf(arena, "kiln.%s", kind);
        slot.overrides = kiln_arena_printf(arena, " kiln/%s=%s", kind, name);
    } else if (component->kind == KILN_KIND_SAMPLER || component->kind == KILN_KIND_LOSS ||
               component->kind == KILN_KIND_STRATEGY) {
        /* Every datamodule has a sampler, the default task a loss, the trainer a strategy. */
        slot.key = kiln_arena_printf(arena, "%s.%s",
                                     component->kind == KILN_KIND_LOSS       ? "task"
                                     : component->kind == KILN_KIND_STRATEGY ? "trainer"
                                                                             : "datamodule",
                                     kind);
        slot.overrides = kiln_arena_printf(arena, " %s=%s", slot.key, name);
    } else if (field != NULL ||
               (field = list_for(request->registry, component->kind, &owner)) == NULL) {
        slot.key = field != NULL ? field->name : kind;
        slot.overrides =
            kiln_arena_printf(arena, " %s=%s%s", slot.key, name,
                              kiln_example_companions(arena, request->registry, component));
    } else if (field->shape == KILN_LIST) {
        outer = new_slot(arena, request, owner);
        slot.listed = true;
        slot.key = kiln_arena_printf(arena, "%s.%s", outer.key, field->name);
        slot.overrides =
            kiln_arena_printf(arena, "%s%s '%s=[{_target_: %s/%s%s}]'", outer.overrides,
                              kiln_example_required(arena, owner->fields, outer.key), slot.key,
                              kind, name, required(arena, component->fields, ", ", ": "));
    } else {
        outer = new_slot(arena, request, owner);
        slot.key = kiln_arena_printf(arena, "%s.%s.%s", outer.key, field->name,
                                     key_name(arena, component));
        slot.overrides = kiln_arena_printf(arena, "%s +%s=%s", outer.overrides, slot.key, name);
    }
    return slot;
}

KilnComponentSlot kiln_component_slot_find(KilnArena *arena, const KilnConfig *config,
                                           const KilnComposeRequest *request,
                                           const KilnComponent *component)
{
    Search search = { .arena = arena, .component = component };

    if (config != NULL)
        kiln_selection_visit(config, request->registry, visit, &search);
    if (search.key != NULL)
        return (KilnComponentSlot) { .key = search.key, .overrides = "" };
    return new_slot(arena, request, component);
}
