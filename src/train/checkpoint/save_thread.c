/* Doing the jobs of saving in a thread of their own: folders, then links, then removals. One
 * job at a time: whoever has another waits, so that one snapshot is all the memory it takes. */
#include "train/checkpoint/save_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/thread_signals.h"
#include "base/text.h"

struct KilnSaveThread {
    char *folder;
    KilnLivePage *page; /* is told of saving */
    pthread_t thread;
    bool started;
    KilnSnapshot snapshot; /* the thread's while it is busy, the run's otherwise; so is the job */
    KilnSaveJob job;

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    bool busy, quits;
    KilnStatus status;
    KilnError err;
    _Atomic bool failed; /* status says how; for whoever only looks */
};

/* ---- A job -------------------------------------------------------------------------- */

void kiln_save_job_release(KilnSaveJob *job)
{
    for (size_t i = 0; i < job->n_saves; i++) {
        free(job->saves[i].name);
        json_decref(job->saves[i].saved_by);
    }
    for (size_t i = 0; i < job->n_files; i++)
        free(job->files[i]);
    free(job->saves);
    free(job->links);
    free(job->removals);
    free(job->files);
    *job = (KilnSaveJob) { 0 };
}

static KilnStatus write_link(const char *folder, const KilnLinkRequest *link, KilnError *err)
{
    char *path = kiln_path_join(folder, link->link);
    KilnStatus status = path != NULL ? kiln_link_write(link->name, path, err)
                                     : kiln_error_nomem(err, 1);

    free(path);
    return status;
}

/* What only a link pointed to may be a folder that somebody put there by hand. */
static KilnStatus remove_folder(const char *folder, const KilnDeleteRequest *to_delete,
                                KilnError *err)
{
    char *path = kiln_path_join(folder, to_delete->name);
    char *aside = kiln_path_join(folder, KILN_CHECKPOINT_REMOVED);
    KilnStatus status = path != NULL && aside != NULL ? KILN_OK : kiln_error_nomem(err, 1);

    if (status >= 0 &&
        (to_delete->owned || kiln_checkpoint_is_own(folder, to_delete->name, NULL))) {
        status = kiln_path_remove(aside, err);
        if (status >= 0 && rename(path, aside) != 0 && errno != ENOENT)
            status = kiln_error_errno(err, path);
        if (status >= 0)
            status = kiln_path_remove(aside, err);
    }
    free(path);
    free(aside);
    return status;
}

/* The entries of what is new in the run folder. */
static KilnStatus sync_above(const char *folder, KilnError *err)
{
    char *above = kiln_path_join(folder, "..");
    KilnStatus status = above != NULL ? kiln_path_sync(above, err) : kiln_error_nomem(err, 1);

    free(above);
    return status;
}

static KilnStatus do_job(const KilnSaveThread *writer, const KilnSaveJob *job, KilnError *err)
{
    const char *folder = writer->folder;
    KilnStatus status = KILN_OK;

    /* The rows that a checkpoint counts on are on disk before it is. */
    for (size_t i = 0; i < job->n_files && status >= 0; i++)
        if (kiln_is_file(job->files[i]))
            status = kiln_path_sync(job->files[i], err);
    if (status >= 0)
        status = sync_above(folder, err);
    for (size_t i = 0; i < job->n_saves && status >= 0; i++)
        status = kiln_checkpoint_write(&writer->snapshot, &job->saves[i], folder,
                                       i > 0 ? job->saves[0].name : NULL, err);
    for (size_t i = 0; i < job->n_links && status >= 0; i++)
        status = write_link(folder, &job->links[i], err);
    for (size_t i = 0; i < job->n_removals && status >= 0; i++)
        status = remove_folder(folder, &job->removals[i], err);
    return status;
}

/* ---- The thread ------------------------------------------------------------------------ */

static void *run(void *ctx)
{
    KilnSaveThread *writer = ctx;

    pthread_mutex_lock(&writer->mutex);
    for (;;) {
        while (!writer->busy && !writer->quits)
            pthread_cond_wait(&writer->changed, &writer->mutex);
        if (!writer->busy)
            break;
        pthread_mutex_unlock(&writer->mutex);
        KilnError err = { 0 };
        kiln_live_saving(writer->page, true);
        const KilnStatus status = do_job(writer, &writer->job, &err);
        kiln_live_saving(writer->page, false);
        kiln_save_job_release(&writer->job);
        pthread_mutex_lock(&writer->mutex);
        writer->busy = false;
        writer->status = status;
        writer->err = err;
        writer->failed = status < 0;
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

/* Signals are for the thread that trains. */
static bool start(KilnSaveThread *writer)
{
    sigset_t before;

    if (kiln_signals_block(&before) != 0)
        return false;
    const bool started = pthread_create(&writer->thread, NULL, run, writer) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

KilnStatus kiln_writer_new(const char *folder, KilnLivePage *page, KilnSaveThread **ret,
                           KilnError *err)
{
    KilnSaveThread *writer = calloc(1, sizeof(*writer));

    if (writer == NULL)
        return kiln_error_nomem(err, sizeof(*writer));
    writer->page = page;
    writer->folder = kiln_strdup(folder);
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_cond_init(&writer->changed, NULL);
    writer->started = writer->folder != NULL && start(writer);
    if (!writer->started) {
        kiln_writer_free(writer);
        return kiln_error_set(err, KILN_E_NOMEM,
                              "the thread that writes checkpoints can't be "
                              "started");
    }
    *ret = writer;
    return KILN_OK;
}

void kiln_writer_free(KilnSaveThread *writer)
{
    if (writer == NULL)
        return;
    if (writer->started) {
        pthread_mutex_lock(&writer->mutex);
        writer->quits = true;
        pthread_cond_broadcast(&writer->changed);
        pthread_mutex_unlock(&writer->mutex);
        pthread_join(writer->thread, NULL);
    }
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    kiln_snapshot_release(&writer->snapshot);
    free(writer->folder);
    free(writer);
}

KilnStatus kiln_writer_wait(KilnSaveThread *writer, KilnError *err)
{
    pthread_mutex_lock(&writer->mutex);
    while (writer->busy)
        pthread_cond_wait(&writer->changed, &writer->mutex);
    const KilnStatus status = writer->status;
    if (status < 0 && err != NULL)
        *err = writer->err;
    writer->status = KILN_OK;
    writer->failed = false;
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

bool kiln_writer_failed(const KilnSaveThread *writer)
{
    return writer->failed;
}

KilnSnapshot *kiln_writer_snapshot(KilnSaveThread *writer)
{
    return &writer->snapshot;
}

void kiln_writer_begin(KilnSaveThread *writer, KilnSaveJob *job)
{
    writer->job = *job;
    *job = (KilnSaveJob) { 0 };
    pthread_mutex_lock(&writer->mutex);
    writer->busy = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
}
