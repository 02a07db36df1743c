/* Times inference with one sample through the library: ResNet-18 at 224x224, or a GPT (6 layers,
 * width 384, 6 heads, context 256, 65 characters). kiln's side of bench/infer.py.
 *
 *   infer resnet18|gpt [--threads N] [--seconds S] [--precision 32|bf16] [--profile] */
#include "bench/steps.h"
#include "tests/nets/gpt.h"
#include "tests/nets/resnet.h"

enum { IMAGE = 224, CLASSES = 1000 };

static const GptSpec spec = {
    .vocabulary = 65, .context = 256, .width = 384, .heads = 6, .layers = 6
};

static KilnTensor *resnet_scores(Bench *bench)
{
    const KilnShape shape = KILN_SHAPE(1, IMAGE, IMAGE, 3);

    return resnet_net_scores(bench->net,
                             kiln_graph_input(bench->graph, KILN_F32, shape, bench->inputs), false);
}

static KilnTensor *gpt_scores(Bench *bench)
{
    const KilnShape shape = KILN_SHAPE(1, spec.context);

    return gpt_net_scores(bench->net,
                          kiln_graph_input(bench->graph, KILN_I32, shape, bench->inputs));
}

static void *image(KilnRng *rng)
{
    const size_t n = (size_t)IMAGE * IMAGE * 3;
    float *pixels = bench_alloc(n * sizeof(*pixels));

    for (size_t i = 0; i < n; i++)
        pixels[i] = (float)kiln_rng_normal(rng);
    return pixels;
}

static void *text(KilnRng *rng)
{
    int32_t *tokens = bench_alloc((size_t)spec.context * sizeof(*tokens));

    for (int64_t i = 0; i < spec.context; i++)
        tokens[i] = (int32_t)kiln_rng_below(rng, (uint32_t)spec.vocabulary);
    return tokens;
}

/* As PyTorch's torch.no_grad: variables without gradients are the same to an inference step. */
static float infer(Bench *bench)
{
    KilnError err = { 0 };

    kiln_graph_begin(bench->graph);
    KilnTensor *scores = bench->loss(bench);
    bench_check(kiln_graph_run(bench->graph, &scores, 1, &err), &err);
    return ((const float *)kiln_tensor_data(scores))[0];
}

static void measure(Bench *bench, const BenchOptions *options)
{
    static double times[BENCH_MOST];
    KilnError err = { 0 };
    struct rusage usage;
    int n = 0;
    float score = 0.0f;

    bench_check(kiln_params_seal(bench->params, bench->backend, &err), &err);
    for (int i = 0; i < BENCH_WARM; i++)
        score = infer(bench);
    bench->graph->profile = options->profile;
    const double end = kiln_clock() + options->seconds;
    while (n < 5 || (kiln_clock() < end && n < BENCH_MOST)) {
        const double start = kiln_clock();

        score = infer(bench);
        times[n++] = 1e3 * (kiln_clock() - start);
    }
    if (options->profile)
        bench_profile(bench->graph);
    qsort(times, (size_t)n, sizeof(times[0]), bench_ascending);
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"ms\": %.3f, \"peak_bytes\": %lld, \"score\": %.5f}\n", times[n / 2],
           1024LL * (long long)usage.ru_maxrss, (double)score);
}

int main(int argc, char **argv)
{
    const bool resnet = argc > 1 && strcmp(argv[1], "resnet18") == 0;
    ResNet images = { .large_stem = true };
    GptNet gpt;
    Bench bench = { .loss = resnet ? resnet_scores : gpt_scores,
                    .net = resnet ? (void *)&images : (void *)&gpt };
    KilnError err = { 0 };
    KilnRng rng;

    if (!resnet && (argc < 2 || strcmp(argv[1], "gpt") != 0)) {
        fprintf(stderr,
                "usage: %s resnet18|gpt [--threads N] [--seconds S] [--precision 32|bf16] "
                "[--profile]\n",
                argv[0]);
        return 2;
    }
    const BenchOptions options = bench_options(argc - 1, argv + 1);
    kiln_rng_init(&rng, 2, KILN_RNG_USER, 0, 0);
    void *inputs = resnet ? image(&rng) : text(&rng);
    bench.inputs = inputs;
    bench_open(&bench, &options);
    const KilnScope root = kiln_params_root(bench.params);
    bench_check(resnet ? resnet_net_init(&images, &root, 64, CLASSES, &err)
                       : gpt_net_init(&gpt, &root, spec, &err),
                &err);
    measure(&bench, &options);
    kiln_params_free(bench.params);
    kiln_graph_free(bench.graph);
    kiln_backend_free(bench.backend);
    free(inputs);
    return 0;
}
