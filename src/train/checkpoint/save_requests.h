/* Checkpoint requests: what callbacks ask to save, link and delete, and who owns which checkpoint.
 *
 * The path of a save:
 * 1. A callback's hook calls kiln_trainer_save (the request, save_requests.c). It fails at once for
 *    a bad name or a run without a folder.
 * 2. After the hook of all callbacks, loop/hooks.c calls kiln_save_requests_commit. Requests for a
 *    checkpoint that nobody owns and no link points to are dropped. The rest become one job.
 * 3. The loggers are flushed and the run is copied to memory (snapshot.c); training waits for this
 *    and for an earlier job that is still being written. A parameter that is not finite fails the
 *    run here. Then on_save_checkpoint hooks write their own files.
 * 4. The save thread (save_thread.c) does the job while training continues: it flushes the loggers'
 *    files, writes each folder as checkpoints/.saving (write_checkpoint.c), publishes it by rename,
 *    then updates links, then deletes folders.
 * 5. An error of the save thread is returned by the next commit, or by kiln_save_requests_finish at
 *    the end of the run, and fails the run.
 *
 * SIGUSR1 also requests a save: kiln_trainer_poll_save (loop/signals.c) makes it between batches,
 * defers it while trainer->save_signal.deferred is set (batch norm statistics are being
 * recomputed), and reports a failure as a warning. loop/failure.c saves a failed run unless its
 * parameters are invalid. With trainer.enable_checkpointing=false nothing is saved. Of several
 * ranks, rank 0 saves; the requests of the others are ignored. */
#ifndef KILN_TRAIN_CHECKPOINT_SAVE_REQUESTS_H
#define KILN_TRAIN_CHECKPOINT_SAVE_REQUESTS_H

#include "kiln/trainer.h"
#include "train/loop/position.h"

enum { KILN_CHECKPOINT_NAME = 256 }; /* bytes for the name of a checkpoint or link */

typedef struct KilnOwnedCheckpoint {
    const KilnInstance *owner;
    char name[KILN_CHECKPOINT_NAME];
} KilnOwnedCheckpoint;

typedef struct KilnLinkRequest {
    char link[KILN_CHECKPOINT_NAME], name[KILN_CHECKPOINT_NAME];
} KilnLinkRequest;

typedef struct KilnSaveRequest {
    char name[KILN_CHECKPOINT_NAME];
    bool weights_only;
} KilnSaveRequest;

typedef struct KilnDeleteRequest {
    char name[KILN_CHECKPOINT_NAME];
    bool owned; /* released by an owner; else a link to it moved */
} KilnDeleteRequest;

/* The newest checkpoint that this run saved. */
typedef struct KilnNewestCheckpoint {
    KilnPosition position;
    char name[KILN_CHECKPOINT_NAME]; /* "": none yet */
    bool weights_only;
} KilnNewestCheckpoint;

typedef struct KilnSaveThread KilnSaveThread;

typedef struct KilnSaveRequests {
    KilnOwnedCheckpoint *owned;
    size_t n_owned, owned_capacity;
    KilnLinkRequest *links; /* all links, as they are after the pending requests */
    size_t n_links, links_capacity;
    bool links_read;
    /* Pending: requested since the last commit. */
    KilnSaveRequest *to_save;
    size_t n_to_save, to_save_capacity;
    KilnLinkRequest *to_link;
    size_t n_to_link, to_link_capacity;
    KilnDeleteRequest *to_delete;
    size_t n_to_delete, to_delete_capacity;
    const KilnInstance **to_prune; /* owners that requested a prune */
    size_t n_to_prune, to_prune_capacity;
    void *reserve;          /* emergency memory, freed for the last save of a failed run */
    KilnSaveThread *thread; /* NULL until training begins or the first request is committed */
} KilnSaveRequests;

/* Remove unfinished checkpoints that a killed run left in the run folder, which must exist. */
KILN_NODISCARD KilnStatus kiln_save_requests_open(KilnTrainer *trainer, KilnError *err);
/* Before training: start the save thread and reserve memory for a checkpoint, so that a run that
 * runs out of memory can still save. */
KILN_NODISCARD KilnStatus kiln_save_requests_reserve(KilnTrainer *trainer, KilnError *err);
/* Free the emergency memory, for the last save of a failed run. */
void kiln_save_requests_use_reserve(KilnSaveRequests *requests);
/* Make `owner` (NULL: nobody) an owner of checkpoint `name`; false when memory runs out. */
bool kiln_save_requests_own(KilnSaveRequests *requests, const KilnInstance *owner,
                            const char *name);
/* Wait for the previous job and start the pending requests as the next. Returns the previous job's
 * error, also when nothing is pending and that job has failed. */
KILN_NODISCARD KilnStatus kiln_save_requests_commit(KilnTrainer *trainer, KilnError *err);
/* Commit and wait until everything is on disk. */
KILN_NODISCARD KilnStatus kiln_save_requests_finish(KilnTrainer *trainer, KilnError *err);
/* Waits for the job that runs. Accepts a zeroed one. */
void kiln_save_requests_release(KilnSaveRequests *requests);

#endif
