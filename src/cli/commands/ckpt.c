/* kiln ckpt: looking at checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/verify/differences.h"
#include "cli/screen/screen.h"
#include "config/yaml/yaml_reader.h"
#include "kiln/run.h"
#include "tensor/safetensors.h"
#include "train/checkpoint/checkpoint.h"

enum { DEEPEST_RUN = 4 }; /* folders between the one that is named and a run */

/* The checkpoint folder that a word means. */
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

    if (kiln_dir_list(dir, &names, &n, NULL) < 0)
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

/* "best last": the links of the folder that point to `name`. Returns buf. */
static const char *marks(const char *folder, char **names, size_t n, const char *name, char *buf,
                         size_t size)
{
    buf[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        char *path = kiln_path_join(folder, names[i]), target[256];
        ssize_t length = path != NULL ? readlink(path, target, sizeof(target) - 1) : -1;

        free(path);
        if (length < 0)
            continue;
        target[length] = '\0';
        if (strcmp(target, name) == 0)
            snprintf(buf + strlen(buf), size - strlen(buf), "%s%s", *buf != '\0' ? " " : "",
                     names[i]);
    }
    return buf;
}

/* What a callback of the checkpoint's config monitors, with = behind it; "" when nothing. */
static void monitor_of(const char *checkpoint, const char *callback, char *buf, size_t size)
{
    char *path = kiln_path_join(checkpoint, KILN_CHECKPOINT_CONFIG), *text = NULL, key[256];
    KilnArena arena = { 0 };
    KilnMaker maker = { .arena = &arena, .origin = { .source = path } };
    KilnConfigNode *root = NULL, *node = NULL;
    size_t length = 0;

    buf[0] = '\0';
    snprintf(key, sizeof(key), "%s.monitor", callback);
    if (path != NULL && kiln_file_read(path, KILN_YAML_BYTES, &text, &length, NULL) >= 0 &&
        kiln_yaml_read(&maker, text, length, false, &root, NULL) >= 0 && root != NULL)
        node = kiln_node_find(root, key);
    if (node != NULL && node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_STR)
        snprintf(buf, size, "%s=", node->text);
    free(text);
    free(path);
    kiln_arena_release(&arena);
}

/* "val/accuracy=0.9876" for a callback that kept the checkpoint by a score; "" when none did. */
static void score_of(const json_t *state, const char *checkpoint, const char *name, char *buf,
                     size_t size)
{
    json_t *callbacks = json_object_get(state, "callbacks"), *callback;
    const char *key;

    buf[0] = '\0';
    json_object_foreach(callbacks, key, callback)
    {
        for (int i = 0; buf[0] == '\0' && i < 1000; i++) {
            char member[32], monitor[64];

            snprintf(member, sizeof(member), "name_%d", i);
            const char *kept = json_string_value(json_object_get(callback, member));
            if (kept == NULL)
                break;
            snprintf(member, sizeof(member), "score_%d", i);
            const json_t *score = json_object_get(callback, member);
            if (strcmp(kept, name) != 0 || !json_is_number(score))
                continue;
            monitor_of(checkpoint, key, monitor, sizeof(monitor));
            snprintf(buf, size, "%s%.6g", monitor, json_number_value(score));
        }
    }
}

static void list_one(const char *folder, char **names, size_t n, const char *name)
{
    char *path = kiln_path_join(folder, name), size[KILN_UNIT_TEXT], links[128], score[96] = "?";
    char *state_path = path != NULL ? kiln_path_join(path, KILN_CHECKPOINT_STATE) : NULL;
    json_t *state = NULL;

    if (state_path != NULL)
        (void)!kiln_json_read(state_path, &state, NULL);
    if (state == NULL) {
        printf("  %-32s (%s can't be read)\n", name, KILN_CHECKPOINT_STATE);
    } else {
        score_of(state, path, name, score, sizeof(score));
        printf("  %-32s %6lld %9lld  %-22s %10s  %s%s\n", name,
               (long long)json_integer_value(json_object_get(state, "epoch")),
               (long long)json_integer_value(json_object_get(state, "step")), score,
               kiln_bytes_text((double)bytes_in(path), size),
               marks(folder, names, n, name, links, sizeof(links)),
               json_is_true(json_object_get(state, "weights_only")) ? " (weights only)" : "");
    }
    json_decref(state);
    free(state_path);
    free(path);
}

static bool is_checkpoint(const char *folder, const char *name)
{
    char *path = kiln_path_join(folder, name);
    char *state = path != NULL ? kiln_path_join(path, KILN_CHECKPOINT_STATE) : NULL;
    char target[8];
    bool is = state != NULL && readlink(path, target, sizeof(target)) < 0 && kiln_is_file(state);

    free(state);
    free(path);
    return is;
}

/* The checkpoints of one run; returns how many. */
static size_t list_run(const char *run)
{
    char *folder = kiln_path_join(run, "checkpoints"), **names = NULL;
    size_t n = 0, shown = 0;

    if (folder != NULL && kiln_dir_list(folder, &names, &n, NULL) >= 0) {
        for (size_t i = 0; i < n; i++) {
            if (names[i][0] == '.' || !is_checkpoint(folder, names[i]))
                continue;
            if (shown++ == 0)
                printf("%s\n  %-32s %6s %9s  %-22s %10s\n", run, "checkpoint", "epoch", "step",
                       "score", "size");
            list_one(folder, names, n, names[i]);
        }
    }
    kiln_names_free(names, n);
    free(folder);
    return shown;
}

static size_t list_below(const char *dir, int depth)
{
    char *checkpoints = kiln_path_join(dir, "checkpoints"), **names = NULL;
    size_t n = 0, shown = 0;
    const bool is_run = checkpoints != NULL && kiln_is_dir(checkpoints);

    free(checkpoints);
    if (is_run)
        return list_run(dir);
    if (depth == DEEPEST_RUN || kiln_dir_list(dir, &names, &n, NULL) < 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        char *child = kiln_path_join(dir, names[i]);

        if (child != NULL && names[i][0] != '.' && kiln_is_dir(child))
            shown += list_below(child, depth + 1);
        free(child);
    }
    kiln_names_free(names, n);
    return shown;
}

static KilnStatus ls(const char *const *words, KilnError *err)
{
    const char *dir = words[0] != NULL ? words[0] : "outputs";

    if (words[0] != NULL && words[1] != NULL)
        return kiln_error_set(err, KILN_E_USAGE, "ckpt ls: expected one folder, got `%s` too",
                              words[1]);
    if (!kiln_is_dir(dir))
        return kiln_error_set(err, KILN_E_IO, "%s: there is no such folder", dir);
    if (list_below(dir, 0) == 0)
        return kiln_error_set(err, KILN_E_IO, "%s: there are no checkpoints in or below it", dir);
    return KILN_OK;
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

static KilnStatus show_tensors(const char *folder, const char *name, KilnError *err)
{
    char *path = kiln_path_join(folder, name), shape[KILN_SHAPE_TEXT], count[KILN_UNIT_TEXT];
    KilnSafetensors *file = NULL;
    int64_t values = 0;
    KilnStatus status = path != NULL ? kiln_safetensors_open(path, &file, err)
                                     : kiln_error_nomem(err, 1);

    if (status >= 0)
        printf("\n%s\n", name);
    for (size_t i = 0; status >= 0 && i < kiln_safetensors_count(file); i++) {
        const KilnStEntry *entry = kiln_safetensors_at(file, i);

        values += kiln_shape_count(&entry->shape);
        printf("  %-48s %-5s %s\n", entry->name, entry->dtype,
               kiln_shape_text(&entry->shape, shape, sizeof(shape)));
    }
    if (status >= 0)
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
        return kiln_error_set(err, KILN_E_USAGE, "ckpt show: expected one checkpoint, got `%s` too",
                              words[1]);
    status = find(words[0] != NULL ? words[0] : "last", &path, err);
    if (status >= 0)
        status = kiln_checkpoint_open(path, false, &checkpoint, err);
    if (status >= 0) {
        printf("%s\n", path);
        show_state(checkpoint.state);
        status = show_tensors(path, KILN_CHECKPOINT_MODEL, err);
    }
    char *trainer = status >= 0 ? kiln_path_join(path, KILN_CHECKPOINT_TRAINER) : NULL;
    if (trainer != NULL && kiln_is_file(trainer))
        status = show_tensors(path, KILN_CHECKPOINT_TRAINER, err);
    free(trainer);
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

static KilnStatus diff(const char *const *words, bool *ret_differ, KilnError *err)
{
    KilnDifferences found = { .most = 200 };
    char *paths[2] = { NULL, NULL };
    KilnStatus status;

    if (words[0] == NULL || words[1] == NULL || words[2] != NULL)
        return kiln_error_set(err, KILN_E_USAGE, "ckpt diff: expected two checkpoints");
    status = find(words[0], &paths[0], err);
    if (status >= 0)
        status = find(words[1], &paths[1], err);
    if (status >= 0)
        status = kiln_differences_checkpoints(paths[0], paths[1], &found, err);
    if (status >= 0 && found.count == 0)
        printf("equal\n");
    else if (status >= 0 && !found.text.failed && found.text.data != NULL)
        fputs(found.text.data, stdout);
    if (status >= 0 && found.count > found.most)
        printf("and %zu more\n", found.count - found.most);
    *ret_differ = found.count > 0;
    kiln_text_release(&found.text);
    free(paths[0]);
    free(paths[1]);
    return status;
}

/* ---- The command ----------------------------------------------------------------------------- */

int kiln_command_ckpt(KilnArgs *args)
{
    static const char *const actions[] = { "ls", "show", "verify", "diff" };
    const char *action = args->n_words > 0 ? args->words[0] : "";
    const char *const *words = args->n_words > 0 ? args->words + 1 : args->words;
    KilnError err = { 0 };
    bool differ = false;
    KilnStatus status;

    if (strcmp(action, "ls") == 0) {
        status = ls(words, &err);
    } else if (strcmp(action, "show") == 0) {
        status = show(words, &err);
    } else if (strcmp(action, "verify") == 0) {
        status = verify(words, &err);
    } else if (strcmp(action, "diff") == 0) {
        status = diff(words, &differ, &err);
    } else {
        const char *nearest = kiln_nearest(action, actions, KILN_COUNT(actions));

        status = kiln_error_set(&err, KILN_E_USAGE,
                                "ckpt %s: expected ls, show, verify or diff%s%s%s", action,
                                nearest != NULL ? "; did you mean " : "",
                                nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
    }
    if (status < 0)
        kiln_screen_error(args->command, &err);
    return status < 0 ? kiln_screen_exit_status(status) : differ ? 1 : 0;
}
