/* Finds past runs and their checkpoints. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/find_run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "kiln/run.h"
#include "train/checkpoint/checkpoint.h"

#define CONFIG ".kiln/config.yaml" /* a run writes it last */

enum { DEEPEST_RUN = 4 }; /* folders between outputs/ and a run folder */

const char *kiln_runs_folder(const KilnArgs *args)
{
    static const char key[] = "trainer.default_root_dir=";
    const char *folder = "outputs";

    for (size_t i = 0; i < args->n_words; i++)
        if (kiln_starts_with(args->words[i], key))
            folder = args->words[i] + sizeof(key) - 1;
    return folder;
}

/* ---- Folders ---------------------------------------------------------------------------- */

static void walk(const char *dir, int depth, KilnRunVisit *visit, void *ctx)
{
    char **names = NULL;
    size_t n = 0;

    if (visit(ctx, dir) || depth == DEEPEST_RUN || kiln_dir_list(dir, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        char *child = names[i][0] != '.' ? kiln_path_join(dir, names[i]) : NULL;

        if (child != NULL && kiln_is_dir(child))
            walk(child, depth + 1, visit, ctx);
        free(child);
    }
    kiln_names_free(names, n);
}

void kiln_runs_visit(const char *dir, KilnRunVisit *visit, void *ctx)
{
    walk(dir, 0, visit, ctx);
}

void kiln_run_checkpoints(const char *run, KilnCheckpointVisit *visit, void *ctx)
{
    char *folder = kiln_path_join(run, "checkpoints"), **names = NULL, target[8];
    size_t n = 0;

    if (folder != NULL && kiln_is_dir(folder) && kiln_dir_list(folder, &names, &n, NULL) < 0)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        char *path = names[i][0] != '.' ? kiln_path_join(folder, names[i]) : NULL;
        char *file = path != NULL ? kiln_path_join(path, KILN_CHECKPOINT_STATE) : NULL;
        json_t *state = NULL;

        if (file != NULL && !kiln_link_read(path, target, sizeof(target)) && kiln_is_file(file)) {
            (void)!kiln_json_read(file, &state, NULL);
            visit(ctx, path, state);
        }
        json_decref(state);
        free(file);
        free(path);
    }
    kiln_names_free(names, n);
    free(folder);
}

/* ---- RUN -------------------------------------------------------------------------------- */

static bool is_run(const char *dir, struct timespec *ret_when)
{
    char *config = kiln_path_join(dir, CONFIG);
    struct stat st;
    bool is = config != NULL && stat(config, &st) == 0 && S_ISREG(st.st_mode);

    if (is && ret_when != NULL)
        *ret_when = st.st_mtim;
    free(config);
    return is;
}

typedef struct Newest {
    char *dir; /* NULL: none yet */
    struct timespec when;
} Newest;

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec >= b->tv_nsec;
}

static bool compare(void *ctx, const char *dir)
{
    Newest *newest = ctx;
    struct timespec when;

    if (!is_run(dir, &when))
        return false;
    if (newest->dir == NULL || is_later(&when, &newest->when)) {
        free(newest->dir);
        *newest = (Newest) { .dir = kiln_strdup(dir), .when = when };
    }
    return true;
}

static KilnStatus find_last(const char *runs, char **ret, KilnError *err)
{
    Newest newest = { 0 };

    kiln_runs_visit(runs, compare, &newest);
    if (newest.dir == NULL)
        return kiln_error_set(err, KILN_E_IO,
                              "last: there is no run folder below %s/; give the folder of a run",
                              runs);
    *ret = newest.dir;
    return KILN_OK;
}

/* The run folder that `word` is, or that holds the checkpoint `word`; NULL: neither. */
static char *run_at(const char *word)
{
    static const char *const above[] = { "", "..", "../.." };

    for (size_t i = 0; i < KILN_COUNT(above); i++) {
        char *path = kiln_path_join(word, above[i]);
        bool is = path != NULL && is_run(path, NULL);
        char *dir = !is ? NULL : *above[i] == '\0' ? kiln_strdup(word) : realpath(path, NULL);

        free(path);
        if (is)
            return dir;
    }
    return NULL;
}

static KilnStatus no_run(const char *word, KilnError *err)
{
    char *own = kiln_path_join(word, ".kiln");
    const bool started = own != NULL && kiln_is_dir(own);

    free(own);
    if (started)
        return kiln_error_set(
            err, KILN_E_IO,
            "%s: no run to resume: it ended before it wrote " CONFIG "; start it again", word);
    return kiln_error_set(err, KILN_E_IO,
                          "%s: %s; give the folder of a run (outputs/DAY/TIME), or last for the "
                          "newest",
                          word,
                          kiln_is_dir(word) ? "this is no run folder, it has no " CONFIG
                                            : "there is no such folder");
}

KilnStatus kiln_run_find(const char *word, const char *runs, char **ret, KilnError *err)
{
    bool best = strcmp(word, "best") == 0;
    char *checkpoint = NULL;

    if (!best && (*ret = run_at(word)) != NULL)
        return KILN_OK;
    if (strcmp(word, "last") == 0)
        return find_last(runs, ret, err);
    KilnStatus status = best ? kiln_checkpoint_resolve(word, runs, &checkpoint, err) : KILN_OK;
    *ret = checkpoint != NULL ? run_at(checkpoint) : NULL;
    free(checkpoint);
    if (status < 0 || *ret != NULL)
        return status;
    return no_run(word, err);
}
