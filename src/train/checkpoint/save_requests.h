/* What savers ask for while hooks are called, and who keeps which checkpoint. What was
 * asked for at one moment is one job: a snapshot, the folders made of it, then links,
 * then removals. */
#ifndef KILN_TRAIN_CHECKPOINT_SAVE_REQUESTS_H
#define KILN_TRAIN_CHECKPOINT_SAVE_REQUESTS_H

#include "kiln/trainer.h"
#include "train/loop/position.h"

enum { KILN_CHECKPOINT_NAME = 256 }; /* room for the name of a checkpoint or link */

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
    bool owned; /* an owner let go of it; else a link did */
} KilnDeleteRequest;

/* The newest checkpoint that this run saved. */
typedef struct KilnNewestCheckpoint {
    KilnPosition position;
    char name[KILN_CHECKPOINT_NAME]; /* "": none yet */
} KilnNewestCheckpoint;

typedef struct KilnSaveThread KilnSaveThread;

typedef struct KilnSaveRequests {
    KilnOwnedCheckpoint *owned;
    size_t n_owned;
    KilnLinkRequest *links; /* where they point to when all that was asked for is done */
    size_t n_links;
    bool links_read;
    /* Asked for, not begun. */
    KilnSaveRequest *to_save;
    size_t n_to_save;
    KilnLinkRequest *to_link;
    size_t n_to_link;
    KilnDeleteRequest *to_delete;
    size_t n_to_delete;
    const KilnInstance **to_prune;
    size_t n_to_prune;
    void *reserve;          /* memory that is given back when none is left */
    KilnSaveThread *writer; /* NULL until training begins, or something was asked for */
} KilnSaveRequests;

/* The run folder is there: remove halves of checkpoints that a killed run left in it. */
KILN_NODISCARD KilnStatus kiln_save_requests_open(KilnTrainer *trainer, KilnError *err);
/* Training begins: have a thread and memory for checkpoints, also for one when memory has run
 * out. */
KILN_NODISCARD KilnStatus kiln_save_requests_reserve(KilnTrainer *trainer, KilnError *err);
/* The run failed, and saves a last time. */
void kiln_save_requests_use_reserve(KilnSaveRequests *saves);
/* `owner` keeps checkpoint `name`; false when memory is out. */
bool kiln_save_requests_own(KilnSaveRequests *saves, const KilnInstance *owner, const char *name);
/* Begin what was asked for, when the job before is over; returns that job's error, also when
 * nothing was asked for and it failed meanwhile. */
KILN_NODISCARD KilnStatus kiln_save_requests_commit(KilnTrainer *trainer, KilnError *err);
/* Wait until all is on disk. */
KILN_NODISCARD KilnStatus kiln_save_requests_finish(KilnTrainer *trainer, KilnError *err);
/* Waits, too. Accepts a zeroed one. */
void kiln_save_requests_release(KilnSaveRequests *saves);

#endif
