/* Generating: networks in the shapes of GPT-2 and Llama compute what transformers does with the
 * same files of weights; texts from caches equal those of whole prefixes; choosing tokens equals a
 * plain implementation; stop strings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/run_fixture.h"
#include "train/generate/generate.h"
#include "train/generate/stop_text.h"
#include "train/predict/predictor.h"

enum { IDS = 256, MOST = 64, PROMPTS = 3 };

/* ---- What transformers computed -------------------------------------------------------------- */

typedef struct Recorded {
    int32_t tokens[MOST];
    size_t n_tokens, n_prompts;
    float logits[MOST][IDS]; /* of each token's successor */
    char prompts[PROMPTS][MOST];
    int32_t ids[PROMPTS][MOST], greedy[PROMPTS][MOST];
    size_t n_greedy;
} Recorded;

static size_t read_ids(const char *text, int32_t *ret)
{
    size_t n = 0;
    char *end;

    for (long id = strtol(text, &end, 10); end != text; id = strtol(text, &end, 10)) {
        ret[n++] = (int32_t)id;
        text = end;
    }
    return n;
}

static void read_recorded(const char *name, Recorded *ret)
{
    char path[128], word[16];
    static char line[1 << 14];
    size_t rows = 0;

    snprintf(path, sizeof(path), "tests/data/language_models/%s.txt", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    memset(ret, 0, sizeof(*ret));
    while (fgets(line, sizeof(line), file) != NULL) {
        char *rest = line + strcspn(line, " ") + 1;

        line[strcspn(line, "\n")] = '\0';
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(line, " "), line);
        if (strcmp(word, "tokens") == 0) {
            ret->n_tokens = read_ids(rest, ret->tokens);
        } else if (strcmp(word, "logits") == 0) {
            for (int i = 0; i < IDS; i++)
                ret->logits[rows][i] = strtof(rest, &rest);
            rows++;
        } else if (strcmp(word, "prompt") == 0) {
            snprintf(ret->prompts[ret->n_prompts++], MOST, "%s", rest);
        } else if (strcmp(word, "ids") == 0) {
            (void)read_ids(rest, ret->ids[ret->n_prompts - 1]);
        } else {
            ret->n_greedy = read_ids(rest, ret->greedy[ret->n_prompts - 1]);
        }
    }
    fclose(file);
    assert_int_equal(rows, ret->n_tokens);
    assert_int_equal(ret->n_prompts, PROMPTS);
}

/* ---- Networks -------------------------------------------------------------------------------- */

#define GPT2 ",feed_forward:gelu_tanh"
#define LLAMA                                                                                      \
    ",kv_heads:2,hidden:24,positions:rotary,norm:rms,feed_forward:swiglu,bias:false,tied:false"

/* A run that trains nothing; `weights` NULL: random ones. */
static void make_run(const char *options, const char *weights)
{
    char all[1024], text[128];

    snprintf(text, sizeof(text), "%s/text.txt", work);
    FILE *file = fopen(text, "w");
    assert_non_null(file);
    for (int i = 0; i < 40; i++)
        fputs("A line of some text, the same again.\n", file);
    assert_int_equal(fclose(file), 0);
    snprintf(all, sizeof(all),
             "task={_target_:module/language_model,metrics:{},optimizer:{_target_:optimizer/sgd},"
             "scheduler:null,model:{_target_:model/gpt,width:16,layers:2,heads:4%s}} "
             "datamodule={_target_:datamodule/text_blocks,files:[%s],context:32,batch_size:4,"
             "tokenizer:{_target_:tokenizer/bytes,special_tokens:[]}} "
             "callbacks.model_checkpoint={monitor:val/loss,mode:min} trainer.max_steps=0 test=false"
             "%s%s%s",
             options, text, weights != NULL ? " weights=tests/data/language_models/" : "",
             weights != NULL ? weights : "", weights != NULL ? ".safetensors" : "");
    fit_well("run", all, "finished");
}

typedef struct Opened {
    Composed with;
    KilnPredictor *predictor;
} Opened;

static Opened open_run(const char *const *overrides)
{
    static const char *const none[] = { NULL };
    Opened opened = { 0 };
    char path[128];
    KilnError err = { 0 };

    compose(&opened.with, none);
    snprintf(path, sizeof(path), "%s/run", work);
    const KilnPredictorSpec spec = {
        .registry = opened.with.registry, .ckpt_path = path, .overrides = overrides, .max_calls = 2
    };
    if (kiln_predictor_open(&spec, &opened.predictor, &err) < 0)
        fail_msg("%s", err.text);
    return opened;
}

static void close_run(Opened *opened)
{
    kiln_predictor_free(opened->predictor);
    composed_free(&opened->with);
}

/* The logits after each of n tokens, computed without caches. */
static const float *whole(const Opened *opened, int32_t *tokens, size_t n)
{
    KilnTrainer *trainer = opened->predictor->trainer;
    int32_t length = (int32_t)n;
    const KilnBatchFeature feature = { .data = tokens, .padded = length, .lengths = &length };
    const KilnBatch batch = { .size = 1, .features = &feature };
    KilnError err = { 0 };

    kiln_step_begin(&trainer->step, KILN_PHASE_PREDICT, false, &batch, 1, 0);
    kiln_instance_component(trainer->module)
        ->ops.module->generate_step(trainer->module, &trainer->step);
    if (kiln_step_run(&trainer->step, NULL, &err) < 0)
        fail_msg("%s", err.text);
    return kiln_tensor_data(trainer->step.outputs[0].value);
}

static KilnGenerated *generate(const Opened *opened, const char *const *prompts, size_t n,
                               const KilnGenerateOptions *options)
{
    KilnGenerated *generated = NULL;
    KilnError err = { 0 };

    if (kiln_generate(opened->predictor, prompts, n, options, &generated, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(generated->n, n);
    return generated;
}

static void check_logits(const Opened *opened, Recorded *recorded)
{
    const float *logits = whole(opened, recorded->tokens, recorded->n_tokens);

    for (size_t t = 0; t < recorded->n_tokens; t++)
        for (int i = 0; i < IDS; i++)
            if (!(fabsf(logits[t * IDS + (size_t)i] - recorded->logits[t][i]) <=
                  1e-4f * fmaxf(1.0f, fabsf(recorded->logits[t][i]))))
                fail_msg("token %zu, logit %d: %g, not %g", t, i,
                         (double)logits[t * IDS + (size_t)i], (double)recorded->logits[t][i]);
}

/* All prompts at once, though of different lengths, and each alone. */
static void check_greedy(const Opened *opened, const Recorded *recorded)
{
    const KilnGenerateOptions options = { .max_tokens = (int64_t)recorded->n_greedy };
    const char *prompts[PROMPTS];

    for (size_t i = 0; i < PROMPTS; i++)
        prompts[i] = recorded->prompts[i];
    KilnGenerated *all = generate(opened, prompts, PROMPTS, &options);
    for (size_t i = 0; i < PROMPTS; i++) {
        KilnGenerated *one = generate(opened, &prompts[i], 1, &options);

        assert_int_equal(all->list[i].end, KILN_GENERATE_MAX_TOKENS);
        assert_int_equal(all->list[i].n_tokens, recorded->n_greedy);
        assert_memory_equal(all->list[i].tokens, recorded->greedy[i],
                            recorded->n_greedy * sizeof(int32_t));
        assert_memory_equal(one->list[0].tokens, recorded->greedy[i],
                            recorded->n_greedy * sizeof(int32_t));
        kiln_generated_free(one);
    }
    kiln_generated_free(all);
}

/* The most likely token of each whole prefix, computed again for each. */
static void check_caches(const Opened *opened, const Recorded *recorded)
{
    const KilnGenerateOptions options = { .max_tokens = 24 };
    const char *prompt = recorded->prompts[2];
    KilnGenerated *cached = generate(opened, &prompt, 1, &options);
    int32_t tokens[MOST];
    size_t n = strlen(prompt);

    memcpy(tokens, recorded->ids[2], n * sizeof(*tokens));
    for (size_t i = 0; i < (size_t)options.max_tokens; i++) {
        const float *logits = whole(opened, tokens, n) + (n - 1) * IDS;
        int32_t best = 0;

        for (int32_t id = 1; id < IDS; id++)
            if (logits[id] > logits[best])
                best = id;
        assert_int_equal(cached->list[0].tokens[i], best);
        tokens[n++] = best;
    }
    kiln_generated_free(cached);
}

static void check_network(const char *name, const char *options)
{
    static Recorded recorded;

    read_recorded(name, &recorded);
    make_run(options, name);
    Opened opened = open_run(NULL);
    check_logits(&opened, &recorded);
    check_greedy(&opened, &recorded);
    check_caches(&opened, &recorded);
    close_run(&opened);
}

static void test_gpt2(void **unused)
{
    (void)unused;
    check_network("gpt2", GPT2);
}

static void test_llama(void **unused)
{
    (void)unused;
    check_network("llama", LLAMA);
}

/* Beyond the context a text goes on with the last half of it. */
static void test_beyond_the_context(void **unused)
{
    const KilnGenerateOptions options = { .max_tokens = 100, .choice = { .temperature = 1.0 } };
    const char *prompts[] = { "abc", "a longer prompt of 32 characters" };
    const char *long_prompt = "one of more characters than there are in the context of the model";
    KilnGenerated *generated = NULL;
    KilnError err = { 0 };

    (void)unused;
    make_run("", NULL);
    Opened opened = open_run(NULL);
    generated = generate(&opened, prompts, 2, &options);
    assert_int_equal(generated->list[0].n_tokens, 100);
    assert_int_equal(generated->list[1].n_tokens, 100);
    kiln_generated_free(generated);
    assert_int_equal(kiln_generate(opened.predictor, &long_prompt, 1, &options, &generated, &err),
                     KILN_E_RANGE);
    assert_non_null(strstr(err.text, "prompt 1 has 65 tokens"));
    assert_non_null(strstr(err.text, "32"));
    const char *empty = "";
    assert_int_equal(kiln_generate(opened.predictor, &empty, 1, &options, &generated, &err),
                     KILN_E_MISSING);
    assert_non_null(strstr(err.text, "prompt 1 is empty"));
    close_run(&opened);
}

/* The same seed gives the same text, in any batch; another one another text. */
static void test_seeds(void **unused)
{
    KilnGenerateOptions options = { .max_tokens = 20, .choice = { .temperature = 1.0, .seed = 3 } };
    const char *prompts[] = { "abc", "abc" };

    (void)unused;
    make_run("", NULL);
    Opened opened = open_run(NULL);
    KilnGenerated *two = generate(&opened, prompts, 2, &options);
    KilnGenerated *one = generate(&opened, prompts, 1, &options);
    const size_t bytes = 20 * sizeof(int32_t);
    assert_memory_equal(two->list[0].tokens, one->list[0].tokens, bytes);
    assert_memory_not_equal(two->list[0].tokens, two->list[1].tokens, bytes);
    options.choice.seed = 4;
    KilnGenerated *other = generate(&opened, prompts, 1, &options);
    assert_memory_not_equal(other->list[0].tokens, one->list[0].tokens, bytes);
    kiln_generated_free(two);
    kiln_generated_free(one);
    kiln_generated_free(other);
    close_run(&opened);
}

/* ---- Choosing -------------------------------------------------------------------------------- */

static const float *sorted_by;

static int by_logit(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    if (sorted_by[x] != sorted_by[y])
        return sorted_by[x] > sorted_by[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

/* The probability of each id, as the options define it. */
static void plain(const KilnTokenChoice *choice, const float *logits, int n, const int32_t *seen,
                  size_t n_seen, double *ret)
{
    float penalized[IDS];
    int32_t order[IDS];
    double total = 0.0, sum = 0.0;
    int kept = choice->top_k > 0 && choice->top_k < n ? (int)choice->top_k : n;

    for (int i = 0; i < n; i++) {
        bool was_seen = false;

        for (size_t s = 0; s < n_seen; s++)
            was_seen = was_seen || seen[s] == i;
        penalized[i] = logits[i];
        if (was_seen && choice->repetition_penalty > 0.0)
            penalized[i] *= (float)(logits[i] > 0.0f ? 1.0 / choice->repetition_penalty
                                                     : choice->repetition_penalty);
        order[i] = i;
        ret[i] = 0.0;
    }
    sorted_by = penalized;
    qsort(order, (size_t)n, sizeof(*order), by_logit);
    for (int i = 0; i < kept; i++)
        total += exp((double)penalized[order[i]] / choice->temperature);
    for (int i = 0; i < kept; i++) {
        if (choice->top_p > 0.0 && sum >= choice->top_p)
            break;
        ret[order[i]] = exp((double)penalized[order[i]] / choice->temperature) / total;
        sum += ret[order[i]];
    }
    for (int i = 0; i < n; i++)
        ret[i] /= sum;
}

static void test_choices(void **unused)
{
    static const KilnTokenChoice choices[] = {
        { .temperature = 1.0 },
        { .temperature = 0.7, .top_k = 5 },
        { .temperature = 1.5, .top_p = 0.6 },
        { .temperature = 1.0, .top_k = 9, .top_p = 0.8, .repetition_penalty = 1.7 },
        { .temperature = 2.0, .repetition_penalty = 0.5 },
        { .temperature = 1.0, .top_k = 1 },
    };
    enum { N = 24, DRAWS = 40000 };
    static Recorded recorded;
    float room[N];
    int32_t ids[N], seen[MOST + 1] = { 3, 7, 7, 20 };

    (void)unused;
    read_recorded("llama", &recorded);
    for (size_t c = 0; c < KILN_COUNT(choices); c++) {
        double want[N];
        int counts[N] = { 0 };

        plain(&choices[c], recorded.logits[c], N, seen, 4, want);
        for (uint32_t draw = 0; draw < DRAWS; draw++)
            counts[kiln_token_choose(&choices[c], recorded.logits[c], N, seen, 4, draw, room,
                                     ids)]++;
        for (int i = 0; i < N; i++) {
            const double deviation = sqrt(want[i] * (1.0 - want[i]) / DRAWS);

            if (want[i] == 0.0)
                assert_int_equal(counts[i], 0);
            if (fabs((double)counts[i] / DRAWS - want[i]) > 5.0 * deviation + 1e-9)
                fail_msg("choice %zu, id %d: drawn %d times of %d, probability %g", c, i, counts[i],
                         (int)DRAWS, want[i]);
        }
    }
    const KilnTokenChoice greedy = { .repetition_penalty = 1e6 };
    const float logits[] = { 2.0f, 5.0f, 5.0f, -1.0f };
    const int32_t one[] = { 1 };
    assert_int_equal(kiln_token_choose(&greedy, logits, 4, NULL, 0, 0, room, ids), 1);
    assert_int_equal(kiln_token_choose(&greedy, logits, 4, one, 1, 0, room, ids), 2);
}

/* ---- Stop strings ---------------------------------------------------------------------------- */

static void test_stop_text(void **unused)
{
    static const char *const stop[] = { "\n\n", "END.", NULL };
    static const struct {
        const char *pieces[6];
        const char *shown[6]; /* after each piece */
        bool stopped;
    } cases[] = {
        { { "a\n", "b\n", "\nc" }, { "a", "a\nb", "a\nb" }, true },
        { { "E", "N", "D", "!" }, { "", "", "", "END!" }, false },
        { { "xENENEND.y" }, { "xENEN" }, true },
        { { "one END.\n\n" }, { "one " }, true },
    };

    (void)unused;
    for (size_t c = 0; c < KILN_COUNT(cases); c++) {
        KilnStopText text = { .stop = stop };

        for (size_t i = 0; cases[c].pieces[i] != NULL; i++) {
            kiln_stop_text_add(&text, cases[c].pieces[i], strlen(cases[c].pieces[i]));
            assert_int_equal(text.shown, strlen(cases[c].shown[i]));
            assert_memory_equal(text.text.data, cases[c].shown[i], text.shown);
        }
        assert_int_equal(text.stopped, cases[c].stopped);
        kiln_text_release(&text.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gpt2, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_llama, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_beyond_the_context, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_seeds, make_work, remove_work),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_stop_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
