/* Times optimizer updates alone, over a flat vector of parameters.
 *
 *     optimizers [PARAMETERS [THREADS [ROUNDS [USED]]]]
 *
 * Prints for each optimizer the median and minimum milliseconds of an update, the bytes of memory
 * it must move per parameter, and the resulting peak GB/s. Also prints the extra minimum time of an
 * update that computes the norms of PARTS parts of the gradient, as for the flight recorder; both
 * run alternately. With USED the parameters are an embedding with rows of 64, and sgd, adagrad and
 * adam update all of it, or by turns USED rows that each round draws. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "kiln.h"

enum { PARTS = 8 };

typedef struct Bench {
    KilnGraph *graph;
    int64_t n;
    float *param, *grad, *slots[KILN_MAX_SLOTS];
    int64_t parts[PARTS];
    float norms[PARTS];
} Bench;

static float *vector(int64_t n, float value)
{
    size_t bytes = ((size_t)n * sizeof(float) + 63) / 64 * 64;
    float *values = aligned_alloc(64, bytes);

    if (values == NULL)
        exit(1);
    for (int64_t i = 0; i < n; i++)
        values[i] = value + (float)(i % 1000) * 1e-6f;
    return values;
}

static void update(KilnFlat *flat, int which)
{
    switch (which) {
    case 0:
        kiln_sgd_update(flat, (KilnSgd) { 0 });
        break;
    case 1:
        kiln_sgd_update(flat, (KilnSgd) { .momentum = 0.9 });
        break;
    case 2:
    case 8:
        kiln_adam_update(flat, (KilnAdam) { 0.9, 0.999, 1e-8, .decoupled = true });
        break;
    case 3:
        kiln_rmsprop_update(flat, (KilnRmsprop) { .alpha = 0.99, .eps = 1e-8 });
        break;
    case 4:
        kiln_adagrad_update(flat, (KilnAdagrad) { .eps = 1e-10 });
        break;
    case 5:
        kiln_lamb_update(flat, (KilnLamb) { 0.9, 0.999, 1e-6, .always_adapt = true });
        break;
    case 6:
        kiln_lion_update(flat, (KilnLion) { 0.9, 0.99 });
        break;
    default:
        kiln_adan_update(flat, (KilnAdan) { 0.98, 0.92, 0.99, 1e-8, .no_prox = false });
        break;
    }
}

/* hyper: how many values; bytes: moved per parameter. */
static const struct {
    const char *name;
    int slots, hyper, bytes;
} rows[] = {
    { "sgd", 0, 2, 12 },     { "sgd momentum", 1, 2, 20 }, { "adamw", 2, 3, 28 },
    { "rmsprop", 1, 1, 20 }, { "adagrad", 1, 2, 20 },      { "lamb", 2, 3, 40 },
    { "lion", 1, 1, 20 },    { "adan", 4, 5, 44 },         { "adamw clip norm", 2, 3, 32 },
};

static double once(Bench *bench, size_t which, bool measures)
{
    static const float hyper[5] = { 1e-6f, 0.5f, 0.5f, 0.5f, 0.0f };
    static const float sgd[2] = { 1e-6f, 0.0f };
    const KilnShape shape = KILN_SHAPE(bench->n);
    KilnGraph *graph = bench->graph;
    KilnError err;

    kiln_graph_begin(graph);
    KilnFlat flat = {
        .param = kiln_graph_variable(graph, KILN_F32, shape, bench->param, false, NULL),
        .grad = kiln_graph_input(graph, KILN_F32, shape, bench->grad),
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(rows[which].hyper),
                                  rows[which].hyper == 2 ? sgd : hyper),
    };
    for (int i = 0; i < rows[which].slots; i++)
        flat.slots[i] = kiln_graph_variable(graph, KILN_F32, shape, bench->slots[i], false, NULL);
    if (which == KILN_COUNT(rows) - 1)
        flat.scale = kiln_clip_factor(kiln_l2_norm(flat.grad), 1.0);
    if (measures) {
        flat.part_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(PARTS), bench->parts);
        flat.norms = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(PARTS), bench->norms, false,
                                         NULL);
    }
    update(&flat, (int)which);
    double start = kiln_clock();
    if (kiln_graph_run(graph, NULL, 0, &err) < 0) {
        fprintf(stderr, "optimizers: %s\n", err.text);
        exit(1);
    }
    return kiln_clock() - start;
}

/* ---- Rows of an embedding ----------------------------------------------------------- */

enum { WIDTH = 64 };

static const struct {
    const char *name;
    int which; /* of update() */
} sparse[] = { { "sgd", 0 }, { "adagrad", 4 }, { "adam", 2 } };

/* The update of the listed rows alone. */
static double once_rows(Bench *bench, size_t which, int32_t *list)
{
    static const float hyper[3] = { 1e-6f, 0.5f, 0.5f }, two[2] = { 1e-6f, 0.0f };
    const int64_t n = bench->n / WIDTH;
    const KilnShape shape = KILN_SHAPE(n, WIDTH);
    const int row = sparse[which].which;
    KilnGraph *graph = bench->graph;
    KilnError err;

    kiln_graph_begin(graph);
    KilnFlat flat = {
        .param = kiln_graph_variable(graph, KILN_F32, shape, bench->param, false, NULL),
        .grad = kiln_graph_input(graph, KILN_F32, shape, bench->grad),
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(rows[row].hyper),
                                  rows[row].hyper == 2 ? two : hyper),
        .segment_ends = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(1 + 2 * n), list),
    };
    for (int i = 0; i < rows[row].slots; i++)
        flat.slots[i] = kiln_graph_variable(graph, KILN_F32, shape, bench->slots[i], false, NULL);
    update(&flat, row);
    const double start = kiln_clock();
    if (kiln_graph_run(graph, NULL, 0, &err) < 0) {
        fprintf(stderr, "optimizers: %s\n", err.text);
        exit(1);
    }
    return kiln_clock() - start;
}

/* One row of each of `used` equal parts of the table. */
static void draw_rows(int32_t *list, int64_t n, int64_t used, uint64_t seed)
{
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < used; i++)
        list[1 + i] = (int32_t)(i * (n / used) + kiln_rng_below(&rng, (uint32_t)(n / used)));
    list[0] = (int32_t)used;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *times, int64_t rounds)
{
    qsort(times, (size_t)rounds, sizeof(*times), compare);
    return 1e3 * times[rounds / 2];
}

static void time_rows(Bench *bench, int64_t used, int64_t rounds, double *times, double *all)
{
    const int64_t n = bench->n / WIDTH;
    int32_t *list = calloc((size_t)(1 + 2 * n), sizeof(*list));

    if (list == NULL)
        exit(1);
    for (size_t k = 0; k < KILN_COUNT(sparse); k++) {
        draw_rows(list, n, used, 0);
        (void)once_rows(bench, k, list);
        (void)once(bench, (size_t)sparse[k].which, false);
        for (int64_t i = 0; i < rounds; i++) {
            draw_rows(list, n, used, (uint64_t)i + 1);
            times[i] = once_rows(bench, k, list);
            all[i] = once(bench, (size_t)sparse[k].which, false);
        }
        printf("%-8s %lld of %lld rows %8.4f ms   all rows %8.3f ms\n", sparse[k].name,
               (long long)used, (long long)n, median(times, rounds), median(all, rounds));
    }
    free(list);
}

static int64_t argument(int argc, char **argv, int i, int64_t dflt)
{
    int64_t value = dflt;

    if (i < argc && kiln_parse_i64(argv[i], &value, NULL) < 0)
        exit(2);
    return value;
}

int main(int argc, char **argv)
{
    Bench bench = { .n = argument(argc, argv, 1, 25000000) };
    int64_t threads = argument(argc, argv, 2, 2), rounds = argument(argc, argv, 3, 9);
    const int64_t used = argument(argc, argv, 4, 0);
    double *times = calloc((size_t)rounds, sizeof(*times));
    double *measured = calloc((size_t)rounds, sizeof(*measured));
    KilnBackend *backend = NULL;
    KilnError err;

    if (times == NULL || measured == NULL ||
        kiln_backend_cpu_new((int)threads, &backend, &err) < 0 ||
        kiln_graph_new(backend, &bench.graph, &err) < 0)
        return 1;
    bench.param = vector(bench.n, 0.5f);
    bench.grad = vector(bench.n, 0.01f);
    for (int i = 0; i < KILN_MAX_SLOTS; i++)
        bench.slots[i] = vector(bench.n, 0.01f);
    for (int i = 0; i < PARTS; i++)
        bench.parts[i] = bench.n * (i + 1) / PARTS;
    if (used > 0)
        time_rows(&bench, used, rounds, times, measured);
    for (size_t k = 0; k < KILN_COUNT(rows) && used == 0; k++) {
        (void)once(&bench, k, false);
        (void)once(&bench, k, true);
        for (int64_t i = 0; i < rounds; i++) {
            times[i] = once(&bench, k, false);
            measured[i] = once(&bench, k, true);
        }
        qsort(times, (size_t)rounds, sizeof(*times), compare);
        qsort(measured, (size_t)rounds, sizeof(*measured), compare);
        printf("%-16s %8.3f ms, least %8.3f ms %4d B/parameter %6.1f GB/s   norms %+7.1f us\n",
               rows[k].name, 1e3 * times[rounds / 2], 1e3 * times[0], rows[k].bytes,
               1e-9 * (double)rows[k].bytes * (double)bench.n / times[0],
               1e6 * (measured[0] - times[0]));
    }
    kiln_graph_free(bench.graph);
    kiln_backend_free(backend);
    free(times);
    free(measured);
    free(bench.param);
    free(bench.grad);
    for (int i = 0; i < KILN_MAX_SLOTS; i++)
        free(bench.slots[i]);
    return 0;
}
