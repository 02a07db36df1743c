/* Builds a trainer from its config, and releases it. */
#ifndef KILN_TRAIN_ASSEMBLE_H
#define KILN_TRAIN_ASSEMBLE_H

#include "kiln/embed/run.h"
#include "kiln/trainer.h"

/* Build every part for `stage` and record its steps for their shapes, so that whatever does not
 * fit is found before anything is written. `remembered` as in KilnDataContext; without it,
 * prediction uses trainer->split, as evaluation does. With trainer->no_callbacks the config's
 * callbacks are not built; trainer->fitted is as in KilnDataContext; trainer->threads, when it is
 * not 0, is the number of threads where the config leaves it open. Every other field of the trainer
 * is set here. */
KILN_NODISCARD KilnStatus kiln_trainer_assemble(KilnTrainer *trainer, KilnConfig *config,
                                                const KilnRunEnv *env, KilnStage stage,
                                                const KilnDataSpec *remembered, KilnError *err);
/* The first half: everything on shapes alone, with a memory estimate when it is for fitting. */
KILN_NODISCARD KilnStatus kiln_trainer_dry_build(KilnTrainer *trainer, KilnConfig *config,
                                                 const KilnRunEnv *env, KilnStage stage,
                                                 const KilnDataSpec *remembered, KilnError *err);
/* The second half: allocate the memory that training needs, if it fits, and initialize it. */
KILN_NODISCARD KilnStatus kiln_trainer_allocate(KilnTrainer *trainer, KilnError *err);
/* Another graph for steps of this trainer, with a backend of its own, so that it can run at the
 * same time as others; both are owned by the caller. And a step to record in it. */
KILN_NODISCARD KilnStatus kiln_trainer_new_graph(const KilnTrainer *trainer,
                                                 KilnBackend **ret_backend, KilnGraph **ret_graph,
                                                 KilnError *err);
void kiln_trainer_set_up_step(const KilnTrainer *trainer, KilnGraph *graph, KilnStep *ret);
/* Accepts a zeroed trainer. */
void kiln_trainer_release(KilnTrainer *trainer);

#endif
