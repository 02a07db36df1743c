/* Composing a config: YAML groups, a defaults list, overrides, interpolation;
 * every value with its origin and history. */
#ifndef KILN_CONFIG_H
#define KILN_CONFIG_H

#include "kiln/component.h"

/* A composed tree. Owns its nodes and everything they point to. */
typedef struct KilnConfig KilnConfig;

/* A part of the tree with an options table of its own that is no component:
 * the root itself (key ""), `trainer`, `kiln.run`. Its defaults are a bottom
 * layer like a component's. */
typedef struct KilnSection {
    const char *key; /* "" is the root; NULL closes an array of sections */
    const KilnField *fields;
    size_t size; /* of the options struct */
    bool open;   /* keys beside the fields are allowed (the root) */
    bool hidden; /* not part of the job's config: `kiln` */
    const char *summary;
} KilnSection;

typedef struct KilnComposeRequest {
    const char *config_path;        /* primary folder; NULL: ./conf when it is there */
    const char *config_name;        /* NULL: "config" */
    const char *const *config_dirs; /* --config-dir, NULL-terminated; NULL: none */
    const char *const *overrides;   /* arguments, NULL-terminated; NULL: none */
    const KilnRegistry *registry;   /* components: bottom layers, and group options for those
                                     * without a file (model=NAME of a plugin) */
    const KilnSection *sections;    /* closed by a NULL key; kiln_run_sections(); NULL: none */
} KilnComposeRequest;

/* Several errors, found in one pass, in file order: the files as they were read, then
 * components' defaults, then arguments, then what has no place. */
typedef struct KilnErrors KilnErrors;
KILN_API KILN_NODISCARD KilnStatus kiln_errors_new(KilnErrors **ret);
KILN_API void kiln_errors_free(KilnErrors *errors);
KILN_API size_t kiln_errors_count(const KilnErrors *errors);
/* The i-th message, complete with origin: "PLACE: KEY: what is wrong", and perhaps
 * further lines. */
KILN_API const char *kiln_errors_text(const KilnErrors *errors, size_t i);
/* The place that the i-th message is about; source NULL: none. Borrowed. */
KILN_API KilnOrigin kiln_errors_origin(const KilnErrors *errors, size_t i);
/* The i-th is a warning: it does not make anything fail. */
KILN_API bool kiln_errors_is_warning(const KilnErrors *errors, size_t i);
/* How many messages came after the collection was full: counted, not kept. */
KILN_API size_t kiln_errors_left_out(const KilnErrors *errors);

/* Compose: read, merge, apply overrides, merge component defaults as bottom
 * layers. Values are not resolved or checked yet. `errors` collects everything
 * found wrong; the status is the first one's. Owned by the caller. */
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

/* Build the component that the node at `key` names with _target_, children
 * first. The instance is owned by the caller; the config must outlive it. */
KILN_API KILN_NODISCARD KilnStatus kiln_config_build(const KilnConfig *config, const char *key,
                                                     const KilnRegistry *registry, KilnKind kind,
                                                     KilnInstance **ret, KilnError *err);
/* The same for a mapping of components (callbacks): entries in file order,
 * null ones left out; a missing or null node gives none. `ret` and its entries
 * are owned by the caller (kiln_instances_free). */
KILN_API KILN_NODISCARD KilnStatus kiln_config_build_map(const KilnConfig *config, const char *key,
                                                         const KilnRegistry *registry,
                                                         KilnKind kind, KilnInstance ***ret,
                                                         size_t *ret_count, KilnError *err);
/* Fill an options struct of `fields` from the node at `key` (a section that is
 * no component, like `trainer`). Freed with kiln_options_free. */
KILN_API KILN_NODISCARD KilnStatus kiln_config_options(const KilnConfig *config, const char *key,
                                                       const KilnField *fields, size_t size,
                                                       void **ret, KilnError *err);
KILN_API void kiln_options_free(const KilnField *fields, size_t size, void *options);
/* Release an instance and its children. Accepts NULL. */
KILN_API void kiln_instance_free(KilnInstance *instance);
KILN_API void kiln_instances_free(KilnInstance **instances, size_t count);

#endif
