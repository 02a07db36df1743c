/* A snapshot: a copy of the run's state in memory, so that it can be written while training
 * continues. */
#ifndef KILN_TRAIN_CHECKPOINT_SNAPSHOT_H
#define KILN_TRAIN_CHECKPOINT_SNAPSHOT_H

#include <jansson.h>

#include "base/arena.h"
#include "tensor/safetensors.h"
#include "train/checkpoint/component_state.h"
#include "train/trainer.h"

/* A checkpoint folder to write from a snapshot. */
typedef struct KilnCheckpointTarget {
    char *name;
    json_t *saved_by; /* its owners' config paths */
} KilnCheckpointTarget;

/* A zeroed one is ready for use; its memory is reused by the next snapshot. */
typedef struct KilnSnapshot {
    bool weights_only;
    bool in_place;               /* tensors that the host can read are not copied */
    KilnStView *model, *trainer; /* tensors of the two files; one allocation, data in `bytes` */
    size_t n_model, n_trainer;
    KilnLocation *from;           /* where to copy the tensors from, beginning with the model's */
    size_t views_capacity;        /* of both together */
    json_t *state;                /* state.json without what depends on the folder */
    const char *config;           /* config.yaml; borrowed from the run */
    const KilnAdapters *adapters; /* likewise; NULL: none */
    KilnArena names;
    KilnStateTensor *tensors; /* set by components */
    size_t n_tensors, tensors_capacity;
    char *bytes;
    size_t bytes_capacity;
} KilnSnapshot;

/* Copy the run as it is now. `weights_only`: without what only resuming needs. `in_place`: refer to
 * tensors in the run's memory instead, which must not change until the snapshot is written.
 * KILN_E_NUMERIC when a parameter is not finite, so that it does not replace a good checkpoint. */
KILN_NODISCARD KilnStatus kiln_snapshot_take(KilnSnapshot *snapshot, KilnTrainer *trainer,
                                             bool weights_only, bool in_place, KilnError *err);
/* Allocate the memory of a snapshot now, so that one can be taken when memory has run out. */
KILN_NODISCARD KilnStatus kiln_snapshot_reserve(KilnSnapshot *snapshot, KilnTrainer *trainer,
                                                KilnError *err);
/* Accepts a zeroed one. */
void kiln_snapshot_release(KilnSnapshot *snapshot);

/* ---- snapshot_state.c ---------------------------------------------------------------- */

/* The run's state as JSON, owned by the caller; tensors that components set are appended to the
 * snapshot's. NULL when memory runs out. */
json_t *kiln_snapshot_state(KilnSnapshot *snapshot, const KilnTrainer *trainer);
/* Checksums of the options of training metrics, by metric name; owned by the caller. */
json_t *kiln_snapshot_metric_options(const KilnTrainer *trainer);
/* A checksum of the number, names and labels of a set's samples. */
uint64_t kiln_snapshot_index(const KilnDataset *dataset);

#endif
