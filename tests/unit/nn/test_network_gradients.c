/* The gradients of whole networks in double precision against finite differences of their loss. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/backend.h"
#include "nn/params.h"
#include "tests/nets/gpt.h"
#include "tests/support/components/built_model.h"
#include "tests/support/cmocka.h"
#include "tests/support/recorded_file.h"
#include "train/step/module_data.h"
#include "train/step/module_step.h"

enum { BATCH = 4, CLASSES = 5, TOKENS = 6, VOCABULARY = 7, MOST_INPUTS = 4096 };

typedef struct Network Network;
struct Network {
    KilnTensor *(*loss)(Network *net); /* records a step */
    KilnParams *params;
    KilnBackend *backend;
    KilnGraph *graph;
    int elements; /* of each parameter that are checked */
    double width; /* of a difference: small where ReLUs have kinks */
    Built built;  /* of a model of the registry */
    GptNet gpt;
    KilnShape shape;
    float inputs[MOST_INPUTS];
    int32_t tokens[BATCH * TOKENS], labels[BATCH * TOKENS];
};

static void must(KilnStatus status, const KilnError *err)
{
    if (status < 0)
        fail_msg("%s", err->text);
}

static void network_new(Network *net)
{
    KilnError err = { 0 };

    must(kiln_backend_cpu_f64_new(2, &net->backend, &err), &err);
    must(kiln_graph_new(net->backend, &net->graph, &err), &err);
    must(kiln_params_new(1, &net->params, &err), &err);
    kiln_params_set_dtype(net->params, KILN_F64);
    for (uint32_t i = 0; i < MOST_INPUTS; i++)
        net->inputs[i] = (float)pattern(7, i);
    for (int i = 0; i < BATCH * TOKENS; i++) {
        net->tokens[i] = (5 * i + 2) % VOCABULARY;
        net->labels[i] = (3 * i + 1) % CLASSES;
    }
}

static void network_free(Network *net)
{
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
    if (net->built.instance != NULL)
        built_free(&net->built);
}

/* ---- The check ------------------------------------------------------------------------ */

static double loss_at(Network *net)
{
    KilnError err = { 0 };

    kiln_graph_begin(net->graph);
    KilnTensor *loss = net->loss(net);
    must(kiln_graph_run(net->graph, &loss, 1, &err), &err);
    return kiln_tensor_scalar(loss);
}

static void compute_gradients(Network *net)
{
    KilnError err = { 0 };

    kiln_graph_begin(net->graph);
    KilnTensor *loss = net->loss(net);
    kiln_graph_backward(net->graph, loss);
    must(kiln_graph_run(net->graph, &loss, 1, &err), &err);
}

/* Central differences with two widths, which cancel the error of the first order (Richardson). */
static double slope(Network *net, KilnParam *param, double *values, int64_t i)
{
    const double value = values[i];
    double central[2];

    for (int k = 0; k < 2; k++) {
        const double half = net->width / (k + 1);

        values[i] = value + half;
        kiln_param_write(param, KILN_F64, values);
        const double above = loss_at(net);
        values[i] = value - half;
        kiln_param_write(param, KILN_F64, values);
        central[k] = (above - loss_at(net)) / (2.0 * half);
    }
    values[i] = value;
    kiln_param_write(param, KILN_F64, values);
    return (4.0 * central[1] - central[0]) / 3.0;
}

static int64_t largest_of(const double *values, int64_t n)
{
    int64_t at = 0;

    for (int64_t i = 1; i < n; i++)
        if (fabs(values[i]) > fabs(values[at]))
            at = i;
    return at;
}

/* Compares the element with the largest gradient, and some others, relative to the largest. */
static void check_parameter(Network *net, KilnParam *param)
{
    const int64_t n = kiln_shape_count(kiln_param_shape(param));
    double *values = malloc((size_t)n * sizeof(double)),
           *gradient = malloc((size_t)n * sizeof(double));

    assert_true(values != NULL && gradient != NULL);
    const double rounding = 1e-14 / net->width; /* of losses near 2 */
    compute_gradients(net);
    kiln_param_read(param, KILN_F64, values);
    kiln_param_read_gradient(param, KILN_F64, gradient);
    const int64_t largest = largest_of(gradient, n);
    for (int k = 0; k < net->elements; k++) {
        const int64_t i = (largest + k * (n / net->elements + 1)) % n;
        const double got = gradient[i], want = slope(net, param, values, i);

        if (!(fabs(got - want) <= 1e-6 * fabs(gradient[largest]) + rounding))
            fail_msg("%s [%lld]: gradient %.12g, difference %.12g, largest %.12g",
                     kiln_param_name(param), (long long)i, got, want, gradient[largest]);
    }
    free(values);
    free(gradient);
}

static void check(Network *net)
{
    KilnError err = { 0 };

    must(kiln_params_seal(net->params, net->backend, &err), &err);
    for (size_t i = 0; i < kiln_params_count(net->params); i++)
        if (kiln_param_trained(kiln_params_at(net->params, i)))
            check_parameter(net, kiln_params_at(net->params, i));
    network_free(net);
}

/* ---- Models of the registry ---------------------------------------------------------------- */

static KilnTensor *model_loss(Network *net)
{
    static KilnStep step; /* the graph reads its dropout key */
    const KilnBatch batch = { .size = BATCH };

    step = (KilnStep) { .graph = net->graph };
    kiln_step_begin(&step, KILN_PHASE_FIT, true, &batch, 1, 0);
    KilnTensor *x = kiln_graph_input(net->graph, KILN_F32, net->shape, net->inputs);
    KilnTensor *labels = kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(BATCH), net->labels);

    return kiln_cross_entropy(run_model(net->built.instance, &step, x), labels,
                              (KilnCrossEntropy) { 0 });
}

static void check_model(const char *model, char *const *options, size_t n, int64_t size,
                        int elements, double width)
{
    static Network net;
    KilnError err = { 0 };

    net = (Network) { .loss = model_loss,
                      .elements = elements,
                      .width = width,
                      .shape = KILN_SHAPE(BATCH, size, size, 2) };
    network_new(&net);
    must(build_words(&net.built, KILN_KIND_MODEL, model, options, n, &err), &err);
    KilnScope root = kiln_params_root(net.params);
    must(setup_model(net.built.instance, &root, KILN_IMAGE, KILN_SHAPE(size, size, 2), CLASSES,
                     &err),
         &err);
    check(&net);
}

static void test_mlp(void **unused)
{
    char hidden[] = "hidden=[9, 8]", dropout[] = "dropout=0.25";
    char *const options[] = { hidden, dropout };

    (void)unused;
    check_model("mlp", options, KILN_COUNT(options), 5, 5, 1e-6);
}

static void test_cnn(void **unused)
{
    char channels[] = "channels=[4, 6]", hidden[] = "hidden=8";
    char *const options[] = { channels, hidden };

    (void)unused;
    check_model("cnn", options, KILN_COUNT(options), 8, 5, 1e-6);
}

static void test_resnet(void **unused)
{
    char depth[] = "depth=18";
    char *const options[] = { depth };

    (void)unused;
    check_model("resnet", options, KILN_COUNT(options), 16, 1, 2e-8);
}

static void test_lstm(void **unused)
{
    char hidden[] = "hidden=6", layers[] = "layers=2";
    char *const options[] = { hidden, layers };

    (void)unused;
    check_model("lstm", options, KILN_COUNT(options), 6, 4, 1e-3);
}

static void test_transformer(void **unused)
{
    char width[] = "width=8", layers[] = "layers=2", heads[] = "heads=2", mlp[] = "mlp_dim=12",
         embed[] = "embed={_target_: model/patch_embedding, patch_size: 4}";
    char *const options[] = { embed, width, layers, heads, mlp };

    (void)unused;
    check_model("transformer", options, KILN_COUNT(options), 8, 3, 1e-3);
}

/* ---- A GPT ---------------------------------------------------------------------------------- */

static KilnTensor *gpt_loss(Network *net)
{
    const KilnShape shape = KILN_SHAPE(BATCH, TOKENS);

    return gpt_net_loss(&net->gpt, kiln_graph_input(net->graph, KILN_I32, shape, net->tokens),
                        kiln_graph_input(net->graph, KILN_I32, shape, net->labels));
}

static void test_gpt(void **unused)
{
    static const GptSpec spec = {
        .vocabulary = VOCABULARY, .context = TOKENS, .width = 8, .heads = 2, .layers = 2
    };
    static Network net;
    KilnError err = { 0 };

    (void)unused;
    net = (Network) { .loss = gpt_loss, .elements = 4, .width = 1e-3 };
    network_new(&net);
    const KilnScope root = kiln_params_root(net.params);
    must(gpt_net_init(&net.gpt, &root, spec, &err), &err);
    check(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mlp),         cmocka_unit_test(test_cnn),
        cmocka_unit_test(test_resnet),      cmocka_unit_test(test_lstm),
        cmocka_unit_test(test_transformer), cmocka_unit_test(test_gpt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
