/* What batches of training hold, and the transforms that are applied to them. */
#ifndef KILN_TRAIN_LOADER_BATCH_TRANSFORM_H
#define KILN_TRAIN_LOADER_BATCH_TRANSFORM_H

#include "train/loader/batch_fill.h"

/* Change a filled slot by all transforms, in order; the classes in slot->labels become soft
 * labels before. */
KILN_NODISCARD KilnStatus kiln_slot_transform(KilnSlot *slot, const KilnFilling *filling,
                                              int64_t epoch, KilnError *err);

#endif
