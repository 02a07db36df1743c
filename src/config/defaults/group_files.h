/* Visits all config files that a request can select. */
#ifndef KILN_CONFIG_DEFAULTS_GROUP_FILES_H
#define KILN_CONFIG_DEFAULTS_GROUP_FILES_H

#include "config/defaults/search_path.h"

/* One file: group "model", option "resnet"; group "" at the top. An option without
 * a file has content of the layer KILN_LAYER_DEFAULT. All is borrowed for the call. */
typedef void KilnGroupFileVisit(void *ctx, const char *group, const char *option,
                                const KilnConfigFile *file);

/* The folders of a request (its own or ./conf, config_dirs) into `search`, which has its arena
 * already. Every error goes to `errors` (may be NULL), the last one is in `err`. */
KILN_NODISCARD KilnStatus kiln_search_request(KilnSearch *search, const KilnComposeRequest *request,
                                              KilnErrors *errors, KilnError *err);
/* Visit every file of a group ("": the top) and of the groups below it; `visit` NULL: read them
 * into `search`. */
void kiln_search_walk(KilnSearch *search, const char *group, KilnGroupFileVisit *visit, void *ctx);
/* The same for a request: every file of every group, groups in byte order, those of `kiln` left
 * out, and files that can't be read. */
KILN_NODISCARD KilnStatus kiln_group_files(const KilnComposeRequest *request,
                                           const KilnComposeHooks *hooks, KilnGroupFileVisit *visit,
                                           void *ctx, KilnError *err);
/* The options of a group ("model"), or with `groups` the groups below it ("": all at the top), as
 * the request finds them; files and what the hooks offer, in byte order. NULL-terminated; owned by
 * the caller (kiln_names_free). */
KILN_NODISCARD KilnStatus kiln_group_options(const KilnComposeRequest *request,
                                             const KilnComposeHooks *hooks, const char *group,
                                             bool groups, char ***ret, size_t *ret_count,
                                             KilnError *err);

#endif
