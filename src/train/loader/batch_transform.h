/* Applies batch transforms (mixup, cutmix) to training batches. */
#ifndef KILN_TRAIN_LOADER_BATCH_TRANSFORM_H
#define KILN_TRAIN_LOADER_BATCH_TRANSFORM_H

#include "train/loader/batch_fill.h"

/* Apply all transforms to a filled slot, in order, after the classes in slot->labels have become
 * soft labels. */
KILN_NODISCARD KilnStatus kiln_batch_slot_transform(KilnBatchSlot *slot,
                                                    const KilnBatchSource *source, int64_t epoch,
                                                    KilnError *err);

#endif
