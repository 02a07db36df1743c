/* The transformer in BERT's shape computes what Hugging Face's does with the same file of weights
 * (tests/record/finetuning.py). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/components/built_component.h"
#include "train/checkpoint/initial_weights.h"
#include "train/step/module_step.h"

enum { SAMPLES = 2, LONGEST = 8, IDS = 40, WIDTH = 16, CLASSES = 3 };
enum { LARGEST = 3 * WIDTH * WIDTH }; /* values of a parameter */
enum { LOGITS, HIDDEN, NEEDS };

static const KilnTensorSpec needs[NEEDS] = {
    [LOGITS] = { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
    [HIDDEN] = { .name = "hidden", .content = KILN_SEQUENCE, .axes = "time features" },
};
static const KilnModelUse use = { .option = "model", .needs = needs, .n_needs = NEEDS };
static const KilnFeature texts = { .name = "tokens",
                                   .content = KILN_TOKENS,
                                   .dtype = KILN_I32,
                                   .shape = { .rank = 1, .dim = { LONGEST } },
                                   .varies = true,
                                   .n_ids = IDS };

typedef struct Recorded {
    int32_t tokens[SAMPLES][LONGEST], lengths[SAMPLES];
    float hidden[SAMPLES][LONGEST][WIDTH], logits[SAMPLES][CLASSES];
} Recorded;

static void read_recorded(Recorded *ret)
{
    FILE *file = fopen("tests/data/finetuning/bert.txt", "r");
    int sample = 0, row = 0, logits = 0, of = 0;
    char line[1024];

    assert_non_null(file);
    memset(ret, 0, sizeof(*ret));
    while (fgets(line, sizeof(line), file) != NULL) {
        char *at = line + strcspn(line, " "), *end;

        if (strncmp(line, "tokens", 6) == 0) {
            for (long id = strtol(at, &end, 10); end != at; id = strtol(at, &end, 10)) {
                ret->tokens[sample][ret->lengths[sample]++] = (int32_t)id;
                at = end;
            }
            sample++;
        } else if (strncmp(line, "hidden", 6) == 0) {
            for (int i = 0; i < WIDTH; i++)
                ret->hidden[of][row][i] = strtof(at, &at);
            if (++row == ret->lengths[of]) {
                of++;
                row = 0;
            }
        } else {
            for (int i = 0; i < CLASSES; i++)
                ret->logits[logits][i] = strtof(at, &at);
            logits++;
        }
    }
    fclose(file);
    assert_int_equal(sample, SAMPLES);
    assert_int_equal(logits, SAMPLES);
}

typedef struct Bert {
    Built built;
    KilnParams *params;
    KilnBackend *backend;
    KilnGraph *graph;
} Bert;

/* Every parameter must be in the file. */
static void load(Bert *bert)
{
    KilnSafetensors *file = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_safetensors_open("tests/data/finetuning/bert.safetensors", &file, &err),
                     KILN_OK);
    for (size_t i = 0; i < kiln_params_count(bert->params); i++) {
        KilnParam *param = kiln_params_at(bert->params, i);
        float before[LARGEST], after[LARGEST];
        const size_t bytes = (size_t)kiln_shape_count(kiln_param_shape(param)) * sizeof(float);

        assert_true(bytes <= sizeof(before));
        kiln_param_read(param, KILN_F32, before);
        if (kiln_weights_read_param(file, param, &err) < 0)
            fail_msg("%s: %s", kiln_param_name(param), err.text);
        kiln_param_read(param, KILN_F32, after);
        if (memcmp(before, after, bytes) == 0)
            fail_msg("%s is not in the file", kiln_param_name(param));
    }
    kiln_safetensors_close(file);
}

static void open_bert(Bert *bert)
{
    char *const words[] = { "embed={_target_:model/token_embedding,types:2,separator:3}",
                            "width=16",
                            "layers=2",
                            "heads=4",
                            "mlp_dim=24",
                            "max_length=12",
                            "pool=pooler",
                            "norm_first=false",
                            "embed_norm=true",
                            "norm_eps=1e-12" };
    KilnError err = { 0 };

    *bert = (Bert) { 0 };
    if (build_words(&bert->built, KILN_KIND_MODEL, "transformer", words, KILN_COUNT(words), &err) <
        0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_params_new(1, &bert->params, &err), KILN_OK);
    const KilnScope root = kiln_params_root(bert->params);
    if (kiln_model_setup(bert->built.instance, &root, &use, &texts, 1, (int64_t[]) { CLASSES, 0 },
                         &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_backend_cpu_new(1, &bert->backend, &err), KILN_OK);
    assert_int_equal(kiln_params_seal(bert->params, bert->backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(bert->backend, &bert->graph, &err), KILN_OK);
    load(bert);
}

static void check_close(const char *what, const float *got, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-5f))
            fail_msg("%s [%lld]: %.7g, want %.7g", what, (long long)i, (double)got[i],
                     (double)want[i]);
}

static void test_computes_what_transformers_does(void **unused)
{
    static KilnStep step;
    const KilnBatch batch = { .size = SAMPLES };
    KilnModelValue values[NEEDS];
    KilnError err = { 0 };
    Recorded want;
    Bert bert;

    (void)unused;
    read_recorded(&want);
    open_bert(&bert);
    step = (KilnStep) { .graph = bert.graph };
    kiln_step_begin(&step, KILN_PHASE_TEST, false, &batch, 1, 0);
    const KilnModelValue tokens = {
        .tensor = kiln_graph_input(bert.graph, KILN_I32, KILN_SHAPE(SAMPLES, LONGEST), want.tokens),
        .lengths = kiln_graph_input(bert.graph, KILN_I32, KILN_SHAPE(SAMPLES), want.lengths),
    };
    kiln_model_forward(bert.built.instance, &step, &tokens, values);
    KilnTensor *const tensors[] = { values[LOGITS].tensor, values[HIDDEN].tensor };
    if (kiln_graph_run(bert.graph, tensors, NEEDS, &err) < 0)
        fail_msg("%s", err.text);
    const float *hidden = kiln_tensor_data(values[HIDDEN].tensor);
    for (int i = 0; i < SAMPLES; i++)
        check_close("hidden", hidden + (size_t)i * LONGEST * WIDTH, want.hidden[i][0],
                    (int64_t)want.lengths[i] * WIDTH);
    check_close("logits", kiln_tensor_data(values[LOGITS].tensor), want.logits[0],
                SAMPLES * CLASSES);
    kiln_graph_free(bert.graph);
    kiln_params_free(bert.params);
    kiln_backend_free(bert.backend);
    built_free(&bert.built);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_computes_what_transformers_does) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
