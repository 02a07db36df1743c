/* Fifty training steps against PyTorch's (tests/record/curves.py): an MLP, a ResNet-18, a GPT
 * and an LSTM, in f32 and in mixed bf16, and without each graph pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/passes/passes.h"
#include "tests/nets/adam.h"
#include "tests/nets/gpt.h"
#include "tests/nets/lstm.h"
#include "tests/nets/resnet.h"
#include "tests/nets/sgd.h"
#include "tests/support/components/built_model.h"
#include "tests/support/cmocka.h"
#include "tests/support/recorded_file.h"
#include "train/step/module_step.h"
#include "tests/support/param_memory.h"

enum { STEPS = 50, BATCHES = 4 };
static const double tolerance_32 = 1e-4, tolerance_bf16 = 2e-2;

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

typedef struct Net {
    KilnParams *params;
    KilnBackend *backend;
    KilnGraph *graph;
    Built mlp;
    ResNet resnet;
    GptNet gpt;
    LstmNet lstm;
    NetAdam adam;
    NetSgd sgd;
    void *x, *labels; /* of the batch */
} Net;

typedef struct Curve {
    const char *name;
    KilnStatus (*init)(Net *net, const KilnScope *root, KilnError *err);
    KilnTensor *(*loss)(Net *net, uint32_t batch); /* records it */
    double adam, weight_decay;                     /* learning rate; 0: SGD with the next */
    double sgd;
    int sanitized; /* so many steps with sanitizers */
    bool large;    /* too slow for plain C */
} Curve;

static void must(KilnStatus status, const KilnError *err)
{
    if (status < 0)
        fail_msg("%s", err->text);
}

/* ---- Batches -------------------------------------------------------------------- */

static KilnTensor *values(Net *net, uint32_t key, KilnShape shape)
{
    const int64_t n = kiln_shape_count(&shape);
    float *x = malloc((size_t)n * sizeof(*x));

    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)pattern(key, (uint32_t)i);
    free(net->x);
    net->x = x;
    return kiln_graph_input(net->graph, KILN_F32, shape, x);
}

/* classes() of the recording, kept at `place`. */
static KilnTensor *classes(Net *net, void **place, uint32_t key, int32_t most, KilnShape shape)
{
    const int64_t n = kiln_shape_count(&shape);
    int32_t *x = malloc((size_t)n * sizeof(*x));

    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        const double p = (double)(float)pattern(key, (uint32_t)i);
        const int32_t drawn = (int32_t)((p + 1.0) / 2.0 * most);

        x[i] = drawn < most ? drawn : most - 1;
    }
    free(*place);
    *place = x;
    return kiln_graph_input(net->graph, KILN_I32, shape, x);
}

/* ---- Networks ------------------------------------------------------------------- */

static KilnStatus mlp_init(Net *net, const KilnScope *root, KilnError *err)
{
    const KilnShape sample = KILN_SHAPE(14, 14, 1);
    char hidden[] = "hidden=[128,128]";
    char *const options[] = { hidden };
    KilnStatus status = build_words(&net->mlp, KILN_KIND_MODEL, "mlp", options, 1, err);

    return status < 0 ? status : setup_model(net->mlp.instance, root, KILN_IMAGE, sample, 10, err);
}

static KilnTensor *mlp_loss(Net *net, uint32_t batch)
{
    KilnStep step = { .graph = net->graph };
    const KilnBatch size = { .size = 64 };
    KilnTensor *x, *labels;

    kiln_step_begin(&step, KILN_PHASE_FIT, true, &size, 1, 0);
    x = values(net, 1000 + batch, KILN_SHAPE(64, 14, 14, 1));
    labels = classes(net, &net->labels, 1100 + batch, 10, KILN_SHAPE(64));
    return kiln_cross_entropy(run_model(net->mlp.instance, &step, x), labels,
                              (KilnCrossEntropy) { 0 });
}

static KilnStatus resnet_init(Net *net, const KilnScope *root, KilnError *err)
{
    return resnet_net_init(&net->resnet, root, 16, 10, err);
}

static KilnTensor *resnet_loss(Net *net, uint32_t batch)
{
    KilnTensor *x, *labels;

    kiln_graph_begin(net->graph);
    x = values(net, 1000 + batch, KILN_SHAPE(16, 16, 16, 3));
    labels = classes(net, &net->labels, 1100 + batch, 10, KILN_SHAPE(16));
    return resnet_net_loss(&net->resnet, x, labels);
}

static KilnStatus gpt_init(Net *net, const KilnScope *root, KilnError *err)
{
    const GptSpec spec = { .vocabulary = 11, .context = 8, .width = 16, .heads = 2, .layers = 2 };

    return gpt_net_init(&net->gpt, root, spec, err);
}

static KilnTensor *gpt_loss(Net *net, uint32_t batch)
{
    KilnTensor *tokens, *labels;

    kiln_graph_begin(net->graph);
    tokens = classes(net, &net->x, 1000 + batch, 11, KILN_SHAPE(4, 8));
    labels = classes(net, &net->labels, 1100 + batch, 11, KILN_SHAPE(4, 8));
    return gpt_net_loss(&net->gpt, tokens, labels);
}

static KilnStatus lstm_init(Net *net, const KilnScope *root, KilnError *err)
{
    return lstm_net_init(&net->lstm, root, 8, 2, 5, err);
}

static KilnTensor *lstm_loss(Net *net, uint32_t batch)
{
    KilnTensor *x, *labels;

    kiln_graph_begin(net->graph);
    x = values(net, 1000 + batch, KILN_SHAPE(3, 6, 8));
    labels = classes(net, &net->labels, 1100 + batch, 5, KILN_SHAPE(3, 6));
    return lstm_net_loss(&net->lstm, x, labels);
}

static const Curve curves[] = {
    { "mlp", mlp_init, mlp_loss, .adam = 1e-3, .sanitized = STEPS },
    { "resnet", resnet_init, resnet_loss, .sgd = 5e-4, .sanitized = 4, .large = true },
    { "gpt", gpt_init, gpt_loss, .adam = 3e-3, .weight_decay = 0.01, .sanitized = STEPS },
    { "lstm", lstm_init, lstm_loss, .adam = 1e-2, .sanitized = STEPS },
};

/* calm() of the recording: residual branches begin small. */
static void calm(KilnParams *params)
{
    for (size_t i = 0; i < kiln_params_count(params); i++) {
        KilnParam *param = kiln_params_at(params, i);
        float *value = param_data(param);

        for (int64_t k = 0; strstr(kiln_param_name(param), ".bn2.weight") != NULL &&
                            k < kiln_shape_count(kiln_param_shape(param));
             k++)
            value[k] *= 0.2f;
    }
}

/* ---- Training ------------------------------------------------------------------- */

static Net *net_new(const Curve *curve, KilnBackend *backend, KilnPrecision precision)
{
    Net *net = calloc(1, sizeof(*net));
    KilnError err = { 0 };

    assert_non_null(net);
    net->backend = backend;
    must(kiln_graph_new(backend, &net->graph, &err), &err);
    must(kiln_params_new(1, &net->params, &err), &err);
    kiln_graph_set_precision(net->graph, precision);
    const KilnScope root = kiln_params_root(net->params);
    must(curve->init(net, &root, &err), &err);
    must(kiln_params_seal(net->params, backend, &err), &err);
    params_fill(net->params);
    calm(net->params);
    const size_t n = (size_t)kiln_params_size(net->params);
    net->adam = (NetAdam) { .lr = curve->adam, .weight_decay = curve->weight_decay };
    net->adam.average = calloc(n, sizeof(float));
    net->adam.square = calloc(n, sizeof(float));
    net->sgd = (NetSgd) { .lr = curve->sgd, .momentum = 0.9, .buffer = calloc(n, sizeof(float)) };
    assert_true(net->adam.average != NULL && net->adam.square != NULL && net->sgd.buffer != NULL);
    return net;
}

static void net_free(Net *net)
{
    free(net->adam.average);
    free(net->adam.square);
    free(net->sgd.buffer);
    free(net->x);
    free(net->labels);
    kiln_params_free(net->params);
    kiln_graph_free(net->graph);
    kiln_backend_free(net->backend);
    built_free(&net->mlp);
    free(net);
}

static double net_step(Net *net, const Curve *curve, int t)
{
    KilnError err = { 0 };
    KilnTensor *loss = curve->loss(net, (uint32_t)t % BATCHES);

    kiln_graph_backward(net->graph, loss);
    if (curve->adam > 0.0)
        net_adam_update(&net->adam, net->params, net->graph);
    else
        net_sgd_update(&net->sgd, net->params, net->graph);
    must(kiln_graph_run(net->graph, &loss, 1, &err), &err);
    return kiln_tensor_scalar(loss);
}

/* Returns the largest relative difference from the recorded curve. */
static double follow(const Curve *curve, KilnBackend *backend, KilnPrecision precision,
                     double tolerance)
{
    static Record record;
    Net *net = net_new(curve, backend, precision);
    double worst = 0.0;

    record_find(&record, "curves.txt", "curve", curve->name);
    assert_true(record_line(&record));
    assert_int_equal(record.words - 1, STEPS);
    assert_true(record_f64(&record, STEPS) < 0.9 * record_f64(&record, 1)); /* it learns */
    for (int t = 0; t < (SANITIZED ? curve->sanitized : STEPS); t++) {
        const double want = record_f64(&record, (size_t)t + 1), got = net_step(net, curve, t);

        worst = fmax(worst, fabs(got - want) / want);
        if (!(fabs(got - want) <= tolerance * want))
            fail_msg("%s: loss of step %d: %.8g, want %.8g", curve->name, t, got, want);
    }
    assert_true(kiln_graph_plans(net->graph) == 1);
    record_close(&record);
    net_free(net);
    return worst;
}

static KilnBackend *backend_new(bool cpu)
{
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    must(cpu ? kiln_backend_cpu_new(1, &backend, &err) : kiln_backend_ref_new(&backend, &err),
         &err);
    return backend;
}

static void test_f32(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(curves); i++)
        print_message("%s: %.1e\n", curves[i].name,
                      follow(&curves[i], backend_new(true), KILN_PRECISION_32, tolerance_32));
}

static void test_reference(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(curves); i++)
        if (!curves[i].large)
            (void)follow(&curves[i], backend_new(false), KILN_PRECISION_32, tolerance_32);
}

/* What rounds to bf16 cannot come as near as f32 does. */
static void test_bf16(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(curves); i++) {
        const double worst = follow(&curves[i], backend_new(true), KILN_BF16_MIXED, tolerance_bf16);

        print_message("%s: %.1e\n", curves[i].name, worst);
        assert_true(worst > 1e-6);
    }
}

/* ---- Passes left out ----------------------------------------------------------------- */

enum { FEW = 4 };

static void train_without(const Curve *curve, unsigned passes_off, KilnPrecision precision,
                          double losses[FEW])
{
    Net *net = net_new(curve, backend_new(true), precision);

    net->graph->passes_off = passes_off;
    for (int t = 0; t < FEW; t++)
        losses[t] = net_step(net, curve, t);
    net_free(net);
}

static void check_without(const Curve *curve, const char *pass, unsigned passes_off,
                          KilnPrecision precision, const double *want)
{
    const bool narrow = precision != KILN_PRECISION_32;
    const double tolerance = narrow ? tolerance_bf16 : tolerance_32;
    double got[FEW];

    train_without(curve, passes_off, precision, got);
    for (int t = 0; t < FEW; t++)
        if (!(fabs(got[t] - want[t]) <= tolerance * want[t]))
            fail_msg("%s without %s%s: loss of step %d: %.8g, with it %.8g", curve->name, pass,
                     narrow ? ", bf16" : "", t, got[t], want[t]);
}

/* With each pass left out, and with none at all, losses stay what they are. */
static void test_passes(void **unused)
{
    static const KilnPrecision precisions[] = { KILN_PRECISION_32, KILN_BF16_MIXED };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(curves); i++)
        for (size_t p = 0; p < KILN_COUNT(precisions) && !(SANITIZED && curves[i].large); p++) {
            double want[FEW];

            train_without(&curves[i], 0, precisions[p], want);
            for (size_t pass = 0; pass < kiln_passes_count; pass++)
                check_without(&curves[i], kiln_passes[pass].name, 1u << pass, precisions[p], want);
            check_without(&curves[i], "all passes", ~0u, precisions[p], want);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
