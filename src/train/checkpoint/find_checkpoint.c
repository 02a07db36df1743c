/* Finds runs, and the checkpoint folder that ckpt_path names: a path, "last" or "best". */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/text.h"
#include "train/checkpoint/checkpoint.h"

enum { MAX_DEPTH = 4 }; /* folders between outputs/ and a run folder */

/* <dir>/<name>/state.json exists. */
static bool is_checkpoint(const char *dir)
{
    char *state = kiln_path_join(dir, KILN_CHECKPOINT_STATE);
    bool is = state != NULL && kiln_is_file(state);

    free(state);
    return is;
}

/* The absolute path of dir/below when that is a checkpoint; NULL when not. */
static char *checkpoint_at(const char *dir, const char *below)
{
    char *path = kiln_path_join(dir, below), *absolute = NULL;

    if (path != NULL && is_checkpoint(path))
        absolute = realpath(path, NULL);
    free(path);
    return absolute;
}

/* ---- Runs ---------------------------------------------------------------------------- */

static bool is_run(const char *dir)
{
    char *checkpoints = kiln_path_join(dir, "checkpoints");
    char *config = kiln_path_join(dir, KILN_RUN_CONFIG);
    const bool is = checkpoints != NULL && config != NULL &&
                    (kiln_is_dir(checkpoints) || kiln_is_file(config));

    free(checkpoints);
    free(config);
    return is;
}

static void walk(const char *dir, int depth, KilnRunVisit *visit, void *ctx)
{
    char **names = NULL;
    size_t n = 0;

    if (is_run(dir)) {
        visit(ctx, dir);
        return;
    }
    if (depth == MAX_DEPTH || kiln_dir_list(dir, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        char *child = kiln_path_join(dir, names[i]);

        if (child != NULL && names[i][0] != '.' && kiln_is_dir(child))
            walk(child, depth + 1, visit, ctx);
        free(child);
    }
    kiln_names_free(names, n);
}

void kiln_runs_visit(const char *dir, KilnRunVisit *visit, void *ctx)
{
    walk(dir, 0, visit, ctx);
}

typedef struct Newest {
    const char *below; /* "checkpoints/last" */
    char *run;         /* the newest so far; NULL: none */
    struct timespec when;
    size_t runs;
} Newest;

static bool later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec >= b->tv_nsec;
}

/* Take the run if its file is later than that of the newest so far. Folders are visited in order of
 * their names: between equal times the last name wins. */
static void consider(void *ctx, const char *run)
{
    Newest *newest = ctx;
    char *path = kiln_path_join(run, newest->below);
    struct stat st;

    newest->runs++;
    if (path != NULL && stat(path, &st) == 0 &&
        (newest->run == NULL || later(&st.st_mtim, &newest->when))) {
        free(newest->run);
        newest->run = kiln_strdup(run);
        newest->when = st.st_mtim;
    }
    free(path);
}

char *kiln_run_newest(const char *dir, const char *below, size_t *ret_runs)
{
    Newest newest = { .below = below };

    kiln_runs_visit(dir, consider, &newest);
    if (ret_runs != NULL)
        *ret_runs = newest.runs;
    return newest.run;
}

static KilnStatus find_newest(const char *link, const char *runs, char **ret, KilnError *err)
{
    char below[64];
    size_t n = 0;

    snprintf(below, sizeof(below), "checkpoints/%s", link);
    char *run = kiln_run_newest(runs, below, &n);
    *ret = run != NULL ? checkpoint_at(run, below) : NULL;
    free(run);
    if (*ret != NULL)
        return KILN_OK;
    if (n == 0)
        return kiln_error_set(err, KILN_E_IO,
                              "%s: there is no run folder below %s/; give the path of a checkpoint "
                              "or run folder",
                              link, runs);
    return kiln_error_set(err, KILN_E_IO,
                          "%s: none of the %zu run folders below %s/ has %s; give the "
                          "path of a checkpoint or run folder",
                          link, n, runs, below);
}

/* ---- Paths --------------------------------------------------------------------------------- */

KilnStatus kiln_checkpoint_resolve(const char *ckpt_path, const char *runs, char **ret,
                                   KilnError *err)
{
    static const char *const below[] = { "", "checkpoints/last", "last" };

    if (strcmp(ckpt_path, "last") == 0 || strcmp(ckpt_path, "best") == 0)
        return find_newest(ckpt_path, runs, ret, err);
    for (size_t i = 0; i < KILN_COUNT(below); i++) {
        char *found = checkpoint_at(ckpt_path, below[i]);

        if (found != NULL) {
            *ret = found;
            return KILN_OK;
        }
    }
    struct stat st;
    if (stat(ckpt_path, &st) != 0)
        return kiln_error_set(
            err, KILN_E_IO, "%s: %s; expected a checkpoint folder, a run folder, last or best",
            ckpt_path, errno == ENOENT ? "there is no such folder" : "can't be read");
    if (!S_ISDIR(st.st_mode))
        return kiln_error_set(
            err, KILN_E_FORMAT, "%s: is a file; a checkpoint is a folder with %s, %s and %s",
            ckpt_path, KILN_CHECKPOINT_MODEL, KILN_CHECKPOINT_TRAINER, KILN_CHECKPOINT_STATE);
    char *own = kiln_path_join(ckpt_path, ".kiln");
    const bool is_run = own != NULL && stat(own, &st) == 0 && S_ISDIR(st.st_mode);
    free(own);
    if (is_run)
        return kiln_error_set(err, KILN_E_MISSING,
                              "%s: this run has saved no checkpoint (no checkpoints/last/%s); the "
                              "first one is due at the end of an epoch, unless "
                              "callbacks.model_checkpoint says otherwise",
                              ckpt_path, KILN_CHECKPOINT_STATE);
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: is neither a checkpoint (no %s) nor a run folder (no "
                          "checkpoints/last/%s)",
                          ckpt_path, KILN_CHECKPOINT_STATE, KILN_CHECKPOINT_STATE);
}
