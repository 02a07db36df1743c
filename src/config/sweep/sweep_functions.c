/* Functions that make sweeps, or put them in another order; and extend_list(). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/override/functions.h"

static KilnStatus made(const KilnSweepValue *sweep, KilnConfigNode **ret, KilnError *err)
{
    if (sweep == NULL)
        return kiln_error_nomem(err, sizeof(*sweep));
    *ret = sweep->items;
    return KILN_OK;
}

/* The only argument, when it is a sweep. */
static KilnSweepValue *only_sweep(const KilnFunctionCall *call)
{
    if (call->places->count != 1)
        return NULL;
    return kiln_sweep_value_of(call->value, call->places->entries[0].value);
}

static KilnStatus refuse_sweeps(const KilnFunctionCall *call, KilnError *err)
{
    for (size_t i = 0; i < call->places->count; i++)
        if (kiln_sweep_value_of(call->value, call->places->entries[i].value) != NULL)
            return kiln_call_fail(call, err,
                                  "argument %zu has several values itself; write them "
                                  "all as arguments",
                                  i + 1);
    return KILN_OK;
}

/* A choice among the arguments. */
static KilnStatus choose(const KilnFunctionCall *call, KilnSweepValue **ret, KilnError *err)
{
    KilnStatus status = refuse_sweeps(call, err);

    if (status >= 0 && call->places->count == 0)
        status = kiln_call_fail(call, err, "it needs values");
    if (status < 0)
        return status;
    *ret = kiln_sweep_value_new(call->value, KILN_SWEEP_CHOICE, call->places);
    return *ret != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(**ret));
}

/* A sweep of its own with what the other has. */
static KilnSweepValue *copy_sweep(const KilnFunctionCall *call, const KilnSweepValue *from)
{
    KilnConfigNode *items = kiln_node_copy(call->value->maker.arena, from->items);
    KilnSweepValue *sweep = items != NULL ? kiln_sweep_value_new(call->value, from->kind, items)
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

KilnStatus kiln_call_choice(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    KilnSweepValue *sweep = only_sweep(call);
    KilnStatus status = KILN_OK;

    if (sweep != NULL && (!sweep->simple || sweep->zip))
        return kiln_call_fail(call, err,
                              "the argument has several values itself; take away one "
                              "of the two");
    if (sweep == NULL)
        status = choose(call, &sweep, err);
    if (status < 0)
        return status;
    sweep->simple = false;
    return made(sweep, ret, err);
}

KilnStatus kiln_call_zip(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    KilnSweepValue *sweep = only_sweep(call);
    KilnStatus status = KILN_OK;

    if (sweep == NULL)
        status = choose(call, &sweep, err);
    if (status < 0)
        return status;
    sweep->zip = true;
    return made(sweep, ret, err);
}

/* ---- range, interval ---------------------------------------------------------------------- */

static KilnStatus number_argument(const KilnFunctionCall *call, size_t i, const char *name,
                                  KilnNumber *ret, KilnError *err)
{
    const KilnConfigNode *node = call->named[i];

    if (node == NULL || kiln_number_of(node, ret))
        return KILN_OK;
    if (node->kind != KILN_NODE_SCALAR)
        return kiln_call_fail(call, err, "%s must be a number, not %s", name,
                              kiln_node_kind_name(node));
    return kiln_call_fail(call, err, "%s must be a number, got '%s'", name, node->text);
}

KilnStatus kiln_call_range(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    KilnNumber start = { 0 }, stop = { 0 }, step = { .whole = 1, .value = 1 };
    KilnStatus status = number_argument(call, 0, "start", &start, err);
    KilnSweepValue *sweep;

    if (status >= 0)
        status = number_argument(call, 1, "stop", &stop, err);
    if (status >= 0)
        status = number_argument(call, 2, "step", &step, err);
    if (status < 0)
        return status;
    if (call->named[1] == NULL) {
        stop = start;
        start = (KilnNumber) { 0 };
    }
    sweep = kiln_sweep_value_new(call->value, KILN_SWEEP_RANGE, NULL);
    if (sweep != NULL) {
        sweep->start = start;
        sweep->stop = stop;
        sweep->step = step;
    }
    return made(sweep, ret, err);
}

KilnStatus kiln_call_interval(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    KilnNumber start = { 0 }, stop = { 0 };
    KilnStatus status = number_argument(call, 0, "start", &start, err);
    KilnSweepValue *sweep;

    if (status >= 0)
        status = number_argument(call, 1, "end", &stop, err);
    if (status < 0)
        return status;
    sweep = kiln_sweep_value_new(call->value, KILN_SWEEP_INTERVAL, NULL);
    if (sweep != NULL) {
        sweep->start = start;
        sweep->stop = stop;
    }
    return made(sweep, ret, err);
}

/* ---- glob ------------------------------------------------------------------------------------ */

/* A pattern, or a list of patterns, as a list. */
static KilnStatus patterns(const KilnFunctionCall *call, KilnConfigNode *node, KilnConfigNode **ret,
                           KilnError *err)
{
    const KilnMaker *maker = &call->value->maker;
    KilnConfigNode *list = node->kind == KILN_NODE_LIST ? node
                                                        : kiln_node_new(maker, KILN_NODE_LIST);

    if (list == NULL ||
        (list != node && kiln_node_append(maker->arena, list, NULL, maker->origin, node) == NULL))
        return kiln_error_nomem(err, sizeof(*node));
    for (size_t i = 0; i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;

        if (item->kind != KILN_NODE_SCALAR || item->scalar == KILN_SCALAR_NULL)
            return kiln_call_fail(call, err, "a pattern is text (r*), not %s",
                                  kiln_node_kind_name(item));
    }
    *ret = list;
    return KILN_OK;
}

KilnStatus kiln_call_glob(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    KilnConfigNode *include = NULL, *exclude = NULL;
    KilnStatus status = patterns(call, call->named[0], &include, err);
    KilnSweepValue *sweep;

    if (status >= 0 && call->named[1] != NULL)
        status = patterns(call, call->named[1], &exclude, err);
    if (status < 0)
        return status;
    sweep = kiln_sweep_value_new(call->value, KILN_SWEEP_GLOB, include);
    if (sweep != NULL)
        sweep->exclude = exclude;
    return made(sweep, ret, err);
}

/* ---- tag ---------------------------------------------------------------------------- */

/* Tags are for sweepers that read them; a grid has no use for them. */
KilnStatus kiln_call_tag(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    size_t n = call->places->count;
    KilnConfigNode *last = call->named[0];

    if (last == NULL && n > 0)
        last = call->places->entries[--n].value;
    for (size_t i = 0; i < n; i++) {
        const KilnConfigNode *tag = call->places->entries[i].value;

        if (tag->kind != KILN_NODE_SCALAR || tag->scalar != KILN_SCALAR_STR)
            return kiln_call_fail(call, err, "a tag is text, not %s", kiln_node_kind_name(tag));
    }
    if (last == NULL || kiln_sweep_value_of(call->value, last) == NULL)
        return kiln_call_fail(call, err,
                              "what is tagged must be a sweep, as in tag(x,choice(1,2))");
    *ret = last;
    return KILN_OK;
}

/* ---- sort, shuffle ------------------------------------------------------------------ */

/* A range is sorted by its values. Hydra turns its ends around, which gives other
 * values when the step does not divide it. */
static KilnStatus sort_sweep(const KilnFunctionCall *call, const KilnSweepValue *from, bool reverse,
                             KilnConfigNode **ret, KilnError *err)
{
    KilnSweepValue *sweep = copy_sweep(call, from);
    KilnSweepValue plain = *from;
    KilnStatus status;

    if (sweep == NULL)
        return kiln_error_nomem(err, sizeof(*sweep));
    if (from->kind != KILN_SWEEP_RANGE && from->kind != KILN_SWEEP_CHOICE)
        return kiln_call_fail(call, err, "only a choice, a range or a list has an order");
    plain.shuffle = false;
    status = kiln_sweep_value_list(&plain, &call->value->maker, NULL, &sweep->items, err);
    if (status < 0)
        return kiln_error_prefix(err, "column %zu: ", call->at + 1);
    sweep->kind = KILN_SWEEP_CHOICE;
    if (kiln_list_sort(sweep->items, reverse) < 0)
        return kiln_call_fail(call, err, "only numbers, or only text, can be put in order");
    return made(sweep, ret, err);
}

/* sort(a,b,c), sort(SWEEP), sort([a,b]), sort(x), sweep=, list= */
KilnStatus kiln_call_sort(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    const KilnConfigNode *how = call->named[2];
    KilnConfigNode *from = call->named[1] != NULL ? call->named[1] : call->named[0];
    bool reverse = how != NULL && how->text != NULL && strcmp(how->text, "true") == 0;
    KilnSweepValue *sweep = NULL;

    if (how != NULL && (how->kind != KILN_NODE_SCALAR || how->scalar != KILN_SCALAR_BOOL))
        return kiln_call_fail(call, err, "reverse is true or false");
    if (from == NULL && call->places->count > 1) {
        KilnStatus status = choose(call, &sweep, err);

        if (status < 0)
            return status;
        sweep->simple = true;
        return sort_sweep(call, sweep, reverse, ret, err);
    }
    if (from == NULL && call->places->count == 0)
        return kiln_call_fail(call, err, "it needs a list or values, as in sort([3,1,2])");
    if (from == NULL)
        from = call->places->entries[0].value;
    sweep = kiln_sweep_value_of(call->value, from);
    if (sweep != NULL)
        return sort_sweep(call, sweep, reverse, ret, err);
    *ret = from;
    if (from->kind == KILN_NODE_LIST && kiln_list_sort(from, reverse) < 0)
        return kiln_call_fail(call, err, "only numbers, or only text, can be put in order");
    return KILN_OK;
}

/* shuffle(a,b,c), shuffle(SWEEP), shuffle([a,b]), sweep=, list= */
KilnStatus kiln_call_shuffle(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    KilnConfigNode *from = call->named[1] != NULL ? call->named[1] : call->named[0];
    KilnSweepValue *sweep = NULL;

    if (from == NULL && call->places->count == 1)
        from = call->places->entries[0].value;
    if (from != NULL)
        sweep = kiln_sweep_value_of(call->value, from);
    if (from != NULL && sweep == NULL) {
        /* One value is a list of one, in Hydra too. */
        *ret = from->kind == KILN_NODE_LIST ? from : call->places;
        kiln_list_shuffle(*ret);
        return KILN_OK;
    }
    if (sweep != NULL && sweep->kind == KILN_SWEEP_INTERVAL)
        return kiln_call_fail(call, err, "an interval has no order");
    KilnStatus status = KILN_OK;
    if (sweep == NULL) {
        status = choose(call, &sweep, err);
        if (status >= 0)
            sweep->simple = true;
    } else {
        sweep = copy_sweep(call, sweep);
    }
    if (status < 0)
        return status;
    if (sweep != NULL)
        sweep->shuffle = true;
    return made(sweep, ret, err);
}

/* ---- extend_list -------------------------------------------------------------------- */

KilnStatus kiln_call_extend_list(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err)
{
    KilnStatus status = refuse_sweeps(call, err);

    if (status >= 0 && call->places->count == 0)
        status = kiln_call_fail(call, err, "it needs values");
    *ret = call->places;
    call->value->extension = call->places;
    return status;
}
