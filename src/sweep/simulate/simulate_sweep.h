/* Simulates a sweep over recorded trials: with the sweeper, pruner and launcher of a config. */
#ifndef KILN_SWEEP_SIMULATE_SIMULATE_SWEEP_H
#define KILN_SWEEP_SIMULATE_SIMULATE_SWEEP_H

#include "kiln/embed/config.h"
#include "kiln/search/simulate.h"
#include "sweep/simulate/curves.h"

typedef struct KilnSimulateRequest {
    KilnComposeRequest compose; /* overrides of `kiln`: the space is that of the trials */
    const char *source;         /* a CSV file, or the absolute path of a sweep's folder */
    double straggle;            /* as in KilnSimulation */
    size_t runs;                /* at least 1; their seeds follow kiln.sweeper.seed */
} KilnSimulateRequest;

typedef struct KilnSimulatedRun {
    int64_t seed; /* 0: the sweeper has none */
    KilnSimulated *simulated;
    size_t *curves;       /* by trial */
    int64_t whole_epochs; /* that its trials would train if none were stopped */
    double whole_seconds; /* the same in seconds of workers, without stragglers */
    double best, tried;   /* losses: the least of trials that ended, of the curves that it tried */
} KilnSimulatedRun;

typedef struct KilnSimulatedSweep {
    KilnCurves curves;
    char *sweeper, *pruner; /* names of the components; pruner NULL: none */
    size_t workers;
    double least; /* loss of the best of all curves */
    KilnSimulatedRun *runs;
    size_t n_runs;
} KilnSimulatedSweep;

/* Each trial takes the curve that is nearest to the point which the sweeper suggests, of those that
 * no trial has taken, and its point; one that continues from another trial's checkpoint continues
 * with the curve nearest to its new point, taken or not. Release it also after an error. */
KILN_NODISCARD KilnStatus kiln_sweep_simulate(const KilnSimulateRequest *request,
                                              KilnSimulatedSweep *ret, KilnErrors *errors);
void kiln_simulated_sweep_release(KilnSimulatedSweep *simulated);

#endif
