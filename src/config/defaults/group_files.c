/* Visits the files of all groups in the search path, and reads them. */
#include "config/defaults/group_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
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

/* "group/name", or the name alone at the top. */
static const char *path_of(KilnArena *arena, const char *group, const char *name)
{
    return kiln_arena_printf(arena, "%s%s%s", group, group[0] != '\0' ? "/" : "", name);
}

KilnStatus kiln_search_walk(KilnSearch *search, const char *group, KilnGroupFileVisit *visit,
                            void *ctx, KilnError *err)
{
    const char **options = kiln_search_options(search, group, false);
    const char **groups = kiln_search_options(search, group, true);
    KilnStatus status = KILN_OK;

    if (options == NULL || groups == NULL)
        return kiln_error_nomem(err, 0);
    for (; *options != NULL && status != KILN_E_NOMEM; options++) {
        const char *path = path_of(search->arena, group, *options);
        KilnConfigFile *file = NULL;

        if (path == NULL)
            return kiln_error_nomem(err, 0);
        status = kiln_search_file(search, path, &file, err);
        if (file != NULL && !file->unreadable)
            visit(ctx, group, *options, file);
    }
    for (; *groups != NULL && status != KILN_E_NOMEM; groups++) {
        const char *path = path_of(search->arena, group, *groups);

        if (path == NULL)
            return kiln_error_nomem(err, 0);
        if (strcmp(path, "kiln") != 0 && strcmp(path, "hydra") != 0)
            status = kiln_search_walk(search, path, visit, ctx, err);
    }
    return status == KILN_E_NOMEM ? status : KILN_OK;
}

KilnStatus kiln_group_files(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                            KilnGroupFileVisit *visit, void *ctx, KilnError *err)
{
    KilnConfig config = { 0 }; /* hooks use its arena */
    KilnSearch *search = &config.search;

    config.arena = &config.storage;
    *search = (KilnSearch) { .arena = config.arena, .config = &config, .hooks = hooks };
    KilnStatus status = kiln_search_request(search, request, err);
    if (status >= 0)
        status = kiln_search_walk(search, "", visit, ctx, err);
    kiln_arena_release(config.arena);
    return status;
}

static KilnStatus copy_names(const char **names, char ***ret, size_t *ret_count, KilnError *err)
{
    size_t n = 0, done = 0;
    char **copy;

    while (names != NULL && names[n] != NULL)
        n++;
    copy = names != NULL ? calloc(n + 1, sizeof(*copy)) : NULL;
    while (copy != NULL && done < n && (copy[done] = kiln_strdup(names[done])) != NULL)
        done++;
    if (copy == NULL || done < n) {
        kiln_names_free(copy, done);
        return kiln_error_nomem(err, (n + 1) * sizeof(*copy));
    }
    *ret = copy;
    *ret_count = n;
    return KILN_OK;
}

KilnStatus kiln_group_options(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                              const char *group, bool groups, char ***ret, size_t *ret_count,
                              KilnError *err)
{
    KilnArena arena = { 0 };
    KilnSearch search = { .arena = &arena, .hooks = hooks };
    KilnStatus status = kiln_search_request(&search, request, err);

    if (status >= 0)
        status = copy_names(kiln_search_options(&search, group, groups), ret, ret_count, err);
    kiln_arena_release(&arena);
    return status;
}
