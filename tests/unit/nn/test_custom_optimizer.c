/* An optimizer with an update of its own, that of an example plugin: its formula, segments,
 * threads. */
#include <math.h>

#include "tests/support/cmocka.h"

#include "examples/plugin/signum.c"
#include "graph/backend.h"

static void check_update(int threads)
{
    enum { N = 40000, HALF = 15000 };
    static float p[N], m[N], g[N], was[N];
    const float hyper = 0.5F, scale = 2.0F, rates[] = { 1.0F, 0.1F, 0.0F, 0.1F, 0.25F, 0.0F };
    const int64_t ends[] = { HALF, HALF + 1, N };
    const Attrs attrs = { .momentum = 0.75 };
    KilnBackend *backend;
    KilnGraph *graph;
    KilnError err;
    const KilnShape n = KILN_SHAPE(N);

    assert_int_equal(kiln_backend_cpu_new(threads, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);

    for (int i = 0; i < N; i++) {
        was[i] = p[i] = (float)(i % 13) - 6.0F;
        m[i] = (float)(i % 3) - 1.0F;
        g[i] = (float)(i % 5) - 2.0F;
    }
    kiln_custom_op(graph, &signum_update,
                   (KilnTensor *[]) { kiln_graph_variable(graph, KILN_F32, n, p, false, NULL),
                                      kiln_graph_variable(graph, KILN_F32, n, m, false, NULL),
                                      kiln_graph_input(graph, KILN_F32, n, g),
                                      kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1), &hyper),
                                      kiln_graph_input(graph, KILN_F32, KILN_SCALAR, &scale),
                                      kiln_graph_input(graph, KILN_I64, KILN_SHAPE(3), ends),
                                      kiln_graph_input(graph, KILN_F32, KILN_SHAPE(3, 2), rates) },
                   &attrs, NULL);
    if (kiln_graph_run(graph, NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < N; i++) {
        const int segment = i < HALF ? 0 : i == HALF ? 1 : 2;
        const float old = (float)(i % 3) - 1.0F;
        const float mean = 0.75F * old + 0.25F * 2.0F * ((float)(i % 5) - 2.0F);
        const float sign = (float)((mean > 0) - (mean < 0));
        const float step = sign + rates[2 * segment + 1] * was[i];

        assert_true(m[i] == (segment == 1 ? old : mean));
        assert_true(fabsf(p[i] - (was[i] - 0.5F * rates[2 * segment] * step)) < 1e-6F);
    }
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

static void test_update(void **unused)
{
    (void)unused;
    check_update(1);
    check_update(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_update) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
