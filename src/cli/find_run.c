/* Finds past runs and their checkpoints. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/find_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "kiln/embed/run.h"
#include "train/checkpoint/checkpoint.h"

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

/* The run folder that `word` is, or that holds the checkpoint `word`; NULL: neither. */
static char *run_at(const char *word)
{
    static const char *const above[] = { "", "..", "../.." };

    for (size_t i = 0; i < KILN_COUNT(above); i++) {
        char *path = kiln_path_join(word, above[i]);
        char *config = path != NULL ? kiln_path_join(path, KILN_RUN_CONFIG) : NULL, *dir = NULL;

        if (config != NULL && kiln_is_file(config))
            dir = i == 0 ? kiln_strdup(word) : realpath(path, NULL);
        free(config);
        free(path);
        if (dir != NULL)
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
        return kiln_error_set(err, KILN_E_IO,
                              "%s: no run to resume: it ended before it wrote " KILN_RUN_CONFIG
                              "; start it again",
                              word);
    return kiln_error_set(err, KILN_E_IO,
                          "%s: %s; give the folder of a run (outputs/DAY/TIME), or last for the "
                          "newest",
                          word,
                          kiln_is_dir(word) ? "this is no run folder, it has no " KILN_RUN_CONFIG
                                            : "there is no such folder");
}

KilnStatus kiln_run_find(const char *word, const char *runs, char **ret, KilnError *err)
{
    bool best = strcmp(word, "best") == 0;
    char *checkpoint = NULL;

    if (!best && (*ret = run_at(word)) != NULL)
        return KILN_OK;
    if (strcmp(word, "last") == 0) {
        *ret = kiln_run_newest(runs, KILN_RUN_CONFIG, NULL);
        return *ret != NULL
                   ? KILN_OK
                   : kiln_error_set(err, KILN_E_IO,
                                    "last: there is no run folder below %s/; give the folder of a "
                                    "run",
                                    runs);
    }
    KilnStatus status = best ? kiln_checkpoint_resolve(word, runs, &checkpoint, err) : KILN_OK;
    *ret = checkpoint != NULL ? run_at(checkpoint) : NULL;
    free(checkpoint);
    return status < 0 || *ret != NULL ? status : no_run(word, err);
}
