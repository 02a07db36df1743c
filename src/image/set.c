/* Finding image files in a folder with one folder per class. Decodes nothing. */
#include "kiln/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "base/text.h"
#include "data/left_out.h"
#include "image/read.h"

static const char *const progress_text = "finding images";

/* A set while it grows. */
typedef struct Builder {
    KilnArena *arena;
    const KilnTar *tar; /* NULL: folders of the disk */
    size_t inside;      /* of a path: where that in the archive begins */
    const KilnPoll *poll;
    const char **paths;
    int32_t *labels;
    size_t count, capacity;
    const char **classes;
    size_t n_classes;
    KilnLeftOut left_out;
} Builder;

bool kiln_is_image_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    if (dot == NULL || dot == name)
        return false;
    for (const char *const *ending = kiln_raw_image.endings; *ending != NULL; ending++)
        if (strcasecmp(dot, *ending) == 0)
            return true;
    return false;
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

/* A file that is no image by name. */
static bool leave_out_file(Builder *b, const char *folder, const char *name)
{
    return kiln_left_out_add_file(&b->left_out, "only .png, .jpg, .jpeg and .webp files are read",
                                  folder, name);
}

void kiln_image_set_left_out(const KilnImageSet *set,
                             void (*add)(void *ctx, const KilnOmission *omission), void *ctx)
{
    for (size_t i = 0; i < set->n_left_out; i++)
        add(ctx, &set->left_out[i]);
}

/* ---- The set ---------------------------------------------------------------------- */

/* Hands the lists over to the set. */
static void finish(Builder *b, KilnImageSet *ret)
{
    *ret = (KilnImageSet) {
        .count = (int64_t)b->count,
        .paths = b->paths,
        .labels = b->labels,
        .n_classes = (int64_t)b->n_classes,
        .classes = b->classes,
        .left_out = b->left_out.list,
        .n_left_out = b->left_out.n,
        .memory = b->arena,
    };
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
    b->left_out.arena = b->arena;
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

/* ---- Folders, on disk or in an archive --------------------------------------------- */

static const char *inside(const Builder *b, const char *path)
{
    return strlen(path) > b->inside ? path + b->inside : "";
}

static bool is_folder(const Builder *b, const char *path)
{
    return b->tar != NULL ? kiln_tar_has_folder(b->tar, inside(b, path)) : kiln_is_dir(path);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* kiln_dir_list of a folder in an archive. */
static KilnStatus list_tar(const Builder *b, const char *folder, char ***ret, size_t *ret_count,
                           KilnError *err)
{
    KilnTarChild child = { 0 };
    size_t count = 0, capacity = 0;
    char **names = NULL;

    while (kiln_tar_child(b->tar, inside(b, folder), &child)) {
        if (count == capacity) {
            capacity = capacity == 0 ? 256 : 2 * capacity;
            char **grown = realloc(names, capacity * sizeof(*names));

            if (grown == NULL)
                goto nomem;
            names = grown;
        }
        names[count] = strndup(child.name, child.length);
        if (names[count] == NULL)
            goto nomem;
        count++;
    }
    if (count > 0)
        qsort(names, count, sizeof(*names), compare_names);
    *ret = names;
    *ret_count = count;
    return KILN_OK;
nomem:
    kiln_names_free(names, count);
    return kiln_error_nomem(err, capacity * sizeof(*names));
}

static KilnStatus list_folder(const Builder *b, const char *folder, char ***ret, size_t *ret_count,
                              KilnError *err)
{
    return b->tar != NULL ? list_tar(b, folder, ret, ret_count, err)
                          : kiln_dir_list(folder, ret, ret_count, err);
}

/* ---- Folders of classes ----------------------------------------------------------- */

/* The images directly in the folder of one class. */
static KilnStatus scan_class(Builder *b, const char *folder, int32_t label, KilnError *err)
{
    const char *other = NULL;
    size_t before = b->count, count;
    char **names;
    KilnStatus status = list_folder(b, folder, &names, &count, err);

    if (status < 0)
        return status;
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (names[i][0] == '.')
            continue;
        status = kiln_poll_check(b->poll, progress_text, (int64_t)b->count, 0, err);
        if (status < 0)
            break;
        if (kiln_is_image_name(names[i])) {
            if (!add_file(b, folder, names[i], label))
                status = kiln_error_nomem(err, sizeof(char *) * b->count);
            continue;
        }
        char *path = kiln_path_join(folder, names[i]);
        if (path == NULL)
            status = kiln_error_nomem(err, strlen(folder));
        else if (is_folder(b, path))
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: a folder inside a class; expected the images of the class "
                                    "directly in %s",
                                    path, folder);
        else if (!leave_out_file(b, folder, names[i]))
            status = kiln_error_nomem(err, strlen(path));
        other = names[i];
        free(path);
    }
    if (status >= 0 && b->count == before && other != NULL)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: no image in this class, only others like \"%s\"", folder,
                                other);
    else if (status >= 0 && b->count == before)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: no image in this class; the folder is "
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
    KilnStatus status = list_folder(b, folder, &names, &count, err);

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
        else if (is_folder(b, path))
            b->classes[b->n_classes++] = name;
        else if (!kiln_left_out_add(&b->left_out, "files", "not in the folder of a class", folder,
                                    names[i]))
            status = kiln_error_nomem(err, strlen(path));
        else
            files++;
        free(path);
    }
    if (status >= 0 && b->n_classes == 0)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: no classes: expected one folder per class with its images "
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

static KilnStatus scan(Builder *b, const char *folder, const KilnImageSet *known, KilnImageSet *ret,
                       KilnError *err)
{
    KilnStatus status = list_classes(b, folder, err);

    for (size_t i = 0; i < b->n_classes && status >= 0; i++) {
        char *path = kiln_path_join(folder, b->classes[i]);
        int32_t label = (int32_t)i;

        if (path == NULL)
            status = kiln_error_nomem(err, strlen(folder));
        if (status >= 0 && known != NULL)
            status = known_label(folder, b->classes[i], known, &label, err);
        if (status >= 0)
            status = scan_class(b, path, label, err);
        free(path);
    }
    if (status >= 0 && known != NULL)
        status = use_known_classes(b, known, err);
    if (status < 0) {
        builder_release(b);
        return status;
    }
    finish(b, ret);
    return KILN_OK;
}

KilnStatus kiln_image_set_scan(const char *folder, const KilnImageSet *known, const KilnPoll *poll,
                               KilnImageSet *ret, KilnError *err)
{
    Builder b;
    KilnStatus status = builder_init(&b, poll, err);

    return status >= 0 ? scan(&b, folder, known, ret, err) : status;
}

KilnStatus kiln_image_set_scan_tar(const KilnTar *tar, const char *path, const char *folder,
                                   const KilnImageSet *known, const KilnPoll *poll,
                                   KilnImageSet *ret, KilnError *err)
{
    char *inner = kiln_path_join(path, folder);
    Builder b;
    KilnStatus status = inner != NULL ? builder_init(&b, poll, err)
                                      : kiln_error_nomem(err, strlen(path));

    if (status >= 0) {
        b.tar = tar;
        b.inside = strlen(path) + 1;
        status = scan(&b, inner, known, ret, err);
    }
    free(inner);
    return status;
}
