/* Networks in bf16: fifty steps of a small ResNet and a small GPT follow f32. */
#include <math.h>
#include <stdlib.h>

#include "tests/nets/adam.h"
#include "tests/nets/gpt.h"
#include "tests/support/cmocka.h"
#include "tests/support/recorded_file.h"

enum { STEPS = 50, BATCH = 8, CONTEXT = 16, SIDE = 16, IMAGES = 16, CLASSES = 10 };
enum { RESNET_LAYERS = 6 };
/* A sanitizer, which takes longer, sees all kernels in a few steps. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

typedef struct Normed {
    KilnConv2d conv;
    KilnBatchNorm2d bn;
} Normed;

typedef struct Net {
    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    NetAdam adam;
    KilnTensor *(*loss)(struct Net *net); /* records the step */
    GptNet gpt;
    Normed resnet[RESNET_LAYERS];
    KilnLinear head;
    int32_t tokens[BATCH * CONTEXT + 1];
    float images[IMAGES * SIDE * SIDE * 3];
} Net;

static void must(KilnStatus status, const KilnError *err)
{
    if (status < 0)
        fail_msg("%s", err->text);
}

static KilnTensor *gpt_loss(Net *net)
{
    const KilnShape shape = KILN_SHAPE(BATCH, CONTEXT);

    return gpt_net_loss(&net->gpt, kiln_graph_input(net->graph, KILN_I32, shape, net->tokens),
                        kiln_graph_input(net->graph, KILN_I32, shape, net->tokens + 1));
}

static void gpt_setup(Net *net, const KilnScope *root)
{
    const GptSpec spec = {
        .vocabulary = 17, .context = CONTEXT, .width = 64, .heads = 2, .layers = 2
    };
    KilnError err = { 0 };

    must(gpt_net_init(&net->gpt, root, spec, &err), &err);
    net->loss = gpt_loss;
    for (uint32_t i = 0; i <= BATCH * CONTEXT; i++)
        net->tokens[i] = (int32_t)(fabs(pattern(71, i)) * 1e4) % 17;
}

/* A convolution and its normalization, as ResNets have them. */
static KilnStatus normed_init(Normed *layer, const KilnScope *root, const char *name, int64_t in,
                              int64_t out, int64_t stride, KilnError *err)
{
    const KilnScope scope = kiln_scope(root, "%s", name);
    const KilnConv2dSpec spec = { .in = in,
                                  .out = out,
                                  .kernel = 3,
                                  .conv = { .stride = stride, .padding = 1 },
                                  .kaiming_fan_out = true };
    KilnStatus status = kiln_nn_conv2d_init(&layer->conv, &scope, "conv", spec, err);

    return status < 0 ? status : kiln_nn_batch_norm2d_init(&layer->bn, &scope, "bn", out, err);
}

static KilnTensor *normed(const Normed *layer, KilnTensor *x)
{
    return kiln_nn_batch_norm2d(&layer->bn, kiln_nn_conv2d(&layer->conv, x), true);
}

/* A stem, a block, and one that halves the image and doubles the channels. */
static KilnTensor *resnet_loss(Net *net)
{
    const KilnShape shape = KILN_SHAPE(IMAGES, SIDE, SIDE, 3);
    const Normed *layer = net->resnet;
    KilnTensor *labels = kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(IMAGES), net->tokens);
    KilnTensor *x = kiln_graph_input(net->graph, KILN_F32, shape, net->images);

    x = kiln_relu(normed(&layer[0], x));
    x = kiln_relu(kiln_add(x, normed(&layer[2], kiln_relu(normed(&layer[1], x)))));
    x = kiln_relu(
        kiln_add(normed(&layer[5], x), normed(&layer[4], kiln_relu(normed(&layer[3], x)))));
    x = kiln_nn_linear(&net->head, kiln_flatten(kiln_adaptive_avg_pool2d(x, 1, 1)));
    return kiln_cross_entropy(x, labels, (KilnCrossEntropy) { 0 });
}

static void resnet_setup(Net *net, const KilnScope *root)
{
    static const struct {
        const char *name;
        int64_t in, out, stride;
    } layers[RESNET_LAYERS] = { { "stem", 3, 16, 1 }, { "a", 16, 16, 1 }, { "b", 16, 16, 1 },
                                { "c", 16, 32, 2 },   { "d", 32, 32, 1 }, { "down", 16, 32, 2 } };
    KilnError err = { 0 };

    for (int i = 0; i < RESNET_LAYERS; i++)
        must(normed_init(&net->resnet[i], root, layers[i].name, layers[i].in, layers[i].out,
                         layers[i].stride, &err),
             &err);
    must(kiln_nn_linear_init(&net->head, root, "fc", 32, CLASSES, true, &err), &err);
    net->loss = resnet_loss;
    for (uint32_t i = 0; i < KILN_COUNT(net->images); i++)
        net->images[i] = (float)pattern(72, i);
    for (int32_t i = 0; i < IMAGES; i++)
        net->tokens[i] = (7 * i + 3) % CLASSES;
}

typedef void Setup(Net *net, const KilnScope *root);

static Net *net_new(Setup *setup, double lr, KilnPrecision precision)
{
    Net *net = calloc(1, sizeof(*net));
    KilnError err = { 0 };

    assert_non_null(net);
    must(kiln_backend_cpu_new(2, &net->backend, &err), &err);
    must(kiln_graph_new(net->backend, &net->graph, &err), &err);
    must(kiln_params_new(1, &net->params, &err), &err);
    kiln_graph_set_precision(net->graph, precision);
    const KilnScope root = kiln_params_root(net->params);
    setup(net, &root);
    must(kiln_params_seal(net->params, net->backend, &err), &err);
    net->adam.lr = lr;
    net->adam.average = calloc((size_t)kiln_params_size(net->params), sizeof(float));
    net->adam.square = calloc((size_t)kiln_params_size(net->params), sizeof(float));
    assert_true(net->adam.average != NULL && net->adam.square != NULL);
    return net;
}

static void net_free(Net *net)
{
    free(net->adam.average);
    free(net->adam.square);
    kiln_params_free(net->params);
    kiln_graph_free(net->graph);
    kiln_backend_free(net->backend);
    free(net);
}

static double net_step(Net *net)
{
    KilnError err = { 0 };

    kiln_graph_begin(net->graph);
    KilnTensor *loss = net->loss(net);
    kiln_graph_backward(net->graph, loss);
    net_adam_update(&net->adam, net->params, net->graph);
    must(kiln_graph_run(net->graph, &loss, 1, &err), &err);
    return kiln_tensor_scalar(loss);
}

static void check_curve(Setup *setup, double lr)
{
    Net *wide = net_new(setup, lr, KILN_PRECISION_32);
    Net *mixed = net_new(setup, lr, KILN_BF16_MIXED);
    double first = 0.0, last = 0.0;
    bool differs = false;

    for (int i = 0; i < (SANITIZED ? 6 : STEPS); i++) {
        const double want = net_step(wide), got = net_step(mixed);

        if (!(fabs(got - want) <= 2e-2 * fabs(want)))
            fail_msg("step %d: loss %g in bf16, %g in f32", i, got, want);
        differs |= got != want;
        first = i == 0 ? got : first;
        last = got;
    }
    assert_true(differs);
    assert_true(SANITIZED || last < 0.9 * first); /* it learned */
    net_free(wide);
    net_free(mixed);
}

static void test_gpt(void **unused)
{
    (void)unused;
    check_curve(gpt_setup, 1e-3);
}

static void test_resnet(void **unused)
{
    (void)unused;
    check_curve(resnet_setup, 2e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt),
        cmocka_unit_test(test_resnet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
