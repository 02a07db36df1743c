/* Writes the YAML files of RUN/.kiln: all unfinished, one sync, then all renames. */
#include "train/run/run_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/sync.h"
#include "base/text.h"
#include "config/provenance/origins_file.h"
#include "config/yaml/output.h"
#include "train/checkpoint/resume.h"

#define UNFINISHED ".new"

/* ---- Their texts --------------------------------------------------------------------- */

KilnStatus kiln_run_origins_find(KilnTrainer *trainer, KilnError *err)
{
    KilnError why = { 0 };

    free(trainer->origins);
    trainer->origins = NULL;
    if (trainer->env->resume == NULL && !trainer->env->prepared)
        return KILN_OK;
    char *path = kiln_path_join(trainer->run_dir, ".kiln/origins.yaml");
    if (path == NULL)
        return kiln_error_nomem(err, strlen(trainer->run_dir));
    if (kiln_is_file(path)) {
        if (kiln_config_origins_check(path, &why) >= 0)
            trainer->origins = path;
        else
            kiln_output_print(&trainer->output,
                              "warning: %.*s: the origins of this run's values are lost",
                              (int)strcspn(why.text, "\n"), why.text);
    }
    if (trainer->origins == NULL)
        free(path);
    return KILN_OK;
}

static KilnStatus make_overrides(const KilnTrainer *trainer, char **ret, KilnError *err)
{
    return kiln_config_overrides_yaml(trainer->config, ret, err);
}

static KilnStatus make_own(const KilnTrainer *trainer, char **ret, KilnError *err)
{
    return kiln_config_own_yaml(trainer->config, ret, err);
}

/* Where values come from; for a resumed run with its earlier origins. */
static KilnStatus make_origins(const KilnTrainer *trainer, char **ret, KilnError *err)
{
    return kiln_config_origins_yaml(trainer->config, trainer->origins, ret, err);
}

/* The config that a resume reads, without ckpt_path: a resume picks its own checkpoint. */
static KilnStatus make_job(const KilnTrainer *trainer, char **ret, KilnError *err)
{
    KilnStatus status = kiln_config_job_yaml(trainer->config, ret, err);

    if (status >= 0)
        kiln_resume_drop_path(*ret);
    return status;
}

static KilnStatus make_config(const KilnTrainer *trainer, char **ret, KilnError *err)
{
    *ret = kiln_strdup(trainer->config_yaml);
    return *ret != NULL ? KILN_OK : kiln_error_nomem(err, strlen(trainer->config_yaml));
}

static const struct {
    const char *name;
    bool once; /* written by who begins the run only: its first session, or its sweep */
    KilnStatus (*make)(const KilnTrainer *trainer, char **ret, KilnError *err);
} parts[] = {
    { "overrides.yaml", true, make_overrides }, { "kiln.yaml", true, make_own },
    { "origins.yaml", false, make_origins },    { "job.yaml", false, make_job },
    { "config.yaml", false, make_config },
};

bool kiln_run_config_names(const char *name)
{
    for (size_t i = 0; i < KILN_COUNT(parts); i++) {
        const size_t length = strlen(parts[i].name);

        if (strncmp(name, parts[i].name, length) == 0 &&
            (name[length] == '\0' || strcmp(name + length, UNFINISHED) == 0))
            return true;
    }
    return false;
}

/* ---- Writing ------------------------------------------------------------------------- */

/* The paths of the files to write: unfinished and final. */
typedef struct Paths {
    char *unfinished[KILN_COUNT(parts)], *final[KILN_COUNT(parts)];
    size_t n;
} Paths;

static KilnStatus write_part(const KilnTrainer *trainer, size_t part, Paths *paths, KilnError *err)
{
    KilnText unfinished = { 0 }, final = { 0 };
    char *text = NULL;
    const size_t n = paths->n++;

    kiln_text_printf(&unfinished, "%s/.kiln/%s" UNFINISHED, trainer->run_dir, parts[part].name);
    kiln_text_printf(&final, "%s/.kiln/%s", trainer->run_dir, parts[part].name);
    paths->unfinished[n] = kiln_text_take(&unfinished);
    paths->final[n] = kiln_text_take(&final);
    if (paths->unfinished[n] == NULL || paths->final[n] == NULL)
        return kiln_error_nomem(err, strlen(trainer->run_dir));
    KilnStatus status = parts[part].make(trainer, &text, err);
    if (status >= 0)
        status = kiln_file_write_plain(paths->unfinished[n], text, err);
    free(text);
    return status;
}

KilnStatus kiln_run_config_write(const KilnTrainer *trainer, KilnError *err)
{
    Paths paths = { .n = 0 };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < KILN_COUNT(parts) && status >= 0; i++)
        if (!parts[i].once || (trainer->env->resume == NULL && !trainer->env->prepared))
            status = write_part(trainer, i, &paths, err);
    if (status >= 0)
        status = kiln_paths_sync((const char *const *)paths.unfinished, paths.n, err);
    for (size_t i = 0; i < paths.n && status >= 0; i++)
        if (rename(paths.unfinished[i], paths.final[i]) != 0)
            status = kiln_error_errno(err, paths.final[i]);
    for (size_t i = 0; i < paths.n; i++) {
        free(paths.unfinished[i]);
        free(paths.final[i]);
    }
    return status;
}
