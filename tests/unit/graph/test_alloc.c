/* Allocations of training steps: none after the first two steps; a failed allocation is an
 * error without a crash or leak. Counts and fails kiln's own calls of malloc, calloc and
 * realloc (the linker redirects them), not those of libraries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/nn.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/param_memory.h"

/* ---- Counting -------------------------------------------------------------------- */

static size_t allocations, fail_at; /* the allocation that fails; 0: none */

bool allocation_fails(void)
{
    return ++allocations == fail_at;
}

/* ---- Networks ---------------------------------------------------------------------- */

enum { BATCH = 4, SIDE = 8, CHANNELS = 2, STEPS = 6, WIDTH = 8, WORDS = 7, CLASSES = 3 };
enum { MOST_PARAMS = 8192, MOST_CONVS = 6 };

/* Everything that lives longer than a step. */
typedef struct Net {
    KilnBackend *backend;
    KilnParams *params;
    KilnGraph *graph;
    KilnConv2d conv[MOST_CONVS];
    KilnBatchNorm2d bn[MOST_CONVS];
    KilnEmbedding embedding;
    KilnTransformerLayer layer;
    KilnLinear fc;
    float momentum[MOST_PARAMS];
    float hyper[2];
    int32_t key[2];
} Net;

/* A network: declared once, recorded each step as far as its logits. */
typedef struct Kind {
    const char *name;
    KilnStatus (*init)(Net *net, const KilnScope *root, KilnError *err);
    KilnTensor *(*logits)(Net *net, KilnDropoutState *drop);
    int64_t rows;
} Kind;

static float images[BATCH * SIDE * SIDE * CHANNELS];
static const int32_t labels[BATCH * STEPS] = { 0, 1, 2, 1, 2, 0, 1, 1, 2, 0, 0, 1,
                                               2, 1, 0, 2, 2, 1, 0, 1, 0, 2, 1, 0 };
static const int32_t tokens[BATCH * STEPS] = { 0, 3, 6, 2, 5, 1, 4, 0, 2, 3, 1, 6,
                                               5, 5, 4, 0, 1, 2, 6, 3, 2, 4, 1, 0 };
static const uint8_t present[BATCH * STEPS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0,
                                                1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0 };

static KilnStatus conv_init(Net *net, int i, const KilnScope *root, int64_t in, int64_t out,
                            int64_t kernel, int64_t stride, KilnError *err)
{
    const KilnScope scope = kiln_scope(root, "part%d", i);
    const KilnConv2dSpec spec = {
        .in = in, .out = out, .kernel = kernel, .conv = { .stride = stride, .padding = kernel / 2 }
    };
    KilnStatus status = kiln_nn_conv2d_init(&net->conv[i], &scope, "conv", spec, err);

    return status < 0 ? status : kiln_nn_batch_norm2d_init(&net->bn[i], &scope, "bn", out, err);
}

static KilnTensor *conv(const Net *net, int i, KilnTensor *x)
{
    return kiln_nn_batch_norm2d(&net->bn[i], kiln_nn_conv2d(&net->conv[i], x), true);
}

static KilnTensor *batch(const Net *net)
{
    return kiln_graph_input(net->graph, KILN_F32, KILN_SHAPE(BATCH, SIDE, SIDE, CHANNELS), images);
}

static KilnStatus plain_init(Net *net, const KilnScope *root, KilnError *err)
{
    KilnStatus status = conv_init(net, 0, root, CHANNELS, 6, 3, 1, err);

    if (status < 0)
        return status;
    return kiln_nn_linear_init(&net->fc, root, "fc", 6 * SIDE * SIDE / 4, CLASSES, true, err);
}

static KilnTensor *plain(Net *net, KilnDropoutState *drop)
{
    KilnTensor *x = kiln_max_pool2d(kiln_relu(conv(net, 0, batch(net))),
                                    (KilnPool) { .kernel = 2 });

    return kiln_nn_linear(&net->fc, kiln_nn_dropout(kiln_flatten(x), 0.25, drop));
}

/* A stem, a block, and one that halves the image and doubles the channels. */
static KilnStatus residual_init(Net *net, const KilnScope *root, KilnError *err)
{
    static const struct {
        int64_t in, out, kernel, stride;
    } convs[MOST_CONVS] = { { CHANNELS, WIDTH, 3, 1 },      { WIDTH, WIDTH, 3, 1 },
                            { WIDTH, WIDTH, 3, 1 },         { WIDTH, 2 * WIDTH, 3, 2 },
                            { 2 * WIDTH, 2 * WIDTH, 3, 1 }, { WIDTH, 2 * WIDTH, 1, 2 } };
    KilnStatus status = KILN_OK;

    for (int i = 0; i < MOST_CONVS && status == KILN_OK; i++)
        status = conv_init(net, i, root, convs[i].in, convs[i].out, convs[i].kernel,
                           convs[i].stride, err);
    if (status < 0)
        return status;
    return kiln_nn_linear_init(&net->fc, root, "fc", 2 * WIDTH, CLASSES, true, err);
}

static KilnTensor *residual(Net *net, KilnDropoutState *drop)
{
    KilnTensor *x = kiln_relu(conv(net, 0, batch(net)));

    (void)drop;
    x = kiln_max_pool2d(x, (KilnPool) { .kernel = 3, .stride = 2, .padding = 1 });
    x = kiln_relu(kiln_add(x, conv(net, 2, kiln_relu(conv(net, 1, x)))));
    x = kiln_relu(kiln_add(conv(net, 5, x), conv(net, 4, kiln_relu(conv(net, 3, x)))));
    return kiln_nn_linear(&net->fc, kiln_flatten(kiln_adaptive_avg_pool2d(x, 1, 1)));
}

static KilnStatus transformer_init(Net *net, const KilnScope *root, KilnError *err)
{
    const KilnTransformerSpec spec = {
        .width = WIDTH, .heads = 2, .feedforward = 2 * WIDTH, .dropout = 0.1, .gelu = true
    };
    KilnStatus status = kiln_nn_embedding_init(&net->embedding, root, "embedding", WORDS, WIDTH, -1,
                                               err);

    if (status == KILN_OK)
        status = kiln_nn_transformer_encoder_layer_init(&net->layer, root, "layer", spec, err);
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&net->fc, root, "fc", WIDTH, CLASSES, true, err);
    return status;
}

static KilnTensor *transformer(Net *net, KilnDropoutState *drop)
{
    const KilnShape shape = KILN_SHAPE(BATCH, STEPS);
    const KilnAttentionMasks sight = {
        .causal = true, .padding = kiln_graph_input(net->graph, KILN_U8, shape, present)
    };
    KilnTensor *x = kiln_nn_embedding(&net->embedding,
                                      kiln_graph_input(net->graph, KILN_I32, shape, tokens));

    x = kiln_nn_transformer_layer(&net->layer, x, NULL, sight, (KilnAttentionMasks) { 0 }, drop);
    return kiln_reshape(kiln_nn_linear(&net->fc, x), KILN_SHAPE(BATCH * STEPS, CLASSES));
}

static const Kind kinds[] = {
    { "plain", plain_init, plain, BATCH },
    { "residual", residual_init, residual, BATCH },
    { "transformer", transformer_init, transformer, (int64_t)BATCH *STEPS },
};

/* ---- A training step --------------------------------------------------------------- */

typedef KilnStatus NewBackend(KilnBackend **ret, KilnError *err);

static KilnStatus one_thread(KilnBackend **ret, KilnError *err)
{
    return kiln_backend_cpu_new(1, ret, err);
}

static KilnStatus two_threads(KilnBackend **ret, KilnError *err)
{
    return kiln_backend_cpu_new(2, ret, err);
}

static KilnStatus net_open(Net *net, const Kind *kind, NewBackend *backend, KilnError *err)
{
    memset(net, 0, sizeof(*net));
    KilnStatus status = backend(&net->backend, err);
    if (status == KILN_OK)
        status = kiln_params_new(1, &net->params, err);
    if (status == KILN_OK) {
        const KilnScope root = kiln_params_root(net->params);

        status = kind->init(net, &root, err);
    }
    if (status == KILN_OK)
        status = kiln_params_seal(net->params, net->backend, err);
    if (status == KILN_OK)
        status = kiln_graph_new(net->backend, &net->graph, err);
    return status;
}

static void net_close(Net *net)
{
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
}

static void update(Net *net)
{
    const KilnShape shape = KILN_SHAPE(kiln_params_size(net->params));

    assert_in_range(shape.dim[0], 1, MOST_PARAMS);
    KilnFlat flat = {
        .param = kiln_graph_variable(net->graph, KILN_F32, shape, params_values(net->params), false,
                                     NULL),
        .grad = kiln_graph_input(net->graph, KILN_F32, shape, params_gradients(net->params)),
        .slots = { kiln_graph_variable(net->graph, KILN_F32, shape, net->momentum, false, NULL) },
        .hyper = kiln_graph_input(net->graph, KILN_F32, KILN_SHAPE(2), net->hyper),
    };
    flat.scale = kiln_clip_factor(kiln_l2_norm(flat.grad), 1.0);
    kiln_sgd_update(&flat, (KilnSgd) { .momentum = 0.9 });
}

/* Record and run one step; `number` counts from 1. */
static KilnStatus train(Net *net, const Kind *kind, int number, double *ret_loss, KilnError *err)
{
    net->hyper[0] = 0.05f;
    net->hyper[1] = number == 1 ? 1.0f : 0.0f;
    net->key[0] = number;
    kiln_graph_begin(net->graph);
    KilnDropoutState drop = { kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(2), net->key), 0 };
    KilnTensor *logits = kind->logits(net, &drop);
    KilnTensor *wanted = kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(kind->rows), labels);
    KilnTensor *loss = kiln_cross_entropy(logits, wanted,
                                          (KilnCrossEntropy) { .label_smoothing = 0.1 });
    KilnTensor *accuracy = kiln_mean(kiln_equal(kiln_argmax(logits), wanted));
    kiln_graph_backward(net->graph, loss);
    update(net);
    KilnTensor *outputs[] = { loss, accuracy };
    KilnStatus status = kiln_graph_run(net->graph, outputs, 2, err);
    if (status == KILN_OK)
        *ret_loss = kiln_tensor_scalar(loss);
    return status;
}

/* ---- Tests ----------------------------------------------------------------------- */

static int fill_in(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(images); i++)
        images[i] = (float)((i * 53) % 31) / 15.0f - 1.0f;
    return 0;
}

static void test_counter(void **unused)
{
    size_t before = allocations;
    KilnBackend *backend;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_backend_ref_new(&backend, &err), KILN_OK);
    assert_true(allocations > before);
    kiln_backend_free(backend);
}

static void check_steps(const Kind *kind, NewBackend *backend)
{
    static Net net;
    double first = 0.0, last = 0.0;
    KilnError err = { 0 };

    if (net_open(&net, kind, backend, &err) < 0)
        fail_msg("%s: %s", kind->name, err.text);
    for (int step = 1; step <= 10; step++) {
        const size_t before = allocations;

        if (train(&net, kind, step, &last, &err) < 0)
            fail_msg("%s, step %d: %s", kind->name, step, err.text);
        first = step == 1 ? last : first;
        if (step > 2 && allocations != before)
            fail_msg("%s, step %d: %zu allocations", kind->name, step, allocations - before);
    }
    assert_int_equal(kiln_graph_plans(net.graph), 1);
    assert_true(last < first); /* it has really trained */
    net_close(&net);
}

static void test_no_allocations(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < KILN_COUNT(kinds); k++) {
        check_steps(&kinds[k], kiln_backend_ref_new);
        check_steps(&kinds[k], two_threads);
    }
}

/* From the backend to two steps with the given allocation failing; false when there
 * are not so many. Afterwards the same graph works. */
static bool fails(const Kind *kind, NewBackend *backend, size_t failing)
{
    static Net net;
    KilnError err = { 0 };
    double loss;

    fail_at = allocations + failing;
    KilnStatus status = net_open(&net, kind, backend, &err);
    for (int step = 1; step <= 2 && status == KILN_OK; step++)
        status = train(&net, kind, step, &loss, &err);
    const bool failed = allocations >= fail_at;
    fail_at = 0;
    if (status != (failed ? KILN_E_NOMEM : KILN_OK) || (failed && err.text[0] == '\0'))
        fail_msg("%s, allocation %zu: status %d, %s", kind->name, failing, status, err.text);
    if (failed && net.graph != NULL && train(&net, kind, 1, &loss, &err) < 0)
        fail_msg("%s, after allocation %zu: %s", kind->name, failing, err.text);
    net_close(&net);
    return failed;
}

static void check_out_of_memory(const Kind *kind, NewBackend *backend)
{
    size_t failing = 1;

    while (fails(kind, backend, failing))
        failing++;
    assert_in_range(failing, 30, 2000);
}

/* Every single allocation fails once: each time an error that says so. */
static void test_out_of_memory(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < KILN_COUNT(kinds); k++) {
        check_out_of_memory(&kinds[k], kiln_backend_ref_new);
        check_out_of_memory(&kinds[k], one_thread);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter),
        cmocka_unit_test(test_no_allocations),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, fill_in, NULL);
}
