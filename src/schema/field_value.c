/* Reads a scalar as the value of an option; errors say what was expected, and what to write. */
#include "schema/field_value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "config/yaml/scalar.h"
#include "schema/table.h"

void kiln_value_got(const KilnConfigNode *node, char *buf, size_t size)
{
    const char *text = node->text != NULL ? node->text : "";
    bool longer = strlen(text) > 60;
    int shown = 60;

    if (node->kind != KILN_NODE_SCALAR) {
        snprintf(buf, size, "%s", node->kind == KILN_NODE_MAP ? "a mapping" : "a list");
    } else if (node->scalar == KILN_SCALAR_NULL) {
        snprintf(buf, size, "null");
    } else if (node->scalar == KILN_SCALAR_STR) {
        while (longer && shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80)
            shown--; /* not in the middle of a character */
        snprintf(buf, size, "\"%.*s%s\"", longer ? shown : 60, text, longer ? "..." : "");
    } else {
        snprintf(buf, size, "%.60s", text);
    }
}

const char *kiln_value_kind(KilnKind kind)
{
    static const char *const texts[KILN_KIND_COUNT + 1] = {
#define TEXT(name, text) [KILN_KIND_##name] = "a " text,
        KILN_KIND_TABLE(TEXT)
#undef TEXT
            [KILN_KIND_COUNT] = "a component",
    };

    return kind == KILN_KIND_OPTIMIZER ? "an optimizer" : texts[kind];
}

const char *kiln_value_bound(double bound, char buf[KILN_BOUND_TEXT])
{
    bool whole = fabs(bound) < 1e18 && floor(bound) == bound;

    snprintf(buf, KILN_BOUND_TEXT, whole ? "%.0f" : "%.15g", bound);
    return buf;
}

static void expected_bounds(KilnText *text, double min, double max)
{
    char low[KILN_BOUND_TEXT], high[KILN_BOUND_TEXT];

    kiln_value_bound(min, low);
    kiln_value_bound(max, high);
    if (!isinf(min) && !isinf(max))
        kiln_text_printf(text, " from %s to %s", low, high);
    else if (!isinf(min))
        kiln_text_printf(text, " of at least %s", low);
    else if (!isinf(max))
        kiln_text_printf(text, " of at most %s", high);
}

/* "a count (3), a fraction from 0.0 to 1.0 (0.25) or a duration (90s, 1h30m, 00:15:00)" */
static void expected_quantity(KilnText *text, unsigned allowed)
{
    for (size_t i = 0; i < KILN_QUANTITY_FORMS; i++) {
        const KilnQuantityForm *form = &kiln_quantity_forms[i];

        if ((allowed & form->allowed) == 0)
            continue;
        allowed &= ~form->allowed;
        kiln_text_printf(text, "%s%s", form->one,
                         allowed == 0                     ? ""
                         : (allowed & (allowed - 1)) == 0 ? " or "
                                                          : ", ");
    }
}

/* Append what a value must be: "an integer from 1 to 8", "one of min, max". */
static void expected_one(KilnText *text, const KilnField *field)
{
    const KilnTypeInfo *info = kiln_type_info(field->type);

    if (info->one != NULL)
        kiln_text_append(text, info->one);
    if (info->bounded)
        expected_bounds(text, field->min, field->max);
    if (field->type == KILN_TYPE_QUANTITY)
        expected_quantity(text, field->allowed);
    if (field->type == KILN_TYPE_ENUM)
        for (const KilnChoice *c = field->choices; c->name != NULL; c++)
            kiln_text_printf(text, "%s%s", c == field->choices ? "one of " : ", ", c->name);
    if (field->type == KILN_TYPE_COMPONENT)
        kiln_text_printf(text, "%s (a name, or a mapping with _target_)",
                         kiln_value_kind(field->component_kind));
}

/* The same of all values: "a list of integers". */
static void expected_value(KilnText *text, const KilnField *field)
{
    const char *of = field->shape == KILN_MAPPING ? "a mapping of" : "a list of";

    if (field->shape == KILN_ONE)
        expected_one(text, field);
    else if (field->type == KILN_TYPE_COMPONENT)
        kiln_text_printf(text, "%s %ss", of, kiln_kind_name(field->component_kind));
    else
        kiln_text_printf(text, "%s %s", of, kiln_type_info(field->type)->many);
    kiln_text_append(text, field->optional ? " or null" : "");
}

/* ---- What to write instead -------------------------------------------------------- */

enum { HINT_TEXT = 160 };

/* Was the node composed from text with ${...}? Then it is nowhere in the tree. */
static bool is_composed(const KilnConfigNode *node)
{
    for (size_t i = 0; node->parent != NULL && i < node->parent->count; i++)
        if (node->parent->entries[i].value == node)
            return false;
    return node->parent != NULL;
}

static bool reads_as(KilnType type, const char *text)
{
    int64_t integer;
    double number;

    switch (type) {
    case KILN_TYPE_BOOL:
        return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    case KILN_TYPE_I64:
        return kiln_parse_i64(text, &integer, NULL) >= 0;
    case KILN_TYPE_F64:
        return kiln_parse_f64(text, &number, NULL) >= 0;
    default:
        return false;
    }
}

/* The boolean that a text probably means; NULL: none. */
static const char *meant_boolean(const char *text)
{
    static const char *const words[] = { "true", "yes", "on", "false", "no", "off" };
    char first[8];
    size_t n = strcspn(text, " ,.;");
    const char *near;

    if (n >= sizeof(first))
        return NULL;
    for (size_t i = 0; i < n; i++)
        first[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + ('a' - 'A')) : text[i];
    first[n] = '\0';
    near = kiln_nearest(first, words, KILN_COUNT(words));
    for (size_t i = 0; near != NULL && i < KILN_COUNT(words); i++)
        if (strcmp(near, words[i]) == 0)
            return i < 3 ? "true" : "false";
    return NULL;
}

/* For text where a bool or number is expected. */
static void hint_text(const KilnField *field, const KilnConfigNode *node, char hint[HINT_TEXT])
{
    const char *boolean;

    if (reads_as(field->type, node->text)) {
        if (is_composed(node))
            snprintf(hint, HINT_TEXT,
                     "; a value composed from ${...} is text, "
                     "${oc.decode:...} around it converts it");
        else if (node->quoted)
            snprintf(hint, HINT_TEXT, "; it is text because of the quotes, write %.40s",
                     node->text);
        return;
    }
    boolean = field->type == KILN_TYPE_BOOL ? meant_boolean(node->text) : NULL;
    if (boolean != NULL)
        snprintf(hint, HINT_TEXT, "; write %s", boolean);
}

/* For 1e3 and 3.0 where an integer is expected. */
static void hint_float(const KilnConfigNode *node, char hint[HINT_TEXT])
{
    double value;

    if (kiln_parse_f64(node->text, &value, NULL) >= 0 && fabs(value) < 0x1p53 &&
        floor(value) == value)
        snprintf(hint, HINT_TEXT, "; write %.0f", value);
}

static void hint_for(const KilnField *field, const KilnConfigNode *node, char hint[HINT_TEXT])
{
    hint[0] = '\0';
    if (node->kind != KILN_NODE_SCALAR || field->shape != KILN_ONE)
        return;
    if (node->scalar == KILN_SCALAR_STR)
        hint_text(field, node, hint);
    else if (node->scalar == KILN_SCALAR_FLOAT && field->type == KILN_TYPE_I64)
        hint_float(node, hint);
    else if (node->scalar == KILN_SCALAR_INT && field->type == KILN_TYPE_BOOL &&
             (strcmp(node->text, "0") == 0 || strcmp(node->text, "1") == 0))
        snprintf(hint, HINT_TEXT, "; write %s", node->text[0] == '1' ? "true" : "false");
}

/* "expected ..., got ..."; without bounds where the type is wrong. */
static KilnStatus refuse(const KilnField *field, const KilnConfigNode *node, KilnStatus status,
                         const char *hint, KilnError *err)
{
    KilnField plain = *field;
    KilnText text = { 0 };
    char got[KILN_GOT_TEXT], own[HINT_TEXT];

    if (status == KILN_E_TYPE) {
        plain.min = -(double)INFINITY;
        plain.max = (double)INFINITY;
    }
    hint_for(field, node, own);
    expected_value(&text, &plain);
    kiln_value_got(node, got, sizeof(got));
    if (text.failed)
        status = kiln_error_nomem(err, 0);
    else
        kiln_error_set(err, status, "expected %s, got %s%s%s", text.data, got, own, hint);
    kiln_text_release(&text);
    return status;
}

/* True for yes-words; the text is a YAML 1.1 boolean. */
static bool truth(const char *text)
{
    return strcasecmp(text, "true") == 0 || strcasecmp(text, "yes") == 0 ||
           strcasecmp(text, "on") == 0;
}

static KilnStatus read_bool(const KilnField *field, const KilnConfigNode *node, KilnValue *ret,
                            KilnError *err)
{
    ret->boolean = truth(node->text);
    return node->scalar == KILN_SCALAR_BOOL ? KILN_OK : refuse(field, node, KILN_E_TYPE, "", err);
}

/* A value with bounds. */
static KilnStatus read_number(const KilnField *field, const KilnConfigNode *node, KilnValue *ret,
                              KilnError *err)
{
    const bool with_unit = field->type == KILN_TYPE_DURATION || field->type == KILN_TYPE_SIZE;
    KilnStatus status;
    double value;

    if (node->scalar != KILN_SCALAR_INT &&
        (node->scalar != KILN_SCALAR_FLOAT || field->type == KILN_TYPE_I64) &&
        (node->scalar != KILN_SCALAR_STR || !with_unit))
        return refuse(field, node, KILN_E_TYPE, "", err);
    if (field->type == KILN_TYPE_DURATION)
        status = kiln_parse_duration(node->text, &ret->number, NULL) < 0 ? KILN_E_TYPE : KILN_OK;
    else if (field->type == KILN_TYPE_SIZE)
        status = kiln_parse_size(node->text, &ret->integer, NULL);
    else if (field->type == KILN_TYPE_I64)
        status = kiln_parse_i64(node->text, &ret->integer, NULL) < 0 ? KILN_E_RANGE : KILN_OK;
    else
        status = kiln_parse_f64(node->text, &ret->number, NULL) < 0 ? KILN_E_RANGE : KILN_OK;
    value = field->type == KILN_TYPE_I64 || field->type == KILN_TYPE_SIZE ? (double)ret->integer
                                                                          : ret->number;
    if (status == KILN_OK && !(value >= field->min && value <= field->max))
        status = KILN_E_RANGE;
    return status < 0 ? refuse(field, node, status, "", err) : KILN_OK;
}

/* One number for height and width. */
static KilnStatus read_side(const KilnField *field, const KilnConfigNode *node, KilnValue *ret,
                            KilnError *err)
{
    KilnField side = *field;

    side.type = KILN_TYPE_I64;
    const KilnStatus status = read_number(&side, node, ret, NULL);
    return status < 0 ? refuse(field, node, status, "", err) : KILN_OK;
}

/* The form decides: 1 is a count and 1.0 a fraction, as in Lightning's options. */
static KilnStatus read_quantity(const KilnField *field, const KilnConfigNode *node, KilnValue *ret,
                                KilnError *err)
{
    static const unsigned allowed[] = { [KILN_QUANTITY_COUNT] = KILN_ALLOW_COUNT,
                                        [KILN_QUANTITY_FRACTION] = KILN_ALLOW_FRACTION,
                                        [KILN_QUANTITY_DURATION] = KILN_ALLOW_DURATION };
    KilnValue value = { 0 };
    int64_t count = 0;
    bool good = true;

    if (node->scalar == KILN_SCALAR_BOOL && (field->allowed & KILN_ALLOW_BOOL) != 0) {
        ret->number = truth(node->text) ? 1.0 : 0.0;
        return KILN_OK;
    }
    if (node->scalar == KILN_SCALAR_INT) {
        value.integer = KILN_QUANTITY_COUNT;
        good = kiln_parse_i64(node->text, &count, NULL) >= 0 && count >= 0;
        value.number = (double)count;
    } else if (node->scalar == KILN_SCALAR_FLOAT) {
        value.integer = KILN_QUANTITY_FRACTION;
        good = kiln_parse_f64(node->text, &value.number, NULL) >= 0 && value.number >= 0.0 &&
               value.number <= 1.0;
    } else {
        value.integer = KILN_QUANTITY_DURATION;
        if (node->scalar != KILN_SCALAR_STR || reads_as(KILN_TYPE_F64, node->text) ||
            kiln_parse_duration(node->text, &value.number, NULL) < 0)
            return refuse(field, node, KILN_E_TYPE, "", err);
    }
    if ((field->allowed & allowed[value.integer]) == 0)
        return refuse(field, node, KILN_E_TYPE, "", err);
    if (!good)
        return refuse(field, node, KILN_E_RANGE, "", err);
    *ret = value;
    return KILN_OK;
}

int64_t kiln_quantity_of(KilnQuantity quantity, int64_t total)
{
    if (quantity.of == KILN_QUANTITY_DURATION)
        return -1;
    if (quantity.of == KILN_QUANTITY_FRACTION)
        return (int64_t)((double)total * quantity.value);
    return quantity.value < (double)total ? (int64_t)quantity.value : total;
}

static KilnStatus read_choice(const KilnField *field, const KilnConfigNode *node, KilnValue *ret,
                              KilnError *err)
{
    const char *names[64], *near;
    char hint[96] = "";
    size_t n = 0;

    for (const KilnChoice *c = field->choices; c->name != NULL; c++) {
        if (strcmp(c->name, node->text) == 0) {
            ret->integer = c->value;
            return KILN_OK;
        }
        if (n < KILN_COUNT(names))
            names[n++] = c->name;
    }
    near = kiln_nearest(node->text, names, n);
    if (near != NULL)
        snprintf(hint, sizeof(hint), "; did you mean \"%s\"?", near);
    return refuse(field, node, KILN_E_RANGE, hint, err);
}

static KilnStatus read_text(const KilnField *field, const KilnConfigNode *node, KilnValue *ret,
                            KilnError *err)
{
    if (!kiln_text_is_utf8(node->text, strlen(node->text)))
        return refuse(field, node, KILN_E_TYPE, " (not valid UTF-8)", err);
    ret->text = node->text;
    return KILN_OK;
}

/* By type; NULL: no scalar is such a value. */
static KilnStatus (*const readers[KILN_TYPE_COUNT])(const KilnField *field,
                                                    const KilnConfigNode *node, KilnValue *ret,
                                                    KilnError *err) = {
    [KILN_TYPE_BOOL] = read_bool,         [KILN_TYPE_I64] = read_number,
    [KILN_TYPE_F64] = read_number,        [KILN_TYPE_STR] = read_text,
    [KILN_TYPE_PATH] = read_text,         [KILN_TYPE_ENUM] = read_choice,
    [KILN_TYPE_DURATION] = read_number,   [KILN_TYPE_SIZE] = read_number,
    [KILN_TYPE_QUANTITY] = read_quantity, [KILN_TYPE_IMAGE_SIZE] = read_side,
};

KilnStatus kiln_value_read(const KilnField *field, const KilnConfigNode *node, KilnValue *ret,
                           KilnError *err)
{
    const bool null = kiln_node_is_scalar(node, KILN_SCALAR_NULL);
    KilnValue value = { 0 };
    KilnStatus status = KILN_OK;

    if (kiln_node_is_scalar(node, KILN_SCALAR_MISSING))
        return kiln_error_set(err, KILN_E_MISSING, "required value missing (%s)", field->help);
    if (!null || !field->optional)
        status = node->kind != KILN_NODE_SCALAR || null || field->shape != KILN_ONE ||
                         node->scalar == KILN_SCALAR_INTERPOLATION || readers[field->type] == NULL
                     ? refuse(field, node, KILN_E_TYPE, "", err)
                     : readers[field->type](field, node, &value, err);
    if (status == KILN_OK)
        *ret = value;
    return status;
}
