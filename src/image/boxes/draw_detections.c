/* Draws the detections of an image, which task detection gives as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kiln/images/sample_pictures.h"

enum { LABEL = 96 };

static size_t class_of(const KilnDataSpec *spec, const char *name)
{
    for (int64_t i = 0; spec->class_names != NULL && i < spec->n_classes; i++)
        if (strcmp(spec->class_names[i], name) == 0)
            return (size_t)i;
    return 0;
}

/* The object number `at` of the list; false: it is none. */
static bool read_one(const json_t *list, size_t at, const KilnDataSpec *spec, const double place[4],
                     char label[LABEL], KilnPlotBox *ret, double *ret_score)
{
    const json_t *one = json_array_get(list, at), *box = json_object_get(one, "box");
    const char *name = json_string_value(json_object_get(one, "label"));

    if (name == NULL || json_array_size(box) != 4)
        return false;
    for (size_t i = 0; i < 4; i++)
        ret->box[i] = json_number_value(json_array_get(box, i)) * place[i % 2] + place[2 + i % 2];
    *ret_score = json_number_value(json_object_get(one, "score"));
    snprintf(label, LABEL, "%.80s %.2f", name, *ret_score);
    ret->label = label;
    ret->colour = class_of(spec, name);
    return true;
}

static KilnStatus draw(const KilnPicture *to, const json_t *list, const KilnDataSpec *spec,
                       const double place[4], double least, KilnError *err)
{
    const size_t most = json_array_size(list);
    KilnPlotBox *boxes = calloc(most + 1, sizeof(*boxes));
    char(*labels)[LABEL] = calloc(most + 1, sizeof(*labels));
    KilnStatus status = boxes != NULL && labels != NULL ? KILN_OK
                                                        : kiln_error_nomem(err, most * LABEL);
    size_t n = 0;

    for (size_t i = most; i > 0 && status >= 0; i--) { /* the list begins with the best */
        double score = 0.0;

        if (!read_one(list, i - 1, spec, place, labels[n], &boxes[n], &score))
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "detection %zu of an image has no box and label", i - 1);
        n += score >= least;
    }
    if (status >= 0)
        status = kiln_plot_boxes(to, boxes, n, err);
    free(labels);
    free(boxes);
    return status;
}

KilnStatus kiln_picture_detections(const KilnPicture *to, const char *json,
                                   const KilnDataSpec *spec, const double place[4], double least,
                                   KilnError *err)
{
    json_t *list = json_loads(json, 0, NULL);
    const KilnStatus status = json_is_array(list)
                                  ? draw(to, list, spec, place, least, err)
                                  : kiln_error_set(err, KILN_E_FORMAT,
                                                   "detections must be a list of JSON");

    json_decref(list);
    return status;
}
