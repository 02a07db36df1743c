/* Reads a tensor of a file into a run's memory. */
#ifndef KILN_TRAIN_CHECKPOINT_READ_TENSOR_H
#define KILN_TRAIN_CHECKPOINT_READ_TENSOR_H

#include "graph/buffer.h"
#include "tensor/safetensors.h"

/* Reads all elements of an entry as `dtype` into a buffer, as kiln_safetensors_read does. */
KILN_NODISCARD KilnStatus kiln_read_tensor(const KilnSafetensors *file, const KilnStEntry *entry,
                                           KilnDType dtype, KilnLocation to, KilnError *err);

#endif
