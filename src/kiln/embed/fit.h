/* A fit that the program drives batch by batch: kiln_run_fit with a loop of one's own. */
#ifndef KILN_KILN_EMBED_FIT_H
#define KILN_KILN_EMBED_FIT_H

#include "kiln/embed/run.h"

typedef struct KilnFit KilnFit;

/* Begin a fit of a checked config: build everything, make the run folder, do the sanity check. The
 * config, and what `env` points to, must outlive the fit. Errors are those of kiln_run_fit; after
 * one there is no fit to close. *ret is owned by the caller (kiln_fit_close). */
KILN_API KILN_NODISCARD KilnStatus kiln_fit_open(KilnConfig *config, const KilnRunEnv *env,
                                                 KilnFit **ret, KilnError *err);
/* Train the next batch with its hooks, and do what is due after it: validation, logging, saving,
 * the end of the epoch. Steps to the end leave the bytes of kiln_run_fit. *ret_more: batches are
 * left; after the last one a step does nothing. A step that fails ends the run as kiln_run_fit
 * would, and further steps return its error again. A run's calls may come from several threads, one
 * at a time. */
KILN_API KILN_NODISCARD KilnStatus kiln_fit_step(KilnFit *fit, bool *ret_more, KilnError *err);
/* The trainer, to read metrics and to change learning rates, stop, log and save between two steps;
 * borrowed until the fit is closed. A requested checkpoint is taken with those of the next step, or
 * at the end. */
KILN_API KilnTrainer *kiln_fit_trainer(KilnFit *fit);
/* End the run and free the fit. After the last batch it saves, and tests as the config says; before
 * that it stops as an interrupted run does: with a checkpoint from which the run can be resumed.
 * Returns the error of a step that failed. Accepts NULL. */
KILN_API KILN_NODISCARD KilnStatus kiln_fit_close(KilnFit *fit, KilnRunResult *ret, KilnError *err);

#endif
