/* Recurrent layers, attention and transformers against PyTorch (tests/record/sequence.py):
 * outputs, gradients and the distributions of initial values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/recorded_file.h"
#include "tests/support/param_memory.h"

enum { MOST_OUTPUTS = 3 };

/* ---- A network over a store of its own ------------------------------------------ */

typedef struct Net {
    KilnParams *params;
    KilnBackend *backend;
    KilnGraph *graph;
    float *leaves[16];
    size_t n_leaves;
} Net;

static void net_open(Net *net)
{
    KilnError err = { 0 };

    *net = (Net) { 0 };
    if (kiln_params_new(1, &net->params, &err) < 0 ||
        kiln_backend_cpu_new(2, &net->backend, &err) < 0 ||
        kiln_graph_new(net->backend, &net->graph, &err) < 0)
        fail_msg("%s", err.text);
}

static void net_close(Net *net)
{
    for (size_t i = 0; i < net->n_leaves; i++)
        free(net->leaves[i]);
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
}

static float *patterned(uint32_t key, int64_t n)
{
    float *x = malloc((size_t)n * sizeof(float));

    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)pattern(key, (uint32_t)i);
    return x;
}

/* leaf() of the recording. */
static KilnTensor *leaf(Net *net, uint32_t key, KilnShape shape, float *gradient)
{
    assert_true(net->n_leaves < 16);
    float *x = patterned(key, kiln_shape_count(&shape));
    net->leaves[net->n_leaves++] = x;
    return kiln_graph_variable(net->graph, KILN_F32, shape, x, gradient != NULL, gradient);
}

/* ---- Layers ---------------------------------------------------------------------- */

typedef union Layer {
    KilnRecurrentLayer recurrent;
    KilnMultiHeadAttention attention;
    KilnCrossAttention cross;
    KilnCrossDecoder cross_decoder;
    KilnTransformer transformer;
} Layer;

typedef struct LayerCase {
    const char *name;
    KilnShape in;
    KilnStatus (*init)(Layer *layer, const KilnScope *scope, KilnError *err);
    void (*run)(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS]);
} LayerCase;

static void take(KilnRecurrentOut from, KilnTensor *out[MOST_OUTPUTS])
{
    out[0] = from.y;
    out[1] = from.h;
    out[2] = from.c;
}

static KilnStatus lstm_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    const KilnRecurrentSpec spec = {
        .in = 5, .hidden = 7, .layers = 2, .batch_first = true, .bidirectional = true
    };

    return kiln_nn_lstm_init(&layer->recurrent, scope, "", spec, err);
}

static void lstm_run(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS])
{
    const KilnShape state = KILN_SHAPE(4, 3, 7);

    take(kiln_nn_recurrent(&layer->recurrent, x,
                           (KilnRecurrentStart) { .h0 = leaf(net, 601, state, NULL),
                                                  .c0 = leaf(net, 602, state, NULL) }),
         out);
}

static const KilnRecurrentSpec packed_spec = { .in = 5, .hidden = 4, .bidirectional = true };

static KilnStatus lstm_packed_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    return kiln_nn_lstm_init(&layer->recurrent, scope, "", packed_spec, err);
}

static KilnStatus gru_packed_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    KilnRecurrentSpec spec = packed_spec;

    spec.no_bias = true;
    return kiln_nn_gru_init(&layer->recurrent, scope, "", spec, err);
}

static void packed_run(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS])
{
    static const int32_t lengths[] = { 6, 2, 5 };
    KilnTensor *steps = kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(3), lengths);

    take(kiln_nn_recurrent(&layer->recurrent, x, (KilnRecurrentStart) { .lengths = steps }), out);
}

static KilnStatus gru_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    return kiln_nn_gru_init(&layer->recurrent, scope, "",
                            (KilnRecurrentSpec) { .in = 5, .hidden = 7, .layers = 2 }, err);
}

static void gru_run(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS])
{
    (void)net;
    take(kiln_nn_recurrent(&layer->recurrent, x, (KilnRecurrentStart) { 0 }), out);
}

static KilnStatus attention_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    return kiln_nn_multi_head_attention_init(&layer->attention, scope, "attn", 12, 3, 0.0, err);
}

static void attention_run(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS])
{
    static const uint8_t present[] = { 1, 1, 1, 1, 1, 1, 1, 1, 0, 0 };
    const KilnAttentionMasks attend = {
        .causal = true,
        .padding = kiln_graph_input(net->graph, KILN_U8, KILN_SHAPE(2, 5), present),
    };

    out[0] = kiln_nn_multi_head_attention(&layer->attention, x, NULL, attend, NULL);
}

static KilnTensor *memory_of(Net *net)
{
    return leaf(net, 601, KILN_SHAPE(2, 7, 12), NULL);
}

static void memory_run(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS])
{
    out[0] = kiln_nn_multi_head_attention(&layer->attention, x, memory_of(net),
                                          (KilnAttentionMasks) { 0 }, NULL);
}

static KilnStatus cross_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    return kiln_nn_cross_attention_init(&layer->cross, scope, "attn", 12, 3, 8, 0.0, err);
}

static void cross_run(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS])
{
    out[0] = kiln_nn_cross_attention(&layer->cross, x, leaf(net, 601, KILN_SHAPE(2, 7, 8), NULL),
                                     (KilnAttentionMasks) { 0 }, NULL);
}

static const KilnTransformerSpec post = { .width = 12, .heads = 3, .feedforward = 20 };
static const KilnTransformerSpec pre = {
    .width = 12, .heads = 3, .feedforward = 20, .gelu = true, .norm_first = true
};

static KilnStatus encoder_post_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    return kiln_nn_transformer_encoder_init(&layer->transformer, scope, "", post, 2, true, err);
}

static KilnStatus encoder_pre_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    return kiln_nn_transformer_encoder_init(&layer->transformer, scope, "", pre, 2, true, err);
}

static KilnStatus decoder_post_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    return kiln_nn_transformer_decoder_init(&layer->transformer, scope, "", post, 2, false, err);
}

static KilnStatus decoder_pre_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    return kiln_nn_transformer_decoder_init(&layer->transformer, scope, "", pre, 2, false, err);
}

static void encoder_run(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS])
{
    (void)net;
    out[0] = kiln_nn_transformer(&layer->transformer, x, NULL, (KilnAttentionMasks) { 0 },
                                 (KilnAttentionMasks) { 0 }, NULL);
}

static void decoder_run(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS])
{
    out[0] = kiln_nn_transformer(&layer->transformer, x, memory_of(net),
                                 (KilnAttentionMasks) { .causal = true },
                                 (KilnAttentionMasks) { 0 }, NULL);
}

static KilnStatus cross_decoder_init(Layer *layer, const KilnScope *scope, KilnError *err)
{
    return kiln_nn_cross_decoder_init(&layer->cross_decoder, scope, "", pre, 8, 2, false, err);
}

static void cross_decoder_run(Layer *layer, Net *net, KilnTensor *x, KilnTensor *out[MOST_OUTPUTS])
{
    out[0] = kiln_nn_cross_decoder(
        &layer->cross_decoder, x, leaf(net, 601, KILN_SHAPE(2, 7, 8), NULL),
        (KilnAttentionMasks) { .causal = true }, (KilnAttentionMasks) { 0 }, NULL);
}

#define SHAPE(...)                                                                                 \
    {                                                                                              \
        .rank = 3, .dim = { __VA_ARGS__ }                                                          \
    }

static const LayerCase cases[] = {
    { "lstm", SHAPE(3, 6, 5), lstm_init, lstm_run },
    { "lstm_packed", SHAPE(6, 3, 5), lstm_packed_init, packed_run },
    { "gru", SHAPE(6, 3, 5), gru_init, gru_run },
    { "gru_packed", SHAPE(6, 3, 5), gru_packed_init, packed_run },
    { "attention", SHAPE(2, 5, 12), attention_init, attention_run },
    { "attention_memory", SHAPE(2, 5, 12), attention_init, memory_run },
    { "attention_memory_width", SHAPE(2, 5, 12), cross_init, cross_run },
    { "encoder_post", SHAPE(2, 5, 12), encoder_post_init, encoder_run },
    { "decoder_post", SHAPE(2, 5, 12), decoder_post_init, decoder_run },
    { "encoder_pre", SHAPE(2, 5, 12), encoder_pre_init, encoder_run },
    { "decoder_pre", SHAPE(2, 5, 12), decoder_pre_init, decoder_run },
    { "decoder_memory_width", SHAPE(2, 5, 12), cross_decoder_init, cross_decoder_run },
};

/* All values of a line after its keyword, within 1e-5 of the largest. */
static void check_values(const char *name, const Record *record, const float *got, int64_t n)
{
    double largest = 0.0;

    assert_int_equal(record->words - 1, n);
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(record_f64(record, (size_t)i + 1)));
    for (int64_t i = 0; i < n; i++) {
        const double want = record_f64(record, (size_t)i + 1);

        if (!(fabs((double)got[i] - want) <= 1e-5 * largest))
            fail_msg("%s: %s [%lld]: %.9g, want %.9g", name, record->word[0], (long long)i,
                     (double)got[i], want);
    }
}

/* summary() of the recording: norm, projection, first, middle and last element. */
static void check_gradient(const char *name, const Record *record, size_t k, Net *net)
{
    const KilnParam *param = kiln_params_at(net->params, k);
    const int64_t n = kiln_shape_count(kiln_param_shape(param));
    const float *v = params_gradients(net->params) + kiln_param_offset(param);
    double got[5] = { 0.0, 0.0, (double)v[0], (double)v[n / 2], (double)v[n - 1] };

    if (strcmp(kiln_param_name(param), record->word[1]) != 0)
        fail_msg("%s: parameter %zu is %s, PyTorch's %s", name, k, kiln_param_name(param),
                 record->word[1]);
    for (int64_t i = 0; i < n; i++) {
        got[0] += (double)v[i] * (double)v[i];
        got[1] += (double)v[i] * pattern(5000 + (uint32_t)k, (uint32_t)i);
    }
    got[0] = sqrt(got[0]);
    for (size_t i = 0; i < 5; i++)
        if (!(fabs(got[i] - record_f64(record, i + 2)) <= 1e-5 * record_f64(record, 2)))
            fail_msg("%s: gradient of %s, number %zu: %.9g, want %.9g", name, record->word[1], i,
                     got[i], record_f64(record, i + 2));
}

static void check_layer(const LayerCase *c)
{
    static Layer layer;
    static Record record;
    Net net;
    KilnError err = { 0 };
    float dx[256];
    KilnTensor *out[MOST_OUTPUTS] = { NULL };
    size_t n_outputs = 0, k = 0;

    net_open(&net);
    const KilnScope root = kiln_params_root(net.params);
    if (c->init(&layer, &root, &err) < 0 || kiln_params_seal(net.params, net.backend, &err) < 0)
        fail_msg("%s: %s", c->name, err.text);
    params_fill(net.params);
    kiln_graph_begin(net.graph);
    c->run(&layer, &net, leaf(&net, 600, c->in, dx), out);
    KilnTensor *loss = NULL;
    for (; n_outputs < MOST_OUTPUTS && out[n_outputs] != NULL; n_outputs++) {
        KilnTensor *y = out[n_outputs];
        KilnTensor *weighted = kiln_sum(
            kiln_mul(y, leaf(&net, 700 + (uint32_t)n_outputs, *kiln_tensor_shape(y), NULL)));

        loss = loss == NULL ? weighted : kiln_add(loss, weighted);
    }
    kiln_graph_backward(net.graph, loss);
    if (kiln_graph_run(net.graph, out, n_outputs, &err) < 0)
        fail_msg("%s: %s", c->name, err.text);
    record_find(&record, "sequence.txt", "case", c->name);
    for (size_t i = 0; i < n_outputs && record_line(&record); i++)
        check_values(c->name, &record, kiln_tensor_data(out[i]),
                     kiln_shape_count(kiln_tensor_shape(out[i])));
    assert_true(record_line(&record));
    check_values(c->name, &record, dx, kiln_shape_count(&c->in));
    while (record_line(&record) && record_is(&record, "grad")) {
        check_gradient(c->name, &record, k, &net);
        k++;
    }
    assert_int_equal(k, kiln_params_count(net.params));
    record_close(&record);
    net_close(&net);
}

static void test_layers(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        check_layer(&cases[i]);
}

/* ---- Initial values --------------------------------------------------------------- */

typedef struct InitCase {
    const char *name;
    KilnInit init;
    double deviation; /* of all values */
    double bound;     /* none is farther from 0 */
    double fourth;    /* mean of (x / deviation)^4: 3 for normal, 1.8 for uniform */
} InitCase;

/* Of a weight [40, 30, 5]: fan_in 150, fan_out 200. */
static const InitCase inits[] = {
    { "constant", { KILN_INIT_CONSTANT, .a = 0.5 }, 0.5, 0.5, 1.0 },
    { "uniform", { KILN_INIT_UNIFORM, .a = 0.3 }, 0.3 / 1.7320508, 0.3, 1.8 },
    { "normal", { KILN_INIT_NORMAL, .a = 0.2 }, 0.2, INFINITY, 3.0 },
    /* Cut off at two deviations: variance 0.77374 of the whole. */
    { "trunc_normal",
      { KILN_INIT_TRUNC_NORMAL, .a = 0.2, .b = 0.4 },
      0.2 * 0.879626,
      0.4,
      2.36565 },
    { "xavier_uniform", { KILN_INIT_XAVIER_UNIFORM, .a = 1.0 }, 0.0755929, 0.1309308, 1.8 },
    { "xavier_normal", { KILN_INIT_XAVIER_NORMAL, .a = 2.0 }, 0.1511858, INFINITY, 3.0 },
    { "kaiming_uniform", { KILN_INIT_KAIMING_UNIFORM, .a = 1.4142136 }, 0.1154701, 0.2, 1.8 },
    { "kaiming_normal",
      { KILN_INIT_KAIMING_NORMAL, .a = 1.0, .fan_out = true },
      0.0707107,
      INFINITY,
      3.0 },
};

static const float *draw(KilnParams **params, KilnShape shape, KilnInit init)
{
    KilnParam *param = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_params_new(3, params, &err), KILN_OK);
    const KilnScope root = kiln_params_root(*params);
    assert_int_equal(kiln_param_new(&root, "weight", shape, init, &param, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(*params, store_backend(), &err), KILN_OK);
    return param_data(param);
}

static void test_distributions(void **unused)
{
    enum { N = 40 * 30 * 5 };

    (void)unused;
    for (size_t c = 0; c < KILN_COUNT(inits); c++) {
        KilnParams *params = NULL;
        const float *x = draw(&params, KILN_SHAPE(40, 30, 5), inits[c].init);
        double square = 0.0, fourth = 0.0, largest = 0.0;

        for (int i = 0; i < N; i++) {
            const double unit = (double)x[i] / inits[c].deviation;

            square += unit * unit / N;
            fourth += unit * unit * unit * unit / N;
            largest = fmax(largest, fabs((double)x[i]));
        }
        if (!(fabs(square - 1.0) < 0.08 && fabs(fourth - inits[c].fourth) < 0.3))
            fail_msg("%s: moments %g and %g, want 1 and %g", inits[c].name, square, fourth,
                     inits[c].fourth);
        if (!(largest <= inits[c].bound * (1.0 + 1e-6)))
            fail_msg("%s: %g is beyond %g", inits[c].name, largest, inits[c].bound);
        kiln_params_free(params);
    }
}

/* Rows of a wide matrix, columns of a tall one, are orthogonal and of length `gain`. */
static void test_orthogonal(void **unused)
{
    static const int64_t forms[][2] = { { 6, 10 }, { 10, 6 }, { 1, 4 } };

    (void)unused;
    for (size_t f = 0; f < KILN_COUNT(forms); f++) {
        const int64_t rows = forms[f][0], columns = forms[f][1];
        const bool wide = rows <= columns;
        const int64_t n = wide ? rows : columns, length = wide ? columns : rows;
        const KilnInit init = { .kind = KILN_INIT_ORTHOGONAL, .a = 2.0 };
        KilnParams *params = NULL;
        const float *x = draw(&params, KILN_SHAPE(rows, columns), init);

        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double dot = 0.0;

                for (int64_t k = 0; k < length; k++)
                    dot += wide ? (double)x[i * columns + k] * (double)x[j * columns + k]
                                : (double)x[k * columns + i] * (double)x[k * columns + j];
                assert_true(fabs(dot - (i == j ? 4.0 : 0.0)) < 1e-5);
            }
        kiln_params_free(params);
    }
}

static void test_gains(void **unused)
{
    (void)unused;
    assert_true(fabs(kiln_init_gain("relu", 0.0) - sqrt(2.0)) < 1e-12);
    assert_true(fabs(kiln_init_gain("leaky_relu", 2.0) - sqrt(0.4)) < 1e-12);
    assert_true(kiln_init_gain("tanh", 0.0) == 5.0 / 3.0);
    assert_true(kiln_init_gain("no such thing", 0.0) == 0.0);
}

/* ---- Errors ----------------------------------------------------------------------- */

static void test_refusals(void **unused)
{
    static Layer layer;
    Net net;
    KilnError err = { 0 };

    (void)unused;
    net_open(&net);
    const KilnScope root = kiln_params_root(net.params);
    assert_int_equal(
        kiln_nn_multi_head_attention_init(&layer.attention, &root, "attn", 10, 3, 0.0, &err),
        KILN_E_RANGE);
    assert_non_null(strstr(err.text, "multiple of the number of heads, got 10 and 3"));
    const KilnRecurrentSpec deep = { .in = 1, .hidden = 1, .layers = 9, .bidirectional = true };
    assert_int_equal(kiln_nn_gru_init(&layer.recurrent, &root, "gru", deep, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "at most 16 layers times directions are possible, got 18"));
    net_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),     cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_orthogonal), cmocka_unit_test(test_gains),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
