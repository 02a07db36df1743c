/* The trainer as callbacks and modules see it: what a hook can read and do, and the hooks
 * themselves. Hook names and their order are PyTorch Lightning's. */
#ifndef KILN_TRAINER_H
#define KILN_TRAINER_H

#include "kiln/logger.h"
#include "kiln/module.h"

typedef struct KilnTrainer KilnTrainer;
typedef struct KilnTune KilnTune; /* tune.h */

/* ---- What a hook can read ---------------------------------------------------- */

KILN_API int64_t kiln_trainer_epoch(const KilnTrainer *trainer);       /* current, from 0 */
KILN_API int64_t kiln_trainer_global_step(const KilnTrainer *trainer); /* optimizer steps done */
KILN_API int64_t kiln_trainer_batch(const KilnTrainer *trainer);   /* batches of this loop done */
KILN_API int64_t kiln_trainer_batches(const KilnTrainer *trainer); /* batches of this loop in all */
KILN_API int64_t kiln_trainer_max_epochs(const KilnTrainer *trainer);   /* -1: no limit */
KILN_API int64_t kiln_trainer_batches_done(const KilnTrainer *trainer); /* since the start */
KILN_API int64_t kiln_trainer_samples(const KilnTrainer *trainer); /* trained on since the start */
/* Which of the processes that train together this one is (kiln/strategy.h), and how many there are;
 * 0 and 1 where it is alone, as in an evaluation or prediction by itself. Positions and counts are
 * those of all ranks. Only rank 0 has a run folder, loggers and a console. Hooks of batches see
 * this rank's batches; what they log counts on rank 0 alone. */
KILN_API int kiln_trainer_rank(const KilnTrainer *trainer);
KILN_API int kiln_trainer_world(const KilnTrainer *trainer);
/* Batches per optimizer step in the current group, of all ranks. */
KILN_API int64_t kiln_trainer_accumulation(const KilnTrainer *trainer);
/* The number of the set that is evaluated or predicted now, from 0, and its name; 0 and "" outside
 * of evaluation and prediction. The number of sets; 1 in training. */
KILN_API int64_t kiln_trainer_dataloader(const KilnTrainer *trainer);
KILN_API const char *kiln_trainer_dataloader_name(const KilnTrainer *trainer);
KILN_API int64_t kiln_trainer_dataloaders(const KilnTrainer *trainer);
/* The running phase: "fit", "sanity", "validate" (in a fit, or of `kiln eval split=val`), "test",
 * "predict"; in setup the one that the run begins with. */
KILN_API const char *kiln_trainer_phase(const KilnTrainer *trainer);
KILN_API double kiln_trainer_learning_rate(const KilnTrainer *trainer); /* of the first optimizer */
/* The i-th optimizer, NULL after the last; its common options; the learning rate of its last
 * update. */
KILN_API const KilnOptimizerUse *kiln_trainer_optimizer(const KilnTrainer *trainer, size_t i);
KILN_API const KilnOptimizerCommon *kiln_trainer_optimizer_common(const KilnTrainer *trainer,
                                                                  size_t i);
KILN_API double kiln_trainer_optimizer_rate(const KilnTrainer *trainer, size_t i);
KILN_API double kiln_trainer_samples_per_s(const KilnTrainer *trainer); /* of this loop so far */
/* Estimated seconds until training ends, validations included, from the speed of this session;
 * negative: unknown. */
KILN_API double kiln_trainer_seconds_left(const KilnTrainer *trainer);
/* The run folder, absolute; "" if the run has none. */
KILN_API const char *kiln_trainer_run_dir(const KilnTrainer *trainer);
KILN_API KilnParams *kiln_trainer_params(KilnTrainer *trainer);
KILN_API KilnInstance *kiln_trainer_module(KilnTrainer *trainer);
/* What a sample is, as the datamodule declares it. */
KILN_API const KilnDataSpec *kiln_trainer_spec(const KilnTrainer *trainer);
/* A feature of the current batch, [*ret_n, ...] in its own type; NULL if there is no such feature,
 * this set of samples lacks it, or it is a text. For the batch hooks. */
KILN_API const void *kiln_trainer_feature(const KilnTrainer *trainer, const char *name,
                                          int64_t *ret_n);

/* The text feature of that name in row `row` of the current batch, which owns it; NULL: none. */
KILN_API const char *kiln_trainer_text(const KilnTrainer *trainer, const char *name, int64_t row);

/* One set of a split as a table (KilnDataModuleOps.table, or kiln_table_new without it); borrowed
 * until the data are loaded again. From on_fit_start, on_test_start or on_predict_start on.
 * KILN_E_MISSING: there is no such set. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_table(KilnTrainer *trainer, KilnSplit split,
                                                      size_t set, const KilnTable **ret,
                                                      KilnError *err);

/* The samples of the batch that just ran: [*ret_n] indices in its dataset, in the order of the
 * batch's rows. For on_..._batch_end; borrowed until the hook returns. */
KILN_API const int64_t *kiln_trainer_batch_samples(const KilnTrainer *trainer, int64_t *ret_n);
/* The name (file) of a sample of that batch; NULL if the datamodule has no names. */
KILN_API const char *kiln_trainer_sample_name(const KilnTrainer *trainer, int64_t sample);
/* The class of row `row` of that batch, from the feature "label" (i32, one per sample); -1:
 * unknown, as for a user's input. */
KILN_API int64_t kiln_trainer_row_label(const KilnTrainer *trainer, int64_t row);

/* An output of the step that just ran (kiln_step_output). */
typedef struct KilnOutputView {
    const char *name;
    KilnShape shape;   /* [batch, ...] */
    const float *data; /* borrowed until the hook returns */
} KilnOutputView;
enum { KILN_STEP_OUTPUTS = 8 };
/* Fill `ret` with the step's outputs, in the order of the kiln_step_output calls; returns their
 * number. For on_..._batch_end. */
KILN_API size_t kiln_trainer_outputs(const KilnTrainer *trainer,
                                     KilnOutputView ret[KILN_STEP_OUTPUTS]);

/* Results of that batch's rows beside the outputs (kiln_results_set): the name of number i, NULL
 * after the last; and the value of a row, JSON as text, NULL: it has none. */
KILN_API const char *kiln_trainer_result_name(const KilnTrainer *trainer, size_t i);
KILN_API const char *kiln_trainer_result(const KilnTrainer *trainer, size_t i, int64_t row);

/* The loss of the newest training batch, which may be NaN or infinite; false if no batch has run or
 * it has no loss. */
KILN_API bool kiln_trainer_loss(const KilnTrainer *trainer, double *ret);
/* Tokens of the batch that just ran: the sum of the lengths of all varying features, or without any
 * the elements of the first feature that is a row of i32; 0: none. */
KILN_API int64_t kiln_trainer_batch_tokens(const KilnTrainer *trainer);
/* In on_train_batch_end: whether the loggers get a row of this step (log_every_n_steps). Make
 * expensive measurements only then. */
KILN_API bool kiln_trainer_row_is_due(const KilnTrainer *trainer);
/* The 2-norm of each trained parameter's gradient in the last optimizer step, before clipping by
 * norm, in the order of kiln_trainer_params. For callbacks with `gradient_norms`; otherwise NULL.
 * Borrowed. */
KILN_API const float *kiln_trainer_gradient_norms(const KilnTrainer *trainer, size_t *ret_n);
KILN_API uint64_t kiln_trainer_seed(const KilnTrainer *trainer);
/* The split that the running phase reads. */
KILN_API KilnSplit kiln_trainer_split(const KilnTrainer *trainer);
/* The threads that this run computes with (trainer.threads). */
KILN_API int kiln_trainer_threads(const KilnTrainer *trainer);
/* Multiplications and additions of a full training batch, gradients and update included. */
KILN_API double kiln_trainer_flops(const KilnTrainer *trainer);
/* The rate of large matrix products on this machine, with the run's threads and precision. The
 * first call measures it for a tenth of a second. */
KILN_API double kiln_trainer_peak_flops(KilnTrainer *trainer);
/* Unreadable samples of the input, which are in no batch: those since the last
 * on_predict_batch_end, in order; returns their number. For that hook and on_predict_end. */
typedef struct KilnUnreadSample {
    int64_t sample;
    char *message; /* borrowed */
} KilnUnreadSample;
KILN_API size_t kiln_trainer_unread(const KilnTrainer *trainer, const KilnUnreadSample **ret);

/* The last value logged under `name`; false if there is none yet. For a value logged with both
 * KILN_LOG_STEP and KILN_LOG_EPOCH, the plain name is the later of NAME_step and NAME_epoch: at the
 * end of an epoch its mean, within an epoch the last step's value. */
KILN_API bool kiln_trainer_metric(const KilnTrainer *trainer, const char *name, double *ret);
/* The same, but only a value of this step: at the end of an epoch, a value of that epoch. */
KILN_API bool kiln_trainer_step_metric(const KilnTrainer *trainer, const char *name, double *ret);
/* Whether this run will log `name`: its steps, which were recorded before anything runs, or its
 * callbacks declare it. Call it in `setup` of a fit: an evaluation logs less. */
KILN_API bool kiln_trainer_logs(const KilnTrainer *trainer, const char *name);
/* Fill err (KILN_E_KEY): option `option` names `name`, which is not logged; lists what is, and
 * suggests the nearest. */
KILN_API KilnStatus kiln_trainer_unknown_metric(const KilnTrainer *trainer, const char *option,
                                                const char *name, KilnError *err);
/* The same for the option `monitor` of the component `who`, at the place in the config that the
 * value comes from, with an override that would work. `name` NULL: the option is null, but must not
 * be. */
KILN_API KilnStatus kiln_trainer_unknown_monitor(const KilnTrainer *trainer,
                                                 const KilnInstance *who, const char *name,
                                                 KilnError *err);
/* Whether larger values of the metric `name` are better, for the component `who`, which monitors it
 * with the option `mode` (KilnMode). Call it in `setup`. KILN_E_RANGE, with what to write instead,
 * if `mode` contradicts the metric's declaration, or if it is auto and the metric declares nothing.
 */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_mode(const KilnTrainer *trainer,
                                                     const KilnInstance *who, const char *name,
                                                     int64_t mode, bool *ret_higher_is_better,
                                                     KilnError *err);
/* Whether this run validates: it has validation samples and no limit of 0. */
KILN_API bool kiln_trainer_validates(const KilnTrainer *trainer);
/* Whether it validates exactly once per epoch, after the last batch. */
KILN_API bool kiln_trainer_validates_epochs(const KilnTrainer *trainer);
/* Whether validation runs before the next training batch; for on_train_batch_end. */
KILN_API bool kiln_trainer_validates_now(const KilnTrainer *trainer);
/* Whether training is over: a limit is reached, or a stop was requested. */
KILN_API bool kiln_trainer_is_done(const KilnTrainer *trainer);
/* All metrics, in order of first logging. */
KILN_API size_t kiln_trainer_metrics(const KilnTrainer *trainer, const KilnMetric **ret);

/* A template for a file's name. {KEY} or {KEY:FORMAT} is replaced by a value: epoch, step, the last
 * value of a metric ({val/loss}), or monitor, the value of the metric `monitor`. FORMAT is Python's
 * for numbers: [0][width][.precision] and d, f, e or g; default: %d and %.6g. "/" becomes "_". */
typedef struct KilnNameFormat {
    const char *text;
    const char *monitor; /* NULL: {monitor} is unknown */
    bool inserts;        /* write "KEY=" before each value; the metric's name for monitor */
} KilnNameFormat;
/* Check a template in `setup`: KILN_E_KEY or KILN_E_RANGE, naming `option`, for an unknown value or
 * a format that does not fit it. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_check_format(const KilnTrainer *trainer,
                                                             const char *option,
                                                             const KilnNameFormat *format,
                                                             KilnError *err);
/* The text with the current values, cut at `size`; "nan" for a metric without a value. Returns
 * buf. */
KILN_API const char *kiln_trainer_format(const KilnTrainer *trainer, const KilnNameFormat *format,
                                         char *buf, size_t size);

/* ---- What a hook can do ------------------------------------------------------ */

/* Log a number from a callback; flags as kiln_step_log, 0 = KILN_LOG_STEP. */
KILN_API void kiln_trainer_log(KilnTrainer *trainer, const char *name, double value,
                               unsigned flags);
/* Pass a histogram, an image or a text to all loggers that accept it, immediately. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_log_histogram(KilnTrainer *trainer,
                                                              const char *name,
                                                              const KilnHistogram *histogram,
                                                              KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_log_image(KilnTrainer *trainer, const char *name,
                                                          const KilnPixels *pixels, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_log_text(KilnTrainer *trainer, const char *name,
                                                         const char *text, KilnError *err);
/* Whether a logger of this run accepts them. */
typedef enum KilnLogKind { KILN_LOG_HISTOGRAMS, KILN_LOG_IMAGES, KILN_LOG_TEXTS } KilnLogKind;
KILN_API bool kiln_trainer_takes(const KilnTrainer *trainer, KilnLogKind kind);
/* End training after this batch (Lightning's should_stop); `reason` is copied
 * into summary.json and the log. */
KILN_API void kiln_trainer_stop(KilnTrainer *trainer, const char *reason);
/* The same for this session only (its time is over, say): a run resumed from the checkpoint
 * continues training. */
KILN_API void kiln_trainer_pause(KilnTrainer *trainer, const char *reason);
/* Skip the rest of this epoch (Lightning's -1 from on_train_batch_start). In on_train_batch_start
 * this batch is not trained and gets no on_train_batch_end; elsewhere the epoch ends before the
 * next batch. The epoch is not validated, but otherwise ends as usual. Accumulated gradients make a
 * step. */
KILN_API void kiln_trainer_skip_epoch(KilnTrainer *trainer);
/* In on_train_batch_start, skip this batch: it is not trained, makes no optimizer step and gets no
 * on_train_batch_end, but counts as one of the epoch's batches. */
KILN_API void kiln_trainer_skip_batch(KilnTrainer *trainer);
/* "epoch=004-step=4690" for the current position; returns buf. */
KILN_API const char *kiln_trainer_checkpoint_name(const KilnTrainer *trainer, char *buf,
                                                  size_t size);
/* Request a checkpoint of the current state, as folder `name` in the run's checkpoints/. It is
 * taken after all hooks of this event, so it has the resulting state of every callback. Training
 * continues as soon as the tensors are copied; the folder is published, whole or not at all, in the
 * background. Requested links and deletions follow, in that order. A failure there is reported by
 * the next save, or at the end of the run.
 *
 * `owner` (the requesting callback; NULL: none) keeps the folder. A folder may have several owners.
 * It is deleted when it has no owner and no link, and not made if that is already so after the
 * hooks. `flags`: KILN_SAVE_WEIGHTS, or 0. */
typedef enum KilnSaveFlags {
    /* Weights only, for tests and predictions; the run cannot be resumed from it. If the same name
     * is also requested without this flag, the checkpoint is complete. */
    KILN_SAVE_WEIGHTS = 1
} KilnSaveFlags;
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_save(KilnTrainer *trainer,
                                                     const KilnInstance *owner, const char *name,
                                                     unsigned flags, KilnError *err);
/* Whether saving under `name` would replace an earlier checkpoint that has another owner than
 * `owner` keeps. */
KILN_API bool kiln_trainer_would_replace(const KilnTrainer *trainer, const KilnInstance *owner,
                                         const char *name);
/* Point checkpoints/<link> ("best", "last") to checkpoint `name`, atomically. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_link(KilnTrainer *trainer, const char *link,
                                                     const char *name, KilnError *err);
/* The checkpoint that checkpoints/<link> points to, pending requests included, written to `buf`;
 * false if there is no such link. */
KILN_API bool kiln_trainer_link_target(const KilnTrainer *trainer, const char *link, char *buf,
                                       size_t size);
/* `owner` no longer keeps checkpoint `name`, which need not exist. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_delete(KilnTrainer *trainer,
                                                       const KilnInstance *owner, const char *name,
                                                       KilnError *err);
/* For on_fit_start of a resumed run: `owner` keeps checkpoint `name`. If it is not in this run's
 * folder, it is copied from the run that this one continues; false if it is in neither. */
KILN_API bool kiln_trainer_claim(KilnTrainer *trainer, const KilnInstance *owner, const char *name);
/* After that, in on_fit_start: delete folders of this run that `owner` saved and did not claim (the
 * run was killed before it deleted them, or continues from an earlier checkpoint). A folder with
 * several owners goes when all of them prune it. Other folders stay. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_prune(KilnTrainer *trainer,
                                                      const KilnInstance *owner, KilnError *err);
/* A line for the user and train.log. */
KILN_API void kiln_trainer_print(KilnTrainer *trainer, const char *format, ...) KILN_PRINTF(2, 3);

/* Write text to the standard output of the command, or to the embedding program's output
 * (KilnRunEnv.output); KILN_E_MISSING if there is none. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_output(KilnTrainer *trainer, const char *text,
                                                       KilnError *err);

/* An average of all floating-point values of the network, parameters and buffers. Validation and
 * test use it instead of the weights, and checkpoints store it as model.safetensors, with the
 * weights for training in trainer.safetensors. At most one per run. */
typedef struct KilnAveragedWeights KilnAveragedWeights;
/* Create it in `setup`; it starts as a copy of the weights. Owned by the trainer. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_averaged_new(KilnTrainer *trainer,
                                                             KilnAveragedWeights **ret,
                                                             KilnError *err);
/* In `record_update`, record averaged += weight * (weights - averaged), with `buffers` as the
 * weight for running statistics; both are scalar tensors. */
KILN_API void kiln_averaged_lerp(KilnAveragedWeights *averaged, KilnTensor *weight,
                                 KilnTensor *buffers);
/* The same immediately, for hooks between steps: parameters and running statistics. */
KILN_API void kiln_averaged_average(KilnAveragedWeights *averaged, double weight);
/* Whether validation, test and checkpoints use it instead of the weights; initially they do. */
KILN_API void kiln_averaged_use(KilnAveragedWeights *averaged, bool used);
/* Recompute the running statistics of batch normalization as means over one pass of the training
 * data, without gradients (torch.optim.swa_utils.update_bn); for the averaged weights, if they are
 * used. Between epochs; the same weights give the same bytes. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_update_statistics(KilnTrainer *trainer,
                                                                  KilnError *err);

/* Set the learning rate of the following steps, before the factors of groups, instead of the
 * schedule's; negative: the schedule's again. Checkpoints do not store it. */
KILN_API void kiln_trainer_set_learning_rate(KilnTrainer *trainer, double lr);
/* The next step's learning rate by the schedule of the first optimizer. */
KILN_API double kiln_trainer_scheduled_rate(const KilnTrainer *trainer);
/* Reset a parameter to the value that it had when the run began. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_rewind(KilnTrainer *trainer, KilnParam *param,
                                                       KilnError *err);

/* The screen for callbacks. */
typedef struct KilnConsole {
    bool terminal; /* false: line-wise output, no cursor movement, no colours */
    bool colour;
    bool utf8;    /* it shows non-ASCII characters */
    bool verbose; /* --verbose was given */
    int width;
    void *ctx;
    /* Write text as it is. */
    void (*write)(void *ctx, const char *text);
    /* The current width, for a terminal whose window may change; NULL: it is fixed. */
    int (*measure)(void *ctx);
} KilnConsole;
/* Never NULL; `write` may be a sink. */
KILN_API const KilnConsole *kiln_trainer_console(const KilnTrainer *trainer);
/* Show text of one or more lines below everything printed, until it is replaced or cleared (NULL):
 * progress bars. Ignored if the console is not a terminal. */
KILN_API void kiln_trainer_status_line(KilnTrainer *trainer, const char *text);

/* A layer of the network, with or without parameters, from the training step that was recorded on
 * shapes alone. */
typedef struct KilnLayerInfo {
    const char *path; /* "layer1.0.conv1" */
    const char *op;   /* last operation recorded under that path */
    KilnShape output; /* with the batch axis */
    int64_t parameters;
    int64_t trained;       /* of the parameters; the rest is frozen */
    double flops;          /* of products and convolutions, forward, of the whole batch */
    double flops_backward; /* for the gradients */
} KilnLayerInfo;
/* The i-th layer, in order of recording; NULL after the last. */
KILN_API const KilnLayerInfo *kiln_trainer_layer(const KilnTrainer *trainer, size_t i);
/* The layers as a text table, `width` columns wide if the numbers fit. Layers deeper than
 * `max_depth` (-1: no limit) are summed in their parent. Owned by the caller (free); NULL when
 * memory is out. */
KILN_API char *kiln_trainer_layer_table(const KilnTrainer *trainer, int64_t max_depth, int width);

/* ---- Callbacks and loggers ---------------------------------------------------- */

typedef KilnStatus KilnHook(KilnInstance *self, KilnTrainer *trainer, KilnError *err);

/* A training step while it is recorded. The whole step is recorded before it runs: hooks between
 * its parts can record operations and log tensors (kiln_step_log), but values exist only in
 * on_train_batch_end. */
typedef struct KilnRecording {
    KilnStep *step;
    KilnTensor *loss;      /* what training_step returned; NULL in on_before_optimizer_step of
                            * a group that ends without a batch */
    KilnTensor *gradients; /* of all parameters, flat: a variable, summed over the group's
                            * batches so far; NULL before the gradients */
    bool steps;            /* this batch ends its group: the parameters are updated */
    size_t optimizer;      /* the one that updates them */
} KilnRecording;
typedef void KilnRecordHook(KilnInstance *self, KilnTrainer *trainer, const KilnRecording *at);

/* The order of hooks: lower ranks first, the module's own after the plain callbacks; within a rank
 * in the order of the config. */
typedef enum KilnRank {
    KILN_RANK_PLAIN,
    KILN_RANK_MONITOR, /* reads what others logged (early_stopping) */
    KILN_RANK_SAVES    /* saves checkpoints, which must hold the others' state after the same
                        * event; what they logged is already with the loggers */
} KilnRank;

/* From `epoch` on, `batches` batches make an optimizer step. */
typedef struct KilnAccumulation {
    int64_t epoch, batches;
} KilnAccumulation;

/* The hooks of callbacks and of modules (KilnModuleOps.hooks). Every hook is optional. A failing
 * hook stops the run with its error. Recorded hooks and `on_train_...` run in fit only. */
struct KilnCallbackOps {
    /* Before a fit, an evaluation or a prediction: everything is built, nothing is written, and
     * there is no run folder yet. Check options here; what the run must log only where
     * kiln_trainer_phase is "fit". */
    KilnHook *setup;
    KilnHook *on_fit_start;
    /* Around the sanity check: a few validation batches before training, whose logged values are
     * discarded. */
    KilnHook *on_sanity_check_start;
    KilnHook *on_sanity_check_end;
    KilnHook *on_train_start;
    KilnHook *on_train_epoch_start;
    KilnHook *on_train_batch_start;
    KilnHook *on_train_batch_end;
    KilnHook *on_train_epoch_end;
    KilnHook *on_validation_start;
    KilnHook *on_validation_epoch_start;
    KilnHook *on_validation_batch_start;
    KilnHook *on_validation_batch_end;
    KilnHook *on_validation_epoch_end;
    KilnHook *on_validation_end;
    KilnHook *on_train_end;
    KilnHook *on_fit_end;
    KilnHook *on_test_start;
    KilnHook *on_test_epoch_start;
    KilnHook *on_test_batch_start;
    KilnHook *on_test_batch_end;
    KilnHook *on_test_epoch_end;
    KilnHook *on_test_end;
    KilnHook *on_predict_start;
    KilnHook *on_predict_epoch_start;
    KilnHook *on_predict_batch_start;
    KilnHook *on_predict_batch_end;
    KilnHook *on_predict_epoch_end;
    KilnHook *on_predict_end;
    KilnHook *teardown;
    /* Called while a training step is recorded (also on shapes alone, before setup): before the
     * first gradients of a group; before and after the gradients of each batch; before clipping and
     * the update, and after the update. */
    KilnRecordHook *on_before_zero_grad;
    KilnRecordHook *on_before_backward;
    KilnRecordHook *on_after_backward;
    KilnRecordHook *on_before_optimizer_step;
    KilnRecordHook *record_update;
    /* The run ends with this error or interrupt (KILN_E_INTERRUPTED); teardown follows. */
    void (*on_exception)(KilnInstance *self, KilnTrainer *trainer, const KilnError *why);
    /* Save the callback's state to a checkpoint, and load it: after setup, before on_fit_start; a
     * module's also before a test or prediction. */
    void (*state_dict)(KilnInstance *self, KilnState *state);
    KilnStatus (*load_state_dict)(KilnInstance *self, const KilnState *state, KilnError *err);
    /* Write and read files (no folders) in the checkpoint folder `dir`, for state that is neither
     * numbers nor tensors. The files are checksummed with the rest, and verified before
     * on_load_checkpoint, which follows load_state_dict. A module's files are also saved with
     * KILN_SAVE_WEIGHTS. */
    KilnStatus (*on_save_checkpoint)(KilnInstance *self, KilnTrainer *trainer, const char *dir,
                                     KilnError *err);
    KilnStatus (*on_load_checkpoint)(KilnInstance *self, KilnTrainer *trainer, const char *dir,
                                     KilnError *err);
    /* The factor on a parameter's learning rate in an epoch. 0 freezes the parameter, which then
     * costs no gradient, or the buffer, which is then not updated. Must depend on the options
     * alone: it is called in each epoch, and for all epochs before the first. */
    double (*lr_scale)(const KilnInstance *self, const KilnParams *params, const KilnParam *param,
                       int64_t epoch);
    /* With lr_scale: the next epoch after `epoch` in which the frozen set changes; -1: none. */
    int64_t (*next_freeze)(const KilnInstance *self, int64_t epoch);
    /* Bytes that it will hold, without averaged weights, for the memory estimate. Called before
     * setup. */
    int64_t (*memory)(const KilnInstance *self, KilnTrainer *trainer);
    /* Called before the run is built; may change its options (kiln/tune.h). */
    KilnStatus (*tune)(KilnInstance *self, KilnTune *tune, KilnError *err);
    KilnRank rank;
    /* trainer.enable_progress_bar and enable_model_summary turn it off. */
    bool shows_progress, shows_summary;
    /* It averages the weights (kiln_trainer_averaged_new in setup). */
    bool averages;
    bool gradient_norms; /* it calls kiln_trainer_gradient_norms */
    /* Optional: batches per optimizer step by epoch (ascending), instead of
     * trainer.accumulate_grad_batches. Fixed before training, since schedules count the steps of
     * the whole run. Returns the number of entries in *ret. */
    size_t (*accumulation)(const KilnInstance *self, const KilnAccumulation **ret);
    /* Names of metrics that it logs, NULL-terminated; NULL: none. */
    const char *const *logs;
    /* For each of `logs`, KILN_LOG_LOWER_IS_BETTER, KILN_LOG_HIGHER_IS_BETTER or 0, so that others
     * can monitor it with mode=auto; NULL: 0 for all. */
    const unsigned *log_flags;
};

#endif
