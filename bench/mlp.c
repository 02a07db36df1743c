/* Times a training step of an MLP (784-512-512-10, batch 128, Adam): kiln's side of `python
 * bench/peer.py mlp`. */
#include "bench/steps.h"
#include "kiln/nn.h"

enum { BATCH = 128, PIXELS = 784, WIDTH = 512, CLASSES = 10, LAYERS = 3 };

typedef struct Mlp {
    KilnLinear layers[LAYERS];
} Mlp;

static KilnTensor *loss(Bench *bench)
{
    const Mlp *net = bench->net;
    KilnTensor *x = kiln_graph_input(bench->graph, KILN_F32, KILN_SHAPE(BATCH, PIXELS),
                                     bench->inputs);
    KilnTensor *labels = kiln_graph_input(bench->graph, KILN_I32, KILN_SHAPE(BATCH), bench->labels);

    for (int i = 0; i < LAYERS - 1; i++)
        x = kiln_relu(kiln_nn_linear(&net->layers[i], x));
    return kiln_cross_entropy(kiln_nn_linear(&net->layers[LAYERS - 1], x), labels,
                              (KilnCrossEntropy) { 0 });
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "0", "2", "4" };
    static const int64_t widths[] = { PIXELS, WIDTH, WIDTH, CLASSES };
    const BenchOptions options = bench_options(argc, argv);
    float *x = bench_alloc(sizeof(float) * BATCH * PIXELS);
    int32_t *labels = bench_alloc(sizeof(int32_t) * BATCH);
    Mlp net;
    Bench bench = { .loss = loss, .net = &net, .inputs = x, .labels = labels };
    KilnError err = { 0 };
    KilnRng rng;

    kiln_rng_init(&rng, 2, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < (int64_t)BATCH * PIXELS; i++)
        x[i] = kiln_rng_normal(&rng);
    for (int64_t i = 0; i < BATCH; i++)
        labels[i] = (int32_t)kiln_rng_below(&rng, CLASSES);
    bench_open(&bench, &options);
    const KilnScope root = kiln_params_root(bench.params);
    for (int i = 0; i < LAYERS; i++)
        bench_check(kiln_nn_linear_init(&net.layers[i], &root, names[i], widths[i], widths[i + 1],
                                        true, &err),
                    &err);
    bench_run(&bench, options.seconds, options.profile);
    free(x);
    free(labels);
    return 0;
}
