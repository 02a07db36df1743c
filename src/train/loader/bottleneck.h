/* Reports data loading: advice when it is the bottleneck, and the datamodule's own messages. */
#ifndef KILN_TRAIN_LOADER_BOTTLENECK_H
#define KILN_TRAIN_LOADER_BOTTLENECK_H

#include "train/trainer.h"

/* Measured over an epoch. */
typedef struct KilnLoadingRate {
    KilnLoaderTimes times;
    double seconds; /* of the whole epoch's training batches */
    int workers, processors;
} KilnLoadingRate;

/* Write advice to `ret` if training waits for data; false when it does not or the epoch was too
 * short. `cache`: the datamodule's option `cache` would help. */
bool kiln_loading_advice(const KilnLoadingRate *rate, bool cache, char *ret, size_t room);
/* After the training batches of an epoch, which took `seconds`. */
void kiln_loading_report(KilnTrainer *trainer, KilnLoader *loader, double seconds);

#endif
