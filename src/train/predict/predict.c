/* kiln_predict: prepares raw samples, batches them and runs the predict step on each batch. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "train/predict/predictor.h"
#include "train/predict/prepare.h"
#include "train/step/row_results_state.h"
#include "train/trainer.h"

/* The results, and the memory of all that they point to. */
typedef struct Results {
    KilnPredictions predictions; /* comes first: the caller's pointer is to it */
    KilnArena arena;
    KilnPrediction *list;
} Results;

/* Some samples of a call, at most a batch. */
typedef struct Chunk {
    const KilnDataSpec *spec;
    KilnPrepared *prepared;
    KilnPrediction *list; /* their results */
} Chunk;

/* ---- The prepared samples as a dataset ----------------------------------------------------- */

static KilnStatus get_prepared(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                               KilnError *err)
{
    const Chunk *chunk = ctx;
    const KilnPrepared *prepared = &chunk->prepared[index];

    (void)rng;
    if (prepared->sample == NULL)
        return kiln_error_set(err, prepared->status, "%s", prepared->error);
    kiln_features_move(chunk->spec, prepared->sample, sample);
    return KILN_OK;
}

static void lengths_of_prepared(void *ctx, int64_t index, int64_t *ret)
{
    const Chunk *chunk = ctx;

    if (chunk->prepared[index].sample != NULL)
        memcpy(ret, chunk->prepared[index].sample->lengths, chunk->spec->n_features * sizeof(*ret));
}

/* ---- Results ------------------------------------------------------------------------------- */

/* Copy the outputs of the step that has run, a view of each for each of its samples. */
static KilnStatus take_outputs(const KilnStep *step, const KilnBatch *batch, KilnArena *arena,
                               KilnPrediction *list, KilnError *err)
{
    const size_t n = step->n_outputs, rows = (size_t)batch->size;
    KilnOutputView *views = kiln_arena_alloc(arena, (rows * n + 1) * sizeof(*views));

    for (size_t i = 0; i < n && !arena->failed; i++) {
        const KilnTensor *value = step->outputs[i].value;
        const size_t bytes = kiln_tensor_bytes(value);
        KilnShape shape = *kiln_tensor_shape(value);
        char *copy = kiln_arena_alloc(arena, bytes);

        if (copy == NULL)
            break;
        memcpy(copy, kiln_tensor_data(value), bytes);
        shape.rank--;
        memmove(shape.dim, shape.dim + 1, (size_t)shape.rank * sizeof(shape.dim[0]));
        for (size_t row = 0; row < rows; row++)
            views[row * n + i] = (KilnOutputView) {
                .name = step->outputs[i].name,
                .shape = shape,
                .data = (const float *)(const void *)(copy + row * (bytes / rows)),
            };
    }
    if (arena->failed)
        return kiln_error_nomem(err, rows * n * sizeof(*views));
    for (size_t row = 0; row < rows; row++) {
        list[batch->samples[row]].outputs = views + row * n;
        list[batch->samples[row]].n_outputs = n;
    }
    return KILN_OK;
}

/* Copy the results beside the outputs. */
static KilnStatus take_results(const KilnStep *step, const KilnBatch *batch, KilnArena *arena,
                               KilnPrediction *list, KilnError *err)
{
    const KilnRowResult *given;
    const size_t n = kiln_step_results(step, &given);

    for (int64_t row = 0; row < batch->size && n > 0; row++) {
        KilnPrediction *to = &list[batch->samples[row]];
        KilnNamedResult *results = kiln_arena_alloc(arena, n * sizeof(*results));

        for (size_t i = 0; i < n && results != NULL; i++)
            if (given[i].values[row] != NULL)
                results[to->n_results++] = (KilnNamedResult) {
                    .name = given[i].name,
                    .json = kiln_arena_strdup(arena, given[i].values[row]),
                };
        to->results = results;
    }
    return arena->failed ? kiln_error_nomem(err, n * sizeof(KilnNamedResult)) : KILN_OK;
}

static KilnStatus take_errors(const KilnPrepared *prepared, size_t n, KilnArena *arena,
                              KilnPrediction *list, KilnError *err)
{
    for (size_t i = 0; i < n; i++) {
        list[i].status = prepared[i].status;
        if (prepared[i].error != NULL)
            list[i].error = kiln_arena_strdup(arena, prepared[i].error);
    }
    return arena->failed ? kiln_error_nomem(err, n) : KILN_OK;
}

void kiln_predictions_free(KilnPredictions *predictions)
{
    Results *results = (Results *)predictions;

    if (results == NULL)
        return;
    kiln_arena_release(&results->arena);
    free(results->list);
    free(results);
}

const KilnOutputView *kiln_prediction_output(const KilnPrediction *prediction, const char *name)
{
    for (size_t i = 0; i < prediction->n_outputs; i++)
        if (strcmp(prediction->outputs[i].name, name) == 0)
            return &prediction->outputs[i];
    return NULL;
}

/* ---- Predicting ---------------------------------------------------------------------------- */

/* The loader of a chunk fills its batches in this thread, as those of `kiln predict` are filled. */
static KilnLoaderSpec loader_spec(const KilnPredictor *predictor, Chunk *chunk, size_t n)
{
    KilnLoaderSpec spec = kiln_trainer_loader_spec(predictor->trainer, KILN_TEST, 0);

    spec.dataset = (KilnDataset) {
        .count = (int64_t)n,
        .ctx = chunk,
        .get = get_prepared,
        .lengths = lengths_of_prepared,
        .absent = predictor->preprocessor.absent,
    };
    spec.limit = -1;
    spec.workers = 0;
    spec.tolerant = true;
    spec.on_skip = NULL;
    spec.poll = NULL; /* the trainer's is for one thread */
    return spec;
}

static KilnStatus predict_prepared(KilnPredictor *predictor, Chunk *chunk, size_t n,
                                   Results *results, KilnError *err)
{
    const KilnLoaderSpec spec = loader_spec(predictor, chunk, n);
    KilnPredictSlot *slot = NULL;
    KilnLoader *loader = NULL;
    KilnBatch batch;
    KilnStatus status = kiln_loader_new(&spec, &loader, err);

    if (status >= 0)
        status = kiln_loader_start(loader, 0, 0, err);
    if (status >= 0)
        status = kiln_loader_next(loader, &batch, err);
    if (status >= 0 && batch.size > 0) {
        status = kiln_predict_slot_take(&predictor->slots, &slot, err);
        if (status >= 0)
            status = kiln_predictor_step(predictor, slot, &batch, err);
        if (status >= 0)
            status = take_outputs(slot->step, &batch, &results->arena, chunk->list, err);
        if (status >= 0)
            status = take_results(slot->step, &batch, &results->arena, chunk->list, err);
        if (slot != NULL)
            kiln_predict_slot_give_back(&predictor->slots, slot);
    }
    kiln_loader_free(loader);
    return status;
}

/* Predict at most a batch of samples. */
static KilnStatus predict_chunk(KilnPredictor *predictor, const KilnRawSample *samples, size_t n,
                                KilnPrediction *list, Results *results, KilnError *err)
{
    const KilnDataSpec *spec = &predictor->trainer->data.spec;
    Chunk chunk = { .spec = spec, .prepared = calloc(n, sizeof(*chunk.prepared)), .list = list };

    if (chunk.prepared == NULL)
        return kiln_error_nomem(err, n * sizeof(*chunk.prepared));
    KilnStatus status = kiln_prepare(&predictor->preprocessor, samples, n,
                                     predictor->trainer->threads, chunk.prepared, err);
    if (status >= 0)
        status = take_errors(chunk.prepared, n, &results->arena, list, err);
    if (status >= 0)
        status = predict_prepared(predictor, &chunk, n, results, err);
    kiln_prepared_release(spec, chunk.prepared, n);
    free(chunk.prepared);
    return status;
}

KilnStatus kiln_predict(KilnPredictor *predictor, const KilnRawSample *samples, size_t n,
                        KilnPredictions **ret, KilnError *err)
{
    const size_t most = (size_t)predictor->trainer->data.batch_size;
    Results *results = calloc(1, sizeof(*results));
    KilnPrediction *list = calloc(n + 1, sizeof(*list));
    KilnStatus status = KILN_OK;

    if (results == NULL || list == NULL) {
        free(results);
        free(list);
        return kiln_error_nomem(err, n * sizeof(*list));
    }
    results->list = list;
    results->predictions = (KilnPredictions) { .list = list, .n = n };
    for (size_t i = 0; i < n && status >= 0; i += most) {
        const size_t part = n - i < most ? n - i : most;

        status = predict_chunk(predictor, samples + i, part, list + i, results, err);
    }
    if (status < 0) {
        kiln_predictions_free(&results->predictions);
        return status;
    }
    *ret = &results->predictions;
    return KILN_OK;
}
