/* Compares checkpoints and runs, for `kiln ckpt diff` and `kiln verify-resume`. */
#ifndef KILN_CLI_VERIFY_DIFFERENCES_H
#define KILN_CLI_VERIFY_DIFFERENCES_H

#include "base/text.h"

/* The differences between two folders, a line each. */
typedef struct KilnDifferences {
    KilnText text;
    size_t count, most;   /* differences found; lines at most */
    const char *sides[2]; /* the folders' names in messages: "first" and "second" */
} KilnDifferences;

/* Compare two folders with all that is in them: tensors with their largest difference, keys of the
 * config and of state.json, other files by their bytes, links by their targets. `where` is the text
 * before each line: "" or "checkpoints/". KILN_E_IO, KILN_E_FORMAT: a file cannot be read. */
KILN_NODISCARD KilnStatus kiln_differences_folders(const char *where, const char *a, const char *b,
                                                   KilnDifferences *found, KilnError *err);
/* Compare the loggers' files in two run folders: metrics.csv, metrics.jsonl and TensorBoard's
 * events, without wall-clock times and measurements, which differ between runs. */
KILN_NODISCARD KilnStatus kiln_differences_logs(const char *a, const char *b,
                                                KilnDifferences *found, KilnError *err);
/* Add a difference. */
void kiln_differences_add(KilnDifferences *found, const char *format, ...) KILN_PRINTF(2, 3);

#endif
