/* The data of a run: its splits, their sets of samples, and the loaders over them. */
#ifndef KILN_TRAIN_LOADER_SPLITS_H
#define KILN_TRAIN_LOADER_SPLITS_H

#include "base/arena.h"
#include "data/left_out.h"
#include "kiln/trainer.h"
#include "train/loader/class_counts.h"
#include "train/loader/input.h"
#include "train/loader/loader.h"
#include "train/metrics/metrics.h"

/* The sets of samples of a split. */
typedef struct KilnSplitSets {
    struct {
        const char *name; /* follows the names of its metrics; "": nothing does */
        KilnDataset dataset;
        KilnTable table;    /* while somebody reads it */
        KilnTable *made;    /* of a datamodule that gives none; owned. NULL: not needed yet */
        KilnLoader *loader; /* NULL: not needed yet */
    } list[KILN_MAX_SETS];
    size_t n;
    bool opened; /* the datamodule has provided the datasets */
} KilnSplitSets;

typedef struct KilnSplits {
    KilnDataSpec spec, train_spec; /* of samples, and as training batches hold them */
    KilnFeature *train_features;   /* of train_spec */
    KilnClassCounts *class_counts; /* owned */
    KilnSplitSets sets[KILN_SPLIT_COUNT];
    int64_t batch_size;
    KilnInput input;      /* the user's file or folder that is predicted; zeroed: none */
    int64_t loaded_epoch; /* the epoch that the sets were loaded for */
    KilnLoading loading;
    bool taken; /* the datamodule came set up, from the process that forked this one */
    bool bottleneck_reported;
    KilnLeftOut skipped; /* samples that could not be read, as of now */
    KilnArena skipped_memory;
} KilnSplits;

/* Ask the datamodule for its data, and how it is loaded. */
KILN_NODISCARD KilnStatus kiln_splits_set_up(KilnTrainer *trainer, const KilnDataSpec *remembered,
                                             KilnError *err);
/* Before an epoch, or where a run resumes within one: have the datamodule reload its data unless
 * it is loaded for that epoch. Frees all loaders when it reloads. */
KILN_NODISCARD KilnStatus kiln_splits_reload(KilnTrainer *trainer, KilnError *err);
void kiln_splits_release(KilnTrainer *trainer);
/* Make sure that the datasets of a split are open. */
KILN_NODISCARD KilnStatus kiln_trainer_open_split(KilnTrainer *trainer, KilnSplit split,
                                                  KilnError *err);
/* The loader of a set, created on first use; NULL when the set is empty or limited to nothing.
 * Its split is open. */
KILN_NODISCARD KilnStatus kiln_trainer_loader(KilnTrainer *trainer, KilnSplit split, size_t set,
                                              KilnLoader **ret, KilnError *err);
/* The spec that the loader of a set is created from. */
KilnLoaderSpec kiln_trainer_loader_spec(KilnTrainer *trainer, KilnSplit split, size_t set);
/* A batch without data, as large as the first of that set. */
KilnBatch kiln_trainer_shape_batch(const KilnTrainer *trainer, KilnSplit split, size_t set);
/* Batches of a set, with its limit; and of all sets of a split. */
int64_t kiln_trainer_set_batches(const KilnTrainer *trainer, KilnSplit split, size_t set);
int64_t kiln_trainer_split_batches(const KilnTrainer *trainer, KilnSplit split);
/* Samples of the batches of a set. */
int64_t kiln_trainer_set_samples(const KilnTrainer *trainer, KilnSplit split, size_t set);
/* Samples to train on. */
int64_t kiln_trainer_train_samples(const KilnTrainer *trainer);
/* The split that a phase reads; not for training. */
KilnSplit kiln_trainer_eval_split(const KilnTrainer *trainer, KilnPhase phase);
/* The samples that the current phase reads. */
const KilnDataset *kiln_trainer_dataset(const KilnTrainer *trainer);
/* Refuse a limit of batches that does not fit a set. */
KILN_NODISCARD KilnStatus kiln_trainer_check_limit(const KilnTrainer *trainer, KilnSplit split,
                                                   size_t set, KilnError *err);

#endif
