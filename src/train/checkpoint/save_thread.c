/* Runs one save job at a time in its own thread. A second job waits, so that one snapshot is all
 * the memory that saving takes. */
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
    KilnLivePage *page; /* shows whether a save is in progress; NULL: none */
    pthread_t id;
    bool started;
    KilnSnapshot snapshot; /* snapshot and job belong to the thread while it is busy, else to the
                            * run */
    KilnSaveJob job;

    pthread_mutex_t mutex; /* protects what follows */
    pthread_cond_t changed;
    bool busy, quits;
    KilnStatus status;
    KilnError err;
    _Atomic bool failed; /* status < 0, readable without the mutex */
};

/* ---- A job -------------------------------------------------------------------------- */

void kiln_save_job_release(KilnSaveJob *job)
{
    for (size_t i = 0; i < job->n_targets; i++) {
        free(job->targets[i].name);
        json_decref(job->targets[i].saved_by);
    }
    for (size_t i = 0; i < job->n_files; i++)
        free(job->files[i]);
    free(job->targets);
    free(job->links);
    free(job->deletes);
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

/* Delete a checkpoint. The former target of a link may be a folder that a user put there: it is
 * deleted only if this run saved it. */
static KilnStatus delete_folder(const char *folder, const KilnDeleteRequest *to_delete,
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

/* Flush the run folder's own entries. */
static KilnStatus sync_parent(const char *folder, KilnError *err)
{
    char *parent = kiln_path_join(folder, "..");
    KilnStatus status = parent != NULL ? kiln_path_sync(parent, err) : kiln_error_nomem(err, 1);

    free(parent);
    return status;
}

static KilnStatus do_job(const KilnSaveThread *thread, const KilnSaveJob *job, KilnError *err)
{
    const char *folder = thread->folder;
    KilnStatus status = KILN_OK;

    /* The log rows that a checkpoint refers to are on disk before it is. */
    for (size_t i = 0; i < job->n_files && status >= 0; i++)
        if (kiln_is_file(job->files[i]))
            status = kiln_path_sync(job->files[i], err);
    if (status >= 0)
        status = sync_parent(folder, err);
    for (size_t i = 0; i < job->n_targets && status >= 0; i++)
        status = kiln_checkpoint_write(&thread->snapshot, &job->targets[i], folder,
                                       i > 0 ? job->targets[0].name : NULL, err);
    for (size_t i = 0; i < job->n_links && status >= 0; i++)
        status = write_link(folder, &job->links[i], err);
    for (size_t i = 0; i < job->n_deletes && status >= 0; i++)
        status = delete_folder(folder, &job->deletes[i], err);
    return status;
}

/* ---- The thread ------------------------------------------------------------------------ */

static void *run(void *ctx)
{
    KilnSaveThread *thread = ctx;

    pthread_mutex_lock(&thread->mutex);
    for (;;) {
        while (!thread->busy && !thread->quits)
            pthread_cond_wait(&thread->changed, &thread->mutex);
        if (!thread->busy)
            break;
        pthread_mutex_unlock(&thread->mutex);
        KilnError err = { 0 };
        kiln_live_page_saving(thread->page, true);
        const KilnStatus status = do_job(thread, &thread->job, &err);
        kiln_live_page_saving(thread->page, false);
        kiln_save_job_release(&thread->job);
        pthread_mutex_lock(&thread->mutex);
        thread->busy = false;
        thread->status = status;
        thread->err = err;
        thread->failed = status < 0;
        pthread_cond_broadcast(&thread->changed);
    }
    pthread_mutex_unlock(&thread->mutex);
    return NULL;
}

/* The thread blocks signals: the training thread handles them. */
static bool start(KilnSaveThread *thread)
{
    sigset_t before;

    if (kiln_signals_block(&before) != 0)
        return false;
    const bool started = pthread_create(&thread->id, NULL, run, thread) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

KilnStatus kiln_save_thread_new(const char *folder, KilnLivePage *page, KilnSaveThread **ret,
                                KilnError *err)
{
    KilnSaveThread *thread = calloc(1, sizeof(*thread));

    if (thread == NULL)
        return kiln_error_nomem(err, sizeof(*thread));
    thread->page = page;
    thread->folder = kiln_strdup(folder);
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_cond_init(&thread->changed, NULL);
    thread->started = thread->folder != NULL && start(thread);
    if (!thread->started) {
        kiln_save_thread_free(thread);
        return kiln_error_set(err, KILN_E_NOMEM,
                              "the thread that writes checkpoints could not be started");
    }
    *ret = thread;
    return KILN_OK;
}

void kiln_save_thread_free(KilnSaveThread *thread)
{
    if (thread == NULL)
        return;
    if (thread->started) {
        pthread_mutex_lock(&thread->mutex);
        thread->quits = true;
        pthread_cond_broadcast(&thread->changed);
        pthread_mutex_unlock(&thread->mutex);
        pthread_join(thread->id, NULL);
    }
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->mutex);
    kiln_snapshot_release(&thread->snapshot);
    free(thread->folder);
    free(thread);
}

KilnStatus kiln_save_thread_wait(KilnSaveThread *thread, KilnError *err)
{
    pthread_mutex_lock(&thread->mutex);
    while (thread->busy)
        pthread_cond_wait(&thread->changed, &thread->mutex);
    const KilnStatus status = thread->status;
    if (status < 0 && err != NULL)
        *err = thread->err;
    thread->status = KILN_OK;
    thread->failed = false;
    pthread_mutex_unlock(&thread->mutex);
    return status;
}

bool kiln_save_thread_failed(const KilnSaveThread *thread)
{
    return thread->failed;
}

KilnSnapshot *kiln_save_thread_snapshot(KilnSaveThread *thread)
{
    return &thread->snapshot;
}

void kiln_save_thread_begin(KilnSaveThread *thread, KilnSaveJob *job)
{
    thread->job = *job;
    *job = (KilnSaveJob) { 0 };
    pthread_mutex_lock(&thread->mutex);
    thread->busy = true;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
}
