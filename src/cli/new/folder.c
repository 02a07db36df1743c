/* What is in a folder of the user's data: by names alone, nothing is opened. */
#include "cli/new/folder.h"

#include <string.h>
#include <strings.h>

#include "base/system/file.h"
#include "base/text.h"
#include "data/records/records_internal.h"
#include "image/read.h"
#include "kiln/array.h"

/* ---- Names ----------------------------------------------------------------------------------- */

static bool is_in(const char *name, size_t n, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == n && strncasecmp(name, *list, n) == 0)
            return true;
    return false;
}

static bool has_ending(const char *name, const char *const *list)
{
    const KilnString ending = kiln_path_ending(name);

    return is_in(ending.data, ending.length, list);
}

bool kiln_new_is_side_ending(KilnString ending)
{
    static const char *const side[] = { "weight", "query", "group", "init", NULL };

    return is_in(ending.data, ending.length, side);
}

static bool is_table(const char *name)
{
    static const char *const endings[] = { "csv",    "tsv",     "jsonl",   "ndjson",
                                           "conll",  "iob",     "bio",     "iob2",
                                           "conllu", "parquet", "db",      "sqlite",
                                           "libsvm", "svm",     "sqlite3", NULL };

    /* other .json files may be anything */
    return has_ending(name, endings) ||
           (kiln_ends_with(name, ".json") && kiln_new_split_of(name) >= 0);
}

/* What stands beside data: descriptions, programs. */
static bool is_beside(const char *name)
{
    static const char *const endings[] = { "md",   "names", "html", "htm",   "json",
                                           "yaml", "yml",   "py",   "ipynb", "pdf",
                                           "sh",   "log",   "zip",  "svg",   "gitignore",
                                           "rst",  "tex",   "docx", NULL };
    static const char *const begins[] = { "readme",  "license",   "licence", "source", "citation",
                                          "copying", "changelog", "class",   "label",  NULL };

    for (const char *const *begin = begins; *begin != NULL; begin++)
        if (strncasecmp(name, *begin, strlen(*begin)) == 0)
            return true;
    return has_ending(name, endings) || kiln_new_is_side_ending(kiln_path_ending(name));
}

static const char *const image_folders[] = { "images", "image", "imgs",   "img", "JPEGImages",
                                             "inputs", "data",  "photos", NULL };
static const char *const mask_folders[] = {
    "masks",   "mask",        "annotations",       "annots", "annot", "labels", "segmentation",
    "targets", "groundtruth", "SegmentationClass", "gt",     NULL
};

/* ---- Content --------------------------------------------------------------------------------- */

/* How many entries of each kind a folder has. */
typedef struct Content {
    size_t images, tables, texts, folders;
    bool sequences, idx; /* seq.in and seq.out; *-idx3-ubyte* */
} Content;

void kiln_new_add_path(KilnNewConfig *config, KilnNewPaths *paths, const char *path)
{
    if (paths->n == paths->capacity) {
        const size_t capacity = paths->capacity == 0 ? 64 : 2 * paths->capacity;
        const char **list = kiln_arena_alloc(&config->arena, capacity * sizeof(*list));

        if (list == NULL)
            return;
        if (paths->n > 0)
            memcpy(list, paths->list, paths->n * sizeof(*list));
        paths->list = list;
        paths->capacity = capacity;
    }
    paths->list[paths->n++] = path;
}

/* Count what is directly in a folder; `into` (may be NULL) gets the lists, and `folders`. */
static KilnStatus read_content(KilnNewConfig *config, const char *path, Content *ret,
                               KilnNewFolder *into, KilnNewPaths *folders, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(path, &names, &n, err);
    bool in = false, out = false;

    *ret = (Content) { 0 };
    for (size_t i = 0; i < n && status >= 0; i++) {
        const char *full = kiln_arena_printf(&config->arena, "%s%s%s", path,
                                             kiln_ends_with(path, "/") ? "" : "/", names[i]);

        if (names[i][0] == '.')
            continue;
        if (full == NULL)
            status = kiln_error_nomem(err, strlen(path));
        else if (kiln_is_image_name(names[i])) {
            ret->images++;
        } else if (kiln_is_dir(full)) {
            ret->folders++;
            if (folders != NULL)
                kiln_new_add_path(config, folders, full);
        } else if (is_table(names[i])) {
            ret->tables++;
            if (into != NULL)
                kiln_new_add_path(config, &into->tables, full);
        } else if (!is_beside(names[i])) {
            ret->texts++;
            in = in || strcmp(names[i], "seq.in") == 0;
            out = out || strcmp(names[i], "seq.out") == 0;
            ret->idx = ret->idx || strstr(names[i], "-idx3-ubyte") != NULL;
            if (into != NULL)
                kiln_new_add_path(config, &into->texts, full);
        }
        if (into != NULL && into->first == NULL)
            into->first = full;
        if (into != NULL)
            into->n_entries++;
    }
    ret->sequences = in && out;
    kiln_names_free(names, n);
    return status;
}

/* The sum over the folders of a list, and which of them hold images. */
typedef struct Inside {
    Content sum;
    size_t with_images, with_texts;
    const char *image_folder, *mask_folder; /* names of a pair; NULL: there is none */
    bool pair_has_splits;
    const char *example; /* a folder with images */
} Inside;

static const char *last_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

static KilnStatus read_inside(KilnNewConfig *config, const KilnNewPaths *folders, Inside *ret,
                              KilnError *err)
{
    KilnStatus status = KILN_OK;

    *ret = (Inside) { 0 };
    for (size_t i = 0; i < folders->n && status >= 0; i++) {
        const char *path = folders->list[i], *name = last_name(path);
        Content content;

        status = read_content(config, path, &content, NULL, NULL, err);
        if (status < 0)
            return status;
        ret->sum.images += content.images;
        ret->sum.texts += content.texts;
        ret->sum.folders += content.folders;
        ret->with_images += content.images > 0;
        ret->with_texts += content.texts > 0 && content.images == 0;
        if (content.images > 0 && ret->example == NULL)
            ret->example = path;
        if (is_in(name, strlen(name), image_folders)) {
            ret->image_folder = name;
            ret->pair_has_splits = content.images == 0 && content.folders > 0;
        }
        if (is_in(name, strlen(name), mask_folders))
            ret->mask_folder = name;
    }
    return status;
}

/* A folder of masks that belongs to the folder `train`: trainannot, train_masks; the pattern of its
 * name, or NULL. */
static const char *masks_beside(KilnNewConfig *config, const KilnNewPaths *folders,
                                const char *train)
{
    const size_t n = strlen(train);

    for (size_t i = 0; i < folders->n; i++) {
        const char *name = last_name(folders->list[i]);

        if (strncmp(name, train, n) == 0 && name[n] != '\0' &&
            (strcasecmp(name + n, "annot") == 0 || strcasecmp(name + n, "_masks") == 0 ||
             strcasecmp(name + n, "_labels") == 0 || strcasecmp(name + n, "_mask") == 0))
            return kiln_arena_printf(&config->arena, "SPLIT%s", name + n);
    }
    return NULL;
}

/* ---- The kind -------------------------------------------------------------------------------- */

static void set_masks(KilnNewConfig *config, KilnNewFolder *folder, const char *images,
                      const char *masks, const char *format)
{
    folder->kind = KILN_FOLDER_MASKS;
    folder->images = kiln_arena_printf(&config->arena, format, images);
    folder->masks = kiln_arena_printf(&config->arena, format, masks);
}

/* Tables in the folders of the splits. */
static KilnStatus list_split_tables(KilnNewConfig *config, KilnNewFolder *folder, KilnError *err)
{
    KilnStatus status = KILN_OK;

    folder->kind = KILN_FOLDER_SPLIT_TABLES;
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        KilnNewFolder inside = { 0 };
        Content content;

        if (folder->splits[split] == NULL)
            continue;
        status = read_content(config, folder->splits[split], &content, &inside, NULL, err);
        folder->split_tables[split] = inside.tables;
    }
    return status;
}

/* By what is in its folder train. */
static KilnStatus read_train(KilnNewConfig *config, const KilnNewPaths *folders,
                             KilnNewFolder *folder, KilnError *err)
{
    const char *train = folder->splits[KILN_TRAIN], *pattern;
    KilnNewPaths classes = { 0 };
    Content content;
    Inside inside = { 0 };
    KilnStatus status = read_content(config, train, &content, NULL, &classes, err);

    if (status >= 0)
        status = read_inside(config, &classes, &inside, err);
    if (status < 0)
        return status;
    if (content.sequences)
        folder->kind = KILN_FOLDER_SEQUENCES;
    else if (inside.image_folder != NULL && inside.mask_folder != NULL)
        set_masks(config, folder, inside.image_folder, inside.mask_folder, "SPLIT/%s");
    else if (content.images > 0 &&
             (pattern = masks_beside(config, folders, last_name(train))) != NULL) {
        set_masks(config, folder, "SPLIT", pattern, "%s");
    } else if (content.tables > 0 && inside.with_images < 2 && folder->tables.n == 0)
        status = list_split_tables(config, folder, err);
    else if (inside.with_images > 0)
        folder->kind = KILN_FOLDER_IMAGE_CLASSES;
    else if (inside.with_texts > 0)
        folder->kind = KILN_FOLDER_TEXT_CLASSES;
    else if (folder->tables.n > 0)
        folder->kind = KILN_FOLDER_FILES;
    else if (content.images > 0)
        folder->kind = KILN_FOLDER_BARE_IMAGES;
    return status;
}

static void read_classes(KilnNewConfig *config, const Inside *inside, const Content *content,
                         KilnNewFolder *folder)
{
    if (inside->image_folder != NULL && inside->mask_folder != NULL)
        set_masks(config, folder, inside->image_folder, inside->mask_folder,
                  inside->pair_has_splits ? "%s/SPLIT" : "%s");
    else if (content->tables > 0 && inside->with_images < 2)
        folder->kind = KILN_FOLDER_FILES;
    else if (inside->with_images > 0 && inside->with_texts > 0)
        folder->kind = KILN_FOLDER_MIXED;
    else if (inside->with_images > 1)
        folder->kind = KILN_FOLDER_IMAGE_CLASSES;
    else if (inside->with_images == 1) {
        folder->kind = KILN_FOLDER_ONE_CLASS;
        folder->first = inside->example;
    } else if (inside->with_texts > 1)
        folder->kind = KILN_FOLDER_TEXT_CLASSES;
    else if (content->images > 0 && content->tables == 0)
        folder->kind = KILN_FOLDER_BARE_IMAGES;
    else if (content->tables > 0 || content->texts > 0)
        folder->kind = KILN_FOLDER_FILES;
    if (folder->kind == KILN_FOLDER_IMAGE_CLASSES && content->tables > 0)
        kiln_new_say_odd(config, "%s is not used: the folders are taken for the classes",
                         folder->tables.list[0]);
}

KilnStatus kiln_new_folder_read(KilnNewConfig *config, const char *path, KilnNewFolder *ret,
                                KilnError *err)
{
    KilnNewPaths folders = { 0 };
    Content content;
    Inside inside = { 0 };

    *ret = (KilnNewFolder) { 0 };
    KilnStatus status = read_content(config, path, &content, ret, &folders, err);
    if (status >= 0)
        status = read_inside(config, &folders, &inside, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < folders.n; i++) {
        const int split = kiln_new_split_of(folders.list[i]);

        if (split >= 0 &&
            (ret->splits[split] == NULL || strlen(folders.list[i]) < strlen(ret->splits[split])))
            ret->splits[split] = folders.list[i];
    }
    if (content.idx)
        ret->kind = KILN_FOLDER_IDX;
    else if (ret->splits[KILN_TRAIN] != NULL)
        status = read_train(config, &folders, ret, err);
    if (status >= 0 && ret->kind == KILN_FOLDER_UNKNOWN)
        read_classes(config, &inside, &content, ret);
    if (ret->kind != KILN_FOLDER_IMAGE_CLASSES)
        return status;
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        if (ret->splits[split] != NULL &&
            strcmp(last_name(ret->splits[split]), kiln_split_name((KilnSplit)split)) != 0)
            kiln_new_say_odd(config,
                             "%s is not used: folders of images are named train, val and "
                             "test; rename it to %s",
                             ret->splits[split], kiln_split_name((KilnSplit)split));
    return status;
}
