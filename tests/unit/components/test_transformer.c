/* The transformer over tokens and over a table's columns: one encoder for each, what padding must
 * not change, and gradients. Over patches it is compared with torchvision in test_models.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/components/built_component.h"
#include "tests/support/param_memory.h"
#include "tests/support/recorded_file.h"
#include "train/step/module_step.h"

enum { BATCH = 3, LONGEST = 6, IDS = 7, COLUMNS = 5, CLASSES = 4, TAGS = 3, WIDTH = 8 };
enum { LOGITS, TAG_LOGITS, HIDDEN, NEEDS };

static const KilnTensorSpec needs[NEEDS] = {
    [LOGITS] = { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
    [TAG_LOGITS] = { .name = "token_logits", .content = KILN_SEQUENCE, .axes = "time tags" },
    [HIDDEN] = { .name = "hidden", .content = KILN_SEQUENCE, .axes = "time features" },
};
static const KilnModelUse all = { .option = "model", .needs = needs, .n_needs = NEEDS };
static const KilnModelUse hidden_only = { .option = "model",
                                          .needs = &needs[HIDDEN],
                                          .n_needs = 1 };

static const KilnTensorSpec sequence = { .name = "sequence",
                                         .content = KILN_SEQUENCE,
                                         .axes = "time features" };

static const KilnFeature texts = { .name = "words",
                                   .content = KILN_TOKENS,
                                   .dtype = KILN_I32,
                                   .shape = { .rank = 1, .dim = { LONGEST } },
                                   .varies = true,
                                   .n_ids = IDS };
static const KilnFeature rows = { .name = "row",
                                  .content = KILN_ROW,
                                  .dtype = KILN_F32,
                                  .shape = { .rank = 1, .dim = { COLUMNS } } };

static const KilnRowColumn kinds[] = { { .name = "a" }, { .name = "b", .n_ids = 3 } };
static const KilnFeature categories = { .name = "kinds",
                                        .content = KILN_ROW,
                                        .dtype = KILN_I32,
                                        .shape = { .rank = 1, .dim = { 2 } },
                                        .n_ids = IDS,
                                        .columns = kinds };

typedef struct Encoder {
    Built built;
    KilnParams *params;
    KilnBackend *backend;
    KilnGraph *graph;
} Encoder;

/* After the model's setup: parameters with values, and a graph. */
static void encoder_start(Encoder *encoder, KilnError *err)
{
    assert_int_equal(kiln_backend_cpu_new(1, &encoder->backend, err), KILN_OK);
    assert_int_equal(kiln_params_seal(encoder->params, encoder->backend, err), KILN_OK);
    assert_int_equal(kiln_graph_new(encoder->backend, &encoder->graph, err), KILN_OK);
    params_fill(encoder->params);
}

static KilnStatus encoder_setup(Encoder *encoder, const char *embed, const char *option,
                                const KilnModelUse *use, const KilnFeature *feature, KilnError *err)
{
    char words[2][64], width[] = "width=8", layers[] = "layers=2", heads[] = "heads=2",
                       mlp[] = "mlp_dim=12";
    char *const options[] = { words[0], words[1], width, layers, heads, mlp };
    const int64_t sizes[NEEDS] = { CLASSES, TAGS, 0 };

    *encoder = (Encoder) { 0 };
    snprintf(words[0], sizeof(words[0]), "embed=%s", embed);
    snprintf(words[1], sizeof(words[1]), "%s", option);
    if (build_words(&encoder->built, KILN_KIND_MODEL, "transformer", options, KILN_COUNT(options),
                    err) < 0)
        fail_msg("%s", err->text);
    assert_int_equal(kiln_params_new(1, &encoder->params, err), KILN_OK);
    KilnScope root = kiln_params_root(encoder->params);
    KilnStatus status = kiln_model_setup(encoder->built.instance, &root, use, feature, 1,
                                         use == &all ? sizes : NULL, err);
    if (status < 0)
        return status;
    encoder_start(encoder, err);
    return KILN_OK;
}

static void encoder_free(Encoder *encoder)
{
    kiln_graph_free(encoder->graph);
    kiln_params_free(encoder->params);
    kiln_backend_free(encoder->backend);
    built_free(&encoder->built);
}

/* The needs for x, of sequences of these lengths (NULL: whole). */
static void forward(Encoder *encoder, KilnDType dtype, KilnShape shape, const void *x,
                    const int32_t *lengths, KilnModelValue *ret)
{
    static KilnStep step;
    const KilnBatch batch = { .size = shape.dim[0] };

    step = (KilnStep) { .graph = encoder->graph };
    kiln_step_begin(&step, KILN_PHASE_FIT, true, &batch, 1, 0);
    KilnModelValue value = { .tensor = kiln_graph_input(encoder->graph, dtype, shape, x) };
    if (lengths != NULL)
        value.lengths = kiln_graph_input(encoder->graph, KILN_I32, KILN_SHAPE(shape.dim[0]),
                                         lengths);
    kiln_model_forward(encoder->built.instance, &step, &value, ret);
}

static void run(Encoder *encoder, KilnTensor *const *tensors, size_t n)
{
    KilnError err = { 0 };

    if (kiln_graph_run(encoder->graph, tensors, n, &err) < 0)
        fail_msg("%s", err.text);
}

static void check_close(const char *what, const float *got, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-5f))
            fail_msg("%s [%lld]: %.7g, want %.7g", what, (long long)i, (double)got[i],
                     (double)want[i]);
}

/* ---- Tokens -----------------------------------------------------------------------------------
 */

static void test_tokens(const char *pool)
{
    static const int32_t lengths[BATCH] = { 6, 2, 4 };
    int32_t words[BATCH][LONGEST];
    float together[BATCH][CLASSES], tags[BATCH][LONGEST][TAGS], states[BATCH][LONGEST][WIDTH];
    KilnModelValue values[NEEDS];
    KilnError err = { 0 };
    Encoder encoder;

    if (encoder_setup(&encoder, "token_embedding", pool, &all, &texts, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < BATCH; i++)
        for (int t = 0; t < LONGEST; t++) /* what follows the end is not padding but words */
            words[i][t] = (3 * i + 2 * t + t * t) % IDS;
    forward(&encoder, KILN_I32, KILN_SHAPE(BATCH, LONGEST), words, lengths, values);
    run(&encoder, (KilnTensor *[]) { values[0].tensor, values[1].tensor, values[2].tensor }, NEEDS);
    assert_null(values[LOGITS].lengths);
    assert_non_null(values[TAG_LOGITS].lengths);
    assert_ptr_equal(values[TAG_LOGITS].lengths, values[HIDDEN].lengths);
    memcpy(together, kiln_tensor_data(values[LOGITS].tensor), sizeof(together));
    memcpy(tags, kiln_tensor_data(values[TAG_LOGITS].tensor), sizeof(tags));
    memcpy(states, kiln_tensor_data(values[HIDDEN].tensor), sizeof(states));
    for (int i = 0; i < BATCH; i++) { /* each alone, without its end */
        forward(&encoder, KILN_I32, KILN_SHAPE(1, lengths[i]), words[i], &lengths[i], values);
        run(&encoder, (KilnTensor *[]) { values[0].tensor, values[1].tensor, values[2].tensor },
            NEEDS);
        check_close("logits", together[i], kiln_tensor_data(values[LOGITS].tensor), CLASSES);
        check_close("tags", tags[i][0], kiln_tensor_data(values[TAG_LOGITS].tensor),
                    lengths[i] * TAGS);
        check_close("hidden", states[i][0], kiln_tensor_data(values[HIDDEN].tensor),
                    lengths[i] * WIDTH);
    }
    encoder_free(&encoder);
}

static void test_padding_has_no_effect(void **unused)
{
    (void)unused;
    test_tokens("pool=class_token");
    test_tokens("pool=mean");
    test_tokens("positions=none");
}

/* ---- Gradients --------------------------------------------------------------------------------
 */

/* A scalar of all that the encoder gives, of places within the sequences alone. */
static KilnTensor *loss_of(KilnModelValue *values, int64_t common)
{
    KilnTensor *tags = kiln_narrow(values[TAG_LOGITS].tensor, 1, 0, common);
    KilnTensor *states = kiln_narrow(values[HIDDEN].tensor, 1, 0, common);

    return kiln_add(kiln_mean(kiln_square(values[LOGITS].tensor)),
                    kiln_add(kiln_mean(kiln_square(tags)), kiln_mean(kiln_sin(states))));
}

/* The loss, computed; with `backward` also the gradients. */
static double compute(Encoder *encoder, const KilnFeature *feature, const void *x,
                      const int32_t *lengths, bool backward)
{
    const int64_t places = feature->shape.dim[0];
    KilnModelValue values[NEEDS];

    forward(encoder, feature->dtype, KILN_SHAPE(BATCH, places), x, lengths, values);
    KilnTensor *loss = loss_of(values, lengths != NULL ? 2 : places);
    if (backward)
        kiln_graph_backward(encoder->graph, loss);
    run(encoder, &loss, 1);
    return kiln_tensor_scalar(loss);
}

/* Along a random direction of each parameter the loss changes as the gradient says. */
static void check_gradients(const char *embed, const char *option, const KilnFeature *feature,
                            const void *x, const int32_t *lengths)
{
    const float step = 4e-3f;
    KilnError err = { 0 };
    Encoder encoder;

    if (encoder_setup(&encoder, embed, option, &all, feature, &err) < 0)
        fail_msg("%s", err.text);
    (void)compute(&encoder, feature, x, lengths, true);
    for (size_t k = 0; k < kiln_params_count(encoder.params); k++) {
        KilnParam *param = kiln_params_at(encoder.params, k);
        const int64_t n = kiln_shape_count(kiln_param_shape(param));
        const float *gradient = params_gradients(encoder.params) + kiln_param_offset(param);
        float *value = param_data(param), before[1024];
        double expected = 0.0, high = 0.0, low = 0.0;

        assert_true(n <= (int64_t)KILN_COUNT(before));
        memcpy(before, value, (size_t)n * sizeof(*value));
        for (int64_t i = 0; i < n; i++)
            expected += (double)gradient[i] * pattern(70 + (uint32_t)k, (uint32_t)i);
        for (int side = -1; side <= 1; side += 2) {
            value = param_data(param);
            for (int64_t i = 0; i < n; i++)
                value[i] = before[i] +
                           (float)side * step * (float)pattern(70 + (uint32_t)k, (uint32_t)i);
            *(side > 0 ? &high : &low) = compute(&encoder, feature, x, lengths, false);
        }
        memcpy(param_data(param), before, (size_t)n * sizeof(*value));
        const double difference = (high - low) / (2.0 * (double)step);
        if (!(fabs(difference - expected) <= 1e-3 + 0.01 * fabs(expected)))
            fail_msg("%s with %s, %s: %.6g, differences say %.6g", embed, option,
                     kiln_param_name(param), expected, difference);
    }
    encoder_free(&encoder);
}

static void test_gradients(void **unused)
{
    static const int32_t lengths[BATCH] = { 6, 2, 4 };
    int32_t words[BATCH][LONGEST];
    int32_t ids[BATCH][2];
    float table[BATCH][COLUMNS];

    (void)unused;
    for (int i = 0; i < BATCH; i++) {
        ids[i][0] = IDS - 1 - i;
        ids[i][1] = i % 3;
    }
    for (int i = 0; i < BATCH * LONGEST; i++)
        words[i / LONGEST][i % LONGEST] = i * i % IDS;
    for (int i = 0; i < BATCH * COLUMNS; i++)
        table[i / COLUMNS][i % COLUMNS] = (float)pattern(5, (uint32_t)i);
    check_gradients("token_embedding", "pool=class_token", &texts, words, lengths);
    check_gradients("token_embedding", "pool=mean", &texts, words, lengths);
    check_gradients("column_embedding", "positions=none", &rows, table, NULL);
    check_gradients("column_embedding", "pool=mean", &rows, table, NULL);
    check_gradients("column_embedding", "pool=mean", &categories, ids, NULL);
}

/* ---- What is declared ---------------------------------------------------------------------------
 */

static void test_unwanted_outputs_have_no_parameters(void **unused)
{
    KilnError err = { 0 };
    Encoder encoder;

    (void)unused;
    if (encoder_setup(&encoder, "column_embedding", "positions=learned", &hidden_only, &rows,
                      &err) < 0)
        fail_msg("%s", err.text);
    assert_null(kiln_params_find(encoder.params, "class_token"));
    assert_null(kiln_params_find(encoder.params, "heads.head.weight"));
    assert_null(kiln_params_find(encoder.params, "heads.token_head.weight"));
    const KilnShape shape = kiln_model_need_shape(encoder.built.instance, 0);
    assert_true(kiln_shape_equal(&shape, &KILN_SHAPE(COLUMNS, WIDTH)));
    encoder_free(&encoder);
}

/* A table of vectors for each column, as many as it has categories. */
static void test_categories(void **unused)
{
    KilnError err = { 0 };
    Encoder encoder;

    (void)unused;
    if (encoder_setup(&encoder, "column_embedding", "positions=none", &hidden_only, &categories,
                      &err) < 0)
        fail_msg("%s", err.text);
    assert_null(kiln_params_find(encoder.params, "tokenizer.weight"));
    const char *const names[] = { "tokenizer.category_embeddings.0.weight",
                                  "tokenizer.category_embeddings.1.weight", "tokenizer.bias" };
    const int64_t n[] = { IDS, 3, 2 };
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        const KilnParam *param = kiln_params_find(encoder.params, names[i]);

        if (param == NULL)
            fail_msg("no %s; the first is %s", names[i],
                     kiln_param_name(kiln_params_at(encoder.params, 0)));
        assert_true(kiln_shape_equal(kiln_param_shape(param), &KILN_SHAPE(n[i], WIDTH)));
    }
    encoder_free(&encoder);
}

/* Numbers come first, then categories; each column's value moves its own vector alone. */
static void test_numbers_and_categories(void **unused)
{
    static float table[2][COLUMNS];
    static const int32_t ids[2][2] = { { 1, 2 }, { 1, 0 } };
    const KilnFeature both[] = { rows, categories };
    const KilnBatch batch = { .size = 2 };
    const KilnModelUse use = { .option = "model", .needs = &sequence, .n_needs = 1 };
    KilnStep step;
    KilnModelValue values[2], embedded;
    KilnError err = { 0 };
    Encoder encoder = { 0 };

    (void)unused;
    if (build_words(&encoder.built, KILN_KIND_MODEL, "column_embedding", NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_params_new(1, &encoder.params, &err), KILN_OK);
    KilnScope root = kiln_params_root(encoder.params);
    if (kiln_model_setup(encoder.built.instance, &root, &use, both, 2, (int64_t[]) { WIDTH },
                         &err) < 0)
        fail_msg("%s", err.text);
    encoder_start(&encoder, &err);
    step = (KilnStep) { .graph = encoder.graph };
    kiln_step_begin(&step, KILN_PHASE_FIT, true, &batch, 1, 0);
    values[0].tensor = kiln_graph_input(encoder.graph, KILN_F32, KILN_SHAPE(2, COLUMNS), table);
    values[1].tensor = kiln_graph_input(encoder.graph, KILN_I32, KILN_SHAPE(2, 2), ids);
    values[0].lengths = values[1].lengths = NULL;
    kiln_model_forward(encoder.built.instance, &step, values, &embedded);
    run(&encoder, &embedded.tensor, 1);
    assert_true(
        kiln_shape_equal(kiln_tensor_shape(embedded.tensor), &KILN_SHAPE(2, COLUMNS + 2, WIDTH)));
    const float *x = kiln_tensor_data(embedded.tensor), *y = x + (COLUMNS + 2) * WIDTH;
    assert_memory_equal(x, y, (COLUMNS + 1) * WIDTH * sizeof(*x));
    assert_memory_not_equal(x + (COLUMNS + 1) * WIDTH, y + (COLUMNS + 1) * WIDTH,
                            WIDTH * sizeof(*x));
    encoder_free(&encoder);
}

static void test_refused(void **unused)
{
    KilnFeature unknown = texts;
    const struct {
        const char *embed;
        const KilnFeature *feature;
        const char *text;
    } cases[] = {
        { "token_embedding", &rows,
          "it (model/transformer): transformer takes tokens, but the datamodule gives a row of "
          "f32" },
        { "mlp", &rows,
          "it.embed (model/mlp): it needs a sequence, but mlp gives a vector \"logits\"" },
        { "token_embedding", &unknown,
          "it.embed (model/token_embedding): needs the number of token ids" },
    };

    (void)unused;
    unknown.n_ids = 0;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnError err = { 0 };
        Encoder encoder;

        if (encoder_setup(&encoder, cases[i].embed, "pool=mean", &all, cases[i].feature, &err) !=
                KILN_E_SHAPE ||
            strstr(err.text, cases[i].text) == NULL)
            fail_msg("case %zu: %s", i, err.text);
        encoder_free(&encoder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding_has_no_effect),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_unwanted_outputs_have_no_parameters),
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_numbers_and_categories),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
