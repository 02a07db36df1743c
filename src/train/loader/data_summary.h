/* Summarizes a run's data: samples per split, classes, features, and what the datamodule left
 * out. */
#ifndef KILN_TRAIN_LOADER_DATA_SUMMARY_H
#define KILN_TRAIN_LOADER_DATA_SUMMARY_H

#include <jansson.h>

#include "train/trainer.h"

/* The name of lines that are aligned with blanks: columns of a table. */
#define KILN_DATA_COLUMN_LINE "column"

/* Call `line` for each line of the summary, a short name and a text. Only opened splits count. */
void kiln_data_summary_lines(const KilnTrainer *trainer,
                             void (*line)(void *ctx, const char *name, const char *text),
                             void *ctx);
/* Those lines of it that say what was left out. */
void kiln_data_summary_left_out(const KilnTrainer *trainer,
                                void (*line)(void *ctx, const char *name, const char *text),
                                void *ctx);
/* The summary for summary.json; owned by the caller. NULL when memory runs out. */
json_t *kiln_data_summary_json(const KilnTrainer *trainer);
/* Only warn of what was left out, for commands that print no summary. */
void kiln_data_summary_warn(KilnTrainer *trainer);
/* At the end of such commands: how many samples could not be read, where there were several of a
 * kind. */
void kiln_data_summary_warn_skipped(KilnTrainer *trainer);

#endif
