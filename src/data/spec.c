/* Small questions about what a datamodule yields. */
#include "kiln/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const KilnFeature *kiln_spec_feature(const KilnDataSpec *spec, const char *name)
{
    for (size_t i = 0; i < spec->n_features; i++)
        if (strcmp(spec->features[i].name, name) == 0)
            return &spec->features[i];
    return NULL;
}

const KilnFeature *kiln_spec_label(const KilnDataSpec *spec)
{
    const KilnFeature *label = kiln_spec_feature(spec, "label");

    return label != NULL && label->dtype == KILN_I32 && label->shape.rank == 0 &&
                   spec->n_classes > 0
               ? label
               : NULL;
}

const KilnFeature *kiln_spec_labels(const KilnDataSpec *spec)
{
    const KilnFeature *labels = kiln_spec_feature(spec, "labels");

    return labels != NULL && labels->content == KILN_LABEL && labels->dtype == KILN_F32 &&
                   labels->shape.rank == 1 && spec->n_classes > 0 &&
                   labels->shape.dim[0] == spec->n_classes
               ? labels
               : NULL;
}

int64_t kiln_spec_ids(const KilnDataSpec *spec, const KilnFeature *feature,
                      const char *const **ret_names)
{
    const bool label = feature == kiln_spec_label(spec);

    *ret_names = label ? spec->class_names : feature->id_names;
    return label ? spec->n_classes : feature->n_ids;
}

bool kiln_dataset_has(const KilnDataset *dataset, const char *name)
{
    for (size_t i = 0; dataset->absent != NULL && dataset->absent[i] != NULL; i++)
        if (strcmp(dataset->absent[i], name) == 0)
            return false;
    return true;
}

const char *kiln_split_name(KilnSplit split)
{
    static const char *const names[] = {
        [KILN_TRAIN] = "train",
        [KILN_VAL] = "val",
        [KILN_TEST] = "test",
    };

    return (size_t)split < KILN_COUNT(names) ? names[split] : "unknown split";
}

const char **kiln_class_names_copy(const char *const *names, int64_t n)
{
    const size_t count = n > 0 ? (size_t)n : 0, number_size = 21; /* of any int64_t */
    size_t text_size = names == NULL ? count * number_size : 0;
    char *text;
    const char **ret;

    for (size_t i = 0; i < count && names != NULL; i++)
        text_size += strlen(names[i]) + 1;
    ret = malloc((count + 1) * sizeof(*ret) + text_size);
    if (ret == NULL)
        return NULL;
    text = (char *)(ret + count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t room = names != NULL ? strlen(names[i]) + 1 : number_size;

        ret[i] = text;
        if (names != NULL)
            memcpy(text, names[i], room);
        else
            snprintf(text, room, "%zu", i);
        text += room;
    }
    ret[count] = NULL;
    return ret;
}
