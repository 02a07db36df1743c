/* The training loop as callbacks and loggers see it. Hook names and their order
 * are PyTorch Lightning's. */
#ifndef KILN_TRAINER_H
#define KILN_TRAINER_H

#include "kiln/logger.h"
#include "kiln/module.h"

typedef struct KilnTrainer KilnTrainer;
typedef struct KilnTune KilnTune; /* tune.h */

/* ---- What a hook can ask ----------------------------------------------------- */

KILN_API int64_t kiln_trainer_epoch(const KilnTrainer *trainer);       /* current, from 0 */
KILN_API int64_t kiln_trainer_global_step(const KilnTrainer *trainer); /* optimizer steps done */
KILN_API int64_t kiln_trainer_batch(const KilnTrainer *trainer);   /* batches of this loop done */
KILN_API int64_t kiln_trainer_batches(const KilnTrainer *trainer); /* batches of this loop in all */
KILN_API int64_t kiln_trainer_max_epochs(const KilnTrainer *trainer);   /* -1: no limit */
KILN_API int64_t kiln_trainer_batches_done(const KilnTrainer *trainer); /* since the start */
KILN_API int64_t kiln_trainer_samples(const KilnTrainer *trainer); /* trained on since the start */
/* Batches that the group which runs now makes one optimizer step of. */
KILN_API int64_t kiln_trainer_accumulation(const KilnTrainer *trainer);
/* Which set of its split the evaluation or prediction that runs now is at, from 0, and that set's
 * name; 0 and "" elsewhere. And how many sets there are; 1 in training. */
KILN_API int64_t kiln_trainer_dataloader(const KilnTrainer *trainer);
KILN_API const char *kiln_trainer_dataloader_name(const KilnTrainer *trainer);
KILN_API int64_t kiln_trainer_dataloaders(const KilnTrainer *trainer);
/* What runs now: "fit", "sanity", "validate" (inside fit), "test", "predict". */
KILN_API const char *kiln_trainer_phase(const KilnTrainer *trainer);
KILN_API double kiln_trainer_learning_rate(const KilnTrainer *trainer); /* of the first optimizer */
/* The i-th optimizer, NULL past the last; and the learning rate of its last update. */
KILN_API const KilnOptimizerUse *kiln_trainer_optimizer(const KilnTrainer *trainer, size_t i);
KILN_API double kiln_trainer_optimizer_rate(const KilnTrainer *trainer, size_t i);
KILN_API double kiln_trainer_samples_per_s(const KilnTrainer *trainer); /* of this loop so far */
/* Seconds until training ends, as this session went so far, validations and all; negative:
 * unknown. */
KILN_API double kiln_trainer_seconds_left(const KilnTrainer *trainer);
/* The run folder, absolute; "" when the run has none. */
KILN_API const char *kiln_trainer_run_dir(const KilnTrainer *trainer);
KILN_API KilnParams *kiln_trainer_params(KilnTrainer *trainer);
KILN_API KilnInstance *kiln_trainer_module(KilnTrainer *trainer);
/* What the datamodule yields. */
KILN_API const KilnDataSpec *kiln_trainer_spec(const KilnTrainer *trainer);
/* The feature of the batch that runs now, [*ret_n, ...] in its own type; for the batch hooks.
 * NULL when there is no such feature. */
KILN_API const void *kiln_trainer_feature(const KilnTrainer *trainer, const char *name,
                                          int64_t *ret_n);

/* Which samples the batch that has just run had: [*ret_n] indices in its dataset, in the order of
 * the batch's rows. For on_..._batch_end; borrowed until the hook returns. */
KILN_API const int64_t *kiln_trainer_batch_samples(const KilnTrainer *trainer, int64_t *ret_n);
/* The name (file) of such a sample; NULL when the datamodule has no names. */
KILN_API const char *kiln_trainer_sample_name(const KilnTrainer *trainer, int64_t sample);
/* The class of row `row` of that batch, by the feature "label" (i32, one for each sample); -1: not
 * known, as of a user's input. */
KILN_API int64_t kiln_trainer_row_label(const KilnTrainer *trainer, int64_t row);

/* What the step handed out (kiln_step_output), of the batch that has just run. */
typedef struct KilnOutputView {
    const char *name;
    KilnShape shape;   /* [batch, ...] */
    const float *data; /* borrowed until the hook returns */
} KilnOutputView;
enum { KILN_STEP_OUTPUTS = 8 };
/* Fill `ret` with the outputs, in the order in which they were handed out; returns how many. For
 * on_..._batch_end. */
KILN_API size_t kiln_trainer_outputs(const KilnTrainer *trainer,
                                     KilnOutputView ret[KILN_STEP_OUTPUTS]);

/* Loss of the newest training batch, NaN or infinity included; false: it has not run, or has none.
 */
KILN_API bool kiln_trainer_loss(const KilnTrainer *trainer, double *ret);
/* Tokens of the batch that has just run: what features of varying length have along that axis, or
 * the elements of the first feature that is a row of i32; 0: there are none. */
KILN_API int64_t kiln_trainer_batch_tokens(const KilnTrainer *trainer);
/* In on_train_batch_end: whether the loggers get a row of this step (log_every_n_steps), so that
 * measurements that cost something are only made then. */
KILN_API bool kiln_trainer_row_is_due(const KilnTrainer *trainer);
/* The 2-norm of the gradient of each trained parameter, in the order of kiln_trainer_params, as the
 * last optimizer step got it, before clipping by norm. For callbacks with `gradient_norms`; NULL
 * without. Borrowed. */
KILN_API const float *kiln_trainer_gradient_norms(const KilnTrainer *trainer, size_t *ret_n);
KILN_API uint64_t kiln_trainer_seed(const KilnTrainer *trainer);
/* Multiplications and additions of a training batch of full size, gradients and update included. */
KILN_API double kiln_trainer_flops(const KilnTrainer *trainer);
/* What this machine reaches with the run's threads in large matrix products of its precision:
 * measured for a tenth of a second when it is first asked for. */
KILN_API double kiln_trainer_peak_flops(KilnTrainer *trainer);
/* Samples of the input that could not be read and so are in no batch: those since the last
 * on_predict_batch_end, in order; returns how many. For that hook and on_predict_end. */
typedef struct KilnUnreadSample {
    int64_t sample;
    char *message; /* borrowed */
} KilnUnreadSample;
KILN_API size_t kiln_trainer_unread(const KilnTrainer *trainer, const KilnUnreadSample **ret);

/* The last value logged under `name`; false when there is none yet. Of what is logged with both
 * KILN_LOG_STEP and KILN_LOG_EPOCH the plain name is the later one of NAME_step and NAME_epoch: at
 * the end of an epoch its mean, within an epoch the last step's value. */
KILN_API bool kiln_trainer_metric(const KilnTrainer *trainer, const char *name, double *ret);
/* The same, but only a value of this very step: at the end of an epoch, one that the
 * epoch logged. */
KILN_API bool kiln_trainer_step_metric(const KilnTrainer *trainer, const char *name, double *ret);
/* True when this run will log `name`, as far as its steps, recorded before
 * anything runs, and its callbacks say; the moment to ask is `setup`. */
KILN_API bool kiln_trainer_logs(const KilnTrainer *trainer, const char *name);
/* Fill err (KILN_E_KEY) with: option `option` names `name`, which is not
 * logged; what is, and the nearest. */
KILN_API KilnStatus kiln_trainer_unknown_metric(const KilnTrainer *trainer, const char *option,
                                                const char *name, KilnError *err);
/* The same for the option `monitor` of the component `who`: with the override that would do. */
KILN_API KilnStatus kiln_trainer_unknown_monitor(const KilnTrainer *trainer,
                                                 const KilnInstance *who, const char *name,
                                                 KilnError *err);
/* Which way the metric `name` gets better, for the component `who`, which monitors it with the
 * option `mode` (KilnMode); to be asked at setup. KILN_E_RANGE, with what to write instead, when
 * `mode` contradicts what the metric declares, and when it is auto and the metric declares
 * nothing. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_mode(const KilnTrainer *trainer,
                                                     const KilnInstance *who, const char *name,
                                                     int64_t mode, bool *ret_higher_is_better,
                                                     KilnError *err);
/* True when this run will validate: there are samples for it and no limit of 0. */
KILN_API bool kiln_trainer_validates(const KilnTrainer *trainer);
/* True when that is once an epoch, in every epoch, behind its last batch. */
KILN_API bool kiln_trainer_validates_epochs(const KilnTrainer *trainer);
/* True when validation has its turn before the next training batch; for on_train_batch_end. */
KILN_API bool kiln_trainer_validates_now(const KilnTrainer *trainer);
/* True when no batch is left to train: a limit is reached, or someone asked training to end. */
KILN_API bool kiln_trainer_is_done(const KilnTrainer *trainer);
/* All metrics, in order of first logging. */
KILN_API size_t kiln_trainer_metrics(const KilnTrainer *trainer, const KilnMetric **ret);

/* A text for the name of a file, in which each {KEY} or {KEY:FORMAT} stands for a value: epoch,
 * step, the last value of a metric by its name ({val/loss}), or monitor, that of the metric
 * `monitor`. FORMAT is Python's for numbers: [0][width][.precision] and d, f, e or g; without it
 * %d and %.6g. A "/" of the text or of a name becomes "_". */
typedef struct KilnNameFormat {
    const char *text;
    const char *monitor; /* NULL: {monitor} is not known */
    bool inserts;        /* put "KEY=" in front of each value; the metric's name for monitor */
} KilnNameFormat;
/* Refuse (KILN_E_KEY, KILN_E_RANGE) what names no value of this run or does not fit it, as the
 * fault of `option`; at setup. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_check_format(const KilnTrainer *trainer,
                                                             const char *option,
                                                             const KilnNameFormat *format,
                                                             KilnError *err);
/* The text for now, cut at `size`; "nan" for a metric that has no value yet. Returns buf. */
KILN_API const char *kiln_trainer_format(const KilnTrainer *trainer, const KilnNameFormat *format,
                                         char *buf, size_t size);

/* ---- What a hook can do ------------------------------------------------------ */

/* Log a number from a callback; flags as kiln_step_log, 0 = KILN_LOG_STEP. */
KILN_API void kiln_trainer_log(KilnTrainer *trainer, const char *name, double value,
                               unsigned flags);
/* Hand a histogram, an image or a text to all loggers that take such, at once. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_log_histogram(KilnTrainer *trainer,
                                                              const char *name,
                                                              const KilnHistogram *histogram,
                                                              KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_log_image(KilnTrainer *trainer, const char *name,
                                                          const KilnPixels *pixels, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_log_text(KilnTrainer *trainer, const char *name,
                                                         const char *text, KilnError *err);
/* True when a logger of this run takes them. */
typedef enum KilnLogKind { KILN_LOG_HISTOGRAMS, KILN_LOG_IMAGES, KILN_LOG_TEXTS } KilnLogKind;
KILN_API bool kiln_trainer_takes(const KilnTrainer *trainer, KilnLogKind kind);
/* End training after this batch (Lightning's should_stop); `reason` is copied
 * into summary.json and the log. */
KILN_API void kiln_trainer_stop(KilnTrainer *trainer, const char *reason);
/* The same for this session alone, because its time is over, say: a run that goes on from the
 * checkpoint trains on. */
KILN_API void kiln_trainer_pause(KilnTrainer *trainer, const char *reason);
/* Leave out the rest of this epoch (Lightning's -1 from on_train_batch_start): called in
 * on_train_batch_start that batch is not trained, and has no on_train_batch_end; called
 * elsewhere it is the batch that would come next. There is no validation in this epoch; its end
 * is as usual. Gradients that wait for their group make a step. */
KILN_API void kiln_trainer_skip_epoch(KilnTrainer *trainer);
/* Leave out the batch whose on_train_batch_start is running: it is not trained, counts for no
 * optimizer step and has no on_train_batch_end, but it is one of the epoch's batches. */
KILN_API void kiln_trainer_skip_batch(KilnTrainer *trainer);
/* "epoch=004-step=4690" for where training is now; returns buf. */
KILN_API const char *kiln_trainer_checkpoint_name(const KilnTrainer *trainer, char *buf,
                                                  size_t size);
/* Ask for a checkpoint of this moment, as folder `name` below the run's checkpoints/. It is taken
 * when all hooks of the moment have been called, so that it holds what each callback then knows;
 * training goes on as soon as it is copied, and it is published, whole or not at all, in the
 * background. Links and removals that are asked for are done behind it, in that order. What goes
 * wrong there is the error of the next save, or of the run's end.
 *
 * `owner` (the callback that asks; NULL: nobody) keeps the folder. Several may keep one: it is
 * removed when nobody does any more and no link points to it, and not made when that is so when
 * all have been heard.
 * `flags`: KILN_SAVE_WEIGHTS, or 0. */
typedef enum KilnSaveFlags {
    /* Without what resuming needs: it can be tested and predict. Asked for under the same name
     * both ways it is whole. */
    KILN_SAVE_WEIGHTS = 1
} KilnSaveFlags;
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_save(KilnTrainer *trainer,
                                                     const KilnInstance *owner, const char *name,
                                                     unsigned flags, KilnError *err);
/* Whether saving under `name` would replace a checkpoint of an earlier moment that another than
 * `owner` keeps. */
KILN_API bool kiln_trainer_would_replace(const KilnTrainer *trainer, const KilnInstance *owner,
                                         const char *name);
/* Point checkpoints/<link> ("best", "last") to checkpoint `name`, atomically. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_link(KilnTrainer *trainer, const char *link,
                                                     const char *name, KilnError *err);
/* The checkpoint that checkpoints/<link> points to, with what was asked for, written to `buf`;
 * false when there is no such link. */
KILN_API bool kiln_trainer_link_target(const KilnTrainer *trainer, const char *link, char *buf,
                                       size_t size);
/* `owner` keeps checkpoint `name` no more; fine when there is none. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_delete(KilnTrainer *trainer,
                                                       const KilnInstance *owner, const char *name,
                                                       KilnError *err);
/* For on_fit_start of a run that goes on: `owner` keeps checkpoint `name`. When it is not in this
 * run's folder it is brought over from the one that the run goes on from; false when it is in
 * neither. */
KILN_API bool kiln_trainer_claim(KilnTrainer *trainer, const KilnInstance *owner, const char *name);
/* Likewise, behind that: folders of this run that `owner` saved and did not adopt are in the way
 * (the run was killed before it removed them, or goes on from an earlier checkpoint) and go, once
 * everybody who saved them says so. Others are not touched. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_prune(KilnTrainer *trainer,
                                                      const KilnInstance *owner, KilnError *err);
/* A line for the user and train.log. */
KILN_API void kiln_trainer_print(KilnTrainer *trainer, const char *format, ...) KILN_PRINTF(2, 3);

/* Text for the output of the command, or of the program around the run (KilnRunEnv.output), where
 * others read it; KILN_E_MISSING when that takes none. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_output(KilnTrainer *trainer, const char *text,
                                                       KilnError *err);

/* A second set of all floating-point values of the network, parameters and buffers:
 * an average of them. Validation and test use it in the weights' place, and
 * checkpoints hold it as model.safetensors, with the weights that training goes on
 * from beside it. One at most. */
typedef struct KilnAveragedWeights KilnAveragedWeights;
/* Make it, in `setup`; it starts as a copy of the weights. Owned by the trainer. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_averaged_new(KilnTrainer *trainer,
                                                             KilnAveragedWeights **ret,
                                                             KilnError *err);
/* Record shadow += weight * (weights - shadow), in `record_update`, with `buffers` for running
 * statistics; both are scalar tensors. */
KILN_API void kiln_averaged_lerp(KilnAveragedWeights *shadow, KilnTensor *weight,
                                 KilnTensor *buffers);
/* The same at once, for hooks between steps: parameters and running statistics. */
KILN_API void kiln_averaged_average(KilnAveragedWeights *shadow, double weight);
/* Whether validation, test and checkpoints take it for the weights, as they do from the
 * beginning. */
KILN_API void kiln_averaged_use(KilnAveragedWeights *shadow, bool used);
/* Go through the training data once, without gradients, and make the running statistics of
 * batch normalization the means over its batches (torch.optim.swa_utils.update_bn): those of
 * the shadow, with its weights, where one is used. Between epochs; the same bytes whenever it
 * is done with the same weights. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_update_statistics(KilnTrainer *trainer,
                                                                  KilnError *err);

/* The learning rate of the steps to come, in the schedule's place, before the factors of
 * groups; a negative one: the schedule's again. No checkpoint keeps it. */
KILN_API void kiln_trainer_set_learning_rate(KilnTrainer *trainer, double lr);
/* What the schedule (of the first optimizer) gives the next step. */
KILN_API double kiln_trainer_scheduled_rate(const KilnTrainer *trainer);
/* Put a parameter back to the value that the run began with. */
KILN_API KILN_NODISCARD KilnStatus kiln_trainer_rewind(KilnTrainer *trainer, KilnParam *param,
                                                       KilnError *err);

/* The screen, as far as a callback may use it. */
typedef struct KilnConsole {
    bool terminal; /* false: line-wise output, no cursor movement, no colours */
    bool colour;
    bool utf8;    /* it shows characters outside of ASCII */
    bool verbose; /* lines about the run's own business are wanted, too */
    int width;
    void *ctx;
    /* Write text as it is. */
    void (*write)(void *ctx, const char *text);
    /* The width as it is now, for a terminal whose window may change; NULL: it stays. */
    int (*measure)(void *ctx);
} KilnConsole;
/* Never NULL; `write` may be a sink. */
KILN_API const KilnConsole *kiln_trainer_console(const KilnTrainer *trainer);
/* Text, of one or more lines, that stands below everything printed until it is replaced or
 * cleared (NULL): progress bars. Ignored when the console is no terminal. */
KILN_API void kiln_trainer_status_line(KilnTrainer *trainer, const char *text);

/* The layers of the network as the trainer saw them when it recorded a
 * training step on shapes alone: one per layer that owns parameters or not. */
typedef struct KilnLayerInfo {
    const char *path; /* "layer1.0.conv1" */
    const char *op;   /* last operation recorded under that path */
    KilnShape output; /* with the batch axis */
    int64_t parameters;
    int64_t trained;       /* of these; the rest is frozen */
    double flops;          /* of products and convolutions, forward, of the whole batch */
    double flops_backward; /* for the gradients */
} KilnLayerInfo;
KILN_API size_t kiln_trainer_layers(KilnTrainer *trainer, const KilnLayerInfo **ret);
/* They as a table, lines that end with a newline, `width` columns wide where that is enough for
 * the numbers. Layers deeper than `max_depth` are summed up in what they are part of; -1: none.
 * Owned by the caller (free); NULL when memory is out. */
KILN_API char *kiln_trainer_layer_table(const KilnTrainer *trainer, int64_t max_depth, int width);

/* ---- Callbacks and loggers ---------------------------------------------------- */

typedef KilnStatus KilnHook(KilnInstance *self, KilnTrainer *trainer, KilnError *err);

/* A training step while it is recorded. A step is recorded whole before it runs: hooks
 * between its parts may record operations of their own and log tensors (kiln_step_log),
 * but there are no values yet; those are there in on_train_batch_end. */
typedef struct KilnRecording {
    KilnStep *step;
    KilnTensor *loss;      /* what training_step returned; NULL in on_before_optimizer_step of
                            * a group that ends without a batch */
    KilnTensor *gradients; /* of all parameters, flat: a variable, summed over the group's
                            * batches so far; NULL in front of the gradients */
    bool steps;            /* this batch ends its group: the parameters are updated */
    size_t optimizer;      /* by which */
} KilnRecording;
typedef void KilnRecordHook(KilnInstance *self, KilnTrainer *trainer, const KilnRecording *at);

/* When a callback's hooks run: those of lower ranks first, a module's own behind the
 * plain callbacks'; within a rank in the order of the config. */
typedef enum KilnRank {
    KILN_RANK_PLAIN,
    KILN_RANK_MONITOR, /* it watches what others logged (early_stopping) */
    KILN_RANK_SAVES    /* it saves checkpoints, which must hold the others' state of the same
                        * moment; what the others logged went to the loggers */
} KilnRank;

/* From `epoch` on, `batches` batches make an optimizer step. */
typedef struct KilnAccumulation {
    int64_t epoch, batches;
} KilnAccumulation;

/* Every hook is optional. A hook that fails stops the run with its error. Also the hooks of a
 * module (KilnModuleOps.hooks). The recorded hooks and `on_train_...` belong to fit alone. */
struct KilnCallbackOps {
    /* Before fit or test: everything is built, nothing is written, and there is
     * no run folder yet. The place to refuse options that do not fit. */
    KilnHook *setup;
    KilnHook *on_fit_start;
    /* Around the validation batches that are run before training to see that they can be;
     * nothing they log is kept. */
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
    /* Called while a training step is recorded, also on shapes alone, before setup: in front
     * of the first gradients of a group; around the gradients of each batch; in front of
     * clipping and the update, and behind it. */
    KilnRecordHook *on_before_zero_grad;
    KilnRecordHook *on_before_backward;
    KilnRecordHook *on_after_backward;
    KilnRecordHook *on_before_optimizer_step;
    KilnRecordHook *record_update;
    /* The run ends by this error or interrupt (KILN_E_INTERRUPTED); teardown follows. */
    void (*on_exception)(KilnInstance *self, KilnTrainer *trainer, const KilnError *why);
    /* What a checkpoint must keep of this callback, and its return: behind setup, in front of
     * on_fit_start; a module's own also before it is tested or predicts. */
    void (*state_dict)(KilnInstance *self, KilnState *state);
    KilnStatus (*load_state_dict)(KilnInstance *self, const KilnState *state, KilnError *err);
    /* What does not go into numbers and tensors: files of its own, without folders, in the
     * checkpoint `dir` while it is made. They are hashed with the rest, and checked before the
     * second hook, called behind load_state_dict, sees them again. A module's are saved with
     * KILN_SAVE_WEIGHTS, too. */
    KilnStatus (*on_save_checkpoint)(KilnInstance *self, KilnTrainer *trainer, const char *dir,
                                     KilnError *err);
    KilnStatus (*on_load_checkpoint)(KilnInstance *self, KilnTrainer *trainer, const char *dir,
                                     KilnError *err);
    /* What this callback multiplies the learning rate of a parameter with in an epoch; 0: it is
     * frozen and costs no gradient, a buffer: nothing is counted into it. Asked again in each
     * epoch, and before the first for all of them: a function of the options alone. */
    double (*lr_scale)(const KilnInstance *self, const KilnParams *params, const KilnParam *param,
                       int64_t epoch);
    /* Goes with it: the next epoch behind `epoch` in which something else is frozen; -1: none. */
    int64_t (*next_freeze)(const KilnInstance *self, int64_t epoch);
    /* Bytes that it will hold besides a shadow, for the forecast. Asked before setup. */
    int64_t (*memory)(const KilnInstance *self, KilnTrainer *trainer);
    /* Called before anything of the run is built: changes options for it (tune.h). */
    KilnStatus (*tune)(KilnInstance *self, KilnTune *tune, KilnError *err);
    KilnRank rank;
    /* It is what trainer.enable_progress_bar and enable_model_summary are about. */
    bool shows_progress, shows_summary;
    /* It makes a shadow (kiln_trainer_averaged_new) when it is set up for fitting. */
    bool averages;
    bool gradient_norms; /* it asks for kiln_trainer_gradient_norms */
    /* Optional: how many batches make a step, epoch by epoch, instead of
     * trainer.accumulate_grad_batches; rising epochs. Known before training, for schedules count
     * the steps of the whole run. Returns how many there are in *ret. */
    size_t (*accumulation)(const KilnInstance *self, const KilnAccumulation **ret);
    /* Names of metrics that it logs, NULL-terminated; NULL: none. */
    const char *const *logs;
};

#endif
