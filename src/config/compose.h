/* Composition without knowledge of components: files, defaults lists, packages,
 * overrides. Components come in through hooks, so that this layer knows neither
 * the schema nor the registry. */
#ifndef KILN_CONFIG_COMPOSE_H
#define KILN_CONFIG_COMPOSE_H

#include "base/text.h"
#include "config/tree/node.h"

typedef struct KilnComposeHooks {
    void *ctx;
    /* Folders of plugins, searched behind the user's own; NULL-terminated; NULL: none. */
    char *const *folders;
    /* Merge bottom layers (options tables' defaults) below what the files gave:
     * called when all files are merged, before value overrides are applied, and
     * again after each override that changed a _target_ or added a mapping.
     * Must be idempotent. Adds what is wrong to `errors`. */
    KilnStatus (*defaults_layer)(void *ctx, KilnConfig *config, KilnErrors *errors);
    /* YAML text of a group option that no file provides (group "model", option
     * "resmlp"), or false. `ret_source` is its origin's source, static or in the
     * config's arena. */
    bool (*option)(void *ctx, KilnConfig *config, const char *group, const char *option,
                   const char **ret_yaml, const char **ret_source);
    /* Names of such options of a group, for suggestions; NULL-terminated, owned
     * by the hook; NULL for what is no group. */
    const char *const *(*options)(void *ctx, const char *group);
    /* Is `name` a component of a group that holds several by names of their own ("callbacks")? The
     * hook may be NULL. */
    bool (*is_member)(void *ctx, const char *group, const char *name);
    /* Are `from` and `to`, texts of _target_, two different components, both known? */
    bool (*other_component)(void *ctx, const char *from, const char *to);
    /* Is the option that the key ("datamodule.root") belongs to text or a path? */
    bool (*is_text)(void *ctx, const KilnConfig *config, const char *key);
    /* Check a config whose files were merged, but not all of whose overrides fit, so that
     * everything that is wrong is told together. */
    void (*check)(void *ctx, KilnConfig *config, KilnErrors *errors);
    /* The present name of what `key`, which `map` does not have, was called formerly, or
     * NULL; the hook warns that an override at `origin` uses it. The hook may be NULL. */
    const char *(*rename)(void *ctx, const KilnConfig *config, const KilnConfigNode *map,
                          const char *key, const KilnOrigin *origin);
} KilnComposeHooks;

/* kiln_compose with hooks instead of a registry; request->registry is not read. */
KILN_NODISCARD KilnStatus kiln_config_compose(const KilnComposeRequest *request,
                                              const KilnComposeHooks *hooks, KilnConfig **ret,
                                              KilnErrors *errors);
/* The config of a sweep itself, whose `kiln` says how to sweep: arguments with
 * several values are left out, and what only they bring may be missing (a group
 * that must be chosen, keys of an option). Such errors are told by the jobs. */
KILN_NODISCARD KilnStatus kiln_config_compose_sweep(const KilnComposeRequest *request,
                                                    const KilnComposeHooks *hooks, KilnConfig **ret,
                                                    KilnErrors *errors);
/* The sections of the request that made it; NULL when none. */
const KilnSection *kiln_config_sections(const KilnConfig *config);

/* Put `value` into the mapping under `key` if nothing is there; if both are
 * mappings, do so recursively; if a scalar or list is there, push `value` to
 * the end of its history. Both live in the config's arena. */
KILN_NODISCARD KilnStatus kiln_node_underlay(KilnConfig *config, KilnConfigNode *map,
                                             const char *key, KilnOrigin key_origin,
                                             KilnConfigNode *value, KilnError *err);

#endif
