/* Compares checkpoints and runs, for `kiln ckpt diff` and `kiln verify-resume`. */
#ifndef KILN_CLI_VERIFY_DIFFERENCES_H
#define KILN_CLI_VERIFY_DIFFERENCES_H

#include "base/text.h"

/* The differences between two folders, a line each. Zeroed, with `most` and `sides` set, it is
 * ready; the caller releases it. */
typedef struct KilnDifferences {
    KilnText text;
    size_t count, most;   /* differences found; lines at most */
    const char *sides[2]; /* the folders' names in messages: "first" and "second" */
    KilnArena arena;      /* of paths and keys */
    KilnStatus status;    /* an error ends the comparison */
    KilnError *err;
} KilnDifferences;

/* Compare two folders with all that is in them: tensors with their largest difference, keys of
 * config.yaml and state.json, loggers' files without wall-clock times and measurements, which
 * differ between runs, other files by their bytes, links by their targets. KILN_E_IO,
 * KILN_E_FORMAT: a file cannot be read. */
KILN_NODISCARD KilnStatus kiln_differences_folders(const char *a, const char *b,
                                                   KilnDifferences *found, KilnError *err);
/* Compare what must be the same in two folders of equal runs: checkpoints, TensorBoard's events,
 * and the files beside them, those of callbacks, too; but not what holds times or measurements:
 * summary.json, measured.csv, profile.csv, *.log and *.kiln. Other folders are not compared.
 */
KILN_NODISCARD KilnStatus kiln_differences_runs(const char *a, const char *b,
                                                KilnDifferences *found, KilnError *err);
void kiln_differences_release(KilnDifferences *found);

#endif
