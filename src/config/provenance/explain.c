/* Tells where values come from: --explain, and kiln explain of a past run. What
 * happened to them is value_history.c's and origins_file.c's. */
#include <string.h>

#include "base/utf8.h"
#include "config/interpolate/interpolate.h"
#include "config/yaml/output.h"
#include "config/composed.h"
#include "config/provenance/value_history.h"
#include "config/yaml/yaml_writer.h"

enum { WIDEST = 60, MOST_TOLD = 64, ITEMS_IN_STEP = 4, ITEMS_IN_HEAD = 16 };

typedef struct Teller {
    const KilnValueHistories *histories;
    const KilnConfig *config;     /* NULL: a past run */
    const KilnConfigNode *values; /* its values */
    KilnText *text;
    const char *told[MOST_TOLD]; /* keys that were told with the present one */
    size_t n_told;
} Teller;

/* ---- Keys --------------------------------------------------------------------------------- */

/* Is `key` the key `prefix` or below it? *ret_rest (may be NULL) is what follows. */
static bool is_below(const char *key, const char *prefix, const char **ret_rest)
{
    char a[KILN_PATH_PART], b[KILN_PATH_PART];

    while (kiln_path_next(&prefix, b))
        if (!kiln_path_next(&key, a) || strcmp(a, b) != 0)
            return false;
    if (ret_rest != NULL)
        *ret_rest = key;
    return true;
}

static const KilnValueHistory *find_story(const KilnValueHistories *histories, const char *key)
{
    for (size_t i = 0; i < histories->count; i++)
        if (strcmp(histories->list[i].key, key) == 0)
            return &histories->list[i];
    return NULL;
}

/* The story of the longest key that `key` lies below. */
static const KilnValueHistory *find_above(const KilnValueHistories *histories, const char *key,
                                          const char **ret_rest)
{
    const KilnValueHistory *found = NULL;
    const char *rest;

    for (size_t i = 0; i < histories->count; i++) {
        if (!is_below(key, histories->list[i].key, &rest) ||
            (found != NULL && strlen(rest) >= strlen(*ret_rest)))
            continue;
        found = &histories->list[i];
        *ret_rest = rest;
    }
    return found;
}

/* ---- Values ------------------------------------------------------------------------------- */

/* Containers with so many items and no deeper ones, which --cfg prints better; items
 * resolved unless `config` is NULL. */
static void say_value(KilnText *text, const KilnConfig *config, const KilnConfigNode *node,
                      size_t most)
{
    bool map = node->kind == KILN_NODE_MAP;
    size_t n = node->count < most ? node->count : most;

    if (node->kind == KILN_NODE_SCALAR) {
        kiln_write_scalar(text, node);
        return;
    }
    kiln_text_char(text, map ? '{' : '[');
    for (size_t i = 0; i < n; i++) {
        const KilnConfigNode *item = node->entries[i].value;

        if (config != NULL && kiln_config_resolve(config, item, &item, NULL) < 0)
            item = node->entries[i].value;
        kiln_text_append(text, i > 0 ? ", " : "");
        if (map)
            kiln_text_printf(text, "%s: ", node->entries[i].key);
        if (item->kind == KILN_NODE_SCALAR && item->scalar == KILN_SCALAR_STR &&
            strpbrk(item->text, ",[]{}") != NULL)
            kiln_write_quoted(text, item->text);
        else if (item->kind == KILN_NODE_SCALAR)
            kiln_write_scalar(text, item);
        else
            kiln_text_append(text, item->kind == KILN_NODE_MAP ? "{...}" : "[...]");
    }
    kiln_text_append(text, node->count > n ? ", ..." : "");
    kiln_text_char(text, map ? '}' : ']');
}

static void say_present(const Teller *teller, const char *key)
{
    const KilnConfigNode *node =
        kiln_node_find(teller->config != NULL ? teller->config->root : teller->values, key);
    KilnError err = { 0 };

    if (node == NULL)
        kiln_text_append(teller->text, "not there");
    else if (teller->config != NULL && kiln_config_resolve(teller->config, node, &node, &err) < 0)
        kiln_text_printf(teller->text, "error: %.*s", (int)strcspn(err.text, "\n"), err.text);
    else
        say_value(teller->text, teller->config, node, ITEMS_IN_HEAD);
}

/* The value of a step, in one line that is not too long; the columns it takes. */
static int step_value(const KilnValueChange *step, KilnText *ret)
{
    size_t at = 0;
    int columns = 0;

    kiln_text_clear(ret);
    if (step->value != NULL)
        say_value(ret, NULL, step->value, ITEMS_IN_STEP);
    while (at < ret->length) {
        uint32_t c;
        size_t n = kiln_utf8_next(ret->data + at, ret->length - at, &c);
        int width = kiln_utf8_width(c);

        if (columns + width > WIDEST) {
            ret->length = at;
            ret->data[at] = '\0';
            kiln_text_append(ret, "...");
            return columns + 3;
        }
        columns += width;
        at += n;
    }
    return columns;
}

/* ---- Stories ------------------------------------------------------------------------------ */

static void tell_story(Teller *teller, const char *key, int indent);

/* "  set to  0.1  conf/config.yaml:3:5", the value in a column of `width`. */
static void tell_step(const Teller *teller, const KilnValueChange *step, bool first, int indent,
                      int width)
{
    const char *word = step->value != NULL ? (first ? "set to" : "over")
                       : step->why != NULL ? "dropped"
                                           : "removed";
    KilnText value = { 0 };
    int columns = step_value(step, &value);

    kiln_text_printf(teller->text, "%*s%-8s%s%*s  %s", indent, "", word,
                     value.data != NULL ? value.data : "", width - columns, "", step->place);
    if (step->tag != NULL)
        kiln_text_printf(teller->text, " (%s)", step->tag);
    if (step->why != NULL)
        kiln_text_printf(teller->text, ": %s", step->why);
    kiln_text_char(teller->text, '\n');
    teller->text->failed |= value.failed;
    kiln_text_release(&value);
}

static bool was_told(Teller *teller, const char *key)
{
    for (size_t i = 0; i < teller->n_told; i++)
        if (strcmp(teller->told[i], key) == 0)
            return true;
    if (teller->n_told == MOST_TOLD)
        return true;
    teller->told[teller->n_told++] = key;
    return false;
}

static void tell_steps(Teller *teller, const KilnValueHistory *history, int indent)
{
    KilnText value = { 0 };
    int width = 0;

    for (size_t i = 0; i < history->count; i++) {
        int columns = step_value(&history->steps[i], &value);

        width = columns > width ? columns : width;
    }
    kiln_text_release(&value);
    for (size_t i = 0; i < history->count; i++) {
        const KilnValueChange *step = &history->steps[i];

        tell_step(teller, step, i == 0, indent, width);
        for (size_t j = 0; i == 0 && step->refers != NULL && step->refers[j] != NULL; j++)
            tell_story(teller, step->refers[j], indent + 2);
    }
}

/* The key with its value, and below it what happened to it; once. */
static void tell_story(Teller *teller, const char *key, int indent)
{
    const KilnValueHistory *history = find_story(teller->histories, key);

    kiln_text_printf(teller->text, "%*s%s: ", indent, "", key);
    say_present(teller, key);
    if (was_told(teller, key)) {
        kiln_text_append(teller->text, " (see above)\n");
        return;
    }
    kiln_text_char(teller->text, '\n');
    if (history != NULL)
        tell_steps(teller, history, indent + 2);
}

static bool hides(const Teller *teller, const char *key)
{
    char part[KILN_PATH_PART];

    return teller->config != NULL && kiln_path_next(&key, part) &&
           kiln_config_hides(teller->config, part);
}

/* All keys at and below `key`; false when there is none. */
static bool tell_below(Teller *teller, const char *key)
{
    bool found = false;

    for (size_t i = 0; i < teller->histories->count; i++) {
        const KilnValueHistory *history = &teller->histories->list[i];

        if (!is_below(history->key, key, NULL) || (*key == '\0' && hides(teller, history->key)))
            continue;
        teller->n_told = 0;
        tell_story(teller, history->key, 0);
        found = true;
    }
    return found;
}

/* ---- Keys that have no story --------------------------------------------------------------- */

/* `task.model.depth` where task.model is ${model}: the key that it is. */
static const char *referred(Teller *teller, const KilnValueHistory *history, const char *key,
                            const char *rest)
{
    const KilnValueChange *step = &history->steps[0];
    const char *target;

    if (step->value == NULL || step->refers == NULL || step->refers[0] == NULL ||
        step->refers[1] != NULL)
        return NULL;
    target = kiln_arena_printf(teller->histories->arena, "%s%s", step->refers[0], rest);
    if (target == NULL)
        return NULL;
    kiln_text_printf(teller->text, "%s is %s, by %s in %s\n", key, target, step->value->text,
                     step->place);
    return target;
}

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot != NULL ? dot + 1 : key;
}

/* The last name alone is a usual way to ask: keys that end in it. */
static void suggest(const Teller *teller, const char *key, KilnError *err)
{
    KilnText text = { 0 };
    size_t found = 0;

    kiln_text_append(&text, err->text);
    for (size_t i = 0; i < teller->histories->count && found < 3; i++) {
        const char *other = teller->histories->list[i].key;

        if (strcmp(last_part(other), last_part(key)) == 0 && !hides(teller, other))
            kiln_text_printf(&text, "%s'%s'", found++ == 0 ? "; did you mean " : " or ", other);
    }
    if (found > 0 && !text.failed)
        kiln_error_set(err, err->status, "%s?", text.data);
    kiln_text_release(&text);
}

static KilnStatus unknown(const Teller *teller, const char *key, KilnError *err)
{
    const KilnConfigNode *node = NULL;
    KilnError local = { 0 };

    err = err != NULL ? err : &local;
    if (teller->config == NULL)
        kiln_resolve_missing(teller->values, key, err);
    else if (kiln_config_find(teller->config, key, &node, err) >= 0)
        kiln_error_set(err, KILN_E_KEY, "there is nothing to tell about '%s'", key);
    if (strstr(err->text, "did you mean") == NULL)
        suggest(teller, key, err);
    return err->status;
}

static KilnStatus tell_key(Teller *teller, const char *key, int depth, KilnError *err)
{
    const char *rest = "", *target;
    const KilnValueHistory *above;

    if (tell_below(teller, key))
        return KILN_OK;
    above = find_above(teller->histories, key, &rest);
    target = above != NULL && depth < KILN_INTERPOLATION_DEPTH ? referred(teller, above, key, rest)
                                                               : NULL;
    if (target != NULL)
        return tell_key(teller, target, depth + 1, err);
    /* A list's item, or something in what was taken away. */
    const KilnConfigNode *node =
        kiln_node_find(teller->config != NULL ? teller->config->root : teller->values, key);
    if (above == NULL || (node == NULL && above->there))
        return unknown(teller, key, err);
    teller->n_told = 0;
    tell_story(teller, above->key, 0);
    return KILN_OK;
}

KilnStatus kiln_histories_explain(const KilnValueHistories *histories, const KilnConfig *config,
                                  const KilnConfigNode *values, const char *key, KilnText *text,
                                  KilnError *err)
{
    Teller teller = { .histories = histories, .config = config, .values = values, .text = text };
    const char *own = kiln_own_path(histories->arena, key);

    if (own == NULL)
        return kiln_error_nomem(err, strlen(key));
    return tell_key(&teller, own, 0, err);
}

KilnStatus kiln_config_explain(const KilnConfig *config, const char *key, char **ret,
                               KilnError *err)
{
    KilnValueHistories histories = { 0 };
    KilnText text = { 0 };
    KilnStatus status = kiln_histories_collect(config, &histories, err);

    if (status >= 0)
        status = kiln_histories_explain(&histories, config, NULL, key != NULL ? key : "", &text,
                                        err);
    char *taken = status >= 0 ? kiln_text_take(&text) : NULL;
    if (status >= 0 && taken == NULL)
        status = kiln_error_nomem(err, 1);
    if (status >= 0)
        *ret = taken;
    kiln_text_release(&text);
    return status;
}
