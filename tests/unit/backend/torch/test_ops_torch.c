/* Operations of both backends against values recorded from PyTorch (tests/record/ops.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "tests/data/ops/expected.h"

enum { MAX_VALUES = 2048, MAX_LEAVES = 5 };
static const double tolerance = 1e-5;

/* ---- Records ---------------------------------------------------------------------- */

static const struct Record *find(const char *group, const char *name)
{
    for (size_t i = 0; i < KILN_COUNT(records); i++) {
        const size_t length = strlen(group);

        if (strncmp(records[i].name, group, length) == 0 && records[i].name[length] == '.' &&
            strcmp(records[i].name + length + 1, name) == 0)
            return &records[i];
    }
    fail_msg("no record %s.%s", group, name);
    return NULL;
}

/* Largest difference over the largest recorded value. */
static void check(const char *backend, const char *group, const char *name, const float *got)
{
    const struct Record *want = find(group, name);
    double worst = 0.0, scale = 1e-30;

    for (size_t i = 0; i < want->n; i++) {
        double d = fabs((double)want->values[i] - (double)got[i]);

        worst = d > worst || isnan(d) ? d : worst;
        scale = fmax(scale, fabs((double)want->values[i]));
    }
    if (!(worst / scale <= tolerance))
        fail_msg("%s.%s on %s: differs by %g", group, name, backend, worst / scale);
}

/* ---- A step over recorded leaves --------------------------------------------------- */

typedef struct Step {
    KilnBackend *backend;
    KilnGraph *graph;
    const char *group;
    int n;
    float values[MAX_LEAVES][MAX_VALUES], grads[MAX_LEAVES][MAX_VALUES];
} Step;

static void step_init(Step *step, bool cpu, const char *group)
{
    KilnError err = { 0 };
    KilnStatus status;

    memset(step, 0, sizeof(*step));
    step->group = group;
    status = cpu ? kiln_backend_cpu_new(2, &step->backend, &err)
                 : kiln_backend_ref_new(&step->backend, &err);
    if (status != KILN_OK || kiln_graph_new(step->backend, &step->graph, &err) != KILN_OK)
        fail_msg("%s", err.text);
    kiln_graph_begin(step->graph);
}

static void step_release(Step *step)
{
    kiln_graph_free(step->graph);
    kiln_backend_free(step->backend);
}

/* The next leaf, filled with a record of the group. */
static KilnTensor *leaf(Step *step, const char *name, KilnShape shape, bool wants_grad)
{
    const struct Record *record = find(step->group, name);
    const int i = step->n++;

    assert_true(i < MAX_LEAVES && record->n <= MAX_VALUES);
    assert_int_equal(record->n, kiln_shape_count(&shape));
    memcpy(step->values[i], record->values, record->n * sizeof(float));
    return kiln_graph_variable(step->graph, KILN_F32, shape, step->values[i], wants_grad,
                               wants_grad ? step->grads[i] : NULL);
}

static void check_value(const Step *step, const char *name, const float *got)
{
    check(step->backend->ops->name, step->group, name, got);
}

/* Backward from sum(y * dy) with the recorded dy, and compare y. */
static void run_from(Step *step, KilnTensor *y)
{
    const struct Record *dy = find(step->group, "dy");
    KilnError err = { 0 };
    KilnTensor *weights = kiln_graph_input(step->graph, KILN_F32, *kiln_tensor_shape(y),
                                           dy->values);

    assert_int_equal(dy->n, kiln_shape_count(kiln_tensor_shape(y)));
    kiln_graph_backward(step->graph, kiln_sum(kiln_mul(y, weights)));
    if (kiln_graph_run(step->graph, &y, 1, &err) != KILN_OK)
        fail_msg("%s", err.text);
    check_value(step, "y", kiln_tensor_data(y));
}

/* ---- Tests -------------------------------------------------------------------------- */

static void test_conv2d(void **unused)
{
    static const struct {
        const char *group;
        KilnShape x, weight;
        KilnConv conv;
    } cases[] = {
        { "conv", { 4, { 2, 5, 4, 3 } }, { 4, { 5, 3, 3, 3 } }, { .stride = 1, .padding = 1 } },
        { "conv_strided",
          { 4, { 1, 7, 6, 4 } },
          { 4, { 3, 4, 3, 3 } },
          { .stride = 2, .padding = 1 } },
        { "conv_wide",
          { 4, { 1, 3, 3, 17 } },
          { 4, { 18, 17, 1, 1 } },
          { .stride = 1, .padding = 0 } },
    };

    (void)unused;
    for (size_t i = 0; i < 2 * KILN_COUNT(cases); i++) {
        const size_t c = i / 2;
        Step step;

        step_init(&step, i % 2 != 0, cases[c].group);

        KilnTensor *x = leaf(&step, "x", cases[c].x, true);
        KilnTensor *weight = leaf(&step, "weight", cases[c].weight, true);
        KilnTensor *bias = leaf(&step, "bias", KILN_SHAPE(cases[c].weight.dim[0]), true);

        run_from(&step, kiln_conv2d(x, weight, bias, cases[c].conv));
        check_value(&step, "dx", step.grads[0]);
        check_value(&step, "dweight", step.grads[1]);
        check_value(&step, "dbias", step.grads[2]);
        step_release(&step);
    }
}

static void test_batch_norm(void **unused)
{
    (void)unused;
    for (int cpu = 0; cpu < 2; cpu++) {
        KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = false };
        KilnError err = { 0 };
        Step step;

        step_init(&step, cpu != 0, "norm");

        KilnTensor *x = leaf(&step, "x", KILN_SHAPE(3, 4, 3, 5), true);
        KilnTensor *weight = leaf(&step, "weight", KILN_SHAPE(5), true);
        KilnTensor *bias = leaf(&step, "bias", KILN_SHAPE(5), true);
        KilnTensor *mean = leaf(&step, "mean", KILN_SHAPE(5), false);
        KilnTensor *var = leaf(&step, "var", KILN_SHAPE(5), false);
        KilnTensor *y = kiln_batch_norm(x, weight, bias, mean, var, norm);

        assert_int_equal(kiln_graph_run(step.graph, &y, 1, &err), KILN_OK);
        check_value(&step, "eval", kiln_tensor_data(y));
        norm.training = true;
        run_from(&step, kiln_batch_norm(x, weight, bias, mean, var, norm));
        check_value(&step, "dx", step.grads[0]);
        check_value(&step, "dweight", step.grads[1]);
        check_value(&step, "dbias", step.grads[2]);
        check_value(&step, "mean_after", step.values[3]);
        check_value(&step, "var_after", step.values[4]);
        step_release(&step);
    }
}

static void test_max_pool2d(void **unused)
{
    static const struct {
        const char *group;
        KilnShape x;
        KilnPool pool;
    } cases[] = {
        { "pool", { 4, { 2, 6, 4, 3 } }, { .kernel = 2, .stride = 2, .padding = 0 } },
        { "pool_padded", { 4, { 1, 5, 5, 17 } }, { .kernel = 3, .stride = 2, .padding = 1 } },
    };

    (void)unused;
    for (size_t i = 0; i < 2 * KILN_COUNT(cases); i++) {
        Step step;

        step_init(&step, i % 2 != 0, cases[i / 2].group);
        run_from(&step, kiln_max_pool2d(leaf(&step, "x", cases[i / 2].x, true), cases[i / 2].pool));
        check_value(&step, "dx", step.grads[0]);
        step_release(&step);
    }
}

static void test_linear(void **unused)
{
    (void)unused;
    for (int cpu = 0; cpu < 2; cpu++) {
        Step step;

        step_init(&step, cpu != 0, "linear");

        KilnTensor *x = leaf(&step, "x", KILN_SHAPE(4, 7), true);
        KilnTensor *weight = leaf(&step, "weight", KILN_SHAPE(3, 7), true);
        KilnTensor *bias = leaf(&step, "bias", KILN_SHAPE(3), true);

        run_from(&step, kiln_linear(x, weight, bias));
        check_value(&step, "dx", step.grads[0]);
        check_value(&step, "dweight", step.grads[1]);
        check_value(&step, "dbias", step.grads[2]);
        step_release(&step);
    }
}

static void test_cross_entropy(void **unused)
{
    static const struct {
        const char *group;
        double smoothing;
    } cases[] = { { "entropy", 0.0 }, { "entropy_smoothed", 0.1 } };
    const struct Record *recorded = find("entropy", "labels");
    int32_t labels[8];

    (void)unused;
    for (size_t i = 0; i < recorded->n; i++)
        labels[i] = (int32_t)recorded->values[i];
    for (size_t i = 0; i < 2 * KILN_COUNT(cases); i++) {
        const char *group = cases[i / 2].group;
        KilnError err = { 0 };
        Step step;

        step_init(&step, i % 2 != 0, "entropy");

        KilnTensor *logits = leaf(&step, "logits", KILN_SHAPE(6, 5), true);
        KilnTensor *loss = kiln_cross_entropy(
            logits, kiln_graph_input(step.graph, KILN_I32, KILN_SHAPE(6), labels),
            (KilnCrossEntropy) { .label_smoothing = cases[i / 2].smoothing });

        kiln_graph_backward(step.graph, loss);
        assert_int_equal(kiln_graph_run(step.graph, &loss, 1, &err), KILN_OK);
        check(step.backend->ops->name, group, "loss", kiln_tensor_data(loss));
        check(step.backend->ops->name, group, "dlogits", step.grads[0]);
        step_release(&step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv2d),        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_max_pool2d),    cmocka_unit_test(test_linear),
        cmocka_unit_test(test_cross_entropy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
