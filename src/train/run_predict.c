/* kiln_run_predict: one line of JSON a sample of what a user names. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "train/checkpoint.h"

/* A prediction while it goes through the input. */
typedef struct Predictor {
    KilnTrainer *trainer;
    KilnDataset input;
    KilnBatch batch;
    int64_t *samples; /* which ones are in the batch */
    void (*write)(void *ctx, const char *line);
    void *ctx;
    int64_t failed;
    KilnError first; /* the first sample that can't be read */
} Predictor;

/* ---- Lines ------------------------------------------------------------------------------ */

static json_t *file_json(const Predictor *predictor, int64_t sample)
{
    if (predictor->input.name != NULL)
        return json_string(predictor->input.name(predictor->input.ctx, sample));
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

static KilnStatus write_failure(Predictor *predictor, int64_t sample, const KilnError *why,
                                KilnError *err)
{
    if (predictor->failed++ == 0)
        predictor->first = *why;
    return write_json(
        predictor,
        json_pack("{s:o, s:s}", "file", file_json(predictor, sample), "error", why->text), err);
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
    json_t *line = json_pack("{s:o}", "file", file_json(predictor, predictor->samples[row]));

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

/* ---- Batches ----------------------------------------------------------------------------------
 */

/* Run the batch that is full, or the rest. */
static KilnStatus flush(Predictor *predictor, KilnError *err)
{
    KilnTrainer *trainer = predictor->trainer;
    KilnStatus status = KILN_OK;

    if (predictor->batch.size == 0)
        return KILN_OK;
    status = KILN_CALL(trainer, on_predict_batch_start, err);
    if (status < 0)
        return status;
    kiln_step_begin(&trainer->step, KILN_PHASE_PREDICT, false, &predictor->batch,
                    (uint64_t)trainer->options.root->seed, 0);
    kiln_instance_component(trainer->module)
        ->ops.module->predict_step(trainer->module, &trainer->step);
    status = kiln_step_run(&trainer->step, NULL, err);
    for (int64_t row = 0; row < predictor->batch.size && status >= 0; row++)
        status = write_json(predictor, sample_json(predictor, row), err);
    trainer->eval_batch++;
    trainer->timing.phase_samples += predictor->batch.size;
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_batch_end, err);
    predictor->batch.size = 0;
    return status;
}

/* Read one sample behind those of the batch. A file that can't be read gets a
 * line of its own and does not stop the others. */
static KilnStatus add(Predictor *predictor, int64_t index, KilnError *err)
{
    const KilnDataSpec *spec = &predictor->trainer->spec;
    KilnSample sample = { { NULL } };
    KilnError why = { 0 };
    KilnRng rng;

    for (size_t f = 0; f < spec->n_features; f++)
        sample.data[f] =
            (char *)predictor->batch.data[f] +
            (size_t)(predictor->batch.size * kiln_shape_count(&spec->features[f].shape)) *
                kiln_dtype_size(spec->features[f].dtype);
    kiln_rng_init(&rng, (uint64_t)predictor->trainer->options.root->seed, KILN_RNG_AUGMENT, 0,
                  (uint64_t)index);
    KilnStatus status = predictor->input.get(predictor->input.ctx, index, &rng, &sample, &why);
    if (status == KILN_E_NOMEM)
        return kiln_error_set(err, status, "%s", why.text);
    if (status < 0) {
        /* What was read before it goes out first: lines are in the input's order. */
        status = flush(predictor, err);
        return status >= 0 ? write_failure(predictor, index, &why, err) : status;
    }
    predictor->samples[predictor->batch.size++] = index;
    return predictor->batch.size == predictor->trainer->batch_size ? flush(predictor, err)
                                                                   : KILN_OK;
}

static KilnStatus allocate(Predictor *predictor, KilnError *err)
{
    const KilnTrainer *trainer = predictor->trainer;

    predictor->samples = calloc((size_t)trainer->batch_size, sizeof(*predictor->samples));
    if (predictor->samples == NULL)
        return kiln_error_nomem(err, (size_t)trainer->batch_size);
    for (size_t f = 0; f < trainer->spec.n_features; f++) {
        size_t bytes =
            (size_t)(trainer->batch_size * kiln_shape_count(&trainer->spec.features[f].shape)) *
            kiln_dtype_size(trainer->spec.features[f].dtype);

        predictor->batch.data[f] = aligned_alloc(64, (bytes + 64) / 64 * 64);
        if (predictor->batch.data[f] == NULL)
            return kiln_error_nomem(err, bytes);
        memset(predictor->batch.data[f], 0, bytes);
    }
    return KILN_OK;
}

static KilnStatus predict_all(Predictor *predictor, const char *input, KilnError *err)
{
    KilnTrainer *trainer = predictor->trainer;
    const KilnDataModuleOps *ops = kiln_instance_component(trainer->datamodule)->ops.datamodule;
    KilnStatus status;

    if (ops->open_input == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "datamodule %s can't read input by path",
                              kiln_instance_name(trainer->datamodule));
    status = ops->open_input(trainer->datamodule, input, &predictor->input, err);
    if (status >= 0)
        status = allocate(predictor, err);
    if (status < 0)
        return status;
    trainer->eval_batches = (predictor->input.count + trainer->batch_size - 1) /
                            trainer->batch_size;
    trainer->timing.phase_start = kiln_clock();
    status = KILN_CALL(trainer, on_predict_start, err);
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_epoch_start, err);
    for (int64_t i = 0; status >= 0 && i < predictor->input.count; i++)
        status = kiln_trainer_interrupted(trainer)
                     ? kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted")
                     : add(predictor, i, err);
    if (status >= 0)
        status = flush(predictor, err);
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_epoch_end, err);
    if (status >= 0)
        status = KILN_CALL(trainer, on_predict_end, err);
    if (status >= 0 && predictor->failed > 0)
        status = kiln_error_set(
            err, predictor->first.status, "%lld of %lld inputs could not be read; the first: %s",
            (long long)predictor->failed, (long long)predictor->input.count, predictor->first.text);
    return status;
}

/* ---- The whole ---------------------------------------------------------------------------------
 */

static KilnStatus predict(Predictor *predictor, const char *input, KilnError *err)
{
    KilnStatus status = KILN_CALL(predictor->trainer, setup, err);

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
        status = predict(&predictor, input, err);
    for (size_t f = 0; f < KILN_MAX_FEATURES; f++)
        free(predictor.batch.data[f]);
    free(predictor.samples);
    kiln_trainer_release(trainer);
    kiln_checkpoint_close(&checkpoint);
    free(trainer);
    return status;
}
