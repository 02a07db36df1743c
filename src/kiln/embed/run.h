/* Entry points for programs that embed kiln: fit, evaluate and predict, as the commands do. */
#ifndef KILN_KILN_EMBED_RUN_H
#define KILN_KILN_EMBED_RUN_H

#include "kiln/embed/config.h"
#include "kiln/trainer.h"

/* The sections of a run's config, for KilnComposeRequest: the root (task, datamodule, callbacks,
 * logger, seed, ckpt_path, test), `trainer` and `kiln.run`. */
KILN_API const KilnSection *kiln_run_sections(void);

/* The progress of a run after an epoch. */
typedef struct KilnRunProgress {
    int64_t epoch, max_epochs; /* epochs done, and the limit; -1: none */
    int64_t step, max_steps;   /* optimizer steps likewise */
    const KilnMetric *metrics; /* current values */
    size_t n_metrics;
    bool resumed; /* the run begins at the end of that epoch, from a checkpoint */
    /* Of a job of a sweep (KilnRunEnv.prepared), once, before it allocates memory: the bytes that
     * its process will take, and nothing else is set. 0: this is progress. */
    int64_t memory;
} KilnRunProgress;

/* The environment of a run: what it needs besides its config. */
typedef struct KilnRunEnv {
    const KilnRegistry *registry;
    const KilnConsole *console;   /* NULL: silent */
    const char *const *overrides; /* as given, for the run folder; NULL-terminated or NULL */
    /* Arrays of the program, for datamodule=arrays. NULL: none. */
    const KilnMemoryData *data;
    /* Set it to non-zero (a signal handler: to the signal's number) to stop the run with a
     * checkpoint after the current batch. Meanwhile a thread of the run reports the request on the
     * console and in train.log. May be NULL. */
    const volatile int *stop;
    /* Set it to non-zero to save a checkpoint after the current batch and continue; the run resets
     * it. May be NULL. */
    volatile int *save;
    /* Called after each epoch, when a run resumes between two, and with KilnRunProgress.memory. May
     * be NULL. */
    void (*progress)(void *ctx, const KilnRunProgress *progress);
    /* Called before each training batch: false ends the run there, like an interrupt. May be NULL.
     */
    bool (*may_continue)(void *ctx, KilnTrainer *trainer);
    /* Receives each row of logged values, as loggers do, on rank 0. May be NULL. */
    void (*log_row)(void *ctx, const KilnLogRow *row);
    /* Receives output for other programs (kiln_trainer_output): predictions. May be NULL. */
    KilnStatus (*output)(void *ctx, const char *text, KilnError *err);
    void *ctx; /* of these functions */
    /* In a sweep: the metric that ranks its jobs, and the KilnMode; a mode that contradicts the
     * metric's declaration is refused. NULL: none. */
    const char *ranked_by;
    int64_t ranked_mode;
    /* The folder kiln.run.dir exists, with the config in its .kiln, and is used as it is (a job of
     * a sweep). */
    bool prepared;
    /* Resume in this run folder (absolute), whose config with `overrides` is `config`: from
     * ckpt_path, or its last checkpoint, or the beginning if it has none. NULL: a new run. */
    const char *resume;
} KilnRunEnv;

/* How a run ended, also after a failure. */
typedef struct KilnRunResult {
    char run_dir[4096]; /* "": it failed before it made a run folder; or rank 0 has it */
    char status[16];    /* "finished", "stopped" (by a callback), "interrupted", "failed" */
} KilnRunResult;

/* Train, validate and test as a checked config says; writes the run folder. */
KILN_API KILN_NODISCARD KilnStatus kiln_run_fit(KilnConfig *config, const KilnRunEnv *env,
                                                KilnRunResult *ret, KilnError *err);
/* Test (KILN_TEST) or validate (KILN_VAL) the checkpoint that the config's ckpt_path names, with
 * that split's hooks and metric names. KILN_TRAIN validates it on all training samples, in order
 * and without augmentation, as a set named "train" ("val/loss/train"). *ret_json gets the metrics
 * as JSON text (owned by the caller, may be NULL). */
KILN_API KILN_NODISCARD KilnStatus kiln_run_eval(KilnConfig *config, const KilnRunEnv *env,
                                                 KilnSplit split, char **ret_json, KilnError *err);
/* Run the network on `input` (a file or folder), or, if that is NULL, on all sets of `split` in
 * turn, as evaluation reads them. The config's callbacks receive the predictions:
 * prediction_writer, or your own. Unreadable samples of an input are left out, and are an error at
 * the end. */
KILN_API KILN_NODISCARD KilnStatus kiln_run_predict(KilnConfig *config, const KilnRunEnv *env,
                                                    KilnSplit split, const char *input,
                                                    KilnError *err);
/* The absolute path of the checkpoint folder that `ckpt_path` names: a checkpoint folder, a run
 * folder (its last), "last" or "best" (of the newest run in `runs`). Owned by the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_checkpoint_resolve(const char *ckpt_path, const char *runs,
                                                           char **ret, KilnError *err);

#endif
