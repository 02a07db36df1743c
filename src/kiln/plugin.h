/* Plugins: components in a shared object. A plugin is one or more files of components, compiled
 * with -DKILN_BUILD_PLUGIN into a .so that exports kiln_plugin_v1 (KILN_PLUGIN_DEFINE).
 *
 * A plugin works with every later kiln of the same KILN_ABI. So within an ABI:
 *  - What a component defines gets new members at its end only: KilnComponent, KilnField,
 *    KilnTensorSpec, KilnSignature, KilnModelUse, KilnCustomOp, and the tables of functions. A
 *    plugin records their sizes; members that it lacks count as 0.
 *  - So do the structs that only kiln makes: KilnAxis, KilnBatchView, KilnConsole,
 *    KilnDataContext, KilnDataSpec, KilnDataset, KilnHistory, KilnLaunch, KilnLayerInfo,
 *    KilnLoading, KilnLogRow, KilnLogRun, KilnModelIo, KilnObjective, KilnOpCall,
 *    KilnOpGradient, KilnOptimizerCommon, KilnOwnOptions, KilnProgress, KilnRankOptions,
 *    KilnRawSample, KilnRawSet, KilnRecording, KilnSample, KilnSampling, KilnSpace, KilnSuggestion,
 *    KilnSweepOptions, KilnTable, KilnTrial, KilnTrialReport. Components use them through the
 *    pointers that they get, and never copy them.
 *  - Structs of kiln/slurm/, parts of one launcher, are those of one version of kiln: a plugin that
 *    uses them is compiled for it.
 *  - All other structs stay as they are. Extensions get a struct and a function of their own.
 *  - Functions keep their types and meanings, enumerators and macros their values. New ones are
 *    added; a new kind of component and a new type of option are the last. */
#ifndef KILN_PLUGIN_H
#define KILN_PLUGIN_H

#include "kiln/component.h"
#include "kiln/data.h"
#include "kiln/image.h"
#include "kiln/logger.h"
#include "kiln/loss.h"
#include "kiln/metric.h"
#include "kiln/strategy.h"
#include "kiln/sweep.h"
#include "kiln/tokenizer.h"
#include "kiln/trainer.h"

/* Raised by any other change; plugins must then be compiled again. */
#define KILN_ABI 7u
#define KILN_PLUGIN_MAGIC 0x4b494c4eu /* "KILN" */

/* A list of components as its file saw their structs. */
typedef struct KilnPluginInfo {
    uint32_t magic;
    uint32_t abi;
    uint32_t size;           /* sizeof(KilnPluginInfo) */
    uint32_t component_size; /* sizeof(KilnComponent), and so on */
    uint32_t field_size;
    uint32_t tensor_spec_size;
    uint32_t signature_size;
    uint32_t model_use_size;
    const char *version;                    /* KILN_VERSION */
    const uint32_t *ops_sizes;              /* sizeof of each kind's table of functions */
    uint32_t n_kinds;                       /* length of `ops_sizes` */
    uint32_t n_components;                  /* length of `components`, including NULL */
    const KilnComponent *const *components; /* NULL-terminated */
} KilnPluginInfo;

/* The sizes of all kinds' tables. */
#define KILN_OPS_SIZES                                                                             \
    {                                                                                              \
        [KILN_KIND_DATAMODULE] = sizeof(KilnDataModuleOps),                                        \
        [KILN_KIND_MODULE] = sizeof(KilnModuleOps), [KILN_KIND_MODEL] = sizeof(KilnModelOps),      \
        [KILN_KIND_LOSS] = sizeof(KilnLossOps), [KILN_KIND_OPTIMIZER] = sizeof(KilnOptimizerOps),  \
        [KILN_KIND_SCHEDULER] = sizeof(KilnSchedulerOps),                                          \
        [KILN_KIND_CALLBACK] = sizeof(KilnCallbackOps),                                            \
        [KILN_KIND_LOGGER] = sizeof(KilnLoggerOps), [KILN_KIND_METRIC] = sizeof(KilnMetricOps),    \
        [KILN_KIND_TRANSFORM] = sizeof(KilnTransformOps),                                          \
        [KILN_KIND_SAMPLER] = sizeof(KilnSamplerOps),                                              \
        [KILN_KIND_BATCH_TRANSFORM] = sizeof(KilnBatchTransformOps),                               \
        [KILN_KIND_SWEEPER] = sizeof(KilnSweeperOps),                                              \
        [KILN_KIND_LAUNCHER] = sizeof(KilnLauncherOps),                                            \
        [KILN_KIND_STRATEGY] = sizeof(KilnStrategyOps),                                            \
        [KILN_KIND_TOKENIZER] = sizeof(KilnTokenizerOps),                                          \
        [KILN_KIND_PRUNER] = sizeof(KilnPrunerOps),                                                \
    }

/* Defines `name`, a function that describes `list`, a NULL-terminated array (no pointer to one) of
 * const KilnComponent pointers. */
#define KILN_PLUGIN_FUNCTION(name, list)                                                           \
    const KilnPluginInfo *name(void)                                                               \
    {                                                                                              \
        static const uint32_t sizes[] = KILN_OPS_SIZES;                                            \
        static const KilnPluginInfo info = {                                                       \
            .magic = KILN_PLUGIN_MAGIC,                                                            \
            .abi = KILN_ABI,                                                                       \
            .size = sizeof(KilnPluginInfo),                                                        \
            .component_size = sizeof(KilnComponent),                                               \
            .field_size = sizeof(KilnField),                                                       \
            .tensor_spec_size = sizeof(KilnTensorSpec),                                            \
            .signature_size = sizeof(KilnSignature),                                               \
            .model_use_size = sizeof(KilnModelUse),                                                \
            .version = KILN_VERSION,                                                               \
            .ops_sizes = sizes,                                                                    \
            .n_kinds = KILN_KIND_COUNT,                                                            \
            .n_components = sizeof(list) / sizeof((list)[0]),                                      \
            .components = list,                                                                    \
        };                                                                                         \
        return &info;                                                                              \
    }

/* Emits the one symbol that a plugin exports. */
#define KILN_PLUGIN_DEFINE(list)                                                                   \
    KILN_API const KilnPluginInfo *kiln_plugin_v1(void);                                           \
    KILN_API KILN_PLUGIN_FUNCTION(kiln_plugin_v1, list)

#endif
