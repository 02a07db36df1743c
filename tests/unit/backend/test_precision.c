/* Mixed precision over whole steps: which tensors are bf16, and that training follows f32.
 * Single operations in bf16 are in test_ops_bf16.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/passes/passes.h"
#include "graph/plan/profile.h"
#include "kiln/rng.h"
#include "tensor/bf16.h"

enum { BATCH = 32, IN = 40, HIDDEN = 64, CLASSES = 10, STEPS = 50 };
enum { W1 = 0, B1 = W1 + HIDDEN * IN, W2 = B1 + HIDDEN, B2 = W2 + CLASSES * HIDDEN };
enum { SIZE = B2 + CLASSES };

typedef struct Mlp {
    KilnBackend *backend;
    KilnGraph *graph;
    float values[SIZE], grads[SIZE], x[BATCH * IN];
    int32_t labels[BATCH];
} Mlp;

static void mlp_init(Mlp *mlp, KilnPrecision precision, bool with_bf16)
{
    KilnError err;
    KilnRng rng;

    if (kiln_backend_cpu_new(2, &mlp->backend, &err) < 0 ||
        kiln_graph_new(mlp->backend, &mlp->graph, &err) < 0)
        fail_msg("%s", err.text);
    mlp->backend->bf16 = mlp->backend->bf16 && with_bf16;
    kiln_graph_set_precision(mlp->graph, precision);
    kiln_rng_init(&rng, 3, KILN_RNG_USER, 0, 0);
    for (int i = 0; i < SIZE; i++)
        mlp->values[i] = 0.15f * kiln_rng_normal(&rng);
    for (int i = 0; i < BATCH * IN; i++)
        mlp->x[i] = kiln_rng_normal(&rng);
    for (int i = 0; i < BATCH; i++)
        mlp->labels[i] = (int32_t)kiln_rng_below(&rng, CLASSES);
}

static void mlp_release(Mlp *mlp)
{
    kiln_graph_free(mlp->graph);
    kiln_backend_free(mlp->backend);
}

static KilnTensor *param(Mlp *mlp, int at, KilnShape shape)
{
    return kiln_graph_variable(mlp->graph, KILN_F32, shape, mlp->values + at, true,
                               mlp->grads + at);
}

/* One step of plain descent; returns the loss before it. */
static double mlp_step(Mlp *mlp)
{
    KilnGraph *graph = mlp->graph;
    KilnError err;

    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, IN), mlp->x);
    x = kiln_linear(x, param(mlp, W1, KILN_SHAPE(HIDDEN, IN)), param(mlp, B1, KILN_SHAPE(HIDDEN)));
    x = kiln_linear(kiln_relu(x), param(mlp, W2, KILN_SHAPE(CLASSES, HIDDEN)),
                    param(mlp, B2, KILN_SHAPE(CLASSES)));
    KilnTensor *loss =
        kiln_cross_entropy(x, kiln_graph_input(graph, KILN_I32, KILN_SHAPE(BATCH), mlp->labels),
                           (KilnCrossEntropy) { 0 });
    kiln_graph_backward(graph, loss);
    if (kiln_graph_run(graph, &loss, 1, &err) < 0)
        fail_msg("%s", err.text);
    const double value = kiln_tensor_scalar(loss);
    for (int i = 0; i < SIZE; i++)
        mlp->values[i] -= 0.1f * mlp->grads[i];
    return value;
}

static void check_curve(bool with_bf16)
{
    Mlp *wide = calloc(1, sizeof(*wide)), *mixed = calloc(1, sizeof(*mixed));
    double last = 0.0;

    assert_non_null(wide);
    assert_non_null(mixed);
    mlp_init(wide, KILN_PRECISION_32, with_bf16);
    mlp_init(mixed, KILN_BF16_MIXED, with_bf16);
    for (int i = 0; i < STEPS; i++) {
        const double want = mlp_step(wide), got = mlp_step(mixed);

        if (!(fabs(got - want) <= 2e-2 * fabs(want)))
            fail_msg("step %d: loss %g in bf16, %g in f32", i, got, want);
        last = got;
    }
    assert_true(last < 1.0); /* it learned */
    assert_memory_not_equal(wide->values, mixed->values, sizeof(wide->values));
    mlp_release(wide);
    mlp_release(mixed);
    free(wide);
    free(mixed);
}

static void test_curve(void **unused)
{
    (void)unused;
    check_curve(true);
}

static void test_curve_in_f32(void **unused)
{
    (void)unused;
    check_curve(false);
}

static unsigned pass_bit(const char *name)
{
    for (size_t i = 0; i < kiln_passes_count; i++)
        if (strcmp(kiln_passes[i].name, name) == 0)
            return 1u << i;
    fail_msg("no pass %s", name);
    return 0;
}

/* With the pass off, bf16-mixed is f32 to the bit. */
static void test_pass_off(void **unused)
{
    Mlp *wide = calloc(1, sizeof(*wide)), *off = calloc(1, sizeof(*off));

    (void)unused;
    assert_non_null(wide);
    assert_non_null(off);
    mlp_init(wide, KILN_PRECISION_32, true);
    mlp_init(off, KILN_BF16_MIXED, true);
    off->graph->passes_off = pass_bit("precision");
    for (int i = 0; i < 3; i++)
        assert_true(mlp_step(wide) == mlp_step(off));
    assert_memory_equal(wide->values, off->values, sizeof(wide->values));
    mlp_release(wide);
    mlp_release(off);
    free(wide);
    free(off);
}

/* Changing the precision makes another plan of the same step. */
static void test_plan_key(void **unused)
{
    Mlp *mlp = calloc(1, sizeof(*mlp));

    (void)unused;
    assert_non_null(mlp);
    mlp_init(mlp, KILN_PRECISION_32, true);
    mlp_step(mlp);
    kiln_graph_set_precision(mlp->graph, KILN_BF16_MIXED);
    mlp_step(mlp);
    mlp_step(mlp);
    assert_int_equal(kiln_graph_plans(mlp->graph), 2);
    mlp_release(mlp);
    free(mlp);
}

/* Run y = x · weightᵀ + bias for `rows` rows; returns the number of casts. */
static int count_casts(Mlp *mlp, const uint16_t *weight, int64_t rows, float *ret)
{
    KilnGraph *graph = mlp->graph;
    KilnProfileRow row;
    KilnError err;
    int casts = 0;

    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(rows, IN), mlp->x);
    KilnTensor *w = kiln_graph_variable(graph, KILN_BF16, KILN_SHAPE(HIDDEN, IN), (void *)weight,
                                        false, NULL);
    KilnTensor *y = kiln_linear(x, w, param(mlp, B1, KILN_SHAPE(HIDDEN)));
    if (kiln_graph_run(graph, &y, 1, &err) < 0)
        fail_msg("%s", err.text);
    memcpy(ret, kiln_tensor_data(y), (size_t)(rows * HIDDEN) * sizeof(*ret));
    for (size_t i = 0; kiln_graph_profile(graph, i, &row); i++)
        casts += strcmp(row.op, "cast") == 0;
    return casts;
}

/* Where the processor does not multiply bf16, the weight is cast for several rows; for one row the
 * kernel reads it as it is. */
static void test_row_of_stored_weight(void **unused)
{
    Mlp *mlp = calloc(1, sizeof(*mlp));
    uint16_t weight[HIDDEN * IN];
    float one[HIDDEN], several[3 * HIDDEN];

    (void)unused;
    assert_non_null(mlp);
    mlp_init(mlp, KILN_BF16_TRUE, false);
    mlp->graph->profile = true;
    for (int i = 0; i < HIDDEN * IN; i++)
        weight[i] = kiln_bf16_of(mlp->values[W1 + i]);
    assert_int_equal(count_casts(mlp, weight, 3, several), 3); /* x to bf16 and back, the weight */
    assert_int_equal(count_casts(mlp, weight, 1, one), 1);     /* x */
    for (int j = 0; j < HIDDEN; j++) {
        double sum = mlp->values[B1 + j];

        for (int i = 0; i < IN; i++)
            sum += (double)kiln_bf16_to(kiln_bf16_of(mlp->x[i])) *
                   (double)kiln_bf16_to(weight[j * IN + i]);
        assert_true(fabs(one[j] - sum) < 1e-5 && fabs(several[j] - sum) < 1e-5);
    }
    mlp_release(mlp);
    free(mlp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curve),
        cmocka_unit_test(test_curve_in_f32),
        cmocka_unit_test(test_pass_off),
        cmocka_unit_test(test_plan_key),
        cmocka_unit_test(test_row_of_stored_weight),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
