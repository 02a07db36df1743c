/* kiln ckpt average: a checkpoint with the mean of the weights of others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/system/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/find_run.h"
#include "kiln/array.h"
#include "kiln/embed/run.h"
#include "train/checkpoint/checkpoint.h"

typedef struct Found {
    char *path; /* absolute */
    int64_t step;
} Found;

typedef struct List {
    Found *items;
    size_t n, capacity;
    bool failed;
} List;

static void add(List *list, char *path, int64_t step)
{
    if (path == NULL || !KILN_RESERVE(list->items, list->capacity, list->n + 1)) {
        list->failed = true;
        free(path);
        return;
    }
    list->items[list->n++] = (Found) { path, step };
}

/* An average is none of a run's own checkpoints. */
static void add_checkpoint(void *ctx, const char *path, const json_t *state)
{
    List *list = ctx;

    if (state != NULL && json_object_get(state, "averaged") == NULL)
        add(list, kiln_strdup(path), json_integer_value(json_object_get(state, "batches")));
}

static int by_step(const void *left, const void *right)
{
    const Found *a = left, *b = right;

    return a->step != b->step ? (a->step > b->step) - (a->step < b->step)
                              : strcmp(a->path, b->path);
}

/* The last checkpoints of a run, the oldest first. */
static KilnStatus list_last(List *list, const char *word, int64_t last, KilnError *err)
{
    char *run = NULL;
    KilnStatus status = kiln_run_find(word, "outputs", &run, err);

    if (status < 0)
        return status;
    kiln_run_checkpoints(run, add_checkpoint, list);
    if (!list->failed && (int64_t)list->n < last)
        status = kiln_error_set(err, KILN_E_RANGE,
                                "average: last=%lld: %s has %zu checkpoints; "
                                "callbacks.model_checkpoint.save_top_k=-1 keeps all of a run",
                                (long long)last, run, list->n);
    free(run);
    if (status < 0 || list->failed)
        return status;
    qsort(list->items, list->n, sizeof(*list->items), by_step);
    const size_t skipped = list->n - (size_t)last;
    for (size_t i = 0; i < skipped; i++)
        free(list->items[i].path);
    list->n = (size_t)last;
    memmove(list->items, list->items + skipped, list->n * sizeof(*list->items));
    return KILN_OK;
}

static KilnStatus list_words(List *list, const char *const *words, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (; *words != NULL && status >= 0; words++) {
        char *path = NULL;

        status = kiln_checkpoint_resolve(*words, "outputs", &path, err);
        if (status >= 0)
            add(list, path, 0);
    }
    return status;
}

/* Write to `output`, which is split into a folder and a name. */
static KilnStatus write_average(const List *list, const char *output, KilnError *err)
{
    const char **paths = malloc(list->n * sizeof(*paths));
    char *folder = kiln_strdup(output), *slash = folder != NULL ? strrchr(folder, '/') : NULL;
    KilnStatus status = paths != NULL && folder != NULL ? KILN_OK
                                                        : kiln_error_nomem(err, strlen(output));

    for (size_t i = 0; i < list->n && status >= 0; i++)
        paths[i] = list->items[i].path;
    if (slash != NULL)
        *slash = '\0';
    if (status >= 0 && slash != NULL && slash != folder)
        status = kiln_dir_make(folder, err);
    if (status >= 0)
        status = kiln_checkpoint_average(paths, list->n,
                                         slash == NULL     ? "."
                                         : slash == folder ? "/"
                                                           : folder,
                                         slash != NULL ? slash + 1 : output, err);
    free(paths);
    free(folder);
    return status;
}

static KilnStatus check_output(const char *output, KilnError *err)
{
    const char *slash = output != NULL ? strrchr(output, '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : output;

    if (output == NULL || *name == '\0' || *name == '.')
        return kiln_error_set(err, KILN_E_USAGE,
                              "average: needs the folder to write: output=FOLDER");
    return kiln_is_dir(output) || kiln_is_file(output)
               ? kiln_error_set(err, KILN_E_USAGE, "average: output=%s: it exists", output)
               : KILN_OK;
}

KilnStatus kiln_ckpt_average(const char *const *words, const char *last, const char *output,
                             KilnError *err)
{
    List list = { 0 };
    int64_t n = 0;
    KilnStatus status = check_output(output, err);

    if (status >= 0 && last != NULL && (kiln_parse_i64(last, &n, err) < 0 || n < 1))
        status = kiln_error_set(err, KILN_E_USAGE, "average: last=%s: expected a number from 1",
                                last);
    if (status >= 0 && (words[0] == NULL || (last != NULL) != (words[1] == NULL)))
        status = kiln_error_set(err, KILN_E_USAGE,
                                "average: expected several checkpoints, or one run and last=N");
    if (status >= 0)
        status = last != NULL ? list_last(&list, words[0], n, err) : list_words(&list, words, err);
    if (status >= 0 && list.failed)
        status = kiln_error_nomem(err, list.n * sizeof(*list.items));
    if (status >= 0)
        status = write_average(&list, output, err);
    for (size_t i = 0; i < list.n; i++) {
        if (status >= 0)
            printf("%s\n", list.items[i].path);
        free(list.items[i].path);
    }
    if (status >= 0)
        printf("their mean is %s (weights only)\n", output);
    free(list.items);
    return status;
}
