/* What savers ask for while hooks are called, and who keeps which checkpoint. What was
 * asked for at one moment is one job: a snapshot, the folders made of it, then links,
 * then removals. */
#ifndef KILN_TRAIN_CHECKPOINT_SAVE_REQUESTS_H
#define KILN_TRAIN_CHECKPOINT_SAVE_REQUESTS_H

#include "kiln/trainer.h"

enum { KILN_CHECKPOINT_NAME = 256 }; /* room for the name of a checkpoint or link */

typedef struct KilnKeep {
    const KilnInstance *owner;
    char name[KILN_CHECKPOINT_NAME];
} KilnKeep;

typedef struct KilnLinked {
    char link[KILN_CHECKPOINT_NAME], name[KILN_CHECKPOINT_NAME];
} KilnLinked;

typedef struct KilnAsked {
    char name[KILN_CHECKPOINT_NAME];
    bool weights_only;
} KilnAsked;

typedef struct KilnDropped {
    char name[KILN_CHECKPOINT_NAME];
    bool owned; /* an owner let go of it; else a link did */
} KilnDropped;

typedef struct KilnWriter KilnWriter;

typedef struct KilnSaves {
    KilnKeep *keeps;
    size_t n_keeps;
    KilnLinked *links; /* where they point to when all that was asked for is done */
    size_t n_links;
    bool links_read;
    /* Asked for, not begun. */
    KilnAsked *asked;
    size_t n_asked;
    KilnLinked *linked;
    size_t n_linked;
    KilnDropped *dropped;
    size_t n_dropped;
    const KilnInstance **tidied;
    size_t n_tidied;
    void *spare;        /* memory that is given back when none is left */
    KilnWriter *writer; /* NULL until training begins, or something was asked for */
} KilnSaves;

/* The run folder is there: remove halves of checkpoints that a killed run left in it. */
KILN_NODISCARD KilnStatus kiln_saves_open(KilnTrainer *trainer, KilnError *err);
/* Training begins: have a thread and memory for checkpoints, also for one when memory has run
 * out. */
KILN_NODISCARD KilnStatus kiln_saves_reserve(KilnTrainer *trainer, KilnError *err);
/* The run failed, and saves a last time. */
void kiln_saves_use_spare(KilnSaves *saves);
/* `owner` keeps checkpoint `name`; false when memory is out. */
bool kiln_saves_keep(KilnSaves *saves, const KilnInstance *owner, const char *name);
/* Begin what was asked for, when the job before is over; returns that job's error, also when
 * nothing was asked for and it failed meanwhile. */
KILN_NODISCARD KilnStatus kiln_saves_commit(KilnTrainer *trainer, KilnError *err);
/* Wait until all is on disk. */
KILN_NODISCARD KilnStatus kiln_saves_finish(KilnTrainer *trainer, KilnError *err);
/* Waits, too. Accepts a zeroed one. */
void kiln_saves_release(KilnSaves *saves);

#endif
