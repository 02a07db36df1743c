/* Small questions about what a datamodule yields. */
#include "kiln/data.h"

#include <string.h>

const KilnFeature *kiln_spec_feature(const KilnDataSpec *spec, const char *name)
{
    for (size_t i = 0; i < spec->n_features; i++)
        if (strcmp(spec->features[i].name, name) == 0)
            return &spec->features[i];
    return NULL;
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
