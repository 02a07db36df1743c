/* Generating with the weights of a trainer, for predictors and for callbacks. */
#ifndef KILN_TRAIN_GENERATE_GENERATE_H
#define KILN_TRAIN_GENERATE_GENERATE_H

#include <pthread.h>

#include "kiln/tools/generate.h"
#include "train/trainer.h"

/* What runs the steps. */
typedef struct KilnGenerator {
    const KilnTrainer *trainer;
    KilnStep *step;             /* to record in; of the trainer's, or of its own graph */
    KilnBackend *backend;       /* of the step's graph */
    pthread_mutex_t *recording; /* held while a step is recorded; NULL: nobody else records */
} KilnGenerator;

/* As kiln_generate. Leaves the step as it was but for its recording. */
KILN_NODISCARD KilnStatus kiln_generator_run(const KilnGenerator *generator,
                                             const char *const *prompts, size_t n,
                                             const KilnGenerateOptions *options,
                                             KilnGenerated **ret, KilnError *err);

#endif
