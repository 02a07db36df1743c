/* What the configs of jobs are made of, as it was when the sweep began: copies of the config files
 * below .kiln/conf of the sweep's folder, and environment variables in the journal. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/system/file.h"
#include "base/system/sync.h"
#include "config/composed.h"
#include "config/defaults/group_files.h"
#include "sweep/sweep_state.h"

#define CONFIG_COPIES ".kiln/conf"

static const size_t largest_file = (size_t)1 << 26;

/* ---- Environment variables -------------------------------------------------------------- */

/* "NAME=VALUE", or "NAME" when it was not set. */
static const char *variable_text(KilnArena *arena, const KilnVariable *variable)
{
    return variable->value != NULL
               ? kiln_arena_printf(arena, "%s=%s", variable->name, variable->value)
               : kiln_arena_strdup(arena, variable->name);
}

static bool has_variable(const KilnSweep *sweep, const char *name)
{
    const size_t n = strlen(name);

    for (size_t i = 0; i < sweep->n_variables; i++)
        if (strncmp(sweep->variables[i], name, n) == 0 &&
            (sweep->variables[i][n] == '=' || sweep->variables[i][n] == '\0'))
            return true;
    return false;
}

KilnStatus kiln_sweep_add_variable(KilnSweep *sweep, const char *text, KilnError *err)
{
    if (text == NULL || !KILN_ARENA_RESERVE(&sweep->arena, sweep->variables,
                                            sweep->variables_capacity, sweep->n_variables + 2))
        return kiln_error_nomem(err, 1);
    sweep->variables[sweep->n_variables++] = text;
    sweep->variables[sweep->n_variables] = NULL;
    sweep->compose.environment = sweep->variables;
    return KILN_OK;
}

static KilnStatus copy_variables(KilnSweep *sweep, const KilnConfig *config, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (const KilnVariable *variable = *config->variables; variable != NULL && status >= 0;
         variable = variable->next)
        if (!has_variable(sweep, variable->name))
            status = kiln_sweep_add_variable(sweep, variable_text(&sweep->arena, variable), err);
    return status;
}

/* ---- Config files ---------------------------------------------------------------------- */

static bool is_copied(const KilnSweep *sweep, const char *path)
{
    for (size_t i = 0; i < sweep->n_copies; i++)
        if (strcmp(sweep->copies[i].path, path) == 0)
            return true;
    return false;
}

static KilnStatus copy_file(KilnSweep *sweep, const KilnConfigFile *file, KilnError *err)
{
    const char *end = kiln_ends_with(file->path, ".yaml") ? "" : ".yaml";
    const char *path = kiln_arena_printf(&sweep->arena, "%s%s", file->path, end);
    KilnConfigCopy copy = { .path = path };
    char *text = NULL;

    if (path == NULL)
        return kiln_error_nomem(err, strlen(file->path));
    /* What ships with the program, and options that components provide, are no files. */
    if (file->unreadable || !kiln_is_file(file->source) || is_copied(sweep, path))
        return KILN_OK;
    if (!KILN_RESERVE(sweep->copies, sweep->copies_capacity, sweep->n_copies + 1))
        return kiln_error_nomem(err, sizeof(copy));
    KilnStatus status = kiln_file_read(file->source, largest_file, &text, &copy.size, err);
    if (status >= 0) {
        copy.text = kiln_arena_strndup(&sweep->arena, text, copy.size);
        status = copy.text != NULL ? KILN_OK : kiln_error_nomem(err, copy.size);
    }
    free(text);
    if (status >= 0)
        sweep->copies[sweep->n_copies++] = copy;
    return status;
}

KilnStatus kiln_sweep_copy_sources(KilnSweep *sweep, const KilnConfig *config, KilnError *err)
{
    KilnStatus status = copy_variables(sweep, config, err);

    for (const KilnConfigFile *file = config->search.files; file != NULL && status >= 0;
         file = file->next)
        status = copy_file(sweep, file, err);
    return status;
}

typedef struct Copier {
    KilnSweep *sweep;
    KilnError *err;
    KilnStatus status;
} Copier;

static void visit(void *ctx, const char *group, const char *option, const KilnConfigFile *file)
{
    Copier *copier = ctx;

    (void)group;
    (void)option;
    if (copier->status >= 0)
        copier->status = copy_file(copier->sweep, file, copier->err);
}

/* Copy all files that the sweep's search path offers: later points may select others. */
static KilnStatus copy_search_path(KilnSweep *sweep, KilnError *err)
{
    Copier copier = { .sweep = sweep, .err = err };
    KilnSearch search = sweep->config->search;

    search.hooks = NULL;
    kiln_search_walk(&search, "", visit, &copier);
    if (copier.status >= 0 && search.arena->failed)
        return kiln_error_nomem(err, 1);
    return copier.status;
}

/* ---- On disk ----------------------------------------------------------------------------- */

/* Write the copies that are not on disk yet. */
static KilnStatus write_files(KilnSweep *sweep, KilnError *err)
{
    KilnText path = { 0 };
    KilnStatus status;

    kiln_text_printf(&path, "%s/" CONFIG_COPIES, sweep->path);
    size_t root = path.length;
    status = path.failed ? kiln_error_nomem(err, 1) : kiln_dir_make(path.data, err);
    for (; sweep->n_written < sweep->n_copies && status >= 0; sweep->n_written++) {
        const KilnConfigCopy *file = &sweep->copies[sweep->n_written];
        const char *slash = strrchr(file->path, '/');

        path.length = root;
        kiln_text_printf(&path, "/%.*s", slash != NULL ? (int)(slash - file->path) : 0, file->path);
        if (!path.failed)
            status = kiln_dir_make(path.data, err);
        path.length = root;
        kiln_text_printf(&path, "/%s", file->path);
        if (path.failed)
            status = kiln_error_nomem(err, 1);
        if (status >= 0 && !kiln_is_file(path.data))
            status = kiln_file_write(path.data, file->text, file->size, err);
    }
    kiln_text_release(&path);
    return status;
}

KilnStatus kiln_sweep_use_copies(KilnSweep *sweep, KilnError *err)
{
    sweep->compose.config_path = kiln_arena_printf(&sweep->arena, "%s/" CONFIG_COPIES, sweep->path);
    sweep->compose.config_name = sweep->start.config_name;
    sweep->compose.config_dirs = sweep->start.config_dirs;
    return sweep->compose.config_path != NULL ? KILN_OK
                                              : kiln_error_nomem(err, strlen(sweep->path));
}

KilnStatus kiln_sweep_snapshot(KilnSweep *sweep, KilnError *err)
{
    char *own = kiln_path_join(sweep->path, ".kiln");
    KilnStatus status = own != NULL ? kiln_sweep_copy_sources(sweep, sweep->config, err)
                                    : kiln_error_nomem(err, strlen(sweep->path));

    if (status >= 0)
        status = copy_search_path(sweep, err);
    if (status >= 0)
        status = write_files(sweep, err);
    if (status >= 0)
        status = kiln_tree_sync(own, err);
    if (status >= 0)
        status = kiln_dirs_sync(sweep->path, sweep->top, err);
    free(own);
    return status >= 0 ? kiln_sweep_use_copies(sweep, err) : status;
}

KilnStatus kiln_sweep_record_sources(KilnSweep *sweep, KilnError *err)
{
    KilnStatus status = sweep->n_written < sweep->n_copies ? write_files(sweep, err) : KILN_OK;

    if (status >= 0 && sweep->n_recorded < sweep->n_variables)
        status = kiln_journal_append(
            sweep->journal, kiln_record_environment(sweep->variables + sweep->n_recorded), err);
    if (status >= 0)
        sweep->n_recorded = sweep->n_variables;
    return status;
}
