/* Reads images with boxes as Ultralytics' YOLO lays them out: its YAML file, and the images that it
 * names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/yaml/yaml_reader.h"
#include "image/boxes/yolo_labels.h"
#include "image/read.h"
#include "kiln/array.h"

enum { DEPTH = 16 }; /* of folders in folders */
#define MOST_BYTES ((size_t)1 << 30)

typedef struct Reading {
    const char *file;      /* the YAML file, */
    KilnConfigNode *named; /* what it has, */
    char *root;            /* and what its paths are below */
    KilnArena *arena;
    const KilnPoll *poll;
    bool skips;
    size_t capacity; /* of set->paths */
    KilnBoxSet *set;
} Reading;

/* ---- The file ------------------------------------------------------------------------------- */

static KilnStatus add_name(Reading *reading, int64_t i, const KilnConfigNode *name, KilnError *err)
{
    KilnBoxSet *set = reading->set;

    if (name == NULL || name->kind != KILN_NODE_SCALAR ||
        kiln_node_is_scalar(name, KILN_SCALAR_NULL) || name->text[0] == '\0')
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: names: there is no name of class %lld; expected a list, or a "
                              "mapping from 0, 1, 2 and so on",
                              reading->file, (long long)i);
    set->classes[i] = kiln_strdup(name->text);
    set->n_classes = i + 1;
    return set->classes[i] != NULL ? KILN_OK : kiln_error_nomem(err, strlen(name->text));
}

static KilnStatus read_names(Reading *reading, KilnError *err)
{
    const KilnConfigNode *names = kiln_node_get(reading->named, "names");
    KilnStatus status = KILN_OK;

    if (names == NULL || names->kind == KILN_NODE_SCALAR || names->count == 0)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: expected \"names\", a list of the classes' names",
                              reading->file);
    reading->set->classes = calloc(names->count, sizeof(char *));
    if (reading->set->classes == NULL)
        return kiln_error_nomem(err, names->count * sizeof(char *));
    for (size_t i = 0; i < names->count && status >= 0; i++) {
        char key[24];

        snprintf(key, sizeof(key), "%zu", i);
        status = add_name(reading, (int64_t)i,
                          names->kind == KILN_NODE_LIST ? names->entries[i].value
                                                        : kiln_node_get(names, key),
                          err);
    }
    return status;
}

/* `root`, or the file's "path", which is relative to the file. */
static KilnStatus find_root(Reading *reading, const char *root, KilnError *err)
{
    const char *path = kiln_node_text(reading->named, "path");
    const char *slash = strrchr(reading->file, '/');
    char *folder = slash != NULL ? kiln_arena_printf(reading->arena, "%.*s/",
                                                     (int)(slash - reading->file), reading->file)
                                 : kiln_arena_printf(reading->arena, "./");

    if (root != NULL)
        reading->root = kiln_arena_printf(reading->arena, "%s/", root);
    else if (path == NULL || path[0] == '\0' || strcmp(path, ".") == 0)
        reading->root = folder;
    else
        reading->root = kiln_arena_printf(reading->arena, "%s%s/", path[0] == '/' ? "" : folder,
                                          path);
    if (folder == NULL || reading->root == NULL)
        return kiln_error_nomem(err, strlen(reading->file));
    if (kiln_is_dir(reading->root))
        return KILN_OK;
    return root != NULL
               ? kiln_error_set(err, KILN_E_IO, "root: %s: no such folder", root)
               : kiln_error_set(err, KILN_E_IO,
                                "%s: path: %s: no such folder; say where the data are with "
                                "datamodule.root",
                                reading->file, path);
}

static KilnStatus open_file(Reading *reading, const char *root, KilnError *err)
{
    KilnStatus status = kiln_yaml_read_file(reading->arena, reading->file, &reading->named, err);

    if (status >= 0 && (reading->named == NULL || reading->named->kind != KILN_NODE_MAP))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: expected a mapping with names, train and val", reading->file);
    if (status >= 0)
        status = read_names(reading, err);
    return status >= 0 ? find_root(reading, root, err) : status;
}

/* ---- Images --------------------------------------------------------------------------------- */

static KilnStatus add_image(Reading *reading, const char *path, KilnError *err)
{
    KilnBoxSet *set = reading->set;

    if (!KILN_RESERVE(set->paths, reading->capacity, (size_t)set->count + 1) ||
        (set->paths[set->count] = kiln_strdup(path)) == NULL)
        return kiln_error_nomem(err, strlen(path));
    set->count++;
    return kiln_poll_check(reading->poll, "finding images", set->count, 0, err);
}

static KilnStatus add_folder(Reading *reading, const char *folder, int depth, KilnError *err);

static KilnStatus add_entry(Reading *reading, const char *folder, const char *name, int depth,
                            KilnError *err)
{
    KilnBoxSet *set = reading->set;
    char *path = kiln_path_join(folder, name);
    KilnStatus status = KILN_OK;

    if (path == NULL)
        return kiln_error_nomem(err, strlen(name));
    if (kiln_is_image_name(name))
        status = add_image(reading, path, err);
    else if (kiln_is_dir(path))
        status = add_folder(reading, path, depth + 1, err);
    else if (!kiln_ends_with(name, ".txt") && set->other_files++ == 0)
        snprintf(set->other_example, sizeof(set->other_example), "%s", path);
    free(path);
    return status;
}

/* All images of a folder and those in it, in byte order. */
static KilnStatus add_folder(Reading *reading, const char *folder, int depth, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = depth <= DEPTH
                            ? kiln_dir_list(folder, &names, &n, err)
                            : kiln_error_set(err, KILN_E_RANGE, "%s: more than %d folders deep",
                                             folder, (int)DEPTH);

    for (size_t i = 0; i < n && status >= 0; i++)
        if (names[i][0] != '.')
            status = add_entry(reading, folder, names[i], depth, err);
    kiln_names_free(names, n);
    return status;
}

static KilnStatus add_line(Reading *reading, const char *list, size_t number, char *line,
                           KilnError *err)
{
    const char *slash = strrchr(list, '/');
    char *end = line + strlen(line), *path, why[512];
    KilnStatus status;

    while (end > line && strchr(" \t\r", end[-1]) != NULL)
        *--end = '\0';
    line += strspn(line, " \t");
    if (line[0] == '\0')
        return KILN_OK;
    line += strncmp(line, "./", 2) == 0 ? 2 : 0;
    path = line[0] == '/' || slash == NULL
               ? kiln_arena_printf(reading->arena, "%s", line)
               : kiln_arena_printf(reading->arena, "%.*s/%s", (int)(slash - list), list, line);
    if (path == NULL)
        return kiln_error_nomem(err, strlen(line));
    if (kiln_is_file(path))
        status = add_image(reading, path, err);
    else {
        snprintf(why, sizeof(why), "%.400s: no such file", path);
        status = kiln_yolo_wrong(list, number, why, reading->skips, reading->set,
                                 &reading->set->skipped_images, err);
    }
    return status;
}

/* The images that a text names, one a line; paths are relative to it. */
static KilnStatus add_list(Reading *reading, const char *list, KilnError *err)
{
    char *text = NULL;
    size_t size = 0, number = 1;
    KilnStatus status = kiln_file_read(list, MOST_BYTES, &text, &size, err);

    for (char *line = text, *next; line != NULL && status >= 0; line = next, number++) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        status = add_line(reading, list, number, line, err);
    }
    free(text);
    return status;
}

/* A folder or a list that the file names for a split. */
static KilnStatus add_place(Reading *reading, const char *key, const KilnConfigNode *place,
                            KilnError *err)
{
    const char *text = place->kind == KILN_NODE_SCALAR ? place->text : "";
    const char *root = text[0] == '/' ? "" : reading->root;
    char *path = kiln_arena_printf(reading->arena, "%s%s", root, text);
    struct stat info;

    /* Roboflow writes ../train/images for the folder train beside the file. */
    if (path != NULL && kiln_starts_with(text, "../") && stat(path, &info) < 0)
        path = kiln_arena_printf(reading->arena, "%s%s", root, text + 3);
    if (path == NULL)
        return kiln_error_nomem(err, strlen(text));
    if (text[0] == '\0')
        return kiln_error_set(err, KILN_E_FORMAT, "%s:%d: %s: expected a folder or a .txt file",
                              reading->file, place->origin.line, key);
    if (kiln_is_dir(path))
        return add_folder(reading, path, 0, err);
    if (kiln_is_file(path) && kiln_ends_with(path, ".txt"))
        return add_list(reading, path, err);
    return kiln_error_set(err, KILN_E_IO,
                          "%s:%d: %s: %s: no such folder of images or .txt file; paths are below "
                          "\"path\", or datamodule.root",
                          reading->file, place->origin.line, key, path);
}

static KilnStatus find_images(Reading *reading, KilnSplit split, KilnError *err)
{
    const char *key = kiln_split_name(split);
    const KilnConfigNode *places = kiln_node_get(reading->named, key);
    KilnStatus status = KILN_OK;

    if (places == NULL || kiln_node_is_scalar(places, KILN_SCALAR_NULL))
        return split != KILN_TRAIN
                   ? KILN_OK
                   : kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: expected \"train\", a folder of images", reading->file);
    if (places->kind == KILN_NODE_SCALAR)
        status = add_place(reading, key, places, err);
    for (size_t i = 0; places->kind == KILN_NODE_LIST && i < places->count && status >= 0; i++)
        status = add_place(reading, key, places->entries[i].value, err);
    if (status >= 0 && reading->set->count == 0)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s:%d: %s: there are no images (.png, .jpg, .jpeg, .webp)",
                                reading->file, places->origin.line, key);
    return status;
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

/* The text of an image's boxes: labels/ for the last images/ in its path, .txt for its ending. */
static char *labels_of(const char *image)
{
    static const char images[] = "/images/", labels[] = "/labels/";
    const char *at = NULL, *dot = strrchr(image, '.');
    const size_t size = strlen(image) + sizeof(".txt");
    char *ret = malloc(size);

    for (const char *next = image; (next = strstr(next, images)) != NULL; next++)
        at = next;
    if (ret != NULL && at != NULL)
        snprintf(ret, size, "%.*s%s%.*s.txt", (int)(at - image), image, labels,
                 (int)(dot - at) - (int)strlen(images), at + strlen(images));
    else if (ret != NULL)
        snprintf(ret, size, "%.*s.txt", (int)(dot - image), image);
    return ret;
}

static KilnStatus read_boxes(Reading *reading, KilnSplit split, KilnError *err)
{
    KilnBoxSet *set = reading->set;
    KilnYoloRows rows = { 0 };
    bool any = false;
    KilnStatus status = KILN_OK;

    set->relative = true;
    set->starts = calloc((size_t)set->count + 1, sizeof(*set->starts));
    if (set->starts == NULL || !KILN_RESERVE(rows.rows, rows.capacity, 1))
        return kiln_error_nomem(err, (size_t)set->count * sizeof(*set->starts));
    for (int64_t i = 0; i < set->count && status >= 0; i++) {
        char *path = labels_of(set->paths[i]);
        bool found = false;

        status = path == NULL ? kiln_error_nomem(err, strlen(set->paths[i]))
                              : kiln_poll_check(reading->poll, "reading boxes", i, set->count, err);
        if (status >= 0)
            status = kiln_yolo_labels_read(path, reading->skips, set, &rows, &found, err);
        if (status >= 0 && i == set->count - 1 && !found && !any && split == KILN_TRAIN)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: no image of train has a text of boxes; expected %s for %s",
                                    reading->file, path, set->paths[i]);
        any = any || found;
        set->starts[i + 1] = (int64_t)rows.n;
        if (set->starts[i + 1] - set->starts[i] > set->most)
            set->most = set->starts[i + 1] - set->starts[i];
        free(path);
    }
    if (status >= 0 && rows.n == 0 && split == KILN_TRAIN)
        status =
            kiln_error_set(err, KILN_E_FORMAT, "%s: no image of train has a box%s%s", reading->file,
                           set->example[0] != '\0' ? "; what is wrong first: " : "", set->example);
    set->boxes = rows.rows[0];
    return status;
}

KilnStatus kiln_yolo_read(const char *path, const char *root, KilnSplit split, bool skips,
                          const KilnPoll *poll, KilnBoxSet *ret, KilnError *err)
{
    KilnArena arena = { 0 };
    KilnBoxSet set = { 0 };
    Reading reading = { .file = path, .arena = &arena, .poll = poll, .skips = skips, .set = &set };
    KilnStatus status = open_file(&reading, root, err);

    if (status >= 0)
        status = find_images(&reading, split, err);
    if (status >= 0 && set.count > 0)
        status = read_boxes(&reading, split, err);
    if (status < 0) {
        kiln_box_set_release(&set);
        if (err != NULL)
            err->origin = (KilnOrigin) { 0 }; /* it is in the arena */
    } else
        *ret = set;
    kiln_arena_release(&arena);
    return status;
}
