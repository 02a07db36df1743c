/* Writes the defaults lists: groups by their new names, those that a file was split into, and those
 * that kiln needs. */
#include <string.h>

#include "base/array.h"
#include "cli/hydra/outputs.h"
#include "config/composed.h"
#include "config/defaults/defaults_entry.h"
#include "config/tree/tree.h"

/* The groups of a config that trains, and what they are where the user's tree says nothing. */
static const struct {
    const char *group, *option;
} needed[] = {
    { "task", NULL /* the one that was assumed */ },
    { "datamodule", "???" },
    { "model", "???" },
    { "optimizer", "???" },
    { "scheduler", "constant" },
    { "callbacks", "default" },
    { "logger", "csv" },
};

/* Hydra's plugins. */
static const struct {
    const char *group, *option, *here;
} plugins[] = {
    { "kiln/sweeper", "optuna", "tpe" },
    { "kiln/sweeper", "ax", "gp" },
    { "kiln/sweeper", "nevergrad", "cmaes" },
    { "kiln/sweeper", "basic", "grid" },
    { "kiln/launcher", "joblib", "local" },
    { "kiln/launcher", "basic", "local" },
    { "kiln/launcher", "submitit_slurm", "slurm" },
    { "kiln/launcher", "submitit_local", "local" },
};

enum { DEEPEST = 16 /* options that select others */ };

typedef struct Lists {
    KilnImportOutputs *outputs;
    KilnArena *arena;
    KilnErrors *errors;
    KilnImportOutput *output;
    KilnImportNode *list;
} Lists;

static KilnImportNode *add_item(Lists *lists, const KilnImportComments *comments)
{
    KilnImportNode *item;

    if (lists->list == NULL) {
        lists->list = kiln_import_node_add(lists->arena, &lists->output->defaults, "defaults");
        if (lists->list == NULL)
            return NULL;
        lists->list->list = true;
    }
    item = kiln_import_node_add(lists->arena, lists->list, NULL);
    if (item != NULL && comments != NULL) {
        item->before = comments->before;
        item->after = comments->after;
        item->below = comments->below;
    }
    return item;
}

/* The entry that has the key already: callbacks, which the user's trainer lists, too. */
static KilnImportNode *find_item(const Lists *lists, const char *key)
{
    for (KilnImportNode *item = lists->list != NULL ? lists->list->first : NULL; item != NULL;
         item = item->next)
        if (item->first != NULL && strcmp(item->first->key, key) == 0)
            return item->first;
    return NULL;
}

/* "a" and "b" make "[a, b]"; null is none. */
static void join_option(KilnArena *arena, KilnImportNode *item, const char *option)
{
    const char *old = item->text;
    const bool list = old[0] == '[';

    if (strcmp(option, "null") == 0 || strcmp(option, old) == 0)
        return;
    if (strcmp(old, "null") == 0)
        item->text = option;
    else
        item->text = kiln_arena_printf(arena, "%s%.*s, %s]", list ? "" : "[",
                                       (int)(strlen(old) - (list ? 1 : 0)), old, option);
}

/* "- KEY: OPTION", or "- KEY" without an option; an option more of a group that is there. */
static void put(Lists *lists, const char *key, const char *option,
                const KilnImportComments *comments)
{
    KilnImportNode *item = option != NULL ? find_item(lists, key) : NULL;

    if (item != NULL) {
        join_option(lists->arena, item, option);
        return;
    }
    item = add_item(lists, option == NULL ? comments : NULL);

    if (item == NULL)
        return;
    if (option == NULL) {
        item->text = key;
        return;
    }
    item = kiln_import_node_add(lists->arena, item, key);
    if (item == NULL)
        return;
    item->text = option;
    if (comments != NULL) {
        item->before = comments->before;
        item->after = comments->after;
        item->below = comments->below;
    }
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* The output that a file's values of a group went to; NULL: it has none. */
static const KilnImportOutput *part_of(const KilnImportOutputs *outputs, const KilnImportFile *file,
                                       const char *group)
{
    for (size_t i = 0; i < outputs->n; i++)
        if (outputs->items[i].source == file && strcmp(outputs->items[i].group, group) == 0)
            return &outputs->items[i];
    return NULL;
}

/* The i-th of the groups that the options of a group went to; NULL after the last. The main ones
 * come first. */
static const char *new_group(const KilnImportOutputs *outputs, const char *group, size_t i)
{
    for (int whole = 1; whole >= 0; whole--)
        for (size_t k = 0; k < outputs->n; k++) {
            const KilnImportOutput *output = &outputs->items[k];
            bool before = false;

            if (strcmp(output->source->group, group) != 0 || output->whole != (whole == 1))
                continue;
            for (size_t j = 0; j < outputs->n && !before; j++)
                before = strcmp(outputs->items[j].source->group, group) == 0 &&
                         strcmp(outputs->items[j].group, output->group) == 0 &&
                         (outputs->items[j].whole > output->whole ||
                          (j < k && outputs->items[j].whole == output->whole));
            if (!before && i-- == 0)
                return output->group;
        }
    return NULL;
}

/* "override /optimizer@PACKAGE" of an entry of the user's. */
static const char *entry_key(Lists *lists, const KilnDefaultsEntry *entry, const char *group)
{
    const KilnImportOutputs *outputs = lists->outputs;
    const KilnImportFile *file = lists->output->source;
    const char *into = kiln_import_moved(outputs->places, lists->arena, file, entry->into, false);
    const char *slash = entry->name[0] == '/' || file->group[0] != '\0' ? "/" : "", *at = "";
    char *usual = kiln_arena_strdup(lists->arena, group);

    for (char *p = usual; p != NULL && *p != '\0'; p++)
        if (*p == '/')
            *p = '.';
    if (entry->package != NULL && usual != NULL && into != NULL && strcmp(into, usual) != 0)
        at = kiln_arena_printf(
            lists->arena, "@%s%s%s", lists->output->group[0] != '\0' ? "_global_" : "",
            lists->output->group[0] != '\0' && into[0] != '\0' ? "." : "",
            into[0] != '\0' || lists->output->group[0] != '\0' ? into : "_global_");
    else if (file->package[0] != '\0')
        at = kiln_arena_printf(lists->arena, "@_global_.%s", usual);
    return kiln_arena_printf(lists->arena, "%s%s%s%s%s", entry->optional ? "optional " : "",
                             entry->override ? "override " : "", slash, group, at);
}

static const char *option_text(Lists *lists, const KilnDefaultsEntry *entry,
                               const KilnConfigNode *value, const char *group)
{
    const KilnImportFile *file = lists->output->source, *options;
    const char *text = kiln_import_value_text(file, value);
    const KilnImportOutput *part;

    if (entry->option == NULL || value->scalar != KILN_SCALAR_STR)
        return text != NULL ? text : value->text;
    options = kiln_import_file_find(lists->outputs->source, entry->group, entry->option);
    if (options == NULL)
        return text != NULL ? text : value->text;
    part = part_of(lists->outputs, options, group);
    if (part != NULL)
        return part->option;
    /* The option has no values of this group; another one's must not stay. */
    return strcmp(group, "scheduler") == 0 ? "constant" : NULL;
}

static void put_group(Lists *lists, const KilnDefaultsEntry *entry, const KilnEntry *pair)
{
    const KilnImportComments *comments = kiln_import_comments_of(lists->output->source, pair);
    const char *key = kiln_import_spelling(lists->output->source, pair->key_origin), *group;
    const char *text = kiln_import_value_text(lists->output->source, pair->value);

    for (size_t i = 0; i < KILN_COUNT(plugins); i++)
        if (entry->option != NULL && strcmp(plugins[i].group, entry->group) == 0 &&
            strcmp(plugins[i].option, entry->option) == 0)
            text = plugins[i].here;
    if (text == NULL) { /* a list over several lines */
        KilnText joined = { 0 };

        for (size_t i = 0; entry->options != NULL && entry->options[i] != NULL; i++)
            kiln_text_printf(&joined, "%s%s", i > 0 ? ", " : "[", entry->options[i]);
        kiln_text_char(&joined, ']');
        text = kiln_text_to_arena(&joined, lists->arena);
    }
    group = new_group(lists->outputs, entry->group, 0);
    if (group == NULL ||
        (strcmp(group, entry->group) == 0 && new_group(lists->outputs, entry->group, 1) == NULL &&
         strcmp(kiln_import_moved(lists->outputs->places, lists->arena, lists->output->source,
                                  entry->into, false),
                entry->into) == 0)) {
        put(lists, key != NULL ? key : pair->key, text, comments);
        return;
    }
    for (size_t i = 0; (group = new_group(lists->outputs, entry->group, i)) != NULL; i++) {
        const char *option = entry->options == NULL ? option_text(lists, entry, pair->value, group)
                                                    : text;

        if (option != NULL) {
            put(lists, entry_key(lists, entry, group), option, comments);
            comments = NULL;
        }
    }
}

/* A config of the same group, or another one's. */
static void put_config(Lists *lists, const KilnDefaultsEntry *entry, const KilnEntry *item)
{
    const KilnImportComments *comments = kiln_import_comments_of(lists->output->source, item);
    const char *slash = strrchr(entry->path, '/');
    const KilnImportFile *file = kiln_import_file_find(lists->outputs->source, entry->group,
                                                       slash != NULL ? slash + 1 : entry->path);

    if (file == NULL) {
        if (lists->output->whole)
            put(lists, kiln_import_spelling(lists->output->source, item->value->origin), NULL,
                comments);
        return;
    }
    const bool same_group = strcmp(file->group, lists->output->source->group) == 0;
    for (size_t i = 0; i < lists->outputs->n; i++) {
        const KilnImportOutput *part = &lists->outputs->items[i];

        if (part->source != file)
            continue;
        if (same_group && strcmp(part->group, lists->output->group) == 0)
            put(lists, part->option, NULL, comments);
        else if (!same_group && lists->output->whole)
            put(lists,
                kiln_arena_printf(lists->arena, "/%s%s%s", part->group,
                                  part->group[0] != '\0' ? "/" : "", part->option),
                NULL, comments);
        else
            continue;
        comments = NULL;
    }
}

static void put_entry(Lists *lists, const KilnEntry *item, const KilnDefaultsEntry *parent)
{
    KilnDefaultsEntry *entry = kiln_defaults_entry_read(lists->arena, item->value, lists->errors);

    if (entry == NULL)
        return;
    if (entry->kind == KILN_DEFAULTS_SELF) {
        put(lists, "_self_", NULL, kiln_import_comments_of(lists->output->source, item));
        return;
    }
    if (!kiln_defaults_entry_attach(lists->arena, entry, parent))
        return;
    if (entry->kind == KILN_DEFAULTS_CONFIG)
        put_config(lists, entry, item);
    else if (lists->output->whole)
        put_group(lists, entry, &item->value->entries[0]);
}

/* ---- The primary config ---------------------------------------------------------------------- */

static const KilnImportOutput *find_output(const KilnImportOutputs *outputs, const char *key,
                                           const char *option)
{
    const size_t n = strcspn(key, "@");

    for (size_t i = 0; i < outputs->n; i++)
        if (strlen(outputs->items[i].group) == n && strncmp(outputs->items[i].group, key, n) == 0 &&
            strcmp(outputs->items[i].option, option) == 0)
            return &outputs->items[i];
    return NULL;
}

/* Whether the config, or an option that it selects, has a value of the group. */
static bool selects(const KilnImportOutputs *outputs, const KilnImportOutput *output,
                    const char *group, int depth)
{
    const KilnImportNode *list = output->defaults.first;

    for (const KilnImportNode *item = list != NULL ? list->first : NULL; item != NULL;
         item = item->next) {
        const char *key = item->first != NULL ? item->first->key : NULL;
        const KilnImportOutput *option;

        if (key == NULL)
            continue;
        key += key[0] == '/';
        if (strncmp(key, group, strlen(group)) == 0 && strchr("@", key[strlen(group)]) != NULL)
            return true;
        option = find_output(outputs, key, item->first->text);
        if (option != NULL && depth < DEEPEST && selects(outputs, option, group, depth + 1))
            return true;
    }
    return kiln_import_node_get(output->content, group) != NULL &&
           kiln_import_node_lives(kiln_import_node_get(output->content, group));
}

static bool is_primary(const KilnImportOutputs *outputs, const KilnImportOutput *output)
{
    return output->source->group[0] == '\0' &&
           (selects(outputs, output, "trainer", 0) || selects(outputs, output, "model", 0)) &&
           (selects(outputs, output, "datamodule", 0) || selects(outputs, output, "task", 0));
}

/* Select what kiln needs, ahead of the user's groups, and note what was chosen. */
static void complete(Lists *lists)
{
    KilnImportNode *old = lists->list != NULL ? lists->list->first : NULL;
    KilnImportNode *last = lists->list != NULL ? lists->list->last : NULL;

    if (old != NULL && old->text != NULL && strcmp(old->text, "_self_") == 0) {
        old = old->next;
        lists->list->first->next = NULL;
        lists->list->last = lists->list->first;
    } else if (lists->list != NULL) {
        lists->list->first = lists->list->last = NULL;
    }
    /* Without a list the file's own values come last, as in Hydra. */
    KilnImportOutput user = { .source = lists->output->source, .content = lists->output->content };
    KilnImportNode list = { .first = old };
    user.defaults.first = &list;
    for (size_t i = 0; i < KILN_COUNT(needed); i++)
        if (!selects(lists->outputs, &user, needed[i].group, 0))
            put(lists, needed[i].group,
                needed[i].option != NULL ? needed[i].option : lists->outputs->task, NULL);
    if (lists->list != NULL && old != NULL) {
        if (lists->list->last != NULL)
            lists->list->last->next = old;
        else
            lists->list->first = old;
        lists->list->last = last;
    }
}

/* The first number that the user's classes of a kind have for an option. */
static const char *find_value(const KilnImportOutputs *outputs, const char *group,
                              const char *option)
{
    /* Those of groups before those of experiments. */
    for (size_t i = 0; i < 2 * outputs->source->n_files; i++) {
        const size_t file = i % outputs->source->n_files;
        const bool global = outputs->source->files[file].package[0] == '\0';
        const KilnImportNode *node = kiln_import_node_get(outputs->trees[file], group);

        node = node != NULL && global == (i >= outputs->source->n_files)
                   ? kiln_import_node_get(node, option)
                   : NULL;
        if (node != NULL && node->text != NULL && strchr("0123456789.", node->text[0]) != NULL)
            return node->text;
    }
    return NULL;
}

/* kiln's own options take the learning rate and the batch size from the root. */
static void add_root_values(KilnImportOutputs *outputs, KilnImportNode *root)
{
    static const struct {
        const char *key, *group, *option, *usual;
    } values[] = { { "lr", "optimizer", "lr", "0.001" },
                   { "batch_size", "datamodule", "batch_size", "64" } };

    for (size_t i = 0; i < KILN_COUNT(values); i++) {
        KilnImportNode *node;
        const char *text = find_value(outputs, values[i].group, values[i].option);

        if (kiln_import_node_get(root, values[i].key) != NULL)
            continue;
        node = kiln_import_node_add(&outputs->arena, root, values[i].key);
        if (node == NULL)
            return;
        node->before = i == 0 ? "\n# taken by the options of groups that kiln itself has: "
                                "optimizer=sgd, datamodule=digits\n"
                              : NULL;
        node->text = text != NULL ? text : values[i].usual;
    }
}

/* Whether the user's task, or kiln's, has a metric of that name. */
static bool has_metric(const KilnImportOutputs *outputs, const KilnImportMetric *metric)
{
    if (metric->component == NULL || strcmp(metric->name, strchr(metric->component, '/') + 1) == 0)
        return true;
    for (size_t i = 0; i < outputs->source->n_files; i++) {
        const KilnImportNode *task = kiln_import_node_get(outputs->trees[i], "task");
        const KilnImportNode *metrics = task != NULL ? kiln_import_node_get(task, "metrics") : NULL;

        if (metrics != NULL && kiln_import_node_get(metrics, metric->name) != NULL)
            return true;
    }
    return false;
}

/* The metrics that options name and nothing else has. */
static void add_metrics(KilnImportOutputs *outputs, KilnImportNode *root, const bool *there)
{
    for (size_t i = 0; i < outputs->changes.n_metrics; i++) {
        const KilnImportMetric *metric = &outputs->changes.metrics[i];
        const char *path = kiln_arena_printf(&outputs->arena, "task.metrics.%s", metric->name);
        KilnImportNode *node = there[i] ? NULL : kiln_import_node_make(&outputs->arena, root, path);

        if (node != NULL) {
            node->text = metric->component;
            node->after = kiln_arena_printf(&outputs->arena, "# %s", metric->whole);
        }
    }
}

static void choose_primary(KilnImportOutputs *outputs, const KilnImportOutput *output)
{
    /* train.yaml, or else config.yaml, or the first one. */
    if (outputs->primary == NULL || strcmp(output->option, "train") == 0 ||
        (strcmp(output->option, "config") == 0 && strcmp(outputs->primary, "train") != 0))
        outputs->primary = output->option;
}

/* The list of an output, from the user's. */
static void put_list(Lists *lists, KilnImportOutput *output)
{
    const KilnImportFile *file = output->source;
    const KilnEntry *entry = file->root != NULL ? kiln_node_entry(file->root, "defaults") : NULL;
    const KilnDefaultsEntry parent = { .group = file->group, .into = file->package };
    const KilnImportComments *comments = entry != NULL ? kiln_import_comments_of(file, entry)
                                                       : NULL;

    lists->output = output;
    lists->list = NULL;
    for (size_t k = 0; entry != NULL && k < entry->value->count; k++)
        put_entry(lists, &entry->value->entries[k], &parent);
    if (comments != NULL && lists->list != NULL) {
        lists->list->before = output->whole ? comments->before : NULL;
        lists->list->after = comments->after;
    }
}

/* Groups and values that kiln needs, for each config that can be trained. */
static void complete_all(Lists *lists, const bool *there)
{
    KilnImportOutputs *outputs = lists->outputs;

    for (size_t i = 0; i < outputs->n; i++) {
        KilnImportOutput *output = &outputs->items[i];
        KilnImportNode *root = outputs->trees[output->source - outputs->source->files];

        if (!is_primary(outputs, output))
            continue;
        lists->output = output;
        lists->list = output->defaults.first;
        complete(lists);
        choose_primary(outputs, output);
        add_metrics(outputs, root, there);
        add_root_values(outputs, root);
    }
}

KilnStatus kiln_import_defaults(KilnImportOutputs *outputs, KilnError *err)
{
    Lists lists = { .outputs = outputs, .arena = &outputs->arena };
    bool *there = kiln_arena_alloc(&outputs->arena, outputs->changes.n_metrics + 1);
    KilnStatus status = kiln_errors_new(&lists.errors);

    if (status < 0 || there == NULL)
        return kiln_error_nomem(err, outputs->changes.n_metrics);
    for (size_t i = 0; i < outputs->changes.n_metrics; i++)
        there[i] = has_metric(outputs, &outputs->changes.metrics[i]);
    for (size_t i = 0; i < outputs->n; i++)
        put_list(&lists, &outputs->items[i]);
    complete_all(&lists, there);
    if (kiln_errors_count(lists.errors) > 0)
        status = kiln_error_set(err, KILN_E_TYPE, "%s", kiln_errors_text(lists.errors, 0));
    kiln_errors_free(lists.errors);
    return status;
}
