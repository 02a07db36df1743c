/* The .kiln folder of a frozen job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/sync.h"
#include "config/composed.h"
#include "kiln/array.h"
#include "sweep/sweep_state.h"

void kiln_job_files_release(KilnJobFiles *files)
{
    free(files->config);
    free(files->references);
    free(files->overrides);
    free(files->own);
    free(files->origins);
    *files = (KilnJobFiles) { .config = NULL };
}

static KilnStatus write_file(const KilnSweep *sweep, const KilnJob *job, const char *name,
                             const char *text, KilnError *err)
{
    char *path = kiln_sweep_job_path(sweep, job, name);
    KilnStatus status = path != NULL ? kiln_file_write_plain(path, text, err)
                                     : kiln_error_nomem(err, strlen(name));

    free(path);
    return status;
}

KilnStatus kiln_sweep_write_job(const KilnSweep *sweep, const KilnJob *job,
                                const KilnJobFiles *files, KilnError *err)
{
    char *folder = kiln_sweep_job_path(sweep, job, NULL);
    char *own = kiln_sweep_job_path(sweep, job, ".kiln");
    KilnStatus status = folder == NULL || own == NULL ? kiln_error_nomem(err, 1) : KILN_OK;

    /* The folder may be left by a launcher that was killed before it recorded the start. */
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
    if (status >= 0)
        status = kiln_tree_sync(folder, err);
    if (status >= 0)
        status = kiln_dirs_sync(folder, sweep->path, err);
    free(folder);
    free(own);
    return status;
}

/* ---- The checkpoint to start from ----------------------------------------------------- */

/* Link the files of `from` into the new folder `to`. A published checkpoint never changes. */
static KilnStatus link_tree(const char *from, const char *to, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_make(to, err);

    if (status >= 0)
        status = kiln_dir_list(from, &names, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        char *source = kiln_path_join(from, names[i]), *target = kiln_path_join(to, names[i]);

        if (source == NULL || target == NULL)
            status = kiln_error_nomem(err, 1);
        else if (kiln_is_dir(source))
            status = link_tree(source, target, err);
        else if (link(source, target) != 0)
            status = kiln_error_errno(err, target);
        free(source);
        free(target);
    }
    kiln_names_free(names, n);
    return status;
}

KilnStatus kiln_sweep_link_start(const KilnSweep *sweep, const KilnJob *job, KilnError *wrong,
                                 KilnError *err)
{
    const KilnJob *parent = &sweep->jobs.items[job->parent - 1];
    char *from = parent->dir != NULL ? kiln_sweep_job_path(sweep, parent, "checkpoints/last")
                                     : NULL;
    char *to = kiln_sweep_job_path(sweep, job, ".kiln/start");
    KilnStatus status = KILN_OK;

    if (to == NULL)
        status = kiln_error_nomem(err, 1);
    else if (from == NULL || !kiln_is_dir(from))
        kiln_error_set(wrong, KILN_E_IO, "job #%zu, from which it starts, has no checkpoint",
                       job->parent - 1);
    else
        status = link_tree(from, to, err);
    if (status >= 0 && wrong->status >= 0)
        status = kiln_tree_sync(to, err);
    free(from);
    free(to);
    return status;
}
