/* Scaling to mean 0 and standard deviation 1, as scikit-learn's StandardScaler does, for a
 * datamodule's f32 rows and vectors. What was fitted is saved with a checkpoint. */
#ifndef KILN_STANDARD_SCALER_H
#define KILN_STANDARD_SCALER_H

#include "kiln/data.h"

/* The mean and the standard deviation of each column. */
typedef struct KilnStandardScaler KilnStandardScaler;

/* Compute them for all f32 rows and vectors that do not vary, over all samples of `dataset` (the
 * training set). The deviation is that of the population; a constant column keeps its scale.
 * KILN_E_RANGE if a value is not finite, with its feature, column and sample. Owned by the caller.
 */
KILN_API KILN_NODISCARD KilnStatus kiln_standard_scaler_fit(const KilnDataSpec *spec,
                                                            const KilnDataset *dataset,
                                                            const KilnPoll *poll,
                                                            KilnStandardScaler **ret,
                                                            KilnError *err);
/* Write standard_scaler.safetensors into `folder` (KilnDataModuleOps.save_preprocessing): tensors
 * FEATURE.mean and FEATURE.deviation, f64. */
KILN_API KILN_NODISCARD KilnStatus kiln_standard_scaler_save(const KilnStandardScaler *scaler,
                                                             const char *folder, KilnError *err);
/* Read it from `folder` (KilnDataContext.fitted). KILN_E_FORMAT if it does not fit `spec`. Owned by
 * the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_standard_scaler_open(const char *folder,
                                                             const KilnDataSpec *spec,
                                                             KilnStandardScaler **ret,
                                                             KilnError *err);
/* Scale in place the values of feature number f of a sample. A feature of another kind, and any
 * feature if `scaler` is NULL, is left as it is. Several threads may call it at once. */
KILN_API void kiln_standard_scaler_apply(const KilnStandardScaler *scaler, size_t f, float *values);
/* Accepts NULL. */
KILN_API void kiln_standard_scaler_free(KilnStandardScaler *scaler);

#endif
