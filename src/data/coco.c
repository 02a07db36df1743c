/* Reads annotations of boxes in COCO's format. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/text.h"
#include "kiln/metric.h"
#include "kiln/images/box_sets.h"

enum { ROUNDING = 1 /* pixels that programs let a box reach out of its image */ };

/* An object of the file by its id. */
typedef struct Entry {
    int64_t id, number; /* its place in the file */
} Entry;

typedef struct Image {
    double width, height; /* 0: unknown */
    int64_t n_boxes;
} Image;

/* A box that is right, with the number of its image. */
typedef struct Box {
    int64_t image;
    float row[KILN_TRUTH_COLUMNS];
} Box;

typedef struct Reading {
    const char *path, *folder;
    const KilnPoll *poll;
    bool skips;
    Image *images; /* of set->paths */
    int64_t *ids;
    Box *boxes;
    int64_t n_boxes;
    KilnBoxSet *set;
} Reading;

static int compare_entries(const void *a, const void *b)
{
    const Entry *left = a, *right = b;

    if (left->id != right->id)
        return left->id < right->id ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* The number of `id` among n ascending ones; -1: it is not there. */
static int64_t find(const int64_t *ids, int64_t n, int64_t id)
{
    int64_t low = 0, high = n;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && ids[low] == id ? low : -1;
}

/* Something is wrong with `what` number `id`: skip it, or stop. */
static KilnStatus wrong(Reading *reading, int64_t *skipped, const char *what, int64_t id,
                        const char *why, KilnError *err)
{
    if (!reading->skips)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: %s %" PRId64 ": %s", reading->path, what, id,
                              why);
    if (reading->set->example[0] == '\0')
        snprintf(reading->set->example, sizeof(reading->set->example), "%s %" PRId64 ": %s", what,
                 id, why);
    (*skipped)++;
    return KILN_OK;
}

/* The objects of the list `name`, by id; owned by the caller. */
static KilnStatus sort_list(const Reading *reading, const json_t *root, const char *name,
                            Entry **ret, int64_t *ret_n, KilnError *err)
{
    const json_t *list = json_object_get(root, name);
    const size_t n = json_array_size(list);

    if (!json_is_array(list))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: expected COCO's format, but there is no list \"%s\"",
                              reading->path, name);
    *ret = calloc(n + 1, sizeof(**ret));
    if (*ret == NULL)
        return kiln_error_nomem(err, n * sizeof(**ret));
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_object_get(json_array_get(list, i), "id");

        if (!json_is_integer(id))
            return kiln_error_set(err, KILN_E_FORMAT, "%s: %s[%zu] has no \"id\", a whole number",
                                  reading->path, name, i);
        (*ret)[i] = (Entry) { .id = json_integer_value(id), .number = (int64_t)i };
    }
    qsort(*ret, n, sizeof(**ret), compare_entries);
    *ret_n = (int64_t)n;
    return KILN_OK;
}

/* ---- Categories ------------------------------------------------------------------------------ */

static KilnStatus add_class(Reading *reading, const char *name, int64_t id, KilnError *err)
{
    KilnBoxSet *set = reading->set;

    if (name == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: category %" PRId64 " has no \"name\"",
                              reading->path, id);
    if (set->n_classes > 0 && set->ids[set->n_classes - 1] == id)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: category %" PRId64 " is there twice",
                              reading->path, id);
    set->classes[set->n_classes] = kiln_strdup(name);
    set->ids[set->n_classes] = id;
    return set->classes[set->n_classes++] != NULL ? KILN_OK : kiln_error_nomem(err, strlen(name));
}

static KilnStatus read_classes(Reading *reading, const json_t *root, const KilnBoxSet *known,
                               KilnError *err)
{
    const json_t *list = json_object_get(root, "categories");
    KilnBoxSet *set = reading->set;
    Entry *entries = NULL;
    int64_t n = known != NULL ? known->n_classes : 0;
    KilnStatus status = KILN_OK;

    if (known == NULL)
        status = sort_list(reading, root, "categories", &entries, &n, err);
    if (status >= 0 && n == 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: there are no categories", reading->path);
    set->classes = calloc((size_t)n + 1, sizeof(*set->classes));
    set->ids = calloc((size_t)n + 1, sizeof(*set->ids));
    if (status >= 0 && (set->classes == NULL || set->ids == NULL))
        status = kiln_error_nomem(err, (size_t)n * sizeof(*set->ids));
    for (int64_t i = 0; i < n && status >= 0; i++) {
        const json_t *one = entries != NULL ? json_array_get(list, (size_t)entries[i].number)
                                            : NULL;

        status = known != NULL ? add_class(reading, known->classes[i], known->ids[i], err)
                               : add_class(reading, json_string_value(json_object_get(one, "name")),
                                           entries[i].id, err);
    }
    free(entries);
    return status;
}

/* ---- Images ---------------------------------------------------------------------------------- */

static KilnStatus add_image(Reading *reading, const json_t *one, int64_t id, bool twice,
                            KilnError *err)
{
    KilnBoxSet *set = reading->set;
    const char *name = json_string_value(json_object_get(one, "file_name"));
    const char *why = NULL;
    char *path = NULL, text[480];
    struct stat info;

    if (twice)
        why = "this id is there twice";
    else if (name == NULL || name[0] == '\0')
        why = "it has no \"file_name\"";
    else {
        const size_t room = strlen(reading->folder) + strlen(name) + 2;

        path = malloc(room);
        if (path == NULL)
            return kiln_error_nomem(err, room);
        snprintf(path, room, "%s/%s", reading->folder, name);
        if (stat(path, &info) < 0) {
            snprintf(text, sizeof(text), "%s: %s", path, strerror(errno));
            why = text;
        }
    }
    if (why != NULL) {
        free(path);
        return wrong(reading, &set->skipped_images, "image", id, why, err);
    }
    reading->ids[set->count] = id;
    reading->images[set->count] =
        (Image) { .width = json_number_value(json_object_get(one, "width")),
                  .height = json_number_value(json_object_get(one, "height")) };
    set->paths[set->count++] = path;
    return KILN_OK;
}

static KilnStatus read_images(Reading *reading, const json_t *root, KilnError *err)
{
    KilnBoxSet *set = reading->set;
    Entry *entries = NULL;
    int64_t n = 0;
    KilnStatus status = sort_list(reading, root, "images", &entries, &n, err);

    if (status >= 0) {
        reading->images = calloc((size_t)n + 1, sizeof(*reading->images));
        reading->ids = calloc((size_t)n + 1, sizeof(*reading->ids));
        set->paths = calloc((size_t)n + 1, sizeof(*set->paths));
        if (reading->images == NULL || reading->ids == NULL || set->paths == NULL)
            status = kiln_error_nomem(err, (size_t)n * sizeof(*reading->images));
    }
    for (int64_t i = 0; i < n && status >= 0; i++) {
        status = kiln_poll_check(reading->poll, "finding images", i, n, err);
        if (status >= 0)
            status = add_image(
                reading, json_array_get(json_object_get(root, "images"), (size_t)entries[i].number),
                entries[i].id, i > 0 && entries[i].id == entries[i - 1].id, err);
    }
    free(entries);
    if (status >= 0 && set->count == 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: there are no images", reading->path);
    return status;
}

/* ---- Annotations ----------------------------------------------------------------------------- */

/* Cut the box at the image; returns what is wrong with it, NULL: nothing. */
static const char *read_box(const json_t *list, const Image *image, float ret[4], bool *ret_cut)
{
    const double size[2] = { image->width, image->height };
    double box[4];

    if (json_array_size(list) != 4)
        return "\"bbox\" must be 4 numbers: left, top, width, height";
    for (size_t i = 0; i < 4; i++) {
        const json_t *value = json_array_get(list, i);

        if (!json_is_number(value) || !isfinite(json_number_value(value)))
            return "\"bbox\" must be 4 numbers: left, top, width, height";
        box[i] = json_number_value(value);
    }
    if (!(box[2] > 0.0 && box[3] > 0.0))
        return "the width and height of \"bbox\" must be above 0";
    for (int i = 0; i < 2; i++) {
        const bool known = size[i] > 0.0;
        const double low = known ? fmin(fmax(box[i], 0.0), size[i]) : box[i];
        const double high = known ? fmin(box[i] + box[i + 2], size[i]) : box[i] + box[i + 2];

        if (!(high > low))
            return "\"bbox\" is outside of the image";
        ret[i] = (float)low;
        ret[i + 2] = (float)high;
        *ret_cut = *ret_cut || low - box[i] > ROUNDING || box[i] + box[i + 2] - high > ROUNDING;
    }
    return NULL;
}

static KilnStatus add_box(Reading *reading, const json_t *one, const Entry *entry, bool twice,
                          KilnError *err)
{
    KilnBoxSet *set = reading->set;
    const json_t *image_id = json_object_get(one, "image_id");
    const json_t *category = json_object_get(one, "category_id");
    const json_t *area = json_object_get(one, "area"), *crowd = json_object_get(one, "iscrowd");
    const int64_t image = json_is_integer(image_id)
                              ? find(reading->ids, set->count, json_integer_value(image_id))
                              : -1;
    const int64_t class = json_is_integer(category)
                              ? find(set->ids, set->n_classes, json_integer_value(category))
                              : -1;
    Box *box = &reading->boxes[reading->n_boxes];
    char text[128];
    const char *why = NULL;
    bool cut = false;

    if (twice)
        why = "this id is there twice";
    else if (image < 0) {
        snprintf(text, sizeof(text), "there is no image %" JSON_INTEGER_FORMAT,
                 json_integer_value(image_id));
        why = text;
    } else if (class < 0) {
        snprintf(text, sizeof(text), "there is no category %" JSON_INTEGER_FORMAT,
                 json_integer_value(category));
        why = text;
    } else
        why = read_box(json_object_get(one, "bbox"), &reading->images[image], box->row, &cut);
    if (why != NULL)
        return wrong(reading, &set->skipped_boxes, "annotation", entry->id, why, err);
    if (cut && set->cut_boxes++ == 0)
        snprintf(set->cut_example, sizeof(set->cut_example), "annotation %" PRId64 " of %.280s",
                 entry->id, reading->path);
    box->image = image;
    box->row[4] = (float)class;
    box->row[5] = json_is_true(crowd) || json_integer_value(crowd) != 0 ? 1.0f : 0.0f;
    box->row[6] = json_is_number(area) ? (float)json_number_value(area)
                                       : (box->row[2] - box->row[0]) * (box->row[3] - box->row[1]);
    reading->images[image].n_boxes++;
    reading->n_boxes++;
    return KILN_OK;
}

/* Bring the boxes into the order of their images. */
static KilnStatus group_boxes(Reading *reading, KilnError *err)
{
    KilnBoxSet *set = reading->set;
    const size_t room = (size_t)(reading->n_boxes + 1) * KILN_TRUTH_COLUMNS * sizeof(float);

    set->starts = calloc((size_t)set->count + 1, sizeof(*set->starts));
    set->boxes = malloc(room);
    if (set->starts == NULL || set->boxes == NULL)
        return kiln_error_nomem(err, room);
    for (int64_t i = 0; i < set->count; i++) {
        const int64_t n = reading->images[i].n_boxes;

        set->most = n > set->most ? n : set->most;
        set->starts[i + 1] = set->starts[i] + n;
        reading->images[i].n_boxes = set->starts[i]; /* from here on: where the next one goes */
    }
    for (int64_t i = 0; i < reading->n_boxes; i++) {
        const Box *box = &reading->boxes[i];

        memcpy(set->boxes + reading->images[box->image].n_boxes++ * KILN_TRUTH_COLUMNS, box->row,
               sizeof(box->row));
    }
    return KILN_OK;
}

static KilnStatus read_boxes(Reading *reading, const json_t *root, KilnError *err)
{
    const json_t *list = json_object_get(root, "annotations");
    Entry *entries = NULL;
    int64_t n = 0;
    KilnStatus status = sort_list(reading, root, "annotations", &entries, &n, err);

    if (status >= 0) {
        reading->boxes = calloc((size_t)n + 1, sizeof(*reading->boxes));
        if (reading->boxes == NULL)
            status = kiln_error_nomem(err, (size_t)n * sizeof(*reading->boxes));
    }
    for (int64_t i = 0; i < n && status >= 0; i++)
        status = add_box(reading, json_array_get(list, (size_t)entries[i].number), &entries[i],
                         i > 0 && entries[i].id == entries[i - 1].id, err);
    free(entries);
    return status < 0 ? status : group_boxes(reading, err);
}

KilnStatus kiln_coco_read(const char *path, const char *folder, const KilnBoxSet *known, bool skips,
                          const KilnPoll *poll, KilnBoxSet *ret, KilnError *err)
{
    KilnBoxSet set = { 0 };
    Reading reading = { .path = path, .folder = folder, .poll = poll, .skips = skips, .set = &set };
    json_t *root = NULL;
    KilnStatus status = kiln_json_read(path, &root, err);

    if (status >= 0)
        status = read_classes(&reading, root, known, err);
    if (status >= 0)
        status = read_images(&reading, root, err);
    if (status >= 0)
        status = read_boxes(&reading, root, err);
    json_decref(root);
    free(reading.images);
    free(reading.ids);
    free(reading.boxes);
    if (status < 0)
        kiln_box_set_release(&set);
    else
        *ret = set;
    return status;
}

void kiln_box_set_release(KilnBoxSet *set)
{
    for (int64_t i = 0; i < set->count; i++)
        free(set->paths[i]);
    for (int64_t i = 0; i < set->n_classes; i++)
        free(set->classes[i]);
    free(set->paths);
    free(set->classes);
    free(set->ids);
    free(set->starts);
    free(set->boxes);
    *set = (KilnBoxSet) { 0 };
}
