/* What a run says of its data loading: when it is what the steps wait for, and what the
 * datamodule has to report. */
#ifndef KILN_TRAIN_LOADER_BOTTLENECK_H
#define KILN_TRAIN_LOADER_BOTTLENECK_H

#include "train/trainer.h"

/* Measured over an epoch. */
typedef struct KilnLoadingRate {
    KilnLoaderTimes times;
    double seconds; /* of the whole epoch's training batches */
    int workers, processors;
} KilnLoadingRate;

/* What the steps wait for, as a line; false: not for data, or too short to tell. `cache`: the
 * datamodule has an option of that name. */
bool kiln_loading_advice(const KilnLoadingRate *schedule, bool cache, char *ret, size_t room);
/* After the training batches of an epoch, which took `seconds`. */
void kiln_loading_report(KilnTrainer *trainer, KilnLoader *loader, double seconds);

#endif
