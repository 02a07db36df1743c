/* RUN/.kiln/live: what a run is doing, for other processes to look at: a page of memory
 * that is mapped from a file. Telling costs some nanoseconds, reading disturbs nobody. It is
 * there while the run is; after a kill it stays, and its pid says that nobody tells any more. */
#ifndef KILN_TRAIN_REPORT_LIVE_PAGE_H
#define KILN_TRAIN_REPORT_LIVE_PAGE_H

#include "kiln/base.h"

enum { KILN_LIVE_METRICS = 16, KILN_LIVE_NAME = 48, KILN_LIVE_LABEL = 1024 };

typedef enum KilnLivePhase {
    KILN_LIVE_STARTS, /* being built */
    KILN_LIVE_FIT,
    KILN_LIVE_SANITY,
    KILN_LIVE_VALIDATE,
    KILN_LIVE_TEST,
    KILN_LIVE_PREDICT,
    KILN_LIVE_ENDS /* training is over; the last files are written */
} KilnLivePhase;

/* Where the loops are: told after each batch and at each change of phase. */
typedef struct KilnLiveAt {
    int32_t phase;             /* KilnLivePhase */
    int32_t in_group;          /* batches whose gradients wait for the next optimizer step */
    int32_t accumulate;        /* batches of such a group */
    int32_t stopping;          /* not 0: it was asked to stop, and will */
    int64_t epoch, step;       /* the current epoch from 0; optimizer steps done */
    int64_t batch, batches;    /* of this epoch of training: done, in all (-1: unknown) */
    int64_t eval_batch, evals; /* the same of the validation or test that runs; 0, 0: none */
} KilnLiveAt;

/* What takes a clock or some formatting: told some times a second. */
typedef struct KilnLiveRates {
    double samples_per_s; /* of training; 0: unknown */
    double left_s;        /* until the run ends; negative: unknown */
    double loss;          /* of training, as it was logged last; NaN: unknown */
    int64_t samples;      /* trained on since the start of the run */
    double told;          /* when, seconds since 1970 */
    int32_t n_metrics, reserved;
    struct {
        char name[KILN_LIVE_NAME];
        double value;
    } metrics[KILN_LIVE_METRICS]; /* those of the progress bar */
} KilnLiveRates;

/* What stays as it is. */
typedef struct KilnLiveRun {
    int64_t pid;
    uint64_t pid_start; /* of the process, in ticks since boot: a pid may be used again */
    double started;     /* seconds since 1970 */
    int64_t max_epochs, max_steps; /* -1: no limit */
    char label[KILN_LIVE_LABEL];   /* what was asked for: the overrides */
} KilnLiveRun;

/* One consistent look at a page. */
typedef struct KilnLive {
    KilnLiveRun run;
    KilnLiveAt at;
    KilnLiveRates rates;
    int saving; /* checkpoints that are being written now */
} KilnLive;

/* ---- For the run ------------------------------------------------------------------------ */

typedef struct KilnLivePage KilnLivePage;

/* Make the page of the run folder `dir`, whose .kiln is there. pid and pid_start are filled in. */
KILN_NODISCARD KilnStatus kiln_live_open(const char *dir, const KilnLiveRun *run,
                                         KilnLivePage **ret, KilnError *err);
/* `page` may be NULL in all of these: nothing is told. One thread at a time. */
void kiln_live_write(KilnLivePage *page, const KilnLiveAt *at);
void kiln_live_write_rates(KilnLivePage *page, const KilnLiveRates *rates);
/* Around the writing of a checkpoint; any thread. */
void kiln_live_saving(KilnLivePage *page, bool saving);
/* Whether somebody cut the file short: nobody sees any more what is told. */
bool kiln_live_lost(const KilnLivePage *page);
/* Removes the file. */
void kiln_live_close(KilnLivePage *page);

/* ---- For those who look ------------------------------------------------------------------ */

/* Look at the page of the run folder `dir`. KILN_E_IO: there is none, or it can't be read.
 * KILN_E_FORMAT: it is no such page, or nobody ever finished writing to it. */
KILN_NODISCARD KilnStatus kiln_live_read(const char *dir, KilnLive *ret, KilnError *err);
/* True while the process that told `live` is there. */
bool kiln_live_alive(const KilnLive *live);
/* "fit", "validate", ... */
const char *kiln_live_phase_name(int32_t phase);

#endif
