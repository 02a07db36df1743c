/* What a run will need, known from shapes alone before anything is computed. */
#ifndef KILN_TRAIN_ANALYSIS_MEMORY_ESTIMATE_H
#define KILN_TRAIN_ANALYSIS_MEMORY_ESTIMATE_H

#include "base/system/machine.h"
#include "graph/graph.h"
#include "kiln/trainer.h"

/* Memory in bytes. */
typedef struct KilnMemoryEstimate {
    int64_t activations; /* the graph's block: what steps keep while they run */
    int64_t parameters, gradients;
    int64_t buffers;    /* running statistics and such */
    int64_t optimizer;  /* its state */
    int64_t average;    /* of the weights, where a callback keeps one */
    int64_t callbacks;  /* what else they hold */
    int64_t metrics;    /* rows of an epoch that they keep */
    int64_t computing;  /* with these rows, at the most */
    int64_t batches;    /* of the loaders, */
    int64_t order;      /* and the numbers of an epoch's samples in their order */
    int64_t reading;    /* what their threads hold while they read samples */
    int64_t growth;     /* of the program itself: code that was not used yet */
    int64_t program;    /* what the process held when the forecast was made: code, data sets */
    int64_t checkpoint; /* on disk */
    int64_t snapshot;   /* the copy of it that is written while training goes on */
    double flops, flops_backward; /* of a training step; the second is for the gradients */
    KilnMemory memory;            /* what there is */
    bool memory_known;
} KilnMemoryEstimate;

/* What is still to be allocated, and that with the program. */
int64_t kiln_memory_estimate_needed(const KilnMemoryEstimate *memory);
int64_t kiln_memory_estimate_peak(const KilnMemoryEstimate *memory);

/* Add the plan of a step. */
void kiln_memory_estimate_add_plan(KilnMemoryEstimate *memory, const KilnPlan *plan);
/* Add what metrics hold of an epoch of so many samples, by the step that was recorded. */
void kiln_memory_estimate_add_metrics(KilnMemoryEstimate *memory, const KilnStep *step,
                                      int64_t samples);
/* Fill in the rest of trainer->memory, from what is declared. */
void kiln_memory_estimate_complete(KilnTrainer *trainer);
/* Refuse, before memory is allocated, what does not fit. */
KILN_NODISCARD KilnStatus kiln_trainer_check_parameters(const KilnTrainer *trainer, KilnError *err);
KILN_NODISCARD KilnStatus kiln_trainer_check_memory(const KilnTrainer *trainer, KilnError *err);

#endif
