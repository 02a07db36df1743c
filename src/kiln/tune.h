/* For a callback's `tune`, which runs before the run is built: try the run with other options, and
 * set some. Trials train copies that are thrown away, without hooks of callbacks, loggers and
 * files, so the run itself starts as if its options had been written by hand. */
#ifndef KILN_TUNE_H
#define KILN_TUNE_H

#include "kiln/trainer.h"

/* A value for an option of the run, as YAML writes it: { "lr", "0.1" }. */
typedef struct KilnTuneOption {
    const char *key, *value;
} KilnTuneOption;

/* The keys that set the optimizer's learning rate and the batch size: "lr" if optimizer.lr is
 * ${lr}. Borrowed. If the run has none, KILN_E_MISSING; the message suggests setting the option
 * `option`. */
KILN_API KILN_NODISCARD KilnStatus kiln_tune_lr_key(KilnTune *tune, const char *option,
                                                    const char **ret, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_tune_batch_size_key(KilnTune *tune, const char *option,
                                                            const char **ret, KilnError *err);
/* Set a value for the run. Save it in state_dict: a resumed run loads that before it calls `tune`,
 * which must set the value again. */
KILN_API KILN_NODISCARD KilnStatus kiln_tune_set(KilnTune *tune, KilnTuneOption option,
                                                 KilnError *err);

/* The memory estimate of the run with an option changed, from a dry build. */
typedef struct KilnTuneNeeds {
    int64_t needed;    /* bytes that are still to be allocated */
    int64_t available; /* free bytes; INT64_MAX: unknown */
    int64_t samples;   /* per training epoch */
    bool fits;         /* with a small margin */
} KilnTuneNeeds;
KILN_API KILN_NODISCARD KilnStatus kiln_tune_estimate(KilnTune *tune, KilnTuneOption option,
                                                      KilnTuneNeeds *ret, KilnError *err);

/* The first steps of the run, trained for a trial. */
typedef struct KilnTuneTrial {
    KilnTuneOption option; /* changed for this trial; key NULL: none */
    int64_t steps;         /* of the optimizer */
    /* The learning rate of step i, from 0; NULL: the run's own. */
    double (*rate)(void *ctx, int64_t i);
    /* Called after a step with the loss of its last batch, or NaN if training broke down, which
     * ends the trial. Returning false ends it, too. May be NULL. */
    bool (*report)(void *ctx, int64_t i, double loss);
    void *ctx;
    double seconds;  /* out: time of all batches except the first */
    int64_t samples; /* out: their samples; both 0 if there was one batch */
} KilnTuneTrial;
/* Run a trial. KILN_E_NOMEM if memory runs out, KILN_E_INTERRUPTED if the user wants to stop. */
KILN_API KILN_NODISCARD KilnStatus kiln_tune_try(KilnTune *tune, KilnTuneTrial *trial,
                                                 KilnError *err);

/* Print a line for the user, and to train.log if there is one. */
KILN_API void kiln_tune_print(KilnTune *tune, const char *format, ...) KILN_PRINTF(2, 3);
/* The folder for pictures that are drawn immediately; NULL: draw them in the run folder once it
 * exists (on_fit_start). */
KILN_API const char *kiln_tune_dir(const KilnTune *tune);
/* Show the user what the search is doing; NULL clears the line. */
KILN_API void kiln_tune_status(KilnTune *tune, const char *text);

#endif
