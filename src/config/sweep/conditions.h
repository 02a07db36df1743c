/* Conditions between axes: when(model,resnet,18,34) has values for some values of another axis. */
#ifndef KILN_CONFIG_SWEEP_CONDITIONS_H
#define KILN_CONFIG_SWEEP_CONDITIONS_H

#include "config/provenance/error_list.h"
#include "config/sweep/sweep_value.h"
#include "kiln/sweep.h"

/* An axis while the others are not known. */
typedef struct KilnAxisDraft KilnAxisDraft;
struct KilnAxisDraft {
    KilnAxis axis;
    const KilnSweepValue *sweep; /* NULL: one value */
    KilnOrigin origin;
    size_t number;         /* of the argument, from 1; 0: it is no argument */
    KilnAxisDraft *parent; /* set by kiln_conditions_resolve(), as is `placed` */
    bool placed;
};

/* Can both be axes of the same key? Yes if each has a condition on the same axis, with other
 * values. */
bool kiln_conditions_exclude(const KilnSweepValue *a, const KilnSweepValue *b);
/* Set active_for and parent of the axes, and put each parent before the axes that depend on it.
 * Leaders are set later. Errors go to `errors`; the status is that of the first. */
KilnStatus kiln_conditions_resolve(KilnAxisDraft **drafts, size_t count, KilnArena *arena,
                                   KilnErrors *errors);

#endif
