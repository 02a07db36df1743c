/* The functions that make sweeps (choice, range, interval, glob), change them (sort, shuffle, tag,
 * when, zip), and extend_list(). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/override/functions.h"

/* The node that stands for a sweep. */
static KilnConfigNode *items_of(const KilnSweepValue *sweep)
{
    return sweep != NULL ? sweep->items : NULL;
}

/* A choice among the arguments; NULL after an error. */
static KilnSweepValue *choose(const KilnFunctionCall *call)
{
    if (!kiln_function_refuse_sweeps(call))
        return NULL;
    if (call->args->count > 0)
        return kiln_sweep_value_new(call->parser, KILN_SWEEP_CHOICE, call->args);
    kiln_function_fail(call, "it needs values");
    return NULL;
}

/* ---- choice, zip ---------------------------------------------------------------------- */

/* The weights of values, as shares of 1; NULL after an error. */
static const double *read_weights(const KilnFunctionCall *call, size_t n)
{
    const KilnConfigNode *list = call->named[0];
    double *weights = kiln_arena_alloc(call->parser->maker.arena, (n + 1) * sizeof(*weights));
    double sum = 0.0;

    if (list->kind != KILN_NODE_LIST || list->count != n) {
        kiln_function_fail(call, "weights must be a list of %zu numbers, one for each value", n);
        return NULL;
    }
    for (size_t i = 0; i < n && weights != NULL; i++) {
        KilnNumber number = { 0 };

        if (!kiln_number_of(list->entries[i].value, &number) || !(number.value > 0.0) ||
            !isfinite(number.value)) {
            kiln_function_fail(call, "weight %zu must be a number above 0", i + 1);
            return NULL;
        }
        weights[i] = number.value;
        sum += number.value;
    }
    for (size_t i = 0; i < n && weights != NULL; i++)
        weights[i] /= sum;
    return weights;
}

/* choice(a,b), choice(a,b,weights=[3,1]), zip(a,b) */
KilnConfigNode *kiln_function_choice(const KilnFunctionCall *call)
{
    bool zip = strcmp(call->name, "zip") == 0;
    KilnSweepValue *sweep = NULL;

    if (call->args->count == 1)
        sweep = kiln_sweep_value_of(call->parser, call->args->entries[0].value);
    if (zip && sweep != NULL && sweep->kind == KILN_SWEEP_INTERVAL)
        return kiln_function_fail(call, "an interval has no single values to take one at a time");
    if (zip && sweep != NULL && sweep->when_key != NULL)
        return kiln_function_fail(call, "values with a condition cannot vary together with others");
    if (!zip && sweep != NULL && (!sweep->simple || sweep->zip))
        return kiln_function_fail(call, "the argument has several values itself; take away one "
                                        "of the two");
    if (sweep == NULL)
        sweep = choose(call);
    if (sweep == NULL)
        return NULL;
    if (call->named[0] != NULL &&
        (sweep->weights = read_weights(call, sweep->items->count)) == NULL)
        return NULL;
    sweep->zip |= zip;
    sweep->simple &= zip;
    return items_of(sweep);
}

/* ---- range, interval ---------------------------------------------------------------------- */

/* An interval is of floats, as Hydra's; int(interval(1,8)) is of whole numbers. */
static KilnConfigNode *check_interval(const KilnFunctionCall *call, KilnSweepValue *sweep)
{
    const KilnNumber *start = &sweep->start, *end = &sweep->stop;

    if (!isfinite(start->value) || !isfinite(end->value))
        return kiln_function_fail(call, "start and end must be finite");
    if (start->value >= end->value)
        return kiln_function_fail(call, "start must be below end, got %g and %g", start->value,
                                  end->value);
    if (sweep->stepped && !(sweep->step.value > 0.0 && isfinite(sweep->step.value)))
        return kiln_function_fail(call, "step must be above 0, got %g", sweep->step.value);
    sweep->start.real = sweep->stop.real = true;
    return sweep->items;
}

/* range(stop), range(start,stop), range(start,stop,step), interval(start,end),
 * interval(start,end,step) */
KilnConfigNode *kiln_function_range(const KilnFunctionCall *call)
{
    bool range = strcmp(call->name, "range") == 0;
    const char *const names[] = { "start", range ? "stop" : "end", "step" };
    KilnSweepValue *sweep =
        kiln_sweep_value_new(call->parser, range ? KILN_SWEEP_RANGE : KILN_SWEEP_INTERVAL, NULL);

    if (sweep == NULL)
        return NULL;
    sweep->step = (KilnNumber) { .whole = 1, .value = 1 };
    sweep->stepped = call->named[2] != NULL;
    KilnNumber *numbers[] = { &sweep->start, &sweep->stop, &sweep->step };
    for (size_t i = 0; i < KILN_COUNT(numbers); i++) {
        const KilnConfigNode *node = call->named[i];

        if (node == NULL || kiln_number_of(node, numbers[i]))
            continue;
        if (node->kind != KILN_NODE_SCALAR)
            return kiln_function_fail(call, "%s must be a number, not %s", names[i],
                                      kiln_node_kind_name(node));
        return kiln_function_fail(call, "%s must be a number, got '%s'", names[i], node->text);
    }
    if (range && call->named[1] == NULL) { /* range(stop) */
        sweep->stop = sweep->start;
        sweep->start = (KilnNumber) { 0 };
    }
    return range ? sweep->items : check_interval(call, sweep);
}

/* ---- glob ------------------------------------------------------------------------------------ */

/* A pattern, or a list of patterns, as a list; NULL after an error. */
static KilnConfigNode *patterns(const KilnFunctionCall *call, KilnConfigNode *node)
{
    KilnConfigNode *list = node;

    if (node->kind != KILN_NODE_LIST) {
        list = kiln_node_new(&call->parser->maker, KILN_NODE_LIST);
        kiln_value_append(call->parser, list, NULL, node);
    }
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;

        if (item->kind != KILN_NODE_SCALAR || item->scalar == KILN_SCALAR_NULL)
            return kiln_function_fail(call, "a pattern is text (r*), not %s",
                                      kiln_node_kind_name(item));
    }
    return list;
}

KilnConfigNode *kiln_function_glob(const KilnFunctionCall *call)
{
    KilnConfigNode *include = patterns(call, call->named[0]), *exclude = NULL;
    KilnSweepValue *sweep = NULL;

    if (include != NULL && call->named[1] != NULL)
        exclude = patterns(call, call->named[1]);
    if (include != NULL && (exclude != NULL || call->named[1] == NULL))
        sweep = kiln_sweep_value_new(call->parser, KILN_SWEEP_GLOB, include);
    if (sweep != NULL)
        sweep->exclude = exclude;
    return items_of(sweep);
}

/* ---- tag ---------------------------------------------------------------------------- */

/* NULL when memory is out. */
static KilnConfigNode *add_tags(const KilnFunctionCall *call, size_t n, KilnSweepValue *sweep)
{
    size_t had = 0;

    while (sweep->tags != NULL && sweep->tags[had] != NULL)
        had++;
    const char **tags = kiln_arena_alloc(call->parser->maker.arena, (had + n + 1) * sizeof(*tags));
    if (tags == NULL)
        return NULL;
    for (size_t i = 0; i < had + n; i++)
        tags[i] = i < n ? call->args->entries[i].value->text : sweep->tags[i - n];
    sweep->tags = tags;
    return sweep->items;
}

/* tag(a,b,SWEEP), tag(a,sweep=SWEEP). The tag `log` is a logarithmic scale; what others mean, a
 * sweeper decides. */
KilnConfigNode *kiln_function_tag(const KilnFunctionCall *call)
{
    size_t n = call->args->count;
    KilnConfigNode *last = call->named[0];

    if (last == NULL && n > 0)
        last = call->args->entries[--n].value;
    for (size_t i = 0; i < n; i++) {
        const KilnConfigNode *tag = call->args->entries[i].value;

        if (tag->kind != KILN_NODE_SCALAR || tag->scalar != KILN_SCALAR_STR)
            return kiln_function_fail(call, "a tag is text, not %s", kiln_node_kind_name(tag));
    }
    KilnSweepValue *sweep = last != NULL ? kiln_sweep_value_of(call->parser, last) : NULL;
    if (sweep == NULL)
        return kiln_function_fail(call, "what is tagged must be a sweep, as in tag(x,choice(1,2))");
    return add_tags(call, n, sweep);
}

/* ---- when ----------------------------------------------------------------------------------- */

/* A value, or a list of values, as a list. */
static KilnConfigNode *as_list(const KilnFunctionCall *call, KilnConfigNode *node)
{
    if (node->kind == KILN_NODE_LIST)
        return node;
    KilnConfigNode *list = kiln_node_new(&call->parser->maker, KILN_NODE_LIST);
    kiln_value_append(call->parser, list, NULL, node);
    return list;
}

/* The arguments from the third on: a sweep, or values; NULL after an error. */
static KilnSweepValue *conditional_values(const KilnFunctionCall *call)
{
    KilnConfigNode *values = kiln_node_new(&call->parser->maker, KILN_NODE_LIST);
    KilnSweepValue *sweep = kiln_sweep_value_of(call->parser, call->args->entries[2].value);

    if (call->args->count == 3 && sweep != NULL)
        return sweep;
    if (values == NULL || !kiln_function_refuse_sweeps(call))
        return NULL;
    for (size_t i = 2; i < call->args->count; i++)
        kiln_value_append(call->parser, values, NULL, call->args->entries[i].value);
    return kiln_sweep_value_new(call->parser, KILN_SWEEP_CHOICE, values);
}

/* when(KEY,VALUE,a,b), when(KEY,[VALUE,VALUE],SWEEP): only with these values of another override.
 */
KilnConfigNode *kiln_function_when(const KilnFunctionCall *call)
{
    const KilnConfigNode *key = call->args->count > 0 ? call->args->entries[0].value : NULL;

    if (call->args->count < 3)
        return kiln_function_fail(call, "it needs a key, its value and what to set with that, as "
                                        "in when(model,resnet,18,34)");
    if (key->kind != KILN_NODE_SCALAR || key->scalar != KILN_SCALAR_STR)
        return kiln_function_fail(call, "the key is text (model), not %s",
                                  kiln_node_kind_name(key));
    KilnSweepValue *sweep = conditional_values(call);
    if (sweep == NULL)
        return NULL;
    if (sweep->when_key != NULL)
        return kiln_function_fail(call,
                                  "there can be one condition; write a list of values in it, "
                                  "or give '%s' a condition",
                                  key->text);
    if (sweep->zip)
        return kiln_function_fail(call, "the values of zip() vary together with others, so they "
                                        "cannot have a condition");
    const KilnConfigNode *values = as_list(call, call->args->entries[1].value);
    if (values != NULL && values->count == 0)
        return kiln_function_fail(call, "the list of values of '%s' is empty", key->text);
    sweep->when_key = key->text;
    sweep->when_values = values;
    return sweep->items;
}

/* ---- sort, shuffle ------------------------------------------------------------------ */

/* A range is sorted by its values. Hydra swaps its bounds, which gives different values when
 * the step does not divide it. */
static KilnConfigNode *sort_sweep(const KilnFunctionCall *call, const KilnSweepValue *from)
{
    KilnSweepValue plain = *from, *sweep = kiln_sweep_value_copy(call->parser, from);

    if (from->kind != KILN_SWEEP_RANGE && from->kind != KILN_SWEEP_CHOICE)
        return kiln_function_fail(call, "only a choice, a range or a list has an order");
    if (from->weights != NULL)
        return kiln_function_fail(call, "values with weights stay in their order");
    plain.shuffle = false;
    KilnConfigNode *items = kiln_sweep_value_list(&plain, &call->parser->maker, NULL,
                                                  call->parser->err);
    if (items == NULL)
        kiln_error_prefix(call->parser->err, "column %zu: ", call->at + 1);
    if (items == NULL || sweep == NULL)
        return NULL;
    sweep->kind = KILN_SWEEP_CHOICE;
    sweep->items = items;
    return items;
}

/* sweep=, list= or the only argument; NULL: several arguments, or none. */
static KilnConfigNode *only_value(const KilnFunctionCall *call)
{
    if (call->named[0] != NULL || call->named[1] != NULL)
        return call->named[1] != NULL ? call->named[1] : call->named[0];
    return call->args->count == 1 ? call->args->entries[0].value : NULL;
}

/* sort(a,b,c), sort(SWEEP), sort([a,b]), sort(x), sweep=, list= */
KilnConfigNode *kiln_function_sort(const KilnFunctionCall *call)
{
    const KilnConfigNode *how = call->named[2];
    KilnConfigNode *from = only_value(call);
    bool reverse = how != NULL && how->text != NULL && strcmp(how->text, "true") == 0;
    KilnSweepValue *sweep;

    if (how != NULL && !kiln_node_is_scalar(how, KILN_SCALAR_BOOL))
        return kiln_function_fail(call, "reverse is true or false");
    if (from == NULL && call->args->count == 0)
        return kiln_function_fail(call, "it needs a list or values, as in sort([3,1,2])");
    sweep = from != NULL ? kiln_sweep_value_of(call->parser, from) : choose(call);
    if (sweep != NULL) {
        sweep->simple |= from == NULL;
        from = sort_sweep(call, sweep);
    }
    if (from != NULL && from->kind == KILN_NODE_LIST && !kiln_list_sort(from, reverse))
        return kiln_function_fail(call, "only numbers, or only text, can be sorted");
    return from;
}

/* shuffle(a,b,c), shuffle(SWEEP), shuffle([a,b]), sweep=, list= */
KilnConfigNode *kiln_function_shuffle(const KilnFunctionCall *call)
{
    KilnConfigNode *from = only_value(call);
    KilnSweepValue *sweep = from != NULL ? kiln_sweep_value_of(call->parser, from) : NULL;

    if (from != NULL && sweep == NULL) {
        /* A single value is a list of one, in Hydra too. */
        from = from->kind == KILN_NODE_LIST ? from : call->args;
        kiln_list_shuffle(from);
        return from;
    }
    if (sweep != NULL && sweep->kind == KILN_SWEEP_INTERVAL)
        return kiln_function_fail(call, "an interval has no order");
    if (sweep != NULL && sweep->weights != NULL)
        return kiln_function_fail(call, "values with weights stay in their order");
    sweep = sweep != NULL ? kiln_sweep_value_copy(call->parser, sweep) : choose(call);
    if (sweep != NULL) {
        sweep->simple |= from == NULL;
        sweep->shuffle = true;
    }
    return items_of(sweep);
}

/* ---- extend_list -------------------------------------------------------------------- */

KilnConfigNode *kiln_function_extend_list(const KilnFunctionCall *call)
{
    if (!kiln_function_refuse_sweeps(call))
        return NULL;
    if (call->args->count == 0)
        return kiln_function_fail(call, "it needs values");
    call->parser->extension = call->args;
    return call->args;
}
