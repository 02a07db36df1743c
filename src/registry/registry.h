/* The registry's inside: its storage, and finding what a _target_ means. */
#ifndef KILN_REGISTRY_REGISTRY_H
#define KILN_REGISTRY_REGISTRY_H

#include "config/defaults/group_files.h"
#include "config/sweep/sweep_arguments.h"

typedef struct KilnPlugin {
    void *library;                          /* dlopen's handle */
    char *path;                             /* absolute */
    const KilnComponent *const *components; /* its own, NULL-terminated */
} KilnPlugin;

struct KilnRegistry {
    const KilnComponent **items; /* in order of kind, then name */
    size_t count, capacity;
    KilnPlugin *plugins;
    size_t plugin_count;
    char **folders; /* conf/ beside plugins that have one; as that */
};

/* For a place where any kind may stand. */
#define KILN_KIND_ANY KILN_KIND_COUNT
/* Components within components deeper than this are refused. */
#define KILN_MAX_NESTING 32

/* The component that `target` names: "kind/name", or "name" alone when `kind`
 * is given or only one kind has it. KILN_E_KEY names the nearest; a component
 * of another kind than `kind` is KILN_E_TYPE. */
KILN_NODISCARD KilnStatus kiln_registry_target(const KilnRegistry *registry, const char *target,
                                               KilnKind kind, const KilnComponent **ret,
                                               KilnError *err);
/* The component of `node` (resolved) in a place of `kind`: a mapping with
 * _target_, or text that is a component's name. The message has no path; it
 * has the origin of the name. */
KILN_NODISCARD KilnStatus kiln_node_component(const KilnConfig *config,
                                              const KilnRegistry *registry,
                                              const KilnConfigNode *node, KilnKind kind,
                                              const KilnComponent **ret, KilnError *err);
/* The kind of that name ("model"); KILN_KIND_ANY when there is none. */
KilnKind kiln_kind_find(const char *name, size_t length);
/* A descriptor is complete and its options table sound; KILN_E_PLUGIN. */
KILN_NODISCARD KilnStatus kiln_component_check(const KilnComponent *component, KilnError *err);
/* The plugin that a component comes from; NULL: it is built in. Async-signal-safe. */
const KilnPlugin *kiln_registry_plugin_of(const KilnRegistry *registry,
                                          const KilnComponent *component);
/* Insert all or none; a name that is taken is KILN_E_PLUGIN. */
KILN_NODISCARD KilnStatus kiln_registry_add(KilnRegistry *registry,
                                            const KilnComponent *const *components, KilnError *err);

/* The row of the options table that the key ("optimizer.lr", "model.hidden[0]", which
 * need not be in the tree) is ruled by; NULL for free keys. Of an item in a list or
 * mapping it is the row of the whole. */
const KilnField *kiln_config_field(const KilnConfig *config, const KilnRegistry *registry,
                                   const char *key);

/* Call `visit` for each value of an option that names what is written (KILN_FIELD_OUTPUT): its key,
 * the node as written, and what that resolves to. Null values and wrong ones are left out. */
typedef void KilnOutputVisit(void *ctx, const char *key, const KilnConfigNode *written,
                             const KilnConfigNode *value);
void kiln_config_visit_outputs(KilnConfig *config, const KilnRegistry *registry,
                               KilnOutputVisit *visit, void *ctx);

/* The config of a sweep itself (its `kiln` says how to sweep; kiln_config_compose_sweep)
 * and its arguments taken apart (kiln_sweep_arguments), which live in that config. Owned
 * by the caller (kiln_config_free). */
KILN_NODISCARD KilnStatus kiln_compose_sweep(const KilnComposeRequest *request, KilnConfig **ret,
                                             KilnSweepArguments *ret_arguments, KilnErrors *errors);
/* The options of a group over files and components, or with `groups` the groups
 * below it ("": the top ones); in byte order, owned by the caller (kiln_names_free). */
KILN_NODISCARD KilnStatus kiln_compose_options(const KilnComposeRequest *request, const char *group,
                                               bool groups, char ***ret, size_t *ret_count,
                                               KilnError *err);
/* Visit every config file of every group (config/group_files.h), and every option
 * that a component gives without a file. */
KILN_NODISCARD KilnStatus kiln_compose_files(const KilnComposeRequest *request,
                                             KilnGroupFileVisit *visit, void *ctx, KilnError *err);

#endif
