/* Raw samples of a call, prepared: the features of each, or its error. */
#ifndef KILN_TRAIN_PREDICT_PREPARE_H
#define KILN_TRAIN_PREDICT_PREPARE_H

#include "train/loader/preprocessor.h"

/* A raw sample that was prepared. Zeroed: not yet. */
typedef struct KilnPrepared {
    KilnSample *sample; /* NULL: it could not be prepared */
    KilnStatus status;
    char *error; /* the message; owned */
} KilnPrepared;

/* The features of one raw sample in one block; *ret is freed by kiln_features_free. */
KILN_NODISCARD KilnStatus kiln_features_make(const KilnPreprocessor *preprocessor,
                                             const KilnRawSample *raw, KilnSample **ret,
                                             KilnError *err);
/* Accepts NULL. */
void kiln_features_free(const KilnDataSpec *spec, KilnSample *sample);
/* Copy them to where `to` has room; texts move there. */
void kiln_features_move(const KilnDataSpec *spec, KilnSample *from, KilnSample *to);

/* Prepare n raw samples, in up to `threads` threads where that saves time. `ret` is [n], zeroed;
 * release each of its entries, also after a failure. KILN_E_NOMEM only: other errors belong to
 * their samples. */
KILN_NODISCARD KilnStatus kiln_prepare(const KilnPreprocessor *preprocessor,
                                       const KilnRawSample *raw, size_t n, int threads,
                                       KilnPrepared *ret, KilnError *err);
void kiln_prepared_release(const KilnDataSpec *spec, KilnPrepared *prepared, size_t n);

#endif
