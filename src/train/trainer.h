/* A trainer: everything that one run has, as sub-structs by subject. Each is declared in the header
 * of the file that owns it. assemble.c builds a trainer, loop/ runs it, checkpoint/ saves and loads
 * it; trainer.c is what components may read and change of it (kiln/trainer.h). */
#ifndef KILN_TRAIN_TRAINER_H
#define KILN_TRAIN_TRAINER_H

#include "base/system/journal.h"
#include "base/system/machine.h"
#include "nn/params.h"
#include "train/analysis/batch_stats.h"
#include "train/analysis/memory_estimate.h"
#include "train/checkpoint/save_requests.h"
#include "train/loader/splits.h"
#include "train/loop/evaluate.h"
#include "train/loop/fit.h"
#include "train/loop/hooks.h"
#include "train/loop/loop_schedule.h"
#include "train/loop/position.h"
#include "train/loop/run_state.h"
#include "train/loop/signals.h"
#include "train/loop/stop_monitor.h"
#include "train/optim/optimizers.h"
#include "train/report/console.h"
#include "train/report/live_status.h"
#include "train/report/loggers.h"
#include "train/report/picture_names.h"
#include "train/lora/adapters.h"
#include "train/ranks/ranks.h"
#include "train/report/timing.h"
#include "train/run/preparation.h"
#include "train/run/run_options.h"
#include "train/run/run_predict.h"
#include "train/step/fit_batch.h"
#include "train/step/module_step.h"

struct KilnTrainer {
    /* The job */
    KilnConfig *config;
    const KilnRunEnv *env;
    KilnOptions options;
    KilnStage stage;
    KilnSplit split; /* that an evaluation or prediction without a fit reads */
    KilnRanks ranks;
    KilnProcessors processors;
    int threads;

    /* Components */
    KilnInstance *module, *datamodule;
    bool no_callbacks;        /* the config's are not built */
    KilnInstance **callbacks; /* by rank */
    size_t n_callbacks;
    KilnHooks hooks;
    KilnLoggers loggers;

    /* Data */
    KilnSplits data;
    const char *checkpoint;           /* the folder that is loaded; borrowed. NULL: none */
    const char *fitted;               /* KilnDataContext.fitted; borrowed from a checkpoint */
    const json_t *saved_class_counts; /* of an evaluated checkpoint; borrowed. NULL: none */
    KilnPredictInput predict;

    /* The network and its optimizers */
    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    KilnAdapters *adapters; /* NULL: none */
    KilnStep step;
    KilnOptimizerState optimizers[KILN_MAX_OPTIMIZERS];
    size_t n_optimizers;
    KilnRateOverride lr_override;
    KilnAveragedWeights *averaged; /* NULL: none */
    KilnLayerInfo *layers;
    size_t n_layers;
    KilnMemoryEstimate memory;

    /* The loops */
    KilnPhase phase;
    KilnLoopSchedule schedule; /* of a fit */
    KilnPosition at;           /* of training */
    KilnFitLoop fit;
    KilnTrainBatch batch;
    KilnEvalPosition eval;
    KilnRunState state;
    KilnStopMonitor stop_monitor;

    /* Checkpoints */
    KilnSaveRequests saves;
    KilnSaveSignal save_signal;
    KilnNewestCheckpoint newest; /* of this run */
    uint64_t train_index;        /* checksum of the training samples' names and labels */

    /* The run folder */
    char *run_dir;        /* absolute; NULL: none */
    char *config_yaml;    /* the job's config, resolved */
    bool inferred;        /* the config has options that the datamodule inferred */
    char *origins;        /* where its values come from, of a run that is resumed or that a sweep
                           * prepared; NULL: the config itself knows */
    char *resumed_from;   /* the checkpoint folder, absolute; NULL: none */
    KilnJournal *journal; /* NULL: none */

    /* Measurements and reports */
    KilnMetrics *metrics;
    KilnBatchStats batch_stats;
    KilnTiming timing;
    KilnOutput output;
    KilnLiveStatus live;
    KilnPoll poll; /* of components that prepare the run */
    KilnPreparation preparation;
    KilnPictureNames picture_names;
};

/* KilnCallbackOps.log_flags of the value `name`; 0: no callback declares it. */
unsigned kiln_trainer_declared_flags(const KilnTrainer *trainer, const char *name);

#endif
