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
#include "kiln/embed/run.h"
#include "registry/config_schema.h"

/* The entries of the project's folder, in the order in which they are moved there: conf/ last,
 * since it makes a folder a project. */
static const struct {
    const char *name, *purpose;
} tops[] = {
    { ".gitignore", "leaves outputs/ and multirun/ out of git" },
    { "README.md", "commands to begin with" },
    { "conf", "config.yaml, model/mine.yaml, experiment/example.yaml, and .schema/ for editors" },
};
enum { TOPS = KILN_COUNT(tops) };

typedef struct Project {
    const char *dir;
    char *stage; /* a folder in it, to which everything is written first */
    bool moved[TOPS];
    KilnArena arena; /* of the paths */
    KilnError *err;
} Project;

/* Whether the path exists, also as a broken link. */
static bool exists(const char *path)
{
    return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* NULL when memory is out. */
static const char *path_in(Project *project, const char *dir, const char *name)
{
    return strcmp(dir, ".") == 0 ? name : kiln_arena_printf(&project->arena, "%s/%s", dir, name);
}

static KilnStatus write_file(Project *project, const char *name, const char *text, size_t size)
{
    const char *path = path_in(project, project->stage, name);
    KilnStatus status = path != NULL ? kiln_dir_make_parent(path, project->err)
                                     : kiln_error_nomem(project->err, strlen(name));

    return status >= 0 ? kiln_file_write(path, text, size, project->err) : status;
}

static KilnStatus write_templates(Project *project)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < kiln_init_files_count && status >= 0; i++) {
        const KilnShippedFile *file = &kiln_init_files[i];
        const char *name = strcmp(file->path, "gitignore") == 0 ? ".gitignore" : file->path;

        status = write_file(project, name, file->text, file->size);
    }
    return status;
}

static KilnStatus write_schema(Project *project, const KilnComposeRequest *request,
                               const char *group)
{
    const char *name = kiln_arena_printf(&project->arena, "conf/.schema/%s.json",
                                         group[0] != '\0' ? group : "config");
    char *json = NULL;
    KilnStatus status = name != NULL ? kiln_group_schema(request, group, &json, project->err)
                                     : kiln_error_nomem(project->err, strlen(group));

    if (status >= 0)
        status = write_file(project, name, json, strlen(json));
    free(json);
    return status;
}

/* Write a schema for each group of the new conf/ and of the built-in one. */
static KilnStatus write_schemas(Project *project, const KilnRegistry *registry)
{
    KilnComposeRequest request = { .config_path = path_in(project, project->stage, "conf"),
                                   .registry = registry,
                                   .sections = kiln_run_sections() };
    char **groups = NULL;
    size_t count = 0;
    KilnStatus status = request.config_path != NULL ? write_schema(project, &request, "")
                                                    : kiln_error_nomem(project->err, 0);

    if (status >= 0)
        status = kiln_compose_options(&request, "", true, &groups, &count, project->err);
    for (size_t i = 0; i < count && status >= 0; i++)
        if (strcmp(groups[i], "kiln") != 0)
            status = write_schema(project, &request, groups[i]);
    kiln_names_free(groups, count);
    return status;
}

/* Move what was written into place, unless it exists there; on failure move nothing. */
static KilnStatus move_all(Project *project)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < TOPS && status >= 0; i++) {
        const char *from = path_in(project, project->stage, tops[i].name);
        const char *to = path_in(project, project->dir, tops[i].name);

        if (from == NULL || to == NULL)
            status = kiln_error_nomem(project->err, strlen(project->dir));
        else if (!exists(to) && rename(from, to) != 0)
            status = kiln_error_errno(project->err, to);
        else
            project->moved[i] = !exists(from);
    }
    /* Somebody made it in the meantime. */
    if (status >= 0 && !project->moved[TOPS - 1])
        status = kiln_error_set(project->err, KILN_E_IO, "%s: there is a conf/ already",
                                project->dir);
    for (size_t i = 0; i < TOPS && status < 0; i++) {
        const char *path = path_in(project, project->dir, tops[i].name);

        if (project->moved[i] && (path == NULL || kiln_path_remove(path, NULL) < 0))
            fprintf(stderr, "init: %s could not be removed again\n", tops[i].name);
    }
    return status;
}

static KilnStatus write_project(Project *project, const KilnRegistry *registry)
{
    KilnStatus status;

    project->stage = kiln_arena_printf(&project->arena, "%s/.kiln-init-XXXXXX", project->dir);
    if (project->stage == NULL)
        return kiln_error_nomem(project->err, strlen(project->dir));
    if (mkdtemp(project->stage) == NULL)
        return kiln_error_errno(project->err, project->dir);
    status = write_templates(project);
    if (status >= 0)
        status = write_schemas(project, registry);
    if (status >= 0)
        status = move_all(project);
    if (kiln_path_remove(project->stage, NULL) < 0)
        fprintf(stderr, "init: %s could not be removed\n", project->stage);
    return status;
}

/* ---- The command --------------------------------------------------------------------------- */

static KilnStatus report(Project *project)
{
    KilnPage page = kiln_screen_page();

    for (size_t i = 0; i < TOPS; i++) {
        const char *path = path_in(project, project->dir, tops[i].name);

        kiln_text_printf(&page.text, "  %s %s", project->moved[i] ? "wrote" : "kept ",
                         path != NULL ? path : tops[i].name);
        kiln_page_beside(&page, 36, "%s",
                         project->moved[i] ? tops[i].purpose : "was there already, left as it is");
    }
    kiln_page_heading(&page, "next");
    if (strcmp(project->dir, ".") != 0)
        kiln_text_printf(&page.text, "  cd %s\n", project->dir);
    kiln_page_pair(&page, 36, "train", "trains the default config");
    kiln_page_pair(&page, 36, "train experiment=example", "a recipe");
    kiln_page_pair(&page, 36, "train --help", "groups, values, flags");
    kiln_page_pair(&page, 36, "$EDITOR conf/config.yaml", "explains the rest");
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(project->err, 0);
}

static KilnStatus make_project(Project *project, const KilnRegistry *registry)
{
    const char *dir = project->dir, *conf = path_in(project, dir, "conf");
    const bool is_new = !exists(dir);

    if (conf == NULL)
        return kiln_error_nomem(project->err, strlen(dir));
    if (!is_new && !kiln_is_dir(dir))
        return kiln_error_set(project->err, KILN_E_IO, "%s: is a file; give a folder", dir);
    if (exists(conf))
        return kiln_error_set(project->err, KILN_E_IO,
                              "%s: there is a conf/ already, nothing is overwritten; give another "
                              "folder",
                              dir);
    KilnStatus status = kiln_dir_make(dir, project->err);
    if (status >= 0)
        status = write_project(project, registry);
    if (status < 0 && is_new)
        rmdir(dir); /* empty again */
    return status >= 0 ? report(project) : status;
}

static KilnStatus init(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config, void *ctx,
                       KilnError *err)
{
    Project project = { .dir = args->words[0], .err = err };

    (void)config;
    (void)ctx;
    if (args->n_words != 1)
        return kiln_error_set(err, KILN_E_USAGE,
                              "init takes one folder (`kiln init .` for this one), not %zu",
                              args->n_words);
    KilnStatus status = make_project(&project, registry);
    kiln_arena_release(&project.arena);
    return status;
}

int kiln_command_init(KilnArgs *args)
{
    return kiln_command_run(args, false, init, NULL);
}
