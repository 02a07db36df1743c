/* kiln plugin new KIND NAME: writes a component of one's own, whole or not at all. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cli/plugin/new_files.h"
#include "cli/plugin/plugin_verbs.h"
#include "cli/screen/screen.h"
#include "config/defaults/search_path.h"
#include "kiln/embed/registry.h"
#include "kiln/tools/program.h"
#include "schema/table.h"

enum { COLUMN = 48 }; /* of explanations */

/* ---- The command line ----------------------------------------------------------------------- */

static KilnStatus no_kind(const char *word, KilnError *err)
{
    const char *names[KILN_KIND_COUNT + 2], *nearest = NULL;
    const KilnNewKind *kind;
    KilnText text = { 0 };
    size_t n = 0;

    kiln_text_printf(&text, word != NULL ? "%s: no kind of component; there are" : "which kind?",
                     word);
    while ((kind = kiln_new_kind_at(n)) != NULL && n < KILN_COUNT(names)) {
        kiln_text_printf(&text, "%s %s", n > 0 ? "," : "", kind->name);
        names[n++] = kind->name;
    }
    if (word != NULL)
        nearest = kiln_nearest(word, names, n);
    if (nearest != NULL)
        kiln_text_printf(&text, "; did you mean %s?", nearest);
    kiln_text_append(&text, " (kiln plugin new KIND NAME)");
    return kiln_text_to_error(&text, KILN_E_USAGE, err);
}

/* A name that is free: of a component, and of a config file. */
static KilnStatus check_name(const KilnNewKind *kind, const char *name, const char *conf,
                             KilnError *err)
{
    const char *component = kiln_kind_name(kind->kind);
    KilnRegistry *registry = NULL;
    KilnStatus status = kiln_registry_new(&registry, err);

    if (status >= 0 && kiln_registry_find(registry, kind->kind, name) != NULL)
        status = kiln_error_set(err, KILN_E_KEY,
                                "%s/%s is built in: give yours another name (`kiln show %s/%s` "
                                "shows that one)",
                                component, name, component, name);
    kiln_registry_free(registry);
    if (status >= 0 && kiln_shipped_find(conf + strlen("conf/")) != NULL)
        status = kiln_error_set(err, KILN_E_KEY,
                                "kiln itself has a %s: give the component another name", conf);
    return status;
}

static KilnStatus check_words(const KilnArgs *args, const KilnNewKind **ret, KilnError *err)
{
    const char *word = args->n_words > 0 ? args->words[0] : NULL;
    const KilnNewKind *kind = word != NULL ? kiln_new_kind_find(word) : NULL;

    if (kind == NULL)
        return no_kind(word, err);
    if (args->n_words != 2)
        return kiln_error_set(err, KILN_E_USAGE, "expected one name: kiln plugin new %s NAME",
                              word);
    /* Also a file's name, a config option's, and part of a C comment. */
    if (!kiln_is_snake_case(args->words[1]))
        return kiln_error_set(err, KILN_E_USAGE,
                              "%s: no name of a component; it begins with a small letter, and has "
                              "small letters, digits and _: my_%s",
                              args->words[1], kind->name);
    *ret = kind;
    return KILN_OK;
}

/* ---- Writing -------------------------------------------------------------------------------- */

typedef struct Folder {
    const char *parent; /* "." */
    const char *path;   /* parent/NAME */
    const char *stage;  /* beside it, to which everything is written first */
} Folder;

static KilnStatus write_files(const Folder *folder, const KilnNewFile *files, KilnArena *arena,
                              KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < KILN_NEW_FILES && status >= 0; i++) {
        const char *path = kiln_arena_printf(arena, "%s/%s", folder->stage, files[i].path);

        status = path != NULL ? kiln_dir_make_parent(path, err)
                              : kiln_error_nomem(err, strlen(files[i].path));
        if (status >= 0)
            status = kiln_file_write(path, files[i].text, strlen(files[i].text), err);
    }
    return status;
}

static KilnStatus write_folder(const Folder *folder, const KilnNewFile *files, KilnArena *arena,
                               KilnError *err)
{
    struct stat info;
    KilnStatus status = kiln_dir_make(folder->parent, err);

    if (status < 0)
        return status;
    if (lstat(folder->path, &info) == 0)
        return kiln_error_set(err, KILN_E_IO,
                              "%s: is there already, nothing is overwritten; give another name, or "
                              "another folder with --output",
                              folder->path);
    if (mkdir(folder->stage, 0777) != 0)
        return kiln_error_errno(err, folder->stage);
    status = write_files(folder, files, arena, err);
    if (status >= 0 && rename(folder->stage, folder->path) != 0)
        status = kiln_error_errno(err, folder->path);
    if (status < 0 && kiln_path_remove(folder->stage, NULL) < 0)
        fprintf(stderr, "plugin: %s could not be removed\n", folder->stage);
    return status;
}

/* ---- The report ----------------------------------------------------------------------------- */

/* The page of the manual: that which was installed with this program, else its name alone. */
static void put_page(KilnText *text, const char *page)
{
    char program[4096] = "";
    KilnText path = { 0 };

    (void)kiln_link_read("/proc/self/exe", program, sizeof(program));
    for (int i = 0; i < 2 && strrchr(program, '/') != NULL; i++) /* PREFIX of PREFIX/bin/kiln */
        *strrchr(program, '/') = '\0';
    kiln_text_printf(&path, "%s/share/doc/kiln/docs/%.*s", program, (int)strcspn(page, "#"), page);
    if (path.data != NULL && kiln_is_file(path.data))
        kiln_text_printf(text, "%s/share/doc/kiln/", program);
    kiln_text_printf(text, "docs/%s", page);
    kiln_text_release(&path);
}

/* Programs that build it and are not here. */
static void put_missing(KilnPage *page)
{
    static const struct {
        const char *program, *package;
    } tools[] = { { "make", "make" }, { "cc", "gcc" } };

    for (size_t i = 0; i < KILN_COUNT(tools); i++) {
        if (kiln_program_exists(tools[i].program))
            continue;
        kiln_text_printf(&page->text, "  install %s", tools[i].package);
        kiln_page_beside(page, COLUMN, "there is no program %s, which builds it", tools[i].program);
    }
}

static KilnStatus report(const KilnNewKind *kind, const char *name, const Folder *folder,
                         const KilnNewFile *files, KilnError *err)
{
    KilnPage page = kiln_screen_page();
    KilnText line = { 0 };

    for (size_t i = 0; i < KILN_NEW_FILES; i++) {
        kiln_text_printf(&page.text, "  wrote %s/%s", folder->path, files[i].path);
        kiln_page_beside(&page, COLUMN, "%s", files[i].purpose);
    }
    kiln_page_heading(&page, "next");
    put_missing(&page);
    kiln_text_printf(&page.text, "  sh %s/test.sh", folder->path);
    kiln_page_beside(&page, COLUMN, "does it work?");
    kiln_text_printf(&page.text, "  make -C %s", folder->path);
    kiln_page_beside(&page, COLUMN, "builds %s.so, after each change", name);
    kiln_text_append(&line, "train ");
    if (strcmp(folder->parent, "plugins") != 0) /* which is loaded by itself */
        kiln_text_printf(&line, "--plugin %s/%s.so ", folder->path, name);
    kiln_plugin_append(&line, kind->select, name);
    kiln_page_line(&page, 2, line.data != NULL ? line.data : "");
    kiln_text_append(&page.text, "  ");
    put_page(&page.text, kind->page);
    kiln_page_beside(&page, COLUMN, "the manual of %s %s",
                     strchr("ao", kind->name[0]) != NULL ? "an" : "a", kind->name);
    page.text.failed = page.text.failed || line.failed;
    kiln_text_release(&line);
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 0);
}

static KilnStatus make(const KilnArgs *args, KilnArena *arena, KilnError *err)
{
    const char *name = args->n_words > 1 ? args->words[1] : "";
    const char *parent = args->output != NULL ? args->output : ".";
    const char *slash = strcmp(parent, ".") == 0 ? "" : kiln_arena_printf(arena, "%s/", parent);
    KilnNewFile files[KILN_NEW_FILES] = { 0 };
    const KilnNewKind *kind = NULL;
    KilnStatus status = check_words(args, &kind, err);

    if (status >= 0)
        status = kiln_plugin_files(kind, name, arena, files, err);
    if (status >= 0)
        status = check_name(kind, name, files[2].path, err);
    if (status < 0 || slash == NULL)
        return status < 0 ? status : kiln_error_nomem(err, strlen(parent));
    const Folder folder = {
        .parent = parent,
        .path = kiln_arena_printf(arena, "%s%s", slash, name),
        .stage = kiln_arena_printf(arena, "%s.%s-%ld", slash, name, (long)getpid()),
    };
    if (arena->failed)
        return kiln_error_nomem(err, strlen(parent));
    status = write_folder(&folder, files, arena, err);
    return status >= 0 ? report(kind, name, &folder, files, err) : status;
}

int kiln_plugin_verb_new(KilnArgs *args)
{
    KilnArena arena = { 0 };
    KilnError err = { 0 };
    const KilnStatus status = make(args, &arena, &err);

    kiln_arena_release(&arena);
    return kiln_screen_result(args->command, status, &err);
}
