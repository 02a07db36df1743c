/* Buffers, and steps on a backend whose memory is not the host's: inputs and results are copied. */
#include <math.h>
#include <string.h>

#include "backend/host_memory.h"
#include "tests/support/cmocka.h"
#include "tests/support/param_memory.h"

/* The reference backend, which here claims that the host can not see its memory. */
static KilnMemoryOps away_memory;
static KilnBackendOps away_ops;

static void open_away(KilnBackend **backend, KilnGraph **graph)
{
    KilnError err = { 0 };

    assert_int_equal(kiln_backend_ref_new(backend, &err), KILN_OK);
    away_memory = kiln_host_memory;
    away_memory.on_host = false;
    away_ops = *(*backend)->ops;
    away_ops.memory = &away_memory;
    (*backend)->ops = &away_ops;
    assert_int_equal(kiln_graph_new(*backend, graph, &err), KILN_OK);
}

static void test_copies(void **unused)
{
    const int32_t numbers[] = { 1, 2, 3, 4 };
    int32_t got[4] = { 9, 9, 9, 9 };
    KilnBuffer *a = NULL, *b = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_buffer_new(store_backend(), sizeof(numbers), &a, &err), KILN_OK);
    assert_int_equal(kiln_buffer_new(store_backend(), sizeof(numbers), &b, &err), KILN_OK);
    assert_int_equal(kiln_buffer_bytes(a), sizeof(numbers));
    kiln_buffer_download(a, 0, got, sizeof(got));
    for (int i = 0; i < 4; i++)
        assert_int_equal(got[i], 0);
    kiln_buffer_upload(a, 0, numbers, sizeof(numbers));
    kiln_buffer_copy(b, 4, a, 0, 12);
    kiln_buffer_clear(b, 8, 4);
    kiln_buffer_download(b, 0, got, sizeof(got));
    assert_memory_equal(got, ((int32_t[]) { 0, 1, 0, 3 }), sizeof(got));
    assert_int_equal(kiln_backend_synchronize(store_backend(), &err), KILN_OK);
    kiln_buffer_free(a);
    kiln_buffer_free(b);
    kiln_buffer_free(NULL);
}

static void test_inputs_and_results(void **unused)
{
    float values[3] = { 1.0f, 2.0f, 3.0f };
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    (void)unused;
    open_away(&backend, &graph);
    for (int step = 0; step < 3; step++) {
        kiln_graph_begin(graph);
        KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(3), values);
        KilnTensor *y = kiln_scale(x, 2.0), *sum = kiln_sum(y);
        KilnTensor *both[] = { y, sum, x };

        if (kiln_graph_run(graph, both, 3, &err) < 0)
            fail_msg("%s", err.text);
        values[0] = -5.0f; /* the results are copies, and the leaf is the caller's */
        assert_true(((const float *)kiln_tensor_data(y))[0] == (step == 0 ? 2.0f : 6.0f));
        assert_true(fabs(kiln_tensor_scalar(sum) - (step == 0 ? 12.0 : 16.0)) < 1e-6);
        assert_ptr_equal(kiln_tensor_data(x), values);
        values[0] = 3.0f;
    }
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

static void test_refused_variable(void **unused)
{
    float value = 1.0f;
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    (void)unused;
    open_away(&backend, &graph);
    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_variable(graph, KILN_F32, KILN_SCALAR, &value, false, NULL);
    KilnTensor *y = kiln_exp(x);
    assert_int_equal(kiln_graph_run(graph, &y, 1, &err), KILN_E_INTERNAL);
    assert_string_equal(err.text, "a variable of shape [] is in the host's memory, which the "
                                  "reference backend can not write; use a buffer");
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

/* A parameter is read and written there, and checked for NaN. */
static void test_parameter(void **unused)
{
    const float values[] = { 1.0f, NAN };
    float got[2];
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnParams *params = NULL;
    KilnParam *param = NULL;
    KilnError err = { 0 };

    (void)unused;
    open_away(&backend, &graph);
    assert_int_equal(kiln_params_new(1, &params, &err), KILN_OK);
    const KilnScope root = kiln_params_root(params);
    const KilnInit two = { .kind = KILN_INIT_CONSTANT, .a = 2.0 };
    assert_int_equal(kiln_param_new(&root, "weight", KILN_SHAPE(2), two, &param, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(params, backend, &err), KILN_OK);
    for (int i = 0; i < 2; i++) {
        kiln_graph_begin(graph);
        graph->detect_anomaly = true;
        KilnTensor *leaf = kiln_param_tensor(param, graph), *y = kiln_square(leaf);
        KilnTensor *both[] = { leaf, y };

        kiln_graph_backward(graph, kiln_sum(y));
        assert_int_equal(kiln_graph_run(graph, both, 2, &err), i == 0 ? KILN_OK : KILN_E_NUMERIC);
        if (i == 0) {
            assert_true(((const float *)kiln_tensor_data(leaf))[1] == 2.0f);
            kiln_param_read_gradient(param, KILN_F32, got);
            assert_true(got[0] == 4.0f && got[1] == 4.0f);
            kiln_param_write(param, KILN_F32, values);
        } else {
            assert_non_null(strstr(err.text, "holds NaN, first at element 1"));
        }
    }
    kiln_params_free(params);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_inputs_and_results),
        cmocka_unit_test(test_refused_variable),
        cmocka_unit_test(test_parameter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
