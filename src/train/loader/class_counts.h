/* How many training samples each class has, for losses that balance classes. */
#ifndef KILN_TRAIN_LOADER_CLASS_COUNTS_H
#define KILN_TRAIN_LOADER_CLASS_COUNTS_H

#include <jansson.h>

#include "kiln/data.h"

typedef struct KilnClassCounts {
    const KilnDataSpec *spec;
    const KilnDataset *train; /* that are counted when somebody asks first; NULL: none */
    int64_t samples;
    int64_t *counts; /* [spec->n_classes]; NULL: nobody asked, or they are not known */
} KilnClassCounts;

/* Count, or do nothing if the counts are there. KILN_E_MISSING: there are no training samples, or
 * they have no classes. */
KILN_NODISCARD KilnStatus kiln_class_counts_make(KilnClassCounts *counts, KilnError *err);
/* As JSON for a checkpoint; NULL: nobody asked. */
json_t *kiln_class_counts_json(const KilnClassCounts *counts);
/* Take the counts of that JSON (NULL: there are none), if they are of spec->n_classes. */
void kiln_class_counts_read(KilnClassCounts *counts, const json_t *saved);
void kiln_class_counts_release(KilnClassCounts *counts);

#endif
