/* Constants of plans and what is folded into convolutions: kept while the parameters stay, computed
 * again after any write to them, and the same results as without. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/passes/pass_list.h"
#include "graph/plan/profile.h"
#include "nn/params.h"
#include "tests/nets/resnet.h"
#include "tests/nets/sgd.h"
#include "tests/support/cmocka.h"

enum { WIDTH = 16, CLASSES = 5, SIZE = 16, IMAGES = 2, SCORES = IMAGES * CLASSES };

typedef struct Fixture {
    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    ResNet net;
    float pixels[IMAGES * SIZE * SIZE * 3];
    float scores[SCORES];
} Fixture;

static void check(KilnStatus status, const KilnError *err)
{
    if (status < 0)
        fail_msg("%s", err->text);
}

/* Random values around 1 in whatever a normalization reads, so that folding it shows. */
static void draw_norms(KilnParams *params)
{
    KilnRng rng;

    kiln_rng_init(&rng, 5, KILN_RNG_USER, 0, 0);
    for (size_t i = 0; i < kiln_params_count(params); i++) {
        KilnParam *param = kiln_params_at(params, i);
        float values[8 * WIDTH];

        if (strstr(param->name, "bn") == NULL && strstr(param->name, "downsample.1") == NULL)
            continue;
        if (param->dtype != KILN_F32)
            continue;
        for (int64_t k = 0; k < param->count; k++)
            values[k] = 0.5f + kiln_rng_uniform(&rng);
        kiln_param_write(param, KILN_F32, values);
    }
}

static Fixture *open(void)
{
    Fixture *f = calloc(1, sizeof(*f));
    KilnError err = { 0 };

    assert_non_null(f);
    check(kiln_backend_cpu_new(2, &f->backend, &err), &err);
    check(kiln_graph_new(f->backend, &f->graph, &err), &err);
    check(kiln_params_new(3, &f->params, &err), &err);
    const KilnScope root = kiln_params_root(f->params);
    check(resnet_net_init(&f->net, &root, WIDTH, CLASSES, &err), &err);
    check(kiln_params_seal(f->params, f->backend, &err), &err);
    draw_norms(f->params);
    for (size_t i = 0; i < KILN_COUNT(f->pixels); i++)
        f->pixels[i] = (float)(i % 23) / 11.0f - 1.0f;
    return f;
}

static void shut(Fixture *f)
{
    kiln_params_free(f->params);
    kiln_graph_free(f->graph);
    kiln_backend_free(f->backend);
    free(f);
}

static const float *evaluate_in(Fixture *f, KilnGraph *graph)
{
    KilnError err = { 0 };

    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(IMAGES, SIZE, SIZE, 3), f->pixels);
    KilnTensor *scores = resnet_net_scores(&f->net, x, false);
    check(kiln_graph_run(graph, &scores, 1, &err), &err);
    return kiln_tensor_data(scores);
}

/* In the fixture's graph, whose plan has constants after the first time. */
static void evaluate(Fixture *f)
{
    memcpy(f->scores, evaluate_in(f, f->graph), sizeof(f->scores));
}

/* In a graph that has not run before. */
static void evaluate_afresh(Fixture *f, KilnBackend *backend, unsigned passes_off, float *ret)
{
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    check(kiln_graph_new(backend, &graph, &err), &err);
    graph->passes_off = passes_off;
    memcpy(ret, evaluate_in(f, graph), sizeof(f->scores));
    kiln_graph_free(graph);
}

static int64_t runs_of(const KilnGraph *graph, const char *op)
{
    KilnProfileRow row;
    int64_t runs = 0;

    for (size_t i = 0; kiln_graph_profile(graph, i, &row); i++)
        runs += strcmp(row.op, op) == 0 ? row.runs : 0;
    return runs;
}

static size_t calls_of(const KilnGraph *graph, const char *op)
{
    KilnProfileRow row;
    size_t calls = 0;

    for (size_t i = 0; kiln_graph_profile(graph, i, &row); i++)
        calls += strcmp(row.op, op) == 0;
    return calls;
}

/* ---- Versions ---------------------------------------------------------------------------- */

static void test_versions(void **unused)
{
    Fixture *f = open();
    KilnBuffer *a = NULL, *b = NULL;
    KilnError err = { 0 };
    char bytes[64] = { 0 };

    (void)unused;
    check(kiln_buffer_new(f->backend, sizeof(bytes), &a, &err), &err);
    check(kiln_buffer_new(f->backend, sizeof(bytes), &b, &err), &err);
    assert_int_not_equal(kiln_buffer_version(a), kiln_buffer_version(b));
    const uint64_t other = kiln_buffer_version(b);
    for (int way = 0; way < 4; way++) {
        const uint64_t before = kiln_buffer_version(a);

        if (way == 0)
            kiln_buffer_upload(a, 0, bytes, sizeof(bytes));
        else if (way == 1)
            kiln_buffer_copy(a, 0, b, 0, sizeof(bytes));
        else if (way == 2)
            kiln_buffer_clear(a, 0, sizeof(bytes));
        else
            assert_non_null(kiln_buffer_host_view(a, 0));
        assert_int_not_equal(kiln_buffer_version(a), before);
    }
    kiln_buffer_download(a, 0, bytes, sizeof(bytes));
    assert_int_equal(kiln_buffer_version(b), other);
    kiln_buffer_free(a);
    kiln_buffer_free(b);
    shut(f);
}

/* ---- Constants ---------------------------------------------------------------------------- */

static void test_computed_once(void **unused)
{
    enum { RUNS = 3 };
    Fixture *f = open();

    (void)unused;
    f->graph->profile = true;
    for (int i = 0; i < RUNS; i++)
        evaluate(f);
    const size_t convs = calls_of(f->graph, "conv2d");
    assert_int_equal(convs, 20);
    assert_int_equal(runs_of(f->graph, "conv2d"), RUNS * convs);
    assert_int_equal(calls_of(f->graph, "batch_norm_eval"), 0);
    assert_int_equal(runs_of(f->graph, "mul"), calls_of(f->graph, "mul"));
    assert_true(calls_of(f->graph, "mul") >= convs); /* the folded weights */
    shut(f);
}

/* Ways in which a run changes weights. */
static void write_weights(Fixture *f, int way)
{
    KilnParam *weight = kiln_params_find(f->params, "layer2.0.conv1.weight");
    KilnParam *mean = kiln_params_find(f->params, "bn1.running_mean");
    const size_t bytes = (size_t)kiln_params_size(f->params) * sizeof(float);
    float *values = malloc(bytes);
    KilnBuffer *copy = NULL;
    KilnError err = { 0 };

    assert_non_null(values);
    if (way == 0) { /* a callback, a checkpoint */
        kiln_param_read(weight, KILN_F32, values);
        for (int64_t i = 0; i < weight->count; i++)
            values[i] *= 1.5f;
        kiln_param_write(weight, KILN_F32, values);
    } else if (way == 1) { /* running statistics */
        kiln_param_read(mean, KILN_F32, values);
        values[0] += 1.0f;
        kiln_param_write(mean, KILN_F32, values);
    } else if (way == 2) { /* averaged weights that are swapped in */
        kiln_buffer_download(f->params->values, 0, values, bytes);
        for (int64_t i = 0; i < kiln_params_size(f->params); i++)
            values[i] *= 0.9f;
        check(kiln_buffer_new(f->backend, bytes, &copy, &err), &err);
        kiln_buffer_upload(copy, 0, values, bytes);
        kiln_buffer_copy(f->params->values, 0, copy, 0, bytes);
        kiln_buffer_free(copy);
    } else { /* at the address of the weights, as a checkpoint on the host is read */
        const KilnLocation at = kiln_param_location(weight);
        float *view = kiln_buffer_host_view(at.buffer, at.offset);

        view[0] += 2.0f;
    }
    free(values);
}

/* One step of SGD with batch statistics, in the graph that evaluates. */
static void train(Fixture *f)
{
    const size_t n = (size_t)kiln_params_size(f->params);
    NetSgd sgd = { .lr = 0.05, .momentum = 0.9, .buffer = calloc(n, sizeof(float)) };
    const int32_t labels[IMAGES] = { 1, 3 };
    KilnError err = { 0 };

    assert_non_null(sgd.buffer);
    kiln_graph_begin(f->graph);
    KilnTensor *x = kiln_graph_input(f->graph, KILN_F32, KILN_SHAPE(IMAGES, SIZE, SIZE, 3),
                                     f->pixels);
    KilnTensor *y = kiln_graph_input(f->graph, KILN_I32, KILN_SHAPE(IMAGES), labels);
    KilnTensor *loss = resnet_net_loss(&f->net, x, y);
    kiln_graph_backward(f->graph, loss);
    net_sgd_update(&sgd, f->params, f->graph);
    check(kiln_graph_run(f->graph, &loss, 1, &err), &err);
    free(sgd.buffer);
}

static void test_written_weights(void **unused)
{
    enum { WAYS = 5 };
    Fixture *f = open();
    float before[SCORES], expected[SCORES];

    (void)unused;
    evaluate(f);
    for (int way = 0; way < WAYS; way++) {
        memcpy(before, f->scores, sizeof(before));
        if (way < WAYS - 1)
            write_weights(f, way);
        else
            train(f);
        evaluate_afresh(f, f->backend, 0, expected);
        evaluate(f);
        assert_memory_equal(f->scores, expected, sizeof(expected));
        assert_memory_not_equal(f->scores, before, sizeof(before));
    }
    shut(f);
}

/* Weights in the host's memory have no version: nothing is kept. */
static void test_host_weights(void **unused)
{
    Fixture *f = open();
    float weight[WIDTH * 3 * 3 * 3], first = 0.0f;
    KilnError err = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(weight); i++)
        weight[i] = 0.25f;
    for (int i = 0; i < 2; i++) {
        kiln_graph_begin(f->graph);
        KilnTensor *x = kiln_graph_input(f->graph, KILN_F32, KILN_SHAPE(IMAGES, SIZE, SIZE, 3),
                                         f->pixels);
        KilnTensor *w = kiln_graph_variable(f->graph, KILN_F32, KILN_SHAPE(WIDTH, 3, 3, 3), weight,
                                            false, NULL);
        KilnTensor *y = kiln_sum(kiln_square(kiln_conv2d(x, w, NULL, (KilnConv) { .stride = 1 })));
        check(kiln_graph_run(f->graph, &y, 1, &err), &err);
        if (i == 1)
            assert_float_equal((float)kiln_tensor_scalar(y) / first, 4.0f, 1e-4f);
        first = (float)kiln_tensor_scalar(y);
        for (size_t k = 0; k < KILN_COUNT(weight); k++)
            weight[k] = 0.5f;
    }
    shut(f);
}

/* ---- Folding ------------------------------------------------------------------------------- */

static void assert_near(const float *a, const float *b)
{
    double most = 0.0;

    for (int i = 0; i < SCORES; i++)
        most = fmax(most, fabs((double)b[i]));
    for (int i = 0; i < SCORES; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= 2e-5 * most))
            fail_msg("score %d is %g, expected %g", i, (double)a[i], (double)b[i]);
}

static void test_folded(void **unused)
{
    Fixture *f = open();
    float unfolded[SCORES], plain[SCORES];

    (void)unused;
    evaluate(f);
    evaluate_afresh(f, f->backend, 1u << KILN_PASS_fold_norm, unfolded);
    evaluate_afresh(f, f->backend, 1u << KILN_PASS_fuse_norm | 1u << KILN_PASS_layouts, plain);
    assert_near(f->scores, unfolded);
    assert_near(plain, unfolded);
    shut(f);
}

/* A convolution and its normalization, in evaluation; the caller adds what prevents folding. */
typedef struct Pair {
    KilnTensor *x, *conv, *norm;
} Pair;

static Pair record_pair(Fixture *f)
{
    Pair pair;

    kiln_graph_begin(f->graph);
    pair.x = kiln_graph_input(f->graph, KILN_F32, KILN_SHAPE(IMAGES, SIZE, SIZE, 3), f->pixels);
    pair.conv = kiln_nn_conv2d(&f->net.stem.conv, pair.x);
    pair.norm = kiln_nn_batch_norm2d(&f->net.stem.bn, pair.conv, false);
    return pair;
}

static void test_not_folded(void **unused)
{
    Fixture *f = open();
    KilnError err = { 0 };

    (void)unused;
    Pair pair = record_pair(f); /* another reader of the convolution's result */
    KilnTensor *sum = kiln_add(pair.norm, pair.conv);
    check(kiln_graph_run(f->graph, &sum, 1, &err), &err);
    assert_int_equal(calls_of(f->graph, "batch_norm_eval"), 1);

    pair = record_pair(f); /* the convolution's result is read after the run */
    check(kiln_graph_run(f->graph, (KilnTensor *[]) { pair.norm, pair.conv }, 2, &err), &err);
    assert_int_equal(calls_of(f->graph, "batch_norm_eval"), 1);

    pair = record_pair(f); /* the step writes the statistics */
    KilnTensor *own = kiln_nn_batch_norm2d(&f->net.stem.bn,
                                           kiln_nn_conv2d(&f->net.stem.conv, pair.x), true);
    check(kiln_graph_run(f->graph, (KilnTensor *[]) { pair.norm, own }, 2, &err), &err);
    assert_int_equal(calls_of(f->graph, "batch_norm_eval"), 1);

    pair = record_pair(f); /* nothing of that */
    check(kiln_graph_run(f->graph, &pair.norm, 1, &err), &err);
    assert_int_equal(calls_of(f->graph, "batch_norm_eval"), 0);
    shut(f);
}

/* A relu without a normalization, with a bias. */
static void test_relu(void **unused)
{
    Fixture *f = open();
    float results[2][IMAGES * SIZE * SIZE * WIDTH];
    float weight[WIDTH * 3 * 3 * 3], bias[WIDTH];
    KilnError err = { 0 };
    bool negative = false;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(weight); i++)
        weight[i] = (float)(i % 7) / 8.0f - 0.375f;
    for (size_t i = 0; i < KILN_COUNT(bias); i++)
        bias[i] = (float)i / 16.0f - 0.5f;
    for (int off = 0; off < 2; off++) {
        f->graph->passes_off = off == 0 ? 0 : 1u << KILN_PASS_fold_norm;
        kiln_graph_begin(f->graph);
        KilnTensor *x = kiln_graph_input(f->graph, KILN_F32, KILN_SHAPE(IMAGES, SIZE, SIZE, 3),
                                         f->pixels);
        KilnTensor *w = kiln_graph_input(f->graph, KILN_F32, KILN_SHAPE(WIDTH, 3, 3, 3), weight);
        KilnTensor *b = kiln_graph_input(f->graph, KILN_F32, KILN_SHAPE(WIDTH), bias);
        KilnTensor *y = kiln_relu(kiln_conv2d(x, w, b, (KilnConv) { .stride = 1, .padding = 1 }));
        check(kiln_graph_run(f->graph, &y, 1, &err), &err);
        assert_int_equal(calls_of(f->graph, "relu") + calls_of(f->graph, "map"), off);
        memcpy(results[off], kiln_tensor_data(y), sizeof(results[off]));
    }
    for (size_t i = 0; i < KILN_COUNT(results[0]); i++) {
        assert_float_equal(results[0][i], results[1][i], 1e-5);
        negative |= results[0][i] == 0.0f;
    }
    assert_true(negative);
    shut(f);
}

/* A step without operations: its plan has no calls to move. The sanitizers see a mistake. */
static void test_no_calls(void **state)
{
    (void)state;
    Fixture *f = open();
    const KilnShape shape = { .rank = 1, .dim = { 3 } };
    const float values[] = { 1.0f, 2.0f, 3.0f };
    KilnError err = { 0 };

    kiln_graph_begin(f->graph);
    KilnTensor *x = kiln_graph_input(f->graph, KILN_F32, shape, values);
    check(kiln_graph_run(f->graph, &x, 1, &err), &err);
    assert_memory_equal(kiln_tensor_data(x), values, sizeof(values));
    shut(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_computed_once),
        cmocka_unit_test(test_written_weights),
        cmocka_unit_test(test_host_weights),
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_not_folded),
        cmocka_unit_test(test_relu),
        cmocka_unit_test(test_no_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
