/* The search path: finds config files and lists options of groups. config_file.c reads the files.
 */
#include "config/defaults/search_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/system/file.h"
#include "base/text.h"
#include "config/kiln_node/builtin_files.h"
#include "config/defaults/config_file.h"
#include "config/composed.h"

/* "hydra/x" for "kiln/x", which is looked up under both names; NULL for other paths. */
static const char *hydra_path(KilnArena *arena, const char *path)
{
    if (path == NULL || strcspn(path, "/.") != strlen("kiln") || !kiln_starts_with(path, "kiln"))
        return NULL;
    return kiln_arena_printf(arena, "hydra%s", path + strlen("kiln"));
}

KilnStatus kiln_search_add(KilnSearch *search, const char *path, const char *what, KilnError *err)
{
    KilnSearchFolder *folder = kiln_arena_alloc(search->arena, sizeof(*folder));
    KilnSearchFolder **end = &search->folders;

    if (kiln_starts_with(path, "file://"))
        path += strlen("file://");
    if (strstr(path, "://") != NULL)
        return kiln_error_set(err, KILN_E_IO, "%s: '%s' is no folder; only folders can be searched",
                              what, path);
    if (!kiln_is_dir(path))
        return kiln_error_set(err, KILN_E_IO, "%s: there is no folder '%s'", what, path);
    if (folder == NULL || (folder->path = kiln_arena_strdup(search->arena, path)) == NULL)
        return kiln_error_nomem(err, sizeof(*folder));
    folder->provider = what;
    while (*end != NULL)
        end = &(*end)->next;
    *end = folder;
    return KILN_OK;
}

KilnStatus kiln_search_add_plugins(KilnSearch *search, KilnError *err)
{
    char *const *folders = search->hooks != NULL ? search->hooks->folders : NULL;
    KilnStatus status = KILN_OK;

    for (; folders != NULL && *folders != NULL && status >= 0; folders++)
        status = kiln_search_add(search, *folders, "beside a plugin", err);
    return status;
}

/* File number `i` of those inside the program; NULL at the end. */
static const KilnShippedFile *shipped_at(size_t i)
{
    if (i < kiln_shipped_conf_count)
        return &kiln_shipped_conf[i];
    i -= kiln_shipped_conf_count;
    return kiln_builtin_conf[i].path != NULL ? &kiln_builtin_conf[i] : NULL;
}

const KilnShippedFile *kiln_shipped_find(const char *name)
{
    const KilnShippedFile *file;

    for (size_t i = 0; (file = shipped_at(i)) != NULL; i++)
        if (strcmp(file->path, name) == 0)
            break;
    return file;
}

/* The path of a file or folder in a folder; NULL when there is none. A broken link, or a file
 * without permission, is reported when it is read. */
static const char *path_in(const KilnSearch *search, const KilnSearchFolder *folder,
                           const char *name)
{
    struct stat st;
    bool here = strcmp(folder->path, ".") == 0;
    const char *path = here ? name
                            : kiln_arena_printf(search->arena, "%s%s%s", folder->path,
                                                kiln_ends_with(folder->path, "/") ? "" : "/", name);

    if (path == NULL || lstat(path, &st) == 0)
        return path;
    return errno == ENOENT || errno == ENOTDIR ? NULL : path;
}

/* The same under kiln's name or Hydra's. */
static const char *find_in(const KilnSearch *search, const KilnSearchFolder *folder,
                           const char *name)
{
    const char *hydra = hydra_path(search->arena, name);
    const char *path = path_in(search, folder, name);

    return path == NULL && hydra != NULL ? path_in(search, folder, hydra) : path;
}

/* Options of components, as YAML; NULL: none. */
static const char *find_option(KilnSearch *search, KilnConfigFile *file)
{
    const KilnComposeHooks *hooks = search->hooks;
    const char *slash = strrchr(file->path, '/'), *yaml = NULL, *group;

    if (hooks == NULL || hooks->option == NULL || slash == NULL)
        return NULL;
    group = kiln_arena_strndup(search->arena, file->path, (size_t)(slash - file->path));
    if (group == NULL ||
        !hooks->option(hooks->ctx, search->config, group, slash + 1, &yaml, &file->source))
        return NULL;
    return yaml;
}

/* Searches folders, then options of components, then files that ship with kiln. Sets no source when
 * there is no file. */
static KilnStatus find(KilnSearch *search, KilnConfigFile *file, KilnError *err)
{
    const char *suffix = kiln_ends_with(file->path, ".yaml") ? "" : ".yaml", *yaml = NULL;
    const char *name = kiln_arena_printf(search->arena, "%s%s", file->path, suffix);
    const KilnShippedFile *shipped;

    if (name == NULL)
        return KILN_E_NOMEM;
    for (const KilnSearchFolder *folder = search->folders; folder != NULL; folder = folder->next) {
        file->source = find_in(search, folder, name);
        if (file->source != NULL)
            return kiln_config_file_load(search, file, err);
    }
    shipped = kiln_shipped_find(name);
    if (shipped == NULL)
        yaml = find_option(search, file);
    if (yaml != NULL)
        return kiln_config_file_parse(search, file, yaml, strlen(yaml), true, err);
    if (shipped == NULL)
        return KILN_OK;
    file->source = kiln_arena_printf(search->arena, "kiln:conf/%s", shipped->path);
    return kiln_config_file_parse(search, file, shipped->text, shipped->size, false, err);
}

KilnConfigFile *kiln_search_file(KilnSearch *search, const char *path, KilnError *err)
{
    KilnConfigFile *file;
    KilnStatus status;

    for (file = search->files; file != NULL; file = file->next)
        if (strcmp(file->path, path) == 0)
            return file;
    file = kiln_arena_alloc(search->arena, sizeof(*file));
    if (file == NULL || (file->path = kiln_arena_strdup(search->arena, path)) == NULL)
        return NULL;
    status = find(search, file, err);
    search->arena->failed |= status == KILN_E_NOMEM; /* also in a buffer on the way */
    if (file->source == NULL || search->arena->failed)
        return NULL;
    file->unreadable = status < 0;
    file->next = search->files;
    search->files = file;
    return file;
}

/* ---- Groups and options ------------------------------------------------------- */

/* The part of `path` ("model/resnet.yaml") below `group`; NULL: it is not below. */
static const char *below(const char *path, const char *group)
{
    size_t n = strlen(group);

    if (n == 0)
        return path;
    return strncmp(path, group, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static bool is_shipped_group(const char *group)
{
    for (size_t i = 0; shipped_at(i) != NULL; i++)
        if (below(shipped_at(i)->path, group) != NULL)
            return true;
    return false;
}

bool kiln_search_is_group(const KilnSearch *search, const char *group, bool own)
{
    const KilnComposeHooks *hooks = search->hooks;

    for (const KilnSearchFolder *folder = search->folders; folder != NULL; folder = folder->next) {
        const char *path = find_in(search, folder, group);

        if (path != NULL && kiln_is_dir(path))
            return true;
    }
    return !own && (is_shipped_group(group) || (hooks != NULL && hooks->options != NULL &&
                                                hooks->options(hooks->ctx, group, 0) != NULL));
}

typedef struct Names {
    KilnArena *arena;
    const char **list;
    size_t count, capacity;
} Names;

static void add_name(Names *names, const char *name, size_t n)
{
    const char *copy = kiln_arena_strndup(names->arena, name, n);

    if (copy != NULL && KILN_ARENA_RESERVE(names->arena, names->list, names->capacity,
                                           names->count + 2)) /* one for the NULL */
        names->list[names->count++] = copy;
}

/* Adds an option for NAME.yaml, or with `groups` a group for a folder. */
static void add_entry(Names *names, const char *name, bool is_dir, bool groups)
{
    size_t n = strlen(name);

    if (groups && is_dir)
        add_name(names, name, n);
    else if (!groups && !is_dir && kiln_ends_with(name, ".yaml") && n > strlen(".yaml"))
        add_name(names, name, n - strlen(".yaml"));
}

static void add_folder(Names *names, const char *path, bool groups)
{
    char **found = NULL;
    size_t count = 0;

    if (kiln_dir_list(path, &found, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        const char *child = kiln_arena_printf(names->arena, "%s/%s", path, found[i]);

        if (child != NULL && found[i][0] != '.')
            add_entry(names, found[i], kiln_is_dir(child), groups);
    }
    kiln_names_free(found, count);
}

static void add_shipped(Names *names, const char *path, const char *group, bool groups)
{
    const char *name = below(path, group), *slash = name != NULL ? strchr(name, '/') : NULL;

    if (name == NULL)
        return;
    if (slash == NULL)
        add_entry(names, name, false, groups);
    else if (groups)
        add_name(names, name, (size_t)(slash - name));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *const *kiln_search_options(const KilnSearch *search, const char *group, bool groups)
{
    static const char *const none[] = { NULL };
    const KilnComposeHooks *hooks = search->hooks;
    const char *option;
    Names names = { .arena = search->arena };
    size_t n = 0;

    for (const KilnSearchFolder *folder = search->folders; folder != NULL; folder = folder->next) {
        const char *path = *group == '\0' ? folder->path : find_in(search, folder, group);

        if (path != NULL)
            add_folder(&names, path, groups);
    }
    if (!groups && hooks != NULL && hooks->options != NULL)
        for (size_t i = 0; (option = hooks->options(hooks->ctx, group, i)) != NULL; i++)
            add_name(&names, option, strlen(option));
    for (size_t i = 0; shipped_at(i) != NULL; i++)
        add_shipped(&names, shipped_at(i)->path, group, groups);
    if (names.count == 0)
        return none;
    qsort(names.list, names.count, sizeof(*names.list), compare_names);
    for (size_t i = 0; i < names.count; i++)
        if (n == 0 || strcmp(names.list[n - 1], names.list[i]) != 0)
            names.list[n++] = names.list[i];
    names.list[n] = NULL;
    return names.list;
}

const char *kiln_search_describe(const KilnSearch *search)
{
    KilnText text = { 0 };

    for (const KilnSearchFolder *folder = search->folders; folder != NULL; folder = folder->next)
        kiln_text_printf(&text, "%s%s", text.length > 0 ? ", " : "", folder->path);
    kiln_text_printf(&text, "%swhat ships with kiln", text.length > 0 ? " and " : "");
    return kiln_text_to_arena(&text, search->arena);
}
