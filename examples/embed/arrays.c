/* Trains on arrays in memory, then predicts other arrays with two predictors in two threads:
 *   cc arrays.c -o arrays -pthread $(pkg-config --cflags --libs kiln)
 *   ./arrays datamodule=arrays task=classification model=mlp optimizer=adam lr=0.01 */
#include <pthread.h>
#include <stdio.h>
#include <kiln_embed.h>

enum { TRAIN = 2000, TEST = 500 };
static float points[TRAIN + TEST][2];
static int32_t labels[TRAIN + TEST]; /* 1 within a circle */
static const KilnFeature features[] = {
    { .name = "point", .content = KILN_VECTOR, .shape = { 1, { 2 } } },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
};
static const KilnArray arrays[] = { { .name = "point", .data = points },
                                    { .name = "label", .dtype = KILN_I32, .data = labels } };
static const KilnMemoryData data = {
    .spec = { .features = features, .n_features = 2, .n_classes = 2 },
    .sets[KILN_TRAIN] = { .n = TRAIN, .arrays = arrays, .n_arrays = 2 },
};
static KilnRegistry *registry;
static KilnRunResult run;

static void *predict(void *ret) /* the probability of class 1 of each test point */
{
    const KilnPredictorSpec spec = { .registry = registry, .ckpt_path = run.run_dir };
    KilnPredictor *predictor = NULL;
    KilnPredictions *results = NULL;
    KilnRawValue values[TEST];
    KilnRawSample samples[TEST];
    KilnError err = { 0 };
    for (int i = 0; i < TEST; i++) {
        values[i] = (KilnRawValue) { .type = KILN_RAW_ARRAY,
                                     .data = points[TRAIN + i],
                                     .shape = { 1, { 2 } } };
        samples[i] = (KilnRawSample) { .values = &values[i], .n_values = 1 };
    }
    if (kiln_predictor_open(&spec, &predictor, &err) < 0 ||
        kiln_predict(predictor, samples, TEST, &results, &err) < 0 || results->list[0].status < 0)
        fprintf(stderr, "arrays: %s\n", results == NULL ? err.text : results->list[0].error);
    for (int i = 0; results != NULL && i < TEST && results->list[i].status == KILN_OK; i++)
        ((float *)ret)[i] = results->list[i].outputs[0].data[1];
    kiln_predictions_free(results);
    kiln_predictor_free(predictor);
    return NULL;
}

int main(int argc, char **argv)
{
    static float here[TEST], there[TEST];
    KilnComposeRequest request = { .overrides = (const char *const *)argv + (argc > 0) };
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    pthread_t thread;
    int right = 0;
    for (int i = 0; i < TRAIN + TEST; i++) {
        const float x = points[i][0] = (float)(i * 37 % 101 - 50) / 50.0f;
        const float y = points[i][1] = (float)(i * 61 % 103 - 51) / 51.0f;
        labels[i] = x * x + y * y < 0.64f;
    }
    if (kiln_registry_new(&registry, &err) < 0 || kiln_errors_new(&errors) < 0)
        return 1;
    const KilnRunEnv env = { .registry = request.registry = registry, .data = &data };
    request.sections = kiln_run_sections();
    if (kiln_compose(&request, &config, errors) < 0 ||
        kiln_config_check(config, registry, errors) < 0)
        fprintf(stderr, "arrays: %s\n", kiln_errors_text(errors, 0));
    else if (kiln_run_fit(config, &env, &run, &err) < 0)
        fprintf(stderr, "arrays: %s\n", err.text);
    else if (pthread_create(&thread, NULL, predict, there) == 0 && predict(here) == NULL &&
             pthread_join(thread, NULL) == 0)
        for (int i = 0; i < TEST; i++)
            right += here[i] > 0 && here[i] == there[i] && (here[i] > 0.5f) == labels[TRAIN + i];
    kiln_config_free(config);
    kiln_errors_free(errors);
    kiln_registry_free(registry);
    return right == 0 || printf("%d of %d right, in both threads\n", right, TEST) < 0;
}
