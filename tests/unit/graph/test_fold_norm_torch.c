/* Convolutions and batch normalization in evaluation, with random running statistics, against
 * values recorded from PyTorch (tests/record/folded_norm.py): folded, not folded, and in bf16. */
#include <math.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/passes/pass_list.h"
#include "graph/plan/profile.h"
#include "tests/data/ops/folded_norm.h"
#include "tests/support/cmocka.h"

/* How often an operation is in the step that ran. */
static int calls_of(const KilnGraph *graph, const char *op)
{
    KilnProfileRow row;
    int calls = 0;

    for (size_t i = 0; kiln_graph_profile(graph, i, &row); i++)
        calls += strcmp(row.op, op) == 0;
    return calls;
}

/* Parameters are variables, which no step here writes. */
static KilnTensor *param(KilnGraph *graph, const float *values, KilnShape shape)
{
    return kiln_graph_variable(graph, KILN_F32, shape, (float *)(uintptr_t)values, false, NULL);
}

#define PART(name, x, bias, in, out, kernel, ...)                                                  \
    kiln_batch_norm(                                                                               \
        kiln_conv2d(x, param(graph, folded_##name##_weight, KILN_SHAPE(out, in, kernel, kernel)),  \
                    bias, (KilnConv) { __VA_ARGS__ }),                                             \
        param(graph, folded_##name##_scale, KILN_SHAPE(out)),                                      \
        param(graph, folded_##name##_bias, KILN_SHAPE(out)),                                       \
        param(graph, folded_##name##_mean, KILN_SHAPE(out)),                                       \
        param(graph, folded_##name##_var, KILN_SHAPE(out)), norm)

static KilnTensor *record_block(KilnGraph *graph)
{
    const KilnBatchNorm norm = { .eps = 1e-5 };
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2, 20, 18, 3), folded_x);
    KilnTensor *bias = param(graph, folded_stem_conv_bias, KILN_SHAPE(8));

    x = kiln_relu(PART(stem, x, bias, 3, 8, 3, .stride = 1, .padding = 1));
    KilnTensor *y = kiln_relu(PART(first, x, NULL, 8, 16, 3, .stride = 2, .padding = 1));
    y = PART(second, y, NULL, 16, 16, 3, .stride = 1, .padding = 1);
    return kiln_relu(kiln_add(y, PART(down, x, NULL, 8, 16, 1, .stride = 2)));
}

/* Twice, since the second run reads folded weights that the first one kept. */
static void check(KilnConvolution convolution, KilnPrecision precision, unsigned passes_off,
                  int norms, double most)
{
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_backend_cpu_new(2, &backend, &err), KILN_OK);
    kiln_backend_set_convolution(backend, convolution);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_set_precision(graph, precision);
    graph->passes_off = passes_off;
    graph->profile = true;
    for (int run = 0; run < 2; run++) {
        double worst = 0.0, scale = 0.0;

        kiln_graph_begin(graph);
        KilnTensor *y = record_block(graph);
        if (kiln_graph_run(graph, &y, 1, &err) < 0)
            fail_msg("%s", err.text);
        const float *got = kiln_tensor_data(y);
        assert_int_equal(kiln_shape_count(kiln_tensor_shape(y)), KILN_COUNT(folded_y));
        for (size_t i = 0; i < KILN_COUNT(folded_y); i++) {
            const double d = fabs((double)got[i] - (double)folded_y[i]);

            worst = d > worst || isnan(d) ? d : worst;
            scale = fmax(scale, fabs((double)folded_y[i]));
        }
        if (!(worst <= most * scale))
            fail_msg("run %d differs by %g of %g", run, worst, scale);
        assert_int_equal(calls_of(graph, "batch_norm_eval"), norms);
    }
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

static void test_folded(void **unused)
{
    (void)unused;
    check(KILN_CONVOLUTION_AUTO, KILN_PRECISION_32, 0, 0, 1e-5);
    check(KILN_CONVOLUTION_DIRECT, KILN_PRECISION_32, 0, 0, 1e-5);
    check(KILN_CONVOLUTION_AUTO, KILN_PRECISION_32, 1u << KILN_PASS_layouts, 0, 1e-5);
}

static void test_not_folded(void **unused)
{
    (void)unused;
    check(KILN_CONVOLUTION_AUTO, KILN_PRECISION_32, 1u << KILN_PASS_fold_norm, 4, 1e-5);
}

static void test_bf16(void **unused)
{
    (void)unused;
    check(KILN_CONVOLUTION_AUTO, KILN_BF16_MIXED, 0, 4, 2e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_not_folded),
        cmocka_unit_test(test_bf16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
