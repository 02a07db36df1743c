/* Variants of one sample, computed in batches: the scores of each, and their gradients. */
#ifndef KILN_TRAIN_EXPLAIN_VARIANTS_H
#define KILN_TRAIN_EXPLAIN_VARIANTS_H

#include "kiln/embed/explanation.h"
#include "train/predict/predictor.h"

/* Which tensors of the recorded step to read besides; called after the gradients are recorded. */
typedef KilnStatus KilnVariantReads(void *ctx, KilnGraph *graph, KilnTensor **reads, size_t *n,
                                    KilnError *err);

typedef struct KilnVariants {
    KilnPredictor *predictor;
    const KilnDataSpec *spec;
    KilnPredictSlot *slot;
    KilnSample *sample;      /* prepared */
    KilnPrecision precision; /* of the slot's graph before kiln_variants_use_f32 */
    int64_t rows;            /* room for variants of a batch */
    KilnArena arena;
    int64_t *lengths; /* of the first axis of each feature */
    int64_t *count;   /* elements of each feature in one variant; 0: it is not explained */
    /* Of each feature, [rows, ...]; of those that are not explained the sample's own values. */
    void **data;
    float **factors; /* of ids, [rows, ...]; else NULL */
    KilnBatchFeature *batch;
    int64_t *numbers;    /* [rows] of the samples in the batch: 0 */
    float *scores;       /* [rows, n_scores] of the last run */
    int64_t n_scores;    /* 0: not known yet */
    KilnTensor **points; /* of the last run */
    struct KilnLookupFactors **lookups;
} KilnVariants;

/* Prepare the sample and room for at most `rows` variants a batch, all of them the sample itself.
 * Release it also after a failure. */
KILN_NODISCARD KilnStatus kiln_variants_init(KilnVariants *variants, KilnPredictor *predictor,
                                             const KilnRawSample *raw, int64_t rows,
                                             KilnError *err);
void kiln_variants_release(KilnVariants *variants);
/* Compute in f32 what the run computes in bf16, until the release: gradients that are rounded to
 * bf16 do not add up. */
void kiln_variants_use_f32(KilnVariants *variants);
/* Variant `row` becomes the sample moved from the baseline (0) to itself (1). */
void kiln_variants_scale(KilnVariants *variants, int64_t row, double part);
/* Compute the scores of the first n variants. */
KILN_NODISCARD KilnStatus kiln_variants_score(KilnVariants *variants, int64_t n, KilnError *err);
/* The same and the gradients of score `target` by each variant's own elements, the points' `grad`.
 * `reads` may be NULL. */
KILN_NODISCARD KilnStatus kiln_variants_differentiate(KilnVariants *variants, int64_t n,
                                                      int64_t target, KilnVariantReads *reads,
                                                      void *ctx, KilnError *err);
/* Record and run the module's contributions_step over the sample; *ret is its output. */
KILN_NODISCARD KilnStatus kiln_variants_contributions(KilnVariants *variants,
                                                      const KilnTensor **ret, KilnError *err);
/* What one element of a feature is moved by: its value, or of ids 1. */
double kiln_variants_way(const KilnVariants *variants, size_t feature, int64_t element);

#endif
