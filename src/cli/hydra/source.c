/* Reads a user's Hydra tree. */
#include "cli/hydra/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/system/file.h"
#include "base/text.h"
#include "config/composed.h"
#include "config/yaml/yaml_reader.h"

enum { DEEPEST = 16 }; /* of folders */

/* The package in the lines before the content. */
static const char *read_header(KilnArena *arena, const char *text)
{
    static const char word[] = "@package";

    while (*text == '#' || *text == '\n' || *text == '\r') {
        const char *line = text + 1 + (*text == '#' ? strspn(text + 1, " \t") : 0);

        if (*text == '#' && strncmp(line, word, strlen(word)) == 0) {
            line += strlen(word) + strspn(line + strlen(word), " \t");
            return kiln_arena_strndup(arena, line, strcspn(line, " \t\r\n"));
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return NULL;
}

static bool set_names(KilnArena *arena, KilnImportFile *file, const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash != NULL ? slash + 1 : name;
    char *package;

    file->name = kiln_arena_strdup(arena, name);
    file->option = kiln_arena_strndup(arena, base, (size_t)(strrchr(base, '.') - base));
    file->group = kiln_arena_strndup(arena, name, slash != NULL ? (size_t)(slash - name) : 0);
    package = file->group != NULL ? kiln_arena_strdup(arena, file->group) : NULL;
    for (char *p = package; p != NULL && *p != '\0'; p++)
        if (*p == '/')
            *p = '.';
    file->package = package;
    return !arena->failed;
}

/* `header` is the file's; NULL: none. */
static void set_package(KilnImportFile *file, const char *header)
{
    static const char top[] = "_global_";

    file->header = header;
    if (header == NULL || strcmp(header, "_group_") == 0)
        return;
    if (strncmp(header, top, strlen(top)) == 0)
        header += strlen(top) + (header[strlen(top)] == '.');
    file->package = header;
}

static KilnStatus read_file(KilnImportSource *source, const char *path, const char *name,
                            KilnError *err)
{
    KilnImportFile file = { 0 };
    KilnMaker maker = { .arena = &source->arena,
                        .origin = { .source = kiln_arena_strdup(&source->arena, path) },
                        .layer = KILN_LAYER_FILE };
    char *text = NULL;
    size_t size = 0;
    KilnStatus status = kiln_file_read(path, KILN_YAML_BYTES, &text, &size, err);

    if (status >= 0 && !set_names(&source->arena, &file, name))
        status = kiln_error_nomem(err, size);
    if (status >= 0)
        status = kiln_yaml_read(&maker, text, size, false, &file.root, err);
    if (status >= 0 && file.root != NULL && kiln_node_is_scalar(file.root, KILN_SCALAR_NULL))
        file.root = NULL;
    if (status >= 0 && file.root != NULL && file.root->kind != KILN_NODE_MAP)
        status = kiln_error_set(err, KILN_E_TYPE, "%s: a config is a mapping (key: value)", path);
    if (status >= 0) {
        set_package(&file, read_header(&source->arena, text));
        status = kiln_import_scan(&source->arena, &file, text, size, err);
    }
    free(text);
    if (status >= 0 &&
        !KILN_ARENA_RESERVE(&source->arena, source->files, source->capacity, source->n_files + 1))
        status = kiln_error_nomem(err, sizeof(file));
    if (status >= 0)
        source->files[source->n_files++] = file;
    return status;
}

static KilnStatus read_folder(KilnImportSource *source, const char *dir, const char *below,
                              int depth, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(dir, &names, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        char *path = kiln_path_join(dir, names[i]), *name = kiln_path_join(below, names[i]);

        if (path == NULL || name == NULL)
            status = kiln_error_nomem(err, strlen(names[i]));
        else if (names[i][0] != '.' && kiln_is_dir(path) && depth < DEEPEST)
            status = read_folder(source, path, name, depth + 1, err);
        else if ((kiln_ends_with(path, ".yaml") || kiln_ends_with(path, ".yml")) &&
                 kiln_is_file(path) && names[i][0] != '.')
            status = read_file(source, path, name, err);
        free(path);
        free(name);
    }
    kiln_names_free(names, n);
    return status;
}

KilnStatus kiln_import_read(KilnImportSource *source, const char *dir, KilnError *err)
{
    if (!kiln_is_dir(dir))
        return kiln_error_set(err, KILN_E_IO,
                              "%s: is no folder; give the one with the configs, often configs or "
                              "conf",
                              dir);
    source->dir = dir;
    KilnStatus status = read_folder(source, dir, "", 0, err);
    if (status >= 0 && source->n_files == 0)
        status = kiln_error_set(err, KILN_E_IO,
                                "%s: has no .yaml files; give the folder with the "
                                "configs",
                                dir);
    return status;
}

void kiln_import_source_release(KilnImportSource *source)
{
    kiln_arena_release(&source->arena);
}

const KilnImportFile *kiln_import_file_find(const KilnImportSource *source, const char *group,
                                            const char *option)
{
    for (size_t i = 0; i < source->n_files; i++)
        if (strcmp(source->files[i].group, group) == 0 &&
            strcmp(source->files[i].option, option) == 0)
            return &source->files[i];
    return NULL;
}

const KilnImportComments *kiln_import_comments_of(const KilnImportFile *file,
                                                  const KilnEntry *entry)
{
    for (size_t i = 0; i < file->n_comments; i++)
        if (file->comments[i].entry == entry)
            return &file->comments[i];
    return NULL;
}

const KilnImportSpan *kiln_import_span(const KilnImportFile *file, KilnOrigin origin, bool flow)
{
    for (size_t i = 0; i < file->n_spans; i++) {
        const KilnImportSpan *span = &file->spans[i];

        if (span->line == origin.line && span->column == origin.column && span->flow == flow)
            return span;
    }
    return NULL;
}

const char *kiln_import_spelling(const KilnImportFile *file, KilnOrigin origin)
{
    const KilnImportSpan *span = kiln_import_span(file, origin, false);

    return span != NULL ? span->text : NULL;
}

const char *kiln_import_value_text(const KilnImportFile *file, const KilnConfigNode *value)
{
    const bool flow = value->kind != KILN_NODE_SCALAR;
    const KilnImportSpan *span = !value->aliased ? kiln_import_span(file, value->origin, flow)
                                                 : NULL;

    return span != NULL ? span->text : NULL;
}

bool kiln_import_is_block(const KilnImportFile *file, const KilnConfigNode *value)
{
    return value->kind != KILN_NODE_SCALAR && value->count > 0 && !value->aliased &&
           kiln_import_span(file, value->origin, true) == NULL;
}
