/* kiln init: writes a starting project, whole or not at all. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cli/commands/commands.h"
#include "cli/init_files.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "kiln/run.h"
#include "registry/config_schema.h"

/* Everything is written to this folder first. */
#define STAGE ".kiln-init-XXXXXX"

/* The entries of the project's folder, in the order in which they are moved there: conf/ last,
 * since it makes a folder a project. */
static const char *const tops[] = { ".gitignore", "README.md", "conf" };

/* Whether the path exists, also as a broken link. */
static bool exists(const char *path)
{
    return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Write `dir`/`name`, making folders as needed. */
static KilnStatus write_below(const char *dir, const char *name, const char *text, size_t size,
                              KilnError *err)
{
    char *path = kiln_path_join(dir, name);
    KilnStatus status = path != NULL ? kiln_dir_make_parent(path, err)
                                     : kiln_error_nomem(err, strlen(name));

    if (status >= 0)
        status = kiln_file_write(path, text, size, err);
    free(path);
    return status;
}

static KilnStatus write_templates(const char *stage, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < kiln_init_files_count && status >= 0; i++) {
        const KilnShippedFile *file = &kiln_init_files[i];
        const char *name = strcmp(file->path, "gitignore") == 0 ? ".gitignore" : file->path;

        status = write_below(stage, name, file->text, file->size, err);
    }
    return status;
}

static KilnStatus write_schema(const KilnComposeRequest *request, const char *stage,
                               const char *group, KilnError *err)
{
    KilnText name = { 0 };
    char *json = NULL;
    KilnStatus status = kiln_group_schema(request, group, &json, err);

    kiln_text_printf(&name, "conf/.schema/%s.json", group[0] != '\0' ? group : "config");
    if (status >= 0 && name.failed)
        status = kiln_error_nomem(err, 0);
    if (status >= 0)
        status = write_below(stage, name.data, json, strlen(json), err);
    kiln_text_release(&name);
    free(json);
    return status;
}

/* Write a schema for each group of the new conf/ and of the built-in one. */
static KilnStatus write_schemas(const KilnRegistry *registry, const char *stage, KilnError *err)
{
    char *conf = kiln_path_join(stage, "conf");
    KilnComposeRequest request = { .config_path = conf,
                                   .registry = registry,
                                   .sections = kiln_run_sections() };
    char **groups = NULL;
    size_t count = 0;
    KilnStatus status = conf != NULL ? KILN_OK : kiln_error_nomem(err, strlen(stage));

    if (status >= 0)
        status = write_schema(&request, stage, "", err);
    if (status >= 0)
        status = kiln_compose_options(&request, "", true, &groups, &count, err);
    for (size_t i = 0; i < count && status >= 0; i++)
        if (strcmp(groups[i], "kiln") != 0)
            status = write_schema(&request, stage, groups[i], err);
    kiln_names_free(groups, count);
    free(conf);
    return status;
}

/* ---- Moving it into place --------------------------------------------------------------- */

/* Move stage/name to dir/name unless that exists. */
static KilnStatus move_top(const char *stage, const char *dir, const char *name, bool *ret_moved,
                           KilnError *err)
{
    char *from = kiln_path_join(stage, name), *to = kiln_path_join(dir, name);
    KilnStatus status = KILN_OK;

    if (from == NULL || to == NULL) {
        status = kiln_error_nomem(err, strlen(name));
    } else if (!exists(to)) {
        if (rename(from, to) == 0)
            *ret_moved = true;
        else
            status = kiln_error_errno(err, to);
    }
    free(from);
    free(to);
    return status;
}

static void undo(const char *dir, const bool *moved)
{
    for (size_t i = 0; i < KILN_COUNT(tops); i++) {
        char *path = moved[i] ? kiln_path_join(dir, tops[i]) : NULL;

        if (path != NULL && kiln_path_remove(path, NULL) < 0)
            fprintf(stderr, "init: %s could not be removed again\n", path);
        free(path);
    }
}

static KilnStatus move_all(const char *stage, const char *dir, bool *moved, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < KILN_COUNT(tops) && status >= 0; i++)
        status = move_top(stage, dir, tops[i], &moved[i], err);
    /* Somebody made it in the meantime. */
    if (status >= 0 && !moved[KILN_COUNT(tops) - 1])
        status = kiln_error_set(err, KILN_E_IO, "%s: there is a conf/ already", dir);
    if (status < 0)
        undo(dir, moved);
    return status;
}

static KilnStatus write_project(const KilnRegistry *registry, const char *dir, bool *moved,
                                KilnError *err)
{
    char *stage = kiln_path_join(dir, STAGE);
    KilnStatus status = stage != NULL ? KILN_OK : kiln_error_nomem(err, strlen(dir));

    if (status >= 0 && mkdtemp(stage) == NULL) {
        status = kiln_error_errno(err, dir);
        free(stage);
        return status;
    }
    if (status >= 0)
        status = write_templates(stage, err);
    if (status >= 0)
        status = write_schemas(registry, stage, err);
    if (status >= 0)
        status = move_all(stage, dir, moved, err);
    if (stage != NULL && kiln_path_remove(stage, NULL) < 0)
        fprintf(stderr, "init: %s could not be removed\n", stage);
    free(stage);
    return status;
}

/* ---- The command --------------------------------------------------------------------------- */

static const char *const purposes[] = {
    [0] = "leaves outputs/ and multirun/ out of git",
    [1] = "commands to begin with",
    [2] = "config.yaml, model/mine.yaml, experiment/example.yaml, and .schema/ for editors",
};

static int report(const char *dir, const bool *moved)
{
    KilnPage page = kiln_screen_page();
    bool here = strcmp(dir, ".") == 0;

    for (size_t i = 0; i < KILN_COUNT(tops); i++) {
        char *path = kiln_path_join(dir, tops[i]);

        kiln_text_printf(&page.text, "  %s %s", moved[i] ? "wrote" : "kept ",
                         path != NULL ? path : tops[i]);
        kiln_page_beside(&page, 36, "%s",
                         moved[i] ? purposes[i] : "was there already, left as it is");
        free(path);
    }
    kiln_page_heading(&page, "next");
    if (!here)
        kiln_text_printf(&page.text, "  cd %s\n", dir);
    kiln_page_pair(&page, 36, "train", "trains the default config");
    kiln_page_pair(&page, 36, "train experiment=example", "a recipe");
    kiln_page_pair(&page, 36, "train --help", "groups, values, flags");
    kiln_page_pair(&page, 36, "$EDITOR conf/config.yaml", "explains the rest");
    return kiln_screen_print(&page);
}

static KilnStatus init(const KilnArgs *args, const char *dir, bool *moved, KilnError *err)
{
    const bool is_new = !exists(dir);
    char *conf = kiln_path_join(dir, "conf");
    KilnRegistry *registry = NULL;
    KilnStatus status = KILN_OK;

    if (conf == NULL)
        status = kiln_error_nomem(err, strlen(dir));
    else if (!is_new && !kiln_is_dir(dir))
        status = kiln_error_set(err, KILN_E_IO, "%s: is a file; give a folder", dir);
    else if (exists(conf))
        status = kiln_error_set(err, KILN_E_IO,
                                "%s: there is a conf/ already, nothing is overwritten; give "
                                "another folder",
                                dir);
    free(conf);
    if (status >= 0)
        status = kiln_command_registry(args, &registry);
    if (status < 0)
        return status;
    status = kiln_dir_make(dir, err);
    if (status >= 0)
        status = write_project(registry, dir, moved, err);
    if (status < 0 && is_new)
        rmdir(dir); /* empty again */
    kiln_registry_free(registry);
    return status;
}

int kiln_command_init(KilnArgs *args)
{
    const char *dir = args->n_words == 1 ? args->words[0] : NULL;
    bool moved[KILN_COUNT(tops)] = { false };
    KilnError err = { 0 };
    KilnStatus status = dir != NULL
                            ? init(args, dir, moved, &err)
                            : kiln_error_set(&err, KILN_E_USAGE,
                                             "init takes one folder (`kiln init .` for this one), "
                                             "not %zu",
                                             args->n_words);

    return status < 0 ? kiln_screen_result(args->command, status, &err) : report(dir, moved);
}
