/* How a component declares itself: descriptor, options table, and what it sees
 * of itself at run time. A component is one C file that exports one const
 * KilnComponent; a plugin is one or more such files compiled with
 * -DKILN_BUILD_PLUGIN into a .so that exports kiln_plugin_v1 (KILN_PLUGIN_DEFINE). */
#ifndef KILN_COMPONENT_H
#define KILN_COMPONENT_H

#include "kiln/base.h"

/* Kinds of components. A kind's name is also its config group's usual name. */
#define KILN_KIND_TABLE(X)                                                                         \
    X(DATAMODULE, "datamodule")                                                                    \
    X(MODULE, "module")                                                                            \
    X(MODEL, "model")                                                                              \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(SCHEDULER, "scheduler")                                                                      \
    X(CALLBACK, "callback")                                                                        \
    X(LOGGER, "logger")                                                                            \
    X(TRANSFORM, "transform")                                                                      \
    X(SWEEPER, "sweeper")                                                                          \
    X(LAUNCHER, "launcher")

typedef enum KilnKind {
#define KILN_KIND_ENUM(name, text) KILN_KIND_##name,
    KILN_KIND_TABLE(KILN_KIND_ENUM)
#undef KILN_KIND_ENUM
        KILN_KIND_COUNT
} KilnKind;

/* "datamodule", "module", ... static text. */
KILN_API const char *kiln_kind_name(KilnKind kind);

/* ---- Options ------------------------------------------------------------ */

typedef enum KilnType {
    KILN_TYPE_END, /* closes a table */
    KILN_TYPE_BOOL,
    KILN_TYPE_I64,
    KILN_TYPE_F64,
    KILN_TYPE_STR,      /* any text */
    KILN_TYPE_PATH,     /* text that names a file or folder; a leading ~/ is expanded */
    KILN_TYPE_ENUM,     /* one of `choices`, stored as int64_t */
    KILN_TYPE_DURATION, /* seconds, stored as double: 90s, 1h30m, 00:15:00, or a plain number */
    KILN_TYPE_SIZE,     /* bytes, stored as int64_t: 64MiB, 2GB, 512 */
    KILN_TYPE_STRUCT,   /* a mapping with the table `fields` */
    KILN_TYPE_COMPONENT /* a node with _target_ of kind `component_kind`, or just its name */
} KilnType;

typedef enum KilnShapeOf {
    KILN_ONE,  /* one value */
    KILN_LIST, /* a sequence: member `x` is a pointer, member `x_count` a size_t */
    KILN_MAP   /* components only: a mapping from free names to components, in
                * file order; stored as a list. Null entries are left out. */
} KilnShapeOf;

typedef struct KilnChoice {
    const char *name; /* NULL closes the list */
    int64_t value;
} KilnChoice;

/* One option. Write rows with the KILN_FIELD_* macros below. */
typedef struct KilnField {
    const char *name; /* the struct member's name, which is the option's name */
    KilnType type;
    KilnShapeOf shape;
    bool optional;       /* null allowed; STR, PATH and ONE COMPONENT only: member is NULL */
    size_t offset, size; /* of the member in the options struct */
    size_t count_offset; /* LIST and MAP: of the member <name>_count */
    const char *value;   /* default as YAML text; NULL: required */
    double min, max;     /* inclusive bounds, I64 and F64 (of each item in a list) */
    const KilnChoice *choices;
    KilnKind component_kind;
    const struct KilnField *fields; /* STRUCT: its own table */
    const char *renamed;            /* not NULL: this row is only a former name of that option */
    const char *help;               /* one line, shown by --help */
} KilnField;

/* A wrong member type is a compile error: _Generic has one association. */
#define KILN_MEMBER_(T, m, ctype)                                                                  \
    .name = #m, .offset = _Generic(((T *)0)->m, ctype : offsetof(T, m)), .size = sizeof(((T *)0)->m)
#define KILN_MEMBER_LIST_(T, m, ctype)                                                             \
    KILN_MEMBER_(T, m, ctype), .shape = KILN_LIST,                                                 \
                               .count_offset = _Generic(((T *)0)->m##_count, size_t                \
                                                        : offsetof(T, m##_count))

/*      T: options struct, m: member, dflt: default as YAML text or NULL */
#define KILN_FIELD_BOOL(T, m, dflt, text)                                                          \
    {                                                                                              \
        KILN_MEMBER_(T, m, bool), .type = KILN_TYPE_BOOL, .value = dflt, .help = text              \
    }
#define KILN_FIELD_I64(T, m, dflt, lo, hi, text)                                                   \
    {                                                                                              \
        KILN_MEMBER_(T, m, int64_t), .type = KILN_TYPE_I64, .value = dflt, .min = lo, .max = hi,   \
                                     .help = text                                                  \
    }
#define KILN_FIELD_F64(T, m, dflt, lo, hi, text)                                                   \
    {                                                                                              \
        KILN_MEMBER_(T, m, double), .type = KILN_TYPE_F64, .value = dflt, .min = lo, .max = hi,    \
                                    .help = text                                                   \
    }
#define KILN_FIELD_STR(T, m, dflt, text)                                                           \
    {                                                                                              \
        KILN_MEMBER_(T, m, char *), .type = KILN_TYPE_STR, .value = dflt, .help = text             \
    }
#define KILN_FIELD_STR_OPT(T, m, dflt, text)                                                       \
    {                                                                                              \
        KILN_MEMBER_(T, m, char *), .type = KILN_TYPE_STR, .optional = true, .value = dflt,        \
                                    .help = text                                                   \
    }
#define KILN_FIELD_PATH(T, m, dflt, text)                                                          \
    {                                                                                              \
        KILN_MEMBER_(T, m, char *), .type = KILN_TYPE_PATH, .value = dflt, .help = text            \
    }
#define KILN_FIELD_PATH_OPT(T, m, dflt, text)                                                      \
    {                                                                                              \
        KILN_MEMBER_(T, m, char *), .type = KILN_TYPE_PATH, .optional = true, .value = dflt,       \
                                    .help = text                                                   \
    }
/* lo and hi in seconds */
#define KILN_FIELD_DURATION(T, m, dflt, lo, hi, text)                                              \
    {                                                                                              \
        KILN_MEMBER_(T, m, double), .type = KILN_TYPE_DURATION, .value = dflt, .min = lo,          \
                                    .max = hi, .help = text                                        \
    }
/* lo and hi in bytes */
#define KILN_FIELD_SIZE(T, m, dflt, lo, hi, text)                                                  \
    {                                                                                              \
        KILN_MEMBER_(T, m, int64_t), .type = KILN_TYPE_SIZE, .value = dflt, .min = lo, .max = hi,  \
                                     .help = text                                                  \
    }
#define KILN_FIELD_ENUM(T, m, dflt, list, text)                                                    \
    {                                                                                              \
        KILN_MEMBER_(T, m, int64_t), .type = KILN_TYPE_ENUM, .value = dflt, .choices = list,       \
                                     .help = text                                                  \
    }
#define KILN_FIELD_I64_LIST(T, m, dflt, lo, hi, text)                                              \
    {                                                                                              \
        KILN_MEMBER_LIST_(T, m, int64_t *), .type = KILN_TYPE_I64, .value = dflt, .min = lo,       \
                                            .max = hi, .help = text                                \
    }
#define KILN_FIELD_F64_LIST(T, m, dflt, lo, hi, text)                                              \
    {                                                                                              \
        KILN_MEMBER_LIST_(T, m, double *), .type = KILN_TYPE_F64, .value = dflt, .min = lo,        \
                                           .max = hi, .help = text                                 \
    }
#define KILN_FIELD_STR_LIST(T, m, dflt, text)                                                      \
    {                                                                                              \
        KILN_MEMBER_LIST_(T, m, char **), .type = KILN_TYPE_STR, .value = dflt, .help = text       \
    }
#define KILN_FIELD_COMPONENT(T, m, kind_, dflt, text)                                              \
    {                                                                                              \
        KILN_MEMBER_(T, m, KilnInstance *), .type = KILN_TYPE_COMPONENT, .component_kind = kind_,  \
                                            .value = dflt, .help = text                            \
    }
#define KILN_FIELD_COMPONENT_OPT(T, m, kind_, dflt, text)                                          \
    {                                                                                              \
        KILN_MEMBER_(T, m, KilnInstance *), .type = KILN_TYPE_COMPONENT, .optional = true,         \
                                            .component_kind = kind_, .value = dflt, .help = text   \
    }
#define KILN_FIELD_COMPONENT_LIST(T, m, kind_, dflt, text)                                         \
    {                                                                                              \
        KILN_MEMBER_LIST_(T, m, KilnInstance **),                                                  \
            .type = KILN_TYPE_COMPONENT, .component_kind = kind_, .value = dflt, .help = text      \
    }
#define KILN_FIELD_COMPONENT_MAP(T, m, kind_, dflt, text)                                          \
    {                                                                                              \
        KILN_MEMBER_(T, m, KilnInstance **), .type = KILN_TYPE_COMPONENT, .shape = KILN_MAP,       \
                                             .count_offset = _Generic(((T *)0)->m##_count, size_t  \
                                                                      : offsetof(T, m##_count)),   \
                                             .component_kind = kind_, .value = dflt, .help = text  \
    }
#define KILN_FIELD_END                                                                             \
    {                                                                                              \
        .type = KILN_TYPE_END                                                                      \
    }

/* ---- Components --------------------------------------------------------- */

/* A component that was built from a config node: its options and its state.
 * Every operation of a component gets its own instance as first argument. */
typedef struct KilnInstance KilnInstance;

/* The options struct, filled and checked; lives as long as the instance. */
KILN_API const void *kiln_opts(const KilnInstance *self);
/* The state struct: `state_size` zeroed bytes that belong to the component. */
KILN_API void *kiln_state(KilnInstance *self);
/* The component's name ("resnet") and its place in the config ("task.model"). */
KILN_API const char *kiln_instance_name(const KilnInstance *self);
KILN_API const char *kiln_instance_path(const KilnInstance *self);

typedef struct KilnDataModuleOps KilnDataModuleOps; /* data.h */
typedef struct KilnModuleOps KilnModuleOps;         /* module.h */
typedef struct KilnModelOps KilnModelOps;           /* module.h */
typedef struct KilnOptimizerOps KilnOptimizerOps;   /* module.h */
typedef struct KilnSchedulerOps KilnSchedulerOps;   /* module.h */
typedef struct KilnCallbackOps KilnCallbackOps;     /* trainer.h */
typedef struct KilnLoggerOps KilnLoggerOps;         /* trainer.h */
typedef struct KilnTransformOps KilnTransformOps;   /* image.h */
typedef struct KilnSweeperOps KilnSweeperOps;       /* sweep.h */
typedef struct KilnLauncherOps KilnLauncherOps;     /* sweep.h */

typedef struct KilnComponent {
    KilnKind kind;
    const char *name;        /* snake_case, unique within its kind */
    const char *summary;     /* one line */
    const KilnField *fields; /* closed by KILN_FIELD_END; NULL: no options */
    size_t opts_size;
    size_t state_size;
    /* Optional. Cross-checks: called while a config is checked, when every option
     * is right for itself. `opts` is the options struct; components in it are
     * NULL. On failure *ret_option may name the option at fault, to which the
     * message then points; the message says what is wrong and what was expected. */
    KilnStatus (*check)(const void *opts, const char **ret_option, KilnError *err);
    /* Optional. Called once after options and children are in place; must not
     * touch files or data. */
    KilnStatus (*init)(KilnInstance *self, KilnError *err);
    /* Optional. Free what the component allocated; must cope with a zeroed or
     * half-built state, because it is called even when init failed. */
    void (*release)(KilnInstance *self);
    union {
        const KilnDataModuleOps *datamodule;
        const KilnModuleOps *module;
        const KilnModelOps *model;
        const KilnOptimizerOps *optimizer;
        const KilnSchedulerOps *scheduler;
        const KilnCallbackOps *callback;
        const KilnLoggerOps *logger;
        const KilnTransformOps *transform;
        const KilnSweeperOps *sweeper;
        const KilnLauncherOps *launcher;
    } ops;
} KilnComponent;

/* The descriptor that an instance was built from. */
KILN_API const KilnComponent *kiln_instance_component(const KilnInstance *self);

/* ---- Plugins ------------------------------------------------------------ */

#define KILN_ABI 1u
#define KILN_PLUGIN_MAGIC 0x4b494c4eu /* "KILN" */

/* What a plugin says of itself; compared field by field with the host's. */
typedef struct KilnPluginInfo {
    uint32_t magic;
    uint32_t abi;
    uint32_t component_size;                /* sizeof(KilnComponent) as the plugin saw it */
    uint32_t field_size;                    /* sizeof(KilnField) likewise */
    const char *version;                    /* KILN_VERSION it was compiled against */
    const KilnComponent *const *components; /* NULL-terminated */
} KilnPluginInfo;

/* Emits the one symbol that a plugin exports. `list`: a NULL-terminated array
 * of const KilnComponent pointers. */
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
        };                                                                                         \
        return &info;                                                                              \
    }

/* All components that are known: built-in ones and those of plugins. */
typedef struct KilnRegistry KilnRegistry;

/* A registry with the built-in components. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_registry_new(KilnRegistry **ret, KilnError *err);
/* Also unloads plugins: no instance of theirs may be alive. Accepts NULL. */
KILN_API void kiln_registry_free(KilnRegistry *registry);
/* Load a plugin and register its components. On failure nothing is registered.
 * A wrong ABI, a missing symbol, a bad options table and a name that is taken
 * are errors (KILN_E_PLUGIN) that name the file and the difference. */
KILN_API KILN_NODISCARD KilnStatus kiln_registry_load(KilnRegistry *registry, const char *path,
                                                      KilnError *err);
/* Number of components, and the i-th in order of kind, then name. */
KILN_API size_t kiln_registry_count(const KilnRegistry *registry);
KILN_API const KilnComponent *kiln_registry_at(const KilnRegistry *registry, size_t i);
/* NULL when there is none of that kind and name. */
KILN_API const KilnComponent *kiln_registry_find(const KilnRegistry *registry, KilnKind kind,
                                                 const char *name);

#endif
