/* Optimizers against PyTorch's recorded curves, and the options they reject. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/backend.h"
#include "nn/parameter_groups.h"
#include "tests/support/components/built_component.h"
#include "tests/support/cmocka.h"
#include "tests/support/recorded_file.h"
#include "tests/support/param_memory.h"

/* ---- Optimizers ---------------------------------------------------------------- */

enum { MOST = 64, STEPS = 50 };

/* A backend of each kind, by turns. */
static KilnBackend *backend_new(bool cpu)
{
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    if ((cpu ? kiln_backend_cpu_new(2, &backend, &err) : kiln_backend_ref_new(&backend, &err)) < 0)
        fail_msg("%s", err.text);
    return backend;
}

/* A flat vector of parameters with its gradient and the optimizer's state. */
typedef struct Descent {
    Built built;
    const KilnOptimizerOps *ops;
    KilnBackend *backend;
    KilnGraph *graph;
    int64_t n;
    const char *names[KILN_MAX_SLOTS];
    size_t slots;
    float value[MOST], gradient[MOST], state[KILN_MAX_SLOTS][MOST], numbers[KILN_MAX_HYPER];
} Descent;

static void descent_open(Descent *d, const char *name, int64_t n, char *const *options,
                         size_t n_options, bool cpu)
{
    KilnError err = { 0 };

    *d = (Descent) { .n = n, .backend = backend_new(cpu) };
    assert_true(d->n <= MOST);
    if (build_words(&d->built, KILN_KIND_OPTIMIZER, name, options, n_options, &err) < 0)
        fail_msg("%s", err.text);
    d->ops = kiln_instance_component(d->built.instance)->ops.optimizer;
    d->slots = d->ops->slots(d->built.instance, d->names);
    /* The first step must not read what these two keep. */
    for (int i = 0; i < MOST && (strcmp(name, "sgd") == 0 || strcmp(name, "adagrad") == 0); i++)
        d->state[0][i] = NAN;
    assert_int_equal(kiln_graph_new(d->backend, &d->graph, &err), KILN_OK);
}

static void descent_close(Descent *d)
{
    kiln_graph_free(d->graph);
    kiln_backend_free(d->backend);
    built_free(&d->built);
}

/* The common options of an optimizer. */
static KilnOptimizerCommon common_of(const KilnInstance *optimizer)
{
    KilnOptimizerCommon common = { 0 };

    kiln_instance_component(optimizer)->ops.optimizer->common(optimizer, &common);
    return common;
}

/* The update without segments and clipping; step counts from 0. */
static KilnFlat descent_flat(Descent *d, float *value, float *gradient, int64_t step)
{
    const KilnShape shape = KILN_SHAPE(d->n);
    double lr = common_of(d->built.instance).lr;
    size_t n = d->ops->hyper(d->built.instance, lr, step + 1, d->numbers);
    KilnFlat flat = {
        .param = kiln_graph_variable(d->graph, KILN_F32, shape, value, false, NULL),
        .grad = kiln_graph_variable(d->graph, KILN_F32, shape, gradient, false, NULL),
        .hyper = kiln_graph_input(d->graph, KILN_F32, KILN_SHAPE((int64_t)n), d->numbers),
    };

    for (size_t i = 0; i < d->slots; i++)
        if (d->names[i] != NULL)
            flat.slots[i] = kiln_graph_variable(d->graph, KILN_F32, shape, d->state[i], false,
                                                NULL);
    return flat;
}

/* The gradient of the recording, then one update. */
static void descent_step(Descent *d, int64_t step)
{
    const int64_t end = d->n;
    const float rates[] = { 1.0f, (float)common_of(d->built.instance).weight_decay };
    KilnError err = { 0 };

    for (uint32_t i = 0; i < (uint32_t)d->n; i++)
        d->gradient[i] = (float)((1.0 + 0.5 * pattern(2, i)) * (double)d->value[i] - pattern(3, i) +
                                 0.1 * sin((double)step));
    kiln_graph_begin(d->graph);
    KilnFlat flat = descent_flat(d, d->value, d->gradient, step);
    flat.segment_ends = kiln_graph_input(d->graph, KILN_I64, KILN_SHAPE(1), &end);
    flat.rates = kiln_graph_input(d->graph, KILN_F32, KILN_SHAPE(1, 2), rates);
    d->ops->update(d->built.instance, &flat);
    if (kiln_graph_run(d->graph, NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
}

static void check_curve(Record *record, bool cpu, size_t number)
{
    Descent d;
    int64_t step = 0;
    const char *name = record->word[1];

    descent_open(&d, name, record_i64(record, 2), record->word + 3, record->words - 3, cpu);
    for (uint32_t i = 0; i < (uint32_t)d.n; i++)
        d.value[i] = (float)pattern(1, i);
    while (record_line(record) && record_is(record, "step")) {
        while (step <= record_i64(record, 1))
            descent_step(&d, step++);
        for (int64_t i = 0; i < d.n; i++)
            if (fabs((double)d.value[i] - record_f64(record, (size_t)i + 2)) > 4e-6)
                fail_msg("case %zu (%s, %s), step %d, element %d: %.9g, want %s", number, name,
                         d.backend->ops->name, (int)step, (int)i, (double)d.value[i],
                         record->word[i + 2]);
    }
    assert_int_equal(step, STEPS);
    assert_int_equal(kiln_graph_plans(d.graph), 1);
    descent_close(&d);
}

static void test_optimizer_curves(void **unused)
{
    (void)unused;
    for (int cpu = 0; cpu < 2; cpu++) {
        Record record;
        size_t cases = 0;

        record_open(&record, "optimizers.txt");
        while (record_line(&record)) {
            assert_true(record_is(&record, "optimizer"));
            check_curve(&record, cpu != 0, cases++);
        }
        assert_int_equal(cases, 22);
        record_close(&record);
    }
}

/* ---- A network with groups and clipping -------------------------------------------- */

typedef struct Net {
    Descent d;
    KilnParams *params;
    KilnLinear first, second;
    KilnSegments segments;
    const char *clip;
    double limit;
    float x[12 * 6];
    int32_t labels[12];
} Net;

/* The weights of the recording. */
static void fill_params(KilnParams *params)
{
    for (size_t k = 0; k < kiln_params_count(params); k++) {
        const KilnShape *shape = kiln_param_shape(kiln_params_at(params, k));
        float *value = param_data(kiln_params_at(params, k));
        double scale = shape->rank > 1 ? sqrt(3.0 / (double)shape->dim[1]) : 0.25;

        for (uint32_t i = 0; i < (uint32_t)kiln_shape_count(shape); i++)
            value[i] = (float)(scale * (double)(float)pattern((uint32_t)k, i));
    }
}

static void net_open(Net *net, const Record *record, bool cpu)
{
    KilnError err = { 0 };

    *net = (Net) { .clip = record->word[2], .limit = record_f64(record, 3) };
    assert_int_equal(kiln_params_new(1, &net->params, &err), KILN_OK);
    KilnScope scope = kiln_params_root(net->params);
    assert_int_equal(kiln_nn_linear_init(&net->first, &scope, "fc1", 6, 5, true, &err), KILN_OK);
    assert_int_equal(kiln_nn_linear_init(&net->second, &scope, "fc2", 5, 3, true, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(net->params, store_backend(), &err), KILN_OK);
    fill_params(net->params);
    descent_open(&net->d, record->word[1], kiln_params_size(net->params), record->word + 4,
                 record->words - 4, cpu);
    KilnOptimizerCommon common = common_of(net->d.built.instance);
    if (kiln_segments_new(net->params, NULL, &common, net->d.ops->per_parameter, &net->segments,
                          &err) < 0)
        fail_msg("%s", err.text);
    kiln_segments_require_grad(&net->segments, net->params);
    for (uint32_t i = 0; i < KILN_COUNT(net->x); i++)
        net->x[i] = (float)pattern(7, i);
    for (int i = 0; i < 12; i++)
        net->labels[i] = (5 * i + 1) % 3;
}

static void net_close(Net *net)
{
    kiln_segments_release(&net->segments);
    kiln_params_free(net->params);
    descent_close(&net->d);
}

/* One step as the trainer records it; returns the loss. */
static double net_step(Net *net, int64_t step)
{
    KilnGraph *graph = net->d.graph;
    const int64_t count = (int64_t)net->segments.count;
    KilnError err = { 0 };

    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(12, 6), net->x);
    x = kiln_nn_linear(&net->second, kiln_relu(kiln_nn_linear(&net->first, x)));
    KilnTensor *loss =
        kiln_cross_entropy(x, kiln_graph_input(graph, KILN_I32, KILN_SHAPE(12), net->labels),
                           (KilnCrossEntropy) { 0 });
    kiln_graph_backward(graph, loss);
    KilnFlat flat = descent_flat(&net->d, params_values(net->params), params_gradients(net->params),
                                 step);
    flat.segment_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(count), net->segments.ends);
    flat.rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(count, 2), net->segments.rates);
    if (strcmp(net->clip, "norm") == 0)
        flat.scale = kiln_clip_factor(kiln_l2_norm(flat.grad), net->limit);
    else if (strcmp(net->clip, "value") == 0)
        kiln_clamp_update(flat.grad, net->limit);
    net->d.ops->update(net->d.built.instance, &flat);
    if (kiln_graph_run(graph, &loss, 1, &err) < 0)
        fail_msg("%s", err.text);
    return kiln_tensor_scalar(loss);
}

static void check_net(Record *record, bool cpu, size_t number)
{
    Net net;

    net_open(&net, record, cpu);
    assert_true(record_line(record) && record_is(record, "losses"));
    for (int64_t step = 0; step < STEPS; step++) {
        double got = net_step(&net, step), want = record_f64(record, (size_t)step + 1);

        if (fabs(got - want) > 1e-4 * want)
            fail_msg("case %zu (%s), step %d: loss %.9g, want %.9g", number,
                     kiln_instance_name(net.d.built.instance), (int)step, got, want);
    }
    for (size_t k = 0; record_line(record) && record_is(record, "param"); k++)
        for (size_t i = 0; i + 1 < record->words; i++) {
            KilnParam *param = kiln_params_at(net.params, k);
            double got = (double)((const float *)param_data(param))[i];

            if (fabs(got - record_f64(record, i + 1)) > 2e-4)
                fail_msg("case %zu (%s), %s[%zu]: %.9g, want %s", number,
                         kiln_instance_name(net.d.built.instance), kiln_param_name(param), i, got,
                         record->word[i + 1]);
        }
    net_close(&net);
}

static void test_training_curves(void **unused)
{
    (void)unused;
    for (int cpu = 0; cpu < 2; cpu++) {
        Record record;
        size_t cases = 0;

        record_open(&record, "training.txt");
        while (record_line(&record)) {
            assert_true(record_is(&record, "training"));
            check_net(&record, cpu != 0, cases++);
        }
        assert_int_equal(cases, 32);
        record_close(&record);
    }
}

/* What is frozen stays to the bit, and gets no gradient. */
static void test_frozen(void **unused)
{
    char *words[] = { "training",           "adamw", "none", "0", "groups.a.params=[fc1.*]",
                      "groups.a.lr_scale=0" };
    Record record = { .words = KILN_COUNT(words) };
    float before[35];
    Net net;

    (void)unused;
    memcpy(record.word, words, sizeof(words));
    net_open(&net, &record, true);
    memcpy(before, params_values(net.params), sizeof(before));
    for (int64_t step = 0; step < 3; step++)
        (void)net_step(&net, step);
    assert_memory_equal(before, params_values(net.params), sizeof(before));
    for (int i = 0; i < 35; i++)
        assert_true(params_gradients(net.params)[i] == 0.0f);
    assert_true(params_gradients(net.params)[35] != 0.0f);
    net_close(&net);
}

/* ---- Groups ------------------------------------------------------------------------- */

/* The segments of a store with fc1, fc2 and a scalar, as text. */
static KilnStatus segments_text(const char *optimizer, char *const *options, size_t n, char *buf,
                                size_t size, KilnError *err)
{
    Built built;
    KilnParams *params = NULL;
    KilnParam *scalar = NULL;
    KilnLinear fc1, fc2;
    KilnSegments segments = { 0 };

    assert_int_equal(kiln_params_new(1, &params, err), KILN_OK);
    KilnScope scope = kiln_params_root(params);
    assert_int_equal(kiln_nn_linear_init(&fc1, &scope, "fc1", 3, 2, true, err), KILN_OK);
    assert_int_equal(kiln_nn_linear_init(&fc2, &scope, "fc2", 2, 1, true, err), KILN_OK);
    assert_int_equal(
        kiln_param_new(&scope, "scale", KILN_SCALAR, (KilnInit) { .a = 1.0 }, &scalar, err),
        KILN_OK);
    assert_int_equal(kiln_params_seal(params, store_backend(), err), KILN_OK);
    if (build_words(&built, KILN_KIND_OPTIMIZER, optimizer, options, n, err) < 0)
        fail_msg("%s", err->text);
    const KilnOptimizerOps *ops = kiln_instance_component(built.instance)->ops.optimizer;
    KilnOptimizerCommon common = common_of(built.instance);
    KilnStatus status = kiln_segments_new(params, NULL, &common, ops->per_parameter, &segments,
                                          err);
    buf[0] = '\0';
    for (size_t i = 0; i < segments.count; i++)
        snprintf(buf + strlen(buf), size - strlen(buf), "%d:%g,%g ", (int)segments.ends[i],
                 (double)segments.rates[2 * i], (double)segments.rates[2 * i + 1]);
    kiln_segments_release(&segments);
    kiln_params_free(params);
    built_free(&built);
    return status;
}

static void test_groups(void **unused)
{
    static const struct {
        const char *optimizer;
        char *options[4];
        const char *want;
    } cases[] = {
        { "sgd", { "weight_decay=0.5" }, "12:1,0.5 " },
        { "sgd", { "weight_decay=0.5", "no_decay_norms=true" }, "6:1,0.5 8:1,0 10:1,0.5 12:1,0 " },
        { "lamb", { "weight_decay=0.5" }, "6:1,0.5 8:1,0.5 10:1,0.5 11:1,0.5 12:1,0.5 " },
        { "sgd",
          { "groups.a.params=[fc?.weight]", "groups.a.lr_scale=0.5" },
          "6:0.5,0 8:1,0 10:0.5,0 12:1,0 " },
        /* The first group that fits; its weight decay stands above no_decay_norms. */
        { "adamw",
          { "groups={a: {params: ['*.bias'], weight_decay: 0.25}, b: {params: ['fc1.*', scale], "
            "lr_scale: 2}}",
            "no_decay_norms=true", "weight_decay=1" },
          "6:2,1 8:1,0.25 10:1,1 11:1,0.25 12:2,0 " },
        { "sgd", { "groups.a.params=[fc1.*]", "groups.a.lr_scale=0" }, "8:0,0 12:1,0 " },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char got[256];
        size_t n = 0;
        KilnError err = { 0 };

        while (n < 4 && cases[i].options[n] != NULL)
            n++;
        if (segments_text(cases[i].optimizer, cases[i].options, n, got, sizeof(got), &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        assert_string_equal(got, cases[i].want);
    }
}

static void test_refused_groups(void **unused)
{
    static const struct {
        char *options[2];
        const char *want;
    } cases[] = {
        { { "groups.head.params=[fc2.wieght]" },
          "groups.head.params: \"fc2.wieght\" matches no trained parameter; did you mean "
          "fc2.weight?; there are fc1.weight, fc1.bias, fc2.weight, fc2.bias, scale" },
        { { "groups.head.params=[]" }, "groups.head.params: expected patterns" },
        { { "groups.all.params=['*']", "groups.all.lr_scale=0" }, "every parameter is frozen" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char got[256];
        KilnError err = { 0 };

        assert_true(segments_text("sgd", cases[i].options, cases[i].options[1] != NULL ? 2 : 1, got,
                                  sizeof(got), &err) < 0);
        if (strstr(err.text, cases[i].want) == NULL)
            fail_msg("'%s' is not in: %s", cases[i].want, err.text);
    }
}

/* ---- Refused options --------------------------------------------------------------- */

static void test_refused_options(void **unused)
{
    static const struct {
        const char *name, *first, *second, *part;
    } cases[] = {
        { "sgd", "nesterov=true", NULL, "nesterov: true needs a momentum above 0" },
        { "sgd", "lr=-0.1", NULL, "lr" },
        { "sgd", "lr=fast", NULL, "fast" },
        { "sgd", "momentum=1.5", NULL, "momentum" },
        { "adam", "betas=[0.9]", NULL, "betas: expected two numbers, such as [0.9, 0.999], got 1" },
        { "adamw", "betas=[0.9,1.0]", NULL,
          "betas[1]: expected a number from 0 to below 1, got 1" },
        { "adam", "beta=0.9", NULL, "betas" },
        { "adan", "betas=[0.9,0.99]", NULL,
          "betas: expected three numbers, such as [0.98, 0.92, 0.99], got 2" },
        { "sgd", "groups.a.lr_scale=2", NULL, "groups.a.params" },
        { "sgd", "groups.a.parms=[x]", NULL, "params" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char first[64], second[64];
        char *const options[] = { first, second };
        Built built;
        KilnError err = { 0 };

        snprintf(first, sizeof(first), "%s", cases[i].first);
        snprintf(second, sizeof(second), "%s", cases[i].second != NULL ? cases[i].second : "");
        if (build_words(&built, KILN_KIND_OPTIMIZER, cases[i].name, options,
                        cases[i].second != NULL ? 2 : 1, &err) >= 0)
            fail_msg("case %zu is not refused", i);
        if (strstr(err.text, cases[i].part) == NULL)
            fail_msg("case %zu: '%s' is not in: %s", i, cases[i].part, err.text);
        built_free(&built);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizer_curves), cmocka_unit_test(test_training_curves),
        cmocka_unit_test(test_frozen),           cmocka_unit_test(test_groups),
        cmocka_unit_test(test_refused_groups),   cmocka_unit_test(test_refused_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
