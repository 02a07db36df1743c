/* Raw samples that are files: one, or all below a folder. Reads none of them. */
#include "data/raw/raw_input.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/text.h"
#include "data/left_out.h"
#include "kiln/array.h"
#include "kiln/tools/text.h"

enum { MAX_DEPTH = 32 }; /* of folders below the one that is searched */

typedef struct Paths {
    const KilnRawField *field;
    const KilnPoll *poll;
    const char **paths;
    size_t count, capacity;
    const char *reason; /* for leaving a file out */
    KilnArena arena;
    KilnLeftOut left_out;
} Paths;

/* ---- Endings ------------------------------------------------------------------------------ */

bool kiln_raw_has_ending(const char *name, const char *const *endings)
{
    const size_t length = strlen(name);

    if (endings == NULL)
        return true;
    for (; *endings != NULL; endings++) {
        const size_t n = strlen(*endings);

        if (length > n && strcasecmp(name + length - n, *endings) == 0)
            return true;
    }
    return false;
}

/* ".jpg and .png", or as names of formats, "JPG or PNG". */
static char *endings_text(KilnArena *arena, const char *const *endings, bool formats)
{
    KilnText text = { 0 };

    for (size_t i = 0; endings[i] != NULL; i++) {
        const char *separator = i == 0                   ? ""
                                : endings[i + 1] != NULL ? ", "
                                : formats                ? " or "
                                                         : " and ";
        kiln_text_append(&text, separator);
        for (const char *c = endings[i] + (formats ? 1 : 0); *c != '\0'; c++)
            kiln_text_char(&text, formats ? (char)toupper((unsigned char)*c) : *c);
    }
    char *copy = kiln_arena_strdup(arena, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return copy;
}

/* ---- Finding files -------------------------------------------------------------------------- */

static bool add_path(Paths *self, const char *path)
{
    if (!KILN_RESERVE(self->paths, self->capacity, self->count + 1))
        return false;
    self->paths[self->count++] = path;
    return path != NULL;
}

/* Take a file, or leave it out; `linked`: it is a link to a folder. */
static bool add_file(Paths *self, const char *folder, const char *name, const char *path,
                     bool linked)
{
    if (linked)
        return kiln_left_out_add(&self->left_out, "links to folders", "links are not followed",
                                 folder, name);
    if (kiln_raw_has_ending(name, self->field->endings))
        return add_path(self, kiln_arena_strdup(&self->arena, path));
    return kiln_left_out_add_file(&self->left_out, self->reason, folder, name);
}

static KilnStatus find_below(Paths *self, const char *folder, int depth, KilnError *err)
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
        status = kiln_poll_check(self->poll, "finding files", (int64_t)self->count, 0, err);
        if (status < 0)
            break;
        char *path = kiln_path_join(folder, names[i]);
        if (path == NULL)
            status = kiln_error_nomem(err, strlen(folder));
        else if (lstat(path, &st) != 0)
            status = kiln_error_errno(err, path);
        else if (S_ISDIR(st.st_mode))
            status = find_below(self, path, depth + 1, err);
        else if (!add_file(self, folder, names[i], path, S_ISLNK(st.st_mode) && kiln_is_dir(path)))
            status = kiln_error_nomem(err, sizeof(char *) * self->count);
        free(path);
    }
    kiln_names_free(names, count);
    return status;
}

/* A single file keeps its name as the user wrote it, whatever its ending. */
static KilnStatus find_one(Paths *self, const char *path, KilnError *err)
{
    return add_path(self, kiln_arena_strdup(&self->arena, path))
               ? KILN_OK
               : kiln_error_nomem(err, strlen(path));
}

static KilnStatus find(Paths *self, const char *path, KilnError *err)
{
    const char *const *endings = self->field->endings;
    struct stat st;

    if (stat(path, &st) != 0)
        return kiln_error_errno(err, path);
    if (!S_ISDIR(st.st_mode))
        return find_one(self, path, err);
    if (endings != NULL) {
        const char *names = endings_text(&self->arena, endings, false);

        self->reason = kiln_arena_printf(&self->arena, "only %s files are read",
                                         names != NULL ? names : "");
        if (self->arena.failed)
            return kiln_error_nomem(err, sizeof(*self));
    }
    KilnStatus status = find_below(self, path, 0, err);
    if (status < 0 || self->count > 0)
        return status;
    const char *formats = endings != NULL ? endings_text(&self->arena, endings, true) : NULL;
    return kiln_error_set(err, KILN_E_FORMAT, "%s: no %s%sfile in this folder or below it", path,
                          formats != NULL ? formats : "", formats != NULL ? " " : "");
}

/* ---- Samples -------------------------------------------------------------------------------- */

static KilnStatus paths_get(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err)
{
    const Paths *self = ctx;
    KilnRawValue *value = malloc(sizeof(*value));

    if (value == NULL)
        return kiln_error_nomem(err, sizeof(*value));
    *value = (KilnRawValue) {
        .name = self->field->name,
        .type = KILN_RAW_PATH,
        .text = self->paths[index],
    };
    *ret = (KilnRawSample) { .values = value, .n_values = 1 };
    return KILN_OK;
}

static void paths_done(void *ctx, KilnRawSample *sample)
{
    (void)ctx;
    free((void *)sample->values);
}

static const char *paths_name(void *ctx, int64_t index)
{
    return ((const Paths *)ctx)->paths[index];
}

static void paths_release(void *ctx)
{
    Paths *self = ctx;

    free((void *)self->paths);
    kiln_arena_release(&self->arena);
    free(self);
}

KilnStatus kiln_raw_paths_open(const char *path, const KilnRawField *field, const KilnPoll *poll,
                               KilnRawInput *ret, KilnError *err)
{
    Paths *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return kiln_error_nomem(err, sizeof(*self));
    self->field = field;
    self->poll = poll;
    self->left_out.arena = &self->arena;
    KilnStatus status = find(self, path, err);
    if (status < 0) {
        paths_release(self);
        return status;
    }
    *ret = (KilnRawInput) {
        .set = { .count = (int64_t)self->count,
                 .ctx = self,
                 .get = paths_get,
                 .done = paths_done,
                 .name = paths_name },
        .left_out = self->left_out.list,
        .n_left_out = self->left_out.n,
        .release = paths_release,
    };
    return KILN_OK;
}
