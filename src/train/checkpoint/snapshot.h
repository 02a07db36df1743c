/* A checkpoint in memory: everything that a run must not forget, copied, so that it
 * can be written while training goes on. */
#ifndef KILN_TRAIN_CHECKPOINT_SNAPSHOT_H
#define KILN_TRAIN_CHECKPOINT_SNAPSHOT_H

#include <jansson.h>

#include "base/arena.h"
#include "tensor/safetensors.h"
#include "train/checkpoint/component_state.h"
#include "train/trainer.h"

/* A folder that is to be made of it. */
typedef struct KilnSave {
    char *name;
    json_t *saved_by; /* the paths of the callbacks that keep it */
} KilnSave;

/* A zeroed one is ready for use; its memory is kept from one moment to the next. */
typedef struct KilnSnapshot {
    bool weights_only;
    KilnStView *model, *trainer; /* what goes into the two files; data lies in `bytes` */
    size_t n_model, n_trainer;
    size_t n_views;     /* room of both */
    json_t *state;      /* of state.json, but for what depends on the folder */
    const char *config; /* of config.yaml; borrowed from the run */
    KilnArena names;
    KilnStateTensor *tensors; /* set by components */
    size_t n_tensors;
    char *bytes;
    size_t room;
} KilnSnapshot;

/* Copy the run as it is now. `weights_only`: without what resuming needs. KILN_E_NUMERIC when a
 * parameter is not finite: such ones must not replace good ones. */
KILN_NODISCARD KilnStatus kiln_snapshot_take(KilnSnapshot *snapshot, KilnTrainer *trainer,
                                             bool weights_only, KilnError *err);
/* Have the memory that a copy of the run takes, so that there can be one when none is left. */
KILN_NODISCARD KilnStatus kiln_snapshot_reserve(KilnSnapshot *snapshot, KilnTrainer *trainer,
                                                KilnError *err);
/* Accepts a zeroed one. */
void kiln_snapshot_release(KilnSnapshot *snapshot);

/* The run as JSON, owned by the caller; tensors that components set are appended to the
 * snapshot's. NULL when memory is out. (snapshot_state.c) */
json_t *kiln_snapshot_state(KilnSnapshot *snapshot, const KilnTrainer *trainer);

/* A checksum of the options of each metric that training counts, by its name; owned by the
 * caller. */
json_t *kiln_snapshot_metric_options(const KilnTrainer *trainer);
/* A checksum of which samples a set has, as far as names and labels say. */
uint64_t kiln_snapshot_index(const KilnDataset *dataset);

#endif
