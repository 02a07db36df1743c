/* Times training steps of a network through the library: declares the network, then records, runs
 * and updates in a loop. Prints one line of JSON and, with --profile, the time of each operation.
 */
#ifndef KILN_BENCH_STEPS_H
#define KILN_BENCH_STEPS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/system/zeros.h"
#include "graph/graph.h"
#include "graph/plan/profile.h"
#include "kiln/tools/clock.h"
#include "tests/nets/adam.h"

enum { BENCH_WARM = 4, BENCH_MOST = 2000, BENCH_KINDS = 128 };

typedef struct Bench {
    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    NetAdam adam;
    KilnTensor *(*loss)(struct Bench *bench); /* records the step */
    void *net;
    const void *inputs, *labels;
} Bench;

static inline void bench_check(KilnStatus status, const KilnError *err)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static inline void *bench_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static inline float bench_step(Bench *bench)
{
    KilnError err = { 0 };

    kiln_graph_begin(bench->graph);
    KilnTensor *loss = bench->loss(bench);
    kiln_graph_backward(bench->graph, loss);
    net_adam_update(&bench->adam, bench->params, bench->graph);
    bench_check(kiln_graph_run(bench->graph, &loss, 1, &err), &err);
    return (float)kiln_tensor_scalar(loss);
}

typedef struct BenchKind {
    const char *op;
    double seconds;
    int calls;
} BenchKind;

static inline int bench_by_time(const void *a, const void *b)
{
    double x = ((const BenchKind *)a)->seconds, y = ((const BenchKind *)b)->seconds;

    return x < y ? 1 : x > y ? -1 : 0;
}

static inline void bench_profile(const KilnGraph *graph)
{
    BenchKind kinds[BENCH_KINDS] = { 0 };
    KilnProfileRow row;
    int n = 0;

    for (size_t i = 0; kiln_graph_profile(graph, i, &row); i++) {
        int k = 0;

        while (k < n && strcmp(kinds[k].op, row.op) != 0)
            k++;
        if (k == n && n < BENCH_KINDS)
            kinds[n++].op = row.op;
        if (k < n && row.runs > 0) {
            kinds[k].seconds += row.seconds / (double)row.runs;
            kinds[k].calls++;
        }
    }
    qsort(kinds, (size_t)n, sizeof(kinds[0]), bench_by_time);
    for (int k = 0; k < n; k++)
        fprintf(stderr, "%-26s %4d calls %8.2f ms\n", kinds[k].op, kinds[k].calls,
                kinds[k].seconds * 1e3);
}

static inline int bench_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* For a declared network: allocates, measures for `seconds`, prints. */
static inline void bench_run(Bench *bench, double seconds, bool profile)
{
    static double times[BENCH_MOST];
    KilnError err = { 0 };
    struct rusage usage;
    int n = 0;
    float loss = 0.0f;

    bench_check(kiln_params_seal(bench->params, bench->backend, &err), &err);
    const size_t bytes = (size_t)kiln_params_size(bench->params) * sizeof(float);
    bench->adam.lr = 1e-3;
    bench->adam.average = kiln_zeros(bytes);
    bench->adam.square = kiln_zeros(bytes);
    for (int i = 0; i < BENCH_WARM; i++)
        loss = bench_step(bench);
    bench->graph->profile = profile;
    const double end = kiln_clock() + seconds;
    while (n < 5 || (kiln_clock() < end && n < BENCH_MOST)) {
        const double start = kiln_clock();

        loss = bench_step(bench);
        times[n++] = 1e3 * (kiln_clock() - start);
    }
    if (profile)
        bench_profile(bench->graph);
    qsort(times, (size_t)n, sizeof(times[0]), bench_ascending);
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"ms\": %.3f, \"peak_bytes\": %lld, \"activation_bytes\": %zu, \"steps\": %d, "
           "\"loss\": %.5f}\n",
           times[n / 2], 1024LL * (long long)usage.ru_maxrss, kiln_graph_bytes(bench->graph), n,
           (double)loss);
    kiln_zeros_free(bench->adam.average);
    kiln_zeros_free(bench->adam.square);
    kiln_params_free(bench->params);
    kiln_graph_free(bench->graph);
    kiln_backend_free(bench->backend);
}

/* Options of all benchmarks: [--threads N] [--seconds S] [--precision 32|bf16] [--profile]. */
typedef struct BenchOptions {
    int threads;
    double seconds;
    KilnPrecision precision;
    bool profile;
} BenchOptions;

static inline BenchOptions bench_options(int argc, char **argv)
{
    BenchOptions options = { .threads = 2, .seconds = 8.0 };

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--profile") == 0)
            options.profile = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            options.threads = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            options.seconds = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--precision") == 0 && i + 1 < argc)
            options.precision = strcmp(argv[++i], "bf16") == 0 ? KILN_BF16_MIXED
                                                               : KILN_PRECISION_32;
        else {
            fprintf(stderr,
                    "usage: %s [--threads N] [--seconds S] [--precision 32|bf16] "
                    "[--profile]\n",
                    argv[0]);
            exit(1);
        }
    }
    return options;
}

static inline void bench_open(Bench *bench, const BenchOptions *options)
{
    KilnError err = { 0 };

    bench_check(kiln_backend_cpu_new(options->threads, &bench->backend, &err), &err);
    bench_check(kiln_graph_new(bench->backend, &bench->graph, &err), &err);
    kiln_graph_set_precision(bench->graph, options->precision);
    bench_check(kiln_params_new(1, &bench->params, &err), &err);
}

#endif
