/* The values of a sweep, and their order. */
#include "config/sweep/sweep_value.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "config/sweep/decimal.h"
#include "kiln/rng.h"

KilnSweepValue *kiln_sweep_value_new(KilnValueParser *parser, KilnSweepKind kind,
                                     KilnConfigNode *items)
{
    KilnSweepValue *sweep = kiln_arena_alloc(parser->maker.arena, sizeof(*sweep));

    if (sweep == NULL)
        return NULL;
    sweep->kind = kind;
    sweep->items = items != NULL ? items : kiln_node_new(&parser->maker, KILN_NODE_LIST);
    sweep->next = parser->sweeps;
    if (sweep->items == NULL)
        return NULL;
    parser->sweeps = sweep;
    return sweep;
}

KilnSweepValue *kiln_sweep_value_of(const KilnValueParser *parser, const KilnConfigNode *node)
{
    for (KilnSweepValue *sweep = parser->sweeps; sweep != NULL; sweep = sweep->next)
        if (sweep->items == node)
            return sweep;
    return NULL;
}

KilnSweepValue *kiln_sweep_value_copy(KilnValueParser *parser, const KilnSweepValue *from)
{
    KilnSweepValue *sweep = kiln_sweep_value_new(parser, from->kind, NULL), *next;

    if (sweep == NULL)
        return NULL;
    next = sweep->next;
    *sweep = *from;
    sweep->items = kiln_node_copy(parser->maker.arena, from->items);
    sweep->next = next;
    return sweep;
}

/* ---- Numbers ----------------------------------------------------------------------- */

bool kiln_number_of(const KilnConfigNode *node, KilnNumber *ret)
{
    KilnNumber number = { 0 };

    if (node->kind != KILN_NODE_SCALAR || node->text == NULL)
        return false;
    if (node->scalar == KILN_SCALAR_BOOL)
        number.whole = strcmp(node->text, "true") == 0;
    else if (node->scalar == KILN_SCALAR_INT) {
        if (kiln_parse_i64(node->text, &number.whole, NULL) < 0)
            return false;
    } else if (node->scalar == KILN_SCALAR_FLOAT) {
        number.real = true;
        if (kiln_parse_f64(node->text, &number.value, NULL) < 0)
            return false;
    } else {
        return false;
    }
    if (!number.real)
        number.value = (double)number.whole;
    *ret = number;
    return true;
}

KilnConfigNode *kiln_number_node(const KilnMaker *maker, const KilnNumber *number)
{
    char buf[KILN_F64_TEXT];
    const char *text = number->real
                           ? kiln_arena_strdup(maker->arena,
                                               kiln_format_f64(number->value, buf, sizeof(buf)))
                           : kiln_arena_printf(maker->arena, "%lld", (long long)number->whole);

    return kiln_node_scalar(maker, number->real ? KILN_SCALAR_FLOAT : KILN_SCALAR_INT, text);
}

/* ---- Ranges ------------------------------------------------------------------------- */

static void append_number(const KilnMaker *maker, KilnConfigNode *list, KilnNumber number)
{
    kiln_node_append(maker->arena, list, NULL, maker->origin, kiln_number_node(maker, &number));
}

static void list_whole(const KilnSweepValue *sweep, const KilnMaker *maker, KilnConfigNode *list)
{
    int64_t step = sweep->step.whole, stop = sweep->stop.whole;
    KilnNumber at = sweep->start;

    while (step > 0 ? at.whole < stop : at.whole > stop) {
        append_number(maker, list, at);
        if (__builtin_add_overflow(at.whole, step, &at.whole))
            break;
    }
}

static void list_real(const KilnSweepValue *sweep, const KilnMaker *maker, KilnConfigNode *list)
{
    KilnNumber number = { .real = true, .value = sweep->start.value };
    KilnDecimal at, stop, step;

    kiln_decimal_set(&at, sweep->start.value);
    kiln_decimal_set(&stop, sweep->stop.value);
    kiln_decimal_set(&step, sweep->step.value);
    while (step.negative ? kiln_decimal_compare(&at, &stop) > 0
                         : kiln_decimal_compare(&at, &stop) < 0) {
        append_number(maker, list, number);
        kiln_decimal_add(&at, &step);
        number.value = kiln_decimal_get(&at);
    }
}

static KilnStatus list_range(const KilnSweepValue *sweep, const KilnMaker *maker,
                             KilnConfigNode *list, KilnError *err)
{
    if (!isfinite(sweep->start.value) || !isfinite(sweep->stop.value) ||
        !isfinite(sweep->step.value))
        return kiln_error_set(err, KILN_E_RANGE, "range() needs finite numbers");
    if (sweep->step.value == 0)
        return kiln_error_set(err, KILN_E_RANGE, "range(): a step of 0 never ends");
    if ((sweep->stop.value - sweep->start.value) / sweep->step.value > KILN_SWEEP_VALUES)
        return kiln_error_set(err, KILN_E_RANGE, "more than %d values", KILN_SWEEP_VALUES);
    if (sweep->start.real || sweep->stop.real || sweep->step.real)
        list_real(sweep, maker, list);
    else
        list_whole(sweep, maker, list);
    return KILN_OK;
}

/* ---- Patterns ------------------------------------------------------------------------- */

static bool matches(const KilnConfigNode *patterns, const char *name)
{
    for (size_t i = 0; patterns != NULL && i < patterns->count; i++)
        if (fnmatch(patterns->entries[i].value->text, name, FNM_NOESCAPE) == 0)
            return true;
    return false;
}

static void list_matches(const KilnSweepValue *sweep, const KilnMaker *maker,
                         const char *const *options, KilnConfigNode *list)
{
    for (; options != NULL && *options != NULL; options++)
        if (matches(sweep->items, *options) && !matches(sweep->exclude, *options))
            kiln_node_append(maker->arena, list, NULL, maker->origin,
                             kiln_node_scalar(maker, KILN_SCALAR_STR, *options));
}

KilnConfigNode *kiln_sweep_value_list(const KilnSweepValue *sweep, const KilnMaker *maker,
                                      const char *const *options, KilnError *err)
{
    KilnConfigNode *list = sweep->kind == KILN_SWEEP_CHOICE
                               ? kiln_node_copy(maker->arena, sweep->items)
                               : kiln_node_new(maker, KILN_NODE_LIST);
    KilnStatus status = KILN_OK;

    if (sweep->kind == KILN_SWEEP_RANGE)
        status = list_range(sweep, maker, list, err);
    else if (sweep->kind == KILN_SWEEP_GLOB)
        list_matches(sweep, maker, options, list);
    if (status < 0 || maker->arena->failed)
        return NULL;
    if (sweep->shuffle)
        kiln_list_shuffle(list);
    return list;
}

/* ---- Order ------------------------------------------------------------------------------ */

static int compare_text(const void *a, const void *b)
{
    return strcmp(((const KilnEntry *)a)->value->text, ((const KilnEntry *)b)->value->text);
}

static int compare_numbers(const void *a, const void *b)
{
    KilnNumber x = { 0 }, y = { 0 };

    (void)kiln_number_of(((const KilnEntry *)a)->value, &x);
    (void)kiln_number_of(((const KilnEntry *)b)->value, &y);
    return x.value < y.value ? -1 : x.value > y.value;
}

static void reverse_list(KilnConfigNode *list)
{
    for (size_t i = 0; i < list->count / 2; i++) {
        KilnEntry other = list->entries[i];

        list->entries[i] = list->entries[list->count - 1 - i];
        list->entries[list->count - 1 - i] = other;
    }
}

bool kiln_list_sort(KilnConfigNode *list, bool reverse)
{
    size_t numbers = 0, texts = 0;

    for (size_t i = 0; i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;
        KilnNumber number;

        if (kiln_number_of(item, &number))
            numbers++;
        else if (item->kind == KILN_NODE_SCALAR && item->scalar != KILN_SCALAR_NULL)
            texts++;
    }
    if (list->count < 2)
        return true;
    if (numbers != list->count && texts != list->count)
        return false;
    if (reverse)
        reverse_list(list); /* and back: equal values stay in order */
    qsort(list->entries, list->count, sizeof(*list->entries),
          texts > 0 ? compare_text : compare_numbers);
    if (reverse)
        reverse_list(list);
    return true;
}

void kiln_list_shuffle(KilnConfigNode *list)
{
    const uint32_t key[2] = { 0x6b696c6eu, 0 };

    for (size_t i = list->count; i > 1; i--) {
        const uint32_t counter[4] = { (uint32_t)i, (uint32_t)list->count, 0, 0 };
        uint32_t random[4];
        size_t j;
        KilnEntry other;

        kiln_philox(key, counter, random);
        j = random[0] % i;
        other = list->entries[i - 1];
        list->entries[i - 1] = list->entries[j];
        list->entries[j] = other;
    }
}
