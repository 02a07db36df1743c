/* Times a training step of an LSTM (2 layers of 256, batch 32, 64 steps, Adam): kiln's side of
 * `python bench/peer.py lstm`. */
#include "bench/steps.h"
#include "tests/nets/lstm.h"

enum { BATCH = 32, STEPS = 64, WIDTH = 256, LAYERS = 2, CLASSES = 64 };

static KilnTensor *loss(Bench *bench)
{
    KilnTensor *x = kiln_graph_input(bench->graph, KILN_F32, KILN_SHAPE(BATCH, STEPS, WIDTH),
                                     bench->inputs);
    KilnTensor *labels = kiln_graph_input(bench->graph, KILN_I32, KILN_SHAPE(BATCH, STEPS),
                                          bench->labels);

    return lstm_net_loss(bench->net, x, labels);
}

int main(int argc, char **argv)
{
    const BenchOptions options = bench_options(argc, argv);
    float *x = bench_alloc(sizeof(float) * BATCH * STEPS * WIDTH);
    int32_t *labels = bench_alloc(sizeof(int32_t) * BATCH * STEPS);
    LstmNet net;
    Bench bench = { .loss = loss, .net = &net, .inputs = x, .labels = labels };
    KilnError err = { 0 };
    KilnRng rng;

    kiln_rng_init(&rng, 2, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < (int64_t)BATCH * STEPS * WIDTH; i++)
        x[i] = kiln_rng_normal(&rng);
    for (int64_t i = 0; i < (int64_t)BATCH * STEPS; i++)
        labels[i] = (int32_t)kiln_rng_below(&rng, CLASSES);
    bench_open(&bench, &options);
    const KilnScope root = kiln_params_root(bench.params);
    bench_check(lstm_net_init(&net, &root, WIDTH, LAYERS, CLASSES, &err), &err);
    bench_run(&bench, options.seconds, options.profile);
    free(x);
    free(labels);
    return 0;
}
