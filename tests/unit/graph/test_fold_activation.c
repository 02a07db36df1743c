/* Activations after convolutions in evaluation: the convolution's kernel takes them, with the
 * reference's results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/passes/pass_list.h"
#include "graph/plan/profile.h"
#include "kiln/ops/image.h"
#include "kiln/rng.h"
#include "tests/support/case_runner.h"
#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"

typedef KilnTensor *Activation(KilnTensor *x);

static KilnTensor *leaky_relu(KilnTensor *x)
{
    return kiln_leaky_relu(x, 0.1);
}

static KilnTensor *elu(KilnTensor *x)
{
    return kiln_elu(x, 0.7);
}

static KilnTensor *relu6(KilnTensor *x)
{
    return kiln_clamp(x, 0.0, 6.0);
}

static KilnTensor *gelu(KilnTensor *x)
{
    return kiln_gelu(x, KILN_GELU_ERF);
}

static KilnTensor *gelu_tanh(KilnTensor *x)
{
    return kiln_gelu(x, KILN_GELU_TANH);
}

static const struct {
    const char *name;
    Activation *activation;
    bool folds;
    bool hides; /* makes a number of NaN where it folds */
} activations[] = {
    { "relu", kiln_relu, true, true },
    { "leaky_relu", leaky_relu, true, false },
    { "elu", elu, true, false },
    { "clamp", relu6, true, true },
    { "sigmoid", kiln_sigmoid, false, false },
    { "tanh", kiln_tanh, true, false },
    { "gelu", gelu, true, false },
    { "gelu_tanh", gelu_tanh, true, false },
    { "silu", kiln_silu, true, false },
    { "hard_swish", kiln_hard_swish, true, false },
};

/* A layer of [images, size, size, channels]: by Winograd's algorithm, or directly; 1x1 with a
 * padding, by oneDNN's kernels in plain C. */
typedef struct Layer {
    int64_t images, size, channels, out, kernel, stride, padding;
    bool norm, residual; /* before the activation */
} Layer;

static const Layer layers[] = {
    { 2, 11, 32, 48, 3, 1, 1, false, false }, { 2, 11, 32, 32, 3, 1, 1, true, false },
    { 2, 11, 32, 32, 3, 1, 1, true, true },   { 2, 9, 3, 20, 3, 2, 1, false, false },
    { 2, 6, 24, 16, 1, 1, 0, true, false },   { 1, 5, 10, 10, 3, 1, 1, true, true },
    { 1, 11, 16, 16, 1, 1, 1, false, false },
};

enum { MOST = 48 * 48 * 9, CHANNELS = 48 };

static float numbers[4][MOST], channels[4][CHANNELS];

static void draw(void)
{
    KilnRng rng;

    kiln_rng_init(&rng, 3, KILN_RNG_USER, 0, 0);
    for (size_t i = 0; i < KILN_COUNT(numbers); i++)
        for (size_t k = 0; k < MOST; k++)
            numbers[i][k] = (i == 1 ? 0.03f : 1.0f) * kiln_rng_normal(&rng);
    for (size_t i = 0; i < KILN_COUNT(channels); i++)
        for (size_t k = 0; k < CHANNELS; k++)
            channels[i][k] = 0.5f + fabsf(kiln_rng_normal(&rng));
}

static KilnTensor *param(KilnGraph *graph, float *values, KilnShape shape)
{
    return kiln_graph_variable(graph, KILN_F32, shape, values, false, NULL);
}

static KilnTensor *record(KilnGraph *graph, const Layer *l, Activation *activation)
{
    const KilnConv conv = { .stride = l->stride, .padding = l->padding };
    const KilnShape vector = KILN_SHAPE(l->out);
    KilnTensor *x = kiln_graph_input(
        graph, KILN_F32, KILN_SHAPE(l->images, l->size, l->size, l->channels), numbers[0]);
    KilnTensor *weight = param(graph, numbers[1],
                               KILN_SHAPE(l->out, l->channels, l->kernel, l->kernel));
    KilnTensor *y = kiln_conv2d(x, weight, param(graph, numbers[2], vector), conv);

    if (l->norm) {
        y = kiln_batch_norm(y, param(graph, channels[0], vector), param(graph, channels[1], vector),
                            param(graph, channels[2], vector), param(graph, channels[3], vector),
                            (KilnBatchNorm) { .eps = 1e-5 });
    }
    if (l->residual)
        y = kiln_add(y, kiln_graph_input(graph, KILN_F32, *kiln_tensor_shape(y), numbers[3]));
    return activation(y);
}

typedef struct Run {
    float *values; /* owned by the caller */
    size_t count;
    int calls;  /* of the plan, beside changes of layout */
    bool apart; /* one of them is the activation */
} Run;

/* The second of two runs, which reads what the first one kept of parameters. */
static Run run(KilnBackend *backend, unsigned passes_off, const Layer *layer, size_t activation)
{
    KilnGraph *graph = NULL;
    KilnError err = { 0 };
    KilnProfileRow row;
    Run run = { 0 };

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    graph->passes_off = passes_off;
    graph->profile = true;
    for (int again = 0; again < 2; again++) {
        kiln_graph_begin(graph);
        KilnTensor *y = record(graph, layer, activations[activation].activation);
        if (kiln_graph_run(graph, &y, 1, &err) < 0)
            fail_msg("%s", err.text);
        if (again == 0)
            continue;
        run.count = (size_t)kiln_shape_count(kiln_tensor_shape(y));
        run.values = malloc(run.count * sizeof(float));
        assert_non_null(run.values);
        memcpy(run.values, kiln_tensor_data(y), run.count * sizeof(float));
    }
    for (size_t i = 0; kiln_graph_profile(graph, i, &row); i++) {
        run.calls += strcmp(row.op, "reorder") != 0;
        run.apart |= strcmp(row.op, activations[activation].name) == 0;
    }
    kiln_graph_free(graph);
    return run;
}

static void compare_runs(const Run *want, const Run *got, const char *how)
{
    double worst = 0.0, scale = 0.0;

    assert_int_equal(want->count, got->count);
    for (size_t i = 0; i < want->count; i++) {
        const double d = fabs((double)got->values[i] - (double)want->values[i]);

        worst = d > worst || isnan(d) ? d : worst;
        scale = fmax(scale, fabs((double)want->values[i]));
    }
    if (!(worst <= 1e-5 * scale))
        fail_msg("%s: differs by %g of %g", how, worst, scale);
}

static void check(KilnBackend *backend, size_t layer, size_t activation, const char *how)
{
    KilnBackend *ref = ref_new();
    Run want = run(ref, 1u << KILN_PASS_fold_norm, &layers[layer], activation);
    Run apart = run(backend, 1u << KILN_PASS_fold_norm, &layers[layer], activation);
    Run got = run(backend, 0, &layers[layer], activation);
    char text[128];

    snprintf(text, sizeof(text), "%s, layer %d, %s", activations[activation].name, (int)layer, how);
    compare_runs(&want, &got, text);
    if (!layers[layer].norm && got.calls != apart.calls - activations[activation].folds)
        fail_msg("%s: %d calls, %d without folding", text, got.calls, apart.calls);
    if (!layers[layer].residual && got.apart == activations[activation].folds)
        fail_msg("%s: the activation %s a call of its own", text, got.apart ? "is" : "is not");
    free(want.values);
    free(apart.values);
    free(got.values);
    kiln_backend_free(ref);
}

static void check_all(KilnBackend *backend, const char *how)
{
    for (size_t a = 0; a < KILN_COUNT(activations); a++)
        for (size_t l = 0; l < KILN_COUNT(layers); l++)
            check(backend, l, a, how);
    kiln_backend_free(backend);
}

static void test_activations(void **unused)
{
    (void)unused;
    draw();
    check_all(ref_new(), "reference");
    for (size_t v = 0; v < cpu_variants_count; v++)
        check_all(cpu_variant_new(&cpu_variants[v]), cpu_variants[v].name);
}

static void check_nan(KilnBackend *backend, size_t layer, size_t activation, const char *how)
{
    Run want = run(backend, 1u << KILN_PASS_fold_norm, &layers[layer], activation);
    Run got = run(backend, 0, &layers[layer], activation);

    for (size_t i = 0; i < want.count; i++)
        if (isnan(want.values[i]) && !isnan(got.values[i]))
            fail_msg("%s, layer %d, %s: element %d is %g", activations[activation].name, (int)layer,
                     how, (int)i, (double)got.values[i]);
    free(want.values);
    free(got.values);
}

/* NaN of an image and of a bias stay NaN. */
static void test_nan_stays(void **unused)
{
    (void)unused;
    draw();
    numbers[0][5] = NAN;
    numbers[2][7] = NAN;
    for (size_t v = 0; v < cpu_variants_count; v++) {
        KilnBackend *backend = cpu_variant_new(&cpu_variants[v]);

        for (size_t a = 0; a < KILN_COUNT(activations); a++)
            for (size_t l = 0; l < KILN_COUNT(layers) && !activations[a].hides; l++)
                check_nan(backend, l, a, cpu_variants[v].name);
        kiln_backend_free(backend);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_nan_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
