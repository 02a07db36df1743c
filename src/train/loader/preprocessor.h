/* Makes features of raw samples with a datamodule that is set up. */
#ifndef KILN_TRAIN_LOADER_PREPROCESSOR_H
#define KILN_TRAIN_LOADER_PREPROCESSOR_H

#include "kiln/data.h"

typedef struct KilnPreprocessor {
    KilnInstance *datamodule;   /* borrowed, like what follows */
    const KilnDataSpec *spec;   /* of its samples */
    const KilnRawField *fields; /* what it takes */
    size_t n_fields;
    const char *
        *absent; /* names of features that raw samples lack (labels), the last NULL; owned */
} KilnPreprocessor;

/* KILN_E_MISSING if the datamodule has no preprocessing. `spec` is borrowed. Release it also after
 * a failure. */
KILN_NODISCARD KilnStatus kiln_preprocessor_init(KilnPreprocessor *self, KilnInstance *datamodule,
                                                 const KilnDataSpec *spec, KilnError *err);
/* Accepts a zeroed one. */
void kiln_preprocessor_release(KilnPreprocessor *self);
/* Check `raw` against the fields and make features of it; runs in several threads at once.
 * sample->data has NULL for absent features and room for the longest of varying ones, whose lengths
 * are set; those of others are 0. */
KILN_NODISCARD KilnStatus kiln_preprocess(const KilnPreprocessor *self, const KilnRawSample *raw,
                                          KilnSample *sample, KilnError *err);
/* Append the texts of the ids of feature number `feature`, as KilnDataModuleOps.spell; nothing if
 * the datamodule lacks it. */
KILN_NODISCARD KilnStatus kiln_preprocess_spell(const KilnPreprocessor *self,
                                                const KilnRawSample *raw, size_t feature,
                                                KilnText *ret, KilnError *err);

#endif
