/* The casts bool(), float(), int(), json_str() and str(), of values and of sweeps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "config/override/functions.h"
#include "config/yaml/scalar.h"

typedef KilnStatus Cast(const KilnFunctionCall *call, const KilnConfigNode *from,
                        KilnConfigNode **ret);

static KilnStatus result(const KilnFunctionCall *call, KilnConfigNode *node, KilnConfigNode **ret)
{
    *ret = node;
    return node != NULL ? KILN_OK : kiln_error_nomem(call->parser->err, sizeof(*node));
}

static KilnStatus misfit(const KilnFunctionCall *call, const KilnConfigNode *from)
{
    return kiln_function_fail(call, "'%s' is not a valid %s", from->text, call->name);
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
                         KilnConfigNode **ret)
{
    const KilnMaker *maker = &call->parser->maker;
    KilnNumber number = { 0 };

    if (from->scalar == KILN_SCALAR_INT)
        return result(call, kiln_node_scalar(maker, KILN_SCALAR_INT, from->text), ret);
    if ((from->scalar == KILN_SCALAR_STR && kiln_parse_i64(from->text, &number.whole, NULL) < 0) ||
        !number_of(from, &number.value) || !(fabs(number.value) < 9.2e18))
        return misfit(call, from);
    number.whole = (int64_t)number.value;
    return result(call, kiln_number_node(maker, &number), ret);
}

static KilnStatus to_float(const KilnFunctionCall *call, const KilnConfigNode *from,
                           KilnConfigNode **ret)
{
    KilnNumber number = { .real = true };

    if (!number_of(from, &number.value))
        return misfit(call, from);
    return result(call, kiln_number_node(&call->parser->maker, &number), ret);
}

static KilnStatus to_bool(const KilnFunctionCall *call, const KilnConfigNode *from,
                          KilnConfigNode **ret)
{
    const char *text = NULL;
    double number;
    KilnScalar type = kiln_scalar_value(call->parser->maker.arena, from->text, &text);

    if (text == NULL)
        return kiln_error_nomem(call->parser->err, 1);
    if (from->scalar == KILN_SCALAR_INTERPOLATION ||
        (from->scalar == KILN_SCALAR_STR && type != KILN_SCALAR_BOOL))
        return misfit(call, from);
    if (type != KILN_SCALAR_BOOL)
        text = from->scalar == KILN_SCALAR_NULL || (number_of(from, &number) && number == 0)
                   ? "false"
                   : "true";
    return result(call, kiln_node_scalar(&call->parser->maker, KILN_SCALAR_BOOL, text), ret);
}

static KilnStatus to_str(const KilnFunctionCall *call, const KilnConfigNode *from,
                         KilnConfigNode **ret)
{
    KilnText text = { 0 };
    KilnConfigNode *node = NULL;

    if (from->scalar == KILN_SCALAR_NULL)
        return misfit(call, from);
    if (from->scalar == KILN_SCALAR_FLOAT)
        kiln_value_text(from, &text);
    else
        kiln_text_append(&text, from->text);
    if (!text.failed)
        node = kiln_node_string(&call->parser->maker, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return result(call, node, ret);
}

/* The whole value as text. */
static KilnStatus to_json(const KilnFunctionCall *call, const KilnConfigNode *from,
                          KilnConfigNode **ret)
{
    KilnText text = { 0 };
    KilnConfigNode *node = NULL;

    kiln_value_json(from, &text);
    if (!text.failed)
        node = kiln_node_string(&call->parser->maker, text.data);
    if (node != NULL)
        node->quote = '\''; /* 1 is text here, also when a sweep writes it */
    kiln_text_release(&text);
    return result(call, node, ret);
}

static KilnStatus cast_items(const KilnFunctionCall *call, Cast *to, const KilnConfigNode *from,
                             KilnConfigNode *into);

/* Casts the items of lists and mappings. */
static KilnStatus cast(const KilnFunctionCall *call, Cast *to, const KilnConfigNode *from,
                       KilnConfigNode **ret)
{
    if (from->kind == KILN_NODE_SCALAR || to == to_json)
        return to(call, from, ret);
    *ret = kiln_node_new(&call->parser->maker, from->kind);
    return *ret != NULL ? cast_items(call, to, from, *ret)
                        : kiln_error_nomem(call->parser->err, sizeof(**ret));
}

static KilnStatus cast_items(const KilnFunctionCall *call, Cast *to, const KilnConfigNode *from,
                             KilnConfigNode *into)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < from->count && status >= 0; i++) {
        KilnConfigNode *item = NULL;

        status = cast(call, to, from->entries[i].value, &item);
        if (status >= 0)
            status = kiln_value_append(call->parser, into, from->entries[i].key, item);
        if (status >= 0)
            into->entries[i].key_typed = from->entries[i].key_typed;
    }
    return status;
}

/* ---- Sweeps ------------------------------------------------------------------- */

/* A new choice, which like Hydra's does not shuffle. */
static KilnStatus cast_choice(const KilnFunctionCall *call, Cast *to, const KilnSweepValue *from,
                              KilnConfigNode **ret)
{
    KilnSweepValue *sweep = kiln_sweep_value_new(call->parser, KILN_SWEEP_CHOICE, NULL);

    if (sweep == NULL)
        return kiln_error_nomem(call->parser->err, sizeof(*sweep));
    sweep->simple = from->simple;
    sweep->zip = from->zip;
    *ret = sweep->items;
    return cast_items(call, to, from->items, sweep->items);
}

static KilnStatus cast_number(const KilnFunctionCall *call, KilnNumber *number, bool real)
{
    if (!real && number->real) {
        if (!(fabs(number->value) < 9.2e18))
            return kiln_function_fail(call, "%g is not a valid int", number->value);
        number->whole = (int64_t)number->value;
        number->value = (double)number->whole;
    }
    number->real = real;
    return KILN_OK;
}

/* Casts the bounds and the step, not the values between. */
static KilnStatus cast_range(const KilnFunctionCall *call, Cast *to, const KilnSweepValue *from,
                             KilnConfigNode **ret)
{
    KilnSweepValue *sweep;
    KilnStatus status = KILN_OK;

    if (to != to_int && to != to_float)
        return kiln_function_fail(call, "a range can be cast to int and float only");
    sweep = kiln_sweep_value_new(call->parser, from->kind, NULL);
    if (sweep == NULL)
        return kiln_error_nomem(call->parser->err, sizeof(*sweep));
    sweep->start = from->start;
    sweep->stop = from->stop;
    sweep->step = from->step;
    sweep->zip = from->zip;
    KilnNumber *numbers[] = { &sweep->start, &sweep->stop, &sweep->step };
    for (size_t i = 0; i < KILN_COUNT(numbers) && status >= 0; i++)
        status = cast_number(call, numbers[i], to == to_float);
    *ret = sweep->items;
    return status;
}

/* ---- Calls ---------------------------------------------------------------------- */

static Cast *cast_of(const char *name)
{
    static const struct {
        const char *name;
        Cast *to;
    } casts[] = {
        { "bool", to_bool }, { "float", to_float }, { "int", to_int }, { "str", to_str }
    };

    for (size_t i = 0; i < KILN_COUNT(casts); i++)
        if (strcmp(casts[i].name, name) == 0)
            return casts[i].to;
    return to_json;
}

KilnStatus kiln_function_cast(const KilnFunctionCall *call, KilnConfigNode **ret)
{
    Cast *to = cast_of(call->name);
    const KilnConfigNode *from = call->named[0];
    const KilnSweepValue *sweep;

    if (from == NULL && call->args->count == 0)
        return kiln_function_fail(call, "it needs a value");
    if (from != NULL && call->args->count > 0)
        return kiln_function_fail(call, "value= repeats the value before it");
    if (call->args->count > 1) { /* int(1,2) sweeps over 1 and 2 */
        KilnSweepValue several = { .kind = KILN_SWEEP_CHOICE, .items = call->args, .simple = true };
        KilnStatus status = kiln_function_refuse_sweeps(call);

        return status >= 0 ? cast_choice(call, to, &several, ret) : status;
    }
    if (from == NULL)
        from = call->args->entries[0].value;
    sweep = kiln_sweep_value_of(call->parser, from);
    if (sweep == NULL)
        return cast(call, to, from, ret);
    if (sweep->kind == KILN_SWEEP_GLOB)
        return kiln_function_fail(call, "the names of options are text");
    return sweep->kind == KILN_SWEEP_CHOICE ? cast_choice(call, to, sweep, ret)
                                            : cast_range(call, to, sweep, ret);
}
