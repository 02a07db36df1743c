/* Converts the values of options. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/hydra/rewrite.h"
#include "config/yaml/yaml_writer.h"

/* Metrics by the names that users give them: those of kiln itself need no row. */
static const struct {
    const char *name, *component;
} usual[] = {
    { "acc", "metric/accuracy" },   { "accuracy", "metric/accuracy" },
    { "top1", "metric/accuracy" },  { "f1", "metric/f1" },
    { "f1_score", "metric/f1" },    { "precision", "metric/precision" },
    { "recall", "metric/recall" },  { "auc", "metric/auroc" },
    { "auroc", "metric/auroc" },    { "ap", "metric/average_precision" },
    { "iou", "metric/iou" },        { "miou", "metric/iou" },
    { "jaccard", "metric/iou" },    { "dice", "metric/dice" },
    { "mae", "metric/mae" },        { "mse", "metric/mse" },
    { "r2", "metric/r2" },          { "perplexity", "metric/perplexity" },
    { "ppl", "metric/perplexity" }, { "wer", "metric/error_rate" },
    { "cer", "metric/error_rate" }, { "bleu", "metric/bleu" },
    { "map", "metric/coco_map" },
};

static const char *left_out(KilnImportRewrite *rewrite, const KilnImportOption *option,
                            const KilnEntry *entry)
{
    kiln_import_changed(rewrite, entry->key_origin, option->from, "left out%s%s",
                        option->note != NULL ? ": " : "", option->note != NULL ? option->note : "");
    return NULL;
}

static const char *same(KilnImportRewrite *rewrite, const KilnConfigNode *value, const char *path)
{
    const char *text = kiln_import_value_text(rewrite->file, value);
    KilnText other = { 0 };

    if (text != NULL && rewrite->raw)
        return text;
    if (text != NULL && text[0] != '&' && text[0] != '!')
        return kiln_import_references(rewrite, text, path);
    if (value->kind == KILN_NODE_SCALAR)
        kiln_write_scalar(&other, value);
    else
        kiln_write_flow(&other, value, 0);
    text = kiln_text_to_arena(&other, rewrite->arena);
    return text != NULL ? kiln_import_references(rewrite, text, path) : NULL;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static const char *choose(KilnImportRewrite *rewrite, const KilnImportOption *option,
                          const KilnEntry *entry, const char *path)
{
    char chosen[64];

    if (entry->value->kind != KILN_NODE_SCALAR)
        return left_out(rewrite, option, entry);
    if (entry->value->scalar == KILN_SCALAR_INTERPOLATION)
        return same(rewrite, entry->value, path);
    if (!kiln_import_choice(option->arg, entry->value->text, chosen, sizeof(chosen)))
        return entry->value->scalar == KILN_SCALAR_NULL ? NULL : left_out(rewrite, option, entry);
    if (strcmp(chosen, entry->value->text) != 0)
        kiln_import_changed(rewrite, entry->key_origin, option->from, "%s became %s",
                            entry->value->text, chosen);
    return kiln_arena_strdup(rewrite->arena, chosen);
}

/* The optimizer's rate may be an argument: the fraction is computed when the config is composed. */
static const char *fraction(KilnImportRewrite *rewrite, const KilnImportOption *option,
                            const KilnEntry *entry, const char *path)
{
    const KilnConfigNode *value = entry->value;
    const char *text = same(rewrite, value, path);

    if (text == NULL || value->kind != KILN_NODE_SCALAR)
        return left_out(rewrite, option, entry);
    if (strspn(text, "0.") == strlen(text))
        return "0.0";
    kiln_import_changed(rewrite, entry->key_origin, option->from, "is %s, %s", option->to,
                        option->note);
    return kiln_arena_printf(rewrite->arena, "\"${eval: %s / ${optimizer.lr}}\"", text);
}

static const char *duration(KilnImportRewrite *rewrite, const KilnImportOption *option,
                            const KilnEntry *entry, const char *path)
{
    static const struct {
        const char *key;
        const char *unit;
        int factor;
    } units[] = { { "weeks", "d", 7 },
                  { "days", "d", 1 },
                  { "hours", "h", 1 },
                  { "minutes", "m", 1 },
                  { "seconds", "s", 1 } };
    KilnText text = { 0 };

    if (entry->value->kind != KILN_NODE_MAP)
        return same(rewrite, entry->value, path);
    for (size_t i = 0; i < KILN_COUNT(units); i++) {
        const char *number = kiln_node_text(entry->value, units[i].key);

        if (number != NULL && units[i].factor == 1)
            kiln_text_printf(&text, "%s%s", number, units[i].unit);
        else if (number != NULL)
            kiln_text_printf(&text, "%ld%s", strtol(number, NULL, 10) * units[i].factor,
                             units[i].unit);
    }
    if (text.length == 0)
        return left_out(rewrite, option, entry);
    return kiln_text_to_arena(&text, rewrite->arena);
}

static void note_metric(KilnImportRewrite *rewrite, const char *name, KilnOrigin origin)
{
    KilnImportChanges *changes = rewrite->changes;
    const char *slash = strchr(name, '/'), *key = slash != NULL ? slash + 1 : name, *found = NULL;

    if (slash == NULL || strcmp(key, "loss") == 0)
        return;
    for (size_t i = 0; i < changes->n_metrics; i++)
        if (strcmp(changes->metrics[i].whole, name) == 0)
            return;
    for (size_t i = 0; i < KILN_COUNT(usual); i++)
        if (strcmp(usual[i].name, key) == 0)
            found = usual[i].component;
    if (KILN_ARENA_RESERVE(rewrite->arena, changes->metrics, changes->metrics_capacity,
                           changes->n_metrics + 1))
        changes->metrics[changes->n_metrics++] = (KilnImportMetric) { key, found, name, origin };
}

/* The name that kiln logs: val_loss and val/acc_best are val/loss and val/acc. */
static const char *metric(KilnImportRewrite *rewrite, const KilnImportOption *option,
                          const KilnEntry *entry, const char *path)
{
    static const char *const splits[] = { "train", "val", "test" };
    static const char best[] = "_best";
    const KilnConfigNode *value = entry->value;
    char name[128];

    if (value->kind != KILN_NODE_SCALAR || value->scalar != KILN_SCALAR_STR ||
        strlen(value->text) >= sizeof(name))
        return same(rewrite, value, path);
    strcpy(name, value->text);
    for (size_t i = 0; i < KILN_COUNT(splits); i++)
        if (kiln_starts_with(name, splits[i]) && name[strlen(splits[i])] == '_')
            name[strlen(splits[i])] = '/';
    if (kiln_ends_with(name, best))
        name[strlen(name) - strlen(best)] = '\0';
    const char *copy = kiln_arena_strdup(rewrite->arena, name);
    if (copy == NULL)
        return NULL;
    note_metric(rewrite, copy, value->origin);
    if (strcmp(name, value->text) == 0)
        return same(rewrite, value, path);
    kiln_import_changed(rewrite, entry->key_origin, option->from, "%s is %s here", value->text,
                        name);
    return copy;
}

/* "root" and "/MNIST/raw" make "root/MNIST/raw". */
static const char *folder(KilnImportRewrite *rewrite, const KilnImportOption *option,
                          const KilnEntry *entry, const char *path)
{
    const char *text = same(rewrite, entry->value, path);
    size_t n = text != NULL ? strlen(text) : 0;
    const char quote = n > 1 && (text[0] == '"' || text[0] == '\'') ? text[0] : '\0';

    if (text == NULL || entry->value->kind != KILN_NODE_SCALAR)
        return text;
    n -= quote != '\0';
    n -= n > 0 && text[n - 1] == '/';
    kiln_import_changed(rewrite, entry->key_origin, option->from, "%s below it: %s",
                        option->arg + 1, option->note);
    return kiln_arena_printf(rewrite->arena, "%.*s%s%.1s", (int)n, text, option->arg,
                             quote != '\0' ? &quote : "");
}

static const char *span(KilnImportRewrite *rewrite, const KilnImportOption *option,
                        const KilnEntry *entry, const char *path)
{
    const KilnConfigNode *value = entry->value;

    if (value->kind != KILN_NODE_LIST || value->count == 0)
        return same(rewrite, value, path);
    kiln_import_changed(rewrite, entry->key_origin, option->from, "%s", option->note);
    return same(rewrite, value->entries[value->count - 1].value, path);
}

const char *kiln_import_value(KilnImportRewrite *rewrite, const KilnImportOption *option,
                              const KilnEntry *entry, const char *path)
{
    const KilnConfigNode *value = entry->value;
    const bool scalar = value->kind == KILN_NODE_SCALAR;

    switch (option->rule) {
    case KILN_IMPORT_NOT_NULL:
        return scalar && value->scalar == KILN_SCALAR_NULL ? NULL : same(rewrite, value, path);
    case KILN_IMPORT_CHOICE:
        return choose(rewrite, option, entry, path);
    case KILN_IMPORT_FRACTION:
        return fraction(rewrite, option, entry, path);
    case KILN_IMPORT_DURATION:
        return duration(rewrite, option, entry, path);
    case KILN_IMPORT_METRIC:
        return metric(rewrite, option, entry, path);
    case KILN_IMPORT_FOLDER:
        return folder(rewrite, option, entry, path);
    case KILN_IMPORT_SPAN:
        return span(rewrite, option, entry, path);
    case KILN_IMPORT_NEEDLESS:
        return NULL;
    case KILN_IMPORT_ABSENT:
        return scalar && kiln_import_lists(option->arg, value->text)
                   ? NULL
                   : left_out(rewrite, option, entry);
    default:
        if (option->note != NULL)
            kiln_import_changed(rewrite, entry->key_origin, option->from, "%s", option->note);
        else if (strcmp(option->to, option->from) != 0)
            kiln_import_changed(rewrite, entry->key_origin, option->from, "is %s", option->to);
        return same(rewrite, value, path);
    }
}
