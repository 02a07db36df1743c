/* A flight record: the last training batches of a run, in a file that is mapped into memory, so
 * that what was written is there however the process ends, by kill -9 too. A ring: the newest
 * batch takes the place of the oldest. */
#ifndef KILN_KILN_FILES_FLIGHT_H
#define KILN_KILN_FILES_FLIGHT_H

#include "kiln/base.h"

typedef struct KilnFlight KilnFlight;

/* One training batch. Pointers are borrowed from the record. */
typedef struct KilnFlightBatch {
    int64_t epoch, batch;   /* the epoch from 0, and the batch in it from 0 */
    int64_t step;           /* optimizer steps done before it */
    int64_t batches;        /* batches done before it: with the seed its key of random numbers */
    int64_t n_samples;      /* of them the first most_samples are kept */
    const int64_t *samples; /* which ones: indices in the dataset */
    bool ended;             /* it ran, and what follows is there */
    double loss, rate;      /* NaN and infinity included; the learning rate */
    bool stepped;           /* the optimizer did; `norms` are of its gradients */
    const float *norms;     /* one for each name */
} KilnFlightBatch;

typedef struct KilnFlightForm {
    uint64_t seed;
    int64_t n_batches, most_samples; /* that are kept; samples of each batch */
    const char *const *names;        /* of the parameters whose gradients' norms are kept */
    size_t n_names;
} KilnFlightForm;

/* Make the file `path`, over one that is there. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_flight_create(const char *path, const KilnFlightForm *form,
                                                      KilnFlight **ret, KilnError *err);
/* Read one as it is. KILN_E_FORMAT: it is none, or it is damaged. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_flight_open(const char *path, KilnFlight **ret,
                                                    KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_flight_close(KilnFlight *flight);

/* A batch begins (its form up to `samples`), and has ended (the rest). */
KILN_API void kiln_flight_begin(KilnFlight *flight, const KilnFlightBatch *batch);
KILN_API void kiln_flight_end(KilnFlight *flight, const KilnFlightBatch *batch);
/* Why the run ended; cut to what has room. */
KILN_API void kiln_flight_set_reason(KilnFlight *flight, const char *reason);

/* "" while the run continues, and if it ended without a report. */
KILN_API const char *kiln_flight_reason(const KilnFlight *flight);
KILN_API KilnFlightForm kiln_flight_form(const KilnFlight *flight);
/* Batches in it; the i-th, the oldest first. */
KILN_API size_t kiln_flight_count(const KilnFlight *flight);
KILN_API KilnFlightBatch kiln_flight_at(const KilnFlight *flight, size_t i);

#endif
