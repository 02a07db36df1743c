/* Prints where values come from: --explain, and kiln explain of a past run. value_history.c and
 * origins_file.c collect what is printed here. */
#include <string.h>

#include "base/utf8.h"
#include "config/interpolate/interpolate.h"
#include "config/yaml/output.h"
#include "config/composed.h"
#include "config/provenance/value_history.h"
#include "config/yaml/yaml_writer.h"

enum { MAX_COLUMNS = 60, MAX_PRINTED = 64, ITEMS_IN_CHANGE = 4, ITEMS_IN_HEAD = 16 };

typedef struct Printer {
    const KilnValueHistories *histories;
    const KilnConfigNode *values; /* the root of the config or run */
    KilnText *text;
    const char *printed[MAX_PRINTED]; /* keys printed together with the current one */
    size_t n_printed;
} Printer;

/* ---- Keys --------------------------------------------------------------------------------- */

/* Is `key` equal to `prefix` or inside it? *ret_rest (may be NULL) is what follows. */
static bool is_inside(const char *key, const char *prefix, const char **ret_rest)
{
    char a[KILN_PATH_PART], b[KILN_PATH_PART];

    while (kiln_path_next(&prefix, b))
        if (!kiln_path_next(&key, a) || strcmp(a, b) != 0)
            return false;
    if (ret_rest != NULL)
        *ret_rest = key;
    return true;
}

/* The history of the longest key that `key` is inside of. */
static const KilnValueHistory *find_parent(const KilnValueHistories *histories, const char *key,
                                           const char **ret_rest)
{
    const KilnValueHistory *found = NULL;
    const char *rest;

    for (size_t i = 0; i < histories->count; i++) {
        if (!is_inside(key, histories->list[i].key, &rest) ||
            (found != NULL && strlen(rest) >= strlen(*ret_rest)))
            continue;
        found = &histories->list[i];
        *ret_rest = rest;
    }
    return found;
}

/* ---- Values ------------------------------------------------------------------------------- */

/* At most `max_items` items of a list or mapping, and no deeper ones: --cfg prints those better.
 * Items are resolved unless `config` is NULL. */
static void print_value(KilnText *text, const KilnConfig *config, const KilnConfigNode *node,
                        size_t max_items)
{
    bool map = node->kind == KILN_NODE_MAP;
    size_t n = node->count < max_items ? node->count : max_items;

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

static void print_current(const Printer *printer, const char *key)
{
    const KilnConfigNode *node = kiln_node_find(printer->values, key);
    KilnError err = { 0 };

    if (node == NULL)
        kiln_text_append(printer->text, "not there");
    else if (printer->histories->config != NULL &&
             kiln_config_resolve(printer->histories->config, node, &node, &err) < 0)
        kiln_text_printf(printer->text, "error: %.*s", (int)strcspn(err.text, "\n"), err.text);
    else
        print_value(printer->text, printer->histories->config, node, ITEMS_IN_HEAD);
}

/* The value of a change on one line, shortened; the columns it takes. */
static int change_value(const KilnValueChange *change, KilnText *ret)
{
    size_t at = 0;
    int columns = 0;

    kiln_text_clear(ret);
    if (change->value != NULL)
        print_value(ret, NULL, change->value, ITEMS_IN_CHANGE);
    while (at < ret->length) {
        uint32_t c;
        size_t n = kiln_utf8_next(ret->data + at, ret->length - at, &c);
        int width = kiln_utf8_width(c);

        if (columns + width > MAX_COLUMNS) {
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

/* ---- Histories ---------------------------------------------------------------------------- */

/* "  set to  0.1  conf/config.yaml:3:5", the value in a column of `width`. */
static void print_change(const Printer *printer, const KilnValueChange *change, bool first,
                         int indent, int width)
{
    const char *word = change->value != NULL ? (first ? "set to" : "over")
                       : change->why != NULL ? "dropped"
                                             : "removed";
    KilnText value = { 0 };
    int columns = change_value(change, &value);

    kiln_text_printf(printer->text, "%*s%-8s%s%*s  %s", indent, "", word,
                     value.data != NULL ? value.data : "", width - columns, "", change->origin);
    if (change->tag != NULL)
        kiln_text_printf(printer->text, " (%s)", change->tag);
    if (change->why != NULL)
        kiln_text_printf(printer->text, ": %s", change->why);
    kiln_text_char(printer->text, '\n');
    printer->text->failed |= value.failed;
    kiln_text_release(&value);
}

static int widest_value(const KilnValueHistory *history)
{
    KilnText value = { 0 };
    int width = 0;

    for (size_t i = 0; i < history->count; i++) {
        int columns = change_value(&history->changes[i], &value);

        width = columns > width ? columns : width;
    }
    kiln_text_release(&value);
    return width;
}

/* Marks the key as printed. True when it was before, or when too many were. */
static bool was_printed(Printer *printer, const char *key)
{
    for (size_t i = 0; i < printer->n_printed; i++)
        if (strcmp(printer->printed[i], key) == 0)
            return true;
    if (printer->n_printed == MAX_PRINTED)
        return true;
    printer->printed[printer->n_printed++] = key;
    return false;
}

/* The key with its value, then its changes and those of the keys that it refers to; once. */
static void print_history(Printer *printer, const char *key, int indent)
{
    const KilnValueHistory *history = kiln_histories_find(printer->histories, key);

    kiln_text_printf(printer->text, "%*s%s: ", indent, "", key);
    print_current(printer, key);
    if (was_printed(printer, key)) {
        kiln_text_append(printer->text, " (see above)\n");
        return;
    }
    kiln_text_char(printer->text, '\n');
    const int width = history != NULL ? widest_value(history) : 0;
    for (size_t i = 0; history != NULL && i < history->count; i++) {
        const KilnValueChange *change = &history->changes[i];

        print_change(printer, change, i == 0, indent + 2, width);
        for (size_t j = 0; i == 0 && change->references != NULL && change->references[j] != NULL;
             j++)
            print_history(printer, change->references[j], indent + 4);
    }
}

static bool is_hidden(const Printer *printer, const char *key)
{
    return printer->histories->config != NULL && kiln_config_hides(printer->histories->config, key);
}

/* `key` and all keys inside it; false when there is none. */
static bool print_inside(Printer *printer, const char *key)
{
    bool found = false;

    for (size_t i = 0; i < printer->histories->count; i++) {
        const KilnValueHistory *history = &printer->histories->list[i];

        if (!is_inside(history->key, key, NULL) ||
            (*key == '\0' && is_hidden(printer, history->key)))
            continue;
        printer->n_printed = 0;
        print_history(printer, history->key, 0);
        found = true;
    }
    return found;
}

/* ---- Keys without a history --------------------------------------------------------------- */

/* For `task.model.depth` where task.model is ${model}: "model.depth". */
static const char *follow_reference(Printer *printer, const KilnValueHistory *history,
                                    const char *key, const char *rest)
{
    const KilnValueChange *change = &history->changes[0];

    if (change->value == NULL || change->references == NULL || change->references[0] == NULL ||
        change->references[1] != NULL)
        return NULL;
    const char *target = kiln_arena_printf(printer->histories->arena, "%s%s", change->references[0],
                                           rest);
    if (target != NULL)
        kiln_text_printf(printer->text, "%s is %s, by %s in %s\n", key, target, change->value->text,
                         change->origin);
    return target;
}

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot != NULL ? dot + 1 : key;
}

/* People often give the last name alone: suggest keys that end in it. */
static void suggest(const Printer *printer, const char *key, KilnError *err)
{
    KilnText text = { 0 };
    size_t found = 0;

    kiln_text_append(&text, err->text);
    for (size_t i = 0; i < printer->histories->count && found < 3; i++) {
        const char *other = printer->histories->list[i].key;

        if (strcmp(last_part(other), last_part(key)) == 0 && !is_hidden(printer, other))
            kiln_text_printf(&text, "%s'%s'", found++ == 0 ? "; did you mean " : " or ", other);
    }
    if (found > 0 && !text.failed)
        kiln_error_set(err, err->status, "%s?", text.data);
    kiln_text_release(&text);
}

static KilnStatus unknown_key(const Printer *printer, const char *key, KilnError *err)
{
    const KilnConfigNode *node = NULL;
    KilnError local = { 0 };

    err = err != NULL ? err : &local;
    if (printer->histories->config == NULL)
        kiln_resolve_missing(printer->values, key, err);
    else if (kiln_config_find(printer->histories->config, key, &node, err) >= 0)
        kiln_error_set(err, KILN_E_KEY, "'%s' has no history", key);
    if (strstr(err->text, "did you mean") == NULL)
        suggest(printer, key, err);
    return err->status;
}

static KilnStatus print_key(Printer *printer, const char *key, int depth, KilnError *err)
{
    const char *rest = "", *target = NULL;

    if (print_inside(printer, key))
        return KILN_OK;
    const KilnValueHistory *parent = find_parent(printer->histories, key, &rest);
    if (parent != NULL && depth < KILN_INTERPOLATION_DEPTH)
        target = follow_reference(printer, parent, key, rest);
    if (target != NULL)
        return print_key(printer, target, depth + 1, err);
    /* The key may be an item of a list, or in something that was removed. */
    if (parent == NULL || (parent->is_set && kiln_node_find(printer->values, key) == NULL))
        return unknown_key(printer, key, err);
    printer->n_printed = 0;
    print_history(printer, parent->key, 0);
    return KILN_OK;
}

KilnStatus kiln_histories_explain(const KilnValueHistories *histories, const KilnConfigNode *values,
                                  const char *key, char **ret, KilnError *err)
{
    KilnText text = { 0 };
    Printer printer = { .histories = histories, .values = values, .text = &text };
    const char *own = kiln_own_path(histories->arena, key);
    KilnStatus status = own != NULL ? print_key(&printer, own, 0, err)
                                    : kiln_error_nomem(err, strlen(key));

    return kiln_text_finish(&text, status, ret, err);
}

KilnStatus kiln_config_explain(const KilnConfig *config, const char *key, char **ret,
                               KilnError *err)
{
    KilnValueHistories histories = { 0 };
    KilnStatus status = kiln_histories_collect(config, &histories, err);

    if (status < 0)
        return status;
    return kiln_histories_explain(&histories, config->root, key != NULL ? key : "", ret, err);
}
