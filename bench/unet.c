/* Times a training step of a U-Net (32 channels, 4 levels, batch 4, 128x128, 3 classes a pixel,
 * Adam): kiln's side of `python bench/peer.py unet`. */
#include "bench/steps.h"
#include "tests/nets/unet.h"

enum { BATCH = 4, SIZE = 128, WIDTH = 32, CLASSES = 3, PIXELS = BATCH * SIZE * SIZE };

static const int32_t dropout_key[2] = { 1, 2 };

static KilnTensor *loss(Bench *bench)
{
    KilnGraph *graph = bench->graph;
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, SIZE, SIZE, 3),
                                     bench->inputs);
    KilnTensor *labels = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(BATCH, SIZE, SIZE),
                                          bench->labels);
    KilnDropoutState dropout = { .key = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2),
                                                         dropout_key) };

    return kiln_cross_entropy(unet_net_scores(bench->net, x, true, &dropout), labels,
                              (KilnCrossEntropy) { 0 });
}

int main(int argc, char **argv)
{
    const BenchOptions options = bench_options(argc, argv);
    float *pixels = bench_alloc(sizeof(float) * PIXELS * 3);
    int32_t *labels = bench_alloc(sizeof(int32_t) * PIXELS);
    UNet net;
    Bench bench = { .loss = loss, .net = &net, .inputs = pixels, .labels = labels };
    KilnError err = { 0 };
    KilnRng rng;

    kiln_rng_init(&rng, 2, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < (int64_t)PIXELS * 3; i++)
        pixels[i] = kiln_rng_normal(&rng);
    for (int64_t i = 0; i < PIXELS; i++)
        labels[i] = (int32_t)kiln_rng_below(&rng, CLASSES);
    bench_open(&bench, &options);
    const KilnScope root = kiln_params_root(bench.params);
    bench_check(unet_net_init(&net, &root, WIDTH, CLASSES, &err), &err);
    bench_run(&bench, options.seconds, options.profile);
    free(pixels);
    free(labels);
    return 0;
}
