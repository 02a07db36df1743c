/* The features themselves as raw samples: what a datamodule takes of a user who has arrays as
 * training had them (KilnDataModuleOps.raw_fields, preprocess). */
#ifndef KILN_TOOLS_FEATURE_FIELDS_H
#define KILN_TOOLS_FEATURE_FIELDS_H

#include "kiln/data.h"

typedef struct KilnFeatureFields KilnFeatureFields;

/* A field for each feature that is no label: an array, or, optional, a text. `spec` is borrowed.
 * Owned by the caller (kiln_feature_fields_free). */
KILN_API KILN_NODISCARD KilnStatus kiln_feature_fields_new(const KilnDataSpec *spec,
                                                           KilnFeatureFields **ret, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_feature_fields_free(KilnFeatureFields *self);
/* The fields, for raw_fields; returns their number. Borrowed. */
KILN_API size_t kiln_feature_fields_list(const KilnFeatureFields *self, const KilnRawField **ret);
/* The number of the feature that a field is for. */
KILN_API size_t kiln_feature_fields_feature(const KilnFeatureFields *self, size_t field);
/* Write the value of a field to a sample, for preprocess: an array as the type of the feature.
 * KILN_E_SHAPE: it does not have the feature's shape, or is too long. */
KILN_API KILN_NODISCARD KilnStatus kiln_feature_fields_write(const KilnFeatureFields *self,
                                                             size_t field,
                                                             const KilnRawValue *value,
                                                             KilnSample *sample, KilnError *err);

/* Whether a value of the shape can be the feature: the same shape, of a varying one also shorter.
 */
KILN_API bool kiln_feature_fits(const KilnFeature *feature, const KilnShape *shape);

#endif
