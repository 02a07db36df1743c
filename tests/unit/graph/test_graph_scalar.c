/* Numbers that change from step to step, as kiln/tensor.h lists them: the same values and gradients
 * as with attributes, and one plan for all steps. */
#include <math.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "tests/support/cmocka.h"

enum { ROWS = 6, CLASSES = 5, N = ROWS * CLASSES };

static const int32_t labels[ROWS] = { 0, 3, 1, 4, 4, 2 }, key[2] = { 7, 8 };

typedef struct Step {
    KilnTensor *x, *labels, *key;
} Step;

typedef struct Number {
    const char *name;
    KilnTensor *(*attribute)(const Step *step, double v);
    KilnTensor *(*data)(const Step *step, KilnTensor *s);
} Number;

#define BUILD(name, type, value, ...)                                                              \
    static KilnTensor *name(const Step *step, type value)                                          \
    {                                                                                              \
        KilnTensor *x = step->x;                                                                   \
        return __VA_ARGS__;                                                                        \
    }
#define BOTH(name, by_attribute, by_data)                                                          \
    BUILD(name##_attribute, double, v, by_attribute)                                               \
    BUILD(name##_data, KilnTensor *, s, by_data)

static KilnTensor *entropy(KilnTensor *x, const Step *step, double smoothing,
                           KilnReduction reduction)
{
    return kiln_cross_entropy(
        x, step->labels,
        (KilnCrossEntropy) { .label_smoothing = smoothing, .reduction = reduction });
}

BOTH(scale, kiln_scale(x, v), kiln_mul(x, s))
BOTH(shift, kiln_shift(x, v), kiln_add(x, s))
BOTH(pow, kiln_pow(kiln_exp(x), v), kiln_power(kiln_exp(x), s))
BOTH(dropout, kiln_dropout(x, v, step->key, 3), kiln_dropout_rate(x, s, step->key, 3))
BOTH(smoothing, entropy(x, step, v, KILN_REDUCTION_MEAN),
     kiln_add(kiln_mul(kiln_shift(kiln_neg(s), 1.0), entropy(x, step, 0.0, KILN_REDUCTION_MEAN)),
              kiln_mul(s, entropy(x, step, 1.0, KILN_REDUCTION_MEAN))))

static KilnTensor *gamma_attribute(const Step *step, double v)
{
    return kiln_focal(step->x, step->labels, v, (KilnCrossEntropy) { 0 });
}

static KilnTensor *gamma_data(const Step *step, KilnTensor *s)
{
    KilnTensor *losses = entropy(step->x, step, 0.0, KILN_REDUCTION_NONE);
    KilnTensor *missed = kiln_shift(kiln_neg(kiln_exp(kiln_neg(losses))), 1.0);

    return kiln_mean(kiln_mul(losses, kiln_power(missed, s)));
}

#define NUMBER(name)                                                                               \
    {                                                                                              \
#name, name##_attribute, name##_data                                                       \
    }

static const Number numbers[] = { NUMBER(scale),   NUMBER(shift),     NUMBER(pow),
                                  NUMBER(dropout), NUMBER(smoothing), NUMBER(gamma) };

/* Records one step and runs it: the sum's gradient, and the results. */
static KilnTensor *run(KilnGraph *graph, const Number *number, bool data, double v, float *grad)
{
    static float values[N];
    KilnError err = { 0 };

    for (int i = 0; i < N; i++)
        values[i] = sinf((float)(3 * i + 1));
    kiln_graph_begin(graph);

    const Step step = { kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(ROWS, CLASSES), values,
                                            true, grad),
                        kiln_graph_input(graph, KILN_I32, KILN_SHAPE(ROWS), labels),
                        kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2), key) };
    KilnTensor *y = data ? number->data(&step, kiln_graph_scalar(graph, v))
                         : number->attribute(&step, v);

    kiln_graph_backward(graph, kiln_sum(y));
    if (kiln_graph_run(graph, &y, 1, &err) < 0)
        fail_msg("%s: %s", number->name, err.text);
    return y;
}

static void check_equal(const Number *number, const char *what, double v, const float *want,
                        const float *got, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(want[i] - got[i]) <= 1e-5f * (1.0f + fabsf(want[i]))))
            fail_msg("%s of %g: %s %d is %g, expected %g", number->name, v, what, (int)i,
                     (double)got[i], (double)want[i]);
}

static void check_number(KilnBackend *backend, const Number *number)
{
    static const double values[] = { 0.125, 0.25, 0.5 };
    KilnGraph *attribute = NULL, *data = NULL;
    float want_grad[N], got_grad[N];
    KilnError err = { 0 };

    assert_int_equal(kiln_graph_new(backend, &attribute, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &data, &err), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(values); i++) {
        /* Exponents that kiln_focal takes are at least 1. */
        const double v = number->attribute == gamma_attribute ? 1.0 + values[i] : values[i];
        KilnTensor *want = run(attribute, number, false, v, want_grad);
        KilnTensor *got = run(data, number, true, v, got_grad);

        check_equal(number, "result", v, kiln_tensor_data(want), kiln_tensor_data(got),
                    kiln_shape_count(&want->shape));
        check_equal(number, "gradient", v, want_grad, got_grad, N);
    }
    assert_int_equal(attribute->plan_cache.made, KILN_COUNT(values));
    assert_int_equal(data->plan_cache.made, 1);
    kiln_graph_free(attribute);
    kiln_graph_free(data);
}

static void test_numbers(void **unused)
{
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_backend_cpu_new(2, &backend, &err), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(numbers); i++)
        check_number(backend, &numbers[i]);
    kiln_backend_free(backend);
}

/* A rate out of range can't be found before the run. */
static void test_rate_out_of_range(void **unused)
{
    static const double rates[] = { -0.1, 1.0, NAN };
    const Number *dropout = &numbers[3];
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err = { 0 };
    float grad[N];

    (void)unused;
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(rates); i++) {
        const float *y = kiln_tensor_data(run(graph, dropout, true, rates[i], grad));

        for (int k = 0; k < N; k++)
            assert_true(isnan(y[k]) && isnan(grad[k]));
    }
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_rate_out_of_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
