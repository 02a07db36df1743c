/* Casts of the override grammar: of values, and of what stands for several. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "config/override/functions.h"
#include "config/yaml/scalar.h"

typedef KilnStatus (*Cast)(const KilnFunctionCall *call, const KilnConfigNode *from,
                           KilnConfigNode **ret, KilnError *err);

static KilnStatus result(KilnConfigNode *node, KilnConfigNode **ret, KilnError *err)
{
    *ret = node;
    return node != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*node));
}

static KilnStatus misfit(const KilnFunctionCall *call, const KilnConfigNode *from, const char *type,
                         KilnError *err)
{
    return kiln_call_fail(call, err, "'%s' is no %s", from->text, type);
}

/* The number that a scalar is, or that its text spells. */
static bool number_of(const KilnConfigNode *node, double *ret)
{
    if (node->scalar == KILN_SCALAR_BOOL)
        *ret = strcmp(node->text, "true") == 0;
    else if (node->scalar == KILN_SCALAR_NULL || kiln_parse_f64(node->text, ret, NULL) < 0)
        return false;
    return true;
}

static KilnStatus to_int(const KilnFunctionCall *call, const KilnConfigNode *from,
                         KilnConfigNode **ret, KilnError *err)
{
    const char *text = from->text;
    int64_t whole;
    double number;

    if (from->scalar == KILN_SCALAR_STR && kiln_parse_i64(text, &whole, NULL) < 0)
        return misfit(call, from, "int", err);
    if (from->scalar != KILN_SCALAR_INT) {
        if (!number_of(from, &number) || !(fabs(number) < 9.2e18))
            return misfit(call, from, "int", err);
        text = kiln_arena_printf(call->value->maker.arena, "%lld", (long long)number);
    }
    return result(kiln_node_scalar(&call->value->maker, KILN_SCALAR_INT, text), ret, err);
}

static KilnStatus to_float(const KilnFunctionCall *call, const KilnConfigNode *from,
                           KilnConfigNode **ret, KilnError *err)
{
    char buf[KILN_F64_TEXT];
    double number;

    if (!number_of(from, &number))
        return misfit(call, from, "float", err);
    kiln_format_f64(number, buf, sizeof(buf));
    return result(kiln_node_scalar(&call->value->maker, KILN_SCALAR_FLOAT,
                                   kiln_arena_strdup(call->value->maker.arena, buf)),
                  ret, err);
}

static KilnStatus to_bool(const KilnFunctionCall *call, const KilnConfigNode *from,
                          KilnConfigNode **ret, KilnError *err)
{
    const char *text = NULL;
    double number;
    KilnScalar type = kiln_scalar_value(call->value->maker.arena, from->text, &text);

    if (text == NULL)
        return kiln_error_nomem(err, 1);
    if (from->scalar == KILN_SCALAR_INTERPOLATION ||
        (from->scalar == KILN_SCALAR_STR && type != KILN_SCALAR_BOOL))
        return misfit(call, from, "bool", err);
    if (type != KILN_SCALAR_BOOL)
        text = from->scalar == KILN_SCALAR_NULL || (number_of(from, &number) && number == 0)
                   ? "false"
                   : "true";
    return result(kiln_node_scalar(&call->value->maker, KILN_SCALAR_BOOL, text), ret, err);
}

static KilnStatus to_str(const KilnFunctionCall *call, const KilnConfigNode *from,
                         KilnConfigNode **ret, KilnError *err)
{
    KilnText text = { 0 };
    KilnConfigNode *node = NULL;

    if (from->scalar == KILN_SCALAR_NULL)
        return misfit(call, from, "str", err);
    if (from->scalar == KILN_SCALAR_FLOAT)
        kiln_value_text(from, &text);
    else
        kiln_text_append(&text, from->text);
    if (!text.failed)
        node = kiln_node_string(&call->value->maker, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return result(node, ret, err);
}

/* The whole value as text. */
static KilnStatus to_json(const KilnFunctionCall *call, const KilnConfigNode *from,
                          KilnConfigNode **ret, KilnError *err)
{
    KilnText text = { 0 };
    KilnConfigNode *node = NULL;

    kiln_value_json(from, &text);
    if (!text.failed)
        node = kiln_node_string(&call->value->maker, text.data);
    if (node != NULL)
        node->quote = '\''; /* 1 is text here, also when a sweep writes it */
    kiln_text_release(&text);
    return result(node, ret, err);
}

/* A cast goes into lists and mappings. */
static KilnStatus cast(const KilnFunctionCall *call, Cast to, const KilnConfigNode *from,
                       KilnConfigNode **ret, KilnError *err)
{
    KilnConfigNode *node;
    KilnStatus status = KILN_OK;

    if (from->kind == KILN_NODE_SCALAR || to == to_json)
        return to(call, from, ret, err);
    node = kiln_node_new(&call->value->maker, from->kind);
    if (node == NULL)
        return kiln_error_nomem(err, sizeof(*node));
    for (size_t i = 0; i < from->count && status >= 0; i++) {
        KilnConfigNode *item = NULL;

        status = cast(call, to, from->entries[i].value, &item, err);
        if (status >= 0 && kiln_node_append(call->value->maker.arena, node, from->entries[i].key,
                                            call->value->maker.origin, item) == NULL)
            status = kiln_error_nomem(err, sizeof(KilnEntry));
        else if (status >= 0)
            node->entries[i].key_typed = from->entries[i].key_typed;
    }
    *ret = node;
    return status;
}

/* ---- Sweeps ------------------------------------------------------------------- */

/* A new choice: whether to shuffle is lost, as in Hydra. */
static KilnStatus cast_choice(const KilnFunctionCall *call, Cast to, const KilnSweepValue *from,
                              KilnConfigNode **ret, KilnError *err)
{
    KilnSweepValue *sweep = kiln_sweep_value_new(call->value, KILN_SWEEP_CHOICE, NULL);

    if (sweep == NULL)
        return kiln_error_nomem(err, sizeof(*sweep));
    for (size_t i = 0; i < from->items->count; i++) {
        KilnConfigNode *item = NULL;
        KilnStatus status = cast(call, to, from->items->entries[i].value, &item, err);

        if (status < 0)
            return status;
        if (kiln_node_append(call->value->maker.arena, sweep->items, NULL,
                             call->value->maker.origin, item) == NULL)
            return kiln_error_nomem(err, sizeof(*item));
    }
    sweep->simple = from->simple;
    sweep->zip = from->zip;
    *ret = sweep->items;
    return KILN_OK;
}

static KilnStatus cast_number(const KilnFunctionCall *call, KilnNumber *number, bool real,
                              KilnError *err)
{
    if (!real && number->real) {
        if (!(fabs(number->value) < 9.2e18))
            return kiln_call_fail(call, err, "%g is no int", number->value);
        number->whole = (int64_t)number->value;
        number->value = (double)number->whole;
    }
    number->real = real;
    return KILN_OK;
}

/* The ends and the step are cast, not what lies between. */
static KilnStatus cast_range(const KilnFunctionCall *call, Cast to, const KilnSweepValue *from,
                             KilnConfigNode **ret, KilnError *err)
{
    KilnSweepValue *sweep;
    KilnStatus status;

    if (to != to_int && to != to_float)
        return kiln_call_fail(call, err, "a range can be cast to int and float only");
    sweep = kiln_sweep_value_new(call->value, from->kind, NULL);
    if (sweep == NULL)
        return kiln_error_nomem(err, sizeof(*sweep));
    sweep->start = from->start;
    sweep->stop = from->stop;
    sweep->step = from->step;
    sweep->zip = from->zip;
    status = cast_number(call, &sweep->start, to == to_float, err);
    if (status >= 0)
        status = cast_number(call, &sweep->stop, to == to_float, err);
    if (status >= 0)
        status = cast_number(call, &sweep->step, to == to_float, err);
    *ret = sweep->items;
    return status;
}

static KilnStatus cast_sweep(const KilnFunctionCall *call, Cast to, const KilnSweepValue *from,
                             KilnConfigNode **ret, KilnError *err)
{
    if (from->kind == KILN_SWEEP_CHOICE)
        return cast_choice(call, to, from, ret, err);
    if (from->kind == KILN_SWEEP_GLOB)
        return kiln_call_fail(call, err, "the names of options are text");
    return cast_range(call, to, from, ret, err);
}

static KilnStatus call_cast(const KilnFunctionCall *call, Cast to, KilnConfigNode **ret,
                            KilnError *err)
{
    const KilnConfigNode *from = call->named[0];
    const KilnSweepValue *sweep;

    if ((from != NULL ? 1 : 0) + call->places->count == 0)
        return kiln_call_fail(call, err, "it needs a value");
    if (from != NULL && call->places->count > 0)
        return kiln_call_fail(call, err, "a value is there already in front of value=");
    if (call->places->count > 1) {
        /* int(1,2) sweeps over 1 and 2 */
        KilnSweepValue several = { .kind = KILN_SWEEP_CHOICE,
                                   .items = call->places,
                                   .simple = true };

        for (size_t i = 0; i < call->places->count; i++)
            if (kiln_sweep_value_of(call->value, call->places->entries[i].value) != NULL)
                return kiln_call_fail(call, err, "argument %zu has several values itself", i + 1);
        return cast_choice(call, to, &several, ret, err);
    }
    if (from == NULL)
        from = call->places->entries[0].value;
    sweep = kiln_sweep_value_of(call->value, from);
    return sweep != NULL ? cast_sweep(call, to, sweep, ret, err) : cast(call, to, from, ret, err);
}

KilnStatus kiln_call_bool(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    return call_cast(call, to_bool, ret, err);
}

KilnStatus kiln_call_float(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    return call_cast(call, to_float, ret, err);
}

KilnStatus kiln_call_int(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    return call_cast(call, to_int, ret, err);
}

KilnStatus kiln_call_str(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    return call_cast(call, to_str, ret, err);
}

KilnStatus kiln_call_json_str(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    return call_cast(call, to_json, ret, err);
}
