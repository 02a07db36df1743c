/* Creates or reopens the run folder and writes the run's config into it. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "train/run/run_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/system/sync.h"
#include "base/text.h"
#include "registry/outputs.h"
#include "train/run/run_config.h"
#include "train/run/run_journal.h"

enum { MAX_NUMBER = 1000 }; /* for folders with the same ${now} */

/* ---- Which folder -------------------------------------------------------------------- */

/* kiln.run.dir with its interpolations unresolved. */
static KilnStatus dir_as_written(const KilnConfig *config, char **ret, KilnError *err)
{
    return kiln_config_yaml(config, "kiln.run.dir", false, ret, err);
}

KilnStatus kiln_run_folder_is_dated(const KilnConfig *config, bool *ret, KilnError *err)
{
    char *written = NULL;
    KilnStatus status = dir_as_written(config, &written, err);

    if (status >= 0)
        *ret = strstr(written, "${now") != NULL;
    free(written);
    return status;
}

KilnStatus kiln_run_folder_parent(const KilnConfig *config, char **ret, KilnError *err)
{
    char *written = NULL, *root = NULL, *cut;
    KilnStatus status = dir_as_written(config, &written, err);

    if (status >= 0)
        status = kiln_config_text(config, "trainer.default_root_dir", &root, err);
    if (status < 0) {
        free(written);
        return status;
    }
    const char *start = written[0] == '"' || written[0] == '\'' ? written + 1 : written;
    if ((cut = strstr(written, "${")) != NULL)
        *cut = '\0';
    if (cut == NULL || (cut = strrchr(start, '/')) == NULL) {
        start = root;
    } else {
        *cut = '\0';
        if (cut == start)
            start = "/";
    }
    *ret = kiln_strdup(start);
    if (*ret == NULL)
        status = kiln_error_nomem(err, strlen(start));
    free(written);
    free(root);
    return status;
}

bool kiln_run_folder_holds(const char *dir, const char *checkpoint)
{
    char *absolute = realpath(dir, NULL);
    size_t length = absolute != NULL ? strlen(absolute) : 0;
    bool in = absolute != NULL && checkpoint != NULL &&
              strncmp(absolute, checkpoint, length) == 0 &&
              kiln_starts_with(checkpoint + length, "/checkpoints/");

    free(absolute);
    return in;
}

/* Create `dir`, or `dir`-1, -2...: of several processes only one creates each. */
static KilnStatus make_numbered(const char *dir, KilnText *made, KilnError *err)
{
    for (int i = 0; i < MAX_NUMBER; i++) {
        kiln_text_clear(made);
        kiln_text_append(made, dir);
        if (i > 0)
            kiln_text_printf(made, "-%d", i);
        if (made->failed)
            return kiln_error_nomem(err, strlen(dir));
        if (mkdir(made->data, 0777) == 0)
            return KILN_OK;
        if (errno != EEXIST)
            return kiln_error_errno(err, made->data);
    }
    return kiln_error_set(err, KILN_E_IO,
                          "%s: exists, and so do %s-1 to %s-%d; set kiln.run.dir to a folder that "
                          "does not exist",
                          dir, dir, dir, MAX_NUMBER - 1);
}

/* Create `dir`; it may exist, see claim. */
static KilnStatus make_named(const char *dir, KilnText *made, KilnError *err)
{
    kiln_text_append(made, dir);
    if (made->failed)
        return kiln_error_nomem(err, strlen(dir));
    return kiln_dir_make(dir, err);
}

/* ---- Remains of a run that never began ------------------------------------------------- */

/* Whether the entry is one that kiln creates before it journals the start of a run. */
static bool is_remnant(const char *dir, const char *name)
{
    char *path = kiln_path_join(dir, name), **own = NULL;
    bool is = false;
    size_t n = 0;

    if (path == NULL)
        return false;
    if (strcmp(name, "train.log") == 0) {
        is = kiln_is_file(path);
    } else if (strcmp(name, "checkpoints") == 0) {
        is = kiln_dir_is_empty(path);
    } else if (strcmp(name, ".kiln") == 0 && kiln_dir_list(path, &own, &n, NULL) >= 0) {
        is = true;
        for (size_t i = 0; i < n && is; i++)
            is = strcmp(own[i], KILN_JOURNAL_FILE) == 0 || kiln_run_config_names(own[i]);
        kiln_names_free(own, n);
    }
    free(path);
    return is;
}

/* Remove everything but the journal, which this process has opened. */
static KilnStatus remove_remnants(const char *dir, KilnError *err)
{
    static const char *const folders[] = { "", ".kiln" };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < KILN_COUNT(folders) && status >= 0; i++) {
        char *folder = kiln_path_join(dir, folders[i]), **names = NULL;
        size_t n = 0;

        status = folder != NULL ? kiln_dir_list(folder, &names, &n, err) : kiln_error_nomem(err, 1);
        for (size_t j = 0; j < n && status >= 0; j++) {
            char *path = kiln_path_join(folder, names[j]);

            if (path == NULL)
                status = kiln_error_nomem(err, strlen(folder));
            else if (strcmp(names[j], ".kiln") != 0 && strcmp(names[j], KILN_JOURNAL_FILE) != 0)
                status = kiln_path_remove(path, err);
            free(path);
        }
        kiln_names_free(names, n);
        free(folder);
    }
    return status;
}

/* Whether a run may begin in the folder: it is empty or holds only remnants. */
static bool is_free(const char *dir)
{
    char **names = NULL;
    size_t n = 0;
    bool is = kiln_dir_list(dir, &names, &n, NULL) >= 0;

    for (size_t i = 0; i < n && is; i++)
        is = is_remnant(dir, names[i]);
    kiln_names_free(names, n);
    return is;
}

static KilnStatus refuse(const char *dir, KilnError *err)
{
    return kiln_error_set(err, KILN_E_IO,
                          "kiln.run.dir=%s: is there already and not empty; name another folder, "
                          "or resume the run in it with resume=%s",
                          dir, dir);
}

/* Claim the folder by opening its journal, which locks out other processes. A folder that `exists`
 * already must be free and is cleared. */
static KilnStatus claim(KilnTrainer *trainer, bool exists, KilnError *err)
{
    const char *dir = trainer->options.run->dir;

    if (exists && !is_free(trainer->run_dir))
        return refuse(dir, err);
    KilnStatus status = kiln_run_journal_open(trainer, err);
    if (status < 0)
        return status;
    /* Another process may have run here in the meantime. */
    return kiln_journal_is_new(trainer->journal) && is_free(trainer->run_dir)
               ? remove_remnants(trainer->run_dir, err)
               : refuse(dir, err);
}

/* ---- Contents -------------------------------------------------------------------------- */

static KilnStatus fill(KilnTrainer *trainer, KilnError *err)
{
    char *log = kiln_path_join(trainer->run_dir, "train.log");
    char *checkpoints = kiln_path_join(trainer->run_dir, "checkpoints");
    KilnStatus status = log == NULL || checkpoints == NULL ? kiln_error_nomem(err, 1)
                                                           : kiln_dir_make(checkpoints, err);

    if (status >= 0)
        status = kiln_output_open_log(&trainer->output, log, err);
    if (status >= 0)
        kiln_config_allow_outputs(trainer->config, trainer->env->registry, trainer->run_dir);
    free(log);
    free(checkpoints);
    return status;
}

/* Whether the config must be written: the run is new, its config prepared without what was inferred
 * from the data, or it is resumed with overrides. */
static bool is_changed(const KilnTrainer *trainer)
{
    const KilnRunEnv *env = trainer->env;

    return trainer->inferred || (env->resume == NULL && !env->prepared) ||
           (env->resume != NULL && env->overrides != NULL && env->overrides[0] != NULL);
}

/* Write the config and flush it with all new folders below `top`, before the journal refers to
 * it. */
static KilnStatus write_config(const KilnTrainer *trainer, const char *top, KilnError *err)
{
    char *own = kiln_path_join(trainer->run_dir, ".kiln");
    KilnStatus status = own != NULL ? kiln_run_config_write(trainer, err)
                                    : kiln_error_nomem(err, strlen(trainer->run_dir));

    if (status >= 0)
        status = kiln_dirs_sync(own, top, err);
    free(own);
    return status;
}

static KilnStatus set_up(KilnTrainer *trainer, const char *top, KilnError *err)
{
    KilnStatus status = fill(trainer, err);

    if (status >= 0)
        status = kiln_run_origins_find(trainer, err);
    if (status < 0 || !is_changed(trainer))
        return status;
    status = write_config(trainer, top, err);
    return status >= 0 ? kiln_run_origins_find(trainer, err) : status;
}

/* Begin a new run; on failure the folder is removed. */
static KilnStatus begin(KilnTrainer *trainer, const char *top, KilnError *err)
{
    KilnStatus status = claim(trainer, strcmp(top, trainer->run_dir) == 0, err);

    if (status < 0) {
        free(trainer->run_dir);
        trainer->run_dir = NULL;
        return status;
    }
    status = set_up(trainer, top, err);
    if (status < 0)
        (void)!kiln_path_remove(trainer->run_dir, NULL);
    return status;
}

/* Remove unfinished files of a killed process. */
static KilnStatus remove_unfinished(const char *run, KilnError *err)
{
    static const char *const folders[] = { "", ".kiln", "checkpoints", "plots" };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < KILN_COUNT(folders) && status >= 0; i++) {
        char *folder = kiln_path_join(run, folders[i]);

        status = folder != NULL ? kiln_dir_prune(folder, err) : kiln_error_nomem(err, strlen(run));
        free(folder);
    }
    return status;
}

/* Continue in an existing run folder. */
static KilnStatus reopen(KilnTrainer *trainer, const char *top, KilnError *err)
{
    KilnStatus status = kiln_run_journal_open(trainer, err);

    if (status >= 0)
        status = remove_unfinished(trainer->run_dir, err);
    return status >= 0 ? set_up(trainer, top, err) : status;
}

/* Create kiln.run.dir; with ${now} in it, a number may be appended. */
static KilnStatus make(KilnTrainer *trainer, KilnText *made, KilnError *err)
{
    bool dated = false;
    KilnStatus status = kiln_run_folder_is_dated(trainer->config, &dated, err);

    if (status >= 0)
        status = dated ? make_numbered(trainer->options.run->dir, made, err)
                       : make_named(trainer->options.run->dir, made, err);
    return status;
}

KilnStatus kiln_run_folder_make(KilnTrainer *trainer, const char *checkpoint, KilnError *err)
{
    const char *dir = trainer->options.run->dir;
    const bool exists = trainer->env->prepared || trainer->env->resume != NULL ||
                        kiln_run_folder_holds(dir, checkpoint);
    char *top = kiln_dir_existing(dir);
    KilnText made = { 0 };
    KilnStatus status = top != NULL ? kiln_dir_make_parent(dir, err)
                                    : kiln_error_nomem(err, strlen(dir));

    if (status >= 0 && exists)
        kiln_text_append(&made, dir);
    else if (status >= 0)
        status = make(trainer, &made, err);
    if (status >= 0) {
        trainer->run_dir = made.failed ? NULL : realpath(made.data, NULL);
        status = trainer->run_dir == NULL ? kiln_error_errno(err, dir)
                 : exists                 ? reopen(trainer, top, err)
                                          : begin(trainer, top, err);
    }
    kiln_text_release(&made);
    free(top);
    return status;
}
