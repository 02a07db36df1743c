/* Times the kernels of a ResNet-18 training step (small stem, 10 classes) on 32x32 images, with
 * both convolution algorithms and in bf16: per operation, and relative to the arithmetic of the
 * convolutions.
 *
 *   make build/release/bench/kernels_resnet
 *   kernels_resnet [BATCH [THREADS [PEAK_GFLOPS]]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/parse.h"
#include "graph/plan/profile.h"
#include "kiln/rng.h"
#include "kiln/tools/clock.h"

enum { MAX_PARAMS = 256, RUNS = 9, MAX_KINDS = 64 };

typedef struct Net {
    KilnGraph *graph;
    float *values[MAX_PARAMS], *grads[MAX_PARAMS];
    int n, next;  /* created so far; used in this step */
    double flops; /* of the convolutions in one step */
} Net;

static void *checked(void *memory)
{
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* The next parameter, drawn around `mean` if new. */
static KilnTensor *param(Net *net, KilnShape shape, double mean, double deviation, bool trained)
{
    const size_t count = (size_t)kiln_shape_count(&shape);
    const int i = net->next++;

    if (i == net->n) {
        KilnRng rng;

        kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, (uint64_t)i);
        net->values[i] = checked(malloc(count * sizeof(float)));
        net->grads[i] = checked(calloc(count, sizeof(float)));
        for (size_t k = 0; k < count; k++)
            net->values[i][k] = (float)(mean + deviation * (double)kiln_rng_normal(&rng));
        net->n++;
    }
    return kiln_graph_variable(net->graph, KILN_F32, shape, net->values[i], trained,
                               trained ? net->grads[i] : NULL);
}

static KilnTensor *conv_norm(Net *net, KilnTensor *x, int64_t out, int64_t kernel, int64_t stride)
{
    const KilnConv conv = { .stride = stride, .padding = kernel / 2 };
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = true };
    const int64_t in = kiln_tensor_dim(x, -1);
    const double deviation = sqrt(2.0 / (double)(out * kernel * kernel));
    KilnTensor *weight = param(net, KILN_SHAPE(out, in, kernel, kernel), 0.0, deviation, true);
    KilnTensor *y = kiln_conv2d(x, weight, NULL, conv);
    KilnTensor *affine[4];

    for (int i = 0; i < 4; i++)
        affine[i] = param(net, KILN_SHAPE(out), i % 3 == 0 ? 1.0 : 0.0, 0.0, i < 2);
    net->flops += 2.0 * (in == 3 ? 2.0 : 3.0) *
                  (double)(kiln_shape_count(kiln_tensor_shape(y)) * in * kernel * kernel);
    return kiln_batch_norm(y, affine[0], affine[1], affine[2], affine[3], norm);
}

static KilnTensor *block(Net *net, KilnTensor *x, int64_t out, int64_t stride)
{
    KilnTensor *y = kiln_relu(conv_norm(net, x, out, 3, stride));

    y = conv_norm(net, y, out, 3, 1);
    if (stride != 1 || kiln_tensor_dim(x, -1) != out)
        x = conv_norm(net, x, out, 1, stride);
    return kiln_relu(kiln_add(y, x));
}

static KilnTensor *resnet18(Net *net, KilnTensor *x, KilnTensor *labels)
{
    x = kiln_relu(conv_norm(net, x, 64, 3, 1));
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < 2; i++)
            x = block(net, x, (int64_t)64 << stage, stage > 0 && i == 0 ? 2 : 1);
    x = kiln_flatten(kiln_adaptive_avg_pool2d(x, 1, 1));
    x = kiln_linear(x, param(net, KILN_SHAPE(10, 512), 0.0, 0.04, true),
                    param(net, KILN_SHAPE(10), 0.0, 0.0, true));
    return kiln_cross_entropy(x, labels, (KilnCrossEntropy) { 0 });
}

static void step(Net *net, int64_t batch, const float *images, const int32_t *labels)
{
    KilnError err = { 0 };

    kiln_graph_begin(net->graph);
    net->next = 0;
    net->flops = 0.0;

    KilnTensor *loss =
        resnet18(net, kiln_graph_input(net->graph, KILN_F32, KILN_SHAPE(batch, 32, 32, 3), images),
                 kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(batch), labels));

    kiln_graph_backward(net->graph, loss);
    if (kiln_graph_run(net->graph, &loss, 1, &err) != KILN_OK) {
        fprintf(stderr, "kernels_resnet: %s\n", err.text);
        exit(1);
    }
}

/* ---- Report ----------------------------------------------------------------------- */

typedef struct Kind {
    const char *op;
    double seconds;
    int calls;
} Kind;

static int by_time(const void *a, const void *b)
{
    double x = ((const Kind *)a)->seconds, y = ((const Kind *)b)->seconds;

    return x < y ? 1 : x > y ? -1 : 0;
}

static void print_kinds(const KilnGraph *graph)
{
    Kind kinds[MAX_KINDS] = { 0 };
    KilnProfileRow row;
    int n = 0;

    for (size_t i = 0; kiln_graph_profile(graph, i, &row); i++) {
        int k = 0;

        while (k < n && strcmp(kinds[k].op, row.op) != 0)
            k++;
        if (k == n && n < MAX_KINDS)
            kinds[n++].op = row.op;
        if (k < n && row.runs > 0) {
            kinds[k].seconds += row.seconds / (double)row.runs;
            kinds[k].calls++;
        }
    }
    qsort(kinds, (size_t)n, sizeof(kinds[0]), by_time);
    for (int k = 0; k < n; k++)
        printf("    %-22s %4d calls %8.2f ms\n", kinds[k].op, kinds[k].calls,
               kinds[k].seconds * 1e3);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void measure(const char *name, KilnConvolution algorithm, KilnPrecision precision,
                    int64_t batch, int threads, double peak)
{
    KilnError err = { 0 };
    KilnBackend *backend = NULL;
    Net net = { 0 };
    double seconds[RUNS];
    float *images = checked(malloc((size_t)batch * 32 * 32 * 3 * sizeof(float)));
    int32_t *labels = checked(malloc((size_t)batch * sizeof(int32_t)));
    KilnRng rng;

    kiln_rng_init(&rng, 2, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < batch * 32 * 32 * 3; i++)
        images[i] = kiln_rng_normal(&rng);
    for (int64_t i = 0; i < batch; i++)
        labels[i] = (int32_t)kiln_rng_below(&rng, 10);
    if (kiln_backend_cpu_new(threads, &backend, &err) != KILN_OK ||
        kiln_graph_new(backend, &net.graph, &err) != KILN_OK) {
        fprintf(stderr, "kernels_resnet: %s\n", err.text);
        exit(1);
    }
    kiln_backend_set_convolution(backend, algorithm);
    kiln_graph_set_precision(net.graph, precision);
    step(&net, batch, images, labels);
    step(&net, batch, images, labels);
    net.graph->profile = true;
    for (int i = 0; i < RUNS; i++) {
        double start = kiln_clock();

        step(&net, batch, images, labels);
        seconds[i] = kiln_clock() - start;
    }
    qsort(seconds, RUNS, sizeof(seconds[0]), ascending);
    printf("%s: step %.1f ms (median of %d), without optimizer; convolutions need %.1f GFLOP, "
           "at %.0f GFLOP/s %.1f ms; memory %.0f MiB\n",
           name, seconds[RUNS / 2] * 1e3, RUNS, net.flops * 1e-9, peak, net.flops * 1e-6 / peak,
           (double)kiln_graph_bytes(net.graph) / 1048576.0);
    print_kinds(net.graph);
    for (int i = 0; i < net.n; i++) {
        free(net.values[i]);
        free(net.grads[i]);
    }
    kiln_graph_free(net.graph);
    kiln_backend_free(backend);
    free(images);
    free(labels);
}

int main(int argc, char **argv)
{
    int64_t numbers[3] = { 32, 2, 290 };
    KilnError err = { 0 };

    for (int i = 1; i < argc && i <= 3; i++)
        if (kiln_parse_i64(argv[i], &numbers[i - 1], &err) != KILN_OK || numbers[i - 1] < 1) {
            fprintf(stderr, "usage: kernels_resnet [BATCH [THREADS [PEAK_GFLOPS]]]\n");
            return 1;
        }
    measure("direct", KILN_CONVOLUTION_DIRECT, KILN_PRECISION_32, numbers[0], (int)numbers[1],
            (double)numbers[2]);
    measure("Winograd allowed", KILN_CONVOLUTION_AUTO, KILN_PRECISION_32, numbers[0],
            (int)numbers[1], (double)numbers[2]);
    measure("bf16-mixed", KILN_CONVOLUTION_AUTO, KILN_BF16_MIXED, numbers[0], (int)numbers[1],
            (double)numbers[2]);
    return 0;
}
