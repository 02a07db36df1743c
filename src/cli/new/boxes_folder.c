/* Finds annotations of boxes in a folder: COCO's JSON, and YOLO's YAML file and texts. */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/new/boxes.h"
#include "cli/new/folder.h"
#include "data/records/mapped_file.h"
#include "image/read.h"
#include "kiln/array.h"

/* ---- How files begin ------------------------------------------------------------------------- */

enum { HEAD = 1 << 16 };

/* The first bytes of a file, owned by the caller; NULL: it can't be read. */
static char *read_head(const char *path)
{
    FILE *file = kiln_is_file(path) ? fopen(path, "re") : NULL;
    char *text = file != NULL ? malloc(HEAD + 1) : NULL;
    const size_t n = text != NULL ? fread(text, 1, HEAD, file) : 0;

    if (file != NULL)
        fclose(file);
    if (text != NULL)
        text[n] = '\0';
    return text;
}

bool kiln_new_is_coco(const char *path)
{
    static const char *const keys[] = { "\"info\"",        "\"licenses\"",   "\"images\"",
                                        "\"annotations\"", "\"categories\"", "\"type\"" };
    char *text = read_head(path);
    const char *at = text != NULL ? text : "";
    bool is = false;

    at += strspn(at, "\xef\xbb\xbf \t\r\n");
    if (*at == '{') {
        at += 1 + strspn(at + 1, " \t\r\n");
        for (size_t i = 0; i < KILN_COUNT(keys); i++)
            is = is || kiln_starts_with(at, keys[i]);
    }
    free(text);
    return is;
}

/* Whether the text has a key of a mapping, at the beginning of a line or within {}. */
static bool has_key(const char *text, const char *key)
{
    const size_t n = strlen(key);

    for (const char *at = text; (at = strstr(at, key)) != NULL; at += n)
        if (at[n] == ':' && (at == text || at[-1] == '\n' || text[0] == '{'))
            return true;
    return false;
}

bool kiln_new_is_yolo(const char *path)
{
    char *text = kiln_ends_with(path, ".yaml") || kiln_ends_with(path, ".yml") ? read_head(path)
                                                                               : NULL;
    const bool is = text != NULL && has_key(text, "names") && has_key(text, "train");

    free(text);
    return is;
}

/* ---- COCO's files ---------------------------------------------------------------------------- */

/* COCO's own files of other tasks. */
static bool is_other_task(const char *name)
{
    static const char *const begins[] = { "captions_", "person_keypoints_", "panoptic_", "stuff_",
                                          "image_info_" };

    for (size_t i = 0; i < KILN_COUNT(begins); i++)
        if (kiln_starts_with(name, begins[i]))
            return true;
    return false;
}

/* Add the annotations, and the YAML files, of a folder; `folders` gets those in it. */
static KilnStatus list_files(KilnNewConfig *config, const char *path, KilnNewPaths *coco,
                             KilnNewPaths *yolo, KilnNewPaths *folders, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(path, &names, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        if (names[i][0] == '.' || kiln_is_image_name(names[i]))
            continue;
        const char *full = kiln_arena_printf(&config->arena, "%s%s%s", path,
                                             kiln_ends_with(path, "/") ? "" : "/", names[i]);
        if (full == NULL)
            status = kiln_error_nomem(err, strlen(path));
        else if (kiln_ends_with(names[i], ".json")) {
            if (!is_other_task(names[i]) && kiln_new_is_coco(full))
                kiln_new_add_path(config, coco, full);
        } else if (yolo != NULL && kiln_new_is_yolo(full))
            kiln_new_add_path(config, yolo, full);
        else if (folders != NULL && kiln_is_dir(full))
            kiln_new_add_path(config, folders, full);
    }
    kiln_names_free(names, n);
    return status;
}

/* The split of annotations: by the file's name, or by that of its folder. */
static int split_of(KilnNewConfig *config, const char *root, const char *path)
{
    const int split = kiln_new_split_of(path);
    const char *slash = strrchr(path, '/');

    if (split >= 0 || slash == NULL || (size_t)(slash - path) <= strlen(root))
        return split;
    const char *folder = kiln_arena_strndup(&config->arena, path, (size_t)(slash - path));
    return folder != NULL ? kiln_new_split_of(folder) : -1;
}

static KilnStatus unclear(const KilnNewPaths *paths, const char *what, KilnError *err)
{
    enum { LISTED = 6 };
    KilnText text = { 0 };

    kiln_text_printf(&text, "%zu files of %s; give the one to train on:", paths->n, what);
    for (size_t i = 0; i < paths->n && i < LISTED; i++)
        kiln_text_printf(&text, "%s %s", i > 0 ? "," : "", paths->list[i]);
    kiln_text_append(&text, paths->n > LISTED ? ", ..." : "");
    return kiln_text_to_error(&text, KILN_E_USAGE, err);
}

/* The file to train on: the only one whose name or folder says so, or the only one. */
static KilnStatus choose(KilnNewConfig *config, const char *root, const KilnNewPaths *paths,
                         const char **ret, KilnError *err)
{
    KilnNewPaths train = { 0 };

    for (size_t i = 0; i < paths->n; i++)
        if (split_of(config, root, paths->list[i]) == KILN_TRAIN)
            kiln_new_add_path(config, &train, paths->list[i]);
    const KilnNewPaths *from = train.n > 0 ? &train : paths;
    if (from->n > 1)
        return unclear(from, "COCO's annotations", err);
    *ret = from->list[0];
    return KILN_OK;
}

/* ---- Where the images are -------------------------------------------------------------------- */

enum { NAMES = 8 /* of images, that are looked for */ };

/* Some of the file names in annotations, in the arena; returns their number. */
static KilnStatus read_names(KilnNewConfig *config, const char *path, const char *ret[NAMES],
                             size_t *ret_n, KilnError *err)
{
    static const char key[] = "\"file_name\"";
    KilnMappedFile file = { 0 };
    KilnStatus status = kiln_mapped_file_open(&file, path, NULL, config->poll, err);
    const char *at = file.data, *end = file.data + file.size;

    *ret_n = 0;
    while (status >= 0 && *ret_n < NAMES &&
           (at = memmem(at, (size_t)(end - at), key, strlen(key))) != NULL) {
        at += strlen(key);
        while (at < end && strchr(" \t\r\n:", *at) != NULL)
            at++;
        json_t *name = json_loadb(at, (size_t)(end - at) < HEAD ? (size_t)(end - at) : HEAD,
                                  JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
        if (json_is_string(name))
            ret[(*ret_n)++] = kiln_arena_strdup(&config->arena, json_string_value(name));
        json_decref(name);
    }
    kiln_mapped_file_close(&file);
    if (status >= 0 && *ret_n == 0)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: begins as COCO's annotations, but no image has a "
                                "\"file_name\"",
                                path);
    return status;
}

/* A pattern with SPLIT in place of "train". */
static const char *pattern_of(KilnNewConfig *config, const char *path)
{
    static const char train[] = "train";
    KilnText text = { 0 };

    for (const char *at; (at = strstr(path, train)) != NULL; path = at + strlen(train)) {
        kiln_text_append_n(&text, path, (size_t)(at - path));
        kiln_text_append(&text, "SPLIT");
    }
    kiln_text_append(&text, path);
    return kiln_text_to_arena(&text, &config->arena);
}

static bool has_image(KilnNewConfig *config, const char *root, const char *folder,
                      const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *path = kiln_arena_printf(&config->arena, "%s/%s/%s", root, folder, names[i]);

        if (path != NULL && kiln_is_file(path))
            return true;
    }
    return false;
}

/* The first of the folders that has one of the images; NULL: none has. */
static const char *find_folder(KilnNewConfig *config, const char *root, const KilnNewPaths *folders,
                               const char *const *names, size_t n)
{
    for (size_t i = 0; i < folders->n; i++)
        if (has_image(config, root, folders->list[i], names, n))
            return folders->list[i];
    return NULL;
}

/* The folders below root where images usually are, and all others. */
static KilnStatus list_places(KilnNewConfig *config, const char *root, const char *annotations,
                              KilnNewPaths *ret, KilnError *err)
{
    static const char *const usual[] = { "train2017",
                                         "train2014",
                                         "images/train2017",
                                         "images/train2014",
                                         "images/train",
                                         "train/images",
                                         "train",
                                         "images",
                                         "." };
    const char *slash = strrchr(annotations, '/');
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(root, &names, &n, err);

    if (slash != NULL) {
        const char *beside = kiln_arena_strndup(&config->arena, annotations,
                                                (size_t)(slash - annotations));

        kiln_new_add_path(config, ret, beside);
        kiln_new_add_path(config, ret, kiln_arena_printf(&config->arena, "%s/images", beside));
    }
    for (size_t i = 0; i < KILN_COUNT(usual); i++)
        kiln_new_add_path(config, ret, usual[i]);
    for (size_t i = 0; i < n; i++)
        if (!kiln_is_image_name(names[i]))
            kiln_new_add_path(config, ret, kiln_arena_strdup(&config->arena, names[i]));
    kiln_names_free(names, n);
    return status;
}

static KilnStatus find_images(KilnNewConfig *config, const char *annotations, KilnNewCoco *coco,
                              KilnError *err)
{
    const char *names[NAMES];
    KilnNewPaths places = { 0 };
    size_t n = 0;
    KilnStatus status = read_names(config, annotations, names, &n, err);

    if (status >= 0)
        status = list_places(config, coco->root, coco->annotations, &places, err);
    if (status < 0)
        return status;
    if (config->arena.failed)
        return kiln_error_nomem(err, 0);
    coco->images = find_folder(config, coco->root, &places, names, n);
    if (coco->images == NULL)
        return kiln_error_set(err, KILN_E_IO,
                              "%s: names images such as \"%s\", which is neither in %s nor in a "
                              "folder there",
                              annotations, names[0], coco->root);
    return KILN_OK;
}

static KilnStatus fill_coco(KilnNewConfig *config, const char *root, const char *annotations,
                            KilnNewCoco *ret, KilnError *err)
{
    const size_t n = strlen(root);
    const bool below = kiln_starts_with(annotations, root) && n > 0;

    ret->root = root;
    ret->annotations = below ? annotations + n + strspn(annotations + n, "/") : annotations;
    const KilnStatus status = find_images(config, annotations, ret, err);
    if (status < 0)
        return status;
    const bool trains = split_of(config, root, annotations) == KILN_TRAIN;
    if (trains && strstr(ret->annotations, "train") != NULL) {
        ret->annotations = pattern_of(config, ret->annotations);
        ret->images = pattern_of(config, ret->images);
    }
    return ret->annotations != NULL && ret->images != NULL ? KILN_OK : kiln_error_nomem(err, n);
}

KilnStatus kiln_new_coco_of(KilnNewConfig *config, const char *path, KilnNewCoco *ret,
                            KilnError *err)
{
    static const char folder[] = "annotations";
    const char *name = strrchr(path, '/');
    size_t n = name != NULL ? (size_t)(name - path) : 0;
    const char *dir = name == NULL ? "."
                      : n == 0     ? "/"
                                   : kiln_arena_strndup(&config->arena, path, n);

    /* The images are beside the folder of annotations, or of the splits. */
    const char *last = dir != NULL ? strrchr(dir, '/') : NULL;
    last = last != NULL ? last + 1 : dir;
    if (dir != NULL && last != dir &&
        (strcmp(last, folder) == 0 || kiln_new_split_of(last) == KILN_TRAIN))
        dir = kiln_arena_strndup(&config->arena, dir, (size_t)(last - dir - 1));
    else if (dir != NULL && (strcmp(last, folder) == 0 || kiln_new_split_of(last) == KILN_TRAIN))
        dir = ".";
    if (dir == NULL)
        return kiln_error_nomem(err, strlen(path));
    return fill_coco(config, dir, path, ret, err);
}

/* ---- YOLO's texts ---------------------------------------------------------------------------- */

/* Whether a text begins with a row of YOLO's: a class, and 4 or more numbers from 0 to 1. */
static bool is_yolo_text(const char *path)
{
    char *text = read_head(path), *at = text;
    int n = 0;
    bool good = text != NULL;

    if (good)
        text[strcspn(text, "\n")] = '\0';
    for (char *end; good && at[strspn(at, " \t\r")] != '\0'; at = end, n++) {
        const double value = strtod(at, &end);

        good = end > at && value >= 0.0 &&
               (n == 0 ? value == (double)(int)value && value < 1e5 : value <= 1.0);
    }
    free(text);
    return good && n >= 5;
}

/* Whether one of a folder's first texts is one; `ret_images`: the folder has images, too. */
static bool has_yolo_texts(KilnNewConfig *config, const char *path, bool *ret_images)
{
    enum { LOOKED = 100 };
    char **names = NULL;
    size_t n = 0, looked = 0;
    bool texts = false;

    *ret_images = false;
    if (!kiln_is_dir(path) || kiln_dir_list(path, &names, &n, NULL) < 0)
        return false;
    for (size_t i = 0; i < n && !(texts && *ret_images); i++) {
        *ret_images = *ret_images || kiln_is_image_name(names[i]);
        if (!texts && looked < LOOKED && kiln_ends_with(names[i], ".txt")) {
            const char *text = kiln_arena_printf(&config->arena, "%s/%s", path, names[i]);

            looked++;
            texts = text != NULL && is_yolo_text(text);
        }
    }
    kiln_names_free(names, n);
    return texts;
}

/* Where texts of boxes are, and the folder of images to name for them. */
static const struct Layout {
    const char *labels, *images, *val;
} layouts[] = {
    { "labels/train", "images/train", "images/val" },
    { "train/labels", "train/images", "val/images" },
    { "labels", "images", NULL },
    { "train", "train", "val" },
    { ".", ".", NULL },
};

static KilnStatus lacks_yaml(KilnNewConfig *config, const char *root, const struct Layout *layout,
                             KilnError *err)
{
    const char *val = layout->val != NULL
                          ? kiln_arena_printf(&config->arena, "%s/%s", root, layout->val)
                          : NULL;
    const bool has_val = val != NULL && kiln_is_dir(val);

    return kiln_error_set(
        err, KILN_E_MISSING,
        "%s: boxes in YOLO's texts, but no YAML file that names their classes; write %s/data.yaml "
        "with the names of classes 0, 1, ... in place of cat and dog:\n"
        "    printf 'train: %s\\n%s%s%snames: [cat, dog]\\n' >%s/data.yaml",
        root, root, layout->images, has_val ? "val: " : "", has_val ? layout->val : "",
        has_val ? "\\n" : "", root);
}

static KilnStatus check_yolo_texts(KilnNewConfig *config, const char *root, KilnError *err)
{
    for (size_t i = 0; i < KILN_COUNT(layouts); i++) {
        const char *labels = kiln_arena_printf(&config->arena, "%s/%s", root, layouts[i].labels);
        const bool beside = strcmp(layouts[i].labels, layouts[i].images) == 0;
        bool images = false;

        if (labels == NULL)
            return kiln_error_nomem(err, strlen(root));
        if (has_yolo_texts(config, labels, &images) && (!beside || images))
            return lacks_yaml(config, root, &layouts[i], err);
    }
    return KILN_OK;
}

/* Pascal VOC's layout: an XML file in Annotations/ for each image. */
static KilnStatus check_voc(KilnNewConfig *config, const char *root, KilnError *err)
{
    const char *folder = kiln_arena_printf(&config->arena, "%s/Annotations", root);
    char **names = NULL;
    size_t n = 0;

    if (folder == NULL)
        return kiln_error_nomem(err, strlen(root));
    if (!kiln_is_dir(folder) || kiln_dir_list(folder, &names, &n, NULL) < 0)
        return KILN_OK;
    const bool is_voc = n > 0 && kiln_ends_with(names[0], ".xml");
    kiln_names_free(names, n);
    return !is_voc
               ? KILN_OK
               : kiln_error_set(err, KILN_E_FORMAT,
                                "%s: boxes in Pascal VOC's XML, which kiln does not read; convert "
                                "them to COCO's JSON or YOLO's texts",
                                root);
}

/* ---- The folder ------------------------------------------------------------------------------ */

KilnStatus kiln_new_boxes_find(KilnNewConfig *config, const char *path, KilnNewBoxes *ret,
                               KilnError *err)
{
    KilnNewPaths coco = { 0 }, yolo = { 0 }, folders = { 0 };
    const char *annotations = NULL;
    KilnStatus status = list_files(config, path, &coco, &yolo, &folders, err);

    *ret = (KilnNewBoxes) { 0 };
    for (size_t i = 0; i < folders.n && status >= 0 && yolo.n == 0; i++)
        status = list_files(config, folders.list[i], &coco, NULL, NULL, err);
    if (status < 0)
        return status;
    if (yolo.n > 1)
        return unclear(&yolo, "YOLO's YAML", err);
    if (yolo.n == 1) {
        ret->yolo = yolo.list[0];
        return KILN_OK;
    }
    if (coco.n == 0)
        status = check_voc(config, path, err);
    if (coco.n == 0)
        return status >= 0 ? check_yolo_texts(config, path, err) : status;
    status = choose(config, path, &coco, &annotations, err);
    return status >= 0 ? fill_coco(config, path, annotations, &ret->coco, err) : status;
}
