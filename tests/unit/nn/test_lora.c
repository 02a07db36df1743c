/* Adapters of linear layers: their names and initial values, W + scale B A, gradients, dropout, and
 * what stays fixed; the depths of layer-wise learning rates. */
#include "tests/support/cmocka.h"

#include <math.h>
#include <string.h>

#include "kiln.h"
#include "nn/lora.h"
#include "nn/parameter_groups.h"
#include "tests/support/param_memory.h"

enum { IN = 6, OUT = 4, RANK = 2, ROWS = 5 };
static const KilnLoraSpec spec = { .r = RANK, .scale = 1.5 };

typedef struct Bench {
    KilnParams *params;
    KilnScope root;
    KilnBackend *backend;
    KilnGraph *graph;
} Bench;

static void bench_open(Bench *bench)
{
    KilnError err = { 0 };

    assert_int_equal(kiln_params_new(9, &bench->params, &err), KILN_OK);
    bench->root = kiln_params_root(bench->params);
    assert_int_equal(kiln_backend_ref_new(&bench->backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(bench->backend, &bench->graph, &err), KILN_OK);
}

static void bench_close(Bench *bench)
{
    kiln_graph_free(bench->graph);
    kiln_params_free(bench->params);
    kiln_backend_free(bench->backend);
}

static bool nothing(void *ctx, const KilnParam *param)
{
    (void)ctx;
    (void)param;
    return false;
}

static void add_adapter(KilnParam *weight, KilnLoraSpec own)
{
    KilnError err = { 0 };

    if (kiln_lora_declare(weight, own, &err) < 0)
        fail_msg("%s", err.text);
}

static void seal(Bench *bench)
{
    KilnError err = { 0 };

    if (kiln_params_seal(bench->params, bench->backend, &err) < 0)
        fail_msg("%s", err.text);
}

static void fill(KilnParam *param, double start)
{
    float *values = param_data(param);

    for (int64_t i = 0; i < param->count; i++)
        values[i] = (float)sin(start + 0.7 * (double)i);
}

/* Write W + scale B A over W and zero over B. */
static void merge(KilnParam *weight)
{
    const int64_t out = weight->shape.dim[0], in = weight->shape.dim[1];
    const int64_t r = weight->lora->a->shape.dim[0];
    const float *a = param_data(weight->lora->a);
    float *b = param_data(weight->lora->b), *w = param_data(weight);

    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t k = 0; k < r; k++)
                w[o * in + i] += (float)weight->lora->scale * b[o * r + k] * a[k * in + i];
    memset(b, 0, (size_t)(out * r) * sizeof(*b));
}

static void run(Bench *bench, KilnTensor *y, float *ret)
{
    KilnError err = { 0 };

    if (kiln_graph_run(bench->graph, &y, 1, &err) < 0)
        fail_msg("%s", err.text);
    memcpy(ret, kiln_tensor_data(y), (size_t)kiln_shape_count(kiln_tensor_shape(y)) * sizeof(*ret));
}

static void check_close(const float *got, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f))
            fail_msg("[%lld]: %.7g, want %.7g", (long long)i, (double)got[i], (double)want[i]);
}

/* ---- Declaring ------------------------------------------------------------------------------- */

static void test_declared(void **unused)
{
    Bench bench;
    KilnLinear linear;
    KilnError err = { 0 };

    (void)unused;
    bench_open(&bench);
    const KilnScope scope = kiln_scope(&bench.root, "blocks.0");
    assert_int_equal(kiln_nn_linear_init(&linear, &scope, "fc", IN, OUT, true, &err), KILN_OK);
    add_adapter(linear.weight, spec);
    kiln_params_fix(bench.params, nothing, NULL);
    seal(&bench);
    const KilnParam *a = kiln_params_find(bench.params, "blocks.0.fc.lora_A.weight");
    const KilnParam *b = kiln_params_find(bench.params, "blocks.0.fc.lora_B.weight");
    assert_non_null(a);
    assert_non_null(b);
    assert_true(kiln_shape_equal(kiln_param_shape(a), &KILN_SHAPE(RANK, IN)));
    assert_true(kiln_shape_equal(kiln_param_shape(b), &KILN_SHAPE(OUT, RANK)));
    assert_int_equal(kiln_params_size(bench.params), RANK * (IN + OUT));
    assert_true(kiln_param_fixed(linear.weight) && kiln_param_fixed(linear.bias));
    assert_false(kiln_param_trained(linear.weight));
    const float *a_values = param_data(a), *b_values = param_data(b);
    for (int i = 0; i < RANK * IN; i++)
        assert_true(fabsf(a_values[i]) <= 1.0f / sqrtf(IN));
    for (int i = 0; i < OUT * RANK; i++)
        assert_float_equal(b_values[i], 0.0f, 0.0f);
    bench_close(&bench);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void test_linear(void **unused)
{
    float x[ROWS][IN], with[ROWS * OUT], merged[ROWS * OUT];
    Bench bench;
    KilnLinear linear;
    KilnError err = { 0 };

    (void)unused;
    for (int i = 0; i < ROWS * IN; i++)
        x[i / IN][i % IN] = (float)cos(i);
    bench_open(&bench);
    assert_int_equal(kiln_nn_linear_init(&linear, &bench.root, "fc", IN, OUT, true, &err), KILN_OK);
    add_adapter(linear.weight, spec);
    kiln_params_fix(bench.params, nothing, NULL);
    seal(&bench);
    fill(linear.weight->lora->b, 0.3);
    for (int round = 0; round < 2; round++) {
        kiln_graph_begin(bench.graph);
        KilnTensor *input = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(ROWS, IN), x);

        run(&bench, kiln_nn_linear(&linear, input), round == 0 ? with : merged);
        merge(linear.weight);
    }
    check_close(with, merged, ROWS * OUT);
    bench_close(&bench);
}

/* Packed projections, rows of them, and those of a memory of another width. */
static void test_attention(void **unused)
{
    enum { BATCH = 2, TIME = 3, WIDTH = 4, MEMORY = 6, COUNT = 3 * BATCH * TIME * WIDTH };
    float x[BATCH * TIME * WIDTH], memory[BATCH * TIME * MEMORY], with[COUNT], merged[COUNT];
    Bench bench;
    KilnMultiHeadAttention self;
    KilnCrossAttention cross;
    KilnError err = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(x); i++)
        x[i] = (float)cos((double)i);
    for (size_t i = 0; i < KILN_COUNT(memory); i++)
        memory[i] = (float)sin((double)i);
    bench_open(&bench);
    assert_int_equal(
        kiln_nn_multi_head_attention_init(&self, &bench.root, "self", WIDTH, 2, 0.0, &err),
        KILN_OK);
    assert_int_equal(
        kiln_nn_cross_attention_init(&cross, &bench.root, "cross", WIDTH, 2, MEMORY, 0.0, &err),
        KILN_OK);
    KilnParam *const weights[] = { self.in_proj_weight, self.out_proj.weight, cross.q_proj_weight,
                                   cross.k_proj_weight, cross.v_proj_weight };
    for (size_t i = 0; i < KILN_COUNT(weights); i++)
        add_adapter(weights[i], spec);
    assert_non_null(kiln_params_find(bench.params, "self.lora_A.weight"));
    assert_non_null(kiln_params_find(bench.params, "self.out_proj.lora_A.weight"));
    assert_non_null(kiln_params_find(bench.params, "cross.k_proj.lora_B.weight"));
    kiln_params_fix(bench.params, nothing, NULL);
    seal(&bench);
    for (size_t i = 0; i < KILN_COUNT(weights); i++)
        fill(weights[i]->lora->b, 0.3 * (double)i);
    for (int round = 0; round < 2; round++) {
        const KilnAttentionMasks none = { 0 };
        kiln_graph_begin(bench.graph);
        KilnTensor *q = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(BATCH, TIME, WIDTH), x);
        KilnTensor *m = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(BATCH, TIME, MEMORY),
                                         memory);
        KilnTensor *parts[] = { kiln_nn_multi_head_attention(&self, q, NULL, none, NULL),
                                kiln_nn_multi_head_attention(&self, q, q, none, NULL),
                                kiln_nn_cross_attention(&cross, q, m, none, NULL) };

        run(&bench, kiln_concat(parts, 3, 0), round == 0 ? with : merged);
        for (size_t i = 0; i < KILN_COUNT(weights); i++)
            merge(weights[i]);
    }
    check_close(with, merged, COUNT);
    bench_close(&bench);
}

/* ---- Gradients ------------------------------------------------------------------------------- */

static double loss_of(Bench *bench, const KilnLinear *linear, const float *x, bool backward)
{
    KilnError err = { 0 };

    kiln_graph_begin(bench->graph);
    KilnTensor *input = kiln_graph_input(bench->graph, KILN_F32, KILN_SHAPE(ROWS, IN), x);
    KilnTensor *loss = kiln_mean(kiln_sin(kiln_nn_linear(linear, input)));
    if (backward)
        kiln_params_backward(bench->params, bench->graph, loss);
    if (kiln_graph_run(bench->graph, &loss, 1, &err) < 0)
        fail_msg("%s", err.text);
    return kiln_tensor_scalar(loss);
}

static void test_gradients(void **unused)
{
    const float step = 1e-2f;
    float x[ROWS * IN];
    Bench bench;
    KilnLinear linear;
    KilnError err = { 0 };

    (void)unused;
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)cos(i);
    bench_open(&bench);
    assert_int_equal(kiln_nn_linear_init(&linear, &bench.root, "fc", IN, OUT, true, &err), KILN_OK);
    add_adapter(linear.weight, spec);
    kiln_params_fix(bench.params, nothing, NULL);
    seal(&bench);
    fill(linear.weight->lora->b, 0.3);
    KilnParam *const trained[] = { linear.weight->lora->a, linear.weight->lora->b };
    for (size_t k = 0; k < KILN_COUNT(trained); k++)
        for (int64_t i = 0; i < trained[k]->count; i++) {
            float gradient[OUT * RANK + RANK * IN], values[OUT * RANK + RANK * IN];

            (void)loss_of(&bench, &linear, x, true);
            kiln_param_read_gradient(trained[k], KILN_F32, gradient);
            kiln_param_read(trained[k], KILN_F32, values);
            values[i] += step;
            kiln_param_write(trained[k], KILN_F32, values);
            const double high = loss_of(&bench, &linear, x, false);
            values[i] -= 2.0f * step;
            kiln_param_write(trained[k], KILN_F32, values);
            const double low = loss_of(&bench, &linear, x, false);
            values[i] += step;
            kiln_param_write(trained[k], KILN_F32, values);
            assert_true(fabs((double)gradient[i] - (high - low) / (2.0 * (double)step)) < 1e-4);
        }
    bench_close(&bench);
}

/* ---- Dropout --------------------------------------------------------------------------------- */

/* Only what the adapter reads is dropped, in steps that say so. */
static void test_dropout(void **unused)
{
    static const int32_t key[2] = { 3, 4 };
    const KilnLoraSpec dropped = { .r = RANK, .scale = 1.0, .dropout = 0.5 };
    float x[ROWS * IN], plain[ROWS * OUT], first[ROWS * OUT], second[ROWS * OUT];
    Bench bench;
    KilnLinear linear;
    KilnError err = { 0 };

    (void)unused;
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)cos(i);
    bench_open(&bench);
    assert_int_equal(kiln_nn_linear_init(&linear, &bench.root, "fc", IN, OUT, true, &err), KILN_OK);
    add_adapter(linear.weight, dropped);
    seal(&bench);
    assert_true(kiln_lora_drops(bench.params));
    fill(linear.weight->lora->b, 0.3);
    float *const results[] = { plain, first, second };
    for (size_t round = 0; round < KILN_COUNT(results); round++) {
        KilnDropoutState state = { 0 };

        kiln_graph_begin(bench.graph);
        if (round > 0)
            state.key = kiln_graph_input(bench.graph, KILN_I32, KILN_SHAPE(2), key);
        kiln_lora_set_dropout(bench.params, state);
        KilnTensor *input = kiln_graph_input(bench.graph, KILN_F32, KILN_SHAPE(ROWS, IN), x);
        run(&bench, kiln_nn_linear(&linear, input), results[round]);
    }
    assert_memory_equal(first, second, sizeof(first));
    assert_memory_not_equal(first, plain, sizeof(first));
    bench_close(&bench);
}

/* ---- Depths ---------------------------------------------------------------------------------- */

static void check_depths(const char *const *names, const int64_t *want, size_t n)
{
    const KilnInit init = { .kind = KILN_INIT_CONSTANT };
    KilnError err = { 0 };
    int64_t depths[16];
    KilnParam *param;
    Bench bench;

    bench_open(&bench);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(kiln_param_new(&bench.root, names[i], KILN_SHAPE(1), init, &param, &err),
                         KILN_OK);
    assert_int_equal(kiln_layer_depths(bench.params, depths, &err), KILN_OK);
    for (size_t i = 0; i < n; i++)
        if (depths[i] != want[i])
            fail_msg("%s: %lld layers below the last, want %lld", names[i], (long long)depths[i],
                     (long long)want[i]);
    bench_close(&bench);
}

static void test_depths(void **unused)
{
    static const char *const vit[] = { "class_token",
                                       "conv_proj.weight",
                                       "encoder.layers.encoder_layer_0.mlp.0.weight",
                                       "encoder.layers.encoder_layer_0.mlp.3.weight",
                                       "encoder.layers.encoder_layer_1.mlp.0.weight",
                                       "encoder.ln.weight",
                                       "heads.head.weight" };
    static const char *const resnet[] = { "conv1.weight", "layer1.0.conv1.weight",
                                          "layer1.1.conv1.weight", "layer2.0.conv1.weight",
                                          "fc.weight" };
    static const char *const pair[] = { "source.weight", "encoder.layers.0.norm1.weight",
                                        "encoder.norm.weight", "decoder.layers.0.norm1.weight",
                                        "decoder.layers.1.norm1.weight" };
    static const int64_t vit_depths[] = { 3, 3, 2, 2, 1, 0, 0 },
                         resnet_depths[] = { 4, 3, 2, 1, 0 }, pair_depths[] = { 4, 3, 2, 1, 0 };

    (void)unused;
    check_depths(vit, vit_depths, KILN_COUNT(vit));
    check_depths(resnet, resnet_depths, KILN_COUNT(resnet));
    check_depths(pair, pair_depths, KILN_COUNT(pair));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared),  cmocka_unit_test(test_linear),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_dropout),   cmocka_unit_test(test_depths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
