/* What kind of data a path is: a folder, an archive, a file. */
#define _GNU_SOURCE /* strcasestr */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/new/boxes.h"
#include "cli/new/folder.h"
#include "cli/new/new_config.h"
#include "data/records/mapped_file.h"
#include "data/records/records_internal.h"
#include "kiln/array.h"
#include "kiln/files/tar.h"

/* ---- Names ----------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

const char *kiln_new_stem(KilnNewConfig *config, const char *path)
{
    char *name = kiln_arena_strdup(&config->arena, base_name(path));

    if (name == NULL)
        return "data";
    name[strcspn(name, "/")] = '\0';
    char *dot = strchr(name + 1, '.');
    if (name[0] != '\0' && dot != NULL)
        *dot = '\0';
    for (char *at = name; *at != '\0'; at++)
        if (!kiln_is_word(*at))
            *at = '_';
    return name[0] != '\0' && strspn(name, "_") < strlen(name) ? name : "data";
}

/* Whether a word of a name is one of a list, in small letters. */
static bool is_one_of(const char *word, size_t n, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == n && strncasecmp(word, *list, n) == 0)
            return true;
    return false;
}

int kiln_new_split_of(const char *path)
{
    static const char *const train[] = { "train", "training", NULL };
    static const char *const val[] = { "val", "valid", "validation", "dev", "devel", NULL };
    static const char *const test[] = { "test", "testing", NULL };
    const char *name = base_name(path);
    int found = -1;

    for (const char *at = name; *at != '\0';) {
        size_t n = 0;

        while (isalpha((unsigned char)at[n]))
            n++;
        if (is_one_of(at, n, val))
            found = KILN_VAL;
        else if (is_one_of(at, n, test))
            found = KILN_TEST;
        else if (is_one_of(at, n, train))
            return KILN_TRAIN;
        at += n > 0 ? n : 1;
    }
    return found < 0 && strcasestr(name, "train") != NULL ? KILN_TRAIN : found;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static KilnStatus too_many_files(KilnError *err)
{
    return kiln_error_set(err, KILN_E_RANGE,
                          "more than %d files; give a folder per class, or list them in "
                          "a config of your own (`kiln init`)",
                          KILN_NEW_FILES);
}

/* Sort files by split. If some are for training by name, others without a split in theirs are left
 * out; else those train. */
static KilnStatus sort_files(KilnNewConfig *config, const char *const *paths, size_t n,
                             KilnNewFiles *ret, KilnError *err)
{
    bool has_train = false;

    for (size_t i = 0; i < n; i++)
        has_train = has_train || kiln_new_split_of(paths[i]) == KILN_TRAIN;
    for (size_t i = 0; i < n; i++) {
        int split = kiln_new_split_of(paths[i]);

        if (split < 0 && has_train) {
            kiln_new_say_odd(config, "%s is not used: its name says no split", paths[i]);
            continue;
        }
        split = split < 0 || n == 1 ? KILN_TRAIN : split;
        if (ret->n[split] == KILN_NEW_FILES)
            return too_many_files(err);
        ret->list[split][ret->n[split]++] = paths[i];
    }
    return KILN_OK;
}

void kiln_new_set_files(KilnNewConfig *config, const KilnNewFiles *files)
{
    KilnText text = { 0 };

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        if (files->n[split] == 0)
            continue;
        kiln_text_printf(&text, "%s%s: [", text.length > 0 ? ", " : "",
                         kiln_split_name((KilnSplit)split));
        for (size_t i = 0; i < files->n[split]; i++) {
            kiln_text_append(&text, i > 0 ? ", " : "");
            kiln_new_put_text(&text, files->list[split][i]);
        }
        kiln_text_char(&text, ']');
    }
    kiln_new_set(config, KILN_NEW_DATA, "files", "{%s}", text.data != NULL ? text.data : "");
    config->parts[KILN_NEW_DATA].failed |= text.failed;
    kiln_text_release(&text);
}

/* The name of a split's first file; its path if that of another split is called so, too. */
static const char *shown_name(const KilnNewFiles *files, int split)
{
    const char *path = files->list[split][0];

    for (int other = 0; other < KILN_SPLIT_COUNT; other++)
        if (other != split && files->n[other] > 0 &&
            strcmp(base_name(files->list[other][0]), base_name(path)) == 0)
            return path;
    return base_name(path);
}

void kiln_new_say_splits(KilnNewConfig *config, const KilnNewFiles *files, double val_fraction,
                         double test_fraction)
{
    const double fractions[KILN_SPLIT_COUNT] = { 0.0, val_fraction, test_fraction };
    KilnText text = { 0 };

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        const char *name = kiln_split_name((KilnSplit)split);

        kiln_text_append(&text, split > 0 ? "; " : "");
        if (files->n[split] > 0)
            kiln_text_printf(&text, "%s: %s%s", name, shown_name(files, split),
                             files->n[split] > 1 ? ", ..." : "");
        else if (fractions[split] > 0.0)
            kiln_text_printf(&text, "%s: %g %% of the training samples, drawn by the seed", name,
                             100.0 * fractions[split]);
        else
            kiln_text_printf(&text, "%s: none", name);
    }
    kiln_new_say(config, "split", "%s", text.data != NULL ? text.data : "");
    kiln_text_release(&text);
}

/* ---- The folder ------------------------------------------------------------------------------ */

static KilnStatus look_at_parallel(KilnNewConfig *config, const KilnNewFolder *folder,
                                   KilnError *err)
{
    KilnNewFiles *files = kiln_arena_alloc(&config->arena, sizeof(*files));

    if (files == NULL)
        return kiln_error_nomem(err, sizeof(*files));
    *files = (KilnNewFiles) { 0 };
    KilnStatus status = sort_files(config, folder->texts.list, folder->texts.n, files, err);
    return status >= 0 ? kiln_new_parallel(config, files, err) : status;
}

static KilnStatus look_at_list(KilnNewConfig *config, const char *const *paths, size_t n,
                               KilnError *err)
{
    KilnNewFiles *files = kiln_arena_alloc(&config->arena, sizeof(*files));

    if (files == NULL)
        return kiln_error_nomem(err, sizeof(*files));
    *files = (KilnNewFiles) { 0 };
    KilnStatus status = sort_files(config, paths, n, files, err);
    if (status >= 0 && files->n[KILN_TRAIN] == 0)
        status = kiln_error_set(err, KILN_E_USAGE,
                                "none of the files is for training by its name (such as %s); "
                                "give the one to train on",
                                paths[0]);
    return status >= 0 ? kiln_new_files(config, files, err) : status;
}

/* Tables that are no splits of one table. */
static KilnStatus several_tables(const KilnNewPaths *tables, KilnError *err)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "%zu tables, and no names that say which train:", tables->n);
    for (size_t i = 0; i < tables->n && i < 8; i++)
        kiln_text_printf(&text, "%s %s", i > 0 ? "," : "", base_name(tables->list[i]));
    kiln_text_printf(&text, "; give one: `kiln new %s`", tables->list[0]);
    return kiln_text_to_error(&text, KILN_E_USAGE, err);
}

static bool has_train(const KilnNewPaths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        if (kiln_new_split_of(paths->list[i]) == KILN_TRAIN)
            return true;
    return false;
}

/* Two files per split, with the same two endings that say nothing else. */
static bool are_parallel(const KilnNewPaths *paths)
{
    KilnString endings[2] = { { 0 } };
    size_t n = 0, counts[KILN_SPLIT_COUNT + 1] = { 0 };

    for (size_t i = 0; i < paths->n; i++) {
        const KilnString ending = kiln_path_ending(paths->list[i]);
        size_t k = 0;

        while (k < n && (endings[k].length != ending.length ||
                         memcmp(endings[k].data, ending.data, ending.length) != 0))
            k++;
        if (k == n && n == KILN_COUNT(endings))
            return false;
        if (k == n)
            endings[n++] = ending;
        const int split = kiln_new_split_of(paths->list[i]);
        counts[split < 0 ? KILN_SPLIT_COUNT : split]++;
    }
    for (size_t split = 0; split < KILN_COUNT(counts); split++)
        if (counts[split] != 0 && counts[split] != 2)
            return false;
    return n == 2 && paths->n >= 2 && !kiln_new_is_side_ending(endings[0]) &&
           !kiln_new_is_side_ending(endings[1]);
}

/* Files directly in a folder. Beside tables, only files that are splits by their names may belong
 * to the data: CoNLL files have any ending. */
static KilnStatus look_at_files_of(KilnNewConfig *config, KilnNewFolder *folder, KilnError *err)
{
    KilnNewPaths *tables = &folder->tables, *texts = &folder->texts;

    if (tables->n > 1 && !has_train(tables))
        return several_tables(tables, err);
    for (size_t i = 0; i < texts->n && tables->n > 0; i++) {
        const bool is_conll = kiln_records_format_of_path(tables->list[0]) == KILN_RECORDS_CONLL;

        if (is_conll && kiln_new_split_of(texts->list[i]) >= 0)
            kiln_new_add_path(config, tables, texts->list[i]);
        else
            kiln_new_say_odd(config, "%s is not used: the table beside it is taken for the data",
                             texts->list[i]);
    }
    if (tables->n > 0)
        return look_at_list(config, tables->list, tables->n, err);
    if (are_parallel(texts))
        return look_at_parallel(config, folder, err);
    return look_at_list(config, texts->list, texts->n, err);
}

static KilnStatus nothing_known(const char *path, const KilnNewFolder *folder, KilnError *err)
{
    if (folder->n_entries == 0)
        return kiln_error_set(err, KILN_E_MISSING,
                              "%s: the folder is empty; expected images, tables or texts in it",
                              path);
    return kiln_error_set(
        err, KILN_E_FORMAT,
        "%s: neither images, nor tables, nor texts (but \"%s\"); `kiln new --help` "
        "lists what it reads",
        path, folder->first);
}

/* Tables in a folder for each split, as Hugging Face's image folders have them: train/metadata.csv.
 */
static KilnStatus look_at_split_tables(KilnNewConfig *config, const KilnNewFolder *folder,
                                       KilnError *err)
{
    KilnNewFiles *files = kiln_arena_alloc(&config->arena, sizeof(*files));

    if (files == NULL)
        return kiln_error_nomem(err, sizeof(*files));
    *files = (KilnNewFiles) { 0 };
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t i = 0; i < folder->split_tables[split].n; i++) {
            if (files->n[split] == KILN_NEW_FILES)
                return too_many_files(err);
            files->list[split][files->n[split]++] = folder->split_tables[split].list[i];
        }
    return kiln_new_files(config, files, err);
}

/* The text and the tags of sentences in files seq.in and seq.out (JointBERT's ATIS and Snips). */
static KilnStatus look_at_sequences(KilnNewConfig *config, const KilnNewFolder *folder,
                                    KilnError *err)
{
    static const char *const names[] = { "seq.in", "seq.out", "label" };
    KilnNewFiles *files = kiln_arena_alloc(&config->arena, sizeof(*files));

    if (files == NULL)
        return kiln_error_nomem(err, sizeof(*files));
    *files = (KilnNewFiles) { 0 };
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t i = 0; i < KILN_COUNT(names) && folder->splits[split] != NULL; i++) {
            const char *path = kiln_arena_printf(&config->arena, "%s/%s", folder->splits[split],
                                                 names[i]);

            if (path == NULL)
                return kiln_error_nomem(err, strlen(names[i]));
            if (kiln_is_file(path))
                files->list[split][files->n[split]++] = path;
        }
    return kiln_new_tagged(config, files, KILN_RECORDS_PARALLEL, err);
}

/* Folders of texts: of each class, or of the splits with the classes in them. */
static KilnStatus look_at_text_folders(KilnNewConfig *config, const char *path,
                                       const KilnNewFolder *folder, KilnError *err)
{
    KilnNewFiles *files = kiln_arena_alloc(&config->arena, sizeof(*files));

    if (files == NULL)
        return kiln_error_nomem(err, sizeof(*files));
    *files = (KilnNewFiles) { 0 };
    if (folder->splits[KILN_TRAIN] == NULL)
        files->list[KILN_TRAIN][files->n[KILN_TRAIN]++] = path;
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        if (folder->splits[split] != NULL)
            files->list[split][files->n[split]++] = folder->splits[split];
    return kiln_new_labeled(config, files, KILN_RECORDS_FOLDERS, err);
}

/* The texts in a folder that list images: gt.txt, labels.txt. */
static KilnStatus find_lists(KilnNewConfig *config, const char *path, KilnNewPaths *ret,
                             KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(path, &names, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        if (!kiln_ends_with(names[i], ".txt"))
            continue;
        const char *full = kiln_arena_printf(&config->arena, "%s%s%s", path,
                                             kiln_ends_with(path, "/") ? "" : "/", names[i]);

        if (full == NULL)
            status = kiln_error_nomem(err, strlen(path));
        else if (kiln_new_lists_images(full))
            kiln_new_add_path(config, ret, full);
    }
    kiln_names_free(names, n);
    return status;
}

/* Images without folders of classes: a text may list them. */
static KilnStatus look_at_bare_images(KilnNewConfig *config, const char *path,
                                      const KilnNewFolder *folder, KilnError *err)
{
    KilnNewPaths lists = { 0 };
    KilnStatus status = find_lists(config, path, &lists, err);

    if (status < 0)
        return status;
    if (lists.n > 0)
        return look_at_list(config, lists.list, lists.n, err);
    if (folder->kind == KILN_FOLDER_ONE_CLASS)
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "%s: only one folder of images (\"%s\"), and nothing that says what "
            "is in them; expected a folder for each class, a CSV with the columns "
            "image and label (or image and text), or boxes: `kiln new --help`",
            path, folder->first);
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: images without classes; expected a folder for each class, or beside "
                          "the images a CSV with the columns image and label (or image and text), "
                          "or boxes: `kiln new --help`",
                          path);
}

static KilnStatus look_at_folder(KilnNewConfig *config, const char *path, KilnError *err)
{
    KilnNewFolder folder;
    KilnNewBoxes boxes;
    KilnStatus status = kiln_new_boxes_find(config, path, &boxes, err);

    if (status >= 0 && boxes.yolo != NULL)
        return kiln_new_yolo(config, boxes.yolo, err);
    if (status >= 0 && boxes.coco.annotations != NULL)
        return kiln_new_coco(config, &boxes.coco, err);
    if (status >= 0)
        status = kiln_new_folder_read(config, path, &folder, err);
    if (status < 0)
        return status;
    switch (folder.kind) {
    case KILN_FOLDER_IMAGE_CLASSES:
        return kiln_new_image_folder(config, path, folder.splits[KILN_TRAIN] != NULL, err);
    case KILN_FOLDER_MASKS:
        return kiln_new_masks(config, path, folder.images, folder.masks, err);
    case KILN_FOLDER_SEQUENCES:
        return look_at_sequences(config, &folder, err);
    case KILN_FOLDER_TEXT_CLASSES:
        return look_at_text_folders(config, path, &folder, err);
    case KILN_FOLDER_IDX:
        config->task = "vision";
        config->datamodule = "mnist";
        config->model = "cnn";
        config->optimizer = "adamw";
        kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.003");
        kiln_new_set_length(config, 60000, 128, 3000, 6);
        kiln_new_set_text(config, KILN_NEW_DATA, "root", path);
        kiln_new_say(config, "data", "idx files, as MNIST has them");
        kiln_new_say(config, "task", "vision: a class of each image");
        kiln_new_say(config, "model", "cnn: a small convolutional network");
        kiln_new_say(config, "split",
                     "train: the train-* files; val: a part of them; test: t10k-*");
        return KILN_OK;
    case KILN_FOLDER_FILES:
        return look_at_files_of(config, &folder, err);
    case KILN_FOLDER_SPLIT_TABLES:
        return look_at_split_tables(config, &folder, err);
    case KILN_FOLDER_ONE_CLASS:
    case KILN_FOLDER_BARE_IMAGES:
        return look_at_bare_images(config, path, &folder, err);
    case KILN_FOLDER_MIXED:
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: has folders of images and of texts; give one of them", path);
    case KILN_FOLDER_UNKNOWN:
        break;
    }
    return nothing_known(path, &folder, err);
}

static KilnStatus look_at_archive(KilnNewConfig *config, const char *path, KilnError *err)
{
    KilnTar *tar = NULL;
    KilnStatus status = kiln_tar_open(path, NULL, config->poll, &tar, err);
    KilnTarChild child = { 0 };
    bool classes = false;

    if (status < 0)
        return status;
    while (!classes && kiln_tar_child(tar, "train", &child))
        classes = child.is_folder;
    kiln_tar_close(tar);
    return classes ? kiln_new_image_folder(config, path, true, err)
                   : kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: expected train/<class>/* with images in the archive; "
                                    "webdataset's archives are read by datamodule=image_shards; "
                                    "unpack any other and give the folder",
                                    path);
}

static KilnStatus look_at_coco(KilnNewConfig *config, const char *path, KilnError *err)
{
    KilnNewCoco coco;
    const KilnStatus status = kiln_new_coco_of(config, path, &coco, err);

    return status >= 0 ? kiln_new_coco(config, &coco, err) : status;
}

KilnStatus kiln_new_look(KilnNewConfig *config, const char *const *paths, size_t n, KilnError *err)
{
    struct stat st = { 0 };

    for (size_t i = 0; i < n; i++) {
        if (stat(paths[i], &st) != 0)
            return kiln_error_errno(err, paths[i]);
        if (n > 1 && S_ISDIR(st.st_mode))
            return kiln_error_set(err, KILN_E_USAGE,
                                  "%s: is a folder; give one folder alone, or files", paths[i]);
        if (S_ISREG(st.st_mode) && st.st_size == 0)
            return kiln_error_set(err, KILN_E_FORMAT, "%s: the file is empty", paths[i]);
    }
    if (S_ISDIR(st.st_mode))
        return look_at_folder(config, paths[0], err);
    if (n == 1 && kiln_is_tar(paths[0]))
        return look_at_archive(config, paths[0], err);
    if (n == 1 && kiln_new_is_yolo(paths[0]))
        return kiln_new_yolo(config, paths[0], err);
    if (n == 1 && kiln_ends_with(paths[0], ".json") && kiln_new_is_coco(paths[0]))
        return look_at_coco(config, paths[0], err);
    const KilnNewPaths all = { .list = (const char **)paths, .n = n };
    if (n > 1 && are_parallel(&all))
        return look_at_parallel(config, &(KilnNewFolder) { .texts = all }, err);
    return look_at_list(config, paths, n, err);
}
