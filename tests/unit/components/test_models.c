/* Networks against torchvision and PyTorch: names and shapes of the state dict, logits, loss,
 * gradients and running statistics; and the options they reject. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/components/built_model.h"
#include "tests/support/cmocka.h"
#include "tests/support/recorded_file.h"
#include "train/step/module_data.h"
#include "train/step/module_step.h"
#include "tests/support/param_memory.h"

/* A model with its parameters, ready for a step. */
typedef struct Network {
    Built built;
    KilnParams *params;
    KilnBackend *backend;
    KilnGraph *graph;
} Network;

static KilnStatus network_setup(Network *net, const char *model, char *const *options, size_t n,
                                KilnShape in, int64_t classes, KilnError *err)
{
    static const unsigned contents[] = { 0, KILN_VECTOR, KILN_SEQUENCE, KILN_IMAGE };

    *net = (Network) { 0 };
    if (build_words(&net->built, KILN_KIND_MODEL, model, options, n, err) < 0)
        fail_msg("%s", err->text);
    assert_int_equal(kiln_params_new(1, &net->params, err), KILN_OK);
    KilnScope root = kiln_params_root(net->params);
    return setup_model(net->built.instance, &root, contents[in.rank], in, classes, err);
}

static void network_free(Network *net)
{
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
    built_free(&net->built);
}

/* ---- Names and shapes -------------------------------------------------------------- */

static void test_resnet_names(void **unused)
{
    static const char *const depths[] = { "18", "34", "50" };

    (void)unused;
    for (size_t d = 0; d < KILN_COUNT(depths); d++) {
        char depth[16], file[32];
        char *const options[] = { depth };
        Record record;
        Network net;
        KilnError err = { 0 };
        size_t i = 0;

        snprintf(depth, sizeof(depth), "depth=%s", depths[d]);
        snprintf(file, sizeof(file), "resnet%s.txt", depths[d]);
        if (network_setup(&net, "resnet", options, 1, KILN_SHAPE(224, 224, 3), 1000, &err) < 0)
            fail_msg("%s", err.text);
        record_open(&record, file);
        for (; record_line(&record); i++) {
            const KilnParam *param = kiln_params_at(net.params, i);
            KilnShape want = { .rank = (int)record.words - 2 };

            assert_non_null(param);
            assert_string_equal(kiln_param_name(param), record.word[0]);
            assert_string_equal(kiln_dtype_name(kiln_param_dtype(param)), record.word[1]);
            for (int axis = 0; axis < want.rank; axis++)
                want.dim[axis] = record_i64(&record, (size_t)axis + 2);
            assert_true(kiln_shape_equal(&want, kiln_param_shape(param)));
        }
        assert_int_equal(i, kiln_params_count(net.params));
        record_close(&record);
        network_free(&net);
    }
}

/* torchvision's distributions: kaiming normal over fan-out, ones and zeros, and
 * the last normalization of each block at zero when asked for. */
static void test_resnet_initial_values(void **unused)
{
    char zero[] = "zero_init_residual=true", stem[] = "stem=large";
    char *const options[] = { stem, zero };
    KilnError err = { 0 };
    Network net;

    (void)unused;
    if (network_setup(&net, "resnet", options, 2, KILN_SHAPE(32, 32, 3), 10, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_params_seal(net.params, store_backend(), &err), KILN_OK);
    KilnParam *conv = kiln_params_find(net.params, "layer3.0.conv2.weight");
    const float *weights = param_data(conv);
    int64_t n = kiln_shape_count(kiln_param_shape(conv));
    double square = 0.0;
    for (int64_t i = 0; i < n; i++)
        square += (double)weights[i] * (double)weights[i];
    double want = 2.0 / (256 * 9);
    assert_true(fabs(square / (double)n / want - 1.0) < 5 * sqrt(2.0 / (double)n));
    const float *fc = param_data(kiln_params_find(net.params, "fc.weight"));
    for (int64_t i = 0; i < 5120; i++)
        assert_true(fabs((double)fc[i]) <= 1.0 / sqrt(512.0));
    assert_true(*(float *)param_data(kiln_params_find(net.params, "bn1.weight")) == 1.0f);
    assert_true(*(float *)param_data(kiln_params_find(net.params, "layer2.1.bn1.weight")) == 1.0f);
    assert_true(*(float *)param_data(kiln_params_find(net.params, "layer2.1.bn2.weight")) == 0.0f);
    network_free(&net);
}

/* ---- Numbers ------------------------------------------------------------------------ */

static void close_to(const char *what, size_t i, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s [%zu]: %.9g, want %.9g within %.2g", what, i, got, want, tolerance);
}

/* Norm, projection on a pattern, first, middle and last element, as recorded. Gradients that are 0,
 * such as those of a bias before batch normalization, have the size of rounding errors. */
static void check_summary(const Record *record, size_t k, KilnParam *param, const void *bytes)
{
    const char *name = kiln_param_name(param);
    int64_t n = kiln_shape_count(kiln_param_shape(param));
    const float *v = bytes;

    if (kiln_param_dtype(param) == KILN_I64) {
        assert_int_equal(*(const int64_t *)bytes, 1);
        return;
    }
    double square = 0.0, projection = 0.0;
    for (int64_t i = 0; i < n; i++) {
        square += (double)v[i] * (double)v[i];
        projection += (double)v[i] * pattern(5000 + (uint32_t)k, (uint32_t)i);
    }
    double norm = record_f64(record, 2), typical = norm / sqrt((double)n);
    double slack = 1e-4 * norm + 1e-5;
    close_to(name, 0, sqrt(square), norm, slack);
    close_to(name, 1, projection, record_f64(record, 3), slack);
    close_to(name, 2, (double)v[0], record_f64(record, 4), 2e-3 * typical + 1e-5);
    close_to(name, 3, (double)v[n / 2], record_f64(record, 5), 2e-3 * typical + 1e-5);
    close_to(name, 4, (double)v[n - 1], record_f64(record, 6), 2e-3 * typical + 1e-5);
}

static KilnTensor *forward(Network *net, bool training, KilnShape shape, const float *images)
{
    static KilnStep step; /* the graph reads its dropout key */
    KilnBatch batch = { .size = shape.dim[0] };

    step = (KilnStep) { .graph = net->graph };
    kiln_step_begin(&step, KILN_PHASE_FIT, training, &batch, 1, 0);
    KilnTensor *x = kiln_graph_input(net->graph, KILN_F32, shape, images);
    return run_model(net->built.instance, &step, x);
}

/* All logits, or of many every k-th, as recorded. */
static void check_logits(const char *what, const Record *record, KilnTensor *logits)
{
    enum { MOST = 512 };
    const int64_t n = kiln_shape_count(kiln_tensor_shape(logits)), every = (n + MOST - 1) / MOST;
    const float *data = kiln_tensor_data(logits);

    assert_int_equal((n + every - 1) / every, record->words - 1);
    for (int64_t i = 0; i < n; i += every)
        close_to(what, (size_t)i, (double)data[i], record_f64(record, (size_t)(i / every) + 1),
                 1e-4);
}

static void run_graph(Network *net, KilnTensor *const *outputs, size_t n)
{
    KilnError err = { 0 };

    if (kiln_graph_run(net->graph, outputs, n, &err) < 0)
        fail_msg("%s", err.text);
}

/* The lines from "train" on: forward, backward, and the running statistics. */
static void check_training(Network *net, Record *record, KilnShape shape, const float *images)
{
    int32_t labels[4096];
    KilnTensor *outputs[2];

    outputs[0] = forward(net, true, shape, images);
    const int64_t n = kiln_tensor_dim(outputs[0], 0);
    assert_true(n <= (int64_t)KILN_COUNT(labels));
    for (int64_t i = 0; i < n; i++)
        labels[i] = (int32_t)((7 * i + 3) % kiln_tensor_dim(outputs[0], 1));
    outputs[1] = kiln_cross_entropy(outputs[0],
                                    kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(n), labels),
                                    (KilnCrossEntropy) { 0 });
    kiln_graph_backward(net->graph, outputs[1]);
    run_graph(net, outputs, 2);
    check_logits("logits in training", record, outputs[0]);
    assert_true(record_line(record) && record_is(record, "loss"));
    close_to("loss", 0, kiln_tensor_scalar(outputs[1]), record_f64(record, 1), 1e-5);
    for (size_t k = 0; k < kiln_params_count(net->params); k++) {
        KilnParam *param = kiln_params_at(net->params, k);
        bool trained = kiln_param_trained(param);

        assert_true(record_line(record));
        assert_true(record_is(record, trained ? "grad" : "buffer"));
        assert_string_equal(record->word[1], kiln_param_name(param));
        check_summary(record, k, param,
                      trained ? params_gradients(net->params) + kiln_param_offset(param)
                              : param_data(param));
    }
}

static void check_net(Record *record)
{
    KilnShape shape = KILN_SHAPE(record_i64(record, 2), record_i64(record, 3),
                                 record_i64(record, 4), record_i64(record, 5));
    KilnShape sample = KILN_SHAPE(shape.dim[1], shape.dim[2], shape.dim[3]);
    uint32_t count = (uint32_t)kiln_shape_count(&shape), key = (uint32_t)record_i64(record, 7);
    float *images = malloc(count * sizeof(*images));
    KilnError err = { 0 };
    Network net;

    assert_non_null(images);
    for (uint32_t i = 0; i < count; i++)
        images[i] = (float)pattern(key, i);
    if (network_setup(&net, record->word[1], record->word + 8, record->words - 8, sample,
                      record_i64(record, 6), &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_backend_cpu_new(2, &net.backend, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(net.params, net.backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(net.backend, &net.graph, &err), KILN_OK);
    params_fill(net.params);
    assert_true(record_line(record) && record_is(record, "eval"));
    KilnTensor *logits = forward(&net, false, shape, images);
    run_graph(&net, &logits, 1);
    check_logits("logits", record, logits);
    assert_true(record_line(record));
    if (record_is(record, "train")) {
        check_training(&net, record, shape, images);
        assert_true(record_line(record));
    }
    assert_true(record_is(record, "end"));
    network_free(&net);
    free(images);
}

static void check_nets(const char *file, size_t want)
{
    Record record;
    size_t nets = 0;

    record_open(&record, file);
    for (; record_line(&record); nets++) {
        assert_true(record_is(&record, "net"));
        check_net(&record);
    }
    assert_int_equal(nets, want);
    record_close(&record);
}

static void test_nets_against_pytorch(void **unused)
{
    (void)unused;
    check_nets("nets.txt", 11);
}

static void test_image_nets_against_torchvision(void **unused)
{
    (void)unused;
    check_nets("image_nets.txt", 12);
}

/* ---- Dropout ---------------------------------------------------------------------------- */

/* Off in evaluation; in training a step of its own each time. */
static void test_dropout_only_in_training(void **unused)
{
    char option[] = "dropout=0.5", hidden[] = "hidden=[32]";
    char *const options[] = { option, hidden };
    const KilnShape shape = KILN_SHAPE(4, 3, 3, 1);
    float images[36], first[40], second[40];
    KilnError err = { 0 };
    Network net;

    (void)unused;
    for (uint32_t i = 0; i < 36; i++)
        images[i] = (float)pattern(1000, i);
    if (network_setup(&net, "mlp", options, 2, KILN_SHAPE(3, 3, 1), 10, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_backend_cpu_new(2, &net.backend, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(net.params, net.backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(net.backend, &net.graph, &err), KILN_OK);
    for (int training = 0; training < 2; training++) {
        KilnTensor *logits = forward(&net, training != 0, shape, images);

        run_graph(&net, &logits, 1);
        memcpy(training != 0 ? second : first, kiln_tensor_data(logits), sizeof(first));
    }
    assert_memory_not_equal(first, second, sizeof(first));
    network_free(&net);
}

/* ---- Hidden vectors ------------------------------------------------------------------------- */

/* A user of a model that needs its hidden vectors alone gets no layer for logits; one that needs
 * both gets the vectors that the logits are made of. */
static void test_hidden_vectors(void **unused)
{
    static const KilnTensorSpec needs[] = {
        { .name = "hidden", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "features" },
        { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
    };
    static const KilnFeature image = { .name = "image",
                                       .content = KILN_IMAGE,
                                       .shape = { 3, { 16, 16, 1 } } };
    static const struct {
        const char *model, *option, *last;
        int64_t width;
    } cases[] = {
        { "resnet", "depth=18", "fc.weight", 512 },
        { "cnn", "hidden=7", "fc2.weight", 7 },
    };
    static float images[2][16][16];

    (void)unused;
    for (size_t i = 0; i < 2 * KILN_COUNT(cases); i++) {
        const KilnModelUse use = { .option = "model", .needs = needs, .n_needs = 1 + i % 2 };
        const int64_t sizes[] = { 0, 3 };
        const KilnBatch batch = { .size = 2 };
        char option[32];
        char *const options[] = { option };
        KilnModelValue values[2] = { 0 };
        KilnError err = { 0 };
        Network net = { 0 };

        snprintf(option, sizeof(option), "%s", cases[i / 2].option);
        if (build_words(&net.built, KILN_KIND_MODEL, cases[i / 2].model, options, 1, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(kiln_params_new(1, &net.params, &err), KILN_OK);
        KilnScope root = kiln_params_root(net.params);
        if (kiln_model_setup(net.built.instance, &root, &use, &image, 1, sizes, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(kiln_params_find(net.params, cases[i / 2].last) != NULL, i % 2);
        const KilnShape shape = kiln_model_need_shape(net.built.instance, 0);
        assert_true(kiln_shape_equal(&shape, &KILN_SHAPE(cases[i / 2].width)));
        assert_int_equal(kiln_backend_cpu_new(2, &net.backend, &err), KILN_OK);
        assert_int_equal(kiln_params_seal(net.params, net.backend, &err), KILN_OK);
        assert_int_equal(kiln_graph_new(net.backend, &net.graph, &err), KILN_OK);
        KilnStep step = { .graph = net.graph };
        kiln_step_begin(&step, KILN_PHASE_VALIDATE, false, &batch, 1, 0);
        const KilnModelValue x = { .tensor = kiln_graph_input(net.graph, KILN_F32,
                                                              KILN_SHAPE(2, 16, 16, 1), images) };
        kiln_model_forward(net.built.instance, &step, &x, values);
        run_graph(&net, &values[0].tensor, 1);
        assert_true(kiln_shape_equal(kiln_tensor_shape(values[0].tensor),
                                     &KILN_SHAPE(2, cases[i / 2].width)));
        network_free(&net);
    }
}

/* ---- What models refuse -------------------------------------------------------------------- */

static void test_images_too_small(void **unused)
{
    static const struct {
        const char *model, *option;
        KilnShape in;
        KilnStatus want;
        const char *part;
    } cases[] = {
        { "resnet",
          "stem=large",
          { 3, { 31, 40, 3 } },
          KILN_E_SHAPE,
          "images of 31×40 are too small" },
        { "resnet", "stem=large", { 3, { 32, 32, 3 } }, KILN_OK, "" },
        { "resnet", "stem=auto", { 3, { 28, 28, 1 } }, KILN_OK, "" },
        { "resnet", "stem=small", { 3, { 8, 7, 3 } }, KILN_E_SHAPE, "at least 8×8" },
        { "resnet",
          "stem=small",
          { 2, { 32, 32 } },
          KILN_E_SHAPE,
          "resnet takes an image, but the datamodule gives a sequence \"x\"" },
        { "cnn", "channels=[4,4,4]", { 3, { 7, 28, 1 } }, KILN_E_SHAPE, "at least 8×8" },
        { "cnn", "channels=[4,4,4]", { 3, { 8, 9, 1 } }, KILN_OK, "" },
        { "cnn", "hidden=10", { 1, { 28 } }, KILN_E_SHAPE, "cnn takes an image" },
        { "mlp", "hidden=[]", { 1, { 28 } }, KILN_OK, "" },
        { "lstm",
          "hidden=4",
          { 1, { 28 } },
          KILN_E_SHAPE,
          "lstm takes an image, a sequence or a map, but the datamodule gives a "
          "vector \"x\"" },
        { "lstm", "bidirectional=true", { 2, { 7, 28 } }, KILN_OK, "" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char option[32];
        char *const options[] = { option };
        KilnError err = { 0 };
        Network net;

        snprintf(option, sizeof(option), "%s", cases[i].option);
        KilnStatus got = network_setup(&net, cases[i].model, options, 1, cases[i].in, 5, &err);
        if (got != cases[i].want || strstr(err.text, cases[i].part) == NULL)
            fail_msg("case %zu: status %d, want %d: %s", i, got, cases[i].want, err.text);
        if (got < 0 && strstr(err.text, "it (model/") == NULL)
            fail_msg("case %zu: the component is not named: %s", i, err.text);
        network_free(&net);
    }
}

static void test_refused_options(void **unused)
{
    static const struct {
        const char *model, *option, *part;
    } cases[] = {
        { "resnet", "depth=19", "18, 34" },
        { "resnet", "stem=tiny", "small" },
        { "cnn", "kernel=4", "kernel: expected an odd number, such as 3 or 5, got 4" },
        { "cnn", "channels=[]", "channels: expected one number for each of 1 to 16 stages, got 0" },
        { "mlp", "dropout=1.0", "dropout" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char option[32];
        char *const options[] = { option };
        KilnError err = { 0 };
        Built built;

        snprintf(option, sizeof(option), "%s", cases[i].option);
        if (build_words(&built, KILN_KIND_MODEL, cases[i].model, options, 1, &err) >= 0)
            fail_msg("case %zu is not refused", i);
        if (strstr(err.text, cases[i].part) == NULL)
            fail_msg("case %zu: '%s' is not in: %s", i, cases[i].part, err.text);
        built_free(&built);
    }
}

/* One value per channel has no variance: refused in training, with the layer. */
static void test_batch_norm_needs_values(void **unused)
{
    char option[] = "stem=small";
    char *const options[] = { option };
    const KilnShape shape = KILN_SHAPE(1, 8, 8, 3);
    float images[192] = { 0 };
    KilnError err = { 0 };
    Network net;

    (void)unused;
    assert_int_equal(network_setup(&net, "resnet", options, 1, KILN_SHAPE(8, 8, 3), 4, &err),
                     KILN_OK);
    assert_int_equal(kiln_backend_cpu_new(2, &net.backend, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(net.params, net.backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(net.backend, &net.graph, &err), KILN_OK);
    (void)forward(&net, false, shape, images);
    assert_int_equal(kiln_graph_check(net.graph, &err), KILN_OK);
    (void)forward(&net, true, shape, images);
    assert_int_equal(kiln_graph_check(net.graph, &err), KILN_E_SHAPE);
    if (strstr(err.text, "layer4.0.bn1: batch normalization in training needs more than one") ==
        NULL)
        fail_msg("%s", err.text);
    network_free(&net);
}

/* ---- The vision task ------------------------------------------------------------------------ */

static void test_vision_refuses_data(void **unused)
{
    const KilnFeature image = {
        .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .shape = KILN_SHAPE(28, 28, 1)
    };
    const KilnFeature label = {
        .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .shape = KILN_SCALAR
    };
    const KilnFeature row = {
        .name = "row", .content = KILN_ROW, .dtype = KILN_F32, .shape = KILN_SHAPE(784)
    };
    const KilnFeature text = {
        .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .shape = KILN_SHAPE(12)
    };
    const struct {
        KilnDataSpec data;
        KilnStatus want;
        const char *part;
    } cases[] = {
        { { .n_features = 2, .features = (const KilnFeature[]) { image, label }, .n_classes = 10 },
          KILN_OK,
          "" },
        { { .n_features = 2, .features = (const KilnFeature[]) { text, label }, .n_classes = 10 },
          KILN_E_SHAPE,
          "feeds its model an image, but the datamodule gives tokens and a label of i32" },
        { { .n_features = 1, .features = (const KilnFeature[]) { image }, .n_classes = 10 },
          KILN_E_SHAPE,
          "task vision needs a label of i32, but the data has an image" },
        { { .n_features = 2, .features = (const KilnFeature[]) { row, label }, .n_classes = 10 },
          KILN_E_SHAPE,
          "but the datamodule gives a row of f32 and a label of i32" },
        { { .n_features = 2, .features = (const KilnFeature[]) { image, label }, .n_classes = 1 },
          KILN_E_SHAPE,
          "needs at least 2 classes, but the data has 1" },
    };
    static const char *const overrides[] = {
        "++model._target_=model/linear",
        "++optimizer._target_=optimizer/sgd",
        "++scheduler._target_=scheduler/constant",
        "++it._target_=module/vision",
        NULL,
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnParams *params = NULL;
        KilnError err = { 0 };
        Built built;

        if (build_overrides(&built, KILN_KIND_MODULE, overrides, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(kiln_params_new(1, &params, &err), KILN_OK);
        KilnScope root = kiln_params_root(params);
        KilnStatus got = kiln_module_setup(built.instance, &root, &cases[i].data, &err);
        if (got != cases[i].want || strstr(err.text, cases[i].part) == NULL)
            fail_msg("case %zu: status %d, want %d: %s", i, got, cases[i].want, err.text);
        if (got == KILN_OK) /* names carry no prefix */
            assert_non_null(kiln_params_find(params, "fc.weight"));
        kiln_params_free(params);
        built_free(&built);
    }
}

static void test_classification_takes_any_sample(void **unused)
{
    static const KilnFeature inputs[] = {
        { .name = "v", .content = KILN_VECTOR, .shape = { 1, { 5 } } },
        { .name = "row", .content = KILN_ROW, .shape = { 1, { 5 } } },
        { .name = "image", .content = KILN_IMAGE, .shape = { 3, { 4, 4, 1 } } },
        { .name = "s", .content = KILN_SEQUENCE, .shape = { 2, { 3, 4 } } },
    };
    static const char *const overrides[] = {
        "++model._target_=model/linear",
        "++optimizer._target_=optimizer/sgd",
        "++scheduler._target_=scheduler/constant",
        "++it._target_=module/classification",
        NULL,
    };
    static const char *const names[] = { "a", "b" };

    (void)unused;
    for (size_t i = 0; i <= KILN_COUNT(inputs); i++) {
        const KilnFeature features[] = {
            { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
            inputs[i % KILN_COUNT(inputs)],
        };
        const KilnDataSpec data = {
            .features = i < KILN_COUNT(inputs) ? features : &features[1],
            .n_features = i < KILN_COUNT(inputs) ? 2 : 1,
            .n_classes = 2,
            .class_names = names,
        };
        KilnParams *params = NULL;
        KilnError err = { 0 };
        Built built;

        if (build_overrides(&built, KILN_KIND_MODULE, overrides, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(kiln_params_new(1, &params, &err), KILN_OK);
        KilnScope root = kiln_params_root(params);
        KilnStatus got = kiln_module_setup(built.instance, &root, &data, &err);
        if (i < KILN_COUNT(inputs) && got < 0)
            fail_msg("%s: %s", inputs[i].name, err.text);
        if (i == KILN_COUNT(inputs) &&
            strstr(err.text, "task classification needs a label of i32") == NULL)
            fail_msg("%s", err.text);
        kiln_params_free(params);
        built_free(&built);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resnet_names),
        cmocka_unit_test(test_resnet_initial_values),
        cmocka_unit_test(test_nets_against_pytorch),
        cmocka_unit_test(test_image_nets_against_torchvision),
        cmocka_unit_test(test_dropout_only_in_training),
        cmocka_unit_test(test_hidden_vectors),
        cmocka_unit_test(test_images_too_small),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_batch_norm_needs_values),
        cmocka_unit_test(test_vision_refuses_data),
        cmocka_unit_test(test_classification_takes_any_sample),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
