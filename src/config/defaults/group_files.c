/* Visits the files of all groups in the search path, and reads them. */
#include "config/defaults/group_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/composed.h"
#include "config/provenance/error_list.h"

KilnStatus kiln_search_request(KilnSearch *search, const KilnComposeRequest *request,
                               KilnErrors *errors, KilnError *err)
{
    const char *const *dirs = request->config_dirs;
    const char *path = request->config_path;
    KilnStatus status = KILN_OK;

    if ((path != NULL || kiln_is_dir("conf")) &&
        kiln_search_add(search, path != NULL ? path : "conf",
                        path != NULL ? "--config-path" : "./conf", err) < 0)
        status = kiln_errors_add(errors, err);
    for (; dirs != NULL && *dirs != NULL; dirs++)
        if (kiln_search_add(search, *dirs, "--config-dir", err) < 0)
            status = kiln_errors_add(errors, err);
    return status;
}

/* "group/name", or the name alone at the top. */
static const char *path_of(KilnArena *arena, const char *group, const char *name)
{
    return kiln_arena_printf(arena, "%s%s%s", group, group[0] != '\0' ? "/" : "", name);
}

void kiln_search_walk(KilnSearch *search, const char *group, KilnGroupFileVisit *visit, void *ctx)
{
    const char *const *names = kiln_search_options(search, group, false), *path;

    for (; *names != NULL && (path = path_of(search->arena, group, *names)) != NULL; names++) {
        const KilnConfigFile *file = kiln_search_file(search, path, NULL);

        if (file != NULL && !file->unreadable && visit != NULL)
            visit(ctx, group, *names, file);
    }
    names = kiln_search_options(search, group, true);
    for (; *names != NULL && (path = path_of(search->arena, group, *names)) != NULL; names++)
        if (strcmp(path, "kiln") != 0 && strcmp(path, "hydra") != 0)
            kiln_search_walk(search, path, visit, ctx);
}

/* The folders of the request and of plugins. */
static KilnStatus search_all(KilnSearch *search, const KilnComposeRequest *request, KilnError *err)
{
    KilnError ignored;
    KilnStatus status = kiln_search_request(search, request, NULL, err != NULL ? err : &ignored);

    return status >= 0 ? kiln_search_add_plugins(search, err) : status;
}

KilnStatus kiln_group_files(const KilnComposeRequest *request, const KilnComposeHooks *hooks,
                            KilnGroupFileVisit *visit, void *ctx, KilnError *err)
{
    KilnConfig config = { 0 }; /* hooks use its arena */
    KilnSearch *search = &config.search;

    config.arena = &config.storage;
    *search = (KilnSearch) { .arena = config.arena, .config = &config, .hooks = hooks };
    KilnStatus status = search_all(search, request, err);
    if (status >= 0)
        kiln_search_walk(search, "", visit, ctx);
    if (config.arena->failed)
        status = kiln_error_nomem(err, 0);
    kiln_arena_release(config.arena);
    return status;
}

static KilnStatus copy_names(const char *const *names, char ***ret, size_t *ret_count,
                             KilnError *err)
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
    KilnStatus status = search_all(&search, request, err);

    if (status >= 0)
        status = copy_names(kiln_search_options(&search, group, groups), ret, ret_count, err);
    kiln_arena_release(&arena);
    return status;
}
