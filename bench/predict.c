/* Times a predictor on arrays in memory, from the inside out: computing a planned step (the floor),
 * the step of `kiln predict` (recorded, looked up and computed), a whole kiln_predict; then calls
 * of one and two threads at once. Medians and 99th percentiles of calls with one sample, and
 * samples per second of calls with one and with 32.
 *
 *   build/release/bench/predict RUN [OVERRIDE...] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "kiln/tools/clock.h"
#include "kiln_embed.h"
#include "train/predict/predictor.h"
#include "train/trainer.h"

enum { MOST = 32, WARM = 20, TIMES = 20000, MOST_THREADS = 2 };

static const double seconds_each = 2.0;

static void check(KilnStatus status, const KilnError *err)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

/* ---- Samples ----------------------------------------------------------------------- */

static KilnRawValue values[MOST];
static KilnRawSample samples[MOST];

/* Arrays in the shape of the network's first feature. */
static void make_samples(const KilnPredictor *predictor)
{
    const KilnFeature *feature = &kiln_predictor_data_spec(predictor)->features[0];
    const size_t count = (size_t)kiln_shape_count(&feature->shape);
    float *numbers = malloc(MOST * count * sizeof(*numbers));

    if (numbers == NULL)
        exit(1);
    for (size_t i = 0; i < MOST * count; i++)
        numbers[i] = (float)(i % 17) / 16.0f;
    for (size_t i = 0; i < MOST; i++) {
        values[i] = (KilnRawValue) { .type = KILN_RAW_ARRAY,
                                     .data = numbers + i * count,
                                     .dtype = KILN_F32,
                                     .shape = feature->shape };
        samples[i] = (KilnRawSample) { .values = &values[i], .n_values = 1 };
    }
}

/* ---- One call at a time -------------------------------------------------------------- */

typedef struct Turn {
    KilnPredictor *predictor;
    KilnPredictSlot *slot;
    KilnBatch batch;
    KilnPlan *plan;
} Turn;

/* Needs the step that was recorded last in the slot. */
static void compute(Turn *turn)
{
    KilnError err = { 0 };

    check(kiln_step_execute(turn->slot->step, NULL, turn->plan, &err), &err);
}

static void record(Turn *turn)
{
    KilnError err = { 0 };

    check(kiln_predictor_record(turn->predictor, turn->slot, &turn->batch, &turn->plan, &err),
          &err);
}

static void step(Turn *turn)
{
    KilnError err = { 0 };

    check(kiln_predictor_step(turn->predictor, turn->slot, &turn->batch, &err), &err);
}

static void predict_n(KilnPredictor *predictor, size_t n)
{
    KilnPredictions *predictions = NULL;
    KilnError err = { 0 };

    check(kiln_predict(predictor, samples, n, &predictions, &err), &err);
    kiln_predictions_free(predictions);
}

static void predict_one(Turn *turn)
{
    predict_n(turn->predictor, 1);
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double time_turn(void (*run)(Turn *turn), Turn *turn)
{
    const double start = kiln_clock();

    run(turn);
    return 1e6 * (kiln_clock() - start);
}

/* The parts in turn, so that what else the machine does slows them all. */
static void time_turns(Turn *turn)
{
    static const struct {
        const char *what;
        void (*run)(Turn *turn);
    } parts[] = {
        { "recording, finding the plan", record },
        { "computing", compute },
        { "the step of `kiln predict`", step },
        { "kiln_predict", predict_one },
    };
    static double times[KILN_COUNT(parts)][TIMES];
    const double end = kiln_clock() + 3.0 * seconds_each;
    int n = 0;

    for (int i = -WARM; i < TIMES && (n < WARM || kiln_clock() < end); i++) {
        for (size_t p = 0; p < KILN_COUNT(parts); p++)
            times[p][n] = time_turn(parts[p].run, turn);
        n += i >= 0;
    }
    for (size_t p = 0; p < KILN_COUNT(parts); p++) {
        qsort(times[p], (size_t)n, sizeof(times[p][0]), by_time);
        printf("%-34s %10.1f %10.1f\n", parts[p].what, times[p][n / 2], times[p][n * 99 / 100]);
    }
}

/* A batch of one sample, with its features as a loader gives them. */
static void time_one(KilnPredictor *predictor)
{
    const KilnDataSpec *spec = kiln_predictor_data_spec(predictor);
    const KilnDataset dataset = { .absent = predictor->preprocessor.absent };
    KilnBatchFeature *features = calloc(spec->n_features, sizeof(*features));
    Turn turn = { .predictor = predictor, .batch = { .size = 1, .dataset = &dataset } };
    KilnSample *prepared = NULL;
    KilnError err = { 0 };

    check(kiln_predictor_preprocess(predictor, &samples[0], &prepared, &err), &err);
    for (size_t f = 0; features != NULL && f < spec->n_features; f++)
        features[f].data = prepared->data[f];
    turn.batch.features = features;
    check(kiln_predict_slot_take(&predictor->slots, &turn.slot, &err), &err);
    printf("%-34s %10s %10s\n", "one sample, microseconds", "median", "99 %");
    time_turns(&turn);
    kiln_predict_slot_give_back(&predictor->slots, turn.slot);
    kiln_predictor_sample_free(predictor, prepared);
    free(features);
}

/* ---- Calls at once --------------------------------------------------------------------- */

typedef struct Caller {
    KilnPredictor *predictor;
    size_t n; /* samples of a call */
    double end;
    int64_t calls;
    pthread_t thread;
} Caller;

static void *call(void *arg)
{
    Caller *caller = arg;

    for (; kiln_clock() < caller->end; caller->calls++)
        predict_n(caller->predictor, caller->n);
    return NULL;
}

static double samples_per_s(KilnPredictor *predictor, int threads, size_t n)
{
    Caller callers[MOST_THREADS];
    int64_t calls = 0;
    const double start = kiln_clock();

    for (int i = 0; i < threads; i++) {
        callers[i] = (Caller) { .predictor = predictor, .n = n, .end = start + seconds_each };
        if (pthread_create(&callers[i].thread, NULL, call, &callers[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(callers[i].thread, NULL);
        calls += callers[i].calls;
    }
    return (double)calls * (double)n / (kiln_clock() - start);
}

static void time_threads(KilnPredictor *predictor)
{
    static const size_t sizes[] = { 1, MOST };

    printf("%-34s %10s %10s\n", "samples per second", "1 thread", "2 threads");
    for (size_t i = 0; i < KILN_COUNT(sizes); i++) {
        (void)samples_per_s(predictor, MOST_THREADS, sizes[i]); /* plans, memory */
        printf("calls of %-25zu %10.0f %10.0f\n", sizes[i], samples_per_s(predictor, 1, sizes[i]),
               samples_per_s(predictor, 2, sizes[i]));
    }
}

int main(int argc, char **argv)
{
    KilnPredictor *predictor = NULL;
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };

    if (argc < 2) {
        fputs("predict RUN [OVERRIDE...]\n", stderr);
        return 2;
    }
    check(kiln_registry_new(&registry, &err), &err);
    const KilnPredictorSpec spec = { .registry = registry,
                                     .ckpt_path = argv[1],
                                     .overrides = (const char *const *)argv + 2 };
    const double start = kiln_clock();
    check(kiln_predictor_open(&spec, &predictor, &err), &err);
    printf("%-34s %10.1f\n", "opening, milliseconds", 1e3 * (kiln_clock() - start));
    make_samples(predictor);
    time_one(predictor);
    time_threads(predictor);
    free((void *)values[0].data);
    kiln_predictor_free(predictor);
    kiln_registry_free(registry);
    return 0;
}
