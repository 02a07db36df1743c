/* Runs a sweeper and a pruner on a virtual clock, with trials that cost nothing: thousands of
 * epochs a millisecond, the same on every run. For tests of sweepers and pruners; `kiln sweep
 * simulate` runs them on recorded trials. */
#ifndef KILN_SEARCH_SIMULATE_H
#define KILN_SEARCH_SIMULATE_H

#include "kiln/sweep.h"

/* What a trial reports after an epoch. */
typedef struct KilnSimulatedEpoch {
    double value;   /* of the objective; NaN: none */
    double seconds; /* that the epoch took, above 0 */
    bool last;      /* the trial has ended */
    bool goal;      /* the value is good enough: the simulation ends */
} KilnSimulatedEpoch;

typedef struct KilnSimulation {
    const KilnSpace *space;
    const KilnObjective *objective; /* MIN or MAX */
    KilnInstance *sweeper;
    KilnInstance *pruner; /* NULL: none */
    size_t workers;       /* trials that run at a time, at least 1 */
    double timeout;       /* no trial starts after so many virtual seconds; 0: no limit */
    double straggle; /* each start of a trial is slower by a factor 1 + |z|, z being normal with
                      * this deviation (Li et al., "A System for Massively Parallel Hyperparameter
                      * Tuning", MLSys 2020, appendix); 0: none is slower */
    uint64_t seed;   /* of the stragglers */
    void *ctx;
    /* Optional. A new trial begins at `point`, by axis, which may be changed; a parent is set if it
     * starts from the checkpoint of another one. False: no trial is left, as if the sweeper were
     * done. */
    bool (*begin)(void *ctx, size_t trial, size_t parent, KilnAxisValue *point);
    /* Train an epoch, from 1; a trial that has a parent continues where that one was. */
    KilnSimulatedEpoch (*train)(void *ctx, size_t trial, const KilnAxisValue *point, int64_t epoch);
} KilnSimulation;

typedef enum KilnSimulatedKind {
    KILN_SIMULATED_START,
    KILN_SIMULATED_RESUME,
    KILN_SIMULATED_STOP, /* by the sweeper or the pruner */
    KILN_SIMULATED_END
} KilnSimulatedKind;

/* Something that happened, in the order of time. */
typedef struct KilnSimulatedEvent {
    double time; /* virtual seconds */
    KilnSimulatedKind kind;
    size_t trial, worker;
    int64_t epoch;      /* that the trial has reached */
    double value;       /* its last one; NaN: none */
    const char *reason; /* of a stop; "" */
} KilnSimulatedEvent;

typedef struct KilnSimulated {
    KilnHistory history; /* all trials */
    const KilnSimulatedEvent *events;
    size_t n_events;
    int64_t epochs; /* that all trials trained */
    double seconds; /* when the last trial ended */
    double busy;    /* seconds that workers trained, in all */
    size_t stopped; /* trials that did not run to their end */
    size_t resumed; /* how often a stopped one was resumed */
    size_t best;    /* of the trials that ran to their end; KILN_NO_TRIAL: none did */
    size_t goal;    /* the trial that reached the goal; KILN_NO_TRIAL */
} KilnSimulated;

/* Run it. KILN_E_PLUGIN: the sweeper or pruner names a trial that it may not, waits while no trial
 * runs, or suggests a value that the space does not have. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_simulate(const KilnSimulation *simulation,
                                                 KilnSimulated **ret, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_simulated_free(KilnSimulated *simulated);

#endif
