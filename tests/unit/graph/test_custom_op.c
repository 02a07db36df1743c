/* Operations that components define, by that of an example plugin: values, gradients, both
 * backends, types, threads, and descriptions that are refused. */
#include <math.h>
#include <string.h>

#include "tests/support/cmocka.h"

#include "examples/plugin/sparsemax.c"
#include "graph/backend.h"
#include "graph/gradcheck.h"
#include "graph/plan/profile.h"

typedef struct Fixture {
    KilnBackend *backend;
    KilnGraph *graph;
} Fixture;

static Fixture fixture_new(bool cpu, int threads)
{
    Fixture f = { 0 };
    KilnError err;

    assert_int_equal(cpu ? kiln_backend_cpu_new(threads, &f.backend, &err)
                         : kiln_backend_ref_new(&f.backend, &err),
                     KILN_OK);
    assert_int_equal(kiln_graph_new(f.backend, &f.graph, &err), KILN_OK);
    kiln_graph_begin(f.graph);
    return f;
}

static void fixture_free(Fixture *f)
{
    kiln_graph_free(f->graph);
    kiln_backend_free(f->backend);
}

static void run(Fixture *f, KilnTensor *output)
{
    KilnError err;

    if (kiln_graph_run(f->graph, &output, output != NULL ? 1 : 0, &err) < 0)
        fail_msg("%s", err.text);
}

static void refused(Fixture *f, const char *says)
{
    KilnError err = { 0 };

    assert_true(kiln_graph_check(f->graph, &err) < 0);
    if (strstr(err.text, says) == NULL)
        fail_msg("%s: does not say: %s", err.text, says);
    kiln_graph_begin(f->graph);
}

/* ---- Values and gradients ------------------------------------------------------------- */

/* The paper's definition: sums to 1, not negative, and x - p is the same wherever p > 0. */
static void check_row(const float *x, const float *p, int64_t n)
{
    double sum = 0.0, t = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        assert_true(p[i] >= 0.0F);
        sum += (double)p[i];
        if (p[i] > 0.0F && t == -INFINITY)
            t = (double)x[i] - (double)p[i];
        assert_true(p[i] == 0.0F ? true : fabs((double)x[i] - (double)p[i] - t) < 1e-5);
    }
    for (int64_t i = 0; i < n; i++)
        assert_true(p[i] > 0.0F || (double)x[i] <= t + 1e-5);
    assert_true(fabs(sum - 1.0) < 1e-5);
}

static void test_values(void **unused)
{
    enum { ROWS = 501, COLUMNS = 7 };
    static float x[ROWS * COLUMNS], first[ROWS * COLUMNS];
    KilnRng rng;

    (void)unused;
    kiln_rng_init(&rng, 3, KILN_RNG_USER, 0, 0);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)kiln_rng_normal(&rng);
    for (int variant = 0; variant < 3; variant++) {
        Fixture f = fixture_new(variant > 0, variant);
        KilnTensor *input = kiln_graph_input(f.graph, KILN_F32, KILN_SHAPE(3, ROWS / 3, COLUMNS),
                                             x);
        KilnTensor *all[1];
        KilnTensor *p = kiln_custom_op(f.graph, &sparsemax, &input, NULL, all);

        assert_ptr_equal(p, all[0]);
        run(&f, p);
        const float *values = kiln_tensor_data(p);
        for (int row = 0; row < ROWS; row++)
            check_row(x + row * COLUMNS, values + row * COLUMNS, COLUMNS);
        if (variant == 0)
            memcpy(first, values, sizeof(first));
        assert_memory_equal(first, values, sizeof(first));
        fixture_free(&f);
    }
}

static KilnTensor *gate(KilnGraph *graph, KilnTensor *const *x, void *ctx)
{
    KilnTensor *scaled = kiln_tanh(x[0]);

    (void)ctx;
    return kiln_sum(kiln_mul(kiln_custom_op(graph, &sparsemax, &scaled, NULL, NULL), x[1]));
}

static void test_gradient(void **unused)
{
    static double x[12] = { 0.1, 2.0, -1.0, 0.7, 0.2, 0.3, -3.0, 0.9, 0.4, 0.35, 0.5, 0.45 };
    static double weights[12] = { 1, -2, 3, 4, 0.5, -0.5, 2, 1, 3, -1, 2, 7 };
    const KilnGradVariable variables[] = { { KILN_SHAPE(3, 4), x }, { KILN_SHAPE(3, 4), weights } };
    KilnGradWorst worst;
    KilnBackend *backend;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_backend_ref_f64_new(&backend, &err), KILN_OK);
    if (kiln_gradcheck(backend, gate, NULL, variables, 2, 1e-6, &worst, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(worst.error < 1e-7);
    kiln_backend_free(backend);
}

/* In mixed precision the kernel still gets f32. */
static void test_mixed_precision(void **unused)
{
    static float x[8] = { 1, 2, 3, 4, 4, 3, 2, 1 },
                 w[16] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 };
    Fixture f = fixture_new(true, 1);

    (void)unused;
    kiln_graph_set_precision(f.graph, KILN_BF16_MIXED);
    KilnTensor *y = kiln_linear(kiln_graph_input(f.graph, KILN_F32, KILN_SHAPE(2, 4), x),
                                kiln_graph_input(f.graph, KILN_F32, KILN_SHAPE(4, 4), w), NULL);
    KilnTensor *p = kiln_custom_op(f.graph, &sparsemax, &y, NULL, NULL);
    run(&f, p);
    check_row(x, kiln_tensor_data(p), 4);
    fixture_free(&f);
}

static void test_profile_has_its_name(void **unused)
{
    static float x[4] = { 1, 2, 3, 4 };
    Fixture f = fixture_new(true, 1);
    KilnTensor *input = kiln_graph_input(f.graph, KILN_F32, KILN_SHAPE(4), x);
    KilnProfileRow row;

    (void)unused;
    run(&f, kiln_custom_op(f.graph, &sparsemax, &input, NULL, NULL));
    assert_true(kiln_graph_profile(f.graph, 0, &row));
    assert_string_equal(row.op, "sparsemax");
    fixture_free(&f);
}

/* ---- Refusals ---------------------------------------------------------------------------- */

static void test_mistakes(void **unused)
{
    static float x[4];
    Fixture f = fixture_new(true, 1);
    const KilnCustomOp no_size = { .name = "tall" }, no_kernel = { .size = sizeof(KilnCustomOp),
                                                                   .name = "flat",
                                                                   .infer = sparsemax_infer };
    KilnCustomOp idle = sparsemax, both = sparsemax, no_gradient = sparsemax;

    (void)unused;
    KilnTensor *scalar = kiln_graph_input(f.graph, KILN_F32, KILN_SCALAR, x);
    assert_true(kiln_tensor_poisoned(kiln_custom_op(f.graph, &sparsemax, &scalar, NULL, NULL)));
    refused(&f, "sparsemax: x must be [..., K], got []");
    KilnTensor *row = kiln_graph_input(f.graph, KILN_F32, KILN_SHAPE(4), x);
    assert_true(kiln_tensor_poisoned(kiln_custom_op(f.graph, &no_size, &row, NULL, NULL)));
    refused(&f, "custom operation tall: size and name must be set");
    row = kiln_graph_input(f.graph, KILN_F32, KILN_SHAPE(4), x);
    kiln_custom_op(f.graph, &no_kernel, &row, NULL, NULL);
    refused(&f, "custom operation flat: infer and cpu must be set");
    idle.n_outputs = 0;
    row = kiln_graph_input(f.graph, KILN_F32, KILN_SHAPE(4), x);
    kiln_custom_op(f.graph, &idle, &row, NULL, NULL);
    refused(&f, "it has no outputs and updates nothing");
    both.updates = 1;
    row = kiln_graph_input(f.graph, KILN_F32, KILN_SHAPE(4), x);
    kiln_custom_op(f.graph, &both, &row, NULL, NULL);
    refused(&f, "has no gradient");
    KilnCustomOp writes = sparsemax;
    writes.updates = 1;
    writes.gradient = NULL;
    row = kiln_graph_input(f.graph, KILN_F32, KILN_SHAPE(4), x);
    kiln_custom_op(f.graph, &writes, &row, NULL, NULL);
    refused(&f, "sparsemax: input 1 is updated and must be a variable");
    no_gradient.gradient = NULL;
    KilnTensor *wants = kiln_graph_variable(f.graph, KILN_F32, KILN_SHAPE(4), x, true, NULL);
    kiln_graph_backward(f.graph,
                        kiln_sum(kiln_custom_op(f.graph, &no_gradient, &wants, NULL, NULL)));
    refused(&f, "backward: sparsemax has no gradient, which its input 1 wants");
    fixture_free(&f);
}

/* Without cpu_f64 there is no gradient check, and a message instead of a crash. */
static void test_no_f64(void **unused)
{
    static double x[4] = { 1, 2, 3, 4 };
    KilnCustomOp single = sparsemax;
    KilnBackend *backend;
    KilnGraph *graph;
    KilnError err;

    (void)unused;
    single.cpu_f64 = NULL;
    assert_int_equal(kiln_backend_ref_f64_new(&backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnTensor *input = kiln_graph_input(graph, KILN_F64, KILN_SHAPE(4), x);
    KilnTensor *p = kiln_custom_op(graph, &single, &input, NULL, NULL);
    assert_true(kiln_graph_run(graph, &p, 1, &err) < 0);
    assert_non_null(strstr(err.text, "sparsemax has no kernel in double precision: cpu_f64"));
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),          cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_mixed_precision), cmocka_unit_test(test_profile_has_its_name),
        cmocka_unit_test(test_mistakes),        cmocka_unit_test(test_no_f64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
