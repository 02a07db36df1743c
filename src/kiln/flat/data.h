/* Flat functions that describe data (see kiln/flat/config.h): features, and arrays or a function
 * that gives samples. For datamodule=arrays, and for datamodules of the caller
 * (kiln/flat/component.h). */
#ifndef KILN_KILN_FLAT_DATA_H
#define KILN_KILN_FLAT_DATA_H

#include "kiln/data.h"

typedef struct KilnFlatData KilnFlatData;

/* Without features and samples; owned by the caller. NULL: memory is out. */
KILN_API KilnFlatData *kiln_flat_data_new(void);
/* Accepts NULL. */
KILN_API void kiln_flat_data_free(KilnFlatData *data);
/* Add a feature (KilnFeature): `content` by its name ("image", "vector", "label", ...), `dtype` a
 * KilnDType, the shape of one sample; of a varying one the first axis is the longest. `n_ids`: of
 * whole numbers that are ids; else 0. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_data_feature(KilnFlatData *data, const char *name,
                                                          const char *content, int dtype, int rank,
                                                          const int64_t *dims, bool varies,
                                                          int64_t n_ids, KilnError *err);
/* The names of the classes; copied. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_data_classes(KilnFlatData *data,
                                                          const char *const *names, int64_t n,
                                                          KilnError *err);
/* The samples of a split ("train", "val", "test"); without arrays they come one by one from a
 * function of the datamodule. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_data_samples(KilnFlatData *data, const char *split,
                                                          int64_t n, KilnError *err);
/* The array of a feature in a split, as KilnArray; borrowed as long as the data. `lengths` (of a
 * varying feature) likewise; else NULL. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_data_array(KilnFlatData *data, const char *split,
                                                        const char *name, int dtype,
                                                        const void *values, const int64_t *lengths,
                                                        KilnError *err);

#endif
