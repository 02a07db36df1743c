/* Finding PNG files: a folder with one folder per class, or whatever lies below
 * a path. Decodes nothing. */
#include "kiln/image.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "base/text.h"

#define MAX_DEPTH 32 /* of folders below the one that is searched */
static const char *const progress_text = "finding images";
enum { MAX_REASONS = 16 }; /* for leaving files out; all further ones share the last */

/* A set while it grows. */
typedef struct Builder {
    KilnArena *arena;
    const KilnPoll *poll;
    const char **paths;
    int32_t *labels;
    size_t count, capacity;
    const char **classes;
    size_t n_classes;
    KilnOmission *left_out; /* [MAX_REASONS] in the arena; NULL: none yet */
    size_t n_left_out;
} Builder;

static bool is_png_name(const char *name)
{
    size_t length = strlen(name);

    return length > 4 && strcasecmp(name + length - 4, ".png") == 0;
}

static bool add_file(Builder *b, const char *folder, const char *name, int32_t label)
{
    if (b->count == b->capacity) {
        size_t capacity = b->capacity == 0 ? 256 : 2 * b->capacity;
        const char **paths = realloc(b->paths, capacity * sizeof(*paths));

        if (paths != NULL)
            b->paths = paths;
        int32_t *labels = realloc(b->labels, capacity * sizeof(*labels));
        if (labels != NULL)
            b->labels = labels;
        if (paths == NULL || labels == NULL)
            return false;
        b->capacity = capacity;
    }
    b->paths[b->count] = kiln_arena_printf(b->arena, "%s/%s", folder, name);
    b->labels[b->count] = label;
    return b->paths[b->count++] != NULL;
}

/* ---- What is left out ------------------------------------------------------------- */

/* Count one more of `what`, found as FOLDER/NAME. */
static bool leave_out(Builder *b, const char *what, const char *reason, const char *folder,
                      const char *name)
{
    KilnOmission *omission = NULL;

    if (b->left_out == NULL)
        b->left_out = kiln_arena_alloc(b->arena, MAX_REASONS * sizeof(*b->left_out));
    if (b->left_out == NULL)
        return false;
    for (size_t i = 0; i < b->n_left_out; i++)
        if (strcmp(b->left_out[i].what, what) == 0 && strcmp(b->left_out[i].reason, reason) == 0)
            omission = &b->left_out[i];
    if (omission == NULL && b->n_left_out == MAX_REASONS) {
        omission = &b->left_out[MAX_REASONS - 1];
        omission->what = "other files";
    } else if (omission == NULL) {
        omission = &b->left_out[b->n_left_out++];
        *omission = (KilnOmission) {
            .what = kiln_arena_strdup(b->arena, what),
            .example = kiln_arena_printf(b->arena, "%s/%s", folder, name),
            .reason = reason,
        };
    }
    omission->count++;
    return omission->what != NULL && omission->example != NULL;
}

/* A file that is no PNG by name, by its ending: ".jpg files". */
static bool leave_out_file(Builder *b, const char *folder, const char *name)
{
    const char *dot = strrchr(name, '.');
    char what[32] = "files without an ending";

    if (dot != NULL && dot[1] != '\0' && strlen(dot) < 16) {
        snprintf(what, sizeof(what), "%s files", dot);
        for (char *c = what; *c != ' ' && *c != '\0'; c++)
            *c = (char)tolower((unsigned char)*c);
    }
    return leave_out(b, what, "only .png files are read", folder, name);
}

void kiln_image_set_left_out(const KilnImageSet *set,
                             void (*add)(void *ctx, const KilnOmission *omission), void *ctx)
{
    for (size_t i = 0; i < set->n_left_out; i++)
        add(ctx, &set->left_out[i]);
}

/* ---- The set ---------------------------------------------------------------------- */

/* Hands the lists over to the set. */
static void finish(Builder *b, bool labelled, KilnImageSet *ret)
{
    *ret = (KilnImageSet) {
        .count = (int64_t)b->count,
        .paths = b->paths,
        .labels = labelled ? b->labels : NULL,
        .n_classes = (int64_t)b->n_classes,
        .classes = b->classes,
        .left_out = b->left_out,
        .n_left_out = b->n_left_out,
        .memory = b->arena,
    };
    if (!labelled)
        free(b->labels);
}

static void builder_release(Builder *b)
{
    free(b->paths);
    free(b->labels);
    free(b->classes);
    if (b->arena != NULL)
        kiln_arena_release(b->arena);
    free(b->arena);
}

static KilnStatus builder_init(Builder *b, const KilnPoll *poll, KilnError *err)
{
    *b = (Builder) { .arena = calloc(1, sizeof(*b->arena)), .poll = poll };
    return b->arena != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*b->arena));
}

void kiln_image_set_release(KilnImageSet *set)
{
    if (set == NULL)
        return;
    free((void *)set->paths);
    free((void *)set->labels);
    free((void *)set->classes);
    if (set->memory != NULL)
        kiln_arena_release(set->memory);
    free(set->memory);
    *set = (KilnImageSet) { 0 };
}

/* ---- Folders of classes ----------------------------------------------------------- */

/* The PNG files directly in the folder of one class. */
static KilnStatus scan_class(Builder *b, const char *folder, int32_t label, KilnError *err)
{
    const char *other = NULL;
    size_t before = b->count, count;
    char **names;
    KilnStatus status = kiln_dir_list(folder, &names, &count, err);

    if (status < 0)
        return status;
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (names[i][0] == '.')
            continue;
        status = kiln_poll_check(b->poll, progress_text, (int64_t)b->count, 0, err);
        if (status < 0)
            break;
        if (is_png_name(names[i])) {
            if (!add_file(b, folder, names[i], label))
                status = kiln_error_nomem(err, sizeof(char *) * b->count);
            continue;
        }
        char *path = kiln_path_join(folder, names[i]);
        if (path == NULL)
            status = kiln_error_nomem(err, strlen(folder));
        else if (kiln_is_dir(path))
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: a folder inside a class; expected the PNG files of the "
                                    "class directly in %s",
                                    path, folder);
        else if (!leave_out_file(b, folder, names[i]))
            status = kiln_error_nomem(err, strlen(path));
        other = names[i];
        free(path);
    }
    if (status >= 0 && b->count == before && other != NULL)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: no PNG file in this class, only others like \"%s\"", folder,
                                other);
    else if (status >= 0 && b->count == before)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: no PNG file in this class; the folder is "
                                "empty",
                                folder);
    kiln_names_free(names, count);
    return status;
}

/* The names of the folders in `folder`, into b->classes. */
static KilnStatus list_classes(Builder *b, const char *folder, KilnError *err)
{
    size_t count, files = 0;
    char **names;
    KilnStatus status = kiln_dir_list(folder, &names, &count, err);

    if (status < 0)
        return status;
    b->classes = malloc((count + 1) * sizeof(*b->classes));
    if (b->classes == NULL)
        status = kiln_error_nomem(err, count * sizeof(*b->classes));
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (names[i][0] == '.')
            continue;
        char *path = kiln_path_join(folder, names[i]);
        char *name = kiln_arena_strdup(b->arena, names[i]);
        if (path == NULL || name == NULL)
            status = kiln_error_nomem(err, strlen(folder));
        else if (kiln_is_dir(path))
            b->classes[b->n_classes++] = name;
        else if (!leave_out(b, "files", "not in the folder of a class", folder, names[i]))
            status = kiln_error_nomem(err, strlen(path));
        else
            files++;
        free(path);
    }
    if (status >= 0 && b->n_classes == 0)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: no classes: expected one folder per class with its PNG files "
                                "in it, found no folder and %zu files",
                                folder, files);
    kiln_names_free(names, count);
    return status;
}

/* The index of a class in `known`, or an error with the nearest name. */
static KilnStatus known_label(const char *folder, const char *name, const KilnImageSet *known,
                              int32_t *ret, KilnError *err)
{
    const char *near;

    for (int64_t i = 0; i < known->n_classes; i++)
        if (strcmp(known->classes[i], name) == 0) {
            *ret = (int32_t)i;
            return KILN_OK;
        }
    near = kiln_nearest(name, known->classes, (size_t)known->n_classes);
    return kiln_error_set(
        err, KILN_E_FORMAT,
        "%s: the class \"%s\" is not among the %lld classes of the training set%s%s%s", folder,
        name, (long long)known->n_classes, near ? "; is it \"" : "", near ? near : "",
        near ? "\"?" : "");
}

/* Replace the names found by those of `known`. */
static KilnStatus use_known_classes(Builder *b, const KilnImageSet *known, KilnError *err)
{
    size_t count = (size_t)known->n_classes;
    const char **classes = malloc((count + 1) * sizeof(*classes));

    if (classes == NULL)
        return kiln_error_nomem(err, count * sizeof(*classes));
    free(b->classes);
    b->classes = classes;
    b->n_classes = count;
    for (size_t i = 0; i < count; i++) {
        classes[i] = kiln_arena_strdup(b->arena, known->classes[i]);
        if (classes[i] == NULL)
            return kiln_error_nomem(err, strlen(known->classes[i]));
    }
    return KILN_OK;
}

KilnStatus kiln_image_set_scan(const char *folder, const KilnImageSet *known, const KilnPoll *poll,
                               KilnImageSet *ret, KilnError *err)
{
    Builder b;
    KilnStatus status = builder_init(&b, poll, err);

    if (status >= 0)
        status = list_classes(&b, folder, err);
    for (size_t i = 0; i < b.n_classes && status >= 0; i++) {
        char *path = kiln_path_join(folder, b.classes[i]);
        int32_t label = (int32_t)i;

        if (path == NULL)
            status = kiln_error_nomem(err, strlen(folder));
        if (status >= 0 && known != NULL)
            status = known_label(folder, b.classes[i], known, &label, err);
        if (status >= 0)
            status = scan_class(&b, path, label, err);
        free(path);
    }
    if (status >= 0 && known != NULL)
        status = use_known_classes(&b, known, err);
    if (status < 0) {
        builder_release(&b);
        return status;
    }
    finish(&b, true, ret);
    return KILN_OK;
}

/* ---- Everything below a path -------------------------------------------------------- */

static bool pass_over(Builder *b, const char *folder, const char *name, const char *path)
{
    return kiln_is_dir(path)
               ? leave_out(b, "links to folders", "links are not followed", folder, name)
               : leave_out_file(b, folder, name);
}

static KilnStatus find_below(Builder *b, const char *folder, int depth, KilnError *err)
{
    size_t count;
    char **names;
    KilnStatus status;

    if (depth > MAX_DEPTH)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: more than %d folders deep", folder,
                              MAX_DEPTH);
    status = kiln_dir_list(folder, &names, &count, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < count && status >= 0; i++) {
        struct stat st;

        if (names[i][0] == '.')
            continue;
        status = kiln_poll_check(b->poll, progress_text, (int64_t)b->count, 0, err);
        if (status < 0)
            break;
        char *path = kiln_path_join(folder, names[i]);
        if (path == NULL)
            status = kiln_error_nomem(err, strlen(folder));
        else if (lstat(path, &st) != 0)
            status = kiln_error_errno(err, path);
        else if (S_ISDIR(st.st_mode))
            status = find_below(b, path, depth + 1, err);
        else if (!(is_png_name(names[i]) ? add_file(b, folder, names[i], 0)
                                         : pass_over(b, folder, names[i], path)))
            status = kiln_error_nomem(err, sizeof(char *) * b->count);
        free(path);
    }
    kiln_names_free(names, count);
    return status;
}

/* A single file keeps its name as the user wrote it. */
static KilnStatus find_one(Builder *b, const char *path, KilnError *err)
{
    if (!add_file(b, "", path, 0))
        return kiln_error_nomem(err, strlen(path));
    b->paths[0] = kiln_arena_strdup(b->arena, path);
    return b->paths[0] != NULL ? KILN_OK : kiln_error_nomem(err, strlen(path));
}

KilnStatus kiln_image_set_find(const char *path, const KilnPoll *poll, KilnImageSet *ret,
                               KilnError *err)
{
    Builder b;
    struct stat st;
    KilnStatus status;

    if (stat(path, &st) != 0)
        return kiln_error_errno(err, path);
    status = builder_init(&b, poll, err);
    if (status >= 0)
        status = S_ISDIR(st.st_mode) ? find_below(&b, path, 0, err) : find_one(&b, path, err);
    if (status >= 0 && b.count == 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: no PNG file in this folder or below it",
                                path);
    if (status < 0) {
        builder_release(&b);
        return status;
    }
    finish(&b, false, ret);
    return KILN_OK;
}
