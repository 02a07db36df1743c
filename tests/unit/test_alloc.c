/* No allocation in a step after the first two: kiln's own calls of malloc,
 * calloc and realloc are counted (the linker sends them here), those of the
 * libraries are theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/ops.h"

/* ---- Counting -------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static size_t allocations, fail_at; /* the allocation that fails; 0: none */

void *__wrap_malloc(size_t size)
{
    return ++allocations == fail_at ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return ++allocations == fail_at ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return ++allocations == fail_at ? NULL : __real_realloc(old, size);
}

/* ---- A training step --------------------------------------------------------------- */

enum { BATCH = 4, SIDE = 8, CHANNELS = 6, CLASSES = 3, FEATURES = CHANNELS * 16 };
enum {
    CONV = CHANNELS * 2 * 9,
    NORM = CHANNELS,
    LINEAR = CLASSES * FEATURES,
    PARAMS = CONV + 2 * NORM + LINEAR + CLASSES
};

/* Everything that lives longer than a step. */
typedef struct Net {
    float params[PARAMS], grads[PARAMS], momentum[PARAMS];
    float running_mean[NORM], running_var[NORM];
    int64_t batches;
    float hyper[2];
    int32_t key[2];
} Net;

/* A leaf over the next `count` of the flat parameters. */
static KilnTensor *param(KilnGraph *graph, Net *net, size_t *offset, KilnShape shape)
{
    float *data = net->params + *offset, *grad = net->grads + *offset;

    *offset += (size_t)kiln_shape_count(&shape);
    return kiln_graph_variable(graph, KILN_F32, shape, data, true, grad);
}

static KilnTensor *buffer(KilnGraph *graph, KilnShape shape, float *data)
{
    return kiln_graph_variable(graph, KILN_F32, shape, data, false, NULL);
}

static KilnTensor *forward(KilnGraph *graph, Net *net, KilnTensor *x)
{
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = true };
    size_t at = 0;

    kiln_graph_layer(graph, "conv1");
    x = kiln_conv2d(x, param(graph, net, &at, KILN_SHAPE(CHANNELS, 2, 3, 3)), NULL,
                    (KilnConv) { .stride = 1, .padding = 1 });
    kiln_graph_layer(graph, "bn1");
    KilnTensor *weight = param(graph, net, &at, KILN_SHAPE(NORM));
    KilnTensor *bias = param(graph, net, &at, KILN_SHAPE(NORM));
    x = kiln_batch_norm(x, weight, bias, buffer(graph, KILN_SHAPE(NORM), net->running_mean),
                        buffer(graph, KILN_SHAPE(NORM), net->running_var), norm);
    kiln_increment(kiln_graph_variable(graph, KILN_I64, KILN_SCALAR, &net->batches, false, NULL));
    x = kiln_max_pool2d(kiln_relu(x), (KilnPool) { .kernel = 2 });
    kiln_graph_layer(graph, "fc");
    x = kiln_dropout(kiln_flatten(x), 0.25,
                     kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2), net->key), 0);
    weight = param(graph, net, &at, KILN_SHAPE(CLASSES, FEATURES));
    bias = param(graph, net, &at, KILN_SHAPE(CLASSES));
    return kiln_linear(x, weight, bias);
}

/* Record and run one step on the given batch. */
static KilnStatus train(KilnGraph *graph, Net *net, const float *images, const int32_t *labels,
                        double *ret_loss, KilnError *err)
{
    kiln_graph_begin(graph);
    KilnTensor *logits = forward(
        graph, net, kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, SIDE, SIDE, 2), images));
    KilnTensor *wanted = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(BATCH), labels);
    KilnTensor *loss = kiln_cross_entropy(logits, wanted,
                                          (KilnCrossEntropy) { .label_smoothing = 0.1 });
    KilnTensor *accuracy = kiln_mean(kiln_equal(kiln_argmax(logits), wanted));
    kiln_graph_backward(graph, loss);
    KilnFlat flat = {
        .param = buffer(graph, KILN_SHAPE(PARAMS), net->params),
        .grad = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(PARAMS), net->grads),
        .slots = { buffer(graph, KILN_SHAPE(PARAMS), net->momentum) },
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2), net->hyper),
    };
    flat.scale = kiln_clip_factor(kiln_l2_norm(flat.grad), 1.0);
    kiln_sgd_update(&flat, (KilnSgd) { .momentum = 0.9 });
    KilnTensor *outputs[] = { loss, accuracy };
    KilnStatus status = kiln_graph_run(graph, outputs, 2, err);
    if (status >= 0)
        *ret_loss = kiln_tensor_scalar(loss);
    return status;
}

static const int32_t labels[BATCH] = { 0, 1, 2, 1 };
static float images[2][BATCH * SIDE * SIDE * 2];
static Net net;

static void fill_in(void)
{
    memset(&net, 0, sizeof(net));
    for (size_t i = 0; i < PARAMS; i++)
        net.params[i] = (float)((i * 37) % 19) / 40.0f - 0.22f;
    for (size_t i = 0; i < KILN_COUNT(images[0]); i++)
        images[0][i] = images[1][i] = (float)((i * 53) % 31) / 15.0f - 1.0f;
}

static void check(KilnBackend *backend)
{
    double first = 0.0, last = 0.0;
    KilnGraph *graph;
    KilnError err;

    fill_in();
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    for (int step = 1; step <= 10; step++) {
        size_t before = allocations;

        net.hyper[0] = 0.05f;
        net.hyper[1] = step == 1 ? 1.0f : 0.0f;
        net.key[0] = step;
        if (train(graph, &net, images[step % 2], labels, &last, &err) < 0)
            fail_msg("step %d: %s", step, err.text);
        if (step == 1)
            first = last;
        if (step > 2 && allocations != before)
            fail_msg("step %d: %zu allocations", step, allocations - before);
    }
    assert_int_equal(kiln_graph_plans(graph), 1);
    assert_int_equal(net.batches, 10);
    assert_true(last < first); /* it has really trained */
    kiln_graph_free(graph);
}

/* ---- Tests ----------------------------------------------------------------------- */

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

static void test_reference(void **unused)
{
    KilnBackend *backend;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_backend_ref_new(&backend, &err), KILN_OK);
    check(backend);
    kiln_backend_free(backend);
}

static void test_cpu(void **unused)
{
    KilnBackend *backend;
    KilnError err;

    (void)unused;
    if (kiln_backend_cpu_new(2, &backend, &err) < 0)
        fail_msg("%s", err.text);
    check(backend);
    kiln_backend_free(backend);
}

/* Every single allocation fails once: each time an error that says so. */
static void test_out_of_memory(void **unused)
{
    KilnStatus status = KILN_E_NOMEM;
    size_t failures = 0;
    KilnBackend *backend;
    KilnError err;
    double loss;

    (void)unused;
    fill_in();
    assert_int_equal(kiln_backend_ref_new(&backend, &err), KILN_OK);
    while (status < 0) {
        KilnGraph *graph = NULL;

        fail_at = allocations + ++failures;
        status = kiln_graph_new(backend, &graph, &err);
        if (status >= 0)
            status = train(graph, &net, images[0], labels, &loss, &err);
        fail_at = 0;
        assert_int_equal(status, status < 0 ? KILN_E_NOMEM : KILN_OK);
        /* Afterwards the same graph works. */
        if (status < 0 && graph != NULL)
            assert_int_equal(train(graph, &net, images[0], labels, &loss, &err), KILN_OK);
        kiln_graph_free(graph);
    }
    assert_in_range(failures, 10, 1000);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
