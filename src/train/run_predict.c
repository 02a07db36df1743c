/* kiln_run_predict: the predict loop over what a user names. What comes out of it is written by
 * callbacks (prediction_writer). */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "train/checkpoint.h"

/* A prediction while it goes through the input. */
typedef struct Predictor {
    KilnTrainer *trainer;
    int64_t failed;
    KilnError first; /* the first sample that can't be read */
    bool nomem;
} Predictor;

/* ---- Samples that can't be read --------------------------------------------------------- */

/* They don't stop the others; callbacks hear of them with the batch. */
static void note_unread(void *ctx, int64_t sample, KilnStatus status, const char *message)
{
    Predictor *predictor = ctx;
    KilnTrainer *trainer = predictor->trainer;

    if (predictor->failed++ == 0)
        kiln_error_set(&predictor->first, status, "%s", message);
    if (trainer->n_unread == trainer->unread_room) {
        size_t room = 2 * trainer->unread_room + 16;
        KilnUnread *more = realloc(trainer->unread, room * sizeof(*more));

        predictor->nomem |= more == NULL;
        if (more == NULL)
            return;
        trainer->unread = more;
        trainer->unread_room = room;
    }
    char *copy = kiln_strdup(message);
    predictor->nomem |= copy == NULL;
    if (copy != NULL)
        trainer->unread[trainer->n_unread++] = (KilnUnread) { sample, copy };
}

static void clear_unread(KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->n_unread; i++)
        free(trainer->unread[i].message);
    trainer->n_unread = 0;
}

/* ---- Batches --------------------------------------------------------------------------- */

static KilnStatus predict_batch(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    KilnStatus status = KILN_CALL(trainer, on_predict_batch_start, err);

    if (status < 0)
        return status;
    kiln_step_begin(&trainer->step, KILN_PHASE_PREDICT, false, batch,
                    (uint64_t)trainer->options.root->seed, 0);
    kiln_instance_component(trainer->module)
        ->ops.module->predict_step(trainer->module, &trainer->step);
    status = kiln_step_run(&trainer->step, NULL, err);
    trainer->eval_batch = batch->index + 1;
    trainer->timing.phase_samples += batch->size;
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_batch_end, err);
    clear_unread(trainer);
    return status;
}

static KilnStatus predict_batches(Predictor *predictor, KilnLoader *loader, KilnError *err)
{
    KilnTrainer *trainer = predictor->trainer;
    KilnStatus status = kiln_loader_start(loader, 0, 0, err);

    trainer->eval_batches = kiln_loader_batches(loader);
    trainer->timing.phase_start = kiln_clock();
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_start, err);
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_epoch_start, err);
    while (status >= 0) {
        KilnBatch batch;

        if (kiln_trainer_interrupted(trainer))
            return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted");
        status = kiln_loader_next(loader, &batch, err);
        if (status >= 0 && predictor->nomem)
            status = kiln_error_nomem(err, sizeof(KilnUnread));
        if (status < 0 || batch.size == 0)
            break;
        status = predict_batch(trainer, &batch, err);
    }
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_epoch_end, err);
    return status >= 0 ? KILN_CALL(trainer, on_predict_end, err) : status;
}

static KilnStatus predict_all(Predictor *predictor, const char *input, KilnError *err)
{
    KilnTrainer *trainer = predictor->trainer;
    const KilnDataModuleOps *ops = kiln_instance_component(trainer->datamodule)->ops.datamodule;
    KilnLoader *loader = NULL;
    KilnStatus status;

    if (ops->open_input == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "datamodule %s can't read input by path",
                              kiln_instance_name(trainer->datamodule));
    status = ops->open_input(trainer->datamodule, input, &trainer->input, err);
    if (status < 0)
        return status;
    KilnLoaderSpec spec = kiln_trainer_input_spec(trainer, &trainer->input);
    const int64_t batches = kiln_loader_spec_batches(&spec);
    status = kiln_trainer_predict_batches(trainer, batches, &spec.limit, err);
    if (status < 0)
        return status;
    spec.left_out = note_unread;
    spec.ctx = predictor;
    status = kiln_loader_new(&spec, &loader, err);
    if (status >= 0)
        status = predict_batches(predictor, loader, err);
    kiln_loader_free(loader);
    clear_unread(trainer);
    if (status >= 0 && predictor->failed > 0)
        status = kiln_error_set(
            err, predictor->first.status, "%lld of %lld inputs could not be read; the first: %s",
            (long long)predictor->failed, (long long)trainer->input.count, predictor->first.text);
    return status;
}

/* ---- The whole ------------------------------------------------------------------------- */

static KilnStatus predict(Predictor *predictor, const KilnCheckpoint *checkpoint, const char *input,
                          KilnError *err)
{
    KilnStatus status = KILN_CALL(predictor->trainer, setup, err);

    if (status >= 0)
        status = kiln_checkpoint_load_module(checkpoint, predictor->trainer, err);
    if (status >= 0)
        status = predict_all(predictor, input, err);
    return kiln_hooks_end(predictor->trainer, status, err);
}

KilnStatus kiln_run_predict(KilnConfig *config, const KilnRunEnv *env, const char *input,
                            KilnError *err)
{
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));
    Predictor predictor = { .trainer = trainer };
    KilnCheckpoint checkpoint = { 0 };

    if (trainer == NULL)
        return kiln_error_nomem(err, sizeof(*trainer));
    KilnStatus status = kiln_checkpoint_open_configured(config, &checkpoint, err);
    if (status >= 0)
        status = kiln_trainer_assemble(trainer, config, env, KILN_STAGE_PREDICT, &checkpoint.spec,
                                       err);
    if (status >= 0)
        status = kiln_checkpoint_load_weights(&checkpoint, trainer, err);
    if (status >= 0)
        status = predict(&predictor, &checkpoint, input, err);
    kiln_trainer_release(trainer);
    kiln_checkpoint_close(&checkpoint);
    free(trainer);
    return status;
}
