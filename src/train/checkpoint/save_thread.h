/* Doing the jobs of saving in the background. */
#ifndef KILN_TRAIN_CHECKPOINT_SAVE_THREAD_H
#define KILN_TRAIN_CHECKPOINT_SAVE_THREAD_H

#include "train/checkpoint/checkpoint.h"
#include "train/report/live_page.h"

/* All of it owned by the job; links and removals in the order in which they are done. */
typedef struct KilnSaveJob {
    KilnSave *saves;
    size_t n_saves;
    KilnLinkRequest *links;
    size_t n_links;
    KilnDeleteRequest *removals;
    size_t n_removals;
    char **files; /* of loggers: on disk before anything else is done; those that are there */
    size_t n_files;
} KilnSaveJob;

/* Frees the parts. */
void kiln_save_job_release(KilnSaveJob *job);

/* A writer for a folder of checkpoints; it tells `page` (NULL: none) when it is at work. */
KILN_NODISCARD KilnStatus kiln_writer_new(const char *folder, KilnLivePage *page,
                                          KilnSaveThread **ret, KilnError *err);
/* Waits for the job. Accepts NULL. */
void kiln_writer_free(KilnSaveThread *writer);
/* Wait for the job that was begun last, and return how it went (once). */
KILN_NODISCARD KilnStatus kiln_writer_wait(KilnSaveThread *writer, KilnError *err);
/* The job that was begun last is over and failed; kiln_writer_wait says how. */
bool kiln_writer_failed(const KilnSaveThread *writer);
/* The snapshot that jobs are about: to be filled between wait and begin. */
KilnSnapshot *kiln_writer_snapshot(KilnSaveThread *writer);
/* Begin a job, which is consumed. */
void kiln_writer_begin(KilnSaveThread *writer, KilnSaveJob *job);

#endif
