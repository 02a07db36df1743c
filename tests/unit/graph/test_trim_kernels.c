/* Kernels without the parts that meet only padding: the same values and gradients with fewer
 * operations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/passes/pass_list.h"
#include "graph/plan/plan_report.h"
#include "kiln/ops/image.h"
#include "kiln/rng.h"
#include "tests/support/cmocka.h"

enum { MOST = 6 * 8 * 5 * 5, PIXELS = 2 * 9 * 9 * 8 };

typedef struct Case {
    const char *name;
    int64_t height, width, channels, out, kernel;
    KilnConv conv;
    double share; /* of the operations that is left, at most; 1: all */
} Case;

static const Case cases[] = {
    { "one pixel", 1, 1, 4, 6, 3, { .padding = 1 }, 1.0 / 9 },
    { "one pixel, stride 2", 1, 1, 4, 6, 5, { .padding = 2, .stride = 2 }, 1.0 / 25 },
    { "2×2 with stride 2", 2, 2, 4, 6, 3, { .padding = 1, .stride = 2 }, 4.0 / 9 },
    { "one row", 1, 7, 4, 6, 3, { .padding = 1 }, 1.0 / 3 },
    { "one column, rows apart", 9, 1, 4, 6, 3, { .padding = 1, .stride_hw = { 2, 1 } }, 1.0 / 3 },
    { "dilated beyond the image", 5, 4, 4, 6, 3, { .padding = 6, .dilation = 6 }, 1.0 / 9 },
    { "dilated, one axis", 9, 3, 4, 6, 3, { .padding = 4, .dilation = 4 }, 1.0 / 3 },
    { "a stride that must stay",
      4,
      1,
      4,
      6,
      4,
      { .stride_hw = { 2, 1 }, .padding_hw = { 2, 2 }, .dilation_hw = { 2, 1 } },
      1.0 / 4 },
    { "5×5 around 2×2", 2, 2, 4, 6, 5, { .padding = 2 }, 9.0 / 25 },
    { "depthwise", 1, 2, 8, 8, 5, { .padding = 2, .groups = 8 }, 3.0 / 25 },
    { "groups", 1, 1, 8, 4, 3, { .padding = 1, .groups = 2 }, 1.0 / 9 },
    { "padding that is seen at some place", 2, 2, 4, 6, 3, { .padding = 1 }, 1.0 },
    { "nothing but padding", 1, 1, 4, 6, 1, { .padding = 1, .stride = 3 }, 1.0 },
    { "a first element that can't go",
      2,
      2,
      4,
      6,
      2,
      { .padding = 1, .dilation = 2, .stride = 2 },
      1.0 },
};

typedef struct Values {
    float y[PIXELS], x_grad[PIXELS], weight_grad[MOST];
    double flops;
    size_t calls;
} Values;

static float numbers[3][PIXELS];

static void draw(void)
{
    KilnRng rng;

    kiln_rng_init(&rng, 5, KILN_RNG_USER, 0, 0);
    for (size_t i = 0; i < KILN_COUNT(numbers); i++)
        for (size_t k = 0; k < PIXELS; k++)
            numbers[i][k] = kiln_rng_normal(&rng);
}

static void finish(KilnGraph *graph, KilnTensor *y, Values *v)
{
    KilnError err;

    if (kiln_graph_run(graph, &y, 1, &err) < 0)
        fail_msg("%s", err.text);
    const int64_t n = kiln_shape_count(kiln_tensor_shape(y));
    for (int64_t i = 0; i < n; i++)
        v->y[i] = ((const float *)kiln_tensor_data(y))[i];
    v->flops = kiln_plan_flops(graph->plans, false) + kiln_plan_flops(graph->plans, true);
    v->calls = kiln_plan_calls(graph->plans);
}

static void train(const Case *c, bool on_ref, unsigned passes_off, Values *v)
{
    const int64_t groups = c->conv.groups > 0 ? c->conv.groups : 1;
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err;

    *v = (Values) { 0 };
    assert_int_equal(on_ref ? kiln_backend_ref_new(&backend, &err)
                            : kiln_backend_cpu_new(2, &backend, &err),
                     KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    graph->passes_off = passes_off;
    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_variable(graph, KILN_F32,
                                        KILN_SHAPE(2, c->height, c->width, c->channels), numbers[0],
                                        true, v->x_grad);
    KilnTensor *weight = kiln_graph_variable(
        graph, KILN_F32, KILN_SHAPE(c->out, c->channels / groups, c->kernel, c->kernel), numbers[1],
        true, v->weight_grad);
    KilnTensor *y = kiln_conv2d(x, weight, NULL, c->conv);
    kiln_graph_backward(graph, kiln_mean(kiln_mul(y, y)));
    finish(graph, y, v);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

static void assert_near(const char *name, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * fmaxf(1.0f, fabsf(b[i]))))
            fail_msg("%s: element %zu: %g, with the whole kernel %g", name, i, (double)a[i],
                     (double)b[i]);
}

static void test_same(void **unused)
{
    static Values trimmed, whole;

    (void)unused;
    draw();
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        const Case *c = &cases[i];

        for (int on_ref = 0; on_ref < 2; on_ref++) {
            train(c, on_ref, 0, &trimmed);
            train(c, on_ref, 1u << KILN_PASS_trim_kernels, &whole);
            assert_near(c->name, trimmed.y, whole.y, PIXELS);
            assert_near(c->name, trimmed.x_grad, whole.x_grad, PIXELS);
            assert_near(c->name, trimmed.weight_grad, whole.weight_grad, MOST);
            if (trimmed.flops > whole.flops * c->share * 1.001 ||
                (c->share == 1.0 && trimmed.calls != whole.calls))
                fail_msg("%s: %g of %g operations", c->name, trimmed.flops, whole.flops);
        }
    }
}

static KilnTensor *param(KilnGraph *graph, float *values, KilnShape shape)
{
    return kiln_graph_variable(graph, KILN_F32, shape, values, false, NULL);
}

static void evaluate(KilnGraph *graph, unsigned passes_off, float *positive, Values *v)
{
    const KilnShape vector = KILN_SHAPE(6);

    graph->passes_off = passes_off;
    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2, 1, 1, 4), numbers[0]);
    KilnTensor *y = kiln_conv2d(x, param(graph, numbers[1], KILN_SHAPE(6, 4, 3, 3)), NULL,
                                (KilnConv) { .padding = 1 });

    finish(graph,
           kiln_relu(kiln_batch_norm(
               y, param(graph, numbers[2], vector), param(graph, numbers[2] + 6, vector),
               param(graph, numbers[2] + 12, vector), param(graph, positive, vector),
               (KilnBatchNorm) { .eps = 1e-5 })),
           v);
}

static bool has_call(const KilnGraph *graph, const char *name)
{
    KilnCallReport *calls = kiln_plan_report(graph->plans);
    bool has = false;

    assert_non_null(calls);
    for (size_t i = 0; i < kiln_plan_calls(graph->plans); i++)
        has = has || strcmp(calls[i].name, name) == 0;
    free(calls);
    return has;
}

/* Normalization is folded into the part that is left. */
static void test_folds(void **unused)
{
    static Values folded, apart;
    float positive[6] = { 1, 2, 3, 4, 5, 6 };
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err;

    (void)unused;
    draw();
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    evaluate(graph, 1u << KILN_PASS_trim_kernels | 1u << KILN_PASS_fold_norm, positive, &apart);
    assert_true(has_call(graph, "batch_norm_eval"));
    evaluate(graph, 0, positive, &folded);
    assert_true(has_call(graph, "slice"));
    assert_false(has_call(graph, "batch_norm_eval"));
    assert_near("folded", folded.y, apart.y, 12);
    evaluate(graph, 0, positive, &folded);
    assert_near("again", folded.y, apart.y, 12);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_folds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
