/* Times inference with one sample through the library: ResNet-18 at 224x224, a U-Net (32 channels,
 * 4 levels) at 256x256, or a GPT (6 layers, width 384, 6 heads, context 256, 65 characters). kiln's
 * side of bench/infer.py.
 *
 *   infer resnet18|unet|gpt [--threads N] [--seconds S] [--precision 32|bf16] [--profile] */
#include "bench/steps.h"
#include "tests/nets/gpt.h"
#include "tests/nets/resnet.h"
#include "tests/nets/unet.h"

enum { IMAGE = 224, CLASSES = 1000, UNET_IMAGE = 256, UNET_WIDTH = 32, UNET_CLASSES = 3 };

static const GptSpec spec = {
    .vocabulary = 65, .context = 256, .width = 384, .heads = 6, .layers = 6
};

static KilnTensor *resnet_scores(Bench *bench)
{
    const KilnShape shape = KILN_SHAPE(1, IMAGE, IMAGE, 3);

    return resnet_net_scores(bench->net,
                             kiln_graph_input(bench->graph, KILN_F32, shape, bench->inputs), false);
}

static KilnTensor *unet_scores(Bench *bench)
{
    const KilnShape shape = KILN_SHAPE(1, UNET_IMAGE, UNET_IMAGE, 3);

    return unet_net_scores(
        bench->net, kiln_graph_input(bench->graph, KILN_F32, shape, bench->inputs), false, NULL);
}

static KilnTensor *gpt_scores(Bench *bench)
{
    const KilnShape shape = KILN_SHAPE(1, spec.context);

    return gpt_net_scores(bench->net,
                          kiln_graph_input(bench->graph, KILN_I32, shape, bench->inputs));
}

static void *image(KilnRng *rng, int size)
{
    const size_t n = (size_t)size * (size_t)size * 3;
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

typedef enum Kind { RESNET18, UNET, GPT, KINDS } Kind;

static const char *const names[KINDS] = { "resnet18", "unet", "gpt" };

typedef struct Nets {
    ResNet resnet;
    UNet unet;
    GptNet gpt;
} Nets;

/* Declares the network; returns a sample for it, which the caller frees. */
static void *declare(Bench *bench, Nets *nets, Kind kind)
{
    const KilnScope root = kiln_params_root(bench->params);
    KilnError err = { 0 };
    KilnRng rng;

    kiln_rng_init(&rng, 2, KILN_RNG_USER, 0, 0);
    switch (kind) {
    case RESNET18:
        nets->resnet.large_stem = true;
        bench->net = &nets->resnet;
        bench->loss = resnet_scores;
        bench_check(resnet_net_init(&nets->resnet, &root, 64, CLASSES, &err), &err);
        return image(&rng, IMAGE);
    case UNET:
        bench->net = &nets->unet;
        bench->loss = unet_scores;
        bench_check(unet_net_init(&nets->unet, &root, UNET_WIDTH, UNET_CLASSES, &err), &err);
        return image(&rng, UNET_IMAGE);
    case GPT:
    case KINDS:
        break;
    }
    bench->net = &nets->gpt;
    bench->loss = gpt_scores;
    bench_check(gpt_net_init(&nets->gpt, &root, spec, &err), &err);
    return text(&rng);
}

int main(int argc, char **argv)
{
    Nets nets = { 0 };
    Bench bench = { 0 };
    int kind = 0;

    while (kind < KINDS && (argc < 2 || strcmp(argv[1], names[kind]) != 0))
        kind++;
    if (kind == KINDS) {
        fprintf(stderr,
                "usage: %s resnet18|unet|gpt [--threads N] [--seconds S] [--precision 32|bf16] "
                "[--profile]\n",
                argv[0]);
        return 2;
    }
    const BenchOptions options = bench_options(argc - 1, argv + 1);
    bench_open(&bench, &options);
    void *sample = declare(&bench, &nets, (Kind)kind);
    bench.inputs = sample;
    measure(&bench, &options);
    kiln_params_free(bench.params);
    kiln_graph_free(bench.graph);
    kiln_backend_free(bench.backend);
    free(sample);
    return 0;
}
