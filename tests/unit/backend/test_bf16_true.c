/* Networks with parameters, gradients, statistics and optimizer state stored as bf16, against
 * PyTorch's recorded curves (tests/record/bf16.py). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/passes/pass_list.h"
#include "nn/params.h"
#include "tensor/bf16.h"
#include "tests/support/components/built_component.h"
#include "tests/support/cmocka.h"
#include "tests/support/recorded_file.h"
#include "tests/support/param_memory.h"

enum { STEPS = 50, BATCH = 64, SIDE = 8, CHANNELS = 3, INPUTS = 32, CLASSES = 10 };

typedef struct Net {
    KilnBackend *backend;
    KilnGraph *graph;
    KilnParams *params;
    Built built; /* the optimizer */
    const KilnOptimizerOps *ops;
    const char *names[KILN_MAX_SLOTS];
    size_t n_slots;
    void *slots[KILN_MAX_SLOTS];
    float numbers[KILN_MAX_HYPER], rates[2], x[BATCH * SIDE * SIDE * CHANNELS];
    int64_t end;
    int32_t labels[BATCH];
    bool images;
    KilnConv2d conv;
    KilnBatchNorm2d bn;
    KilnLinear first, last;
} Net;

static void must(KilnStatus status, const KilnError *err)
{
    if (status < 0)
        fail_msg("%s", err->text);
}

/* ---- The networks of the recording --------------------------------------------------- */

static void declare(Net *net)
{
    const KilnScope root = kiln_params_root(net->params);
    const KilnConv2dSpec spec = {
        .in = CHANNELS, .out = 16, .kernel = 3, .conv = { .stride = 1, .padding = 1 }
    };
    KilnError err = { 0 };

    if (net->images) {
        must(kiln_nn_conv2d_init(&net->conv, &root, "0", spec, &err), &err);
        must(kiln_nn_batch_norm2d_init(&net->bn, &root, "1", 16, &err), &err);
        must(kiln_nn_linear_init(&net->last, &root, "5", 16 * 4 * 4, CLASSES, true, &err), &err);
    } else {
        must(kiln_nn_linear_init(&net->first, &root, "0", INPUTS, 48, true, &err), &err);
        must(kiln_nn_linear_init(&net->last, &root, "2", 48, CLASSES, true, &err), &err);
    }
}

static KilnTensor *loss_of(Net *net)
{
    KilnTensor *labels = kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(BATCH), net->labels), *x;

    if (net->images) {
        x = kiln_graph_input(net->graph, KILN_F32, KILN_SHAPE(BATCH, SIDE, SIDE, CHANNELS), net->x);
        x = kiln_relu(kiln_nn_batch_norm2d(&net->bn, kiln_nn_conv2d(&net->conv, x), true));
        x = kiln_flatten(kiln_max_pool2d(x, (KilnPool) { .kernel = 2, .stride = 2 }));
    } else {
        x = kiln_graph_input(net->graph, KILN_F32, KILN_SHAPE(BATCH, INPUTS), net->x);
        x = kiln_relu(kiln_nn_linear(&net->first, x));
    }
    return kiln_cross_entropy(kiln_nn_linear(&net->last, x), labels, (KilnCrossEntropy) { 0 });
}

/* Parameter or buffer number k, as `fill` in tests/record/models.py. */
static void fill(KilnParams *params)
{
    for (uint32_t k = 0; k < kiln_params_count(params); k++) {
        KilnParam *param = kiln_params_at(params, k);
        const KilnShape *shape = kiln_param_shape(param);
        const char *name = kiln_param_name(param);
        const bool variance = strstr(name, "running_var") != NULL;
        const bool scale = shape->rank == 1 && strstr(name, "weight") != NULL;
        const int64_t count = kiln_shape_count(shape);
        const double fan = (double)(count / (shape->rank > 0 ? shape->dim[0] : 1));

        for (uint32_t i = 0; i < count && kiln_param_dtype(param) != KILN_I64; i++) {
            const double p = (double)(float)pattern(k, i);
            const float value = (float)(variance          ? 1.0 + 0.5 * p
                                        : shape->rank > 1 ? p * sqrt(3.0 / fan)
                                        : scale           ? 1.0 + 0.25 * p
                                                          : 0.25 * p);

            if (kiln_param_dtype(param) == KILN_BF16)
                ((uint16_t *)param_data(param))[i] = kiln_bf16_of(value);
            else /* from the same weights */
                ((float *)param_data(param))[i] = kiln_bf16_to(kiln_bf16_of(value));
        }
    }
}

/* ---- Training ------------------------------------------------------------------------ */

static Net *net_new(const char *name, const char *optimizer, const char *lr, KilnBackend *backend,
                    KilnDType dtype)
{
    Net *net = calloc(1, sizeof(*net));
    char option[64];
    char *const options[] = { option, optimizer[0] == 's' ? "momentum=0.9" : "weight_decay=0.01" };
    KilnError err = { 0 };

    assert_non_null(net);
    net->images = strcmp(name, "cnn") == 0;
    net->backend = backend;
    must(kiln_graph_new(backend, &net->graph, &err), &err);
    must(kiln_params_new(1, &net->params, &err), &err);
    kiln_params_set_dtype(net->params, dtype);
    if (dtype == KILN_BF16)
        kiln_graph_set_precision(net->graph, KILN_BF16_TRUE);
    declare(net);
    must(kiln_params_seal(net->params, backend, &err), &err);
    fill(net->params);
    snprintf(option, sizeof(option), "lr=%s", lr);
    must(build_words(&net->built, KILN_KIND_OPTIMIZER, optimizer, options, 2, &err), &err);
    net->ops = kiln_instance_component(net->built.instance)->ops.optimizer;
    net->n_slots = net->ops->slots(net->built.instance, net->names);
    net->end = kiln_params_size(net->params);
    for (size_t i = 0; i < net->n_slots; i++)
        net->slots[i] = calloc((size_t)net->end, kiln_dtype_size(dtype));
    for (uint32_t i = 0; i < KILN_COUNT(net->x); i++)
        net->x[i] = (float)pattern(70, i);
    for (int i = 0; i < BATCH; i++)
        net->labels[i] = (7 * i + 3) % CLASSES;
    return net;
}

static void net_free(Net *net)
{
    for (size_t i = 0; i < net->n_slots; i++)
        free(net->slots[i]);
    built_free(&net->built);
    kiln_params_free(net->params);
    kiln_graph_free(net->graph);
    free(net);
}

/* One step as the trainer records it. */
static double net_step(Net *net, int64_t step)
{
    const KilnDType dtype = kiln_params_dtype(net->params);
    KilnGraph *graph = net->graph;
    KilnOptimizerCommon common = { 0 };
    KilnError err = { 0 };

    net->ops->common(net->built.instance, &common);
    kiln_graph_begin(graph);
    KilnTensor *loss = loss_of(net);
    kiln_graph_backward(graph, loss);
    size_t n = net->ops->hyper(net->built.instance, common.lr, step + 1, net->numbers);
    net->rates[0] = 1.0f;
    net->rates[1] = (float)common.weight_decay;
    KilnFlat flat = {
        .param = kiln_params_flat_values(net->params, graph),
        .grad = kiln_params_flat_gradients(net->params, graph),
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE((int64_t)n), net->numbers),
        .segment_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(1), &net->end),
        .rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1, 2), net->rates),
    };
    for (size_t i = 0; i < net->n_slots; i++)
        if (net->names[i] != NULL)
            flat.slots[i] = kiln_graph_variable(graph, dtype, KILN_SHAPE(net->end), net->slots[i],
                                                false, NULL);
    net->ops->update(net->built.instance, &flat);
    must(kiln_graph_run(graph, &loss, 1, &err), &err);
    return kiln_tensor_scalar(loss);
}

/* ---- Curves --------------------------------------------------------------------------- */

static double worst_of(const double *got, const double *want)
{
    double worst = 0.0;

    for (int i = 0; i < STEPS; i++)
        worst = fmax(worst, fabs(got[i] - want[i]) / want[i]);
    return worst;
}

static void check_network(const char *const *word, const double *wide, const double *narrow,
                          KilnBackend *backend, bool storage)
{
    Net *net = net_new(word[1], word[2], word[3], backend, KILN_BF16);
    double got[STEPS];

    if (storage)
        net->graph->passes_off = 1u << KILN_PASS_precision;
    for (int i = 0; i < STEPS; i++)
        got[i] = net_step(net, i);
    if (worst_of(got, narrow) > 2e-2 || worst_of(got, wide) > 5e-2)
        fail_msg("%s, %s on %s: the curve is %g off PyTorch's in bf16, %g off f32", word[1],
                 word[2], backend->ops->name, worst_of(got, narrow), worst_of(got, wide));
    assert_int_equal(kiln_graph_plans(net->graph), 1);
    net_free(net);
}

/* The same network in f32. */
static void check_wide(const char *const *word, const double *wide, KilnBackend *backend)
{
    Net *net = net_new(word[1], word[2], word[3], backend, KILN_F32);
    double got[STEPS];

    for (int i = 0; i < STEPS; i++)
        got[i] = net_step(net, i);
    if (worst_of(got, wide) > 1e-4)
        fail_msg("%s, %s on %s: f32 is %g off", word[1], word[2], backend->ops->name,
                 worst_of(got, wide));
    net_free(net);
}

static void read_curve(Record *record, const char *name, double *ret)
{
    assert_true(record_line(record) && record_is(record, name));
    for (int i = 0; i < STEPS; i++)
        ret[i] = record_f64(record, (size_t)i + 1);
}

static void test_curves(void **unused)
{
    Record record;
    int cases = 0;

    (void)unused;
    record_open(&record, "bf16.txt");
    while (record_line(&record)) {
        const char *const word[] = { "", record.word[1], record.word[2], record.word[3] };
        KilnBackend *ref = NULL, *cpu = NULL, *without = NULL;
        double wide[STEPS], narrow[STEPS];
        KilnError err = { 0 };

        assert_true(record_is(&record, "network"));
        read_curve(&record, "f32", wide);
        read_curve(&record, "bf16", narrow);
        must(kiln_backend_ref_new(&ref, &err), &err);
        must(kiln_backend_cpu_new(2, &cpu, &err), &err);
        must(kiln_backend_cpu_new(1, &without, &err), &err);
        without->bf16 = false;
        check_wide(word, wide, cpu);
        check_network(word, wide, narrow, ref, false);
        check_network(word, wide, narrow, cpu, false);
        check_network(word, wide, narrow, cpu, true);
        check_network(word, wide, narrow, without, false);
        kiln_backend_free(without);
        kiln_backend_free(cpu);
        kiln_backend_free(ref);
        cases++;
    }
    assert_int_equal(cases, 4);
    record_close(&record);
}

/* ---- Memory ---------------------------------------------------------------------------- */

static void test_store(void **unused)
{
    KilnParams *wide = NULL, *narrow = NULL, *wrong = NULL;
    KilnError err = { 0 };

    (void)unused;
    for (int i = 0; i < 2; i++) {
        KilnParams **params = i == 0 ? &wide : &narrow;
        KilnParam *param;

        must(kiln_params_new(7, params, &err), &err);
        kiln_params_set_dtype(*params, i == 0 ? KILN_F32 : KILN_BF16);
        const KilnScope root = kiln_params_root(*params);
        const KilnInit init = { .kind = KILN_INIT_NORMAL, .a = 1.0 };
        must(kiln_param_new(&root, "a", KILN_SHAPE(9, 5), init, &param, &err), &err);
        must(kiln_param_new(&root, "b", KILN_SHAPE(7), init, &param, &err), &err);
        must(kiln_register_buffer(&root, "mean", KILN_F32, KILN_SHAPE(3), 0.3, &param, &err), &err);
        must(kiln_register_buffer(&root, "var", KILN_F32, KILN_SHAPE(3), 0.7, &param, &err), &err);
        must(kiln_register_buffer(&root, "count", KILN_I64, KILN_SCALAR, 5.0, &param, &err), &err);
        must(kiln_params_seal(*params, store_backend(), &err), &err);
    }
    assert_null(params_values(narrow));
    assert_null(params_gradients(narrow));
    for (size_t k = 0; k < kiln_params_count(narrow); k++) {
        KilnParam *a = kiln_params_at(wide, k), *b = kiln_params_at(narrow, k);

        if (kiln_param_dtype(a) == KILN_I64) {
            assert_int_equal(*(int64_t *)param_data(b), 5);
            continue;
        }
        assert_int_equal(kiln_param_dtype(b), KILN_BF16);
        for (int64_t i = 0; i < kiln_shape_count(kiln_param_shape(a)); i++)
            assert_int_equal(((uint16_t *)param_data(b))[i],
                             kiln_bf16_of(((float *)param_data(a))[i]));
    }
    /* The second follows the 45 elements of the first, of 2 bytes each. */
    assert_int_equal((char *)param_data(kiln_params_at(wide, 1)) -
                         (char *)param_data(kiln_params_at(wide, 0)),
                     45 * 4);
    assert_int_equal((char *)param_data(kiln_params_at(narrow, 1)) -
                         (char *)param_data(kiln_params_at(narrow, 0)),
                     45 * 2);
    assert_int_equal((uintptr_t)param_data(kiln_params_find(narrow, "var")) % 64, 0);
    must(kiln_params_new(7, &wrong, &err), &err);
    kiln_params_set_dtype(wrong, KILN_U8);
    assert_int_equal(kiln_params_seal(wrong, store_backend(), &err), KILN_E_TYPE);
    assert_string_equal(err.text, "parameters can be stored as f32, bf16 or f64, not as u8");
    kiln_params_free(wrong);
    kiln_params_free(narrow);
    kiln_params_free(wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
