/* Recomputing blocks: identical bytes with less memory; names of blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/passes/pass_list.h"
#include "graph/recompute.h"
#include "kiln/ops.h"
#include "kiln/rng.h"

enum { BLOCKS = 6, WIDTH = 64, BATCH = 96, STEPS = 4, WEIGHTS = BLOCKS * 2 * WIDTH * WIDTH };

typedef enum Way { KEEP, MARKS, NAMES } Way;

/* Parameters, and what training them gave. */
typedef struct Run {
    float weights[WEIGHTS], gradients[WEIGHTS], x[BATCH * WIDTH];
    float losses[STEPS];
    size_t bytes;
} Run;

static void fill(float *values, size_t n, uint64_t seed, float scale)
{
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_USER, 0, 0);
    for (size_t i = 0; i < n; i++)
        values[i] = scale * kiln_rng_normal(&rng);
}

/* A residual block with dropout, and something without a layer's name in it. */
static KilnTensor *block(KilnGraph *graph, Run *run, KilnTensor *x, KilnTensor *key, int i)
{
    static char paths[BLOCKS][3][32];
    const size_t at = (size_t)i * 2 * WIDTH * WIDTH;
    KilnTensor *weight[2];

    for (size_t k = 0; k < 2; k++)
        weight[k] = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(WIDTH, WIDTH),
                                        run->weights + at + k * WIDTH * WIDTH, true,
                                        run->gradients + at + k * WIDTH * WIDTH);
    snprintf(paths[i][0], sizeof(paths[i][0]), "layers.%d.first", i);
    snprintf(paths[i][1], sizeof(paths[i][1]), "layers.%d.second", i);
    kiln_graph_layer(graph, paths[i][0]);
    KilnTensor *h = kiln_gelu(kiln_linear(x, weight[0], NULL), KILN_GELU_ERF);
    kiln_graph_layer(graph, "");
    h = kiln_dropout(h, 0.2, key, i);
    kiln_graph_layer(graph, paths[i][1]);
    h = kiln_add(x, kiln_linear(h, weight[1], NULL));
    kiln_graph_layer(graph, "");
    return h;
}

static void step(KilnGraph *graph, Run *run, Way way, int number)
{
    static float hyper[2] = { 0.05f, 1.0f };
    const int32_t key[2] = { 7, number };
    KilnError err;

    kiln_graph_begin(graph);
    KilnTensor *h = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, WIDTH), run->x);
    KilnTensor *key_tensor = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2), key);
    for (int i = 0; i < BLOCKS; i++) {
        if (way == MARKS)
            kiln_graph_recompute_begin(graph);
        h = block(graph, run, h, key_tensor, i);
        if (way == MARKS)
            kiln_graph_recompute_end(graph);
    }
    KilnTensor *loss = kiln_mean(kiln_mul(h, h));
    kiln_graph_backward(graph, loss);
    KilnTensor *flat = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(WEIGHTS), run->weights,
                                           false, NULL);
    KilnTensor *grad = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(WEIGHTS), run->gradients);
    KilnTensor *rate = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2), hyper);
    const KilnFlat update = { .param = flat, .grad = grad, .hyper = rate };
    kiln_sgd_update(&update, (KilnSgd) { 0 });
    if (kiln_graph_run(graph, &loss, 1, &err) < 0)
        fail_msg("%s", err.text);
    run->losses[number] = *(const float *)kiln_tensor_data(loss);
}

static Run *train(Way way, unsigned passes_off)
{
    static const char *const patterns[] = { "layers.*" };
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err;
    Run *run = calloc(1, sizeof(*run));

    assert_non_null(run);
    assert_int_equal(kiln_backend_cpu_new(2, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    graph->passes_off = passes_off;
    if (way == NAMES)
        kiln_graph_set_recompute(graph, patterns, 1);
    fill(run->weights, WEIGHTS, 1, 0.1f);
    fill(run->x, BATCH * WIDTH, 2, 1.0f);
    for (int i = 0; i < STEPS; i++)
        step(graph, run, way, i);
    run->bytes = kiln_graph_bytes(graph);
    assert_int_equal(kiln_graph_plans(graph), 1);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
    return run;
}

static void test_same_bytes_less_memory(void **unused)
{
    (void)unused;
    for (unsigned off = 0; off < 2; off++) {
        /* What is not needed any more is room only where memory is shared. */
        const unsigned passes_off = off == 0 ? 0 : ~(1u << KILN_PASS_share_memory);
        Run *kept = train(KEEP, passes_off);

        for (Way way = MARKS; way <= NAMES; way++) {
            Run *again = train(way, passes_off);

            assert_memory_equal(kept->losses, again->losses, sizeof(kept->losses));
            assert_memory_equal(kept->weights, again->weights, sizeof(kept->weights));
            if (again->bytes * 4 > kept->bytes * 3)
                fail_msg("way %d, passes %s: %zu bytes, %zu without", (int)way,
                         off == 0 ? "on" : "off", again->bytes, kept->bytes);
            free(again);
        }
        assert_true(kept->losses[STEPS - 1] < kept->losses[0]);
        free(kept);
    }
}

static void test_patterns(void **unused)
{
    (void)unused;
    assert_int_equal(kiln_layer_match("layers.*", "layers.0"), 8);
    assert_int_equal(kiln_layer_match("layers.*", "layers.10.norm.x"), 9);
    assert_int_equal(kiln_layer_match("layers.*", "layers"), 0);
    assert_int_equal(kiln_layer_match("layer*.0", "layer3.0.conv1"), 8);
    assert_int_equal(kiln_layer_match("layer*.0", "layer3.01"), 0);
    assert_int_equal(kiln_layer_match("fc", "fc"), 2);
    assert_int_equal(kiln_layer_match("fc", "fc1"), 0);
    assert_int_equal(kiln_layer_match("", ""), 0);
}

/* Variables of bf16 take two bytes each: an update of one does not change its neighbour, so what
 * reads that can be computed again. */
static void test_neighbours_in_bf16(void **unused)
{
    enum { N = 8 };
    uint16_t values[2 * N] = { 0 }, gradient[N] = { 0 };
    const float x[N] = { 1.0f };
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err;
    size_t again = 0;

    (void)unused;
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_set_precision(graph, KILN_BF16_TRUE);
    kiln_graph_begin(graph);
    KilnTensor *input = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(N), x);
    KilnTensor *weight = kiln_graph_variable(graph, KILN_BF16, KILN_SHAPE(N), values, true,
                                             gradient);
    KilnTensor *updated = kiln_graph_variable(graph, KILN_BF16, KILN_SHAPE(N), values + N, false,
                                              NULL);
    kiln_graph_recompute_begin(graph);
    KilnTensor *y = kiln_tanh(kiln_mul(input, weight));
    kiln_graph_recompute_end(graph);
    kiln_store(updated, input);
    kiln_graph_backward(graph, kiln_sum(y));
    for (size_t i = 0; i < graph->n_nodes; i++)
        again += graph->nodes[i]->segment != 0;
    assert_true(again >= 2);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes_less_memory),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_neighbours_in_bf16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
