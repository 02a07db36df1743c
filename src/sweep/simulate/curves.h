/* Recorded trials: the values of a metric after each epoch, from a CSV file or a sweep's folder. */
#ifndef KILN_SWEEP_SIMULATE_CURVES_H
#define KILN_SWEEP_SIMULATE_CURVES_H

#include "base/arena.h"
#include "kiln/sweep.h"

typedef struct KilnCurve {
    const char *name;           /* "curves.csv:17", "job #3" */
    const KilnAxisValue *point; /* by axis */
    const double *values;       /* after epochs 1, 2, ... */
    int64_t n_epochs;
    double seconds; /* of an epoch */
} KilnCurve;

/* Everything lives in the arena. */
typedef struct KilnCurves {
    KilnArena arena;
    KilnSpace space;
    KilnObjective objective; /* MIN or MAX */
    KilnCurve *curves;
    size_t count, capacity;
    size_t left_out; /* jobs that have no curve from their first epoch on */
} KilnCurves;

/* Read a CSV file: columns named 1, 2, ... are epochs (empty once a trial has ended), `seconds` is
 * the time of an epoch (default: 1), all others are parameters. Numbers become intervals,
 * logarithmic ones if they differ by more than a hundred times; texts, and fewer than
 * KILN_FEW_NUMBERS numbers, choices. KILN_E_FORMAT, with file and line: no epochs, a value that is
 * no number, a trial without values. Release it also after an error. */
enum { KILN_FEW_NUMBERS = 8 };
KILN_NODISCARD KilnStatus kiln_curves_read_csv(const char *path, const KilnObjective *objective,
                                               KilnCurves *ret, KilnError *err);
/* Read the finished jobs of the sweep in a folder (an absolute path): the metric by which it ranks
 * them, unless `objective` names another one, from each job's metrics.csv. */
KILN_NODISCARD KilnStatus kiln_curves_read_sweep(const char *dir, const KilnObjective *objective,
                                                 KilnCurves *ret, KilnError *err);
/* Make the curves themselves the space, values of one choice: for a sweeper that accepts no
 * intervals. */
KILN_NODISCARD KilnStatus kiln_curves_list(KilnCurves *curves, KilnError *err);
void kiln_curves_release(KilnCurves *curves);

/* The curve whose point is nearest, of those that are not `used`; SIZE_MAX: all are. */
size_t kiln_curves_nearest(const KilnCurves *curves, const KilnAxisValue *point, const bool *used);
/* The best value of a curve as a loss, of which less is better; infinite: it has none. */
double kiln_curves_loss(const KilnCurves *curves, size_t curve);

/* ---- curves.c, for the readers --------------------------------------------------------------- */

/* Append a curve, whose texts and lists live in the arena; NULL: memory is out. */
KilnCurve *kiln_curves_add(KilnCurves *curves);

#endif
