/* What a KilnFlatData holds. */
#ifndef KILN_FLAT_FLAT_DATA_H
#define KILN_FLAT_FLAT_DATA_H

#include "base/arena.h"
#include "kiln/flat/data.h"

enum { KILN_FLAT_FEATURES = 64 }; /* most of one sample */

struct KilnFlatData {
    KilnArena arena; /* of names */
    KilnMemoryData memory;
    KilnFeature features[KILN_FLAT_FEATURES];
    KilnArray arrays[KILN_SPLIT_COUNT][KILN_FLAT_FEATURES];
};

/* "train", "val", "test"; KILN_E_KEY for anything else. */
KILN_NODISCARD KilnStatus kiln_flat_split(const char *name, KilnSplit *ret, KilnError *err);

#endif
