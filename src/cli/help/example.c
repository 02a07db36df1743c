/* Makes examples from options tables. All of them compose (tests/cli/help/test_show.py). */
#include "cli/help/example.h"

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
static bool other_number(KilnText *text, const KilnField *field)
{
    char digits[KILN_BOUND_TEXT];
    double now = 0;
    bool known = field->value != NULL && kiln_parse_f64(field->value, &now, NULL) >= 0 && now > 0;
    bool whole = field->type == KILN_TYPE_I64 || field->type == KILN_TYPE_SIZE;
    double odd = known && whole && fmod(now, 2) == 1 ? now + 2 : NAN;
    const double tries[] = {
        odd, known ? now * 2 : NAN, known ? now / 2 : NAN, 0.1, 10, 100, 2, 1, 0.5, 0
    };

    for (size_t i = 0; i < KILN_COUNT(tries); i++)
        if (in_range(field, tries[i]) && tries[i] != now &&
            (!whole || floor(tries[i]) == tries[i])) {
            kiln_text_append(text, kiln_value_bound(tries[i], digits));
            return true;
        }
    return false;
}

static bool other_choice(KilnText *text, const KilnField *field)
{
    for (const KilnChoice *c = field->choices; c->name != NULL; c++)
        if (field->value == NULL || strcmp(c->name, field->value) != 0) {
            kiln_text_append(text, c->name);
            return true;
        }
    return false;
}

bool kiln_example_value(KilnText *text, const KilnField *field)
{
    if (field->shape != KILN_ONE || field->renamed != NULL)
        return false;
    switch (field->type) {
    case KILN_TYPE_BOOL:
        kiln_text_append(text, field->value != NULL && strcmp(field->value, "true") == 0 ? "false"
                                                                                         : "true");
        return true;
    case KILN_TYPE_ENUM:
        return other_choice(text, field);
    case KILN_TYPE_I64:
    case KILN_TYPE_F64:
        return other_number(text, field);
    case KILN_TYPE_DURATION:
        kiln_text_append(text, "90s");
        return in_range(field, 90);
    case KILN_TYPE_QUANTITY:
        kiln_text_append(text, (field->allowed & KILN_ALLOW_COUNT) != 0      ? "2"
                               : (field->allowed & KILN_ALLOW_FRACTION) != 0 ? "0.5"
                                                                             : "90s");
        return true;
    case KILN_TYPE_SIZE:
        kiln_text_append(text, "64MiB");
        return in_range(field, 0x1p26);
    default:
        return false;
    }
}

const KilnField *kiln_example_field(const KilnField *fields)
{
    KilnText value = { 0 };
    const KilnField *found = NULL;

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END && found == NULL; f++)
        if (f->value != NULL && kiln_example_value(&value, f))
            found = f;
    kiln_text_release(&value);
    return found;
}

/* Append a placeholder for a value of the user's. Keys of a mapping of numbers are numbers, such as
 * epochs. */
static void placeholder(KilnText *text, const KilnField *field)
{
    KilnField item = *field;
    KilnText value = { 0 };

    item.shape = KILN_ONE;
    if (field->shape == KILN_MAPPING) {
        const bool known = kiln_example_value(&value, &item) && !value.failed;

        kiln_text_printf(text, "{%s%s}", known ? "0:" : "", known ? value.data : "");
        kiln_text_release(&value);
        return;
    }
    kiln_text_append(text, field->shape == KILN_LIST ? "[" : "");
    if (field->type == KILN_TYPE_PATH)
        kiln_text_append(text, "DIR");
    else if (!kiln_example_value(text, &item))
        kiln_text_append(text, "VALUE");
    kiln_text_append(text, field->shape == KILN_LIST ? "]" : "");
}

static void append_required(KilnText *text, const KilnField *fields, const char *before,
                            const char *equals)
{
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++)
        if (f->value == NULL && f->renamed == NULL && f->type != KILN_TYPE_STRUCT &&
            f->type != KILN_TYPE_COMPONENT) {
            kiln_text_printf(text, "%s%s%s", before, f->name, equals);
            placeholder(text, f);
        }
}

void kiln_example_required(KilnText *text, const KilnField *fields, const char *key)
{
    KilnText before = { 0 };

    kiln_text_printf(&before, " %s.", key);
    if (before.failed)
        text->failed = true;
    else
        append_required(text, fields, before.data, "=");
    kiln_text_release(&before);
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
    const KilnComponent *component;
    KilnText *key;
} Search;

static void visit(void *ctx, const KilnConfigNode *node, const char *path,
                  const KilnComponent *component)
{
    const Search *search = ctx;

    if (component == search->component && search->key->length == 0 && node->parent != NULL &&
        node->parent->kind == KILN_NODE_MAP)
        kiln_text_append(search->key, path);
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
static const KilnField *root_row(const KilnSection *sections, KilnKind kind)
{
    const KilnSection *root = kiln_section_find(sections, "");

    for (const KilnField *f = root != NULL ? root->fields : NULL;
         f != NULL && f->type != KILN_TYPE_END; f++)
        if (f->type == KILN_TYPE_COMPONENT && f->component_kind == kind)
            return f;
    return NULL;
}

static void slot_new(const KilnRegistry *registry, const KilnSection *sections,
                     const KilnComponent *component, KilnComponentSlot *ret);

/* A slot in the list or mapping `list` of another component. */
static void slot_within(const KilnRegistry *registry, const KilnSection *sections,
                        const KilnComponent *component, const KilnComponent *owner,
                        const KilnField *list, KilnComponentSlot *ret)
{
    const char *kind = kiln_kind_name(component->kind), *name = component->name;
    KilnComponentSlot outer = { 0 };

    slot_new(registry, sections, owner, &outer);
    kiln_text_printf(&ret->key, "%s.%s", outer.key.data, list->name);
    ret->listed = list->shape == KILN_LIST;
    if (ret->listed) {
        kiln_text_append(&ret->overrides, outer.overrides.data);
        kiln_example_required(&ret->overrides, owner->fields, outer.key.data);
        kiln_text_printf(&ret->overrides, " '%s=[{_target_: %s/%s", ret->key.data, kind, name);
        append_required(&ret->overrides, component->fields, ", ", ": ");
        kiln_text_append(&ret->overrides, "}]'");
    } else {
        kiln_text_printf(&ret->key, ".%s", name);
        kiln_text_printf(&ret->overrides, "%s +%s=%s", outer.overrides.data, ret->key.data, name);
    }
    kiln_component_slot_release(&outer);
}

static void slot_new(const KilnRegistry *registry, const KilnSection *sections,
                     const KilnComponent *component, KilnComponentSlot *ret)
{
    const KilnField *row = root_row(sections, component->kind);
    const char *kind = kiln_kind_name(component->kind), *name = component->name;
    const KilnComponent *owner = NULL;
    const KilnField *list = list_for(registry, component->kind, &owner);

    if (row != NULL && row->shape != KILN_ONE) {
        kiln_text_printf(&ret->key, "%s.%s", row->name, name);
        kiln_text_printf(&ret->overrides, " +%s.%s=%s", row->name, name, name);
    } else if (row != NULL) {
        kiln_text_append(&ret->key, row->name);
        kiln_text_printf(&ret->overrides, " %s=%s", row->name, name);
    } else if (component->kind == KILN_KIND_SWEEPER || component->kind == KILN_KIND_LAUNCHER) {
        kiln_text_printf(&ret->key, "kiln.%s", kind);
        kiln_text_printf(&ret->overrides, " kiln/%s=%s", kind, name);
    } else if (component->kind == KILN_KIND_SAMPLER) { /* any datamodule has one */
        kiln_text_printf(&ret->key, "datamodule.%s", kind);
        kiln_text_printf(&ret->overrides, " datamodule.%s._target_=%s/%s", kind, kind, name);
    } else if (list != NULL) {
        slot_within(registry, sections, component, owner, list, ret);
    } else {
        kiln_text_append(&ret->key, kind);
        kiln_text_printf(&ret->overrides, " %s=%s", kind, name);
    }
}

void kiln_component_slot_find(const KilnConfig *config, const KilnRegistry *registry,
                              const KilnSection *sections, const KilnComponent *component,
                              KilnComponentSlot *ret)
{
    Search search = { .component = component, .key = &ret->key };

    if (config != NULL)
        kiln_selection_visit(config, registry, visit, &search);
    if (ret->key.length == 0)
        slot_new(registry, sections, component, ret);
    else
        kiln_text_append(&ret->overrides, "");
}

void kiln_component_slot_release(KilnComponentSlot *slot)
{
    kiln_text_release(&slot->key);
    kiln_text_release(&slot->overrides);
}
