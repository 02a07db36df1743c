/* Times a training step of a GPT (6 layers, width 384, 6 heads, context 256, batch 8, 65
 * characters, AdamW): kiln's side of `python bench/peer.py gpt`. */
#include "bench/steps.h"
#include "tests/nets/gpt.h"

enum { BATCH = 8 };

static const GptSpec spec = {
    .vocabulary = 65, .context = 256, .width = 384, .heads = 6, .layers = 6
};

static KilnTensor *loss(Bench *bench)
{
    const KilnShape shape = KILN_SHAPE(BATCH, spec.context);
    KilnTensor *tokens = kiln_graph_input(bench->graph, KILN_I32, shape, bench->inputs);
    KilnTensor *labels = kiln_graph_input(bench->graph, KILN_I32, shape, bench->labels);

    return gpt_net_loss(bench->net, tokens, labels);
}

int main(int argc, char **argv)
{
    const BenchOptions options = bench_options(argc, argv);
    const int64_t n = BATCH * spec.context;
    int32_t *tokens = bench_alloc(sizeof(int32_t) * (size_t)(n + 1));
    GptNet net;
    Bench bench = { .loss = loss, .net = &net, .inputs = tokens, .labels = tokens + 1 };
    KilnError err = { 0 };
    KilnRng rng;

    bench.adam.weight_decay = 0.01;
    kiln_rng_init(&rng, 2, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i <= n; i++)
        tokens[i] = (int32_t)kiln_rng_below(&rng, (uint32_t)spec.vocabulary);
    bench_open(&bench, &options);
    const KilnScope root = kiln_params_root(bench.params);
    bench_check(gpt_net_init(&net, &root, spec, &err), &err);
    bench_run(&bench, options.seconds, options.profile);
    free(tokens);
    return 0;
}
