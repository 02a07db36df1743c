/* What differs between two checkpoints, for people: `ckpt diff` and `verify-resume`. */
#ifndef KILN_CLI_VERIFY_DIFFERENCES_H
#define KILN_CLI_VERIFY_DIFFERENCES_H

#include "base/text.h"

/* One line for each difference, gathered as text; `left_out` says how many more there were. */
typedef struct KilnDifferences {
    KilnText text;
    size_t count, most; /* found; lines at most */
} KilnDifferences;

/* Compare the checkpoint folders `a` and `b`: which files there are, tensors with the largest
 * difference, keys of the config, what state.json says. KILN_E_IO, KILN_E_FORMAT: a file can't be
 * read. */
KILN_NODISCARD KilnStatus kiln_differences_checkpoints(const char *a, const char *b,
                                                       KilnDifferences *found, KilnError *err);
/* Compare what the loggers wrote in the run folders `a` and `b`: metrics.csv, metrics.jsonl and
 * TensorBoard's events. Times of day and measured values, which are others in each run, don't
 * count. */
KILN_NODISCARD KilnStatus kiln_differences_logs(const char *a, const char *b,
                                                KilnDifferences *found, KilnError *err);
/* Both over the run folders of an undisturbed run and of the same one resumed: all that nothing
 * is measured in. */
KILN_NODISCARD KilnStatus kiln_differences_runs(const char *whole, const char *resumed,
                                                KilnDifferences *found, KilnError *err);
/* A difference, as printf has it. */
void kiln_differences_add(KilnDifferences *found, const char *format, ...) KILN_PRINTF(2, 3);

#endif
