/* The losses: values against their formulas in double and PyTorch's, gradients against finite
 * differences and PyTorch's, soft targets, weights of classes and labels. */
#include <math.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/gradcheck.h"
#include "tests/data/weighted_losses.h"
#include "tests/support/components/built_component.h"
#include "train/step/module_step.h"

enum { ROWS = 5, CLASSES = 3 };

static const double logits[ROWS * CLASSES] = { 1.5, -0.5, 0.25, -2.0, 0.0,  3.0, 0.1, 0.2,
                                               0.3, 4.0,  -4.0, 0.5,  -1.0, 0.7, 0.9 };
static const int32_t labels[ROWS] = { 0, 2, 1, 1, 2 };
static const float shares[ROWS * CLASSES] = { 1.0F, 0.0F, 0.0F, 0.0F, 0.25F, 0.75F, 0.5F, 0.5F,
                                              0.0F, 0.0F, 1.0F, 0.0F, 0.0F,  0.0F,  1.0F };

/* With at most one option. */
static Built build(const char *name, const char *option)
{
    char *words[] = { (char *)option };
    Built built;
    KilnError err;

    if (build_words(&built, KILN_KIND_LOSS, name, words, *option != '\0' ? 1 : 0, &err) < 0)
        fail_msg("%s", err.text);
    return built;
}

/* -log of the probability of class `c` in row `row`. */
static double entropy(int row, int c)
{
    double sum = 0.0;

    for (int i = 0; i < CLASSES; i++)
        sum += exp(logits[row * CLASSES + i]);
    return log(sum) - logits[row * CLASSES + c];
}

static const KilnDataSpec spec = { .n_classes = CLASSES };

/* The component's loss of the logits, for classes or shares. */
static double value(Built *built, bool training, bool soft)
{
    static float x[ROWS * CLASSES];
    KilnBackend *backend;
    KilnGraph *graph;
    KilnError err;

    for (int i = 0; i < ROWS * CLASSES; i++)
        x[i] = (float)logits[i];
    if (kiln_loss_setup(built->instance, &spec, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnStep step = { .graph = graph, .training = training };
    const KilnShape rows = KILN_SHAPE(ROWS), all = KILN_SHAPE(ROWS, CLASSES);
    KilnTensor *target = soft ? kiln_graph_input(graph, KILN_F32, all, shares)
                              : kiln_graph_input(graph, KILN_I32, rows, labels);
    KilnTensor *loss = kiln_loss(built->instance, &step, kiln_graph_input(graph, KILN_F32, all, x),
                                 target);
    if (kiln_graph_run(graph, &loss, 1, &err) < 0)
        fail_msg("%s", err.text);
    const double ret = kiln_tensor_scalar(loss);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
    return ret;
}

static void check(const char *name, const char *options, bool training, bool soft, double expected)
{
    Built built = build(name, options);
    const double got = value(&built, training, soft);

    if (!(fabs(got - expected) < 1e-5 * fmax(1.0, fabs(expected))))
        fail_msg("%s %s: %.8f instead of %.8f", name, options, got, expected);
    built_free(&built);
}

static void test_cross_entropy(void **unused)
{
    static const double weights[] = { 1.0, 2.0, 0.5 };
    double plain = 0.0, smoothed = 0.0, weighted = 0.0, sum = 0.0, mixed = 0.0;

    (void)unused;
    for (int row = 0; row < ROWS; row++) {
        const double own = entropy(row, labels[row]);
        double mean = 0.0;

        for (int c = 0; c < CLASSES; c++) {
            mean += entropy(row, c) / CLASSES;
            mixed += (double)shares[row * CLASSES + c] * entropy(row, c) / ROWS;
        }
        plain += own / ROWS;
        smoothed += (0.8 * own + 0.2 * mean) / ROWS;
        weighted += weights[labels[row]] * own;
        sum += weights[labels[row]];
    }
    check("cross_entropy", "", true, false, plain);
    check("cross_entropy", "label_smoothing=0.2", true, false, smoothed);
    check("cross_entropy", "label_smoothing=0.2", false, false, plain);
    check("cross_entropy", "class_weights=[1,2,0.5]", true, false, weighted / sum);
    check("cross_entropy", "", true, true, mixed);
}

static void test_focal(void **unused)
{
    static const double weights[] = { 1.0, 2.0, 0.5 };
    double plain = 0.0, focal = 0.0, weighted = 0.0, root = 0.0, mixed = 0.0;

    (void)unused;
    for (int row = 0; row < ROWS; row++) {
        const double own = entropy(row, labels[row]), missed = 1.0 - exp(-own);
        double soft = 0.0;

        for (int c = 0; c < CLASSES; c++)
            soft += (double)shares[row * CLASSES + c] * entropy(row, c);
        plain += own / ROWS;
        focal += missed * missed * own / ROWS;
        weighted += weights[labels[row]] * missed * missed * own / ROWS;
        root += sqrt(missed) * own / ROWS;
        mixed += pow(1.0 - exp(-soft), 2.0) * soft / ROWS;
    }
    check("focal", "", true, false, focal);
    check("focal", "", false, false, focal);
    check("focal", "gamma=0", true, false, plain);
    check("focal", "gamma=0.5", true, false, root);
    check("focal", "class_weights=[1,2,0.5]", true, false, weighted);
    check("focal", "", true, true, mixed);
}

/* ---- Gradients ---------------------------------------------------------------------- */

static KilnTensor *record(KilnGraph *graph, KilnTensor *const *x, void *ctx)
{
    Built *built = ctx;
    KilnStep step = { .graph = graph, .training = true };
    KilnTensor *target = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(ROWS), labels);

    return kiln_loss(built->instance, &step, x[0], target);
}

static void check_gradient(const char *name, const char *options)
{
    double values[ROWS * CLASSES];
    const KilnGradVariable variable = { KILN_SHAPE(ROWS, CLASSES), values };
    Built built = build(name, options);
    KilnGradWorst worst;
    KilnBackend *backend;
    KilnError err;

    memcpy(values, logits, sizeof(values));
    assert_int_equal(kiln_loss_setup(built.instance, &spec, &err), KILN_OK);
    assert_int_equal(kiln_backend_ref_f64_new(&backend, &err), KILN_OK);
    if (kiln_gradcheck(backend, record, &built, &variable, 1, 1e-6, &worst, &err) < 0)
        fail_msg("%s", err.text);
    if (worst.error > 1e-7)
        fail_msg("%s %s: element %lld: %g instead of %g", name, options, (long long)worst.element,
                 worst.gradient, worst.difference);
    kiln_backend_free(backend);
    built_free(&built);
}

static void test_gradients(void **unused)
{
    (void)unused;
    check_gradient("cross_entropy", "label_smoothing=0.1");
    check_gradient("cross_entropy", "class_weights=[1,2,0.5]");
    check_gradient("focal", "class_weights=[1,2,0.5]");
    check_gradient("focal", "");
    check_gradient("focal", "gamma=0");
    check_gradient("focal", "gamma=0.5");
    check_gradient("focal", "gamma=3.5");
}

/* ---- Recorded values -------------------------------------------------------------------- */

enum { SAMPLES = 6 };

/* Value and gradient of a loss over the recorded logits; training samples have the recorded counts
 * of classes. */
static void check_recorded(const char *name, const char *option, double expected,
                           const double *gradient)
{
    static float x[SAMPLES * CLASSES], grad[SAMPLES * CLASSES];
    static const KilnFeature labels_feature = { .name = "labels",
                                                .content = KILN_LABEL,
                                                .dtype = KILN_F32,
                                                .shape = { .rank = 1, .dim = { CLASSES } } };
    const bool several = strcmp(name, "binary_cross_entropy") == 0;
    const KilnDataSpec data = { .features = &labels_feature,
                                .n_features = several ? 1 : 0,
                                .n_classes = CLASSES };
    int64_t counts[CLASSES];
    KilnClassCounts known = { .spec = &data, .samples = 200, .counts = counts };
    const KilnShape all = KILN_SHAPE(SAMPLES, CLASSES);
    Built built = build(name, option);
    KilnBackend *backend;
    KilnGraph *graph;
    KilnError err;

    for (int i = 0; i < CLASSES; i++)
        counts[i] = loss_counts[i];
    memcpy(x, loss_logits, sizeof(x));
    if (kiln_loss_setup(built.instance, &data, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnStep step = { .graph = graph, .training = true, .class_counts = &known };
    KilnTensor *loss =
        kiln_loss(built.instance, &step, kiln_graph_variable(graph, KILN_F32, all, x, true, grad),
                  several ? kiln_graph_input(graph, KILN_F32, all, loss_truth)
                          : kiln_graph_input(graph, KILN_I32, KILN_SHAPE(SAMPLES), loss_classes));
    kiln_graph_backward(graph, loss);
    if (kiln_graph_run(graph, &loss, 1, &err) < 0)
        fail_msg("%s", err.text);
    if (!(fabs(kiln_tensor_scalar(loss) - expected) < 1e-6 * fmax(1.0, expected)))
        fail_msg("%s %s: %.8f instead of %.8f", name, option, kiln_tensor_scalar(loss), expected);
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        if (!(fabs((double)grad[i] - gradient[i]) < 1e-7))
            fail_msg("%s %s: gradient %d is %.9f instead of %.9f", name, option, i, (double)grad[i],
                     gradient[i]);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
    built_free(&built);
}

static void test_recorded(void **unused)
{
    (void)unused;
    check_recorded("binary_cross_entropy", "", bce, bce_gradient);
    check_recorded("binary_cross_entropy", "pos_weight=[1,3,0.5]", bce_weighted,
                   bce_weighted_gradient);
    check_recorded("binary_cross_entropy", "balanced=true", bce_balanced, bce_balanced_gradient);
    check_recorded("cross_entropy", "class_weights=[1,3,0.5]", ce_weighted, ce_weighted_gradient);
    check_recorded("cross_entropy", "balanced=true", ce_balanced, ce_balanced_gradient);
}

/* A sample that is right beyond doubt has a gradient of 0, not NaN. */
static void test_focal_of_certain_samples(void **unused)
{
    static float x[] = { 200.0F, -200.0F }, grad[2];
    static const int32_t label = 0;
    const KilnDataSpec two = { .n_classes = 2 };
    Built built = build("focal", "gamma=0.5");
    KilnBackend *backend;
    KilnGraph *graph;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_loss_setup(built.instance, &two, &err), KILN_OK);
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnStep step = { .graph = graph, .training = true };
    KilnTensor *loss =
        kiln_loss(built.instance, &step,
                  kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(1, 2), x, true, grad),
                  kiln_graph_input(graph, KILN_I32, KILN_SHAPE(1), &label));
    kiln_graph_backward(graph, loss);
    assert_int_equal(kiln_graph_run(graph, &loss, 1, &err), KILN_OK);
    assert_true(kiln_tensor_scalar(loss) == 0.0 && grad[0] == 0.0F && grad[1] == 0.0F);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
    built_free(&built);
}

static void test_wrong_number_of_weights(void **unused)
{
    Built built = build("focal", "class_weights=[1,2]");
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_loss_setup(built.instance, &spec, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "class_weights has 2 numbers, but the data has 3 classes"));
    built_free(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_focal),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_focal_of_certain_samples),
        cmocka_unit_test(test_wrong_number_of_weights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
