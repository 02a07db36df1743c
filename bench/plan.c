/* Times planning: training steps of growing depth and small width are recorded and planned, without
 * running: a GPT, and a chain of elementwise operations, which only fusion has work with. Prints,
 * for each depth, the recorded nodes and the milliseconds of recording and of planning (medians).
 */
#include "bench/steps.h"
#include "graph/plan/execute.h"
#include "tests/nets/gpt.h"

enum { BATCH = 2, CONTEXT = 16, REPEATS = 5, DEPTHS = 4 };

typedef struct Network {
    const char *name;
    KilnStatus (*init)(Bench *bench, int64_t depth, KilnError *err);
    KilnTensor *(*loss)(Bench *bench);
    int64_t depth; /* the smallest; each of the others is twice the one before */
} Network;

/* ---- A GPT ----------------------------------------------------------------------- */

static GptNet gpt;

static KilnStatus gpt_init(Bench *bench, int64_t depth, KilnError *err)
{
    const KilnScope root = kiln_params_root(bench->params);
    const GptSpec spec = {
        .vocabulary = 65, .context = CONTEXT, .width = 32, .heads = 2, .layers = depth
    };

    return gpt_net_init(&gpt, &root, spec, err);
}

static KilnTensor *gpt_loss(Bench *bench)
{
    static const int32_t tokens[BATCH * CONTEXT];
    const KilnShape shape = KILN_SHAPE(BATCH, CONTEXT);
    KilnTensor *input = kiln_graph_input(bench->graph, KILN_I32, shape, tokens);

    return gpt_net_loss(&gpt, input, input);
}

/* ---- Elementwise operations --------------------------------------------------------- */

static KilnParam *chain_weight;
static int64_t chain_depth;

static KilnStatus chain_init(Bench *bench, int64_t depth, KilnError *err)
{
    const KilnScope root = kiln_params_root(bench->params);

    chain_depth = depth;
    return kiln_param_new(&root, "weight", KILN_SHAPE(CONTEXT), (KilnInit) { .a = 1.0 },
                          &chain_weight, err);
}

/* The states of an unrolled recurrence, all of which the loss reads. */
static KilnTensor *chain_loss(Bench *bench)
{
    KilnTensor *weight = kiln_param_tensor(chain_weight, bench->graph), *state = weight,
               *sum = weight;

    for (int64_t i = 0; i < chain_depth; i++) {
        state = kiln_add(kiln_tanh(kiln_mul(state, weight)), weight);
        sum = kiln_add(sum, kiln_sigmoid(state));
    }
    return kiln_mean(sum);
}

/* ---- Measuring ---------------------------------------------------------------------- */

static void time_depth(const Network *network, int64_t depth)
{
    const BenchOptions options = { .threads = 1 };
    double recording[REPEATS], planning[REPEATS];
    size_t nodes = 0;
    KilnError err = { 0 };

    for (int i = 0; i < REPEATS; i++) {
        Bench bench = { .loss = network->loss };
        KilnPlan *plan = NULL;

        bench_open(&bench, &options);
        bench_check(network->init(&bench, depth, &err), &err);
        bench_check(kiln_params_seal(bench.params, bench.backend, &err), &err);
        const size_t bytes = (size_t)kiln_params_size(bench.params) * sizeof(float);
        bench.adam.average = kiln_zeros(bytes);
        bench.adam.square = kiln_zeros(bytes);
        double start = kiln_clock();
        kiln_graph_begin(bench.graph);
        KilnTensor *loss = network->loss(&bench);
        kiln_graph_backward(bench.graph, loss);
        net_adam_update(&bench.adam, bench.params, bench.graph);
        recording[i] = 1e3 * (kiln_clock() - start);
        nodes = bench.graph->n_nodes;
        start = kiln_clock();
        bench_check(kiln_graph_plan(bench.graph, &loss, 1, &plan, &err), &err);
        planning[i] = 1e3 * (kiln_clock() - start);
        kiln_zeros_free(bench.adam.average);
        kiln_zeros_free(bench.adam.square);
        kiln_params_free(bench.params);
        kiln_graph_free(bench.graph);
        kiln_backend_free(bench.backend);
    }
    qsort(recording, REPEATS, sizeof(double), bench_ascending);
    qsort(planning, REPEATS, sizeof(double), bench_ascending);
    printf("{\"network\": \"%s\", \"depth\": %lld, \"nodes\": %zu, \"record_ms\": %.1f, "
           "\"plan_ms\": %.1f}\n",
           network->name, (long long)depth, nodes, recording[REPEATS / 2], planning[REPEATS / 2]);
}

int main(void)
{
    static const Network networks[] = {
        { "gpt", gpt_init, gpt_loss, 12 },
        { "elementwise", chain_init, chain_loss, 64 },
    };

    for (size_t i = 0; i < KILN_COUNT(networks); i++)
        for (int64_t depth = networks[i].depth, k = 0; k < DEPTHS; k++, depth *= 2)
            time_depth(&networks[i], depth);
    return 0;
}
