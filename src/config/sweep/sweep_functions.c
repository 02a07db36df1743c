/* The functions that make sweeps (choice, range, interval, glob), change them (sort, shuffle, tag,
 * zip), and extend_list(). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/override/functions.h"

/* *ret = the items of the sweep, which stand for it. */
static KilnStatus give(const KilnFunctionCall *call, const KilnSweepValue *sweep,
                       KilnConfigNode **ret)
{
    if (sweep == NULL)
        return kiln_error_nomem(call->parser->err, sizeof(*sweep));
    *ret = sweep->items;
    return KILN_OK;
}

/* The only argument, when it is a sweep. */
static KilnSweepValue *only_sweep(const KilnFunctionCall *call)
{
    if (call->args->count != 1)
        return NULL;
    return kiln_sweep_value_of(call->parser, call->args->entries[0].value);
}

/* A choice among the arguments. */
static KilnStatus choose(const KilnFunctionCall *call, KilnSweepValue **ret)
{
    KilnStatus status = kiln_function_refuse_sweeps(call);

    if (status >= 0 && call->args->count == 0)
        status = kiln_function_fail(call, "it needs values");
    if (status < 0)
        return status;
    *ret = kiln_sweep_value_new(call->parser, KILN_SWEEP_CHOICE, call->args);
    return *ret != NULL ? KILN_OK : kiln_error_nomem(call->parser->err, sizeof(**ret));
}

/* A copy with items of its own. */
static KilnSweepValue *copy_sweep(const KilnFunctionCall *call, const KilnSweepValue *from)
{
    KilnConfigNode *items = kiln_node_copy(call->parser->maker.arena, from->items);
    KilnSweepValue *sweep = items != NULL ? kiln_sweep_value_new(call->parser, from->kind, items)
                                          : NULL;
    KilnSweepValue *next = sweep != NULL ? sweep->next : NULL;

    if (sweep == NULL)
        return NULL;
    *sweep = *from;
    sweep->items = items;
    sweep->next = next;
    return sweep;
}

/* ---- choice, zip ---------------------------------------------------------------------- */

/* choice(a,b), zip(a,b) */
KilnStatus kiln_function_choice(const KilnFunctionCall *call, KilnConfigNode **ret)
{
    bool zip = strcmp(call->name, "zip") == 0;
    KilnSweepValue *sweep = only_sweep(call);
    KilnStatus status = KILN_OK;

    if (!zip && sweep != NULL && (!sweep->simple || sweep->zip))
        return kiln_function_fail(call, "the argument has several values itself; take away one "
                                        "of the two");
    if (sweep == NULL)
        status = choose(call, &sweep);
    if (status < 0)
        return status;
    sweep->zip |= zip;
    sweep->simple &= zip;
    return give(call, sweep, ret);
}

/* ---- range, interval ---------------------------------------------------------------------- */

/* range(stop), range(start,stop), range(start,stop,step), interval(start,end) */
KilnStatus kiln_function_range(const KilnFunctionCall *call, KilnConfigNode **ret)
{
    bool range = strcmp(call->name, "range") == 0;
    const char *const names[] = { "start", range ? "stop" : "end", "step" };
    KilnSweepValue *sweep =
        kiln_sweep_value_new(call->parser, range ? KILN_SWEEP_RANGE : KILN_SWEEP_INTERVAL, NULL);

    if (sweep == NULL)
        return kiln_error_nomem(call->parser->err, sizeof(*sweep));
    sweep->step = (KilnNumber) { .whole = 1, .value = 1 };
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
    return give(call, sweep, ret);
}

/* ---- glob ------------------------------------------------------------------------------------ */

/* A pattern, or a list of patterns, as a list. */
static KilnStatus patterns(const KilnFunctionCall *call, KilnConfigNode *node, KilnConfigNode **ret)
{
    KilnConfigNode *list = node;
    KilnStatus status = KILN_OK;

    if (node->kind != KILN_NODE_LIST) {
        list = kiln_node_new(&call->parser->maker, KILN_NODE_LIST);
        status = list != NULL ? kiln_value_append(call->parser, list, NULL, node)
                              : kiln_error_nomem(call->parser->err, sizeof(*list));
    }
    for (size_t i = 0; status >= 0 && i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;

        if (item->kind != KILN_NODE_SCALAR || item->scalar == KILN_SCALAR_NULL)
            status = kiln_function_fail(call, "a pattern is text (r*), not %s",
                                        kiln_node_kind_name(item));
    }
    *ret = list;
    return status;
}

KilnStatus kiln_function_glob(const KilnFunctionCall *call, KilnConfigNode **ret)
{
    KilnConfigNode *include = NULL, *exclude = NULL;
    KilnStatus status = patterns(call, call->named[0], &include);
    KilnSweepValue *sweep;

    if (status >= 0 && call->named[1] != NULL)
        status = patterns(call, call->named[1], &exclude);
    if (status < 0)
        return status;
    sweep = kiln_sweep_value_new(call->parser, KILN_SWEEP_GLOB, include);
    if (sweep != NULL)
        sweep->exclude = exclude;
    return give(call, sweep, ret);
}

/* ---- tag ---------------------------------------------------------------------------- */

/* Tags are for sweepers that read them; the grid ignores them. */
KilnStatus kiln_function_tag(const KilnFunctionCall *call, KilnConfigNode **ret)
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
    if (last == NULL || kiln_sweep_value_of(call->parser, last) == NULL)
        return kiln_function_fail(call, "what is tagged must be a sweep, as in tag(x,choice(1,2))");
    *ret = last;
    return KILN_OK;
}

/* ---- sort, shuffle ------------------------------------------------------------------ */

/* A range is sorted by its values. Hydra swaps its bounds, which gives different values when
 * the step does not divide it. */
static KilnStatus sort_sweep(const KilnFunctionCall *call, const KilnSweepValue *from, bool reverse,
                             KilnConfigNode **ret)
{
    KilnSweepValue *sweep = copy_sweep(call, from);
    KilnSweepValue plain = *from;
    KilnStatus status;

    if (sweep == NULL)
        return kiln_error_nomem(call->parser->err, sizeof(*sweep));
    if (from->kind != KILN_SWEEP_RANGE && from->kind != KILN_SWEEP_CHOICE)
        return kiln_function_fail(call, "only a choice, a range or a list has an order");
    plain.shuffle = false;
    status = kiln_sweep_value_list(&plain, &call->parser->maker, NULL, &sweep->items,
                                   call->parser->err);
    if (status < 0)
        return kiln_error_prefix(call->parser->err, "column %zu: ", call->at + 1);
    sweep->kind = KILN_SWEEP_CHOICE;
    if (kiln_list_sort(sweep->items, reverse) < 0)
        return kiln_function_fail(call, "only numbers, or only text, can be sorted");
    return give(call, sweep, ret);
}

/* sweep=, list= or the only argument; NULL: several arguments, or none. */
static KilnConfigNode *only_value(const KilnFunctionCall *call)
{
    if (call->named[0] != NULL || call->named[1] != NULL)
        return call->named[1] != NULL ? call->named[1] : call->named[0];
    return call->args->count == 1 ? call->args->entries[0].value : NULL;
}

/* sort(a,b,c), sort(SWEEP), sort([a,b]), sort(x), sweep=, list= */
KilnStatus kiln_function_sort(const KilnFunctionCall *call, KilnConfigNode **ret)
{
    const KilnConfigNode *how = call->named[2];
    KilnConfigNode *from = only_value(call);
    bool reverse = how != NULL && how->text != NULL && strcmp(how->text, "true") == 0;
    KilnSweepValue *sweep = NULL;
    KilnStatus status = KILN_OK;

    if (how != NULL && !kiln_node_is_scalar(how, KILN_SCALAR_BOOL))
        return kiln_function_fail(call, "reverse is true or false");
    if (from == NULL && call->args->count == 0)
        return kiln_function_fail(call, "it needs a list or values, as in sort([3,1,2])");
    if (from != NULL)
        sweep = kiln_sweep_value_of(call->parser, from);
    else
        status = choose(call, &sweep);
    if (status < 0)
        return status;
    if (sweep != NULL) {
        sweep->simple |= from == NULL;
        return sort_sweep(call, sweep, reverse, ret);
    }
    *ret = from;
    if (from->kind == KILN_NODE_LIST && kiln_list_sort(from, reverse) < 0)
        return kiln_function_fail(call, "only numbers, or only text, can be sorted");
    return KILN_OK;
}

/* shuffle(a,b,c), shuffle(SWEEP), shuffle([a,b]), sweep=, list= */
KilnStatus kiln_function_shuffle(const KilnFunctionCall *call, KilnConfigNode **ret)
{
    KilnConfigNode *from = only_value(call);
    KilnSweepValue *sweep = from != NULL ? kiln_sweep_value_of(call->parser, from) : NULL;
    KilnStatus status = KILN_OK;

    if (from != NULL && sweep == NULL) {
        /* A single value is a list of one, in Hydra too. */
        *ret = from->kind == KILN_NODE_LIST ? from : call->args;
        kiln_list_shuffle(*ret);
        return KILN_OK;
    }
    if (sweep != NULL && sweep->kind == KILN_SWEEP_INTERVAL)
        return kiln_function_fail(call, "an interval has no order");
    if (sweep != NULL)
        sweep = copy_sweep(call, sweep);
    else
        status = choose(call, &sweep);
    if (status < 0)
        return status;
    if (sweep != NULL) {
        sweep->simple |= from == NULL;
        sweep->shuffle = true;
    }
    return give(call, sweep, ret);
}

/* ---- extend_list -------------------------------------------------------------------- */

KilnStatus kiln_function_extend_list(const KilnFunctionCall *call, KilnConfigNode **ret)
{
    KilnStatus status = kiln_function_refuse_sweeps(call);

    if (status >= 0 && call->args->count == 0)
        status = kiln_function_fail(call, "it needs values");
    *ret = call->args;
    call->parser->extension = call->args;
    return status;
}
