/* kiln_run_predict: runs the predict loop over an input path or the sets of a split. Callbacks
 * (prediction_writer) write the results. */
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "kiln/array.h"
#include "kiln/tools/clock.h"
#include "train/loader/data_summary.h"
#include "train/predict/predictor.h"
#include "train/trainer.h"

/* A running prediction. */
typedef struct Prediction {
    KilnPredictor *predictor;
    KilnTrainer *trainer;  /* of the predictor */
    KilnPredictSlot *slot; /* whose step is the trainer's, which hooks read */
    const char *input;     /* NULL: predict the sets of trainer->split */
    int64_t failed;        /* samples of the input that could not be read */
    KilnError first;       /* the error of the first of them */
    bool nomem;
} Prediction;

/* ---- Samples that can't be read --------------------------------------------------------- */

/* Record a sample that can't be read; callbacks get it with its batch (kiln_trainer_unread). */
static void note_unread(void *ctx, const KilnSkip *skip)
{
    Prediction *prediction = ctx;
    KilnTrainer *trainer = prediction->trainer;

    if (prediction->failed++ == 0)
        kiln_error_set(&prediction->first, skip->status, "%s", skip->message);
    KilnPredictInput *input = &trainer->predict;
    char *copy = kiln_strdup(skip->message);
    if (copy == NULL || !KILN_RESERVE(input->unread, input->unread_capacity, input->n_unread + 1)) {
        free(copy);
        prediction->nomem = true;
        return;
    }
    input->unread[input->n_unread++] = (KilnUnreadSample) { skip->sample, copy };
}

static void clear_unread(KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->predict.n_unread; i++)
        free(trainer->predict.unread[i].message);
    trainer->predict.n_unread = 0;
}

/* ---- Batches --------------------------------------------------------------------------- */

/* `before`: batches of the sets before this one. */
static KilnStatus predict_batch(Prediction *prediction, int64_t before, const KilnBatch *batch,
                                KilnError *err)
{
    KilnTrainer *trainer = prediction->trainer;
    KilnStatus status = KILN_CALL(trainer, on_predict_batch_start, err);

    if (status < 0)
        return status;
    status = kiln_predictor_step(prediction->predictor, prediction->slot, batch, err);
    trainer->eval.batch = before + batch->index + 1;
    trainer->timing.phase_samples += batch->size;
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_batch_end, err);
    clear_unread(trainer);
    return status;
}

static KilnStatus predict_batches(Prediction *prediction, KilnLoader *loader, KilnError *err)
{
    KilnTrainer *trainer = prediction->trainer;
    const int64_t before = trainer->eval.batch;
    KilnStatus status = kiln_loader_start(loader, 0, 0, err);

    while (status >= 0) {
        KilnBatch batch;

        if (kiln_trainer_interrupted(trainer))
            return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted");
        status = kiln_loader_next(loader, &batch, err);
        if (status >= 0 && prediction->nomem)
            status = kiln_error_nomem(err, sizeof(KilnUnreadSample));
        if (status < 0 || batch.size == 0)
            break;
        status = predict_batch(prediction, before, &batch, err);
    }
    return status;
}

/* ---- Sets ------------------------------------------------------------------------------ */

/* The spec of a set's loader. Of a user's input, samples that can't be read are skipped. */
static KilnLoaderSpec spec_of(Prediction *prediction, size_t set)
{
    KilnLoaderSpec spec = kiln_trainer_loader_spec(prediction->trainer, prediction->trainer->split,
                                                   set);

    if (prediction->input == NULL)
        return spec;
    spec.tolerant = true;
    spec.on_skip = note_unread;
    spec.ctx = prediction;
    return spec;
}

static void enter_set(KilnTrainer *trainer, size_t set)
{
    kiln_picture_names_release(&trainer->picture_names);
    trainer->eval.set = set;
    trainer->step.set = trainer->data.sets[trainer->split].list[set].name;
}

static KilnStatus predict_set(Prediction *prediction, size_t set, KilnError *err)
{
    KilnTrainer *trainer = prediction->trainer;
    KilnLoaderSpec spec = spec_of(prediction, set);
    KilnLoader *loader = NULL;

    enter_set(trainer, set);
    if (spec.limit == 0)
        return KILN_OK;
    KilnStatus status = kiln_loader_new(&spec, &loader, err);
    if (status >= 0)
        status = predict_batches(prediction, loader, err);
    kiln_loader_free(loader);
    return status;
}

/* Open the input as the only set of the test split. */
static KilnStatus open_input(Prediction *prediction, KilnError *err)
{
    KilnTrainer *trainer = prediction->trainer;
    KilnSplitSets *sets = &trainer->data.sets[trainer->split];

    *sets = (KilnSplitSets) { .list[0].name = "", .n = 1, .opened = true };
    return kiln_input_open(&trainer->data.input, trainer->datamodule, &trainer->data.spec,
                           prediction->input, &trainer->poll, &sets->list[0].dataset, err);
}

/* Open and check all sets before anything is predicted. */
static KilnStatus open_sets(Prediction *prediction, KilnError *err)
{
    KilnTrainer *trainer = prediction->trainer;
    const KilnSplit split = trainer->split;
    KilnStatus status = prediction->input != NULL ? open_input(prediction, err)
                                                  : kiln_trainer_open_split(trainer, split, err);

    kiln_preparation_end(trainer);
    for (size_t set = 0; set < trainer->data.sets[split].n && status >= 0; set++)
        status = kiln_trainer_check_limit(trainer, split, set, err);
    if (status < 0)
        return status;
    kiln_data_summary_warn(trainer);
    trainer->eval.batches = kiln_trainer_split_batches(trainer, split);
    if (prediction->input != NULL || trainer->eval.batches > 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_MISSING,
                          "datamodule %s has no %s samples (or limit_predict_batches=0)",
                          kiln_instance_name(trainer->datamodule), kiln_split_name(split));
}

/* Predict all sets, one after the other. */
static KilnStatus predict_all(Prediction *prediction, KilnError *err)
{
    KilnTrainer *trainer = prediction->trainer;
    KilnSplitSets *sets = &trainer->data.sets[trainer->split];
    KilnStatus status = open_sets(prediction, err);

    if (status < 0)
        return status;
    trainer->timing.phase_start = kiln_clock();
    enter_set(trainer, 0);
    status = KILN_CALL(trainer, on_predict_start, err);
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_epoch_start, err);
    for (size_t set = 0; set < sets->n && status >= 0; set++)
        status = predict_set(prediction, set, err);
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_epoch_end, err);
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_end, err);
    clear_unread(trainer);
    kiln_data_summary_warn_skipped(trainer);
    if (status >= 0 && prediction->failed > 0)
        status = kiln_error_set(err, prediction->first.status,
                                "%lld of %lld inputs could not be read; the first: %s",
                                (long long)prediction->failed,
                                (long long)sets->list[0].dataset.count, prediction->first.text);
    return status;
}

/* ---- The run ----------------------------------------------------------------------------- */

static KilnStatus predict(Prediction *prediction, KilnError *err)
{
    KilnStatus status = kiln_predictor_start(prediction->predictor, err);

    kiln_stop_monitor_begin(prediction->trainer, false);
    if (status >= 0)
        status = predict_all(prediction, err);
    return kiln_predictor_end(prediction->predictor, status, err);
}

KilnStatus kiln_run_predict(KilnConfig *config, const KilnRunEnv *env, KilnSplit split,
                            const char *input, KilnError *err)
{
    const KilnPredictorBuild build = {
        .config = config,
        .env = env,
        .split = input != NULL ? KILN_TEST : split,
        .remembered = input != NULL,
        .callbacks = true,
        .max_calls = 1,
    };
    Prediction prediction = { .input = input };
    KilnStatus status = kiln_predictor_build(&build, &prediction.predictor, err);

    if (status >= 0)
        status = kiln_predict_slot_take(&prediction.predictor->slots, &prediction.slot, err);
    if (status >= 0) {
        prediction.trainer = prediction.predictor->trainer;
        status = predict(&prediction, err);
    }
    kiln_predictor_free(prediction.predictor);
    return status;
}
