/* Gradients that are exactly 0: of logits of a single class, of points outside of an image, and of
 * queries whose scores are so large that only one key counts. */
#include <math.h>

#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"

enum { ROWS = 5 };

static KilnGraph *graph_new(KilnBackend *backend)
{
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    return graph;
}

static void run_backward(KilnGraph *graph, KilnTensor *loss)
{
    KilnError err = { 0 };

    kiln_graph_backward(graph, loss);
    if (kiln_graph_run(graph, &loss, 1, &err) < 0)
        fail_msg("%s", err.text);
}

/* p is 1, and weights and smoothing cancel. */
static void check_one_class(KilnBackend *backend, const char *name)
{
    static const int32_t labels[ROWS] = { 0, 0, -1, 0, 0 };
    static float logits[ROWS] = { -3.0f, 0.1f, 0.7f, 2.0f, 40.0f }, weight[] = { 0.371f };
    KilnGraph *graph = graph_new(backend);
    float grad[ROWS] = { 1.0f, 1.0f, 1.0f, 1.0f, 1.0f };
    KilnTensor *x = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(ROWS, 1), logits, true, grad);
    KilnTensor *y = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(ROWS), labels);
    const KilnCrossEntropy options = {
        .weight = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1), weight),
        .label_smoothing = 0.1,
        .ignore = true,
        .ignore_index = -1,
    };

    run_backward(graph, kiln_cross_entropy(x, y, options));
    for (int i = 0; i < ROWS; i++)
        if (grad[i] != 0.0f)
            fail_msg("%s: the gradient of row %d is %g", name, i, (double)grad[i]);
    kiln_graph_free(graph);
}

/* Of two points, both with NaN from the loss, only the inner one's gradient is NaN. */
static void check_outside(KilnBackend *backend, const char *name)
{
    static float pixels[] = { 1.0f, 2.0f, 3.0f, 4.0f }, points[] = { 0.1f, 0.2f, 5.0f, 0.2f };
    static const float factors[] = { NAN, NAN };
    KilnGraph *graph = graph_new(backend);
    float grad[4] = { 0 };
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1, 2, 2, 1), pixels);
    KilnTensor *grid = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(1, 1, 2, 2), points, true,
                                           grad);
    KilnTensor *y = kiln_grid_sample(x, grid, (KilnGridSample) { .align_corners = true });

    run_backward(graph, kiln_sum(kiln_mul(y, kiln_graph_input(graph, KILN_F32,
                                                              KILN_SHAPE(1, 1, 2, 1), factors))));
    if (!isnan(grad[0]) || !isnan(grad[1]) || grad[2] != 0.0f || grad[3] != 0.0f)
        fail_msg("%s: gradients %g %g %g %g", name, (double)grad[0], (double)grad[1],
                 (double)grad[2], (double)grad[3]);
    kiln_graph_free(graph);
}

/* Scores of 1e9 are rounded by 64 and more, up or down, which no probability may show. */
static void check_scores(KilnBackend *backend, const char *name, float size)
{
    enum { WIDTH = 24, KEYS = 3 };
    float query[WIDTH], keys[KEYS * WIDTH], grad[WIDTH] = { 0 };

    for (int i = 0; i < WIDTH; i++) {
        query[i] = size * sinf(1.0f + (float)(i * i));
        for (int k = 0; k < KEYS; k++)
            keys[k * WIDTH + i] = query[i] * (1.0f + 0.3f * (float)k);
    }
    KilnGraph *graph = graph_new(backend);
    KilnTensor *q = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(1, 1, 1, WIDTH), query, true,
                                        grad);
    KilnTensor *k = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1, KEYS, 1, WIDTH), keys);

    run_backward(graph, kiln_sum(kiln_attention(q, k, k, (KilnAttention) { .scale = 1.0 })));
    for (int i = 0; i < WIDTH; i++)
        if (grad[i] != 0.0f)
            fail_msg("%s: the gradient of number %d of queries of %g is %g", name, i, (double)size,
                     (double)grad[i]);
    kiln_graph_free(graph);
}

static void check_huge_scores(KilnBackend *backend, const char *name)
{
    for (float size = 300.0f; size < 2e4f; size *= 1.3f)
        check_scores(backend, name, size);
}

typedef void Check(KilnBackend *backend, const char *name);

static void check_all(Check *check)
{
    KilnBackend *ref = ref_new();

    check(ref, "reference");
    kiln_backend_free(ref);
    for (size_t v = 0; v < cpu_variants_count; v++) {
        KilnBackend *cpu = cpu_variant_new(&cpu_variants[v]);

        check(cpu, cpu_variants[v].name);
        kiln_backend_free(cpu);
    }
}

static void test_one_class(void **unused)
{
    (void)unused;
    check_all(check_one_class);
}

static void test_outside(void **unused)
{
    (void)unused;
    check_all(check_outside);
}

static void test_huge_scores(void **unused)
{
    (void)unused;
    check_all(check_huge_scores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_class),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_huge_scores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
