/* The search path: finds files and lists options. Reading is file.c's. */
#include "config/defaults/search_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/kiln_node/builtin_files.h"
#include "config/defaults/config_file.h"
#include "config/composed.h"

/* Names below these prefixes are looked up as they are, and then as Hydra calls them. */
static const char *foreign_path(KilnArena *arena, const char *path)
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

static int compare_shipped(const void *key, const void *file)
{
    return strcmp(key, ((const KilnShippedFile *)file)->path);
}

const KilnShippedFile *kiln_shipped_find(const char *name)
{
    const KilnShippedFile *file = NULL;

    if (kiln_shipped_conf_count > 0)
        file = bsearch(name, kiln_shipped_conf, kiln_shipped_conf_count, sizeof(*kiln_shipped_conf),
                       compare_shipped);
    for (size_t i = 0; file == NULL && kiln_builtin_conf[i].path != NULL; i++)
        if (strcmp(kiln_builtin_conf[i].path, name) == 0)
            file = &kiln_builtin_conf[i];
    return file;
}

/* Path of `name` below a folder, when something is there: a link that leads nowhere,
 * or what may not be looked at, is something, and found out when it is read. */
static const char *in_folder(const KilnSearch *search, const KilnSearchFolder *folder,
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

/* Look in folders, then in options of components, then in what ships. */
static KilnStatus find(KilnSearch *search, KilnConfigFile *file, bool *ret_found, KilnError *err)
{
    bool has_end = kiln_ends_with(file->path, ".yaml");
    const char *end = has_end ? "" : ".yaml";
    const char *name = kiln_arena_printf(search->arena, "%s%s", file->path, end);
    const char *foreign = foreign_path(search->arena, name);
    const char *slash = strrchr(file->path, '/');

    *ret_found = true;
    if (name == NULL)
        return kiln_error_nomem(err, strlen(file->path));
    for (const KilnSearchFolder *folder = search->folders; folder != NULL; folder = folder->next) {
        file->source = in_folder(search, folder, name);
        if (file->source == NULL && foreign != NULL)
            file->source = in_folder(search, folder, foreign);
        if (file->source != NULL)
            return kiln_config_file_load(search, file, err);
    }
    if (search->hooks != NULL && search->hooks->option != NULL && slash != NULL) {
        const char *group = kiln_arena_strndup(search->arena, file->path,
                                               (size_t)(slash - file->path));
        const char *yaml = NULL;

        if (group == NULL)
            return kiln_error_nomem(err, strlen(file->path));
        if (kiln_shipped_find(name) == NULL &&
            search->hooks->option(search->hooks->ctx, search->config, group, slash + 1, &yaml,
                                  &file->source))
            return kiln_config_file_parse(search, file, yaml, strlen(yaml), true, err);
    }
    const KilnShippedFile *shipped = kiln_shipped_find(name);
    if (shipped != NULL) {
        file->source = kiln_arena_printf(search->arena, "kiln:conf/%s", shipped->path);
        if (file->source == NULL)
            return kiln_error_nomem(err, strlen(name));
        return kiln_config_file_parse(search, file, shipped->text, shipped->size, false, err);
    }
    *ret_found = false;
    return KILN_OK;
}

KilnStatus kiln_search_file(KilnSearch *search, const char *path, KilnConfigFile **ret,
                            KilnError *err)
{
    KilnConfigFile *file;
    bool found;
    KilnStatus status;

    for (file = search->files; file != NULL; file = file->next) {
        if (strcmp(file->path, path) == 0) {
            *ret = file;
            return KILN_OK;
        }
    }
    file = kiln_arena_alloc(search->arena, sizeof(*file));
    if (file == NULL || (file->path = kiln_arena_strdup(search->arena, path)) == NULL)
        return kiln_error_nomem(err, sizeof(*file));
    status = find(search, file, &found, err);
    if (status == KILN_E_NOMEM)
        return status;
    *ret = found ? file : NULL;
    if (!found)
        return KILN_OK;
    file->unreadable = status < 0;
    file->next = search->files;
    search->files = file;
    return status;
}

/* ---- Groups and options ------------------------------------------------------- */

/* Is `path` ("model/resnet.yaml") below `group`? Its name there, else NULL. */
static const char *below(const char *path, const char *group)
{
    size_t n = strlen(group);

    if (n == 0)
        return path;
    return strncmp(path, group, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static bool shipped_group(const char *group)
{
    for (size_t i = 0; i < kiln_shipped_conf_count; i++)
        if (below(kiln_shipped_conf[i].path, group) != NULL)
            return true;
    for (size_t i = 0; kiln_builtin_conf[i].path != NULL; i++)
        if (below(kiln_builtin_conf[i].path, group) != NULL)
            return true;
    return false;
}

bool kiln_search_is_group(const KilnSearch *search, const char *group, bool own)
{
    const char *foreign = foreign_path(search->arena, group);

    for (const KilnSearchFolder *folder = search->folders; folder != NULL; folder = folder->next) {
        const char *path = in_folder(search, folder, group);

        if (path == NULL && foreign != NULL)
            path = in_folder(search, folder, foreign);
        if (path != NULL && kiln_is_dir(path))
            return true;
    }
    if (own)
        return false;
    return shipped_group(group) || (search->hooks != NULL && search->hooks->options != NULL &&
                                    search->hooks->options(search->hooks->ctx, group) != NULL);
}

typedef struct Names {
    KilnArena *arena;
    const char **list;
    size_t count, capacity;
    bool failed;
} Names;

static void add_name(Names *names, const char *name, size_t n)
{
    if (names->count + 1 >= names->capacity) {
        size_t capacity = names->capacity > 0 ? names->capacity * 2 : 16;
        const char **list = kiln_arena_alloc(names->arena, capacity * sizeof(*list));

        if (list == NULL) {
            names->failed = true;
            return;
        }
        if (names->count > 0)
            memcpy(list, names->list, names->count * sizeof(*list));
        names->list = list;
        names->capacity = capacity;
    }
    names->list[names->count] = kiln_arena_strndup(names->arena, name, n);
    if (names->list[names->count++] == NULL)
        names->failed = true;
}

/* A name in a folder: an option when it ends in .yaml, a group when it is a folder. */
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
        char *child = kiln_path_join(path, found[i]);

        if (child == NULL)
            names->failed = true;
        else if (found[i][0] != '.')
            add_entry(names, found[i], kiln_is_dir(child), groups);
        free(child);
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

const char **kiln_search_options(const KilnSearch *search, const char *group, bool groups)
{
    Names names = { .arena = search->arena };
    const char *foreign = foreign_path(search->arena, group);
    size_t kept = 0;

    for (const KilnSearchFolder *folder = search->folders; folder != NULL; folder = folder->next) {
        const char *path = *group == '\0' ? folder->path : in_folder(search, folder, group);

        if (path == NULL && foreign != NULL)
            path = in_folder(search, folder, foreign);
        if (path != NULL)
            add_folder(&names, path, groups);
    }
    if (!groups && search->hooks != NULL && search->hooks->options != NULL) {
        const char *const *more = search->hooks->options(search->hooks->ctx, group);

        for (; more != NULL && *more != NULL; more++)
            add_name(&names, *more, strlen(*more));
    }
    for (size_t i = 0; i < kiln_shipped_conf_count; i++)
        add_shipped(&names, kiln_shipped_conf[i].path, group, groups);
    for (size_t i = 0; kiln_builtin_conf[i].path != NULL; i++)
        add_shipped(&names, kiln_builtin_conf[i].path, group, groups);
    if (names.failed)
        return NULL;
    if (names.count == 0)
        return kiln_arena_alloc(search->arena, sizeof(char *));
    qsort(names.list, names.count, sizeof(*names.list), compare_names);
    for (size_t i = 0; i < names.count; i++)
        if (kept == 0 || strcmp(names.list[kept - 1], names.list[i]) != 0)
            names.list[kept++] = names.list[i];
    names.list[kept] = NULL;
    return names.list;
}

const char *kiln_search_describe(const KilnSearch *search)
{
    KilnText text = { 0 };
    const char *copy;

    for (const KilnSearchFolder *folder = search->folders; folder != NULL; folder = folder->next)
        kiln_text_printf(&text, "%s%s", text.length > 0 ? ", " : "", folder->path);
    kiln_text_printf(&text, "%swhat ships with kiln", text.length > 0 ? " and " : "");
    copy = kiln_arena_strdup(search->arena, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return copy != NULL ? copy : "";
}
