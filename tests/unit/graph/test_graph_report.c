/* Reports on plans: FLOPs as PyTorch counts them, which calls feed which, phases, and pieces of
 * the block. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/layers.h"
#include "graph/plan/execute.h"
#include "graph/plan/plan_report.h"
#include "nn/params.h"
#include "tests/support/components/built_model.h"
#include "tests/support/cmocka.h"
#include "tests/support/recorded_file.h"
#include "train/step/module_step.h"

/* ---- FLOPs of networks --------------------------------------------------------------- */

typedef struct Network {
    Built built;
    KilnParams *params;
    KilnBackend *backend;
    KilnGraph *graph;
} Network;

/* A training step of a ResNet on shapes alone; returns the loss. */
static KilnTensor *record_resnet(Network *net, const char *depth, int64_t batch_size, int64_t size)
{
    char option[16], stem[] = "stem=large";
    char *const options[] = { option, stem };
    KilnStep step = { 0 };
    KilnBatch batch = { .size = batch_size };
    KilnShape in = KILN_SHAPE(size, size, 3);
    KilnError err = { 0 };

    *net = (Network) { 0 };
    snprintf(option, sizeof(option), "depth=%s", depth);
    assert_int_equal(build_words(&net->built, KILN_KIND_MODEL, "resnet", options, 2, &err),
                     KILN_OK);
    assert_int_equal(kiln_params_new(1, &net->params, &err), KILN_OK);
    KilnScope root = kiln_params_root(net->params);
    assert_int_equal(setup_model(net->built.instance, &root, KILN_IMAGE, in, 1000, &err), KILN_OK);
    assert_int_equal(kiln_backend_ref_new(&net->backend, &err), KILN_OK);
    assert_int_equal(kiln_params_allocate(net->params, net->backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(net->backend, &net->graph, &err), KILN_OK);
    step.graph = net->graph;
    kiln_step_begin(&step, KILN_PHASE_FIT, true, &batch, 1, 0);
    KilnTensor *x = kiln_graph_input(net->graph, KILN_F32, KILN_SHAPE(batch_size, size, size, 3),
                                     NULL);
    KilnTensor *loss = kiln_sum(run_model(net->built.instance, &step, x));
    kiln_graph_backward(net->graph, loss);
    if (kiln_graph_check(net->graph, &err) < 0)
        fail_msg("%s", err.text);
    return loss;
}

static void network_free(Network *net)
{
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
    built_free(&net->built);
}

static void check_layers(const Network *net, double forward, double backward)
{
    size_t n = kiln_graph_layers(net->graph, NULL, 0);
    KilnLayerRow *rows = calloc(n, sizeof(*rows));
    double sum = 0.0, sum_backward = 0.0;

    assert_non_null(rows);
    (void)kiln_graph_layers(net->graph, rows, n);
    for (size_t i = 0; i < n; i++) {
        sum += rows[i].flops;
        sum_backward += rows[i].flops_backward;
    }
    assert_true(sum == forward);
    assert_true(sum_backward == backward);
    free(rows);
}

/* As torch.utils.flop_counter counts, to the last one; ResNet-18 is 1.814 G
 * multiplications and additions an image. */
static void test_resnets_as_torch(void **unused)
{
    Record record;

    (void)unused;
    record_open(&record, "flops.txt");
    while (record_line(&record)) {
        double forward = (double)record_i64(&record, 3), backward = (double)record_i64(&record, 4);
        Network net;
        KilnPlan *plan = NULL;
        KilnError err = { 0 };
        KilnTensor *loss = record_resnet(&net, record.word[0], record_i64(&record, 1),
                                         record_i64(&record, 2));

        if (kiln_graph_plan(net.graph, &loss, 1, &plan, &err) < 0)
            fail_msg("%s", err.text);
        if (kiln_plan_flops(plan, false) != forward || kiln_plan_flops(plan, true) != backward)
            fail_msg("resnet%s: %.0f and %.0f FLOPs, PyTorch counts %.0f and %.0f", record.word[0],
                     kiln_plan_flops(plan, false), kiln_plan_flops(plan, true), forward, backward);
        check_layers(&net, forward, backward);
        network_free(&net);
    }
    record_close(&record);
}

/* ---- A small step ---------------------------------------------------------------------------- */

typedef struct Small {
    KilnBackend *backend;
    KilnGraph *graph;
    KilnTensor *loss;
    float x[6], weight[8], gradient[8];
} Small;

static int small_set_up(void **state)
{
    Small *small = calloc(1, sizeof(*small));

    if (kiln_backend_ref_new(&small->backend, NULL) < 0 ||
        kiln_graph_new(small->backend, &small->graph, NULL) < 0)
        return -1;
    KilnTensor *x = kiln_graph_input(small->graph, KILN_F32, KILN_SHAPE(3, 2), small->x);
    KilnTensor *weight = kiln_graph_variable(small->graph, KILN_F32, KILN_SHAPE(4, 2),
                                             small->weight, true, small->gradient);
    KilnTensor *y = kiln_softmax(kiln_linear(x, weight, NULL), -1);
    small->loss = kiln_mean(y);
    kiln_graph_backward(small->graph, small->loss);
    kiln_increment(
        kiln_graph_variable(small->graph, KILN_I64, KILN_SHAPE(), small->x, false, NULL));
    *state = small;
    return 0;
}

static int small_tear_down(void **state)
{
    Small *small = *state;

    kiln_graph_free(small->graph);
    kiln_backend_free(small->backend);
    free(small);
    return 0;
}

static const KilnPlan *small_plan(Small *small)
{
    KilnPlan *plan = NULL;
    KilnError err = { 0 };

    if (kiln_graph_plan(small->graph, &small->loss, 1, &plan, &err) < 0)
        fail_msg("%s", err.text);
    return plan;
}

static const KilnCallReport *call_named(const KilnCallReport *calls, size_t n, const char *op)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(calls[i].op, op) == 0)
            return &calls[i];
    fail_msg("no call %s", op);
    return NULL;
}

static void test_calls_phases_and_sources(void **state)
{
    const KilnPlan *plan = small_plan(*state);
    size_t n = kiln_plan_calls(plan);
    KilnCallReport *calls = kiln_plan_report(plan);

    assert_non_null(calls);
    const KilnCallReport *linear = call_named(calls, n, "linear");
    assert_false(linear->backward);
    assert_true(linear->flops == 2.0 * 3 * 4 * 2);
    assert_true(kiln_shape_equal(&linear->shape, &KILN_SHAPE(3, 4)));
    assert_int_equal(linear->dtype, KILN_F32);
    assert_int_equal(linear->bytes, 3 * 4 * sizeof(float));
    const KilnCallReport *softmax = call_named(calls, n, "softmax");
    assert_false(softmax->backward);
    /* The gradient of the weight is in its own place, outside of the block. */
    const KilnCallReport *gradient = call_named(calls, n, "matmul");
    assert_true(gradient->backward);
    assert_false(gradient->in_block);
    assert_true(gradient->flops == 2.0 * 3 * 4 * 2);
    const KilnCallReport *update = call_named(calls, n, "increment");
    assert_true(update->update && update->backward);
    assert_int_equal(update->dtype, KILN_I64);
    assert_true(kiln_plan_trains(plan));
    for (size_t i = 1; i < n; i++) /* backward comes after forward */
        assert_true(calls[i].backward || !calls[i - 1].backward);
    free(calls);
}

/* Pieces that live at the same time don't overlap; together they are what is in use,
 * which never is more than the block. */
static void test_pieces_of_the_block(void **state)
{
    const KilnPlan *plan = small_plan(*state);
    size_t n = kiln_plan_pieces(plan, NULL, 0);
    KilnPiece *pieces = calloc(n, sizeof(*pieces));

    assert_true(n > 2);
    assert_int_equal(kiln_plan_pieces(plan, pieces, n), n);
    for (size_t call = 0; call < kiln_plan_calls(plan); call++) {
        size_t sum = 0;

        for (size_t i = 0; i < n; i++) {
            const KilnPiece *a = &pieces[i];

            assert_true(a->offset + a->bytes <= kiln_plan_bytes(plan));
            assert_true(a->first <= a->last && a->last < (int)kiln_plan_calls(plan));
            if (a->first > (int)call || a->last < (int)call)
                continue;
            sum += a->bytes;
            for (size_t k = 0; k < i; k++) {
                const KilnPiece *b = &pieces[k];

                if (b->first <= (int)call && b->last >= (int)call)
                    assert_true(a->offset + a->bytes <= b->offset ||
                                b->offset + b->bytes <= a->offset);
            }
        }
        assert_int_equal(sum, kiln_plan_occupied(plan, call));
        assert_true(sum <= kiln_plan_bytes(plan));
    }
    free(pieces);
}

/* The plan that is made without running is the one that running follows. */
static void test_plan_without_a_run(void **state)
{
    Small *small = *state;
    const KilnPlan *plan = small_plan(small);
    KilnError err = { 0 };

    assert_int_equal(kiln_graph_plans(small->graph), 1);
    assert_int_equal(kiln_graph_bytes(small->graph), 0);
    if (kiln_graph_run(small->graph, &small->loss, 1, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_graph_plans(small->graph), 1);
    assert_ptr_equal(small->graph->plans, plan);
    assert_int_equal(kiln_graph_bytes(small->graph), kiln_plan_bytes(plan));
    assert_true(fabs(kiln_tensor_scalar(small->loss) - 0.25) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resnets_as_torch),
        cmocka_unit_test_setup_teardown(test_calls_phases_and_sources, small_set_up,
                                        small_tear_down),
        cmocka_unit_test_setup_teardown(test_pieces_of_the_block, small_set_up, small_tear_down),
        cmocka_unit_test_setup_teardown(test_plan_without_a_run, small_set_up, small_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
