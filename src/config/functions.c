/* Functions of the override grammar: casts, sort, shuffle; and those that make
 * sweeps, which are only recognized here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "config/scalar.h"
#include "config/value.h"
#include "kiln/rng.h"

typedef KilnStatus (*Cast)(KilnValueText *value, const KilnConfigNode *from, KilnConfigNode **ret,
                           KilnError *err);

static KilnStatus result(KilnConfigNode *node, KilnConfigNode **ret, KilnError *err)
{
    *ret = node;
    return node != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*node));
}

static KilnStatus misfit(KilnValueText *value, const KilnConfigNode *from, const char *type,
                         KilnError *err)
{
    return kiln_value_fail(value, value->at, err, "%s(): '%s' is no %s", type, from->text, type);
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

static KilnStatus to_int(KilnValueText *value, const KilnConfigNode *from, KilnConfigNode **ret,
                         KilnError *err)
{
    const char *text = from->text;
    int64_t whole;
    double number;

    if (from->scalar == KILN_SCALAR_STR && kiln_parse_i64(text, &whole, NULL) < 0)
        return misfit(value, from, "int", err);
    if (from->scalar != KILN_SCALAR_INT) {
        if (!number_of(from, &number) || !(fabs(number) < 9.2e18))
            return misfit(value, from, "int", err);
        text = kiln_arena_printf(value->maker.arena, "%lld", (long long)number);
    }
    return result(kiln_node_scalar(&value->maker, KILN_SCALAR_INT, text), ret, err);
}

static KilnStatus to_float(KilnValueText *value, const KilnConfigNode *from, KilnConfigNode **ret,
                           KilnError *err)
{
    char buf[KILN_F64_TEXT];
    double number;

    if (!number_of(from, &number))
        return misfit(value, from, "float", err);
    kiln_format_f64(number, buf, sizeof(buf));
    return result(kiln_node_scalar(&value->maker, KILN_SCALAR_FLOAT,
                                   kiln_arena_strdup(value->maker.arena, buf)),
                  ret, err);
}

static KilnStatus to_bool(KilnValueText *value, const KilnConfigNode *from, KilnConfigNode **ret,
                          KilnError *err)
{
    const char *text = NULL;
    double number;
    KilnScalar type = kiln_scalar_value(value->maker.arena, from->text, &text);

    if (text == NULL)
        return kiln_error_nomem(err, 1);
    if (from->scalar == KILN_SCALAR_NULL || from->scalar == KILN_SCALAR_INTERPOLATION ||
        (from->scalar == KILN_SCALAR_STR && type != KILN_SCALAR_BOOL))
        return misfit(value, from, "bool", err);
    if (type != KILN_SCALAR_BOOL)
        text = number_of(from, &number) && number == 0 ? "false" : "true";
    return result(kiln_node_scalar(&value->maker, KILN_SCALAR_BOOL, text), ret, err);
}

static KilnStatus to_str(KilnValueText *value, const KilnConfigNode *from, KilnConfigNode **ret,
                         KilnError *err)
{
    KilnText text = { 0 };
    KilnConfigNode *node = NULL;

    if (from->scalar == KILN_SCALAR_NULL)
        return misfit(value, from, "str", err);
    if (from->scalar == KILN_SCALAR_FLOAT)
        kiln_value_text(from, &text);
    else
        kiln_text_append(&text, from->text);
    if (!text.failed)
        node = kiln_node_string(&value->maker, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return result(node, ret, err);
}

/* A cast goes into lists and mappings. */
static KilnStatus cast(KilnValueText *value, Cast to, const KilnConfigNode *from,
                       KilnConfigNode **ret, KilnError *err)
{
    KilnConfigNode *node;
    KilnStatus status = KILN_OK;

    if (from->kind == KILN_NODE_SCALAR)
        return to(value, from, ret, err);
    node = kiln_node_new(&value->maker, from->kind);
    if (node == NULL)
        return kiln_error_nomem(err, sizeof(*node));
    for (size_t i = 0; i < from->count && status >= 0; i++) {
        KilnConfigNode *item = NULL;

        status = cast(value, to, from->entries[i].value, &item, err);
        if (status >= 0 && kiln_node_append(value->maker.arena, node, from->entries[i].key,
                                            value->maker.origin, item) == NULL)
            status = kiln_error_nomem(err, sizeof(KilnEntry));
        else if (status >= 0)
            node->entries[i].key_typed = from->entries[i].key_typed;
    }
    *ret = node;
    return status;
}

/* ---- sort and shuffle ------------------------------------------------------- */

static int compare_text(const void *a, const void *b)
{
    return strcmp(((const KilnEntry *)a)->value->text, ((const KilnEntry *)b)->value->text);
}

static int compare_numbers(const void *a, const void *b)
{
    double x = 0, y = 0;

    (void)number_of(((const KilnEntry *)a)->value, &x);
    (void)number_of(((const KilnEntry *)b)->value, &y);
    return x < y ? -1 : x > y;
}

static KilnStatus sort_list(KilnValueText *value, KilnConfigNode *list, bool reverse,
                            KilnError *err)
{
    size_t numbers = 0, texts = 0;

    for (size_t i = 0; i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;
        double number;

        if (item->kind == KILN_NODE_SCALAR && item->scalar == KILN_SCALAR_STR)
            texts++;
        else if (item->kind == KILN_NODE_SCALAR && number_of(item, &number))
            numbers++;
    }
    if (numbers != list->count && texts != list->count)
        return kiln_value_fail(value, value->at, err,
                               "sort(): only numbers, or only text, can be put in order");
    if (list->count > 1)
        qsort(list->entries, list->count, sizeof(*list->entries),
              texts > 0 ? compare_text : compare_numbers);
    for (size_t i = 0; reverse && i < list->count / 2; i++) {
        KilnEntry other = list->entries[i];

        list->entries[i] = list->entries[list->count - 1 - i];
        list->entries[list->count - 1 - i] = other;
    }
    return KILN_OK;
}

/* The same command gives the same order. */
static void shuffle_list(KilnConfigNode *list)
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

static const KilnConfigNode *named(const KilnConfigNode *arguments, const char *name)
{
    for (size_t i = 0; i < arguments->count; i++)
        if (arguments->entries[i].key != NULL && strcmp(arguments->entries[i].key, name) == 0)
            return arguments->entries[i].value;
    return NULL;
}

static KilnStatus reorder(KilnValueText *value, bool sort, const KilnConfigNode *arguments,
                          KilnConfigNode **ret, KilnError *err)
{
    const KilnConfigNode *from = named(arguments, "list"), *reverse = named(arguments, "reverse");
    size_t places = 0;
    KilnConfigNode *list;

    for (size_t i = 0; i < arguments->count; i++) {
        if (arguments->entries[i].key != NULL)
            continue;
        if (places++ == 0 && from == NULL)
            from = arguments->entries[i].value;
    }
    if (named(arguments, "sweep") != NULL || places > 1)
        value->sweep = true;
    if (from == NULL || value->sweep || from->kind != KILN_NODE_LIST) {
        if (from == NULL && !value->sweep)
            return kiln_value_fail(value, value->at, err, "%s() needs a list, as in %s([3,1,2])",
                                   sort ? "sort" : "shuffle", sort ? "sort" : "shuffle");
        *ret = (KilnConfigNode *)(from != NULL ? from : arguments);
        return KILN_OK;
    }
    list = kiln_node_copy(value->maker.arena, from);
    if (list == NULL)
        return kiln_error_nomem(err, sizeof(*list));
    *ret = list;
    if (sort)
        return sort_list(value, list, reverse != NULL && strcmp(reverse->text, "true") == 0, err);
    shuffle_list(list);
    return KILN_OK;
}

/* ---- All of them --------------------------------------------------------------- */

static KilnStatus call_cast(KilnValueText *value, const char *name, Cast to,
                            const KilnConfigNode *arguments, KilnConfigNode **ret, KilnError *err)
{
    if (arguments->count == 0)
        return kiln_value_fail(value, value->at, err, "%s() needs a value", name);
    if (arguments->count > 1 || value->sweep) {
        value->sweep = true; /* int(1,2) sweeps over 1 and 2 */
        *ret = arguments->entries[0].value;
        return KILN_OK;
    }
    if (arguments->entries[0].key != NULL && strcmp(arguments->entries[0].key, "value") != 0)
        return kiln_value_fail(value, value->at, err, "%s() has no argument '%s'", name,
                               arguments->entries[0].key);
    return cast(value, to, arguments->entries[0].value, ret, err);
}

KilnStatus kiln_function_call(KilnValueText *value, const char *name,
                              const KilnConfigNode *arguments, KilnConfigNode **ret, KilnError *err)
{
    static const struct {
        const char *name;
        Cast to;
    } casts[] = {
        { "bool", to_bool }, { "float", to_float }, { "int", to_int }, { "str", to_str }
    };
    static const char *const sweeps[] = { "choice", "range", "interval", "glob", "tag" };
    static const char *const names[] = { "bool",  "choice",  "float", "glob", "int", "interval",
                                         "range", "shuffle", "sort",  "str",  "tag" };
    const char *near;

    for (size_t i = 0; i < KILN_COUNT(casts); i++)
        if (strcmp(name, casts[i].name) == 0)
            return call_cast(value, name, casts[i].to, arguments, ret, err);
    if (strcmp(name, "sort") == 0 || strcmp(name, "shuffle") == 0)
        return reorder(value, strcmp(name, "sort") == 0, arguments, ret, err);
    for (size_t i = 0; i < KILN_COUNT(sweeps); i++) {
        if (strcmp(name, sweeps[i]) != 0)
            continue;
        if (arguments->count == 0)
            return kiln_value_fail(value, value->at, err, "%s() needs arguments", name);
        value->sweep = true;
        *ret = arguments->entries[0].value;
        return KILN_OK;
    }
    near = kiln_nearest(name, names, KILN_COUNT(names));
    return kiln_value_fail(value, value->at, err,
                           "there is no function '%s'%s%s%s; there are bool, choice, float, glob, "
                           "int, interval, range, shuffle, sort, str, tag",
                           name, near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                           near != NULL ? "?)" : "");
}
