/* The casts bool(), float(), int(), json_str() and str(), of values and of sweeps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "config/override/functions.h"
#include "config/yaml/scalar.h"

typedef KilnConfigNode *Cast(const KilnFunctionCall *call, const KilnConfigNode *from);

static KilnConfigNode *misfit(const KilnFunctionCall *call, const KilnConfigNode *from)
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

static KilnConfigNode *to_int(const KilnFunctionCall *call, const KilnConfigNode *from)
{
    const KilnMaker *maker = &call->parser->maker;
    KilnNumber number = { 0 };

    if (from->scalar == KILN_SCALAR_INT)
        return kiln_node_scalar(maker, KILN_SCALAR_INT, from->text);
    if ((from->scalar == KILN_SCALAR_STR && kiln_parse_i64(from->text, &number.whole, NULL) < 0) ||
        !number_of(from, &number.value) || !(fabs(number.value) < 9.2e18))
        return misfit(call, from);
    number.whole = (int64_t)number.value;
    return kiln_number_node(maker, &number);
}

static KilnConfigNode *to_float(const KilnFunctionCall *call, const KilnConfigNode *from)
{
    KilnNumber number = { .real = true };

    if (!number_of(from, &number.value))
        return misfit(call, from);
    return kiln_number_node(&call->parser->maker, &number);
}

static KilnConfigNode *to_bool(const KilnFunctionCall *call, const KilnConfigNode *from)
{
    const char *text = NULL;
    double number;
    KilnScalar type = kiln_scalar_value(call->parser->maker.arena, from->text, &text);

    if (from->scalar == KILN_SCALAR_INTERPOLATION ||
        (from->scalar == KILN_SCALAR_STR && type != KILN_SCALAR_BOOL))
        return misfit(call, from);
    if (type != KILN_SCALAR_BOOL)
        text = from->scalar == KILN_SCALAR_NULL || (number_of(from, &number) && number == 0)
                   ? "false"
                   : "true";
    return kiln_node_scalar(&call->parser->maker, KILN_SCALAR_BOOL, text);
}

static KilnConfigNode *to_str(const KilnFunctionCall *call, const KilnConfigNode *from)
{
    const KilnMaker *maker = &call->parser->maker;
    KilnText text = { 0 };

    if (from->scalar == KILN_SCALAR_NULL)
        return misfit(call, from);
    if (from->scalar != KILN_SCALAR_FLOAT)
        return kiln_node_string(maker, from->text);
    kiln_value_text(from, &text);
    return kiln_node_string(maker, kiln_text_to_arena(&text, maker->arena));
}

/* The whole value as text. */
static KilnConfigNode *to_json(const KilnFunctionCall *call, const KilnConfigNode *from)
{
    const KilnMaker *maker = &call->parser->maker;
    KilnText text = { 0 };

    kiln_value_json(from, &text);
    KilnConfigNode *node = kiln_node_string(maker, kiln_text_to_arena(&text, maker->arena));
    if (node != NULL)
        node->quote = '\''; /* 1 is text here, also when a sweep writes it */
    return node;
}

/* Casts the items of lists and mappings; `into` may be NULL. */
static KilnConfigNode *cast_items(const KilnFunctionCall *call, Cast *to,
                                  const KilnConfigNode *from, KilnConfigNode *into)
{
    for (size_t i = 0; i < from->count; i++) {
        const KilnEntry *entry = &from->entries[i];
        bool one = entry->value->kind == KILN_NODE_SCALAR || to == to_json;
        KilnConfigNode *item =
            one ? to(call, entry->value)
                : cast_items(call, to, entry->value,
                             kiln_node_new(&call->parser->maker, entry->value->kind));
        KilnEntry *added = kiln_value_append(call->parser, into, entry->key, item);

        if (added == NULL)
            return NULL;
        added->key_typed = entry->key_typed;
    }
    return into;
}

/* ---- Sweeps ------------------------------------------------------------------- */

/* A new choice, which like Hydra's does not shuffle. */
static KilnConfigNode *cast_choice(const KilnFunctionCall *call, Cast *to,
                                   const KilnSweepValue *from)
{
    KilnSweepValue *sweep = kiln_sweep_value_new(call->parser, KILN_SWEEP_CHOICE, NULL);

    if (sweep == NULL)
        return NULL;
    sweep->simple = from->simple;
    sweep->zip = from->zip;
    sweep->tags = from->tags;
    sweep->weights = from->weights;
    sweep->when_key = from->when_key;
    sweep->when_values = from->when_values;
    return cast_items(call, to, from->items, sweep->items);
}

/* Casts the bounds and the step, not the values between. */
static KilnConfigNode *cast_range(const KilnFunctionCall *call, Cast *to,
                                  const KilnSweepValue *from)
{
    KilnSweepValue *sweep;

    if (to != to_int && to != to_float)
        return kiln_function_fail(call, "a range can be cast to int and float only");
    sweep = kiln_sweep_value_copy(call->parser, from);
    if (sweep == NULL)
        return NULL;
    sweep->shuffle = false;
    KilnNumber *numbers[] = { &sweep->start, &sweep->stop, &sweep->step };
    for (size_t i = 0; i < KILN_COUNT(numbers); i++) {
        KilnNumber *number = numbers[i];

        if (number->real && to == to_int) {
            if (!(fabs(number->value) < 9.2e18))
                return kiln_function_fail(call, "%g is not a valid int", number->value);
            number->whole = (int64_t)number->value;
            number->value = (double)number->whole;
        }
        number->real = to == to_float;
    }
    return sweep->items;
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

KilnConfigNode *kiln_function_cast(const KilnFunctionCall *call)
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

        return kiln_function_refuse_sweeps(call) ? cast_choice(call, to, &several) : NULL;
    }
    if (from == NULL)
        from = call->args->entries[0].value;
    sweep = kiln_sweep_value_of(call->parser, from);
    if (sweep == NULL && (from->kind == KILN_NODE_SCALAR || to == to_json))
        return to(call, from);
    if (sweep == NULL)
        return cast_items(call, to, from, kiln_node_new(&call->parser->maker, from->kind));
    if (sweep->kind == KILN_SWEEP_GLOB)
        return kiln_function_fail(call, "the names of options are text");
    return sweep->kind == KILN_SWEEP_CHOICE ? cast_choice(call, to, sweep)
                                            : cast_range(call, to, sweep);
}
