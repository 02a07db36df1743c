/* Doing the job of a save. */
#ifndef KILN_TRAIN_WRITER_H
#define KILN_TRAIN_WRITER_H

#include "train/checkpoint.h"

/* All of it owned by the job; links and removals in the order in which they are done. */
typedef struct KilnSaveJob {
    KilnSave *saves;
    size_t n_saves;
    KilnLinked *links;
    size_t n_links;
    KilnDropped *removals;
    size_t n_removals;
} KilnSaveJob;

/* Frees the parts. */
void kiln_save_job_release(KilnSaveJob *job);

/* A writer for a folder of checkpoints. */
KILN_NODISCARD KilnStatus kiln_writer_new(const char *folder, KilnWriter **ret, KilnError *err);
/* Waits. Accepts NULL. */
void kiln_writer_free(KilnWriter *writer);
/* Wait for the job that was begun last, and return how it went (once). */
KILN_NODISCARD KilnStatus kiln_writer_wait(KilnWriter *writer, KilnError *err);
/* The snapshot that jobs are about: to be filled between wait and begin. */
KilnSnapshot *kiln_writer_snapshot(KilnWriter *writer);
/* Begin a job, which is consumed. */
void kiln_writer_begin(KilnWriter *writer, KilnSaveJob *job);

#endif
