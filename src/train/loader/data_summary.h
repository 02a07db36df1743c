/* What the data of a run is: the samples of its splits, the classes, what a sample is, and what
 * the datamodule left out. The same for every datamodule. */
#ifndef KILN_TRAIN_LOADER_DATA_SUMMARY_H
#define KILN_TRAIN_LOADER_DATA_SUMMARY_H

#include <jansson.h>

#include "train/trainer.h"

/* Its lines, each a short name and a text. Splits that were not opened are not in them. */
void kiln_data_summary_lines(const KilnTrainer *trainer,
                             void (*line)(void *ctx, const char *name, const char *text),
                             void *ctx);
/* For summary.json; owned by the caller. NULL when memory is out. */
json_t *kiln_data_summary_json(const KilnTrainer *trainer);
/* Warn of what was left out alone, for commands without a first screen. */
void kiln_data_summary_warn(KilnTrainer *trainer);

#endif
