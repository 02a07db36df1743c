/* The registry's storage, and which component a _target_ names (target.c). */
#ifndef KILN_REGISTRY_REGISTRY_H
#define KILN_REGISTRY_REGISTRY_H

#include "base/system/sha256.h"
#include "config/defaults/group_files.h"
#include "config/sweep/sweep_arguments.h"

typedef struct KilnPlugin {
    void *library;                          /* dlopen's handle */
    char *path;                             /* absolute */
    const char *from;                       /* who named it: "--plugin", "./plugins"; static */
    const char *version;                    /* of kiln, that it was built for */
    char sum[KILN_SHA256_TEXT];             /* of the file */
    bool python;                            /* no shared object: a module of Python, and `version`
                                             * is that of Python */
    const KilnComponent *const *components; /* NULL-terminated */
    KilnArena arena;                        /* of `components`, where they are copies */
} KilnPlugin;

/* What a name of a class of Python begins with. */
#define KILN_PYTHON_PREFIX "python:"

/* Where components come from that are known only when a config names them (src/python). */
typedef struct KilnComponentSource {
    void *ctx;
    /* Add the component of that name and kind (KILN_KIND_ANY: what it is) to the registry. `origin`
     * is the source of the text that names it; NULL: the user typed it. */
    KilnStatus (*find)(void *ctx, KilnRegistry *registry, const char *name, KilnKind kind,
                       const char *origin, KilnError *err);
    void (*release)(void *ctx); /* after all components */
} KilnComponentSource;

struct KilnRegistry {
    KilnArena arena;             /* copies of the embedding program's components */
    const KilnComponent **items; /* in order of kind, then name */
    size_t count, capacity;
    KilnPlugin *plugins;
    size_t plugin_count, plugin_capacity;
    char **folders; /* conf/ next to plugins, NULL-terminated; NULL: none */
    size_t folder_count, folder_capacity;
    KilnComponentSource source; /* of classes of Python; zeroed: none */
    KilnRegistry *self;         /* readers of a const registry may add what its source finds */
};

/* Where any kind is allowed. */
#define KILN_KIND_ANY KILN_KIND_COUNT
/* How deep components may be nested. */
#define KILN_MAX_NESTING 32

/* The component that `target` names: "kind/name", or "name" alone when `kind`
 * is given or only one kind has it. KILN_E_KEY names the nearest; a component
 * of another kind than `kind` is KILN_E_TYPE. */
KILN_NODISCARD KilnStatus kiln_registry_target(const KilnRegistry *registry, const char *target,
                                               KilnKind kind, const KilnComponent **ret,
                                               KilnError *err);
/* The same of a class of Python, which is described now if it is not known yet; `origin` as in
 * KilnComponentSource. */
KILN_NODISCARD KilnStatus kiln_registry_describe(const KilnRegistry *registry, const char *target,
                                                 KilnKind kind, const char *origin,
                                                 const KilnComponent **ret, KilnError *err);
/* Set where classes of Python come from; copied. */
void kiln_registry_set_source(KilnRegistry *registry, const KilnComponentSource *source);
/* Add a class of Python, which `file` defines; all of it is borrowed from the source. */
KILN_NODISCARD KilnStatus kiln_registry_add_python(KilnRegistry *registry,
                                                   const KilnComponent *component, const char *file,
                                                   const char *version, KilnError *err);
/* The component of `node` (resolved) where `kind` is expected: a mapping with _target_, or text
 * that is a component's name. The message has no key; it has the origin of the name. */
KILN_NODISCARD KilnStatus kiln_node_component(const KilnConfig *config,
                                              const KilnRegistry *registry,
                                              const KilnConfigNode *node, KilnKind kind,
                                              const KilnComponent **ret, KilnError *err);
/* The kind of that name ("model"); KILN_KIND_ANY when there is none. */
KilnKind kiln_kind_find(const char *name, size_t length);
/* Check that a descriptor is complete and its options table valid; KILN_E_PLUGIN. */
KILN_NODISCARD KilnStatus kiln_component_check(const KilnComponent *component, KilnError *err);
/* kiln_registry_load of a plugin that `from` (static) named: "./plugins". */
KILN_NODISCARD KilnStatus kiln_registry_load_from(KilnRegistry *registry, const char *path,
                                                  const char *from, KilnError *err);
/* The plugin of a component; NULL: it is built in. Async-signal-safe. */
const KilnPlugin *kiln_registry_plugin_of(const KilnRegistry *registry,
                                          const KilnComponent *component);
/* Add all or none; a name that is in use is KILN_E_PLUGIN. */
KILN_NODISCARD KilnStatus kiln_registry_insert(KilnRegistry *registry,
                                               const KilnComponent *const *components,
                                               KilnError *err);

/* The option of a key ("optimizer.lr", "model.hidden[0]"), which need not be in the tree; NULL: the
 * key is free. For an item of a list or mapping it is the option of the whole. */
const KilnField *kiln_config_field(const KilnConfig *config, const KilnRegistry *registry,
                                   const char *key);

/* Check what a sweep itself reads: the sections of the node `kiln`. Its jobs' configs are checked
 * one by one. */
KilnStatus kiln_config_check_own(KilnConfig *config, const KilnRegistry *registry,
                                 KilnErrors *errors);

/* Call `visit` for each value of an option that names a written file (KILN_FIELD_OUTPUT), with its
 * key, its node as written and resolved. Null and invalid values are skipped. */
typedef void KilnOutputVisit(void *ctx, const char *key, const KilnConfigNode *written,
                             const KilnConfigNode *value);
void kiln_config_visit_outputs(KilnConfig *config, const KilnRegistry *registry,
                               KilnOutputVisit *visit, void *ctx);

/* kiln_compose with the origin of each override of the request (KilnComposeHooks.origins). */
KILN_NODISCARD KilnStatus kiln_compose_from(const KilnComposeRequest *request,
                                            const KilnOrigin *origins, KilnConfig **ret,
                                            KilnErrors *errors);
/* The config of a sweep itself, whose `kiln` configures it (kiln_config_compose_sweep), and its
 * parsed arguments (kiln_sweep_arguments), which live in that config. Owned by the caller
 * (kiln_config_free). */
KILN_NODISCARD KilnStatus kiln_compose_sweep(const KilnComposeRequest *request, KilnConfig **ret,
                                             KilnSweepArguments *ret_arguments, KilnErrors *errors);
/* The options of a group from files and components, or with `groups` the groups below it ("": the
 * top ones); in byte order, owned by the caller (kiln_names_free). */
KILN_NODISCARD KilnStatus kiln_compose_options(const KilnComposeRequest *request, const char *group,
                                               bool groups, char ***ret, size_t *ret_count,
                                               KilnError *err);
/* Visit every config file of every group (config/defaults/group_files.h), and every option that a
 * component provides without a file. */
KILN_NODISCARD KilnStatus kiln_compose_files(const KilnComposeRequest *request,
                                             KilnGroupFileVisit *visit, void *ctx, KilnError *err);

#endif
