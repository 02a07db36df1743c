/* An explanation while it is made, and the methods that make it. */
#ifndef KILN_TRAIN_EXPLAIN_EXPLAINING_H
#define KILN_TRAIN_EXPLAIN_EXPLAINING_H

#include "train/explain/variants.h"

/* The result, and the memory of all that it points to. */
typedef struct KilnExplaining {
    KilnExplanation result; /* comes first: the caller's pointer is to it */
    KilnArena arena;
    KilnVariants *variants; /* while it is made */
    const KilnExplainSpec *spec;
    int64_t steps;
} KilnExplaining;

/* Each fills result.list for result.target, whose score is known; KilnExplainMethod says how.
 * (integrated_gradients.c, occlusion.c, grad_cam.c) */
KILN_NODISCARD KilnStatus kiln_explain_integrated_gradients(KilnExplaining *self, KilnError *err);
KILN_NODISCARD KilnStatus kiln_explain_occlusion(KilnExplaining *self, KilnError *err);
KILN_NODISCARD KilnStatus kiln_explain_grad_cam(KilnExplaining *self, KilnError *err);

/* Add an attribution of feature f of that shape, its values 0. NULL: out of memory. */
float *kiln_explaining_add(KilnExplaining *self, size_t f, KilnShape shape);
/* The shape of feature f in this sample. */
KilnShape kiln_explaining_shape(const KilnExplaining *self, size_t f);
/* Add the texts of explained tokens. (token_texts.c) */
KILN_NODISCARD KilnStatus kiln_explaining_spell(KilnExplaining *self, const KilnRawSample *raw,
                                                KilnError *err);
/* Points and weights of Gauss-Legendre quadrature of n points on [0, 1]. */
void kiln_gauss_legendre(int64_t n, double *points, double *weights);

#endif
