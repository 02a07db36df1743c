/* Composes a config from files, defaults lists, packages and overrides. Components come in through
 * hooks, so that this layer knows neither the schema nor the registry. */
#ifndef KILN_CONFIG_COMPOSE_H
#define KILN_CONFIG_COMPOSE_H

#include "base/text.h"
#include "config/tree/node.h"

typedef struct KilnComposeHooks {
    void *ctx;
    /* Folders of plugins, searched after the user's own; NULL-terminated; NULL: none. */
    char *const *folders;
    /* Merge the defaults layer (options tables' defaults) under the files' values: called when all
     * files are merged, and again after each override that changed a _target_ or added a mapping.
     * Must be idempotent. Adds errors to `errors`. */
    KilnStatus (*defaults_layer)(void *ctx, KilnConfig *config, KilnErrors *errors);
    /* YAML text of a group option that no file provides (group "model", option "resmlp"), or
     * false. `ret_source` is its origin's source, static or in the config's arena. */
    bool (*option)(void *ctx, KilnConfig *config, const char *group, const char *option,
                   const char **ret_yaml, const char **ret_source);
    /* The name of the i-th of such options, for suggestions; NULL after the last. */
    const char *(*options)(void *ctx, const char *group, size_t i);
    /* Is `name` a component of a group whose members are named by their users ("callbacks")? The
     * hook may be NULL. */
    bool (*is_member)(void *ctx, const char *group, const char *name);
    /* Are `from` and `to`, texts of _target_, two different components, both known? */
    bool (*other_component)(void *ctx, const char *from, const char *to);
    /* Is the option that the key ("datamodule.root") belongs to text or a path? */
    bool (*is_text)(void *ctx, const KilnConfig *config, const char *key);
    /* Where the overrides of the request come from, by their index; without a source, and where
     * this is NULL, the i-th is argument i + 1. */
    const KilnOrigin *origins;
    /* Check a config whose overrides failed in part, so that all errors are reported at once. */
    void (*check)(void *ctx, KilnConfig *config, KilnErrors *errors);
    /* The current name of what was formerly called `key`, which `map` does not have, or NULL; the
     * hook warns that an override at `origin` uses the old name. The hook may be NULL. */
    const char *(*rename)(void *ctx, const KilnConfig *config, const KilnConfigNode *map,
                          const char *key, const KilnOrigin *origin);
} KilnComposeHooks;

/* kiln_compose with hooks instead of a registry; request->registry is ignored. */
KILN_NODISCARD KilnStatus kiln_config_compose(const KilnComposeRequest *request,
                                              const KilnComposeHooks *hooks, KilnConfig **ret,
                                              KilnErrors *errors);
/* The config of the sweep itself, whose `kiln` says how to sweep. Arguments with several values are
 * left out, and what only they provide may be missing (a mandatory group, keys of an option): the
 * jobs report such errors. */
KILN_NODISCARD KilnStatus kiln_config_compose_sweep(const KilnComposeRequest *request,
                                                    const KilnComposeHooks *hooks, KilnConfig **ret,
                                                    KilnErrors *errors);
/* A value of the node `kiln` that is needed before the config is composed: a plugin, a Python. */
typedef struct KilnOwnValue {
    const char *text;
    const char *source; /* the file that has it; "argument 3": it is an argument */
} KilnOwnValue;
/* `kiln.KEY` ("plugins", "python") of the argument, else of the primary config: the texts of a
 * list, or one text. Composing reports whatever else is wrong with the config. Lives in the arena.
 */
KILN_NODISCARD KilnStatus kiln_config_own(const KilnComposeRequest *request, const char *key,
                                          KilnArena *arena, KilnOwnValue **ret, size_t *ret_count,
                                          KilnError *err);
/* The sections of the request that made it; NULL when none. */
const KilnSection *kiln_config_sections(const KilnConfig *config);

/* A selection of the defaults list. */
typedef struct KilnSelection {
    const char *key;         /* "model", "db@src" */
    const char *option;      /* "resnet", "[a, b]"; NULL: none (null) */
    bool several;            /* a list of options, which may be listed again */
    const KilnOrigin *added; /* the argument +group=option that added it; NULL: none did */
} KilnSelection;

/* The i-th selection in the order of the defaults list, without those of `kiln`; NULL after the
 * last. */
const KilnSelection *kiln_config_selection(const KilnConfig *config, size_t i);

/* Add `value` as a default of `key` in the mapping: it becomes the value if there is none, merges
 * if both are mappings, and else goes to the end of the value's history. Both live in the config's
 * arena. */
KILN_NODISCARD KilnStatus kiln_node_add_default(KilnConfig *config, KilnConfigNode *map,
                                                const char *key, KilnOrigin key_origin,
                                                KilnConfigNode *value, KilnError *err);

#endif
