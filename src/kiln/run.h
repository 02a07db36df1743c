/* Entry points for programs that embed kiln: what the commands of the command
 * line do, as functions. */
#ifndef KILN_RUN_H
#define KILN_RUN_H

#include "kiln/config.h"
#include "kiln/trainer.h"

/* The options that a run has besides its components: the root's (task,
 * datamodule, callbacks, logger, seed, ckpt_path, test), `trainer`'s and
 * `kiln.run`'s. For KilnComposeRequest. */
KILN_API const KilnSection *kiln_run_sections(void);

/* How far a run is, told after each epoch. */
typedef struct KilnRunProgress {
    int64_t epoch, max_epochs; /* epochs done, and when training ends; -1: no limit */
    int64_t step, max_steps;   /* likewise */
    const KilnMetric *metrics; /* as they are now */
    size_t n_metrics;
} KilnRunProgress;

/* What a run needs besides its config. */
typedef struct KilnRunEnv {
    const KilnRegistry *registry;
    const KilnConsole *console;   /* NULL: silent */
    const char *const *overrides; /* as given, for the run folder; NULL-terminated or NULL */
    /* Set to non-zero (by a signal handler: to the signal's number) to stop cleanly with a
     * checkpoint after the current batch. A thread of the run watches it and reports the request on
     * the console and in train.log meanwhile. May be NULL. */
    const volatile int *stop;
    /* Set to non-zero to have a checkpoint saved after the current batch, and training go on; the
     * run sets it back. May be NULL. */
    volatile int *save;
    /* Called after each epoch. May be NULL. */
    void (*progress)(void *ctx, const KilnRunProgress *progress);
    /* Called in front of each training batch: false ends the run there, as an interrupt does.
     * May be NULL. */
    bool (*may_continue)(void *ctx, KilnTrainer *trainer);
    /* Takes what the run has for other programs (kiln_trainer_output): predictions. May be
     * NULL. */
    KilnStatus (*output)(void *ctx, const char *text, KilnError *err);
    void *ctx; /* of these three */
    /* What the sweep that this run is a job of ranks its jobs by, and its KilnMode: a mode that
     * contradicts what the metric declares is refused. NULL: none. */
    const char *ranked_by;
    int64_t ranked_mode;
    /* The folder that kiln.run.dir names is there, with the config in its .kiln: it is
     * used as it is (a job of a sweep). */
    bool prepared;
    /* Go on in this run folder, absolute, whose config `config` is, with `overrides` on top: from
     * its last checkpoint, or from the beginning when it has none. ckpt_path says another
     * checkpoint. NULL: another run. */
    const char *resume;
} KilnRunEnv;

/* How a run ended; also one that failed. */
typedef struct KilnRunResult {
    char run_dir[4096]; /* "": it failed before there was a run folder */
    char status[16];    /* "finished", "stopped" (by a callback), "interrupted", "failed" */
} KilnRunResult;

/* Train, validate and test what a checked config says; writes the run folder. */
KILN_API KILN_NODISCARD KilnStatus kiln_run_fit(KilnConfig *config, const KilnRunEnv *env,
                                                KilnRunResult *ret, KilnError *err);
/* Test the checkpoint that config's ckpt_path names, or validate it: KILN_TEST or KILN_VAL, with
 * that split's hooks and names of metrics. KILN_TRAIN: validate it on all training samples, in
 * order and not augmented, as a set called "train" ("val/loss/train"). Metrics go, as JSON text,
 * to `ret_json` (owned by the caller, may be NULL). */
KILN_API KILN_NODISCARD KilnStatus kiln_run_eval(KilnConfig *config, const KilnRunEnv *env,
                                                 KilnSplit split, char **ret_json, KilnError *err);
/* Run the network on `input` (a file or folder), or, when that is NULL, on all sets of `split`, as
 * evaluation reads them, one behind the other. What it predicts is for the config's callbacks:
 * prediction_writer, or one of the program's own. What of an input can't be read is left out, and
 * the error at the end. */
KILN_API KILN_NODISCARD KilnStatus kiln_run_predict(KilnConfig *config, const KilnRunEnv *env,
                                                    KilnSplit split, const char *input,
                                                    KilnError *err);
/* Absolute path of the checkpoint folder that `ckpt_path` means: a checkpoint
 * folder, a run folder (its last), "last" or "best" (of the newest run below
 * `runs`). Owned by the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_checkpoint_resolve(const char *ckpt_path, const char *runs,
                                                           char **ret, KilnError *err);

#endif
