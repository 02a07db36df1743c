/* kiln ckpt: lists, shows, verifies, compares and merges checkpoints. (average: ckpt_average.c) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/find_run.h"
#include "cli/screen/screen.h"
#include "cli/verify/differences.h"
#include "config/yaml/yaml_reader.h"
#include "kiln/embed/run.h"
#include "kiln/tools/clock.h"
#include "tensor/safetensors.h"
#include "train/checkpoint/checkpoint.h"
#include "train/lora/adapters.h"

/* The checkpoint folder that a word names. */
static KilnStatus find(const char *word, char **ret, KilnError *err)
{
    return kiln_checkpoint_resolve(word, "outputs", ret, err);
}

/* ---- ls --------------------------------------------------------------------------------- */

static int64_t bytes_in(const char *dir)
{
    char **names = NULL;
    size_t n = 0;
    int64_t sum = 0;

    if (kiln_checkpoint_files(dir, &names, &n, NULL) < 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        char *path = kiln_path_join(dir, names[i]);
        struct stat st;

        if (path != NULL && stat(path, &st) == 0)
            sum += st.st_size;
        free(path);
    }
    kiln_names_free(names, n);
    return sum;
}

/* Append the names of the links in the folder that point to `name`: "best last". */
static void put_links(KilnText *text, const char *folder, const char *name)
{
    char **names = NULL;
    size_t n = 0;

    if (kiln_dir_list(folder, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        char *path = kiln_path_join(folder, names[i]), target[256];

        if (path != NULL && kiln_link_read(path, target, sizeof(target)) &&
            strcmp(target, name) == 0)
            kiln_text_printf(text, "%s%s", text->length > 0 ? " " : "", names[i]);
        free(path);
    }
    kiln_names_free(names, n);
}

/* Append "METRIC=" for the metric that a callback of the checkpoint's config monitors, if any. */
static void put_monitor(KilnText *text, const char *checkpoint, const char *callback)
{
    char *path = kiln_path_join(checkpoint, KILN_CHECKPOINT_CONFIG), key[256];
    KilnArena arena = { 0 };
    KilnConfigNode *root = NULL, *node = NULL;

    snprintf(key, sizeof(key), "%s.monitor", callback);
    if (path != NULL && kiln_yaml_read_file(&arena, path, &root, NULL) >= 0 && root != NULL)
        node = kiln_node_find(root, key);
    if (node != NULL && node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_STR)
        kiln_text_printf(text, "%s=", node->text);
    free(path);
    kiln_arena_release(&arena);
}

/* Append "val/accuracy=0.9876" for a callback that kept the checkpoint `name` by a score, if any.
 */
static void put_score(KilnText *text, const json_t *state, const char *checkpoint, const char *name)
{
    json_t *callbacks = json_object_get(state, "callbacks"), *callback;
    const char *key;

    json_object_foreach(callbacks, key, callback)
    {
        for (int i = 0; text->length == 0 && i < 1000; i++) {
            char member[32];

            snprintf(member, sizeof(member), "name_%d", i);
            const char *kept = json_string_value(json_object_get(callback, member));
            if (kept == NULL)
                break;
            snprintf(member, sizeof(member), "score_%d", i);
            const json_t *score = json_object_get(callback, member);
            if (strcmp(kept, name) != 0 || !json_is_number(score))
                continue;
            put_monitor(text, checkpoint, key);
            kiln_text_printf(text, "%.6g", json_number_value(score));
        }
    }
}

typedef struct List {
    const char *run;
    size_t shown, in_run; /* checkpoints in all, of this run */
} List;

static void list_checkpoint(void *ctx, const char *path, const json_t *state)
{
    List *list = ctx;
    const char *name = strrchr(path, '/') + 1;
    char *folder = kiln_path_join(list->run, "checkpoints"), size[KILN_UNIT_TEXT];
    KilnText links = { 0 }, score = { 0 };

    if (list->in_run++ == 0)
        printf("%s\n  %-32s %6s %9s  %-22s %10s\n", list->run, "checkpoint", "epoch", "step",
               "score", "size");
    list->shown++;
    if (state == NULL) {
        printf("  %-32s (%s cannot be read)\n", name, KILN_CHECKPOINT_STATE);
    } else {
        put_score(&score, state, path, name);
        if (folder != NULL)
            put_links(&links, folder, name);
        printf("  %-32s %6lld %9lld  %-22s %10s  %s%s\n", name,
               (long long)json_integer_value(json_object_get(state, "epoch")),
               (long long)json_integer_value(json_object_get(state, "step")),
               score.data != NULL ? score.data : "", kiln_bytes_text((double)bytes_in(path), size),
               links.data != NULL ? links.data : "",
               json_is_true(json_object_get(state, "weights_only")) ? " (weights only)" : "");
    }
    kiln_text_release(&links);
    kiln_text_release(&score);
    free(folder);
}

static void list_run(void *ctx, const char *run)
{
    List *list = ctx;

    list->run = run;
    list->in_run = 0;
    kiln_run_checkpoints(run, list_checkpoint, list);
}

static KilnStatus ls(const char *const *words, KilnError *err)
{
    const char *dir = words[0] != NULL ? words[0] : "outputs";
    char *run = NULL;
    List list = { 0 };
    KilnStatus status = KILN_OK;

    if (words[0] != NULL && words[1] != NULL)
        return kiln_error_set(err, KILN_E_USAGE, "ls: expected one folder, got `%s` too", words[1]);
    if (words[0] == NULL && !kiln_is_dir(dir))
        return kiln_error_set(err, KILN_E_IO, "%s: there is no such folder", dir);
    if (!kiln_is_dir(dir))
        status = kiln_run_find(dir, "outputs", &run, err);
    if (status < 0)
        return status;
    kiln_runs_visit(run != NULL ? run : dir, list_run, &list);
    free(run);
    return list.shown > 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_IO, "%s: there are no checkpoints in or below it", dir);
}

/* ---- show -------------------------------------------------------------------------------- */

static void show_value(const json_t *state, const char *key)
{
    const json_t *value = json_object_get(state, key);
    char *text = kiln_json_dump(value, JSON_ENCODE_ANY | JSON_COMPACT);

    if (text != NULL && !json_is_null(value))
        printf("  %-16s %s\n", key, json_is_string(value) ? json_string_value(value) : text);
    free(text);
}

/* A checkpoint of weights alone has no trainer's file. */
static KilnStatus show_tensors(const char *folder, const char *name, KilnError *err)
{
    char *path = kiln_path_join(folder, name), shape[KILN_SHAPE_TEXT], count[KILN_UNIT_TEXT];
    KilnSafetensors *file = NULL;
    int64_t values = 0;
    KilnStatus status = path == NULL         ? kiln_error_nomem(err, 1)
                        : kiln_is_file(path) ? kiln_safetensors_open(path, &file, err)
                                             : KILN_OK;

    if (file != NULL)
        printf("\n%s\n", name);
    for (size_t i = 0; file != NULL && i < kiln_safetensors_count(file); i++) {
        const KilnStEntry *entry = kiln_safetensors_at(file, i);

        values += kiln_shape_count(&entry->shape);
        printf("  %-48s %-5s %s\n", entry->name, entry->dtype,
               kiln_shape_text(&entry->shape, shape, sizeof(shape)));
    }
    if (file != NULL)
        printf("  %zu tensors, %s values\n", kiln_safetensors_count(file),
               kiln_commas_text(values, count));
    kiln_safetensors_close(file);
    free(path);
    return status;
}

static void show_state(const json_t *state)
{
    static const char *const keys[] = { "format",       "version",       "machine",    "task",
                                        "model",        "epoch",         "step",       "batch",
                                        "batches",      "samples",       "in_group",   "epoch_done",
                                        "should_stop",  "stop_reason",   "seed",       "threads",
                                        "batch_size",   "train_samples", "parameters", "weights",
                                        "weights_only", "saved_by" };
    static const char *const parts[] = { "optimizers", "callbacks", "loggers" };

    for (size_t i = 0; i < KILN_COUNT(keys); i++)
        show_value(state, keys[i]);
    printf("\nstate\n");
    for (size_t i = 0; i < KILN_COUNT(parts); i++)
        show_value(state, parts[i]);
}

static KilnStatus show(const char *const *words, KilnError *err)
{
    KilnCheckpoint checkpoint = { 0 };
    char *path = NULL;
    KilnStatus status;

    if (words[0] != NULL && words[1] != NULL)
        return kiln_error_set(err, KILN_E_USAGE, "show: expected one checkpoint, got `%s` too",
                              words[1]);
    status = find(words[0] != NULL ? words[0] : "last", &path, err);
    if (status >= 0)
        status = kiln_checkpoint_open(path, false, &checkpoint, err);
    if (status >= 0) {
        printf("%s\n", path);
        show_state(checkpoint.state);
        status = show_tensors(path, KILN_CHECKPOINT_MODEL, err);
    }
    if (status >= 0)
        status = show_tensors(path, KILN_CHECKPOINT_TRAINER, err);
    kiln_checkpoint_close(&checkpoint);
    free(path);
    return status;
}

/* ---- verify ------------------------------------------------------------------------------ */

static KilnStatus verify(const char *const *words, KilnError *err)
{
    static const char *const newest[] = { "last", NULL };
    KilnStatus status = KILN_OK;

    for (words = words[0] != NULL ? words : newest; *words != NULL; words++) {
        KilnError why = { 0 };
        char *path = NULL;
        KilnStatus one = find(*words, &path, &why);

        if (one >= 0)
            one = kiln_checkpoint_verify(path, &why);
        if (one >= 0)
            printf("%s: whole\n", path);
        else if (status >= 0)
            *err = why;
        else
            printf("%s\n", why.text);
        status = one < 0 ? one : status;
        free(path);
    }
    return status;
}

/* ---- diff --------------------------------------------------------------------------------- */

static KilnStatus diff(const char *const *words, KilnError *err)
{
    KilnDifferences found = { .most = 200, .sides = { "first", "second" } };
    char *paths[2] = { NULL, NULL };
    KilnStatus status;

    if (words[0] == NULL || words[1] == NULL || words[2] != NULL)
        return kiln_error_set(err, KILN_E_USAGE, "diff: expected two checkpoints");
    status = find(words[0], &paths[0], err);
    if (status >= 0)
        status = find(words[1], &paths[1], err);
    if (status >= 0)
        status = kiln_differences_folders(paths[0], paths[1], &found, err);
    if (status >= 0 && found.count == 0)
        printf("equal\n");
    else if (status >= 0 && !found.text.failed && found.text.data != NULL)
        fputs(found.text.data, stdout);
    if (status >= 0 && found.count > found.most)
        printf("and %zu more\n", found.count - found.most);
    if (status >= 0 && found.count > 0)
        status = KILN_E_FORMAT; /* exit status 1; the differences are the message */
    kiln_differences_release(&found);
    free(paths[0]);
    free(paths[1]);
    return status;
}

/* ---- merge-lora --------------------------------------------------------------------------- */

static KilnStatus merge_lora(const char *const *words, const char *output, KilnError *err)
{
    char *path = NULL;
    size_t layers = 0;

    if (words[0] == NULL || words[1] != NULL || output == NULL || *output == '\0')
        return kiln_error_set(err, KILN_E_USAGE,
                              "merge-lora: expected a checkpoint and the file to write, such as "
                              "`last output=merged.safetensors`");
    KilnStatus status = find(words[0], &path, err);
    if (status >= 0)
        status = kiln_adapters_merge(path, output, &layers, err);
    if (status >= 0)
        printf("%s: adapters of %zu layers merged\n", output, layers);
    free(path);
    return status;
}

/* ---- The command ----------------------------------------------------------------------------- */

static KilnStatus unknown(const char *name, KilnError *err)
{
    static const char *const names[] = { "ls", "show", "verify", "diff", "average", "merge-lora" };
    const char *nearest = kiln_nearest(name, names, KILN_COUNT(names));

    return kiln_error_set(err, KILN_E_USAGE,
                          "%s%sexpected ls, show, verify, diff, average or merge-lora%s%s%s", name,
                          *name != '\0' ? ": " : "", nearest != NULL ? "; did you mean " : "",
                          nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
}

int kiln_command_ckpt(KilnArgs *args)
{
    static const struct {
        const char *name;
        KilnStatus (*run)(const char *const *words, KilnError *err);
    } actions[] = { { "ls", ls }, { "show", show }, { "verify", verify }, { "diff", diff } };
    const char *name = args->n_words > 0 ? args->words[0] : "";
    KilnError err = { 0 };
    KilnStatus status;
    size_t i = 0;

    while (i < KILN_COUNT(actions) && strcmp(name, actions[i].name) != 0)
        i++;
    if (i < KILN_COUNT(actions)) {
        status = actions[i].run(args->words + 1, &err);
    } else if (strcmp(name, "merge-lora") == 0) {
        const char *output = kiln_args_take(args, "output");

        status = merge_lora(args->words + 1, output, &err);
    } else if (strcmp(name, "average") == 0) {
        const char *last = kiln_args_take(args, "last"), *output = kiln_args_take(args, "output");

        status = kiln_ckpt_average(args->words + 1, last, output, &err);
    } else {
        status = unknown(name, &err);
    }
    return kiln_screen_result(args->command, status, &err);
}
