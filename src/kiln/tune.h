/* What a callback's `tune` can do before a run is built: try the run with other options, and
 * choose some. Trials train copies that are thrown away, without callbacks' hooks, loggers and
 * files, so that the run itself starts as if its options had been written by hand. */
#ifndef KILN_TUNE_H
#define KILN_TUNE_H

#include "kiln/trainer.h"

/* An option of the run with another value, as YAML writes it: { "lr", "0.1" }. */
typedef struct KilnTuneOption {
    const char *key, *value;
} KilnTuneOption;

/* The keys that decide the optimizer's learning rate and the size of batches: "lr" where
 * optimizer.lr is ${lr}. Borrowed. Where the run has none of that name: KILN_E_MISSING, and the
 * option that says which (`option`). */
KILN_API KILN_NODISCARD KilnStatus kiln_tune_lr_key(KilnTune *tune, const char *option,
                                                    const char **ret, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_tune_batch_size_key(KilnTune *tune, const char *option,
                                                            const char **ret, KilnError *err);
/* The run gets this value. A callback keeps it in its state_dict: a run that goes on from a
 * checkpoint loads that before it calls `tune`, which sets the value again. */
KILN_API KILN_NODISCARD KilnStatus kiln_tune_set(KilnTune *tune, KilnTuneOption option,
                                                 KilnError *err);

/* The run, with an option changed, on shapes alone. */
typedef struct KilnTuneNeeds {
    int64_t needed;    /* bytes that are still to be allocated */
    int64_t available; /* bytes that can be; INT64_MAX: unknown */
    int64_t samples;   /* of an epoch of training */
    bool fits;         /* with a little to spare */
} KilnTuneNeeds;
KILN_API KILN_NODISCARD KilnStatus kiln_tune_estimate(KilnTune *tune, KilnTuneOption option,
                                                      KilnTuneNeeds *ret, KilnError *err);

/* The first steps of the run, trained for a trial. */
typedef struct KilnTuneTrial {
    KilnTuneOption option; /* changed for this trial; key NULL: none */
    int64_t steps;         /* of the optimizer */
    /* The learning rate of step i, from 0; NULL: the run's own. */
    double (*rate)(void *ctx, int64_t i);
    /* Behind a step, with the loss of its last batch: NaN where training broke down, which ends
     * the trial. False ends it, too. May be NULL. */
    bool (*report)(void *ctx, int64_t i, double loss);
    void *ctx;
    double seconds;  /* out: of the batches, but for the first, */
    int64_t samples; /* and what they held; both 0 when there was one batch */
} KilnTuneTrial;
/* KILN_E_NOMEM when memory does not suffice, KILN_E_INTERRUPTED when the run is to stop. */
KILN_API KILN_NODISCARD KilnStatus kiln_tune_try(KilnTune *tune, KilnTuneTrial *trial,
                                                 KilnError *err);

/* A line for the user, and for train.log when there is one. */
KILN_API void kiln_tune_print(KilnTune *tune, const char *format, ...) KILN_PRINTF(2, 3);
/* The folder for pictures, when they are to be drawn at once; NULL: in the run's, when it is made
 * (on_fit_start). */
KILN_API const char *kiln_tune_dir(const KilnTune *tune);
/* What the search does now, where the user can see it; NULL clears it. */
KILN_API void kiln_tune_status(KilnTune *tune, const char *text);

#endif
