/* Random numbers in the graph: the same bytes for any number of threads, their mean and variance,
 * and streams that differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"

enum { COUNT = 200003, DRAWS = 4 };

/* Draws uniform and normal numbers, bernoulli ones, and what dropout keeps, under one key. */
static void draw(int threads, int64_t stream, float (*ret)[COUNT])
{
    static const int32_t key[2] = { 17, 4 };
    static float ones[COUNT];
    KilnBackend *backend = cpu_new(threads, KILN_CONVOLUTION_DIRECT);
    KilnGraph *graph = NULL;
    KilnError err;

    for (int i = 0; i < COUNT; i++)
        ones[i] = 1.0f;
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);

    const KilnShape shape = KILN_SHAPE(COUNT);
    KilnTensor *k = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2), key);
    KilnTensor *one = kiln_graph_input(graph, KILN_F32, shape, ones);
    KilnTensor *outputs[DRAWS] = {
        kiln_uniform(shape, 0.0, 1.0, k, stream),
        kiln_normal(shape, 0.0, 1.0, k, stream),
        kiln_bernoulli(kiln_scale(one, 0.3), k, stream),
        kiln_dropout(one, 0.5, k, stream),
    };

    if (kiln_graph_run(graph, outputs, DRAWS, &err) != KILN_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < DRAWS; i++)
        memcpy(ret[i], kiln_tensor_data(outputs[i]), sizeof(ret[i]));
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

static double mean_of(const float *x)
{
    double sum = 0.0;

    for (int i = 0; i < COUNT; i++)
        sum += (double)x[i];
    return sum / COUNT;
}

static double mean_of_product(const float *a, const float *b)
{
    double sum = 0.0;

    for (int i = 0; i < COUNT; i++)
        sum += (double)a[i] * (double)b[i];
    return sum / COUNT;
}

static void test_threads(void **unused)
{
    static float one[DRAWS][COUNT], three[DRAWS][COUNT];

    (void)unused;
    draw(1, 5, one);
    draw(3, 5, three);
    assert_memory_equal(one, three, sizeof(one));
}

/* Within five standard deviations of a mean of COUNT numbers. */
static void test_moments(void **unused)
{
    static float x[DRAWS][COUNT], other[DRAWS][COUNT];
    const double deviation = 5.0 / sqrt(COUNT);

    (void)unused;
    draw(2, 5, x);
    draw(2, 6, other);
    assert_true(fabs(mean_of(x[0]) - 0.5) < deviation * 0.29);
    assert_true(fabs(mean_of_product(x[0], x[0]) - 1.0 / 3.0) < deviation * 0.3);
    assert_true(fabs(mean_of(x[1])) < deviation);
    assert_true(fabs(mean_of_product(x[1], x[1]) - 1.0) < deviation * 1.42);
    assert_true(fabs(mean_of(x[2]) - 0.3) < deviation * 0.46);
    for (int i = 0; i < COUNT; i++)
        assert_true(x[0][i] >= 0.0f && x[0][i] < 1.0f);
    /* Streams, and draws and dropout, are independent. */
    assert_true(fabs(mean_of_product(x[1], other[1])) < deviation);
    assert_true(fabs(mean_of_product(x[0], x[3]) - 0.5) < deviation * 0.8);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads),
                                        cmocka_unit_test(test_moments) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
