/* Walks over the groups of the search path and reads what they hold. */
#include "config/defaults/group_files.h"

#include <string.h>

#include "base/system/file.h"
#include "config/composed.h"

KilnStatus kiln_search_request(KilnSearch *search, const KilnComposeRequest *request,
                               KilnError *err)
{
    const char *const *dirs = request->config_dirs;
    KilnStatus status = KILN_OK;

    if (request->config_path != NULL)
        status = kiln_search_add(search, request->config_path, "--config-path", err);
    else if (kiln_is_dir("conf"))
        status = kiln_search_add(search, "conf", "conf", err);
    for (; status >= 0 && dirs != NULL && *dirs != NULL; dirs++)
        status = kiln_search_add(search, *dirs, "--config-dir", err);
    return status >= 0 ? kiln_search_add_plugins(search, err) : status;
}

typedef struct Walk {
    KilnSearch *search;
    KilnGroupFileVisit *visit;
    void *ctx;
} Walk;

/* "group/name", or the name alone at the top. */
static const char *path_of(const Walk *walk, const char *group, const char *name)
{
    return kiln_arena_printf(walk->search->arena, "%s%s%s", group, group[0] != '\0' ? "/" : "",
                             name);
}

static KilnStatus walk_group(const Walk *walk, const char *group, KilnError *err)
{
    const char **options = kiln_search_options(walk->search, group, false);
    const char **groups = kiln_search_options(walk->search, group, true);
    KilnStatus status = KILN_OK;

    if (options == NULL || groups == NULL)
        return kiln_error_nomem(err, 0);
    for (; *options != NULL && status != KILN_E_NOMEM; options++) {
        const char *path = path_of(walk, group, *options);
        KilnConfigFile *file = NULL;

        if (path == NULL)
            return kiln_error_nomem(err, 0);
        status = kiln_search_file(walk->search, path, &file, err);
        if (file != NULL && !file->unreadable)
            walk->visit(walk->ctx, group, *options, file);
    }
    for (; *groups != NULL && status != KILN_E_NOMEM; groups++) {
        const char *path = path_of(walk, group, *groups);

        if (path == NULL)
            return kiln_error_nomem(err, 0);
        if (strcmp(path, "kiln") != 0 && strcmp(path, "hydra") != 0)
            status = walk_group(walk, path, err);
    }
    return status == KILN_E_NOMEM ? status : KILN_OK;
}

KilnStatus kiln_search_walk(KilnSearch *search, KilnGroupFileVisit *visit, void *ctx,
                            KilnError *err)
{
    const Walk walk = { .search = search, .visit = visit, .ctx = ctx };

    return walk_group(&walk, "", err);
}

KilnStatus kiln_group_files(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                            KilnGroupFileVisit *visit, void *ctx, KilnError *err)
{
    KilnConfig config = { 0 }; /* hooks look for the arena in it */
    KilnSearch *search = &config.search;

    config.arena = &config.storage;
    *search = (KilnSearch) { .arena = config.arena, .config = &config, .hooks = hooks };
    KilnStatus status = kiln_search_request(search, request, err);
    if (status >= 0)
        status = kiln_search_walk(search, visit, ctx, err);
    kiln_arena_release(config.arena);
    return status;
}
