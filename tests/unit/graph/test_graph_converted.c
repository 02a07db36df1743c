/* Weights in panels for inference: converted once for all plans of a graph, again after any write,
 * and the same results to the bit as weights that each run packs. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "graph/graph.h"
#include "graph/passes/pass_list.h"
#include "graph/plan/plan_report.h"
#include "graph/plan/profile.h"
#include "nn/params.h"
#include "tests/nets/gpt.h"
#include "tests/nets/sgd.h"
#include "tests/support/cmocka.h"

/* Sizes that leave part of the last panel and of the last tile empty. */
enum {
    LENGTH = 19,
    VOCABULARY = 45,
    LAYERS = 2,
    LINEARS = 4 * LAYERS + 1,
    BATCH = 3,
    SCORES = BATCH * LENGTH * VOCABULARY
};

typedef struct Fixture {
    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    GptNet net;
    int32_t tokens[BATCH * LENGTH];
    size_t packed; /* weights that are packed: none where OpenBLAS multiplies */
} Fixture;

static void check(KilnStatus status, const KilnError *err)
{
    if (status < 0)
        fail_msg("%s", err->text);
}

static Fixture *open(void)
{
    static const GptSpec spec = {
        .vocabulary = VOCABULARY, .context = LENGTH, .width = 36, .heads = 2, .layers = LAYERS
    };
    Fixture *f = calloc(1, sizeof(*f));
    KilnError err = { 0 };

    assert_non_null(f);
    check(kiln_backend_cpu_new(2, &f->backend, &err), &err);
    check(kiln_graph_new(f->backend, &f->graph, &err), &err);
    f->graph->plan_cache.limit = 1 << 24;
    f->graph->profile = true;
    check(kiln_params_new(3, &f->params, &err), &err);
    const KilnScope root = kiln_params_root(f->params);
    check(gpt_net_init(&f->net, &root, spec, &err), &err);
    check(kiln_params_seal(f->params, f->backend, &err), &err);
    for (int i = 0; i < BATCH * LENGTH; i++)
        f->tokens[i] = i * 7 % VOCABULARY;
    f->packed = ((KilnCpuBackend *)f->backend)->blas ? 0 : LINEARS;
    return f;
}

static void shut(Fixture *f)
{
    kiln_params_free(f->params);
    kiln_graph_free(f->graph);
    kiln_backend_free(f->backend);
    free(f);
}

/* Scores of `batch` texts of `length` tokens. */
static void evaluate_in(Fixture *f, KilnGraph *graph, int64_t batch, int64_t length, float *ret)
{
    KilnError err = { 0 };

    kiln_graph_begin(graph);
    KilnTensor *scores = gpt_net_scores(
        &f->net, kiln_graph_input(graph, KILN_I32, KILN_SHAPE(batch, length), f->tokens));
    check(kiln_graph_run(graph, &scores, 1, &err), &err);
    memcpy(ret, kiln_tensor_data(scores), (size_t)(batch * length * VOCABULARY) * sizeof(float));
}

/* In a graph that has not run before, in which each run packs the weights. */
static void evaluate_afresh(Fixture *f, float *ret)
{
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    check(kiln_graph_new(f->backend, &graph, &err), &err);
    graph->passes_off = 1u << KILN_PASS_constants;
    evaluate_in(f, graph, BATCH, LENGTH, ret);
    kiln_graph_free(graph);
}

typedef struct Count {
    size_t calls;
    int64_t runs;
} Count;

/* Conversions of the plan that ran last. */
static Count conversions(const Fixture *f)
{
    KilnProfileRow row;
    Count count = { 0 };

    for (size_t i = 0; kiln_graph_profile(f->graph, i, &row); i++)
        if (strcmp(row.op, "reorder") == 0) {
            count.calls++;
            count.runs += row.runs;
        }
    return count;
}

static void assert_conversions(const Fixture *f, size_t calls, size_t runs)
{
    const Count count = conversions(f);

    assert_int_equal(count.calls, calls);
    assert_int_equal(count.runs, runs);
}

static void test_packed_once(void **unused)
{
    Fixture *f = open();
    float scores[SCORES], expected[SCORES];

    (void)unused;
    evaluate_afresh(f, expected);
    for (int i = 0; i < 3; i++) {
        evaluate_in(f, f->graph, BATCH, LENGTH, scores);
        assert_memory_equal(scores, expected, sizeof(expected));
    }
    assert_conversions(f, f->packed, f->packed);
    shut(f);
}

/* Another number of rows is another plan. */
static void test_shared(void **unused)
{
    Fixture *f = open();
    float scores[SCORES], one[SCORES];

    (void)unused;
    evaluate_in(f, f->graph, BATCH, LENGTH, scores);
    const size_t bytes = kiln_plan_converted_bytes(f->graph->plans);
    assert_int_equal(bytes > 0, f->packed > 0);
    evaluate_in(f, f->graph, 1, LENGTH, one);
    assert_int_equal(kiln_graph_plans(f->graph), 2);
    assert_conversions(f, f->packed, 0);
    assert_int_equal(kiln_plan_converted_bytes(f->graph->plans), bytes);
    shut(f);
}

/* A plan that is evicted leaves its weights to the next. */
static void test_evicted(void **unused)
{
    Fixture *f = open();
    float scores[SCORES], expected[SCORES];

    (void)unused;
    evaluate_afresh(f, expected);
    evaluate_in(f, f->graph, 1, LENGTH, scores);
    f->graph->profile = false;
    f->graph->plan_cache.limit = f->graph->plan_cache.bytes; /* too little for another plan */
    evaluate_in(f, f->graph, BATCH, LENGTH, scores);
    assert_null(kiln_plan_next(f->graph->plans));
    assert_memory_equal(scores, expected, sizeof(expected));
    f->graph->profile = true;
    evaluate_in(f, f->graph, BATCH, LENGTH, scores);
    assert_conversions(f, f->packed, 0);
    assert_memory_equal(scores, expected, sizeof(expected));
    shut(f);
}

static void train(Fixture *f)
{
    const size_t n = (size_t)kiln_params_size(f->params);
    NetSgd sgd = { .lr = 0.5, .momentum = 0.9, .buffer = calloc(n, sizeof(float)) };
    const KilnShape shape = KILN_SHAPE(BATCH, LENGTH);
    KilnError err = { 0 };

    assert_non_null(sgd.buffer);
    kiln_graph_begin(f->graph);
    KilnTensor *tokens = kiln_graph_input(f->graph, KILN_I32, shape, f->tokens);
    KilnTensor *loss = gpt_net_loss(&f->net, tokens, tokens);
    kiln_graph_backward(f->graph, loss);
    net_sgd_update(&sgd, f->params, f->graph);
    check(kiln_graph_run(f->graph, &loss, 1, &err), &err);
    assert_conversions(f, 0, 0);
    free(sgd.buffer);
}

/* As another checkpoint is loaded. */
static void load(Fixture *f)
{
    const size_t bytes = (size_t)kiln_params_size(f->params) * sizeof(float);
    float *values = malloc(bytes);

    assert_non_null(values);
    kiln_buffer_download(f->params->values, 0, values, bytes);
    for (int64_t i = 0; i < kiln_params_size(f->params); i++)
        values[i] *= 0.9f;
    kiln_buffer_upload(f->params->values, 0, values, bytes);
    free(values);
}

static void test_written(void **unused)
{
    Fixture *f = open();
    float scores[SCORES], before[SCORES], expected[SCORES];

    (void)unused;
    evaluate_in(f, f->graph, BATCH, LENGTH, scores);
    for (size_t i = 1; i < 5; i++) {
        memcpy(before, scores, sizeof(before));
        if (i % 2 == 0)
            train(f);
        else
            load(f);
        evaluate_afresh(f, expected);
        evaluate_in(f, f->graph, BATCH, LENGTH, scores);
        assert_memory_equal(scores, expected, sizeof(expected));
        assert_memory_not_equal(scores, before, sizeof(before));
        assert_conversions(f, f->packed, (i + 1) * f->packed);
    }
    shut(f);
}

/* A single row reads each element of a weight once: there is nothing to gain. */
static void test_single_row(void **unused)
{
    Fixture *f = open();
    float scores[SCORES];

    (void)unused;
    evaluate_in(f, f->graph, 1, 1, scores);
    assert_conversions(f, 0, 0);
    shut(f);
}

/* Only as many weights as the plans' memory holds are kept in panels. */
static void test_limit(void **unused)
{
    Fixture *f = open();
    float scores[SCORES], expected[SCORES];

    (void)unused;
    f->graph->plan_cache.limit = 40000;
    evaluate_afresh(f, expected);
    evaluate_in(f, f->graph, BATCH, LENGTH, scores);
    assert_memory_equal(scores, expected, sizeof(expected));
    assert_true(conversions(f).calls < LINEARS);
    assert_int_equal(conversions(f).calls > 0, f->packed > 0);
    assert_true(kiln_plan_converted_bytes(f->graph->plans) < 60000);
    shut(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_once), cmocka_unit_test(test_shared),
        cmocka_unit_test(test_evicted),     cmocka_unit_test(test_written),
        cmocka_unit_test(test_single_row),  cmocka_unit_test(test_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
