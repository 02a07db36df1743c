/* What callbacks that watch a run are told of its training batches. */
#ifndef KILN_TRAIN_ANALYSIS_BATCH_STATS_H
#define KILN_TRAIN_ANALYSIS_BATCH_STATS_H

#include "kiln/trainer.h"

typedef struct KilnInstruments {
    double loss;        /* of the newest batch */
    bool ran;           /* it has run */
    bool skips;         /* the batch that is beginning is left out */
    bool stepped;       /* it made an optimizer step */
    float *norms;       /* of the gradient of each trained parameter; NULL: nobody asks */
    int64_t *norm_ends; /* where the parameters end in the flat buffers */
    size_t n_norms;
    double peak_flops; /* 0: not measured yet */
} KilnInstruments;

/* Before the first step is recorded. */
KILN_NODISCARD KilnStatus kiln_instruments_set_up(KilnTrainer *trainer, KilnError *err);
void kiln_instruments_release(KilnInstruments *instruments);
/* Let an update measure the gradients, if someone asks. */
void kiln_instruments_record(KilnTrainer *trainer, KilnFlat *flat);

#endif
