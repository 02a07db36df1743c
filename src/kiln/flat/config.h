/* Flat functions, for languages that call C by name (Python's ctypes, R, Julia, ...): handles,
 * numbers and texts, but no struct whose layout the caller would have to know. The other functions
 * of kiln_embed.h that take only these, such as kiln_config_yaml, can be called the same way.
 *
 * This header: errors, registries and configs. */
#ifndef KILN_KILN_FLAT_CONFIG_H
#define KILN_KILN_FLAT_CONFIG_H

#include "kiln/embed/config.h"

/* KILN_VERSION of the library. */
KILN_API const char *kiln_flat_version(void);

/* ---- Errors ---------------------------------------------------------------------------------- */

/* An empty error, for functions that fill one; owned by the caller. NULL: memory is out. */
KILN_API KilnError *kiln_flat_error_new(void);
KILN_API void kiln_flat_error_free(KilnError *err);
/* The message; borrowed until the error is filled again. */
KILN_API const char *kiln_flat_error_text(const KilnError *err);
/* Fill an error that a function of the caller got, with any KilnStatus but KILN_OK; returns it. A
 * text that does not fit is cut. */
KILN_API KilnStatus kiln_flat_error_set(KilnError *err, KilnStatus status, const char *text);

/* ---- Configs --------------------------------------------------------------------------------- */

/* kiln_compose and kiln_config_check, with the sections of a run. The lists end with NULL; any of
 * the arguments in between may be NULL, as in KilnComposeRequest; without a registry the config is
 * what its files say, and is not checked. `errors` also has warnings. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_compose(const KilnRegistry *registry,
                                                     const char *config_path,
                                                     const char *config_name,
                                                     const char *const *config_dirs,
                                                     const char *const *overrides, KilnConfig **ret,
                                                     KilnErrors *errors);
/* The config of the run folder `run` (absolute), for resuming it with overrides on top. What its
 * options write must stay in that folder. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_compose_resumed(const KilnRegistry *registry,
                                                             const char *run,
                                                             const char *const *overrides,
                                                             KilnConfig **ret, KilnErrors *errors);
/* The config that made a checkpoint (absolute path of its folder), with overrides on top, for
 * evaluating it: ckpt_path is set. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_compose_checkpoint(const KilnRegistry *registry,
                                                                const char *checkpoint,
                                                                const char *const *overrides,
                                                                KilnConfig **ret, KilnError *err);
/* kiln_config_explain of the past run in the folder `run`. Owned by the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_explain_run(const char *run, const char *key,
                                                         char **ret, KilnError *err);
/* "KEY='VALUE'", quoted as an override needs it. Owned by the caller (free); NULL: memory is out.
 */
KILN_API char *kiln_flat_override(const char *key, const char *value);
/* The job's part of the tree, resolved, as JSON. Numbers that are not finite are NaN, Infinity and
 * -Infinity, as in Python and JavaScript. Owned by the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_config_json(const KilnConfig *config, char **ret,
                                                         KilnError *err);
/* Where each value of that part was set: a JSON object from keys ("optimizer.lr") to origins
 * ("argument 1 `lr=0.1`"). A list is one value. Owned by the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_config_origins(const KilnConfig *config, char **ret,
                                                            KilnError *err);

#endif
