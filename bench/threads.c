/* Counts how evenly threads share the work of operations that are hard to split, with their
 * gradients: total processor time over that of the busiest thread, which bounds the speedup on as
 * many cores. It needs no such machine: on fewer cores the threads take turns.
 *
 *   make build/release/bench/threads
 *   OMP_WAIT_POLICY=passive threads [THREADS [32|bf16]]
 *
 * Passive, since waiting threads should count nothing. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/steps.h"
#include "tests/support/ops/case.h"

enum { MOST_THREADS = 256, WARM = 2 };
static const double seconds = 0.4; /* of measuring each */

BUILD(build_matmul)
{
    UNUSED_ARG;
    return kiln_matmul(leaf[0], leaf[1], false, false);
}

BUILD(build_linear)
{
    UNUSED_ARG;
    return kiln_linear(leaf[0], leaf[1], leaf[2]);
}

BUILD(build_rotary)
{
    UNUSED_ARG;
    return kiln_rotary(leaf[0], (KilnRotary) { 0 });
}

BUILD(build_attention)
{
    UNUSED_ARG;
    return kiln_attention_packed(leaf[0], (KilnAttention) { .causal = true });
}

BUILD(build_lstm)
{
    UNUSED_ARG;
    return kiln_lstm(leaf[0], leaf[1], (KilnRecurrent) { 0 }).y;
}

BUILD(build_cross_entropy)
{
    UNUSED_ARG;
    return kiln_cross_entropy(leaf[0], leaf[1], (KilnCrossEntropy) { 0 });
}

BUILD(build_layer_norm)
{
    UNUSED_ARG;
    return kiln_layer_norm(leaf[0], leaf[1], leaf[2], 1, 1e-5);
}

BUILD(build_batch_norm)
{
    UNUSED_ARG;
    return kiln_batch_norm(leaf[0], leaf[1], leaf[2], leaf[3], leaf[4],
                           (KilnBatchNorm) { .eps = 1e-5, .momentum = 0.1, .training = true });
}

BUILD(build_embedding)
{
    UNUSED_ARG;
    return kiln_index_select(leaf[0], 0, leaf[1]);
}

static const Case cases[] = {
    { "linear 2048 x 384 -> 1536", build_linear, "ggg",
      .shape = { SHAPE(2048, 384), SHAPE(1536, 384), SHAPE(1536) } },
    { "linear 32768 x 16 -> 24", build_linear, "ggg",
      .shape = { SHAPE(32768, 16), SHAPE(24, 16), SHAPE(24) } },
    { "192 products of 48 x 64 x 48", build_matmul, "gg",
      .shape = { SHAPE(192, 48, 64), SHAPE(192, 64, 48) } },
    { "rotary, 512 positions, 4 heads of 64", build_rotary, "g",
      .shape = { SHAPE(1, 512, 4, 64) } },
    { "attention, 1 head, 1024 positions", build_attention, "g",
      .shape = { SHAPE(1, 1024, 3, 1, 64) } },
    { "attention, 8 x 6 heads, 256 positions", build_attention, "g",
      .shape = { SHAPE(8, 256, 3, 6, 64) } },
    { "LSTM, 1 sequence, width 512", build_lstm, "gg",
      .shape = { SHAPE(32, 1, 2048), SHAPE(2048, 512) } },
    { "LSTM, 6 sequences, width 512", build_lstm, "gg",
      .shape = { SHAPE(32, 6, 2048), SHAPE(2048, 512) } },
    { "LSTM, 64 sequences, width 256", build_lstm, "gg",
      .shape = { SHAPE(32, 64, 1024), SHAPE(1024, 256) } },
    { "cross entropy, 2048 x 8192", build_cross_entropy, "gL",
      .shape = { SHAPE(2048, 8192), SHAPE(2048) }, .arg = { 8192 } },
    { "layer norm, 2048 x 384", build_layer_norm, "ggg",
      .shape = { SHAPE(2048, 384), SHAPE(384), SHAPE(384) } },
    { "batch norm, 32 x 32 x 32 x 64", build_batch_norm, "gggvv",
      .shape = { SHAPE(32, 32, 32, 64), SHAPE(64), SHAPE(64), SHAPE(64), SHAPE(64) } },
    { "embedding, 4096 of 8192 rows of 256", build_embedding, "gL",
      .shape = { SHAPE(8192, 256), SHAPE(4096) }, .arg = { 8192 } },
};

/* ---- Processor time of threads -------------------------------------------------------- */

/* In seconds, by the thread's number in /proc/self/task. */
typedef struct Times {
    long id[MOST_THREADS];
    double seconds[MOST_THREADS];
    int n;
} Times;

static void read_times(Times *times)
{
    DIR *folder = opendir("/proc/self/task");

    times->n = 0;
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[300], text[100] = "";
        FILE *file = NULL;

        snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", entry->d_name);
        if (entry->d_name[0] == '.' || times->n == MOST_THREADS ||
            (file = fopen(path, "r")) == NULL)
            continue;
        if (fgets(text, sizeof(text), file) != NULL) {
            times->id[times->n] = strtol(entry->d_name, NULL, 10);
            times->seconds[times->n++] = 1e-9 * strtod(text, NULL);
        }
        fclose(file);
    }
    if (folder != NULL)
        closedir(folder);
}

/* Total over that of the busiest thread. */
static double bound(const Times *before, const Times *after)
{
    double total = 0.0, busiest = 0.0;

    for (int i = 0; i < after->n; i++) {
        double time = after->seconds[i];

        for (int k = 0; k < before->n; k++)
            if (before->id[k] == after->id[i])
                time -= before->seconds[k];
        total += time;
        busiest = time > busiest ? time : busiest;
    }
    return busiest > 0.0 ? total / busiest : 0.0;
}

/* ---- Measuring ------------------------------------------------------------------------- */

typedef struct Step {
    KilnGraph *graph;
    const Case *c;
    void *leaf[MAX_LEAVES], *grad[MAX_LEAVES];
} Step;

/* Numbers below `labels`, or floats around 0. */
static void *leaf_new(char kind, int64_t n, int64_t labels)
{
    int32_t *leaf = bench_alloc((size_t)n * sizeof(*leaf));
    KilnRng rng;

    kiln_rng_init(&rng, 3, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < n; i++)
        if (kind == LEAF_INDEX)
            leaf[i] = (int32_t)kiln_rng_below(&rng, (uint32_t)labels);
        else
            ((float *)leaf)[i] = 0.1f * kiln_rng_normal(&rng);
    return leaf;
}

static void run_step(Step *step)
{
    const Case *c = step->c;
    KilnTensor *leaf[MAX_LEAVES] = { NULL };
    KilnError err;

    kiln_graph_begin(step->graph);
    for (int i = 0; c->leaves[i] != '\0'; i++)
        leaf[i] = c->leaves[i] == LEAF_INDEX
                      ? kiln_graph_input(step->graph, KILN_I32, c->shape[i], step->leaf[i])
                      : kiln_graph_variable(step->graph, KILN_F32, c->shape[i], step->leaf[i],
                                            c->leaves[i] == LEAF_GRAD, step->grad[i]);

    KilnTensor *loss = kiln_sum(c->build(leaf, c->arg));

    kiln_graph_backward(step->graph, loss);
    bench_check(kiln_graph_run(step->graph, &loss, 1, &err), &err);
}

static void measure(KilnBackend *backend, KilnPrecision precision, const Case *c)
{
    static Times before, after;
    Step step = { .c = c };
    KilnError err;
    int runs = 0;

    bench_check(kiln_graph_new(backend, &step.graph, &err), &err);
    kiln_graph_set_precision(step.graph, precision);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        const int64_t n = kiln_shape_count(&c->shape[i]);

        step.leaf[i] = leaf_new(c->leaves[i], n, c->arg[0]);
        if (c->leaves[i] == LEAF_GRAD)
            step.grad[i] = bench_alloc((size_t)n * sizeof(float));
    }
    for (int i = 0; i < WARM; i++)
        run_step(&step);
    read_times(&before);
    const double start = kiln_clock();
    for (; kiln_clock() - start < seconds; runs++)
        run_step(&step);
    const double time = kiln_clock() - start;
    read_times(&after);
    printf("%-40s %9.3f ms %6.2f\n", c->name, 1e3 * time / runs, bound(&before, &after));
    kiln_graph_free(step.graph);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        free(step.leaf[i]);
        free(step.grad[i]);
    }
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 8;
    const bool bf16 = argc > 2 && strcmp(argv[2], "bf16") == 0;
    KilnBackend *backend = NULL;
    KilnError err;

    bench_check(kiln_backend_cpu_new(threads, &backend, &err), &err);
    printf("%-40s %12s %6s\n", "operation and gradient", "time", "bound");
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        measure(backend, bf16 ? KILN_BF16_MIXED : KILN_PRECISION_32, &cases[i]);
    kiln_backend_free(backend);
    return 0;
}
