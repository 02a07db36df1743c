/* For sweepers and pruners: axes as coordinates, and trials by their results. */
#ifndef KILN_HISTORY_H
#define KILN_HISTORY_H

#include "kiln/sweep.h"

/* The middle of the value's share of [0, 1): the inverse of kiln_axis_value(). */
KILN_API double kiln_axis_share(const KilnAxis *axis, KilnAxisValue value);

/* Where the value's share of [0, 1) begins and ends; both are kiln_axis_share() on
 * a FLOAT axis without steps. */
KILN_API void kiln_axis_share_ends(const KilnAxis *axis, KilnAxisValue value, double *ret_low,
                                   double *ret_high);

/* Does axis number `axis` vary by itself? It has more than one value, and is its own leader. */
KILN_API bool kiln_axis_varies(const KilnSpace *space, size_t axis);

/* The value as a loss, of which less is better: negated where more is better; INFINITY for NaN. */
KILN_API double kiln_objective_loss(const KilnObjective *objective, double value);

/* A trial with a result. */
typedef struct KilnRankedTrial {
    size_t trial;         /* its index in the history */
    KilnJobStatus status; /* OK, STOPPED, or FAILED, also for one without a value */
    int64_t step;         /* of its last report; 0: none */
    double loss; /* by kiln_objective_loss(); of a stopped one its last; INFINITY: FAILED */
} KilnRankedTrial;

/* The trials that have ended, best first: those that are OK, then those that were stopped, of which
 * those with more steps come first, then those that failed or have no value. Equal ones are in the
 * order of the history. Returns how many; `ret` has room for history->count. */
KILN_API size_t kiln_history_rank(const KilnHistory *history, size_t objective,
                                  KilnRankedTrial *ret);

/* The trial's best loss in its reports of epochs up to `epoch`; INFINITY: it has none. */
KILN_API double kiln_trial_best(const KilnHistory *history, size_t trial, size_t objective,
                                int64_t epoch);

#endif
