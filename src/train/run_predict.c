/* kiln_run_predict: one line of JSON a sample of what a user names. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "train/checkpoint.h"

/* A sample that could not be read. */
typedef struct Failure {
    int64_t sample;
    char *message;
} Failure;

/* A prediction while it goes through the input. */
typedef struct Predictor {
    KilnTrainer *trainer;
    KilnBatch batch;
    void (*write)(void *ctx, const char *line);
    void *ctx;
    int64_t failed;
    KilnError first; /* the first sample that can't be read */
    /* Those of the batches since the last line, in order. */
    Failure *failures;
    size_t n_failures, capacity;
    bool nomem;
} Predictor;

/* ---- Lines ------------------------------------------------------------------------------ */

static json_t *file_json(const Predictor *predictor, int64_t sample)
{
    const char *name = kiln_trainer_sample_name(predictor->trainer, sample);

    if (name != NULL)
        return json_string(name);
    return json_sprintf("%lld", (long long)sample);
}

static KilnStatus write_json(const Predictor *predictor, json_t *line, KilnError *err)
{
    char *text = line != NULL ? json_dumps(line, JSON_REAL_PRECISION(9)) : NULL;

    json_decref(line);
    if (text == NULL)
        return kiln_error_nomem(err, 1);
    predictor->write(predictor->ctx, text);
    free(text);
    return KILN_OK;
}

/* Lines are in the input's order: those of samples below `before` that failed. */
static KilnStatus write_failures(Predictor *predictor, int64_t before, KilnError *err)
{
    KilnStatus status = KILN_OK;
    size_t done = 0;

    while (done < predictor->n_failures && predictor->failures[done].sample < before) {
        Failure *failure = &predictor->failures[done++];

        if (status >= 0)
            status = write_json(predictor,
                                json_pack("{s:o, s:s}", "file",
                                          file_json(predictor, failure->sample), "error",
                                          failure->message),
                                err);
        free(failure->message);
    }
    if (done == 0) /* perhaps there is no list yet */
        return KILN_OK;
    predictor->n_failures -= done;
    memmove(predictor->failures, predictor->failures + done,
            predictor->n_failures * sizeof(*predictor->failures));
    return status;
}

/* The name of the largest of n probabilities; NULL when there is no such class. */
static const char *class_of(const KilnDataSpec *spec, const float *row, int64_t n)
{
    int64_t best = 0;

    for (int64_t i = 1; i < n; i++)
        if (row[i] > row[best])
            best = i;
    return n > 0 && n == spec->n_classes ? spec->class_names[best] : NULL;
}

static json_t *sample_json(const Predictor *predictor, int64_t row)
{
    const KilnStep *step = &predictor->trainer->step;
    json_t *line = json_pack("{s:o}", "file", file_json(predictor, predictor->batch.samples[row]));

    for (size_t i = 0; i < step->n_outputs; i++) {
        int64_t width = kiln_shape_count(kiln_tensor_shape(step->outputs[i].value)) /
                        predictor->batch.size;
        const float *values = (const float *)kiln_tensor_data(step->outputs[i].value) + row * width;
        json_t *list = json_array();

        if (strcmp(step->outputs[i].name, "probabilities") == 0) {
            const char *name = class_of(step->spec, values, width);

            if (name != NULL)
                json_object_set_new(line, "class", json_string(name));
        }
        for (int64_t j = 0; j < width; j++)
            json_array_append_new(list, json_real((double)values[j]));
        json_object_set_new(line, step->outputs[i].name, list);
    }
    return line;
}

/* ---- Batches --------------------------------------------------------------------------- */

/* A file that can't be read gets a line of its own and does not stop the others. */
static void note_failure(void *ctx, int64_t sample, KilnStatus status, const char *message)
{
    Predictor *predictor = ctx;

    if (predictor->failed++ == 0)
        kiln_error_set(&predictor->first, status, "%s", message);
    if (predictor->n_failures == predictor->capacity) {
        size_t capacity = 2 * predictor->capacity + 16;
        Failure *more = realloc(predictor->failures, capacity * sizeof(*more));

        predictor->nomem |= more == NULL;
        if (more == NULL)
            return;
        predictor->failures = more;
        predictor->capacity = capacity;
    }
    char *copy = kiln_strdup(message);
    predictor->nomem |= copy == NULL;
    if (copy != NULL)
        predictor->failures[predictor->n_failures++] = (Failure) { sample, copy };
}

static KilnStatus predict_batch(Predictor *predictor, KilnError *err)
{
    KilnTrainer *trainer = predictor->trainer;

    KilnStatus status = KILN_CALL(trainer, on_predict_batch_start, err);

    if (status < 0)
        return status;
    kiln_step_begin(&trainer->step, KILN_PHASE_PREDICT, false, &predictor->batch,
                    (uint64_t)trainer->options.root->seed, 0);
    kiln_instance_component(trainer->module)
        ->ops.module->predict_step(trainer->module, &trainer->step);
    status = kiln_step_run(&trainer->step, NULL, err);
    for (int64_t row = 0; row < predictor->batch.size && status >= 0; row++) {
        status = write_failures(predictor, predictor->batch.samples[row], err);
        if (status >= 0)
            status = write_json(predictor, sample_json(predictor, row), err);
    }
    trainer->eval_batch = predictor->batch.index + 1;
    trainer->timing.phase_samples += predictor->batch.size;
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_batch_end, err);
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
        if (kiln_trainer_interrupted(trainer))
            return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted");
        status = kiln_loader_next(loader, &predictor->batch, err);
        if (status >= 0 && predictor->nomem)
            status = kiln_error_nomem(err, sizeof(Failure));
        if (status < 0 || predictor->batch.size == 0)
            break;
        status = predict_batch(predictor, err);
    }
    if (status >= 0)
        status = write_failures(predictor, INT64_MAX, err);
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
    status = ops->open_input(trainer->datamodule, input, &predictor->trainer->input, err);
    if (status < 0)
        return status;
    KilnLoaderSpec spec = kiln_trainer_input_spec(trainer, &predictor->trainer->input);
    const int64_t batches = kiln_loader_spec_batches(&spec);
    status = kiln_trainer_predict_batches(trainer, batches, &spec.limit, err);
    if (status < 0)
        return status;
    spec.left_out = note_failure;
    spec.ctx = predictor;
    status = kiln_loader_new(&spec, &loader, err);
    if (status >= 0)
        status = predict_batches(predictor, loader, err);
    kiln_loader_free(loader);
    if (status >= 0 && predictor->failed > 0)
        status = kiln_error_set(err, predictor->first.status,
                                "%lld of %lld inputs could not be read; the first: %s",
                                (long long)predictor->failed,
                                (long long)predictor->trainer->input.count, predictor->first.text);
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
                            void (*write)(void *ctx, const char *line), void *ctx, KilnError *err)
{
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));
    Predictor predictor = { .trainer = trainer, .write = write, .ctx = ctx };
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
    for (size_t i = 0; i < predictor.n_failures; i++)
        free(predictor.failures[i].message);
    free(predictor.failures);
    kiln_trainer_release(trainer);
    kiln_checkpoint_close(&checkpoint);
    free(trainer);
    return status;
}
