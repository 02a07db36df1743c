/* Flat functions for training and evaluating (see kiln/flat/config.h): the environment of runs as a
 * handle. */
#ifndef KILN_KILN_FLAT_RUN_H
#define KILN_KILN_FLAT_RUN_H

#include "kiln/embed/fit.h"
#include "kiln/flat/data.h"

/* What a run needs besides its config (KilnRunEnv), and how it ended. Serves one run at a time. */
typedef struct KilnFlatEnv KilnFlatEnv;

/* Text for the console. */
typedef void KilnFlatWrite(void *ctx, const char *text);
/* The progress after an epoch: epochs and optimizer steps that are done, and their limits; -1:
 * none.
 */
typedef void KilnFlatProgress(void *ctx, int64_t epoch, int64_t max_epochs, int64_t step,
                              int64_t max_steps);
/* A row of logged values, borrowed for the call: `n` names and values. */
typedef void KilnFlatRow(void *ctx, const char *phase, int64_t epoch, int64_t step,
                         const char *const *names, const double *values, size_t n);
/* Output for other programs; see KilnRunEnv. */
typedef KilnStatus KilnFlatOutput(void *ctx, const char *text, KilnError *err);

/* An environment without anything; the registry must outlive it. `ctx` is the callbacks' first
 * argument. Owned by the caller; NULL: memory is out. */
KILN_API KilnFlatEnv *kiln_flat_env_new(const KilnRegistry *registry, void *ctx);
/* Accepts NULL. */
KILN_API void kiln_flat_env_free(KilnFlatEnv *env);
/* What it has. Callbacks are called in the thread that runs, the console's in others, too. The
 * overrides (NULL-terminated) are copied; data are borrowed as long as the environment is used. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_env_overrides(KilnFlatEnv *env,
                                                           const char *const *overrides,
                                                           KilnError *err);
KILN_API void kiln_flat_env_console(KilnFlatEnv *env, KilnFlatWrite *write, bool terminal,
                                    bool colour, bool utf8, int width);
KILN_API void kiln_flat_env_progress(KilnFlatEnv *env, KilnFlatProgress *progress);
KILN_API void kiln_flat_env_rows(KilnFlatEnv *env, KilnFlatRow *row);
KILN_API void kiln_flat_env_output(KilnFlatEnv *env, KilnFlatOutput *output);
KILN_API void kiln_flat_env_data(KilnFlatEnv *env, const KilnFlatData *data);
/* Resume in this run folder (absolute), with the config of kiln_flat_compose_resumed. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_env_resume(KilnFlatEnv *env, const char *run,
                                                        KilnError *err);
/* Request the end of the run after this batch, with a checkpoint: `number` is a signal's, or -1.
 * From any thread, and from a signal handler. 0 takes a request back. */
KILN_API void kiln_flat_env_stop(KilnFlatEnv *env, int number);

/* kiln_run_fit. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_fit(KilnFlatEnv *env, KilnConfig *config,
                                                 KilnError *err);
/* The same batch by batch: between these two functions kiln_fit_step and kiln_fit_trainer. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_fit_open(KilnFlatEnv *env, KilnConfig *config,
                                                      KilnFit **ret, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_flat_fit_close(KilnFlatEnv *env, KilnFit *fit,
                                                       KilnError *err);
/* The folder of the last fit, "": it has none; and how it ended (KilnRunResult). Borrowed until the
 * next one. */
KILN_API const char *kiln_flat_run_dir(const KilnFlatEnv *env);
KILN_API const char *kiln_flat_run_status(const KilnFlatEnv *env);
/* kiln_run_eval; `split` is "train", "val" or "test". */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_eval(KilnFlatEnv *env, KilnConfig *config,
                                                  const char *split, char **ret_json,
                                                  KilnError *err);

/* ---- In hooks ------------------------------------------------------------------------------- */

/* Metric number i with its last value (kiln_trainer_metrics); false after the last. */
KILN_API bool kiln_flat_metric(const KilnTrainer *trainer, size_t i, const char **ret_name,
                               double *ret_value);
/* Output number i of the step that just ran (kiln_trainer_outputs), f32; NULL after the last.
 * `ret_dims` has room for KILN_MAX_RANK. */
KILN_API const float *kiln_flat_output(const KilnTrainer *trainer, size_t i, const char **ret_name,
                                       int *ret_rank, int64_t *ret_dims);
/* kiln_trainer_feature with its type (KilnDType) and shape, [batch, ...]. NULL: there is none. */
KILN_API const void *kiln_flat_feature(const KilnTrainer *trainer, const char *name, int *ret_dtype,
                                       int *ret_rank, int64_t *ret_dims);
/* kiln_trainer_print of a text. */
KILN_API void kiln_flat_print(KilnTrainer *trainer, const char *text);
/* Save a checkpoint `name` of the run, which is kept (kiln_trainer_save). */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_save(KilnTrainer *trainer, const char *name,
                                                  KilnError *err);

#endif
