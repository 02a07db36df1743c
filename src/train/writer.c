/* Doing the jobs of saving: folders, then links, then removals. */
#include "train/writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

struct KilnWriter {
    char *folder;
    KilnSnapshot snapshot;
    KilnSaveJob job;
    KilnStatus status;
    KilnError err;
};

/* ---- A job -------------------------------------------------------------------------- */

void kiln_save_job_release(KilnSaveJob *job)
{
    for (size_t i = 0; i < job->n_saves; i++) {
        free(job->saves[i].name);
        json_decref(job->saves[i].saved_by);
    }
    free(job->saves);
    free(job->links);
    free(job->removals);
    *job = (KilnSaveJob) { 0 };
}

static KilnStatus write_link(const char *folder, const KilnLinked *link, KilnError *err)
{
    char *path = kiln_path_join(folder, link->link);
    KilnStatus status = path != NULL ? kiln_link_write(link->name, path, err)
                                     : kiln_error_nomem(err, 1);

    free(path);
    return status;
}

/* What only a link pointed to may be a folder that somebody put there by hand. */
static KilnStatus remove_folder(const char *folder, const KilnDropped *dropped, KilnError *err)
{
    char *path = kiln_path_join(folder, dropped->name);
    KilnStatus status = KILN_OK;

    if (path == NULL)
        return kiln_error_nomem(err, 1);
    if (dropped->owned || kiln_checkpoint_is_own(folder, dropped->name, NULL))
        status = kiln_path_remove(path, err);
    free(path);
    return status;
}

static KilnStatus do_job(const KilnWriter *writer, const KilnSaveJob *job, KilnError *err)
{
    const char *folder = writer->folder;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < job->n_saves && status >= 0; i++)
        status = kiln_checkpoint_write(&writer->snapshot, &job->saves[i], folder,
                                       i > 0 ? job->saves[0].name : NULL, err);
    for (size_t i = 0; i < job->n_links && status >= 0; i++)
        status = write_link(folder, &job->links[i], err);
    for (size_t i = 0; i < job->n_removals && status >= 0; i++)
        status = remove_folder(folder, &job->removals[i], err);
    return status;
}

/* ---- The writer ----------------------------------------------------------------------- */

KilnStatus kiln_writer_new(const char *folder, KilnWriter **ret, KilnError *err)
{
    KilnWriter *writer = calloc(1, sizeof(*writer));

    if (writer == NULL || (writer->folder = kiln_strdup(folder)) == NULL) {
        free(writer);
        return kiln_error_nomem(err, sizeof(*writer));
    }
    *ret = writer;
    return KILN_OK;
}

void kiln_writer_free(KilnWriter *writer)
{
    if (writer == NULL)
        return;
    kiln_snapshot_release(&writer->snapshot);
    free(writer->folder);
    free(writer);
}

KilnStatus kiln_writer_wait(KilnWriter *writer, KilnError *err)
{
    const KilnStatus status = writer->status;

    if (status < 0 && err != NULL)
        *err = writer->err;
    writer->status = KILN_OK;
    return status;
}

KilnSnapshot *kiln_writer_snapshot(KilnWriter *writer)
{
    return &writer->snapshot;
}

void kiln_writer_begin(KilnWriter *writer, KilnSaveJob *job)
{
    writer->status = do_job(writer, job, &writer->err);
    kiln_save_job_release(job);
}
