/* Configs for images with boxes of objects: COCO's JSON, YOLO's texts. */
#include "cli/new/boxes.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "image/read.h"
#include "kiln/array.h"
#include "kiln/images/box_sets.h"
#include "kiln/metric.h"

enum { MULTIPLE = 32, LARGEST = 320, SMALL = 160 /* sides of images, pixels */ };

/* The sets of the splits, and what is said of them. */
typedef struct Boxes {
    KilnNewConfig *config;
    KilnBoxSet sets[KILN_SPLIT_COUNT];
    const char *places[KILN_SPLIT_COUNT]; /* NULL: there is none */
    bool damaged;
} Boxes;

static void release(Boxes *boxes)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        kiln_box_set_release(&boxes->sets[split]);
}

/* ---- What is said ---------------------------------------------------------------------------- */

/* Append a name, if there are not many yet. */
static void put_name(KilnText *text, const char *name, int64_t count, int64_t n)
{
    enum { LISTED = 8 };

    if (n < LISTED)
        kiln_text_printf(text, "%s%s (%lld)", n > 0 ? ", " : "", name, (long long)count);
    else if (n == LISTED)
        kiln_text_append(text, ", ...");
}

static void say_classes(KilnNewConfig *config, const KilnBoxSet *train, const int64_t *counts)
{
    enum { FEW = 10 };
    KilnText all = { 0 }, few = { 0 };
    int64_t n_few = 0, n_none = 0, none = 0;

    for (int64_t i = 0; i < train->n_classes; i++) {
        put_name(&all, train->classes[i], counts[i], i);
        if (counts[i] == 0 && n_none++ == 0)
            none = i;
        if (counts[i] > 0 && counts[i] < FEW)
            put_name(&few, train->classes[i], counts[i], n_few++);
    }
    kiln_new_say(config, "classes", "%lld, with so many boxes: %s", (long long)train->n_classes,
                 all.data != NULL ? all.data : "");
    if (n_none > 0)
        kiln_new_say_odd(
            config,
            "classes without a box to train on: %lld of %lld, such as \"%s\"; they will "
            "never be found",
            (long long)n_none, (long long)train->n_classes, train->classes[none]);
    if (n_few > 0)
        kiln_new_say_odd(config, "classes with fewer than %d boxes: %lld of %lld: %s", FEW,
                         (long long)n_few, (long long)train->n_classes,
                         few.data != NULL ? few.data : "");
    kiln_text_release(&all);
    kiln_text_release(&few);
}

static KilnStatus count_classes(KilnNewConfig *config, const KilnBoxSet *train, KilnError *err)
{
    int64_t *counts = calloc((size_t)train->n_classes + 1, sizeof(*counts));

    if (counts == NULL)
        return kiln_error_nomem(err, (size_t)train->n_classes * sizeof(*counts));
    for (int64_t i = 0; i < train->starts[train->count]; i++)
        counts[(int64_t)train->boxes[i * KILN_TRUTH_COLUMNS + 4]]++;
    say_classes(config, train, counts);
    free(counts);
    return KILN_OK;
}

/* What is odd in a split. */
static void say_odd(KilnNewConfig *config, const KilnBoxSet *set, const char *split)
{
    int64_t empty = 0;
    const int64_t wrong = set->skipped_images + set->skipped_boxes;

    for (int64_t i = 0; i < set->count; i++)
        empty += set->starts[i + 1] == set->starts[i];
    if (empty > 0)
        kiln_new_say_odd(config,
                         "images of %s without a box: %lld of %lld; they count as background",
                         split, (long long)empty, (long long)set->count);
    if (wrong > 0)
        kiln_new_say_odd(config, "what is wrong in %s: images: %lld, boxes: %lld; the first: %s",
                         split, (long long)set->skipped_images, (long long)set->skipped_boxes,
                         set->example);
    if (set->cut_boxes > 0)
        kiln_new_say_odd(
            config,
            "boxes of %s that reach out of their images, and are cut there: %lld, such as "
            "%s",
            split, (long long)set->cut_boxes, set->cut_example);
    if (set->copies > 0)
        kiln_new_say_odd(config, "boxes of %s that are there twice: %lld, such as in %s", split,
                         (long long)set->copies, set->copy_example);
}

static void say_splits(const Boxes *boxes)
{
    KilnText text = { 0 };

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        const char *name = kiln_split_name((KilnSplit)split);
        const char *other = split == KILN_VAL ? "10 % of them, drawn by the seed" : "none";

        kiln_text_printf(&text, "%s%s: %s", split > 0 ? "; " : "", name,
                         boxes->places[split] != NULL ? boxes->places[split] : other);
        if (boxes->places[split] != NULL)
            kiln_text_printf(&text, " (%lld images)", (long long)boxes->sets[split].count);
    }
    kiln_new_say(boxes->config, "split", "%s", text.data != NULL ? text.data : "");
    kiln_text_release(&text);
}

/* ---- The config ------------------------------------------------------------------------------ */

/* Small images need fewer levels of the pyramid. */
static void set_model(KilnNewConfig *config, bool small, int64_t n)
{
    config->task = "detection";
    config->model = "fcos";
    config->optimizer = "adamw";
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.001");
    kiln_new_set_length(config, n, n < 200 ? 4 : n < 2000 ? 8 : 16, 2000, 100);
    kiln_new_set(config, KILN_NEW_MODEL, "depth", "18");
    kiln_new_set(config, KILN_NEW_MODEL, "backbone_width", "%d", small ? 16 : 32);
    kiln_new_set(config, KILN_NEW_MODEL, "width", "64");
    kiln_new_set(config, KILN_NEW_MODEL, "levels", "%d", small ? 3 : 4);
    kiln_new_set(config, KILN_NEW_MODEL, "convs", "2");
    kiln_new_set(config, KILN_NEW_DATA, "transforms", "[{_target_: transform/flip}]");
    kiln_new_say(config, "task", "detection: boxes of objects, and the class of each");
    kiln_new_say(config, "model",
                 "fcos: a small FCOS from scratch; torchvision's weights need its "
                 "size: docs/vision.md");
}

static bool is_small(const KilnBoxSet *train)
{
    int64_t size[3];

    return kiln_image_size(train->paths[0], 0, size, NULL) >= 0 && size[0] <= SMALL &&
           size[1] <= SMALL;
}

/* All that the sets say; `format` is what the boxes are in. */
static KilnStatus fill(Boxes *boxes, const char *format, KilnError *err)
{
    KilnNewConfig *config = boxes->config;
    const KilnBoxSet *train = &boxes->sets[KILN_TRAIN];
    const int64_t n_boxes = train->starts[train->count];
    bool wrong = false;

    if (n_boxes == 0)
        return kiln_error_set(
            err, KILN_E_FORMAT, "%s: no image has a box%s%s", boxes->places[KILN_TRAIN],
            train->example[0] != '\0' ? "; what is wrong first: " : "", train->example);
    if (train->count < 4)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: %lld images are too few to train and validate on",
                              boxes->places[KILN_TRAIN], (long long)train->count);
    kiln_new_say(config, "data", "boxes in %s: %lld on %lld images", format, (long long)n_boxes,
                 (long long)train->count);
    set_model(config, is_small(train), train->count);
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        const KilnBoxSet *set = &boxes->sets[split];

        say_odd(config, set, kiln_split_name((KilnSplit)split));
        wrong = wrong || set->skipped_images + set->skipped_boxes > 0;
    }
    KilnStatus status = count_classes(config, train, err);
    if (status >= 0)
        status = kiln_new_scale_images(config, (const char *const *)train->paths, train->count,
                                       MULTIPLE, LARGEST, &boxes->damaged, err);
    if (status >= 0 && (wrong || boxes->damaged))
        kiln_new_set(config, KILN_NEW_DATA, "on_error", "skip  # leave what is wrong out");
    say_splits(boxes);
    return status;
}

/* ---- COCO ------------------------------------------------------------------------------------ */

static const char split_word[] = "SPLIT";

/* root/PATTERN with `word` for each SPLIT, in the arena. */
static const char *in_split(KilnNewConfig *config, const char *root, const char *pattern,
                            const char *word)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s/", root);
    for (const char *at; (at = strstr(pattern, split_word)) != NULL;
         pattern = at + strlen(split_word)) {
        kiln_text_append_n(&text, pattern, (size_t)(at - pattern));
        kiln_text_append(&text, word);
    }
    kiln_text_append(&text, pattern);
    return kiln_text_to_arena(&text, &config->arena);
}

/* Read the annotations of a split, if there are any. */
static KilnStatus read_coco(Boxes *boxes, const KilnNewCoco *coco, KilnSplit split,
                            const char *word, KilnError *err)
{
    KilnNewConfig *config = boxes->config;
    const char *file = in_split(config, coco->root, coco->annotations, word);
    const char *folder = in_split(config, coco->root, coco->images, word);

    if (file == NULL || folder == NULL)
        return kiln_error_nomem(err, strlen(coco->root));
    if (boxes->places[split] != NULL || (split != KILN_TRAIN && !kiln_is_file(file)))
        return KILN_OK;
    boxes->places[split] = file;
    return kiln_coco_read(file, folder, split != KILN_TRAIN ? &boxes->sets[KILN_TRAIN] : NULL, true,
                          config->poll, &boxes->sets[split], err);
}

/* Images in the folder that the annotations don't name. */
static KilnStatus count_unnamed(Boxes *boxes, const KilnNewCoco *coco, KilnError *err)
{
    KilnNewConfig *config = boxes->config;
    const char *folder = in_split(config, coco->root, coco->images, "train");
    const KilnBoxSet *train = &boxes->sets[KILN_TRAIN];
    char **names = NULL;
    size_t n = 0;
    int64_t images = 0, inside = 0;
    KilnStatus status = folder != NULL ? kiln_dir_list(folder, &names, &n, err)
                                       : kiln_error_nomem(err, strlen(coco->root));

    for (size_t i = 0; i < n; i++)
        images += kiln_is_image_name(names[i]);
    kiln_names_free(names, n);
    if (status < 0)
        return status;
    for (int64_t i = 0; i < train->count; i++)
        inside += strrchr(train->paths[i], '/') == train->paths[i] + strlen(folder);
    if (images > inside && inside == train->count)
        kiln_new_say_odd(
            config, "images in %s that %s does not name: %lld of %lld; they are not used", folder,
            boxes->places[KILN_TRAIN], (long long)(images - inside), (long long)images);
    return KILN_OK;
}

static KilnStatus fill_coco(Boxes *boxes, const KilnNewCoco *coco, KilnError *err)
{
    KilnNewConfig *config = boxes->config;
    const bool splits = strstr(coco->annotations, split_word) != NULL;
    KilnStatus status = read_coco(boxes, coco, KILN_TRAIN, "train", err);

    if (status >= 0 && splits)
        status = read_coco(boxes, coco, KILN_VAL, "val", err);
    if (status >= 0 && splits)
        status = read_coco(boxes, coco, KILN_VAL, "valid", err);
    if (status >= 0 && splits)
        status = read_coco(boxes, coco, KILN_TEST, "test", err);
    if (status < 0)
        return status;
    config->datamodule = "coco";
    kiln_new_set_text(config, KILN_NEW_DATA, "root", coco->root);
    kiln_new_set_text(config, KILN_NEW_DATA, "annotations", coco->annotations);
    kiln_new_set_text(config, KILN_NEW_DATA, "images", coco->images);
    status = fill(boxes, "COCO's JSON", err);
    return status >= 0 && splits == (strstr(coco->images, split_word) != NULL)
               ? count_unnamed(boxes, coco, err)
               : status;
}

KilnStatus kiln_new_coco(KilnNewConfig *config, const KilnNewCoco *coco, KilnError *err)
{
    Boxes boxes = { .config = config };
    const KilnStatus status = fill_coco(&boxes, coco, err);

    release(&boxes);
    return status;
}

/* ---- YOLO ------------------------------------------------------------------------------------ */

/* Where the images of a set are, for messages. */
static const char *folder_of(KilnNewConfig *config, const KilnBoxSet *set)
{
    const char *path = set->paths[0], *slash = strrchr(path, '/');

    return kiln_arena_strndup(&config->arena, path, slash != NULL ? (size_t)(slash - path) : 0);
}

static KilnStatus read_yolo(Boxes *boxes, const char *yaml, const char *root, KilnSplit split,
                            KilnError *err)
{
    KilnBoxSet *set = &boxes->sets[split];
    const KilnStatus status = kiln_yolo_read(yaml, root, split, true, boxes->config->poll, set,
                                             err);

    if (status < 0 || set->count == 0)
        return status;
    boxes->places[split] = folder_of(boxes->config, set);
    return boxes->places[split] != NULL ? KILN_OK : kiln_error_nomem(err, strlen(yaml));
}

/* Validation on what was trained on, as Ultralytics' smallest sets have it. */
static void say_same_images(const Boxes *boxes, const char *yaml)
{
    const KilnBoxSet *train = &boxes->sets[KILN_TRAIN], *val = &boxes->sets[KILN_VAL];

    if (val->count > 0 && strcmp(train->paths[0], val->paths[0]) == 0)
        kiln_new_say_odd(boxes->config,
                         "val of %s names images that train, so it does not measure how well new "
                         "images are read; without val a part of them is held out",
                         yaml);
}

static KilnStatus fill_yolo(Boxes *boxes, const char *yaml, KilnError *err)
{
    KilnNewConfig *config = boxes->config;
    const char *slash = strrchr(yaml, '/'), *root = NULL;
    const char *beside = slash != NULL
                             ? kiln_arena_strndup(&config->arena, yaml, (size_t)(slash - yaml))
                             : ".";
    KilnStatus status = read_yolo(boxes, yaml, NULL, KILN_TRAIN, err);

    /* The file's path may be that of another machine. */
    if (status == KILN_E_IO && beside != NULL &&
        read_yolo(boxes, yaml, beside[0] != '\0' ? beside : "/", KILN_TRAIN, NULL) >= 0) {
        root = beside[0] != '\0' ? beside : "/";
        status = KILN_OK;
        kiln_new_say_odd(config,
                         "path of %s is no folder here; the images beside the file are used", yaml);
    }
    for (int split = KILN_VAL; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = read_yolo(boxes, yaml, root, (KilnSplit)split, err);
    if (status < 0)
        return status;
    config->datamodule = "yolo";
    kiln_new_set_text(config, KILN_NEW_DATA, "data", yaml);
    if (root != NULL)
        kiln_new_set_text(config, KILN_NEW_DATA, "root", root);
    say_same_images(boxes, yaml);
    return fill(boxes, "YOLO's texts", err);
}

KilnStatus kiln_new_yolo(KilnNewConfig *config, const char *yaml, KilnError *err)
{
    Boxes boxes = { .config = config };
    const KilnStatus status = fill_yolo(&boxes, yaml, err);

    release(&boxes);
    return status;
}
