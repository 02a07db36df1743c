/* Writing tensors to files that PyTorch, NumPy and others read. */
#ifndef KILN_KILN_FILES_SAFETENSORS_H
#define KILN_KILN_FILES_SAFETENSORS_H

#include "kiln/tensor.h"

/* A tensor to write; all pointers borrowed for the call. */
typedef struct KilnStView {
    const char *name;
    KilnDType dtype;
    KilnShape shape;
    const void *data; /* plain order */
} KilnStView;

/* A text of `__metadata__`. */
typedef struct KilnStText {
    const char *key, *value;
} KilnStText;

/* Write a new file `path` and sync it to disk. Data lies by size of element, largest
 * first, and within that in the order given, so that every tensor is aligned
 * as readers expect; the same input gives the same bytes. {"format": "pt"}
 * always stands in the metadata. On failure the file is removed. */
KILN_API KILN_NODISCARD KilnStatus kiln_safetensors_write(const char *path,
                                                          const KilnStView *tensors, size_t n,
                                                          const KilnStText *metadata,
                                                          size_t n_metadata, KilnError *err);

#endif
