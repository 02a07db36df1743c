/* The model crnn: lines in a batch are read as each alone, whatever comes after their ends; the
 * number of steps; its parameters. */
#include <math.h>
#include <string.h>

#include "tests/support/components/built_component.h"
#include "tests/support/recorded_file.h"
#include "train/step/module_step.h"

enum { BATCH = 3, HEIGHT = 32, WIDEST = 24, CLASSES = 5 };

static const KilnTensorSpec needs[] = {
    { .name = "column_logits", .content = KILN_SEQUENCE, .axes = "steps classes" },
};
static const KilnModelUse use = { .option = "model", .needs = needs, .n_needs = 1 };

static KilnFeature line(int64_t columns, int64_t height)
{
    return (KilnFeature) { .name = "line",
                           .content = KILN_SEQUENCE,
                           .dtype = KILN_F32,
                           .shape = KILN_SHAPE(columns, height),
                           .varies = true };
}

typedef struct Network {
    Built built;
    KilnParams *params;
    KilnBackend *backend;
    KilnGraph *graph;
} Network;

static KilnStatus network_setup(Network *net, const KilnFeature *feature, KilnError *err)
{
    char width[] = "width=4", hidden[] = "hidden=6";
    char *const options[] = { width, hidden };
    const int64_t classes = CLASSES;

    *net = (Network) { 0 };
    if (build_words(&net->built, KILN_KIND_MODEL, "crnn", options, KILN_COUNT(options), err) < 0)
        fail_msg("%s", err->text);
    assert_int_equal(kiln_params_new(1, &net->params, err), KILN_OK);
    const KilnScope root = kiln_params_root(net->params);
    const KilnStatus status = kiln_model_setup(net->built.instance, &root, &use, feature, 1,
                                               &classes, err);
    if (status < 0)
        return status;
    assert_int_equal(kiln_backend_cpu_new(1, &net->backend, err), KILN_OK);
    assert_int_equal(kiln_params_seal(net->params, net->backend, err), KILN_OK);
    assert_int_equal(kiln_graph_new(net->backend, &net->graph, err), KILN_OK);
    params_fill(net->params);
    return KILN_OK;
}

static void network_free(Network *net)
{
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
    built_free(&net->built);
}

/* The logits [batch, columns / 4, CLASSES] of lines; *ret_steps [batch]. */
static const float *run(Network *net, int64_t batch, int64_t columns, const float *lines,
                        const int32_t *lengths, const int32_t **ret_steps)
{
    static KilnStep step;
    const KilnBatch of = { .size = batch };
    KilnModelValue logits;
    KilnError err = { 0 };

    step = (KilnStep) { .graph = net->graph };
    kiln_step_begin(&step, KILN_PHASE_VALIDATE, false, &of, 1, 0);
    const KilnModelValue value = {
        kiln_graph_input(net->graph, KILN_F32, KILN_SHAPE(batch, columns, HEIGHT), lines),
        kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(batch), lengths),
    };
    kiln_model_forward(net->built.instance, &step, &value, &logits);
    assert_non_null(logits.lengths);
    if (kiln_graph_run(net->graph, (KilnTensor *[]) { logits.tensor, logits.lengths }, 2, &err) < 0)
        fail_msg("%s", err.text);
    const KilnShape want = KILN_SHAPE(batch, columns / 4, CLASSES);
    assert_true(kiln_shape_equal(kiln_tensor_shape(logits.tensor), &want));
    *ret_steps = kiln_tensor_data(logits.lengths);
    return kiln_tensor_data(logits.tensor);
}

static void test_lines_alone_and_in_a_batch(void **unused)
{
    static const int32_t lengths[BATCH] = { 24, 7, 13 };
    static float lines[BATCH][WIDEST][HEIGHT], together[BATCH][WIDEST / 4 * CLASSES];
    const KilnFeature feature = line(WIDEST, HEIGHT);
    KilnError err = { 0 };
    const int32_t *steps;
    Network net;

    (void)unused;
    for (int i = 0; i < BATCH; i++)
        for (int x = 0; x < WIDEST; x++)
            for (int y = 0; y < HEIGHT; y++) /* also after the end */
                lines[i][x][y] = (float)((5 * i + x * y + x * x) % 7) / 7.0f;
    assert_int_equal(network_setup(&net, &feature, &err), KILN_OK);
    const float *logits = run(&net, BATCH, WIDEST, lines[0][0], lengths, &steps);
    memcpy(together, logits, sizeof(together));
    for (int i = 0; i < BATCH; i++)
        assert_int_equal(steps[i], lengths[i] / 4);
    for (int i = 0; i < BATCH; i++) {
        const float *alone = run(&net, 1, lengths[i], lines[i][0], &lengths[i], &steps);

        assert_int_equal(steps[0], lengths[i] / 4);
        for (int k = 0; k < lengths[i] / 4 * CLASSES; k++)
            if (!(fabsf(alone[k] - together[i][k]) <= 2e-5f))
                fail_msg("line %d, %d: %.7g alone, %.7g in a batch", i, k, (double)alone[k],
                         (double)together[i][k]);
    }
    network_free(&net);
}

static void test_parameters(void **unused)
{
    static const struct {
        const char *name;
        KilnShape shape;
    } want[] = {
        { "block0.conv.weight", { 4, { 4, 1, 3, 3 } } },
        { "block3.conv.weight", { 4, { 16, 16, 3, 3 } } },
        { "block3.norm.running_var", { 1, { 16 } } },
        { "lstm.weight_ih_l0", { 2, { 24, 32 } } },
        { "lstm.weight_hh_l0_reverse", { 2, { 24, 6 } } },
        { "head.weight", { 2, { CLASSES, 12 } } },
    };
    const KilnFeature feature = line(WIDEST, HEIGHT);
    KilnError err = { 0 };
    Network net;
    size_t found = 0;

    (void)unused;
    assert_int_equal(network_setup(&net, &feature, &err), KILN_OK);
    for (size_t k = 0; k < kiln_params_count(net.params); k++) {
        const KilnParam *param = kiln_params_at(net.params, k);

        for (size_t i = 0; i < KILN_COUNT(want); i++)
            if (strcmp(kiln_param_name(param), want[i].name) == 0) {
                assert_true(kiln_shape_equal(kiln_param_shape(param), &want[i].shape));
                found++;
            }
    }
    assert_int_equal(found, KILN_COUNT(want));
    network_free(&net);
}

static void test_other_heights(void **unused)
{
    const KilnFeature feature = line(WIDEST, 24);
    KilnError err = { 0 };
    Network net;

    (void)unused;
    assert_int_equal(network_setup(&net, &feature, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "a multiple of 16 pixels high"));
    kiln_params_free(net.params);
    built_free(&net.built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_alone_and_in_a_batch),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_other_heights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
