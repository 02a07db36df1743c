/* Components: how one declares itself, and how it reads its options and state. A component is one C
 * file that exports one const KilnComponent. kiln/field.h has the options tables, kiln/plugin.h
 * makes a plugin of components. */
#ifndef KILN_COMPONENT_H
#define KILN_COMPONENT_H

#include "kiln/field.h"

/* ---- Components --------------------------------------------------------- */

/* An instance of a component, built from a config node: its options and state. Every function of a
 * component gets its instance as the first argument. */
typedef struct KilnInstance KilnInstance;

/* The filled and checked options struct; lives as long as the instance. */
KILN_API const void *kiln_opts(const KilnInstance *self);
/* The state struct: `state_size` zeroed bytes that belong to the component; NULL if that is 0. */
KILN_API void *kiln_state(KilnInstance *self);
/* The component's name ("resnet") and its place in the config ("task.model"). */
KILN_API const char *kiln_instance_name(const KilnInstance *self);
KILN_API const char *kiln_instance_path(const KilnInstance *self);

typedef struct KilnDataModuleOps KilnDataModuleOps;         /* data.h */
typedef struct KilnModuleOps KilnModuleOps;                 /* module.h */
typedef struct KilnModelOps KilnModelOps;                   /* model.h */
typedef struct KilnLossOps KilnLossOps;                     /* loss.h */
typedef struct KilnOptimizerOps KilnOptimizerOps;           /* module.h */
typedef struct KilnSchedulerOps KilnSchedulerOps;           /* module.h */
typedef struct KilnCallbackOps KilnCallbackOps;             /* trainer.h */
typedef struct KilnLoggerOps KilnLoggerOps;                 /* logger.h */
typedef struct KilnMetricOps KilnMetricOps;                 /* metric.h */
typedef struct KilnTransformOps KilnTransformOps;           /* image.h */
typedef struct KilnSamplerOps KilnSamplerOps;               /* loading.h */
typedef struct KilnBatchTransformOps KilnBatchTransformOps; /* loading.h */
typedef struct KilnSweeperOps KilnSweeperOps;               /* sweep.h */
typedef struct KilnLauncherOps KilnLauncherOps;             /* sweep.h */
typedef struct KilnStrategyOps KilnStrategyOps;             /* strategy.h */
typedef struct KilnTokenizerOps KilnTokenizerOps;           /* tokenizer.h */
typedef struct KilnPrunerOps KilnPrunerOps;                 /* sweep.h */

typedef struct KilnComponent {
    KilnKind kind;
    const char *name;        /* snake_case, unique within its kind */
    const char *summary;     /* one line */
    const KilnField *fields; /* KILN_FIELDS(table); closed by KILN_FIELD_END. NULL: no options */
    size_t n_fields;         /* rows of the table, including KILN_FIELD_END */
    size_t opts_size;
    size_t state_size;
    /* Optional. Checks conditions on several options: while a config is checked, once every option
     * is valid by itself, and again before init. `opts` is the options struct, in which components
     * are NULL and lists of them empty. On failure *ret_option may name the wrong option ("size",
     * "betas[1]", "window.length"; static text), whose origin the message then gets; the message
     * says what is wrong and what was expected, without the option's name. */
    KilnStatus (*check)(const void *opts, const char **ret_option, KilnError *err);
    /* Optional. Called once, with options and children set; must not touch files or data. */
    KilnStatus (*init)(KilnInstance *self, KilnError *err);
    /* Optional. Free what the component allocated. Must accept a zeroed or incomplete state, since
     * it is also called if init failed. */
    void (*release)(KilnInstance *self);
    union {
        const KilnDataModuleOps *datamodule;
        const KilnModuleOps *module;
        const KilnModelOps *model;
        const KilnLossOps *loss;
        const KilnOptimizerOps *optimizer;
        const KilnSchedulerOps *scheduler;
        const KilnCallbackOps *callback;
        const KilnLoggerOps *logger;
        const KilnMetricOps *metric;
        const KilnTransformOps *transform;
        const KilnSamplerOps *sampler;
        const KilnBatchTransformOps *batch_transform;
        const KilnSweeperOps *sweeper;
        const KilnLauncherOps *launcher;
        const KilnStrategyOps *strategy;
        const KilnTokenizerOps *tokenizer;
        const KilnPrunerOps *pruner;
    } ops;
} KilnComponent;

/* The descriptor that an instance was built from. */
KILN_API const KilnComponent *kiln_instance_component(const KilnInstance *self);

#endif
