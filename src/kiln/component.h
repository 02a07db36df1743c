/* Components: how one declares itself, and how it reads its options and state. A component is one C
 * file that exports one const KilnComponent. A plugin is one or more such files, compiled with
 * -DKILN_BUILD_PLUGIN into a .so that exports kiln_plugin_v1 (KILN_PLUGIN_DEFINE). kiln/field.h has
 * the options tables. */
#ifndef KILN_COMPONENT_H
#define KILN_COMPONENT_H

#include "kiln/field.h"

/* ---- Components --------------------------------------------------------- */

/* An instance of a component, built from a config node: its options and state. Every function of a
 * component gets its instance as the first argument. */
typedef struct KilnInstance KilnInstance;

/* The filled and checked options struct; lives as long as the instance. */
KILN_API const void *kiln_opts(const KilnInstance *self);
/* The state struct: `state_size` zeroed bytes that belong to the component. */
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
    } ops;
} KilnComponent;

/* The descriptor that an instance was built from. */
KILN_API const KilnComponent *kiln_instance_component(const KilnInstance *self);

/* ---- Plugins ------------------------------------------------------------ */

/* Raised with every change of a struct that components fill in or receive (KilnComponent, the
 * ...Ops, KilnFlat, ...). */
#define KILN_ABI 6u
#define KILN_PLUGIN_MAGIC 0x4b494c4eu /* "KILN" */

/* A plugin's description of itself; compared field by field with the program's. */
typedef struct KilnPluginInfo {
    uint32_t magic;
    uint32_t abi;
    uint32_t component_size;                /* sizeof(KilnComponent) as the plugin saw it */
    uint32_t field_size;                    /* sizeof(KilnField) likewise */
    const char *version;                    /* KILN_VERSION it was compiled against */
    const KilnComponent *const *components; /* NULL-terminated */
    uint32_t ops_sizes[KILN_KIND_COUNT];    /* sizeof of each kind's table of functions */
    uint32_t n_components;                  /* length of `components`, including NULL */
} KilnPluginInfo;

/* The sizes as the plugin sees them, for KilnPluginInfo. */
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
    }

/* Emits the one symbol that a plugin exports. `list`: a NULL-terminated array
 * (no pointer to one) of const KilnComponent pointers. */
#define KILN_PLUGIN_DEFINE(list)                                                                   \
    KILN_API const KilnPluginInfo *kiln_plugin_v1(void);                                           \
    KILN_API const KilnPluginInfo *kiln_plugin_v1(void)                                            \
    {                                                                                              \
        static const KilnPluginInfo info = {                                                       \
            .magic = KILN_PLUGIN_MAGIC,                                                            \
            .abi = KILN_ABI,                                                                       \
            .component_size = sizeof(KilnComponent),                                               \
            .field_size = sizeof(KilnField),                                                       \
            .version = KILN_VERSION,                                                               \
            .components = list,                                                                    \
            .ops_sizes = KILN_OPS_SIZES,                                                           \
            .n_components = sizeof(list) / sizeof((list)[0]),                                      \
        };                                                                                         \
        return &info;                                                                              \
    }

/* All known components: built-in ones and those of plugins. */
typedef struct KilnRegistry KilnRegistry;

/* A registry with the built-in components. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_registry_new(KilnRegistry **ret, KilnError *err);
/* Also unloads plugins: no instance of theirs may be alive. Accepts NULL. */
KILN_API void kiln_registry_free(KilnRegistry *registry);
/* Load a plugin and register its components. A folder conf/ beside it joins the search path after
 * the user's own. On failure nothing is registered. A wrong ABI, a missing symbol, an invalid
 * options table and a duplicate name are errors (KILN_E_PLUGIN) that name the file and the
 * difference. */
KILN_API KILN_NODISCARD KilnStatus kiln_registry_load(KilnRegistry *registry, const char *path,
                                                      KilnError *err);
/* Number of components, and the i-th in order of kind, then name. */
KILN_API size_t kiln_registry_count(const KilnRegistry *registry);
KILN_API const KilnComponent *kiln_registry_at(const KilnRegistry *registry, size_t i);
/* NULL when there is none of that kind and name. */
KILN_API const KilnComponent *kiln_registry_find(const KilnRegistry *registry, KilnKind kind,
                                                 const char *name);

#endif
