/* Making the run folder and writing into it what the run was asked to do. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "train/run_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "config/run_files.h"
#include "train/resume.h"

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

static KilnStatus make_named(const char *dir, KilnText *made, KilnError *err)
{
    kiln_text_append(made, dir);
    if (made->failed)
        return kiln_error_nomem(err, strlen(dir));
    if (mkdir(dir, 0777) == 0 || (errno == EEXIST && kiln_is_dir(dir) && kiln_dir_is_empty(dir)))
        return KILN_OK;
    if (errno != EEXIST && errno != ENOTDIR)
        return kiln_error_errno(err, dir);
    return kiln_error_set(err, KILN_E_IO,
                          "kiln.run.dir=%s: is there already and not empty; name another folder, "
                          "or go on with the run in it by resume=%s",
                          dir, dir);
}

/* ---- What is in it -------------------------------------------------------------------- */

/* These files serve people and other programs; unlike checkpoints nothing is
 * lost with them, so they are not flushed to disk one by one. */
static KilnStatus write_text(const char *dir, const char *name, const char *text, KilnError *err)
{
    char *path = kiln_path_join(dir, name);
    KilnStatus status = KILN_OK;

    if (path == NULL)
        return kiln_error_nomem(err, strlen(name));
    status = kiln_file_write_plain(path, text, err);
    free(path);
    return status;
}

/* Write what `make` says of the config to a file, and free it. */
static KilnStatus write_part(const KilnTrainer *trainer, const char *dir, const char *name,
                             KilnStatus (*make)(const KilnConfig *, char **, KilnError *),
                             KilnError *err)
{
    char *text = NULL;
    KilnStatus status = make(trainer->config, &text, err);

    if (status >= 0)
        status = write_text(dir, name, text, err);
    free(text);
    return status;
}

/* The same under another name first: whoever finds the file finds all of it. */
static KilnStatus write_at_once(const char *dir, const char *name, const char *text, KilnError *err)
{
    char *from = kiln_path_join(dir, ".new"), *to = kiln_path_join(dir, name);
    KilnStatus status = from == NULL || to == NULL ? kiln_error_nomem(err, strlen(name))
                                                   : write_text(dir, ".new", text, err);

    if (status >= 0 && rename(from, to) != 0)
        status = kiln_error_errno(err, to);
    free(from);
    free(to);
    return status;
}

char *kiln_run_origins(const KilnTrainer *trainer)
{
    const bool goes_on = trainer->env->resume != NULL || trainer->env->prepared;
    char *path = goes_on ? kiln_path_join(trainer->run_dir, ".kiln/origins.yaml") : NULL;

    if (path != NULL && !kiln_is_file(path)) {
        free(path);
        path = NULL;
    }
    return path;
}

/* Whether a resumed run is asked for anything that it was not. */
static bool is_changed(const KilnTrainer *trainer)
{
    const KilnRunEnv *env = trainer->env;

    return env->resume == NULL || (env->overrides != NULL && env->overrides[0] != NULL);
}

/* Where values come from; of a run that goes on also those of before. */
static KilnStatus write_origins(const KilnTrainer *trainer, const char *dir, KilnError *err)
{
    char *before = kiln_run_origins(trainer), *text = NULL;
    KilnStatus status = kiln_config_origins_yaml(trainer->config, before, &text, err);

    if (status >= 0)
        status = write_at_once(dir, "origins.yaml", text, err);
    free(before);
    free(text);
    return status;
}

/* What a resume takes: from which checkpoint it goes on is another matter. */
static KilnStatus write_job(const KilnTrainer *trainer, const char *dir, KilnError *err)
{
    char *text = NULL;
    KilnStatus status = kiln_config_job_yaml(trainer->config, &text, err);

    if (status >= 0) {
        kiln_resume_forget(text);
        status = write_at_once(dir, "job.yaml", text, err);
    }
    free(text);
    return status;
}

/* config.yaml comes last: with it a run can be resumed. */
static KilnStatus write_config_files(const KilnTrainer *trainer, KilnError *err)
{
    char *dir = kiln_path_join(trainer->run_dir, ".kiln");
    KilnStatus status = dir == NULL ? kiln_error_nomem(err, 1) : kiln_dir_make(dir, err);

    if (status >= 0 && trainer->env->resume == NULL)
        status = write_part(trainer, dir, "overrides.yaml", kiln_config_overrides_yaml, err);
    if (status >= 0 && trainer->env->resume == NULL)
        status = write_part(trainer, dir, "kiln.yaml", kiln_config_own_yaml, err);
    if (status >= 0)
        status = write_origins(trainer, dir, err);
    if (status >= 0)
        status = write_job(trainer, dir, err);
    if (status >= 0)
        status = write_at_once(dir, "config.yaml", trainer->config_yaml, err);
    free(dir);
    return status;
}

static KilnStatus fill(KilnTrainer *trainer, KilnError *err)
{
    char *log = kiln_path_join(trainer->run_dir, "train.log");
    char *checkpoints = kiln_path_join(trainer->run_dir, "checkpoints");
    KilnStatus status = log == NULL || checkpoints == NULL ? kiln_error_nomem(err, 1)
                                                           : kiln_dir_make(checkpoints, err);

    if (status >= 0)
        status = kiln_output_open_log(&trainer->output, log, err);
    if (status >= 0 && !trainer->env->prepared && is_changed(trainer))
        status = write_config_files(trainer, err);
    free(log);
    free(checkpoints);
    return status;
}

KilnStatus kiln_run_folder_make(KilnTrainer *trainer, const char *checkpoint, KilnError *err)
{
    const char *dir = trainer->options.run->dir;
    bool go_on = trainer->env->prepared || trainer->env->resume != NULL ||
                 kiln_run_folder_holds(dir, checkpoint);
    char *written = NULL;
    KilnText made = { 0 };
    KilnStatus status = dir_as_written(trainer->config, &written, err);

    if (status >= 0)
        status = kiln_dir_make_parent(dir, err);
    if (status >= 0 && go_on)
        kiln_text_append(&made, dir);
    else if (status >= 0)
        status = strstr(written, "${now") != NULL ? make_numbered(dir, &made, err)
                                                  : make_named(dir, &made, err);
    free(written);
    if (status >= 0) {
        trainer->run_dir = made.failed ? NULL : realpath(made.data, NULL);
        status = trainer->run_dir == NULL ? kiln_error_errno(err, dir) : fill(trainer, err);
    }
    if (status < 0 && trainer->run_dir != NULL && !go_on)
        (void)!kiln_path_remove(trainer->run_dir, NULL);
    kiln_text_release(&made);
    return status;
}
