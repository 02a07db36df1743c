/* Predictors: results equal those of a prediction run, also of calls in several threads; errors of
 * samples and of opening; the bound on plans. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "tests/support/data/lines_data.h"
#include "tests/support/run_fixture.h"
#include "train/predict/predictor.h"
#include "train/trainer.h"

enum { POINTS = 19, WIDTH = 2, THREADS = 4, CALLS = 60, MOST = 9 };

/* ---- Runs and predictors ------------------------------------------------------------------- */

/* Keeps the outputs of a prediction run. */
static float kept[POINTS][WIDTH];

static KilnStatus keep(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    KilnOutputView outputs[KILN_STEP_OUTPUTS];
    int64_t n = 0;
    const int64_t *samples = kiln_trainer_batch_samples(trainer, &n);

    (void)self;
    (void)err;
    assert_int_equal(kiln_trainer_outputs(trainer, outputs), 1);
    for (int64_t i = 0; i < n; i++)
        memcpy(kept[samples[i]], outputs[0].data + i * WIDTH, sizeof(kept[0]));
    return KILN_OK;
}

static const KilnCallbackOps keep_ops = { .on_predict_batch_end = keep };
static const KilnComponent keep_component = {
    .kind = KILN_KIND_CALLBACK,
    .name = "test_keep",
    .summary = "Keep the outputs",
    .ops.callback = &keep_ops,
};

static const KilnComponent *const components[] = { &keep_component, &lines_component,
                                                   &scale_component, NULL };

/* Open the last checkpoint of work/run. */
static KilnStatus try_open(const Composed *with, const char *const *overrides, int max_calls,
                           KilnPredictor **ret, KilnError *err)
{
    char path[128];
    const KilnPredictorSpec spec = {
        .registry = with->registry,
        .ckpt_path = path,
        .overrides = overrides,
        .max_calls = max_calls,
    };

    snprintf(path, sizeof(path), "%s/run", work);
    return kiln_predictor_open(&spec, ret, err);
}

static KilnPredictor *open_predictor(const Composed *with, int max_calls)
{
    KilnPredictor *predictor = NULL;
    KilnError err = { 0 };

    if (try_open(with, NULL, max_calls, &predictor, &err) < 0)
        fail_msg("%s", err.text);
    return predictor;
}

/* A run named "run", and what its components need. */
static void train(Composed *ret, const char *overrides)
{
    static const char *const none[] = { NULL };

    extra_components = components;
    fit_well("run", overrides, "finished");
    compose(ret, none);
}

#define LINES                                                                                      \
    "task._target_=module/test_scale datamodule._target_=datamodule/test_lines "                   \
    "trainer.max_epochs=1 test=false"

/* Raw samples of points: their numbers. */
typedef struct Numbers {
    KilnRawValue values[POINTS];
    KilnRawSample samples[POINTS];
} Numbers;

static void numbers_from(Numbers *ret, int first)
{
    for (int i = 0; i < POINTS; i++) {
        ret->values[i] = (KilnRawValue) { .type = KILN_RAW_NUMBER, .number = (first + i) % POINTS };
        ret->samples[i] = (KilnRawSample) { .values = &ret->values[i], .n_values = 1 };
    }
}

static KilnPredictions *predict(KilnPredictor *predictor, const KilnRawSample *samples, size_t n)
{
    KilnPredictions *predictions = NULL;
    KilnError err = { 0 };

    if (kiln_predict(predictor, samples, n, &predictions, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(predictions->n, n);
    return predictions;
}

/* ---- Results ------------------------------------------------------------------------------- */

/* The bytes of `kiln predict` on the same samples, in batches of the same size. */
static void equals_a_prediction_run(void **unused)
{
    char path[128];
    const char *overrides[] = { path, "++callbacks.keep._target_=callback/test_keep", NULL };
    Numbers numbers;
    KilnError err = { 0 };
    Composed run, with;

    (void)unused;
    train(&with, "trainer.max_epochs=3");
    snprintf(path, sizeof(path), "ckpt_path=%s/run", work);
    compose(&run, overrides);
    if (kiln_run_predict(run.config, &run.env, KILN_TEST, "points", &err) < 0)
        fail_msg("%s", err.text);
    composed_free(&run);

    KilnPredictor *predictor = open_predictor(&with, 0);
    numbers_from(&numbers, 0);
    KilnPredictions *predictions = predict(predictor, numbers.samples, POINTS);
    for (size_t i = 0; i < POINTS; i++) {
        const KilnPrediction *one = &predictions->list[i];
        const KilnOutputView *output = kiln_prediction_output(one, "probabilities");

        assert_int_equal(one->status, KILN_OK);
        assert_null(one->error);
        assert_non_null(output);
        assert_int_equal(one->n_outputs, 1);
        assert_int_equal(output->shape.rank, 1);
        assert_int_equal(output->shape.dim[0], WIDTH);
        assert_memory_equal(output->data, kept[i], sizeof(kept[i]));
        assert_null(kiln_prediction_output(one, "logits"));
    }
    kiln_predictions_free(predictions);
    predictions = predict(predictor, NULL, 0);
    kiln_predictions_free(predictions);
    kiln_predictor_free(predictor);
    composed_free(&with);
}

static void describes_itself(void **unused)
{
    const KilnRawField *fields = NULL;
    Composed with;

    (void)unused;
    train(&with, "trainer.max_epochs=1");
    KilnPredictor *predictor = open_predictor(&with, 0);
    const KilnDataSpec *spec = kiln_predictor_data_spec(predictor);
    assert_string_equal(spec->class_names[1], "above");
    assert_string_equal(spec->features[0].name, "x");
    assert_int_equal(kiln_predictor_fields(predictor, &fields), 1);
    assert_string_equal(fields[0].name, "index");
    assert_non_null(strstr(kiln_predictor_checkpoint(predictor), "/run/checkpoints/"));
    kiln_predictor_free(predictor);
    composed_free(&with);
}

/* ---- Threads ------------------------------------------------------------------------------- */

typedef struct Caller {
    KilnPredictor *predictor;
    float (*want)[POINTS][MOST][WIDTH]; /* [number of samples - 1][first][sample] */
    int start;
    atomic_int *wrong;
    pthread_t thread;
} Caller;

/* Call with other samples, and other numbers of them, in each turn. */
static void *call(void *arg)
{
    Caller *caller = arg;

    for (int turn = 0; turn < CALLS; turn++) {
        const int first = (caller->start + 7 * turn) % POINTS;
        const size_t n = 1 + (size_t)(caller->start + turn) % MOST;
        KilnPredictions *predictions = NULL;
        Numbers numbers;

        numbers_from(&numbers, first);
        if (kiln_predict(caller->predictor, numbers.samples, n, &predictions, NULL) < 0) {
            atomic_fetch_add(caller->wrong, 1);
            return NULL;
        }
        for (size_t i = 0; i < n; i++)
            if (memcmp(predictions->list[i].outputs[0].data, caller->want[n - 1][first][i],
                       sizeof(caller->want[0][0][0])) != 0)
                atomic_fetch_add(caller->wrong, 1);
        kiln_predictions_free(predictions);
    }
    return NULL;
}

/* The bytes of the same calls one after the other. */
static void concurrent_calls(int max_calls)
{
    static float want[MOST][POINTS][MOST][WIDTH];
    Caller callers[THREADS];
    atomic_int wrong = 0;
    Numbers numbers;
    Composed with;

    train(&with, "trainer.max_epochs=3");
    KilnPredictor *predictor = open_predictor(&with, max_calls);
    for (size_t n = 1; n <= MOST; n++)
        for (int first = 0; first < POINTS; first++) {
            numbers_from(&numbers, first);
            KilnPredictions *predictions = predict(predictor, numbers.samples, n);
            for (size_t i = 0; i < n; i++)
                memcpy(want[n - 1][first][i], predictions->list[i].outputs[0].data,
                       sizeof(want[0][0][0]));
            kiln_predictions_free(predictions);
        }
    assert_int_equal(predictor->slots.n, 1);
    for (int i = 0; i < THREADS; i++) {
        callers[i] =
            (Caller) { .predictor = predictor, .want = want, .start = 5 * i, .wrong = &wrong };
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(callers[i].thread, NULL);
    assert_int_equal(wrong, 0);
    assert_true(predictor->slots.n <= max_calls);
    kiln_predictor_free(predictor);
    composed_free(&with);
}

static void threads_share_a_predictor(void **unused)
{
    (void)unused;
    concurrent_calls(THREADS);
}

static void further_calls_wait(void **unused)
{
    (void)unused;
    concurrent_calls(1);
}

/* ---- Varying lengths ----------------------------------------------------------------------- */

/* A raw line of that length; its values are 0, 1, 2, ... */
static KilnRawValue line_of(int64_t length)
{
    static float numbers[(LINES_LONGEST + 1) * LINES_WIDTH];

    for (size_t i = 0; i < KILN_COUNT(numbers); i++)
        numbers[i] = (float)i;
    return (KilnRawValue) {
        .name = "line",
        .type = KILN_RAW_ARRAY,
        .data = numbers,
        .dtype = KILN_F32,
        .shape = KILN_SHAPE(length, LINES_WIDTH),
    };
}

/* A batch is padded to the longest of its samples, or the bucket above it. */
static void lengths_may_differ(void **unused)
{
    static const int64_t lengths[] = { 3, 7, 1 };
    static const char *const buckets[] = { "datamodule.buckets=[2,8]", NULL };
    KilnRawValue values[3];
    KilnRawSample samples[3];
    KilnPredictor *predictor = NULL;
    KilnError err = { 0 };
    Composed with;

    (void)unused;
    train(&with, LINES);
    if (try_open(&with, buckets, 0, &predictor, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++) {
        values[i] = line_of(lengths[i]);
        samples[i] = (KilnRawSample) { .values = &values[i], .n_values = 1 };
    }
    KilnPredictions *predictions = predict(predictor, samples, 3);
    const KilnOutputView *first = &predictions->list[0].outputs[0];
    for (int i = 0; i < 3; i++) {
        const KilnOutputView *output = &predictions->list[i].outputs[0];

        assert_int_equal(output->shape.rank, 2);
        assert_int_equal(output->shape.dim[0], 8);
        for (int64_t j = 0; j < 8 * LINES_WIDTH; j++)
            assert_true(output->data[j] ==
                        (j < lengths[i] * LINES_WIDTH
                             ? (float)j * (j % 2 == 0 ? first->data[2] / 2.0f : first->data[1])
                             : 0.0f));
    }
    kiln_predictions_free(predictions);

    KilnSample *prepared = NULL;
    assert_int_equal(kiln_predictor_preprocess(predictor, &samples[1], &prepared, &err), KILN_OK);
    assert_int_equal(prepared->lengths[0], 7);
    assert_memory_equal(prepared->data[0], values[1].data, 7 * LINES_WIDTH * sizeof(float));
    kiln_predictor_sample_free(predictor, prepared);
    kiln_predictor_free(predictor);
    composed_free(&with);
}

/* All plans of all slots together stay within trainer.plan_cache. */
static void plans_are_bounded(void **unused)
{
    enum { LIMIT = 64 << 10, BUCKETS = 48, MAX_CALLS = 2 };
    char buckets[512] = "datamodule.buckets=[1";
    const char *overrides[] = { buckets, "trainer.plan_cache=64KiB", NULL };
    KilnPredictor *predictor = NULL;
    KilnError err = { 0 };
    Composed with;

    (void)unused;
    for (int i = 2; i <= BUCKETS; i++)
        snprintf(buckets + strlen(buckets), sizeof(buckets) - strlen(buckets), ",%d%s", i,
                 i == BUCKETS ? "]" : "");
    train(&with, LINES);
    if (try_open(&with, overrides, MAX_CALLS, &predictor, &err) < 0)
        fail_msg("%s", err.text);
    const KilnPlanCache *cache = &predictor->trainer->graph->plan_cache;
    assert_int_equal(cache->limit, LIMIT / MAX_CALLS);
    for (int turn = 0; turn < 2; turn++)
        for (int64_t length = 1; length <= BUCKETS; length++)
            for (size_t n = 1; n <= 3; n++) {
                KilnRawValue values[3];
                KilnRawSample samples[3];

                for (size_t i = 0; i < n; i++) {
                    values[i] = line_of(length);
                    samples[i] = (KilnRawSample) { .values = &values[i], .n_values = 1 };
                }
                kiln_predictions_free(predict(predictor, samples, n));
                assert_true(cache->bytes <= cache->limit);
            }
    assert_true(cache->made > 3 * BUCKETS);
    assert_true(cache->kept < 3 * BUCKETS);
    kiln_predictor_free(predictor);
    composed_free(&with);
}

/* ---- Errors -------------------------------------------------------------------------------- */

/* A bad sample has its own error; the others are computed as if it were not there. */
static void a_bad_sample_does_not_matter(void **unused)
{
    static const char *const broken[] = { "datamodule.broken_at=4", NULL };
    KilnPredictor *predictor = NULL;
    Numbers numbers;
    KilnError err = { 0 };
    Composed with;

    (void)unused;
    train(&with, "trainer.max_epochs=1");
    if (try_open(&with, broken, 0, &predictor, &err) < 0)
        fail_msg("%s", err.text);
    numbers_from(&numbers, 0);
    const KilnRawValue misnamed = { .name = "number", .type = KILN_RAW_NUMBER };
    const KilnRawValue text = { .name = "index", .type = KILN_RAW_TEXT, .text = "2" };
    numbers.values[1] = misnamed;
    numbers.values[2] = text;
    KilnPredictions *predictions = predict(predictor, numbers.samples, 8);
    assert_int_equal(predictions->list[1].status, KILN_E_KEY);
    assert_non_null(strstr(predictions->list[1].error, "number"));
    assert_int_equal(predictions->list[2].status, KILN_E_TYPE);
    assert_non_null(strstr(predictions->list[2].error, "index"));
    assert_int_equal(predictions->list[4].status, KILN_E_FORMAT);
    assert_string_equal(predictions->list[4].error, "point 4 is broken");
    assert_int_equal(predictions->list[4].n_outputs, 0);

    const KilnRawSample good[] = { numbers.samples[0], numbers.samples[3], numbers.samples[5],
                                   numbers.samples[6], numbers.samples[7] };
    static const size_t rows[] = { 0, 3, 5, 6, 7 };
    KilnPredictions *others = predict(predictor, good, KILN_COUNT(good));
    for (size_t i = 0; i < KILN_COUNT(rows); i++)
        assert_memory_equal(predictions->list[rows[i]].outputs[0].data,
                            others->list[i].outputs[0].data, WIDTH * sizeof(float));
    kiln_predictions_free(predictions);
    kiln_predictions_free(others);

    predictions = predict(predictor, &numbers.samples[1], 2); /* none is good */
    assert_null(predictions->list[0].outputs);
    kiln_predictions_free(predictions);
    kiln_predictor_free(predictor);
    composed_free(&with);
}

static void refuse(const Composed *with, const char *override, KilnStatus want, const char *says)
{
    const char *const overrides[] = { override, NULL };
    KilnPredictor *predictor = NULL;
    KilnError err = { 0 };
    const KilnStatus status = try_open(with, overrides, 0, &predictor, &err);

    if (status != want || strstr(err.text, says) == NULL)
        fail_msg("%s: status %d: %s", override, status, err.text);
    assert_null(predictor);
}

static void opening_can_fail(void **unused)
{
    char path[160];
    KilnPredictor *predictor = NULL;
    KilnError err = { 0 };
    Composed with;

    (void)unused;
    train(&with, "trainer.max_epochs=1");
    refuse(&with, "task.hiden=3", KILN_E_KEY, "hiden");
    refuse(&with, "task.hidden=3", KILN_E_FORMAT, "hidden.weight");
    refuse(&with, "datamodule={_target_:datamodule/test_nowhere}", KILN_E_KEY, "test_nowhere");

    const KilnPredictorSpec nowhere = { .registry = with.registry, .ckpt_path = "no/such/run" };
    assert_int_equal(kiln_predictor_open(&nowhere, &predictor, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "no/such/run: there is no such folder"));

    predictor = open_predictor(&with, 0);
    snprintf(path, sizeof(path), "%s/model.safetensors", kiln_predictor_checkpoint(predictor));
    kiln_predictor_free(predictor);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_equal(fputc('x', file), 'x');
    fclose(file);
    refuse(&with, "trainer.threads=1", KILN_E_FORMAT, "model.safetensors");
    composed_free(&with);
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, make_work, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(equals_a_prediction_run),      RUN_TEST(describes_itself),
        RUN_TEST(threads_share_a_predictor),    RUN_TEST(further_calls_wait),
        RUN_TEST(lengths_may_differ),           RUN_TEST(plans_are_bounded),
        RUN_TEST(a_bad_sample_does_not_matter), RUN_TEST(opening_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
