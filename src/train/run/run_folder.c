/* Making the run folder and writing into it what the run was asked to do. */
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

enum { MOST_RUNS_A_SECOND = 1000 };

/* ---- Which folder -------------------------------------------------------------------- */

/* kiln.run.dir as written, interpolations and all. */
static KilnStatus dir_as_written(const KilnConfig *config, char **ret, KilnError *err)
{
    return kiln_config_yaml(config, "kiln.run.dir", false, ret, err);
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

/* Only one of several processes makes the folder; the others take the next number. */
static KilnStatus make_numbered(const char *dir, KilnText *made, KilnError *err)
{
    for (int i = 0; i < MOST_RUNS_A_SECOND; i++) {
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
                          "%s: so are %d more with a number behind; set "
                          "kiln.run.dir to a folder that is not there",
                          dir, MOST_RUNS_A_SECOND);
}

/* One that is there may be what a run left that was ended before it began: see claim. */
static KilnStatus make_named(const char *dir, KilnText *made, KilnError *err)
{
    kiln_text_append(made, dir);
    if (made->failed)
        return kiln_error_nomem(err, strlen(dir));
    return kiln_dir_make(dir, err);
}

/* ---- A folder without a run ----------------------------------------------------------- */

/* What this program puts into a run folder before it writes that the run begins. */
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

/* All of it but the journal, which is this process's. */
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

/* Whether a run may begin in the folder: it holds nothing, or what is left of one that was ended
 * before it began. */
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

/* Open the journal of the folder. One that was there already has to be free, and is then cleared:
 * while this process has the journal, no other can take the folder. */
static KilnStatus claim(KilnTrainer *trainer, bool there, KilnError *err)
{
    const char *dir = trainer->options.run->dir;

    if (there && !is_free(trainer->run_dir))
        return refuse(dir, err);
    KilnStatus status = kiln_run_journal_open(trainer, err);
    if (status < 0)
        return status;
    /* Another process may have been faster, and be over by now. */
    return kiln_journal_is_new(trainer->journal) && is_free(trainer->run_dir)
               ? remove_remnants(trainer->run_dir, err)
               : refuse(dir, err);
}

/* ---- What is in it -------------------------------------------------------------------- */

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

/* Whether a resumed run is asked for anything that it was not. */
static bool is_changed(const KilnTrainer *trainer)
{
    const KilnRunEnv *env = trainer->env;

    return env->resume == NULL || (env->overrides != NULL && env->overrides[0] != NULL);
}

/* The files of .kiln, and all folders up to `top`, are on disk before the journal counts on
 * them. */
static KilnStatus settle_config(const KilnTrainer *trainer, const char *top, KilnError *err)
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
        status = kiln_run_origins_look(trainer, err);
    if (status < 0 || trainer->env->prepared || !is_changed(trainer))
        return status;
    status = settle_config(trainer, top, err);
    return status >= 0 ? kiln_run_origins_look(trainer, err) : status;
}

/* A new run leaves nothing behind when it can't begin. */
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

/* What a killed process was writing is removed. */
static KilnStatus tidy(const char *run, KilnError *err)
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

static KilnStatus go_on(KilnTrainer *trainer, const char *top, KilnError *err)
{
    KilnStatus status = kiln_run_journal_open(trainer, err);

    if (status >= 0)
        status = tidy(trainer->run_dir, err);
    return status >= 0 ? set_up(trainer, top, err) : status;
}

/* Make the folder: kiln.run.dir, or that with a number behind. */
static KilnStatus make(KilnTrainer *trainer, KilnText *made, KilnError *err)
{
    char *written = NULL;
    KilnStatus status = dir_as_written(trainer->config, &written, err);

    if (status >= 0)
        status = strstr(written, "${now") != NULL
                     ? make_numbered(trainer->options.run->dir, made, err)
                     : make_named(trainer->options.run->dir, made, err);
    free(written);
    return status;
}

KilnStatus kiln_run_folder_make(KilnTrainer *trainer, const char *checkpoint, KilnError *err)
{
    const char *dir = trainer->options.run->dir;
    const bool may_continue = trainer->env->prepared || trainer->env->resume != NULL ||
                              kiln_run_folder_holds(dir, checkpoint);
    char *top = kiln_dir_existing(dir);
    KilnText made = { 0 };
    KilnStatus status = top != NULL ? kiln_dir_make_parent(dir, err)
                                    : kiln_error_nomem(err, strlen(dir));

    if (status >= 0 && may_continue)
        kiln_text_append(&made, dir);
    else if (status >= 0)
        status = make(trainer, &made, err);
    if (status >= 0) {
        trainer->run_dir = made.failed ? NULL : realpath(made.data, NULL);
        status = trainer->run_dir == NULL ? kiln_error_errno(err, dir)
                 : may_continue           ? go_on(trainer, top, err)
                                          : begin(trainer, top, err);
    }
    kiln_text_release(&made);
    free(top);
    return status;
}
