/* Keeps the live page of a run up to date: its position after every batch, its rates a few times
 * a second. */
#ifndef KILN_TRAIN_REPORT_LIVE_STATUS_H
#define KILN_TRAIN_REPORT_LIVE_STATUS_H

#include "kiln/trainer.h"
#include "train/report/live_page.h"

typedef struct KilnLiveStatus {
    KilnLivePage *page;      /* NULL: none */
    int32_t last_phase;      /* KilnLivePhase; KILN_LIVE_FIT: the phase of the trainer */
    double rates_written;    /* when the rates were written last */
    bool page_lost_reported; /* the user knows that the page was cut short */
    int64_t first_batch;     /* batches done when this session began */
    double samples_per_s;    /* of training */
    double loss;             /* of the last training batch */
} KilnLiveStatus;

/* Create the live page in the run folder, which exists; kiln_live_status_end removes it. */
void kiln_live_status_begin(KilnTrainer *trainer);
void kiln_live_status_end(KilnTrainer *trainer);
/* Write the current position, `now` by kiln_clock; after each batch. */
void kiln_live_status_update(KilnTrainer *trainer, double now);
void kiln_live_status_phase(KilnTrainer *trainer, KilnLivePhase phase);

#endif
