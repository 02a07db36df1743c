/* kiln explain: where the values of a past run came from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/screen.h"
#include "config/story.h"

#define ORIGINS ".kiln/origins.yaml"

enum { DEEPEST_RUN = 4 }; /* folders between outputs/ and a run folder */

/* ---- The run ------------------------------------------------------------------------------ */

static bool is_run(const char *dir, struct timespec *ret_when)
{
    char *origins = kiln_path_join(dir, ORIGINS);
    struct stat st;
    bool is = origins != NULL && stat(origins, &st) == 0 && S_ISREG(st.st_mode);

    if (is && ret_when != NULL)
        *ret_when = st.st_mtim;
    free(origins);
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

static void seek(Newest *newest, const char *dir, int depth)
{
    struct timespec when;
    char **names = NULL;
    size_t n = 0;

    if (is_run(dir, &when)) {
        if (newest->dir == NULL || is_later(&when, &newest->when)) {
            free(newest->dir);
            *newest = (Newest) { .dir = kiln_strdup(dir), .when = when };
        }
        return;
    }
    if (depth == DEEPEST_RUN || kiln_dir_list(dir, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        char *child = kiln_path_join(dir, names[i]);

        if (child != NULL && kiln_is_dir(child))
            seek(newest, child, depth + 1);
        free(child);
    }
    kiln_names_free(names, n);
}

/* The run folder that `word` means: itself, the one that a checkpoint in it belongs to,
 * or the newest. Owned by the caller. */
static KilnStatus find_run(const char *word, char **ret, KilnError *err)
{
    static const char *const above[] = { "", "..", "../.." };
    Newest newest = { 0 };

    for (size_t i = 0; i < KILN_COUNT(above); i++) {
        char *dir = *above[i] == '\0' ? kiln_strdup(word) : kiln_path_join(word, above[i]);

        if (dir != NULL && is_run(dir, NULL)) {
            *ret = dir;
            return KILN_OK;
        }
        free(dir);
    }
    if (strcmp(word, "last") != 0)
        return kiln_error_set(err, KILN_E_IO,
                              "%s: %s; give the folder of a run (outputs/DAY/TIME), or last for "
                              "the newest",
                              word,
                              kiln_is_dir(word) ? "this is no run folder, it has no " ORIGINS
                                                : "there is no such folder");
    seek(&newest, "outputs", 0);
    if (newest.dir == NULL)
        return kiln_error_set(err, KILN_E_IO,
                              "last: there is no run folder below outputs/; give the folder of a "
                              "run");
    *ret = newest.dir;
    return KILN_OK;
}

/* ---- The command ---------------------------------------------------------------------------- */

static KilnStatus explain(const char *run, const char *const *keys, KilnError *err)
{
    static const char *const all[] = { "", NULL };
    KilnStatus status = KILN_OK;

    for (keys = *keys != NULL ? keys : all; *keys != NULL && status >= 0; keys++) {
        char *text = NULL;

        status = kiln_run_explain(run, *keys, &text, err);
        if (status >= 0)
            fputs(text, stdout);
        free(text);
    }
    return status;
}

int kiln_command_explain(KilnArgs *args)
{
    char *run = NULL;
    KilnError err = { 0 };
    KilnStatus status;

    if (args->n_words == 0)
        status = kiln_error_set(&err, KILN_E_USAGE,
                                "which run? kiln explain RUN [KEY...], RUN being a run folder or "
                                "last: kiln explain last optimizer.lr");
    else
        status = find_run(args->words[0], &run, &err);
    if (status >= 0)
        status = explain(run, args->words + 1, &err);
    if (status < 0)
        kiln_screen_error(args->command, &err);
    free(run);
    return kiln_screen_exit_status(status);
}
