/* Files of a sweep: copies of the config files that it uses, and each frozen job's .kiln folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/sync.h"
#include "config/composed.h"
#include "kiln/array.h"
#include "sweep/sweep_state.h"

static const size_t largest_file = (size_t)1 << 26;

void kiln_job_files_release(KilnJobFiles *files)
{
    free(files->config);
    free(files->references);
    free(files->overrides);
    free(files->own);
    free(files->origins);
    *files = (KilnJobFiles) { .config = NULL };
}

/* ---- Config files ---------------------------------------------------------------------- */

static bool is_copied(const KilnSweep *sweep, const char *path)
{
    for (size_t i = 0; i < sweep->n_copies; i++)
        if (strcmp(sweep->copies[i].path, path) == 0)
            return true;
    return false;
}

static KilnStatus copy_config(KilnSweep *sweep, const KilnConfigFile *file, KilnError *err)
{
    const char *end = kiln_ends_with(file->path, ".yaml") ? "" : ".yaml";
    const char *path = kiln_arena_printf(&sweep->arena, "%s%s", file->path, end);
    KilnConfigCopy copy = { .path = path };
    char *text = NULL;

    if (path == NULL)
        return kiln_error_nomem(err, strlen(file->path));
    if (is_copied(sweep, path))
        return KILN_OK;
    if (!KILN_RESERVE(sweep->copies, sweep->copies_capacity, sweep->n_copies + 1))
        return kiln_error_nomem(err, sizeof(copy));
    KilnStatus status = kiln_file_read(file->source, largest_file, &text, &copy.size, err);
    if (status >= 0) {
        copy.text = kiln_arena_strndup(&sweep->arena, text, copy.size);
        status = copy.text != NULL ? KILN_OK : kiln_error_nomem(err, copy.size);
    }
    free(text);
    if (status >= 0)
        sweep->copies[sweep->n_copies++] = copy;
    return status;
}

KilnStatus kiln_sweep_copy_configs(KilnSweep *sweep, const KilnConfig *config, KilnError *err)
{
    KilnStatus status = KILN_OK;

    /* What ships with the program, and options that components provide, are no files. */
    for (const KilnConfigFile *file = config->search.files; file != NULL && status >= 0;
         file = file->next)
        if (!file->unreadable && kiln_is_file(file->source))
            status = copy_config(sweep, file, err);
    return status;
}

static KilnStatus write_files(const KilnSweep *sweep, KilnError *err)
{
    KilnText path = { 0 };
    KilnStatus status;

    kiln_text_printf(&path, "%s/.kiln/conf", sweep->path);
    size_t root = path.length;
    status = path.failed ? kiln_error_nomem(err, 1) : kiln_dir_make(path.data, err);
    for (size_t i = 0; i < sweep->n_copies && status >= 0; i++) {
        const KilnConfigCopy *file = &sweep->copies[i];
        const char *slash = strrchr(file->path, '/');

        path.length = root;
        kiln_text_printf(&path, "/%.*s", slash != NULL ? (int)(slash - file->path) : 0, file->path);
        if (!path.failed)
            status = kiln_dir_make(path.data, err);
        path.length = root;
        kiln_text_printf(&path, "/%s", file->path);
        if (path.failed)
            status = kiln_error_nomem(err, 1);
        if (status >= 0 && !kiln_is_file(path.data))
            status = kiln_file_write(path.data, file->text, file->size, err);
    }
    kiln_text_release(&path);
    return status;
}

KilnStatus kiln_sweep_write_configs(const KilnSweep *sweep, KilnError *err)
{
    char *own = kiln_path_join(sweep->path, ".kiln");
    KilnStatus status = own != NULL ? write_files(sweep, err)
                                    : kiln_error_nomem(err, strlen(sweep->path));

    if (status >= 0)
        status = kiln_tree_sync(own, err);
    if (status >= 0)
        status = kiln_dirs_sync(sweep->path, sweep->top, err);
    free(own);
    return status;
}

/* ---- Folders of jobs ------------------------------------------------------------------ */

static KilnStatus write_file(const KilnSweep *sweep, const KilnJob *job, const char *name,
                             const char *text, KilnError *err)
{
    char *path = kiln_sweep_job_path(sweep, job, name);
    KilnStatus status = path != NULL ? kiln_file_write_plain(path, text, err)
                                     : kiln_error_nomem(err, strlen(name));

    free(path);
    return status;
}

static KilnStatus write_job(const KilnSweep *sweep, const KilnJob *job, const KilnJobFiles *files,
                            KilnError *err)
{
    char *folder = kiln_sweep_job_path(sweep, job, NULL);
    char *own = kiln_sweep_job_path(sweep, job, ".kiln");
    KilnStatus status = folder == NULL || own == NULL ? kiln_error_nomem(err, 1) : KILN_OK;

    /* The folder may be left by a launcher that was killed before it recorded the job. */
    if (status >= 0)
        status = kiln_path_remove(folder, err);
    if (status >= 0)
        status = kiln_dir_make(own, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/overrides.yaml", files->overrides, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/kiln.yaml", files->own, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/origins.yaml", files->origins, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/job.yaml", files->references, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/config.yaml", files->config, err);
    free(folder);
    free(own);
    return status;
}

KilnStatus kiln_sweep_write_jobs(KilnSweep *sweep, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = sweep->n_old; i < sweep->jobs.count && status >= 0; i++) {
        KilnJobFiles *files = &sweep->files[i - sweep->n_old];

        status = write_job(sweep, &sweep->jobs.items[i], files, err);
        kiln_job_files_release(files);
    }
    return status >= 0 ? kiln_tree_sync(sweep->path, err) : status;
}
