/* The model text_lstm: its outputs for texts and for tokens, with the characters of tokens; what
 * padding must not change; the parameters that its outputs need. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/components/built_component.h"
#include "tests/support/param_memory.h"
#include "tests/support/recorded_file.h"
#include "train/step/module_step.h"

enum { BATCH = 3, LONGEST = 6, LENGTH = 4, IDS = 7, CLASSES = 4, TAGS = 3 };
enum { LOGITS, TOKEN_LOGITS, NEEDS };

static const KilnTensorSpec needs[NEEDS] = {
    [LOGITS] = { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
    [TOKEN_LOGITS] = { .name = "token_logits", .content = KILN_SEQUENCE, .axes = "time tags" },
};
static const KilnModelUse both = { .option = "model", .needs = needs, .n_needs = NEEDS };
static const KilnModelUse tokens_only = { .option = "model",
                                          .needs = &needs[TOKEN_LOGITS],
                                          .n_needs = 1 };

static const KilnFeature features[] = {
    { .name = "tokens",
      .content = KILN_TOKENS,
      .dtype = KILN_I32,
      .shape = { .rank = 1, .dim = { LONGEST } },
      .varies = true,
      .n_ids = IDS },
    { .name = "characters",
      .content = KILN_SEQUENCE,
      .dtype = KILN_I32,
      .shape = { .rank = 2, .dim = { LONGEST, LENGTH } },
      .varies = true,
      .n_ids = IDS },
};

typedef struct Network {
    Built built;
    KilnParams *params;
    KilnBackend *backend;
    KilnGraph *graph;
    size_t n; /* features */
} Network;

static void network_setup(Network *net, const KilnModelUse *use, size_t n_features)
{
    char width[] = "width=5", hidden[] = "hidden=4", drop[] = "dropout=0",
         drop_embedding[] = "embedding_dropout=0", maps[] = "character_maps=3",
         character_width[] = "character_width=2";
    char *const options[] = { width, hidden, drop, drop_embedding, maps, character_width };
    const int64_t sizes[NEEDS] = { CLASSES, TAGS }, tags = TAGS;
    KilnError err = { 0 };

    *net = (Network) { .n = n_features };
    if (build_words(&net->built, KILN_KIND_MODEL, "text_lstm", options, KILN_COUNT(options), &err) <
        0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_params_new(1, &net->params, &err), KILN_OK);
    const KilnScope root = kiln_params_root(net->params);
    if (kiln_model_setup(net->built.instance, &root, use, features, n_features,
                         use == &both ? sizes : &tags, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_backend_cpu_new(1, &net->backend, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(net->params, net->backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(net->backend, &net->graph, &err), KILN_OK);
    params_fill(net->params);
}

static void network_free(Network *net)
{
    kiln_graph_free(net->graph);
    kiln_params_free(net->params);
    kiln_backend_free(net->backend);
    built_free(&net->built);
}

/* Both outputs of texts of these lengths. */
static void run(Network *net, int64_t batch, int64_t time, const int32_t *tokens,
                const int32_t *characters, const int32_t *lengths, KilnModelValue *ret)
{
    static KilnStep step;
    const KilnBatch of = { .size = batch };
    KilnError err = { 0 };

    step = (KilnStep) { .graph = net->graph };
    kiln_step_begin(&step, KILN_PHASE_VALIDATE, false, &of, 1, 0);
    KilnTensor *end = kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(batch), lengths);
    const KilnModelValue values[] = {
        { kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(batch, time), tokens), end },
        { net->n > 1
              ? kiln_graph_input(net->graph, KILN_I32, KILN_SHAPE(batch, time, LENGTH), characters)
              : NULL,
          end },
    };
    kiln_model_forward(net->built.instance, &step, values, ret);
    if (kiln_graph_run(net->graph,
                       (KilnTensor *[]) { ret[LOGITS].tensor, ret[TOKEN_LOGITS].tensor }, NEEDS,
                       &err) < 0)
        fail_msg("%s", err.text);
}

static void check_close(const float *got, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-5f))
            fail_msg("[%lld]: %.7g, want %.7g", (long long)i, (double)got[i], (double)want[i]);
}

static void check_padding(size_t n_features)
{
    static const int32_t lengths[BATCH] = { 6, 1, 4 };
    int32_t tokens[BATCH][LONGEST], characters[BATCH][LONGEST][LENGTH];
    float texts[BATCH][CLASSES], tags[BATCH][LONGEST][TAGS];
    KilnModelValue values[NEEDS];
    Network net;

    network_setup(&net, &both, n_features);
    for (int i = 0; i < BATCH; i++)
        for (int t = 0; t < LONGEST; t++) {
            tokens[i][t] = (3 * i + 2 * t + t * t) % IDS; /* also after the end */
            for (int c = 0; c < LENGTH; c++)
                characters[i][t][c] = (i + t * c + c) % IDS;
        }
    run(&net, BATCH, LONGEST, tokens[0], characters[0][0], lengths, values);
    assert_null(values[LOGITS].lengths);
    assert_non_null(values[TOKEN_LOGITS].lengths);
    memcpy(texts, kiln_tensor_data(values[LOGITS].tensor), sizeof(texts));
    memcpy(tags, kiln_tensor_data(values[TOKEN_LOGITS].tensor), sizeof(tags));
    for (int i = 0; i < BATCH; i++) { /* each alone, without its end */
        run(&net, 1, lengths[i], tokens[i], characters[i][0], &lengths[i], values);
        check_close(texts[i], kiln_tensor_data(values[LOGITS].tensor), CLASSES);
        check_close(tags[i][0], kiln_tensor_data(values[TOKEN_LOGITS].tensor), lengths[i] * TAGS);
    }
    network_free(&net);
}

static void test_padding_has_no_effect(void **unused)
{
    (void)unused;
    check_padding(1);
    check_padding(2);
}

/* Names and shapes; an output that nobody needs has no parameters. */
static void test_parameters(void **unused)
{
    static const struct {
        const char *name;
        KilnShape shape;
    } want[] = {
        { "embedding.weight", { 2, { IDS, 5 } } },
        { "characters.embedding.weight", { 2, { IDS, 2 } } },
        { "characters.conv.weight", { 3, { 3, 2, 3 } } },
        { "characters.conv.bias", { 1, { 3 } } },
        { "lstm.weight_ih_l0", { 2, { 16, 8 } } },
        { "token_head.weight", { 2, { TAGS, 8 } } },
        { "token_head.bias", { 1, { TAGS } } },
    };
    Network net;
    size_t found = 0;

    (void)unused;
    network_setup(&net, &tokens_only, 2);
    for (size_t k = 0; k < kiln_params_count(net.params); k++) {
        const KilnParam *param = kiln_params_at(net.params, k);

        assert_true(strncmp(kiln_param_name(param), "head", 4) != 0);
        for (size_t i = 0; i < KILN_COUNT(want); i++)
            if (strcmp(kiln_param_name(param), want[i].name) == 0) {
                assert_true(kiln_shape_equal(kiln_param_shape(param), &want[i].shape));
                found++;
            }
    }
    assert_int_equal(found, KILN_COUNT(want));
    network_free(&net);
    network_setup(&net, &both, 1);
    for (size_t k = 0; k < kiln_params_count(net.params); k++)
        assert_null(strstr(kiln_param_name(kiln_params_at(net.params, k)), "characters"));
    network_free(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding_has_no_effect),
        cmocka_unit_test(test_parameters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
