/* Writes an options table as aligned lines. */
#include "schema/help.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schema/value.h"

static const char *type_name(const KilnField *field)
{
    switch (field->type) {
    case KILN_TYPE_BOOL:
        return "bool";
    case KILN_TYPE_I64:
        return "int";
    case KILN_TYPE_F64:
        return "float";
    case KILN_TYPE_PATH:
        return "path";
    case KILN_TYPE_DURATION:
        return "duration";
    case KILN_TYPE_SIZE:
        return "size";
    case KILN_TYPE_COMPONENT:
        return kiln_kind_name(field->component_kind);
    default:
        return "text";
    }
}

static void describe_range(KilnText *text, const KilnField *f)
{
    char low[KILN_BOUND_TEXT], high[KILN_BOUND_TEXT];

    kiln_value_bound(f->min, low);
    kiln_value_bound(f->max, high);
    if (!isinf(f->min) && !isinf(f->max))
        kiln_text_printf(text, " %s..%s", low, high);
    else if (!isinf(f->min))
        kiln_text_printf(text, " >= %s", low);
    else if (!isinf(f->max))
        kiln_text_printf(text, " <= %s", high);
}

/* "list of int >= 1", "min|max", "float 0..1", "path or null". */
static void describe(KilnText *text, const KilnField *f)
{
    if (f->shape != KILN_ONE)
        kiln_text_append(text, f->shape == KILN_LIST ? "list of " : "map of ");
    if (f->type == KILN_TYPE_ENUM) {
        for (const KilnChoice *c = f->choices; c->name != NULL; c++)
            kiln_text_printf(text, "%s%s", c == f->choices ? "" : "|", c->name);
    } else {
        kiln_text_append(text, type_name(f));
    }
    if (f->type == KILN_TYPE_I64 || f->type == KILN_TYPE_F64)
        describe_range(text, f);
    if (f->optional)
        kiln_text_append(text, " or null");
}

static const char *default_text(const KilnField *field)
{
    return field->value != NULL ? field->value : "required";
}

static size_t greater(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* A column that would be wider than this does not set the width for the others. */
enum { WIDEST = 28 };

static size_t widen(size_t width, size_t length)
{
    return length <= WIDEST ? greater(width, length) : width;
}

void kiln_help_table(KilnText *text, const KilnField *fields, const char *prefix, int indent)
{
    size_t name = 0, type = 0, value = 0;
    KilnText what = { 0 };

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        kiln_text_clear(&what);
        describe(&what, f);
        name = widen(name, strlen(prefix) + strlen(f->name));
        type = widen(type, what.length);
        value = widen(value, strlen(default_text(f)));
    }
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        size_t start = strlen(prefix) + strlen(f->name);

        kiln_text_clear(&what);
        describe(&what, f);
        if (what.failed) {
            text->failed = true;
            break;
        }
        kiln_text_printf(text, "%*s%s%s%*s", indent, "", prefix, f->name,
                         (int)(greater(name, start) - start), "");
        kiln_text_printf(text, "  %-*s  %-*s  %s\n", (int)type, what.data, (int)value,
                         default_text(f), f->help);
    }
    kiln_text_release(&what);
}
