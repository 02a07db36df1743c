/* The inside of a KilnTrainer: everything that one run has. Who does what:
 * assemble.c builds it, fit.c and evaluate.c run it, checkpoint*.c save
 * and load it, trainer.c is what components see of it. */
#ifndef KILN_TRAIN_TRAINER_H
#define KILN_TRAIN_TRAINER_H

#include <pthread.h>

#include "base/system/journal.h"
#include "base/system/machine.h"
#include "nn/parameter_groups.h"
#include "nn/params.h"
#include "train/report/console.h"
#include "train/analysis/memory_estimate.h"
#include "train/analysis/batch_stats.h"
#include "train/report/live_page.h"
#include "train/report/loggers.h"
#include "train/run/run_options.h"
#include "train/loop/loop_schedule.h"
#include "train/loop/position.h"
#include "train/run/preparation.h"
#include "train/checkpoint/save_requests.h"
#include "train/loop/module_step.h"

/* Training steps measured so far; the newest KILN_STEP_TIMES are kept. */
enum { KILN_STEP_TIMES = 1 << 15 };
typedef struct KilnTiming {
    double start;       /* of the run */
    double loop_s;      /* spent in training batches, data and hooks included */
    double waited_s;    /* of that, waiting for data */
    double copied_s;    /* training stood still while checkpoints were copied, */
    double written_s;   /* and until an earlier one was on disk */
    int64_t copies;     /* checkpoints */
    int64_t samples;    /* trained in loop_s */
    double trained;     /* when the training of this session began */
    double validated;   /* when validation was over last */
    double phase_start; /* of the loop that runs now */
    int64_t phase_samples;
    float *step_ms;
    int64_t steps; /* measured, kept or not */
} KilnTiming;

/* What the live page is told. */
typedef struct KilnLiveStatus {
    KilnLivePage *page;   /* NULL: none */
    int32_t last_phase;   /* KilnLivePhase; KILN_LIVE_FIT: as the loops say */
    double told;          /* when the rates were told last */
    bool lost;            /* the user knows that the page is */
    int64_t first_batch;  /* batches done when this session began */
    double samples_per_s; /* of training */
    double loss;          /* of the last training batch */
} KilnLiveStatus;

/* The thread that reports a request to stop while a batch runs. */
typedef struct KilnStopMonitor {
    pthread_t thread;
    pthread_mutex_t lock; /* of `ends` */
    pthread_cond_t wakes;
    bool runs, ends;
    bool saves; /* the run is to end with a checkpoint */
} KilnStopMonitor;

/* Who is to be called, hook by hook, in order. */
typedef struct KilnHookCall {
    KilnHook *hook;
    KilnInstance *who;
    double seconds; /* with trainer.profiler: that it took, */
    int64_t runs;   /* and how often it was called */
} KilnHookCall;
typedef struct KilnHookList {
    KilnHookCall *calls;
    size_t n, n_saving; /* the last n_saving of the n save checkpoints */
} KilnHookList;
/* KilnCallbackOps begins with its plain hooks. */
enum { KILN_HOOK_COUNT = offsetof(KilnCallbackOps, on_before_zero_grad) / sizeof(KilnHook *) };
typedef struct KilnHooks {
    KilnHookCall *calls;
    KilnHookList lists[KILN_HOOK_COUNT];
    struct {
        const KilnCallbackOps *ops;
        KilnInstance *who;
    } * all; /* callbacks, and the module among them if it has hooks, in order */
    size_t n_all;
} KilnHooks;

/* The sets of samples of a split. */
typedef struct KilnSplitSets {
    struct {
        const char *name; /* "": what is logged of it has no name behind */
        KilnDataset dataset;
        KilnLoader *loader; /* NULL: not asked for yet */
    } list[KILN_MAX_SETS];
    size_t n;
    bool opened; /* the datasets were asked for */
} KilnSplitSets;

/* One optimizer of the run, with what it keeps. */
typedef struct KilnOptimizerState {
    KilnOptimizerUse use;
    const char *slot_names[KILN_MAX_SLOTS]; /* NULL: a slot that this optimizer leaves out */
    /* Each as large as all parameters, of their type; what is no parameter of this optimizer is
     * never written, and so takes no memory. */
    void *slots[KILN_MAX_SLOTS];
    size_t n_slots;
    float hyper[KILN_MAX_HYPER];
    KilnSegments runs;
    float *scales; /* the rates of the runs without what callbacks make of them (learning_rates.c);
                      NULL */
    int64_t updates;      /* made since the start */
    double rate;          /* of the last one */
    bool monitors_higher; /* of the metric that its schedule follows larger values are better */
} KilnOptimizerState;

/* How gradients are limited; limit 0: not at all. */
typedef struct KilnClipping {
    double limit;
    bool by_norm;
} KilnClipping;

struct KilnTrainer {
    KilnConfig *config;
    const KilnRunEnv *env;
    KilnOptions options;
    char *config_yaml; /* the job's config, resolved */
    KilnProcessors processors;
    int threads;

    KilnInstance *module, *datamodule;
    KilnInstance **callbacks; /* by rank */
    size_t n_callbacks;
    KilnLoggers loggers;
    KilnHooks hooks;
    KilnDataSpec spec, train_spec; /* what samples are, and what they are in training batches */
    KilnUnreadSample *unread;      /* of what is predicted, since the last batch's end */
    size_t n_unread, unread_room;
    bool unlabelled; /* what is predicted: the bytes of its labels mean nothing */
    KilnStage stage;
    KilnSplit split; /* without a fit: what is evaluated or predicted */
    KilnSplitSets sets[KILN_SPLIT_COUNT];
    int64_t loaded_epoch; /* for which they were loaded */
    KilnLoading loading;
    bool reported_bottleneck; /* that it is the bottleneck */
    int64_t batch_size;

    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    KilnOptimizerState optimizers[KILN_MAX_OPTIMIZERS];
    size_t n_optimizers;
    KilnAveragedWeights *averaged; /* NULL: none */
    KilnStep step;
    KilnLayerInfo *layers;
    size_t n_layers;
    KilnMemoryEstimate memory;

    KilnMetrics *metrics;
    KilnOutput output;
    KilnPoll poll; /* for what prepares the run */
    KilnPreparation preparation;
    KilnTiming timing;
    KilnLiveStatus live;
    KilnStopMonitor watch;
    KilnBatchStats batch_stats;
    char *run_dir;      /* absolute; NULL: none */
    char *origins;      /* what tells where values came from, of a run that goes on or was prepared
                         * by a sweep; NULL: nothing */
    char *resumed_from; /* the checkpoint folder, absolute; NULL: none */

    KilnPhase phase;
    KilnPosition at;
    KilnLoopSchedule schedule;        /* of a fit */
    int64_t eval_batch, eval_batches; /* of all sets */
    size_t eval_set;                  /* which one is evaluated */
    bool skips_epoch;                 /* the rest of this epoch is left out */
    bool rate_is_set;                 /* set_rate is in the schedules' place */
    double set_rate;
    bool in_batch; /* a value logged now belongs to the step that makes at.step `batch_step` */
    int64_t batch_step;
    bool interrupted;
    bool params_invalid; /* an update went wrong: the parameters are not those of a whole step */
    bool save_deferred, save_later; /* no checkpoint now: what was asked for is saved behind it */
    bool failing; /* the run ends with an error; what is saved is saved as well as can be */
    bool paused;  /* should_stop is about this session alone */
    char stop_reason[512];
    KilnSaveRequests saves;
    uint64_t train_index; /* checksum of the names and labels of the samples it began with */
    KilnJournal *journal; /* of the run folder; NULL: none */
    KilnPosition saved;   /* of the newest checkpoint of this run */
    char saved_name[KILN_CHECKPOINT_NAME]; /* "" : none yet */
};

/* ---- assemble.c ---------------------------------------------------------------- */

/* Build every part for `stage` and record its steps for their shapes, so that
 * whatever does not fit is found before anything is written. `remembered` as
 * in KilnDataContext; without it prediction is of trainer->split, as evaluation. Beside that,
 * trainer->threads, when it is not 0, holds where the config leaves their number open; the rest
 * of the trainer is made here. */
KILN_NODISCARD KilnStatus kiln_trainer_assemble(KilnTrainer *trainer, KilnConfig *config,
                                                const KilnRunEnv *env, KilnStage stage,
                                                const KilnDataSpec *remembered, KilnError *err);
/* Its two halves: everything on shapes alone, with a forecast when it is for fitting;
 * then, if that fits, the memory that training needs, filled as it starts. */
KILN_NODISCARD KilnStatus kiln_trainer_dry_build(KilnTrainer *trainer, KilnConfig *config,
                                                 const KilnRunEnv *env, KilnStage stage,
                                                 const KilnDataSpec *remembered, KilnError *err);
KILN_NODISCARD KilnStatus kiln_trainer_allocate(KilnTrainer *trainer, KilnError *err);
/* Accepts a zeroed trainer. */
void kiln_trainer_release(KilnTrainer *trainer);
/* ---- splits.c ------------------------------------------------------------------------- */

/* Ask the datamodule for its data, and how it is loaded. */
KILN_NODISCARD KilnStatus kiln_splits_set_up(KilnTrainer *trainer, const KilnDataSpec *remembered,
                                             KilnError *err);
/* In front of an epoch, or where a run goes on within it: have the datamodule load anew, if it
 * was not yet as that epoch wants it. Loaders of before are gone then. */
KILN_NODISCARD KilnStatus kiln_splits_reload(KilnTrainer *trainer, KilnError *err);
void kiln_splits_release(KilnTrainer *trainer);
/* Make sure that the datasets of a split are there. */
KILN_NODISCARD KilnStatus kiln_trainer_open_split(KilnTrainer *trainer, KilnSplit split,
                                                  KilnError *err);
/* The loader of a set, made when it is first asked for; NULL when the set is empty or limited
 * to nothing. Its split is open. */
KILN_NODISCARD KilnStatus kiln_trainer_loader(KilnTrainer *trainer, KilnSplit split, size_t set,
                                              KilnLoader **ret, KilnError *err);
/* What the loader of a set is made from. */
KilnLoaderSpec kiln_trainer_loader_spec(KilnTrainer *trainer, KilnSplit split, size_t set);
/* A batch without bytes, as large as the first of that set. */
KilnBatch kiln_trainer_shape_batch(const KilnTrainer *trainer, KilnSplit split, size_t set);
/* Batches of a set, with its limit; and of all sets of a split. */
int64_t kiln_trainer_set_batches(const KilnTrainer *trainer, KilnSplit split, size_t set);
int64_t kiln_trainer_split_batches(const KilnTrainer *trainer, KilnSplit split);
/* Samples of the batches of a set. */
int64_t kiln_trainer_set_samples(const KilnTrainer *trainer, KilnSplit split, size_t set);
/* Samples to train on. */
int64_t kiln_trainer_train_samples(const KilnTrainer *trainer);
/* The split that this phase, no training, goes through. */
KilnSplit kiln_trainer_eval_split(const KilnTrainer *trainer, KilnPhase phase);
/* Refuse a limit of batches that does not fit a set. */
KILN_NODISCARD KilnStatus kiln_trainer_check_limit(const KilnTrainer *trainer, KilnSplit split,
                                                   size_t set, KilnError *err);

/* ---- memory_estimate.c ------------------------------------------------------------------- */

/* Take the plan of a step into trainer->forecast. */
void kiln_memory_estimate_add_plan(KilnMemoryEstimate *memory, const KilnPlan *plan);
/* Take what metrics keep of an epoch of so many samples, by the step that was recorded. */
void kiln_memory_estimate_add_metrics(KilnMemoryEstimate *memory, const KilnStep *step,
                                      int64_t samples);
/* Fill in the rest, from what is declared. */
void kiln_memory_estimate_complete(KilnTrainer *trainer);
/* Refuse, before memory is taken, what does not fit it. */
KILN_NODISCARD KilnStatus kiln_trainer_check_parameters(const KilnTrainer *trainer, KilnError *err);
KILN_NODISCARD KilnStatus kiln_trainer_check_memory(const KilnTrainer *trainer, KilnError *err);

/* ---- model_layers.c --------------------------------------------------------------------- */

/* Fill trainer->layers from the step that is recorded now. */
KILN_NODISCARD KilnStatus kiln_trainer_read_layers(KilnTrainer *trainer, KilnError *err);

/* ---- hooks.c --------------------------------------------------------------------------- */

/* Callbacks that save checkpoints come after all others, and after what these
 * logged went to the loggers. */
typedef enum KilnHookWho { KILN_HOOK_ALL, KILN_HOOK_OTHERS, KILN_HOOK_SAVING } KilnHookWho;

/* Put callbacks and module in order. */
KILN_NODISCARD KilnStatus kiln_hooks_set_up(KilnTrainer *trainer, KilnError *err);
void kiln_hooks_release(KilnHooks *hooks);
/* Call a hook of all that have it. */
#define KILN_CALL(trainer, hook, err)                                                              \
    kiln_hooks_call(trainer, offsetof(KilnCallbackOps, hook), KILN_HOOK_ALL, err)
KILN_NODISCARD KilnStatus kiln_hooks_call(KilnTrainer *trainer, size_t offset, KilnHookWho who,
                                          KilnError *err);
/* A hook of the step that is recorded now. */
#define KILN_RECORD(trainer, hook, at)                                                             \
    kiln_hooks_record(trainer, offsetof(KilnCallbackOps, hook), #hook, at)
void kiln_hooks_record(KilnTrainer *trainer, size_t offset, const char *name,
                       const KilnRecording *at);
/* "on_train_batch_end"; for numbers below KILN_HOOK_COUNT. */
const char *kiln_hook_name(size_t number);
void kiln_hooks_exception(KilnTrainer *trainer, const KilnError *why);
/* teardown, after on_exception where `status` says that the run failed by *err; returns that
 * status, or how teardown went. */
KILN_NODISCARD KilnStatus kiln_hooks_end(KilnTrainer *trainer, KilnStatus status, KilnError *err);

/* ---- stop_watch.c --------------------------------------------------------------------------- */

/* From now on report a request to stop (KilnRunEnv.stop) as soon as it is made, by a line for the
 * user and train.log; `saves`: the run then ends with a checkpoint. */
void kiln_stop_monitor_begin(KilnTrainer *trainer, bool saves);
/* Fine when it was not begun. */
void kiln_stop_monitor_end(KilnTrainer *trainer);

/* ---- stop_requests.c ------------------------------------------------------------------------- */

/* "SIGTERM"; NULL for what is no signal that stops a run. */
const char *kiln_signal_name(int number);
/* True when the caller of the run wants it to stop. */
bool kiln_trainer_interrupted(KilnTrainer *trainer);
/* Save a checkpoint when the caller asked for one; between batches, where the state is whole. */
void kiln_trainer_poll(KilnTrainer *trainer);
/* checkpoints/last is where training is now, on disk: saved unless it was. */
KILN_NODISCARD KilnStatus kiln_trainer_save_here(KilnTrainer *trainer, KilnError *err);
/* kiln_loader_next for loops: KILN_E_INTERRUPTED comes only with a wish to stop. */
KILN_NODISCARD KilnStatus kiln_trainer_next(KilnTrainer *trainer, KilnLoader *loader,
                                            KilnBatch *ret, KilnError *err);

/* ---- averaged_weights.c -------------------------------------------------------------------------
 */

/* Make the shadow equal to the weights. */
void kiln_averaged_copy(KilnAveragedWeights *averaged);
/* Put the shadow's values in the place of the weights', and the weights back. */
void kiln_averaged_show(KilnAveragedWeights *averaged);
void kiln_averaged_hide(KilnAveragedWeights *averaged);
/* The shadow's value of a parameter or buffer, f32; NULL when it has none (i64), and when the
 * shadow is not used. */
float *kiln_averaged_data(const KilnAveragedWeights *averaged, const KilnParam *param);
void kiln_averaged_free(KilnAveragedWeights *averaged);
/* Bytes that the shadow of a store takes. */
int64_t kiln_averaged_bytes(const KilnParams *params);

/* ---- learning_rates.c ---------------------------------------------------------------------------
 */

/* Whether callbacks change the rates of parameters by epoch (KilnCallbackOps.lr_scale). */
bool kiln_learning_rates_vary(const KilnTrainer *trainer);
/* Rates, and what is frozen, as an epoch has them. KILN_E_RANGE when that leaves nothing to
 * train. */
KILN_NODISCARD KilnStatus kiln_learning_rates_apply(KilnTrainer *trainer, int64_t epoch,
                                                    KilnError *err);
/* The next epoch in which something else is frozen; -1: none of this run. */
int64_t kiln_learning_rates_next(const KilnTrainer *trainer, int64_t epoch);
/* Whether any optimizer trains it in any epoch. */
bool kiln_learning_rates_trained(const KilnTrainer *trainer, const KilnParam *param);

/* ---- initial_weights.c --------------------------------------------------------------------------
 */

/* Take the weights that the root's `weights` names, if it does. */
KILN_NODISCARD KilnStatus kiln_weights_load(KilnTrainer *trainer, KilnError *err);

/* ---- optimize.c ------------------------------------------------------------------------- */

/* The optimizers and their runs; the schedules against the length of the run. */
KILN_NODISCARD KilnStatus kiln_optimize_set_up(KilnTrainer *trainer, KilnError *err);
/* Memory for their state, all zero. */
KILN_NODISCARD KilnStatus kiln_optimize_allocate(KilnTrainer *trainer, KilnError *err);
void kiln_optimize_release(KilnTrainer *trainer);
/* Whether the parameter is one of those that the optimizer trains. */
bool kiln_optimizer_has(const KilnOptimizerState *optimizer, const KilnParam *param);
/* State tensors that the optimizers keep of a parameter. */
int64_t kiln_optimize_slots(const KilnTrainer *trainer, const KilnParam *param);
/* State `slot` of a parameter that it has; the slot must be in use. */
void *kiln_optimizer_slot(const KilnOptimizerState *optimizer, size_t slot, const KilnParam *param);
/* "optimizer.exp_avg.fc.weight", with the optimizer's name in front of the slot's if it has
 * one: of the same in a checkpoint. Returns buf. */
const char *kiln_optimizer_slot_name(const KilnOptimizerState *optimizer, size_t slot,
                                     const KilnParam *param, char *buf, size_t size);
/* The learning rate that the schedule gives its next step. */
double kiln_optimize_rate(const KilnTrainer *trainer, const KilnOptimizerState *optimizer);
/* That the metrics which schedulers follow are logged. */
KILN_NODISCARD KilnStatus kiln_optimize_check(KilnTrainer *trainer, KilnError *err);
/* Record clipping and the update by optimizer at->optimizer behind the gradients. */
void kiln_optimize_record(KilnTrainer *trainer, const KilnRecording *at, KilnClipping clip);
/* Show the schedulers their metrics, those that this step logged. */
void kiln_optimize_observe(KilnTrainer *trainer);

/* ---- The loops --------------------------------------------------------------------------- */

/* Record a training batch: forward, gradients, added to those that wait, and the update of the
 * parameters when it is the optimizer's turn; returns the loss. (fit_batch.c) */
KilnTensor *kiln_fit_record(KilnTrainer *trainer, const KilnBatch *batch);
/* Record and run it, and go on to the next position. */
KILN_NODISCARD KilnStatus kiln_fit_step(KilnTrainer *trainer, const KilnBatch *batch,
                                        KilnError *err);
/* The error of a loss that is no number; the update has spoilt the parameters. */
KilnStatus kiln_fit_not_finite(KilnTrainer *trainer, double loss, KilnError *err);
/* For those who watch the run. */
void kiln_fit_tell_loss(KilnTrainer *trainer, double loss);
/* Say where training is, in front of an error of a step. */
KilnStatus kiln_fit_name_place(const KilnTrainer *trainer, KilnError *err);
/* An optimizer step from the gradients that wait, without a batch. */
KILN_NODISCARD KilnStatus kiln_fit_rest(KilnTrainer *trainer, KilnError *err);
/* A batch in the hands of a module with manual_step; (manual.c) */
KILN_NODISCARD KilnStatus kiln_manual_batch(KilnTrainer *trainer, const KilnBatch *batch,
                                            KilnError *err);
/* and without bytes: its steps are recorded and planned. */
KILN_NODISCARD KilnStatus kiln_manual_plan(KilnTrainer *trainer, const KilnBatch *batch,
                                           KilnError *err);
bool kiln_trainer_is_manual(const KilnTrainer *trainer);
void kiln_eval_record(KilnTrainer *trainer, KilnPhase phase, const KilnBatch *batch);
/* From trainer->at to the end. Ends early, with success, when should_stop or
 * interrupted is set. */
KILN_NODISCARD KilnStatus kiln_fit_loop(KilnTrainer *trainer, KilnError *err);
/* Validation or test over the whole split, or the first batches of validation (SANITY). */
KILN_NODISCARD KilnStatus kiln_eval_loop(KilnTrainer *trainer, KilnPhase phase, KilnError *err);

/* ---- live_status.c ------------------------------------------------------------------------------
 */

/* Make the live page of the run folder, which is there; the end removes it. */
void kiln_live_status_begin(KilnTrainer *trainer);
void kiln_live_status_end(KilnTrainer *trainer);
/* Tell where the loops are, `now` by kiln_clock; after each batch. */
void kiln_live_status_update(KilnTrainer *trainer, double now);
void kiln_live_status_phase(KilnTrainer *trainer, KilnLivePhase phase);

/* ---- timing_run.c -------------------------------------------------------------------------------
 */

/* What a few real steps say of how long the run takes. */
typedef struct KilnTimingRun {
    int64_t steps;     /* timed; of a run whose first step takes long it is the first */
    double step_s;     /* a training step with its data */
    double eval_s;     /* a batch of validation with its data; 0: there is none */
    double epoch_s;    /* training and validation */
    double run_s;      /* all epochs; INFINITY: no end is set */
    int64_t run_steps; /* steps of the whole run; -1: no end is set */
} KilnTimingRun;

/* Train for about so many seconds. The trainer is of no use for a run afterwards. */
KILN_NODISCARD KilnStatus kiln_trainer_timing_run(KilnTrainer *trainer, double seconds,
                                                  KilnTimingRun *ret, KilnError *err);

/* ---- time_profile.c -----------------------------------------------------------------------------
 */

/* With trainer.profiler: print what the run's time went to, and write profile.csv to
 * the run folder. */
KILN_NODISCARD KilnStatus kiln_profile_close(KilnTrainer *trainer, KilnError *err);

#endif
