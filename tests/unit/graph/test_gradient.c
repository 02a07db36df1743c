/* The gradient check itself, and gradients of a whole network against finite differences, in
 * f64 on the reference backend. Single operations are in test_ops.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "graph/backend.h"
#include "graph/gradcheck.h"
#include "kiln/rng.h"

enum { MOST_VALUES = 4096 };

static KilnTensor *labels(KilnGraph *graph, int64_t n)
{
    static const int32_t values[] = { 2, 0, 1, 2, 1, 0 };

    assert_true(n <= (int64_t)KILN_COUNT(values));
    return kiln_graph_input(graph, KILN_I32, KILN_SHAPE(n), values);
}

/* A whole network: convolution, normalization, a residual sum, pooling, a
 * linear layer and the loss. */
static KilnTensor *network(KilnGraph *graph, KilnTensor *const *x, void *ctx)
{
    static double mean[3], var[3];
    const KilnConv conv = { .stride = 1, .padding = 1 };
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = true };
    KilnShape channels = KILN_SHAPE(3);

    (void)ctx;
    KilnTensor *y = kiln_conv2d(x[0], x[1], NULL, conv);
    y = kiln_batch_norm(y, x[2], x[3],
                        kiln_graph_variable(graph, KILN_F64, channels, mean, false, NULL),
                        kiln_graph_variable(graph, KILN_F64, channels, var, false, NULL), norm);
    y = kiln_relu(kiln_add(y, x[0]));
    y = kiln_flatten(kiln_max_pool2d(y, (KilnPool) { .kernel = 2 }));
    return kiln_cross_entropy(kiln_linear(y, x[4], x[5]), labels(graph, 2),
                              (KilnCrossEntropy) { .label_smoothing = 0.1 });
}

static void test_network(void **unused)
{
    static double values[6][MOST_VALUES];
    const KilnShape shapes[6] = { KILN_SHAPE(2, 4, 4, 3), KILN_SHAPE(3, 3, 3, 3), KILN_SHAPE(3),
                                  KILN_SHAPE(3),          KILN_SHAPE(3, 12),      KILN_SHAPE(3) };
    KilnGradVariable variables[6];
    KilnGradWorst worst;
    KilnBackend *backend;
    KilnError err;
    KilnRng rng;

    (void)unused;
    kiln_rng_init(&rng, 5, KILN_RNG_USER, 2, 0);
    for (size_t i = 0; i < 6; i++) {
        variables[i] = (KilnGradVariable) { shapes[i], values[i] };
        for (int64_t k = 0; k < kiln_shape_count(&shapes[i]); k++)
            values[i][k] = (double)kiln_rng_range(&rng, -0.7f, 0.7f);
    }
    assert_int_equal(kiln_backend_ref_f64_new(&backend, &err), KILN_OK);
    if (kiln_gradcheck(backend, network, NULL, variables, 6, 1e-6, &worst, &err) < 0)
        fail_msg("%s", err.text);
    if (!(worst.error < 1e-7))
        fail_msg("input %zu, element %lld: %.10g, differences say %.10g", worst.variable,
                 (long long)worst.element, worst.gradient, worst.difference);
    kiln_backend_free(backend);
}

/* The check itself must notice a wrong gradient: here of a function whose
 * recorded form does not depend on the variable as its value does. */
static KilnTensor *dishonest(KilnGraph *graph, KilnTensor *const *x, void *ctx)
{
    const double *values = ctx;
    KilnTensor *hidden = kiln_graph_input(graph, KILN_F64, KILN_SHAPE(3), values);

    return kiln_sum(kiln_mul(x[0], hidden));
}

static void test_check_notices(void **unused)
{
    double values[3] = { 0.5, -0.25, 1.0 };
    KilnGradVariable variable = { KILN_SHAPE(3), values };
    KilnGradWorst worst;
    KilnBackend *backend;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_backend_ref_f64_new(&backend, &err), KILN_OK);
    assert_int_equal(kiln_gradcheck(backend, dishonest, values, &variable, 1, 1e-5, &worst, &err),
                     KILN_OK);
    assert_true(worst.error > 0.2);
    assert_true(values[0] == 0.5 && values[1] == -0.25 && values[2] == 1.0);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_check_notices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
