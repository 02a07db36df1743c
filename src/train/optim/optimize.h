/* One optimizer step: clipping and update, recorded after the gradients. */
#ifndef KILN_TRAIN_OPTIM_OPTIMIZE_H
#define KILN_TRAIN_OPTIM_OPTIMIZE_H

#include "kiln/trainer.h"

/* How gradients are limited; limit 0: not at all. */
typedef struct KilnClipping {
    double limit;
    bool by_norm;
} KilnClipping;

/* Record clipping of at->gradients, and the update by optimizer at->optimizer. */
void kiln_optimize_record(KilnTrainer *trainer, const KilnRecording *at, KilnClipping clipping);

#endif
