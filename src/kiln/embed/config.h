/* Composing a config: YAML groups, a defaults list, overrides, interpolation;
 * every value with its origin and history. */
#ifndef KILN_KILN_EMBED_CONFIG_H
#define KILN_KILN_EMBED_CONFIG_H

#include "kiln/embed/registry.h"

/* A composed tree. Owns its nodes and everything they point to. */
typedef struct KilnConfig KilnConfig;

/* A part of the tree that has an options table but is not a component: the root (key ""),
 * `trainer`, `kiln.run`. Its defaults are the lowest layer, like a component's. */
typedef struct KilnSection {
    const char *key; /* "" is the root; NULL closes an array of sections */
    const KilnField *fields;
    size_t size; /* of the options struct */
    bool open;   /* other keys are allowed (the root) */
    bool hidden; /* not part of the job's config: `kiln` */
    const char *summary;
} KilnSection;

typedef struct KilnComposeRequest {
    const char *config_path;        /* primary folder; NULL: ./conf if it exists */
    const char *config_name;        /* NULL: "config" */
    const char *const *config_dirs; /* --config-dir, NULL-terminated; NULL: none */
    const char *const *overrides;   /* arguments, NULL-terminated; NULL: none */
    const char *const *environment; /* for ${oc.env:...}, before the process's own: NAME=VALUE, or
                                     * NAME for one that is not set; NULL-terminated; NULL: none.
                                     * Borrowed as long as the config is used */
    const KilnRegistry *registry;   /* components: their defaults, and group options for those
                                     * without a file (model=NAME of a plugin) */
    const KilnSection *sections;    /* closed by a NULL key; kiln_run_sections(); NULL: none */
} KilnComposeRequest;

/* Errors and warnings of one pass, sorted by origin: files in the order of reading, components'
 * defaults, arguments, then those without an origin. */
typedef struct KilnErrors KilnErrors;
KILN_API KILN_NODISCARD KilnStatus kiln_errors_new(KilnErrors **ret);
KILN_API void kiln_errors_free(KilnErrors *errors);
KILN_API size_t kiln_errors_count(const KilnErrors *errors);
/* The i-th message, complete: "ORIGIN: KEY: what is wrong", maybe with further lines. */
KILN_API const char *kiln_errors_text(const KilnErrors *errors, size_t i);
/* The origin of the i-th message; source NULL: none. Borrowed. */
KILN_API KilnOrigin kiln_errors_origin(const KilnErrors *errors, size_t i);
/* Whether the i-th message is a warning, which is not a failure. */
KILN_API bool kiln_errors_is_warning(const KilnErrors *errors, size_t i);
/* The number of further messages that were counted but not kept. */
KILN_API size_t kiln_errors_left_out(const KilnErrors *errors);

/* Compose: read and merge files, apply overrides, add components' defaults as the lowest layer.
 * Values are not resolved or checked yet. `errors` collects all errors; the status is that of the
 * first. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_compose(const KilnComposeRequest *request, KilnConfig **ret,
                                                KilnErrors *errors);
KILN_API void kiln_config_free(KilnConfig *config);
/* Check every component's options: unknown keys, types, ranges, choices,
 * required values, interpolations. All errors are collected. */
KILN_API KILN_NODISCARD KilnStatus kiln_config_check(KilnConfig *config,
                                                     const KilnRegistry *registry,
                                                     KilnErrors *errors);
/* The tree, or the part at `key` ("a.b[0].c"; NULL or "": all), as YAML text,
 * with ${...} resolved or as written. Owned by the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_config_yaml(const KilnConfig *config, const char *key,
                                                    bool resolve, char **ret, KilnError *err);
/* The resolved scalar at `key` as text. Owned by the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_config_text(const KilnConfig *config, const char *key,
                                                    char **ret, KilnError *err);
/* The history of `key`: its value, where it was set, every value it replaced,
 * the chain of interpolations; ready to print. Owned by the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_config_explain(const KilnConfig *config, const char *key,
                                                       char **ret, KilnError *err);

/* Build the component that _target_ of the node at `key` names, children first. The instance is
 * owned by the caller; the config must outlive it. */
KILN_API KILN_NODISCARD KilnStatus kiln_config_build(const KilnConfig *config, const char *key,
                                                     const KilnRegistry *registry, KilnKind kind,
                                                     KilnInstance **ret, KilnError *err);
/* Build a mapping of components at the root (callbacks): entries in file order, without null
 * entries; none for a missing or null node. `ret` and its entries are owned by the caller
 * (kiln_instances_free). */
KILN_API KILN_NODISCARD KilnStatus kiln_config_build_map(const KilnConfig *config, const char *key,
                                                         const KilnRegistry *registry,
                                                         KilnKind kind, KilnInstance ***ret,
                                                         size_t *ret_count, KilnError *err);
/* Fill an options struct of `fields` from the node at `key` (a section, like `trainer`). Free it
 * with kiln_options_free. */
KILN_API KILN_NODISCARD KilnStatus kiln_config_options(const KilnConfig *config, const char *key,
                                                       const KilnField *fields, size_t size,
                                                       void **ret, KilnError *err);
KILN_API void kiln_options_free(const KilnField *fields, size_t size, void *options);
/* Release an instance and its children. Accepts NULL. */
KILN_API void kiln_instance_free(KilnInstance *instance);
KILN_API void kiln_instances_free(KilnInstance **instances, size_t count);

#endif
