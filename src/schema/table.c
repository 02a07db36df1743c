/* Self-check of options tables: a wrong row is found when the table is
 * registered, not when somebody uses the option. */
#include "schema/table.h"

#include <math.h>
#include <string.h>

#include "config/node.h"
#include "schema/value.h"

size_t kiln_table_count(const KilnField *fields)
{
    size_t n = 0;

    while (fields != NULL && fields[n].type != KILN_TYPE_END)
        n++;
    return n;
}

const KilnField *kiln_table_find(const KilnField *fields, const char *name)
{
    for (size_t i = 0; fields != NULL && fields[i].type != KILN_TYPE_END; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

bool kiln_is_snake_case(const char *name)
{
    if (name == NULL || name[0] < 'a' || name[0] > 'z')
        return false;
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static KilnStatus bad(KilnError *err, const KilnField *field, const char *what)
{
    return kiln_error_set(err, KILN_E_PLUGIN, "option %s: %s", field->name, what);
}

static size_t member_size(const KilnField *field)
{
    if (field->shape != KILN_ONE)
        return sizeof(void *);
    switch (field->type) {
    case KILN_TYPE_BOOL:
        return sizeof(bool);
    case KILN_TYPE_I64:
    case KILN_TYPE_ENUM:
    case KILN_TYPE_SIZE:
        return sizeof(int64_t);
    case KILN_TYPE_F64:
    case KILN_TYPE_DURATION:
        return sizeof(double);
    default:
        return sizeof(void *);
    }
}

static bool inside(size_t offset, size_t size, size_t total)
{
    return size <= total && offset <= total - size;
}

static KilnStatus check_layout(const KilnField *f, size_t opts_size, KilnError *err)
{
    bool listed = f->type == KILN_TYPE_I64 || f->type == KILN_TYPE_F64 || f->type == KILN_TYPE_STR;
    bool component = f->type == KILN_TYPE_COMPONENT;
    bool text = f->type == KILN_TYPE_STR || f->type == KILN_TYPE_PATH;

    if ((int)f->type < KILN_TYPE_END || f->type > KILN_TYPE_COMPONENT || (int)f->shape < KILN_ONE ||
        f->shape > KILN_MAP)
        return bad(err, f, "its type or shape is none that kiln knows");
    if ((f->shape == KILN_LIST && !listed && !component) || (f->shape == KILN_MAP && !component))
        return bad(err, f, "this type can't be a list or mapping");
    if (f->optional && (f->shape != KILN_ONE || !(text || component)))
        return bad(err, f, "only one text, path or component can be optional");
    if (f->size != member_size(f) || !inside(f->offset, f->size, opts_size))
        return bad(err, f, "its member does not lie within the options struct (opts_size)");
    if (f->shape != KILN_ONE && !inside(f->count_offset, sizeof(size_t), opts_size))
        return bad(err, f, "its count does not lie within the options struct (opts_size)");
    return KILN_OK;
}

static KilnStatus check_limits(const KilnField *f, KilnError *err)
{
    if ((f->type == KILN_TYPE_I64 || f->type == KILN_TYPE_F64) && !(f->min <= f->max))
        return bad(err, f, "its lower bound is above the upper one");
    if (f->type == KILN_TYPE_COMPONENT &&
        ((int)f->component_kind < 0 || f->component_kind >= KILN_KIND_COUNT))
        return bad(err, f, "its kind of component is none that kiln knows");
    if (f->type != KILN_TYPE_ENUM)
        return KILN_OK;
    if (f->choices == NULL || f->choices[0].name == NULL)
        return bad(err, f, "it has no choices");
    for (const KilnChoice *c = f->choices; c->name != NULL; c++)
        for (const KilnChoice *d = f->choices; d != c; d++)
            if (strcmp(c->name, d->name) == 0)
                return bad(err, f, "a choice is there twice");
    return KILN_OK;
}

/* A default may refer to other options; those are checked when it is used. */
static bool refers(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_INTERPOLATION;
}

static KilnStatus check_default_node(const KilnField *f, const KilnConfigNode *node, KilnError *err)
{
    KilnValue value;

    if (refers(node))
        return KILN_OK;
    if (f->shape == KILN_LIST && node->kind != KILN_NODE_LIST)
        return kiln_error_set(err, KILN_E_TYPE, "expected a list");
    if (f->shape == KILN_MAP && node->kind != KILN_NODE_MAP)
        return kiln_error_set(err, KILN_E_TYPE, "expected a mapping");
    if (f->type == KILN_TYPE_COMPONENT) {
        bool null = node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_NULL;

        if (f->shape == KILN_ONE && null && !f->optional)
            return kiln_error_set(err, KILN_E_TYPE, "null is not allowed");
        return KILN_OK;
    }
    if (f->shape == KILN_ONE)
        return kiln_value_read(f, node, &value, err);
    for (size_t i = 0; i < node->count; i++)
        if (!refers(node->entries[i].value)) {
            KilnStatus status = kiln_value_read(f, node->entries[i].value, &value, err);
            if (status < 0)
                return status;
        }
    return KILN_OK;
}

static KilnStatus check_default(const KilnField *f, KilnError *err)
{
    KilnArena arena = { 0 };
    KilnConfigNode *node;
    KilnError inner = { 0 };

    if (f->value == NULL)
        return KILN_OK;
    KilnStatus status = kiln_node_parse(&arena, f->value, "default", &node, &inner);
    if (status == KILN_OK)
        status = check_default_node(f, node, &inner);
    if (status < 0 && status != KILN_E_NOMEM)
        status = kiln_error_set(err, KILN_E_PLUGIN, "option %s: its default %s: %.1500s", f->name,
                                f->value, inner.text);
    else if (status < 0 && err != NULL)
        *err = inner;
    kiln_arena_release(&arena);
    return status;
}

KilnStatus kiln_table_check(const KilnField *fields, size_t opts_size, KilnError *err)
{
    for (size_t i = 0; fields != NULL && fields[i].type != KILN_TYPE_END; i++) {
        const KilnField *f = &fields[i];
        KilnStatus status;

        if (i == KILN_MAX_FIELDS)
            return kiln_error_set(err, KILN_E_PLUGIN, "more than %d options, or no KILN_FIELD_END",
                                  KILN_MAX_FIELDS);
        if (!kiln_is_snake_case(f->name))
            return kiln_error_set(err, KILN_E_PLUGIN, "option %zu: its name '%s' is not snake_case",
                                  i + 1, f->name != NULL ? f->name : "");
        if (kiln_table_find(fields, f->name) != f)
            return bad(err, f, "it is there twice");
        if (f->help == NULL || f->help[0] == '\0')
            return bad(err, f, "it has no help text");
        status = check_layout(f, opts_size, err);
        if (status == KILN_OK)
            status = check_limits(f, err);
        if (status == KILN_OK)
            status = check_default(f, err);
        if (status < 0)
            return status;
    }
    return KILN_OK;
}
