/* The sets of samples that were read, for the checks of them. */
#ifndef KILN_TRAIN_CHECK_CHECKED_SETS_H
#define KILN_TRAIN_CHECK_CHECKED_SETS_H

#include "train/check/data_check.h"
#include "train/check/read_set.h"

typedef struct KilnCheckedSets {
    const KilnDataCheck *check;
    KilnSetRead list[KILN_SPLIT_COUNT * KILN_MAX_SETS]; /* the first is that of training */
    size_t n;
    bool train_differs; /* training samples are augmented: keys of equal samples differ */
    KilnDataReport *report;
} KilnCheckedSets;

/* Classes, labels, tags and masks: what training lacks, few samples, different sizes. */
KILN_NODISCARD KilnStatus kiln_check_labels(KilnCheckedSets *sets, KilnError *err);
/* Equal samples: in one set, in several, with different labels. */
KILN_NODISCARD KilnStatus kiln_check_overlap(KilnCheckedSets *sets, KilnError *err);
/* Samples that can't be read, NaN and infinity, empty ones, lengths, unknown tokens, constants. */
KILN_NODISCARD KilnStatus kiln_check_values(KilnCheckedSets *sets, KilnError *err);

#endif
