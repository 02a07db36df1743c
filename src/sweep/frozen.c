/* The files of frozen jobs: configs that were used are kept, and each job's folder is
 * written with what it runs from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/sync.h"
#include "config/composed.h"
#include "sweep/state.h"

static const size_t largest_file = (size_t)1 << 26;

void kiln_frozen_release(KilnFrozen *frozen)
{
    free(frozen->config);
    free(frozen->references);
    free(frozen->overrides);
    free(frozen->own);
    free(frozen->origins);
    *frozen = (KilnFrozen) { .config = NULL };
}

/* ---- Config files ---------------------------------------------------------------------- */

static bool is_kept(const KilnSweep *sweep, const char *path)
{
    for (size_t i = 0; i < sweep->n_kept; i++)
        if (strcmp(sweep->kept[i].path, path) == 0)
            return true;
    return false;
}

static KilnStatus keep_file(KilnSweep *sweep, const KilnConfigFile *file, KilnError *err)
{
    const char *end = kiln_ends_with(file->path, ".yaml") ? "" : ".yaml";
    const char *path = kiln_arena_printf(&sweep->arena, "%s%s", file->path, end);
    KilnKeptFile kept = { .path = path };
    char *text = NULL;

    if (path == NULL)
        return kiln_error_nomem(err, strlen(file->path));
    if (is_kept(sweep, path))
        return KILN_OK;
    if (sweep->n_kept == sweep->kept_capacity) {
        size_t capacity = sweep->kept_capacity > 0 ? 2 * sweep->kept_capacity : 32;
        KilnKeptFile *more = realloc(sweep->kept, capacity * sizeof(*more));

        if (more == NULL)
            return kiln_error_nomem(err, capacity * sizeof(*more));
        sweep->kept = more;
        sweep->kept_capacity = capacity;
    }
    KilnStatus status = kiln_file_read(file->source, largest_file, &text, &kept.size, err);
    if (status >= 0) {
        kept.text = kiln_arena_strndup(&sweep->arena, text, kept.size);
        status = kept.text != NULL ? KILN_OK : kiln_error_nomem(err, kept.size);
    }
    free(text);
    if (status >= 0)
        sweep->kept[sweep->n_kept++] = kept;
    return status;
}

KilnStatus kiln_sweep_keep_files(KilnSweep *sweep, const KilnConfig *config, KilnError *err)
{
    KilnStatus status = KILN_OK;

    /* What ships with the program, and options of components, are no files. */
    for (const KilnConfigFile *file = config->search.files; file != NULL && status >= 0;
         file = file->next)
        if (!file->unreadable && kiln_is_file(file->source))
            status = keep_file(sweep, file, err);
    return status;
}

static KilnStatus write_files(const KilnSweep *sweep, KilnError *err)
{
    KilnText path = { 0 };
    KilnStatus status;

    kiln_text_printf(&path, "%s/.kiln/conf", sweep->path);
    size_t root = path.length;
    status = path.failed ? kiln_error_nomem(err, 1) : kiln_dir_make(path.data, err);
    for (size_t i = 0; i < sweep->n_kept && status >= 0; i++) {
        const KilnKeptFile *file = &sweep->kept[i];
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

KilnStatus kiln_sweep_write_kept(const KilnSweep *sweep, KilnError *err)
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

static KilnStatus write_job(const KilnSweep *sweep, const KilnJob *job, const KilnFrozen *frozen,
                            KilnError *err)
{
    char *folder = kiln_sweep_job_path(sweep, job, NULL);
    char *own = kiln_sweep_job_path(sweep, job, ".kiln");
    KilnStatus status = folder == NULL || own == NULL ? kiln_error_nomem(err, 1) : KILN_OK;

    /* Left by a launcher that was killed before it wrote of the job in the journal. */
    if (status >= 0)
        status = kiln_path_remove(folder, err);
    if (status >= 0)
        status = kiln_dir_make(own, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/overrides.yaml", frozen->overrides, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/kiln.yaml", frozen->own, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/origins.yaml", frozen->origins, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/job.yaml", frozen->references, err);
    if (status >= 0)
        status = write_file(sweep, job, ".kiln/config.yaml", frozen->config, err);
    free(folder);
    free(own);
    return status;
}

KilnStatus kiln_sweep_write_frozen(KilnSweep *sweep, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = sweep->n_old; i < sweep->jobs.count && status >= 0; i++) {
        KilnFrozen *frozen = &sweep->frozen[i - sweep->n_old];

        status = write_job(sweep, &sweep->jobs.items[i], frozen, err);
        kiln_frozen_release(frozen);
    }
    return status >= 0 ? kiln_tree_sync(sweep->path, err) : status;
}
