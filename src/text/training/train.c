/* Trains the model of a tokenizer.json and writes what it learned into the JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/training/vocab_trainer.h"

static json_t *text_json(KilnString text)
{
    return json_stringn(text.data, text.length);
}

static json_t *vocab_json(const KilnVocab *vocab)
{
    json_t *object = json_object();

    for (size_t i = 0; i < vocab->n; i++)
        kiln_json_put(&object, vocab->tokens[i].data, json_integer((json_int_t)i));
    return object;
}

/* A pair that was merged more than once has its last rank. */
static json_t *merges_json(const KilnLearned *learned)
{
    json_t *list = json_array();

    for (size_t i = 0; i < learned->n_merges; i++) {
        json_t *merge = json_array();

        kiln_json_add(&merge, text_json(learned->vocab.tokens[learned->merges[i][0]]));
        kiln_json_add(&merge, text_json(learned->vocab.tokens[learned->merges[i][1]]));
        kiln_json_add(&list, merge);
    }
    return list;
}

static json_t *added_json(const KilnTokenTraining *training)
{
    json_t *list = json_array();

    for (size_t i = 0; i < training->n_special_tokens; i++)
        kiln_json_add(&list, json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (int)i,
                                       "content", training->special_tokens[i], "single_word", 0,
                                       "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1));
    return list;
}

static KilnStatus learn(const KilnTokenPipeline *pipeline, const KilnTokenTraining *training,
                        const KilnTexts *texts, const KilnPoll *poll, KilnLearned *ret,
                        KilnError *err)
{
    const KilnTokenModel *model = &pipeline->model;
    KilnWordCounts words = { 0 };
    KilnStatus status = kiln_word_counts_read(pipeline, texts, poll, &words, err);

    if (status >= 0 && model->type == KILN_MODEL_WORDLEVEL)
        status = kiln_train_words(&words, training, ret, err);
    else if (status >= 0)
        status = kiln_train_bpe(&words, training, model->prefix != NULL ? model->prefix : "",
                                model->suffix != NULL ? model->suffix : "", poll, ret, err);
    kiln_word_counts_release(&words);
    return status;
}

/* Words are counted as characters, not as ByteLevel's raw bytes. */
static void use_characters(KilnTokenPipeline *pipeline)
{
    pipeline->gpt2 = pipeline->model.raw_bytes = false;
    for (size_t i = 0; i < pipeline->n_pre_tokenizers; i++)
        pipeline->pre_tokenizers[i].raw = false;
}

static KilnStatus check_size(const KilnLearned *learned, const KilnTokenTraining *training,
                             KilnError *err)
{
    if ((int64_t)learned->vocab.n <= training->vocab_size)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "a vocabulary of %lld tokens has no room for the %zu special tokens and "
                          "single characters; raise vocab_size or set limit_alphabet",
                          (long long)training->vocab_size, learned->vocab.n);
}

/* A part of the definition; JSON's null if it has none. */
static json_t *part_of(const json_t *definition, const char *name)
{
    const json_t *part = json_object_get(definition, name);

    return part != NULL ? json_deep_copy(part) : json_null();
}

/* The definition with what was learned, and with all parts that a tokenizer.json has. */
static json_t *document_of(const json_t *definition, const KilnLearned *learned,
                           const KilnTokenTraining *training)
{
    static const char *const pipeline[] = { "normalizer", "pre_tokenizer", "post_processor",
                                            "decoder" };
    json_t *model = part_of(definition, "model");
    json_t *document = json_object();

    kiln_json_put(&document, "version", json_string("1.0"));
    kiln_json_put(&document, "truncation", part_of(definition, "truncation"));
    kiln_json_put(&document, "padding", part_of(definition, "padding"));
    kiln_json_put(&document, "added_tokens", added_json(training));
    for (size_t i = 0; i < KILN_COUNT(pipeline); i++)
        kiln_json_put(&document, pipeline[i], part_of(definition, pipeline[i]));
    kiln_json_put(&model, "vocab", vocab_json(&learned->vocab));
    if (json_object_get(model, "merges") != NULL)
        kiln_json_put(&model, "merges", merges_json(learned));
    kiln_json_put(&document, "model", model);
    return document;
}

KilnStatus kiln_token_pipeline_train(const char *definition, const KilnTokenTraining *training,
                                     const KilnTexts *texts, const KilnPoll *poll,
                                     KilnTokenPipeline **ret, KilnError *err)
{
    json_error_t why;
    json_t *json = json_loads(definition, JSON_ALLOW_NUL, &why);
    KilnTokenPipeline *pipeline = NULL;
    KilnLearned learned = { 0 };

    if (json == NULL)
        return kiln_error_set(err, KILN_E_SYNTAX, "the tokenizer's definition: %d:%d: %s", why.line,
                              why.column, why.text);
    KilnStatus status = kiln_pipeline_build(json_incref(json), "the tokenizer's definition",
                                            &pipeline, err);
    if (status >= 0 && pipeline->model.type == KILN_MODEL_UNIGRAM)
        status = kiln_error_set(err, KILN_E_TYPE,
                                "kiln reads Unigram models but does not train them; use BPE, "
                                "WordPiece or WordLevel");
    if (status >= 0) {
        use_characters(pipeline);
        status = learn(pipeline, training, texts, poll, &learned, err);
    }
    if (status >= 0)
        status = check_size(&learned, training, err);
    json_t *document = status >= 0 ? document_of(json, &learned, training) : NULL;
    if (status >= 0)
        status = document == NULL
                     ? kiln_error_nomem(err, learned.vocab.n)
                     : kiln_pipeline_build(document, "the trained tokenizer", ret, err);
    kiln_learned_release(&learned);
    kiln_token_pipeline_free(pipeline);
    json_decref(json);
    return status;
}
