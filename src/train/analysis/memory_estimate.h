/* The memory estimate: what a run will need, computed from shapes before memory is allocated. */
#ifndef KILN_TRAIN_ANALYSIS_MEMORY_ESTIMATE_H
#define KILN_TRAIN_ANALYSIS_MEMORY_ESTIMATE_H

#include "base/system/machine.h"
#include "graph/graph.h"
#include "kiln/trainer.h"

/* In bytes. */
typedef struct KilnMemoryEstimate {
    int64_t activations; /* the block in which steps run */
    int64_t constants;   /* what each of evaluation's plans computes from weights and keeps */
    int64_t converted;   /* weights in other layouts, which these plans share */
    int64_t parameters, gradients;
    int64_t buffers;    /* running statistics and counters */
    int64_t optimizer;  /* state of all optimizers */
    int64_t average;    /* averaged weights (EMA, SWA) */
    int64_t callbacks;  /* other memory of callbacks */
    int64_t metrics;    /* sample rows that metrics keep for an epoch */
    int64_t computing;  /* the most that a metric needs to compute its value */
    int64_t batches;    /* of the loaders */
    int64_t order;      /* of an epoch's samples */
    int64_t reading;    /* temporary memory of loader threads */
    int64_t growth;     /* of the program itself: code that is used later */
    int64_t program;    /* what the process holds at the time of the estimate: code, data sets */
    int64_t checkpoint; /* size on disk */
    int64_t snapshot;   /* of a checkpoint in memory */
    double flops, flops_backward; /* of a training step; the second for the gradients */
    KilnMemory memory;            /* of the machine */
    bool memory_known;
} KilnMemoryEstimate;

/* What is still to be allocated; and that with the program. */
int64_t kiln_memory_estimate_needed(const KilnMemoryEstimate *memory);
int64_t kiln_memory_estimate_peak(const KilnMemoryEstimate *memory);

/* Add the plan of a step. */
void kiln_memory_estimate_add_plan(KilnMemoryEstimate *memory, const KilnPlan *plan);
/* Add the memory of metrics over an epoch of `samples`, by the recorded step. */
void kiln_memory_estimate_add_metrics(KilnMemoryEstimate *memory, const KilnStep *step,
                                      int64_t samples);
/* Fill in the rest of trainer->memory from what components declare. */
void kiln_memory_estimate_complete(KilnTrainer *trainer);
/* KILN_E_NOMEM when the parameters, or everything, do not fit; before memory is allocated. */
KILN_NODISCARD KilnStatus kiln_trainer_check_parameters(const KilnTrainer *trainer, KilnError *err);
KILN_NODISCARD KilnStatus kiln_trainer_check_memory(const KilnTrainer *trainer, KilnError *err);

#endif
