/* The live page: RUN/.kiln/live, a mapped file that shows other processes (kiln top) what a run is
 * doing. Writing takes nanoseconds and readers do not disturb the run. The file exists while the
 * run does; after a kill it stays, and kiln_live_alive tells from its pid. This file is the format;
 * live_status.c decides what a run publishes, and when. */
#ifndef KILN_TRAIN_REPORT_LIVE_PAGE_H
#define KILN_TRAIN_REPORT_LIVE_PAGE_H

#include "kiln/base.h"

enum { KILN_LIVE_METRICS = 16, KILN_LIVE_NAME = 48, KILN_LIVE_LABEL = 1024 };

typedef enum KilnLivePhase {
    KILN_LIVE_STARTING, /* the run is being built */
    KILN_LIVE_FIT,
    KILN_LIVE_SANITY,
    KILN_LIVE_VALIDATE,
    KILN_LIVE_TEST,
    KILN_LIVE_PREDICT,
    KILN_LIVE_ENDING /* training is over; the last files are written */
} KilnLivePhase;

/* The position of the loops: published after each batch and at each change of phase. */
typedef struct KilnLivePosition {
    int32_t phase;             /* KilnLivePhase */
    int32_t in_group;          /* batches accumulated for the next optimizer step */
    int32_t accumulate;        /* batches per optimizer step */
    int32_t stopping;          /* not 0: a stop was requested */
    int64_t epoch, step;       /* the current epoch from 0; optimizer steps done */
    int64_t batch, batches;    /* of this epoch of training: done, in all (-1: unknown) */
    int64_t eval_batch, evals; /* the same of a running validation or test; 0, 0: none */
} KilnLivePosition;

/* Rates and metrics, which take longer to gather: published a few times a second. */
typedef struct KilnLiveRates {
    double samples_per_s; /* of training; 0: unknown */
    double left_s;        /* until the run ends; negative: unknown */
    double loss;          /* of the last training batch; NaN: unknown */
    int64_t samples;      /* trained on since the start of the run */
    double written;       /* time of this publication, seconds since 1970 */
    int32_t n_metrics, reserved;
    struct {
        char name[KILN_LIVE_NAME];
        double value;
    } metrics[KILN_LIVE_METRICS]; /* those of the progress bar */
} KilnLiveRates;

/* What does not change during a run. */
typedef struct KilnLiveRun {
    int64_t pid;
    uint64_t pid_start;            /* start of the process in ticks since boot: pids are reused */
    double started;                /* seconds since 1970 */
    int64_t max_epochs, max_steps; /* -1: no limit */
    char label[KILN_LIVE_LABEL];   /* the overrides */
} KilnLiveRun;

/* A consistent copy of a page. */
typedef struct KilnLiveSnapshot {
    KilnLiveRun run;
    KilnLivePosition at;
    KilnLiveRates rates;
    int saving; /* checkpoints being written */
} KilnLiveSnapshot;

/* ---- For the run ------------------------------------------------------------------------ */

typedef struct KilnLivePage KilnLivePage;

/* Create the page of the run folder `dir`, whose .kiln exists. Sets pid and pid_start. */
KILN_NODISCARD KilnStatus kiln_live_page_open(const char *dir, const KilnLiveRun *run,
                                              KilnLivePage **ret, KilnError *err);
/* In the following, `page` may be NULL: nothing is published. One thread at a time. */
void kiln_live_page_write_position(KilnLivePage *page, const KilnLivePosition *at);
void kiln_live_page_write_rates(KilnLivePage *page, const KilnLiveRates *rates);
/* Call before (true) and after (false) a checkpoint is written; any thread. */
void kiln_live_page_saving(KilnLivePage *page, bool saving);
/* Whether another program truncated the file, so that readers see nothing any more. */
bool kiln_live_page_lost(const KilnLivePage *page);
/* Removes the file. */
void kiln_live_page_close(KilnLivePage *page);

/* ---- For readers ------------------------------------------------------------------------- */

/* Read the page of the run folder `dir`. KILN_E_IO: there is none, or it can't be read.
 * KILN_E_FORMAT: it is not a live page, or was never completely written. */
KILN_NODISCARD KilnStatus kiln_live_page_read(const char *dir, KilnLiveSnapshot *ret,
                                              KilnError *err);
/* Whether the process that published `live` still runs. */
bool kiln_live_alive(const KilnLiveSnapshot *live);
/* "fit", "validate", ... */
const char *kiln_live_phase_name(int32_t phase);

#endif
