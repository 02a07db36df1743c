/* The thread that writes checkpoints while training continues; save_requests.h describes the path
 * of a save. */
#ifndef KILN_TRAIN_CHECKPOINT_SAVE_THREAD_H
#define KILN_TRAIN_CHECKPOINT_SAVE_THREAD_H

#include "train/checkpoint/checkpoint.h"
#include "train/report/live_page.h"

/* What the thread does, in this order; the job owns all of it. */
typedef struct KilnSaveJob {
    char **files; /* flushed to disk if they exist: the journal and the loggers' files */
    size_t n_files, files_capacity;
    KilnCheckpointTarget *targets; /* written from one snapshot */
    size_t n_targets;
    KilnLinkRequest *links;
    size_t n_links;
    KilnDeleteRequest *deletes;
    size_t n_deletes;
} KilnSaveJob;

void kiln_save_job_release(KilnSaveJob *job);

/* Start a thread for a folder of checkpoints. While it writes, `page` (NULL: none) says so. */
KILN_NODISCARD KilnStatus kiln_save_thread_new(const char *folder, KilnLivePage *page,
                                               KilnSaveThread **ret, KilnError *err);
/* Waits for the job that runs. Accepts NULL. */
void kiln_save_thread_free(KilnSaveThread *thread);
/* Wait for the last job and return its status, once. */
KILN_NODISCARD KilnStatus kiln_save_thread_wait(KilnSaveThread *thread, KilnError *err);
/* Whether the last job has failed and kiln_save_thread_wait has not returned its error yet. */
bool kiln_save_thread_failed(const KilnSaveThread *thread);
/* The snapshot that jobs write; fill it between wait and begin. */
KilnSnapshot *kiln_save_thread_snapshot(KilnSaveThread *thread);
/* Start a job, which is consumed. */
void kiln_save_thread_begin(KilnSaveThread *thread, KilnSaveJob *job);

#endif
