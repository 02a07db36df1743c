/* A program that predicts arrays in memory, in two threads that share a predictor:
 *   cc predict.c -o predict -pthread $(pkg-config --cflags --libs kiln) && ./predict RUN */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <kiln_embed.h>

enum { THREADS = 2, PART = 4, SAMPLES = THREADS * PART };

typedef struct Part { /* of the samples, for one thread */
    KilnPredictor *predictor;
    const KilnRawSample *samples;
    size_t first;
    pthread_t thread;
} Part;

static void *predict(void *arg)
{
    const Part *part = arg;
    KilnPredictions *results = NULL;
    KilnError err = { 0 };

    if (kiln_predict(part->predictor, part->samples + part->first, PART, &results, &err) < 0)
        fprintf(stderr, "predict: %s\n", err.text);
    for (size_t i = 0; results != NULL && i < results->n; i++) {
        const KilnPrediction *one = &results->list[i];

        if (one->error != NULL)
            printf("%zu: %s\n", part->first + i, one->error);
        else
            printf("%zu: %.9g\n", part->first + i, (double)one->outputs[0].data[0]);
    }
    kiln_predictions_free(results);
    return NULL;
}

/* Predict samples of the shape of the network's first feature. */
static void predict_arrays(KilnPredictor *predictor)
{
    const KilnShape shape = kiln_predictor_data_spec(predictor)->features[0].shape;
    const size_t count = (size_t)kiln_shape_count(&shape);
    float *numbers = malloc(SAMPLES * count * sizeof(*numbers));
    KilnRawValue values[SAMPLES];
    KilnRawSample samples[SAMPLES];
    Part parts[THREADS];

    for (size_t i = 0; i < SAMPLES * count; i++)
        numbers[i] = (float)(i % 9) / 8.0f;
    for (size_t i = 0; i < SAMPLES; i++) {
        values[i] = (KilnRawValue) { .type = KILN_RAW_ARRAY, .dtype = KILN_F32, .shape = shape };
        values[i].data = numbers + i * count;
        samples[i] = (KilnRawSample) { .values = &values[i], .n_values = 1 };
    }
    for (size_t t = 0; t < THREADS; t++) {
        parts[t] = (Part) { .predictor = predictor, .samples = samples, .first = t * PART };
        pthread_create(&parts[t].thread, NULL, predict, &parts[t]);
    }
    for (size_t t = 0; t < THREADS; t++)
        pthread_join(parts[t].thread, NULL);
    free(numbers);
}

int main(int argc, char **argv)
{
    KilnPredictor *predictor = NULL;
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_registry_new(&registry, &err);
    const KilnPredictorSpec spec = { .registry = registry,
                                     .ckpt_path = argc > 1 ? argv[1] : "last" };

    if (status >= 0 && (status = kiln_predictor_open(&spec, &predictor, &err)) >= 0)
        predict_arrays(predictor);
    else
        fprintf(stderr, "predict: %s\n", err.text);
    kiln_predictor_free(predictor);
    kiln_registry_free(registry);
    return status < 0;
}
