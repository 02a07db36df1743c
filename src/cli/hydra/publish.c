/* Writes the new files: all of them into a folder beside, which then takes its name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cli/hydra/outputs.h"

typedef struct Publish {
    const char *path, *stage;
    KilnError *err;
} Publish;

static KilnStatus write_files(const Publish *publish, const KilnImportOutputs *outputs)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < outputs->n && status >= 0; i++) {
        char *path = kiln_path_join(publish->stage, outputs->items[i].path);

        status = path != NULL ? kiln_dir_make_parent(path, publish->err)
                              : kiln_error_nomem(publish->err, strlen(publish->stage));
        if (status >= 0)
            status = kiln_file_write(path, outputs->items[i].text, strlen(outputs->items[i].text),
                                     publish->err);
        free(path);
    }
    return status;
}

/* Keep the files of the folder `from` that the new one does not have. */
static KilnStatus keep_others(const Publish *publish, const char *from, const char *to)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(from, &names, &n, publish->err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        char *old = kiln_path_join(from, names[i]), *new = kiln_path_join(to, names[i]);

        if (old == NULL || new == NULL)
            status = kiln_error_nomem(publish->err, strlen(from));
        else if (kiln_is_dir(old))
            status = kiln_dir_make(new, publish->err) >= 0 ? keep_others(publish, old, new)
                                                           : publish->err->status;
        else if (link(old, new) != 0 && errno != EEXIST)
            status = kiln_error_errno(publish->err, new);
        free(old);
        free(new);
    }
    kiln_names_free(names, n);
    return status;
}

/* Give the new folder its name; the old one moves into `old` for removal. */
static KilnStatus replace(const Publish *publish, const char *old)
{
    if (old != NULL && rename(publish->path, old) != 0)
        return kiln_error_errno(publish->err, publish->path);
    if (rename(publish->stage, publish->path) == 0)
        return KILN_OK;
    const KilnStatus status = kiln_error_errno(publish->err, publish->path);
    if (old != NULL)
        (void)rename(old, publish->path);
    return status;
}

KilnStatus kiln_import_publish(const KilnImportOutputs *outputs, const char *path, bool force,
                               KilnError *err)
{
    const bool exists = access(path, F_OK) == 0;
    KilnArena arena = { 0 };
    char *stage, *old;
    KilnStatus status = kiln_dir_make_parent(path, err);

    if (status < 0)
        return status;
    stage = kiln_arena_printf(&arena, "%s.import-XXXXXX", path);
    if (stage == NULL || mkdtemp(stage) == NULL)
        return stage == NULL ? kiln_error_nomem(err, strlen(path)) : kiln_error_errno(err, path);
    old = kiln_arena_printf(&arena, "%s.old", stage);
    Publish publish = { path, stage, err };
    status = old != NULL ? write_files(&publish, outputs) : kiln_error_nomem(err, strlen(path));
    if (status >= 0 && chmod(stage, 0755) != 0)
        status = kiln_error_errno(err, stage);
    if (status >= 0 && exists && force)
        status = keep_others(&publish, path, stage);
    if (status >= 0)
        status = replace(&publish, exists && force ? old : NULL);
    if (kiln_path_remove(status < 0 ? stage : old, status < 0 ? NULL : err) < 0 && status >= 0)
        status = err->status;
    kiln_arena_release(&arena);
    return status;
}
