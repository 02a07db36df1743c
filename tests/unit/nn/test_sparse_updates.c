/* Embeddings of which an update changes only the looked-up rows: against PyTorch's optimizers with
 * sparse gradients, and against the update of all rows. */
#include <math.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/sparse_rows.h"
#include "nn/params.h"
#include "tests/support/cmocka.h"
#include "tests/support/param_memory.h"
#include "tests/support/torch_groups.h"

#include "tests/data/ops/sparse_updates.h"

enum { ROWS = 11, WIDTH = 3, STEPS = 7, WORDS = 4, BAGS = 2, BAG = 3, SIZE = ROWS * WIDTH };
enum { BATCHES = STEPS + STEPS / 3 };

typedef struct Net {
    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    KilnEmbedding layer;
    float slots[2][SIZE], hyper[3];
} Net;

static float number(int64_t i, int64_t batch)
{
    return (float)((i * 7 + batch * 3) % 13 - 6) / 8.0f;
}

static void net_init(Net *net, bool cpu)
{
    KilnError err = { 0 };

    *net = (Net) { 0 };
    assert_int_equal(cpu ? kiln_backend_cpu_new(2, &net->backend, &err)
                         : kiln_backend_ref_new(&net->backend, &err),
                     KILN_OK);
    assert_int_equal(kiln_graph_new(net->backend, &net->graph, &err), KILN_OK);
    assert_int_equal(kiln_params_new(1, &net->params, &err), KILN_OK);
    const KilnScope root = kiln_params_root(net->params);
    assert_int_equal(kiln_nn_embedding_init(&net->layer, &root, "words", ROWS, WIDTH, -1, &err),
                     KILN_OK);
    assert_int_equal(kiln_params_seal(net->params, net->backend, &err), KILN_OK);
    for (int64_t i = 0; i < SIZE; i++)
        params_values(net->params)[i] = number(i, 5);
}

static void net_release(Net *net)
{
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
}

static void run(Net *net)
{
    KilnError err = { 0 };

    if (kiln_graph_run(net->graph, NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
}

/* Records the loss of tests/record/sparse_updates.py, over buffers that last until the run. */
static void record_gradient(Net *net, int64_t batch, bool accumulates)
{
    static int32_t words[WORDS], bags[BAGS * BAG];
    static float factors[WORDS * WIDTH], bag_factors[BAGS * WIDTH];
    KilnGraph *graph = net->graph;

    for (int64_t i = 0; i < WORDS; i++)
        words[i] = (int32_t)((batch * 5 + i * i * 3) % ROWS);
    for (int64_t i = 0; i < BAGS * BAG; i++)
        bags[i] = (int32_t)((batch * 3 + i * i) % ROWS);
    for (int64_t i = 0; i < WORDS * WIDTH; i++)
        factors[i] = number(i, batch);
    for (int64_t i = 0; i < BAGS * WIDTH; i++)
        bag_factors[i] = number(i, batch + 1);
    kiln_graph_begin(graph);
    graph->accumulates = accumulates;
    KilnTensor *rows =
        kiln_nn_embedding(&net->layer, kiln_graph_input(graph, KILN_I32, KILN_SHAPE(WORDS), words));
    KilnTensor *means = kiln_nn_embedding_bag(
        &net->layer, kiln_graph_input(graph, KILN_I32, KILN_SHAPE(BAGS, BAG), bags), NULL,
        KILN_BAG_MEAN);
    KilnTensor *by_row = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(WORDS, WIDTH), factors);
    KilnTensor *by_bag = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BAGS, WIDTH), bag_factors);
    kiln_graph_backward(
        graph, kiln_add(kiln_sum(kiln_mul(rows, by_row)), kiln_sum(kiln_mul(means, by_bag))));
}

static KilnTensor *leaf(Net *net, KilnDType dtype, KilnShape shape, void *data)
{
    return kiln_graph_variable(net->graph, dtype, shape, data, false, NULL);
}

static int32_t *list_of(const Net *net)
{
    return location_data(kiln_param_sparse_rows_location(net->layer.weight));
}

/* The update of all rows, or of those that the gradient lists. */
static KilnFlat flat_of(Net *net, int64_t n_hyper, int n_slots, bool sparse)
{
    const KilnShape shape = sparse ? KILN_SHAPE(ROWS, WIDTH) : KILN_SHAPE(SIZE);
    const int64_t words = kiln_param_sparse_rows_words(net->layer.weight);
    KilnFlat flat = {
        .param = leaf(net, KILN_F32, shape, params_values(net->params)),
        .grad = leaf(net, KILN_F32, shape, params_gradients(net->params)),
        .hyper = kiln_graph_input(net->graph, KILN_F32, KILN_SHAPE(n_hyper), net->hyper),
    };

    if (sparse)
        flat.segment_ends = leaf(net, KILN_I32, KILN_SHAPE(words), list_of(net));
    for (int i = 0; i < n_slots; i++)
        flat.slots[i] = leaf(net, KILN_F32, shape, net->slots[i]);
    return flat;
}

typedef void Step(Net *net, int64_t t, bool sparse);

static void sgd_step(Net *net, int64_t t, bool sparse)
{
    (void)t;
    net->hyper[0] = 0.3f;
    net->hyper[1] = 0.0f;
    const KilnFlat flat = flat_of(net, 2, 0, sparse);
    kiln_sgd_update(&flat, (KilnSgd) { 0 });
}

static void adagrad_step(Net *net, int64_t t, bool sparse)
{
    net->hyper[0] = (float)(0.2 / (1.0 + (double)(t - 1) * 0.1));
    net->hyper[1] = t == 1 ? 1.0f : 0.0f;
    const KilnFlat flat = flat_of(net, 2, 1, sparse);
    kiln_adagrad_update(&flat, (KilnAdagrad) { .initial_accumulator_value = 0.25, .eps = 1e-10 });
}

static void adam_step(Net *net, int64_t t, bool sparse)
{
    net->hyper[0] = 0.05f;
    net->hyper[1] = (float)(1.0 - pow(0.8, (double)t));
    net->hyper[2] = (float)(1.0 - pow(0.9, (double)t));
    const KilnFlat flat = flat_of(net, 3, 2, sparse);
    kiln_adam_update(&flat, (KilnAdam) { .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-8 });
}

static void train(Net *net, Step *step, bool sparse)
{
    int64_t batch = 0;

    for (int64_t t = 1; t <= STEPS; t++) {
        const bool two = t % 3 == 0;

        record_gradient(net, batch++, false);
        if (two) {
            run(net);
            record_gradient(net, batch++, true);
        }
        step(net, t, sparse);
        run(net);
    }
    assert_int_equal(batch, BATCHES);
}

static const struct {
    const char *name;
    Step *step;
    bool same; /* as the update of all rows */
} cases[] = {
    { "sgd", sgd_step, true },
    { "adagrad", adagrad_step, true },
    { "adam", adam_step, false },
};

static void test_torch(void **unused)
{
    (void)unused;
    for (size_t c = 0; c < 2 * KILN_COUNT(cases); c++) {
        const Recorded *want = &records[c / 2];
        Net net;

        assert_string_equal(want->name, cases[c / 2].name);
        net_init(&net, c % 2 == 0);
        train(&net, cases[c / 2].step, true);
        for (int i = 0; i < SIZE; i++)
            if (fabsf(params_values(net.params)[i] - want->values[i]) > 2e-6f)
                fail_msg("%s, %s, element %d: %.9g, want %.9g", want->name, net.backend->ops->name,
                         i, (double)params_values(net.params)[i], (double)want->values[i]);
        net_release(&net);
    }
}

/* SGD and Adagrad leave rows without a gradient as they are, to the bit; Adam does not. */
static void test_all_rows(void **unused)
{
    (void)unused;
    for (size_t c = 0; c < KILN_COUNT(cases); c++) {
        Net some, all;

        net_init(&some, true);
        net_init(&all, true);
        train(&some, cases[c].step, true);
        train(&all, cases[c].step, false);
        const bool same = memcmp(params_values(some.params), params_values(all.params),
                                 SIZE * sizeof(float)) == 0;
        assert_int_equal(same, cases[c].same);
        net_release(&some);
        net_release(&all);
    }
}

static bool is_listed(const Net *net, int32_t row)
{
    const int32_t *list = list_of(net);

    for (int32_t i = 0; i < list[0]; i++)
        if (list[1 + i] == row)
            return true;
    return false;
}

/* Each looked-up row is listed once; a batch that adds its gradient adds its rows. */
static void test_list(void **unused)
{
    (void)unused;
    for (int cpu = 0; cpu < 2; cpu++) {
        Net net;

        net_init(&net, cpu);
        record_gradient(&net, 0, false); /* words 0 3 1 5, bags 0 1 4 9 5 3 */
        run(&net);
        assert_int_equal(list_of(&net)[0], 6);
        assert_true(is_listed(&net, 9) && is_listed(&net, 4) && !is_listed(&net, 2));
        record_gradient(&net, 1, true); /* words 5 8 6 10, bags 3 4 7 1 8 6 */
        run(&net);
        assert_int_equal(list_of(&net)[0], 10);
        record_gradient(&net, 2, false); /* words 10 2 0 4, bags 6 7 10 4 0 9 */
        run(&net);
        assert_int_equal(list_of(&net)[0], 7);
        for (int32_t row = 0; row < ROWS; row++)
            for (int d = 0; d < WIDTH && !is_listed(&net, row); d++)
                assert_true(params_gradients(net.params)[row * WIDTH + d] == 0.0f);
        net_release(&net);
    }
}

/* A step without the embedding, or with a lookup that its loss does not use, leaves no row of the
 * last step to be updated again; one that accumulates keeps them. */
static void test_unused(void **unused)
{
    static const int32_t word = 3;
    static const float one = 1.0f;

    (void)unused;
    for (int how = 0; how < 8; how++) {
        const bool looks_up = (how & 1) != 0, accumulates = (how & 2) != 0;
        float x = 2.0f, dx = 0.0f;
        Net net;

        net_init(&net, how < 4);
        record_gradient(&net, 0, false);
        run(&net);
        assert_int_equal(list_of(&net)[0], 6);
        kiln_graph_begin(net.graph);
        net.graph->accumulates = accumulates;
        if (looks_up)
            kiln_nn_embedding(&net.layer,
                              kiln_graph_input(net.graph, KILN_I32, KILN_SHAPE(1), &word));
        KilnTensor *other = kiln_graph_variable(net.graph, KILN_F32, KILN_SCALAR, &x, true, &dx);
        kiln_params_backward(
            net.params, net.graph,
            kiln_mul(other, kiln_graph_input(net.graph, KILN_F32, KILN_SCALAR, &one)));
        adam_step(&net, 1, true);
        run(&net);
        assert_true(dx == 1.0f);
        assert_int_equal(list_of(&net)[0], accumulates ? 6 : 0);
        for (int i = 0; i < SIZE && !accumulates; i++) {
            assert_true(params_gradients(net.params)[i] == 0.0f);
            assert_true(params_values(net.params)[i] == number(i, 5));
        }
        net_release(&net);
    }
}

/* Clipping reads and limits the listed rows alone. */
static void test_clipping(void **unused)
{
    Net net;
    double sum = 0.0;

    (void)unused;
    net_init(&net, true);
    record_gradient(&net, 0, false);
    run(&net);
    float *gradients = params_gradients(net.params);
    for (int i = 0; i < SIZE; i++)
        sum += (double)gradients[i] * (double)gradients[i];
    gradients[2 * WIDTH] = 100.0f; /* a row that is not listed */
    kiln_graph_begin(net.graph);
    KilnTensor *gradient = leaf(&net, KILN_F32, KILN_SHAPE(ROWS, WIDTH), gradients);
    KilnTensor *rows = leaf(
        &net, KILN_I32, KILN_SHAPE(kiln_param_sparse_rows_words(net.layer.weight)), list_of(&net));
    KilnTensor *norm = kiln_l2_norm_sparse(gradient, rows);
    KilnError err = { 0 };
    kiln_clamp_update_sparse(gradient, rows, 0.25);
    if (kiln_graph_run(net.graph, &norm, 1, &err) < 0)
        fail_msg("%s", err.text);
    assert_float_equal(kiln_tensor_scalar(norm), sqrt(sum), 1e-6);
    for (int i = 0; i < SIZE; i++)
        assert_true(i == 2 * WIDTH ? gradients[i] == 100.0f : fabsf(gradients[i]) <= 0.25f);
    net_release(&net);
}

static void refused(Net *net, const char *says)
{
    KilnError err = { 0 };

    assert_true(kiln_graph_check(net->graph, &err) < 0);
    if (strstr(err.text, says) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, says);
}

static void test_refused(void **unused)
{
    Net net;

    (void)unused;
    net_init(&net, true);
    kiln_graph_begin(net.graph);
    KilnFlat flat = flat_of(&net, 2, 1, true);
    kiln_sgd_update(&flat, (KilnSgd) { .momentum = 0.9 });
    refused(&net, "cannot update single rows");
    kiln_graph_begin(net.graph);
    flat = flat_of(&net, 2, 0, true);
    flat.segment_ends = leaf(&net, KILN_I32, KILN_SHAPE(ROWS), list_of(&net));
    kiln_sgd_update(&flat, (KilnSgd) { 0 });
    refused(&net, "must be [23], got [11]");
    net_release(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch),    cmocka_unit_test(test_all_rows),
        cmocka_unit_test(test_list),     cmocka_unit_test(test_unused),
        cmocka_unit_test(test_clipping), cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
