/* A user's file or folder as a dataset: its raw samples, preprocessed when they are read. */
#ifndef KILN_TRAIN_LOADER_INPUT_H
#define KILN_TRAIN_LOADER_INPUT_H

#include "data/raw/raw_input.h"
#include "train/loader/preprocessor.h"

/* A zeroed one is closed. */
typedef struct KilnInput {
    KilnPreprocessor preprocessor;
    KilnRawInput raw;
} KilnInput;

/* Open `path` as the datamodule's open_input does, or else by its raw_fields. *ret has the samples,
 * valid until the input is closed or moves; `spec` is borrowed as long. Close it also after a
 * failure. */
KILN_NODISCARD KilnStatus kiln_input_open(KilnInput *input, KilnInstance *datamodule,
                                          const KilnDataSpec *spec, const char *path,
                                          const KilnPoll *poll, KilnDataset *ret, KilnError *err);
void kiln_input_close(KilnInput *input);

#endif
