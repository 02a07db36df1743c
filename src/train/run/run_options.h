/* The options of a run that belong to no component: root, trainer.*, lora.*,
 * kiln.run.*. */
#ifndef KILN_TRAIN_RUN_RUN_OPTIONS_H
#define KILN_TRAIN_RUN_RUN_OPTIONS_H

#include "kiln/embed/run.h"

/* The options at the root. Components are built separately and are NULL here. */
typedef struct KilnRootOptions {
    KilnInstance *task, *datamodule;
    KilnInstance **callbacks, **logger;
    size_t callbacks_count, logger_count;
    int64_t seed;
    char *ckpt_path;
    char *weights; /* NULL: none */
    bool weights_strict;
    KilnPairStr *weights_of; /* files by the prefix of the parameters that they are for */
    size_t weights_of_count;
    bool test;
} KilnRootOptions;

/* lora.*: adapters of linear layers (train/lora/adapters.h). */
typedef struct KilnLoraOptions {
    char **targets; /* patterns of weights */
    size_t targets_count;
    int64_t *r;    /* NULL: 8, or that of `weights` */
    double *alpha; /* likewise */
    double dropout;
    char **train; /* patterns of parameters that train besides */
    size_t train_count;
    char *weights; /* NULL: none */
} KilnLoraOptions;

typedef enum KilnProfiler { KILN_PROFILER_SIMPLE } KilnProfiler;
typedef enum KilnClip { KILN_CLIP_NORM, KILN_CLIP_VALUE } KilnClip;

typedef struct KilnTrainerOptions {
    KilnInstance *strategy;          /* NULL here: train/ranks/ranks.c builds it */
    int64_t max_epochs, max_steps;   /* -1: no limit */
    int64_t *min_epochs, *min_steps; /* NULL: none */
    double *max_time;                /* seconds; NULL: no limit */
    KilnQuantity limit_train_batches, limit_val_batches, limit_test_batches, limit_predict_batches;
    KilnQuantity overfit_batches, fast_dev_run; /* 0: no */
    KilnQuantity val_check_interval;
    int64_t *check_val_every_n_epoch;          /* NULL: batches are counted over epochs */
    int64_t num_sanity_val_steps;              /* -1: all */
    int64_t log_every_n_steps;                 /* 0: never */
    int64_t reload_dataloaders_every_n_epochs; /* 0: never */
    char *default_root_dir;
    int64_t accumulate_grad_batches;
    bool enable_checkpointing, enable_progress_bar, enable_model_summary, barebones;
    int64_t accelerator;
    int64_t deterministic;
    int64_t threads; /* 0: all that the process may use */
    int64_t num_workers;
    int64_t convolution;             /* KilnConvolution */
    int64_t *profiler;               /* KilnProfiler; NULL: none */
    int64_t precision;               /* KilnPrecision */
    double *gradient_clip_val;       /* NULL or 0: none */
    int64_t gradient_clip_algorithm; /* KilnClip */
    bool track_grad_norm;
    char **recompute; /* patterns of layers' paths */
    size_t recompute_count;
    int64_t *passes_off; /* KilnPassNumber */
    size_t passes_off_count;
    int64_t plan_cache; /* bytes */
    bool detect_anomaly;
} KilnTrainerOptions;

typedef struct KilnRunDirOptions {
    char *dir;
} KilnRunDirOptions;

/* All options, after fast_dev_run, overfit_batches and barebones have changed others; owned by this
 * struct. */
typedef struct KilnOptions {
    bool logs;     /* loggers are built */
    bool monitors; /* callbacks that monitor a metric are built */
    bool tracks;   /* values that components log are recorded */
    KilnRootOptions *root;
    KilnTrainerOptions *trainer;
    KilnLoraOptions *lora;
    KilnRunDirOptions *run;
} KilnOptions;

/* Read them from a checked config. */
KILN_NODISCARD KilnStatus kiln_options_read(const KilnConfig *config, KilnOptions *ret,
                                            KilnError *err);
/* Accepts a zeroed struct. */
void kiln_options_release(KilnOptions *options);

#endif
