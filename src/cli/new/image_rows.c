/* Lists of images: with a class of each, or with the text that is written in it. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/new/rows.h"
#include "data/records/records_internal.h"

/* ---- Lists of images ------------------------------------------------------------------------- */

/* Images that the first rows name. */
typedef struct ImageRows {
    KilnNewRows *rows;
    KilnRecords *records;
    size_t column;
    KilnRecord record;
    const char *root;
    KilnText path;
} ImageRows;

static const char *image_path(void *ctx, int64_t i)
{
    ImageRows *images = ctx;

    kiln_text_clear(&images->path);
    if (kiln_records_read(images->records, i, &images->column, 1, &images->record, NULL) >= 0)
        kiln_record_append_path(&images->record, 1, 0, images->root, &images->path);
    return images->path.data != NULL ? images->path.data : "";
}

/* The length of a path's folder. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? (size_t)(slash - path) : 0;
}

/* Whether all lists are in the folder of the first one. */
static bool are_together(const KilnNewFiles *files)
{
    const char *first = files->list[KILN_TRAIN][0];
    const size_t n = folder_length(first);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t i = 0; i < files->n[split]; i++)
            if (folder_length(files->list[split][i]) != n ||
                memcmp(files->list[split][i], first, n) != 0)
                return false;
    return true;
}

/* The folder that paths are relative to: NULL for that of each list, or one in it that has the
 * first image. */
static KilnStatus find_root(KilnNewConfig *config, const KilnNewFiles *files, const char *example,
                            const char **ret, KilnError *err)
{
    const char *list = files->list[KILN_TRAIN][0];
    const char *dir = folder_length(list) > 0
                          ? kiln_arena_strndup(&config->arena, list, folder_length(list))
                      : list[0] == '/' ? "/"
                                       : ".";
    char **names = NULL;
    size_t n = 0;

    *ret = NULL;
    if (dir == NULL)
        return kiln_error_nomem(err, strlen(list));
    const char *path = kiln_arena_printf(&config->arena, "%s/%s", dir, example);
    if (example[0] == '/' || (path != NULL && kiln_is_file(path)))
        return KILN_OK;
    KilnStatus status = are_together(files) ? kiln_dir_list(dir, &names, &n, err) : KILN_OK;
    for (size_t i = 0; i < n && *ret == NULL; i++) {
        path = kiln_arena_printf(&config->arena, "%s/%s/%s", dir, names[i], example);
        if (path != NULL && kiln_is_file(path))
            *ret = kiln_arena_printf(&config->arena, "%s/%s", dir, names[i]);
    }
    kiln_names_free(names, n);
    if (status >= 0 && *ret == NULL)
        status = kiln_error_set(err, KILN_E_IO,
                                "%s: names images such as \"%s\", which is neither in %s nor in a "
                                "folder there; put the list beside the images",
                                list, example, dir);
    return status;
}

static KilnStatus set_image_list(KilnNewRows *rows, size_t image, size_t label, const char *root,
                                 KilnError *err)
{
    KilnNewConfig *config = rows->config;
    const KilnRecordsSpec spec = kiln_new_rows_spec(rows, KILN_TRAIN);
    ImageRows images = { .rows = rows, .column = image, .root = root };
    KilnStatus status = kiln_records_open(&spec, &images.records, err);

    if (status >= 0) {
        const bool several = rows->columns[label].lists > 0.0;

        config->task = several ? "multilabel_classification" : "vision";
        config->datamodule = "image_list";
        kiln_new_say(config, "data", "a list of %lld images (column %s) with a label (column %s)",
                     (long long)rows->n, rows->names[image], rows->names[label]);
        kiln_new_say(config, "task",
                     several ? "multilabel_classification: any number of labels"
                             : "vision: a class of each image");
        kiln_new_set_files(config, rows->files);
        if (root != NULL)
            kiln_new_set_text(config, KILN_NEW_DATA, "root", root);
        kiln_new_rows_set(rows, "columns");
        kiln_new_set_text(config, KILN_NEW_DATA, "image", rows->names[image]);
        kiln_new_set_text(config, KILN_NEW_DATA, "label", rows->names[label]);
        if (several)
            kiln_new_set(config, KILN_NEW_DATA, "multilabel", "true");
        status = kiln_new_image_form(config, image_path, &images, rows->n, err);
    }
    if (status >= 0 && rows->files->n[KILN_VAL] == 0)
        kiln_new_set(config, KILN_NEW_DATA, "val_fraction", "%g", rows->n < 1000 ? 0.2 : 0.1);
    if (status >= 0)
        kiln_new_say_splits(config, rows->files, rows->n < 1000 ? 0.2 : 0.1, 0.0);
    kiln_record_release(&images.record);
    kiln_text_release(&images.path);
    kiln_records_close(images.records);
    return status;
}

/* ---- Classes or texts ------------------------------------------------------------------------ */

static bool is_text_name(const char *name)
{
    static const char *const names[] = { "text",       "texts",        "transcription",
                                         "transcript", "ground_truth", "groundtruth",
                                         "sentence",   "line",         "words",
                                         "word",       "ocr",          NULL };

    return kiln_new_is_named(name, names);
}

/* Texts that are written in the images: most differ from each other. */
static bool has_many_texts(const KilnNewRows *rows, size_t c)
{
    const KilnColumnFacts *facts = &rows->table->plan.columns[c].facts;

    return facts->texts > facts->numbers && facts->distinct * 2 > facts->texts;
}

/* The column of such texts: --target, one that is called so, or the only one whose texts differ. */
static bool find_text(const KilnNewRows *rows, size_t image, size_t *ret, const char **ret_why)
{
    const char *target = rows->config->target;
    size_t n = 0;

    for (size_t c = 0; c < rows->n_columns; c++) {
        if (c == image || (target != NULL && strcmp(target, rows->names[c]) != 0))
            continue;
        if (is_text_name(rows->names[c])) {
            *ret = c;
            *ret_why = target != NULL ? "as --target says" : "by its name";
            return true;
        }
        if (has_many_texts(rows, c)) {
            *ret = c;
            *ret_why = target != NULL ? "as --target says" : "most of its texts differ";
            n++;
        }
    }
    return n == 1;
}

static KilnStatus choose_class(KilnNewRows *rows, size_t image, size_t *ret, KilnError *err)
{
    bool *out = calloc(rows->n_columns, sizeof(*out));
    KilnStatus status = KILN_OK;

    if (out == NULL)
        return kiln_error_nomem(err, rows->n_columns);
    out[image] = true;
    if (rows->n_columns == 2 && rows->config->target == NULL)
        *ret = 1 - image;
    else
        status = kiln_new_choose_target(rows, out, ret, err);
    free(out);
    if (status < 0 || kiln_new_is_class(rows, *ret))
        return status;
    return kiln_error_set(
        err, KILN_E_FORMAT,
        "%s: column %s has no classes, and a number can't be predicted from images "
        "of a list; choose another one: --target=COLUMN. If it is what is written "
        "in the images, call it text",
        rows->files->list[KILN_TRAIN][0], rows->names[*ret]);
}

KilnStatus kiln_new_image_rows(KilnNewRows *rows, size_t image, KilnError *err)
{
    const char *root = NULL, *why = NULL;
    size_t column = 0;
    KilnStatus status = kiln_new_rows_read(rows, NULL, err);
    const bool texts = status >= 0 && find_text(rows, image, &column, &why);

    if (status >= 0 && !texts)
        status = choose_class(rows, image, &column, err);
    if (status >= 0)
        status = find_root(rows->config, rows->files, rows->columns[image].example, &root, err);
    if (status < 0 || !texts)
        return status >= 0 ? set_image_list(rows, image, column, root, err) : status;
    kiln_new_say(rows->config, "target",
                 "what is written in the image, column %s: %s; classes would be few and repeated",
                 rows->names[column], why);
    return kiln_new_lines(rows, image, column, root, err);
}
