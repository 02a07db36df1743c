/* A predictor: the network of a checkpoint, and what a call needs to run it.
 * train/run/run_predict.c is the client that runs callbacks. */
#ifndef KILN_TRAIN_PREDICT_PREDICTOR_H
#define KILN_TRAIN_PREDICT_PREDICTOR_H

#include "kiln/embed/predict.h"
#include "train/checkpoint/checkpoint.h"
#include "train/loader/preprocessor.h"
#include "train/predict/predict_slots.h"

struct KilnPredictor {
    KilnConfig *config; /* owned; NULL: the caller's */
    KilnRunEnv env;
    KilnTrainer *trainer;
    KilnCheckpoint checkpoint;
    KilnPreprocessor preprocessor; /* zeroed in a prediction of loaded batches */
    KilnPredictSlots slots;
    pthread_mutex_t recording; /* held while a step is recorded and planned: components are called,
                                * and parameters note their leaves */
    bool started;
};

/* How a predictor is built. */
typedef struct KilnPredictorBuild {
    KilnConfig *config; /* checked; must outlive the predictor */
    const KilnRunEnv *env;
    bool remembered; /* the datamodule reads no data: it prepares what a caller provides */
    KilnSplit split; /* else, the split that it reads */
    bool callbacks;  /* build the config's callbacks */
    int max_calls;   /* steps that run at once */
} KilnPredictorBuild;

/* Open the checkpoint that the config's ckpt_path names, and load its weights; freed by
 * kiln_predictor_free. */
KILN_NODISCARD KilnStatus kiln_predictor_build(const KilnPredictorBuild *build, KilnPredictor **ret,
                                               KilnError *err);
/* Call the hook `setup` and load the module's own state. */
KILN_NODISCARD KilnStatus kiln_predictor_start(KilnPredictor *predictor, KilnError *err);
/* Call the hook `teardown`, after on_exception where `status` says that *err is why the prediction
 * ends; returns that status, or teardown's. Nothing if it was not started. */
KILN_NODISCARD KilnStatus kiln_predictor_end(KilnPredictor *predictor, KilnStatus status,
                                             KilnError *err);
/* Record the predict step over a batch and find its plan, under the lock. */
KILN_NODISCARD KilnStatus kiln_predictor_record(KilnPredictor *predictor, KilnPredictSlot *slot,
                                                const KilnBatch *batch, KilnPlan **ret,
                                                KilnError *err);
/* Record it and compute it, the latter outside of the lock. The outputs are in slot->step until its
 * next step. */
KILN_NODISCARD KilnStatus kiln_predictor_step(KilnPredictor *predictor, KilnPredictSlot *slot,
                                              const KilnBatch *batch, KilnError *err);

#endif
