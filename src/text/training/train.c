/* Trains the model of a tokenizer.json and writes what it learned into the JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/training/unigram_trainer.h"

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

/* [["token", score], ...] */
static json_t *scores_json(const KilnLearned *learned)
{
    json_t *list = json_array();

    for (size_t i = 0; i < learned->vocab.n; i++) {
        json_t *entry = json_array();

        kiln_json_add(&entry, text_json(learned->vocab.tokens[i]));
        kiln_json_add(&entry, json_real(learned->scores[i]));
        kiln_json_add(&list, entry);
    }
    return list;
}

static json_t *added_json(const char *const *special_tokens, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        kiln_json_add(&list, json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (int)i,
                                       "content", special_tokens[i], "single_word", 0, "lstrip", 0,
                                       "rstrip", 0, "normalized", 0, "special", 1));
    return list;
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

/* The definition with its trained model, consumed, and with all parts that a tokenizer.json has. */
static json_t *document_of(const json_t *definition, json_t *model,
                           const char *const *special_tokens, size_t n_special_tokens)
{
    static const char *const pipeline[] = { "normalizer", "pre_tokenizer", "post_processor",
                                            "decoder" };
    json_t *document = json_object();

    kiln_json_put(&document, "version", json_string("1.0"));
    kiln_json_put(&document, "truncation", part_of(definition, "truncation"));
    kiln_json_put(&document, "padding", part_of(definition, "padding"));
    kiln_json_put(&document, "added_tokens", added_json(special_tokens, n_special_tokens));
    for (size_t i = 0; i < KILN_COUNT(pipeline); i++)
        kiln_json_put(&document, pipeline[i], part_of(definition, pipeline[i]));
    kiln_json_put(&document, "model", model);
    return document;
}

/* ---- Training -------------------------------------------------------------------------------- */

/* A definition and the words of the texts that it makes. */
typedef struct Job {
    json_t *json;
    KilnTokenPipeline *pipeline;
    KilnWordCounts words;
} Job;

static KilnStatus begin(const char *definition, const KilnTexts *texts, const KilnPoll *poll,
                        bool unigram, Job *job, KilnError *err)
{
    json_error_t why;

    job->json = json_loads(definition, JSON_ALLOW_NUL, &why);
    if (job->json == NULL)
        return kiln_error_set(err, KILN_E_SYNTAX, "the tokenizer's definition: %d:%d: %s", why.line,
                              why.column, why.text);
    KilnStatus status = kiln_pipeline_build(json_incref(job->json), "the tokenizer's definition",
                                            &job->pipeline, err);
    if (status < 0)
        return status;
    if ((job->pipeline->model.type == KILN_MODEL_UNIGRAM) != unigram)
        return kiln_error_set(err, KILN_E_TYPE,
                              "the tokenizer's definition: %s models are trained by "
                              "kiln_token_pipeline_train%s",
                              kiln_token_pipeline_model(job->pipeline), unigram ? "" : "_unigram");
    use_characters(job->pipeline);
    return kiln_word_counts_read(job->pipeline, texts, poll, &job->words, err);
}

/* The pipeline of a definition with its trained model, consumed. */
static KilnStatus build(const Job *job, json_t *model, const char *const *special_tokens,
                        size_t n_special_tokens, KilnTokenPipeline **ret, KilnError *err)
{
    json_t *document = document_of(job->json, model, special_tokens, n_special_tokens);

    return document != NULL ? kiln_pipeline_build(document, "the trained tokenizer", ret, err)
                            : kiln_error_nomem(err, 0);
}

static void end(Job *job)
{
    kiln_word_counts_release(&job->words);
    kiln_token_pipeline_free(job->pipeline);
    json_decref(job->json);
}

KilnStatus kiln_token_pipeline_train(const char *definition, const KilnTokenTraining *training,
                                     const KilnTexts *texts, const KilnPoll *poll,
                                     KilnTokenPipeline **ret, KilnError *err)
{
    Job job = { 0 };
    KilnLearned learned = { 0 };
    KilnStatus status = begin(definition, texts, poll, false, &job, err);

    if (status >= 0) {
        const KilnTokenModel *trained = &job.pipeline->model;

        status = trained->type == KILN_MODEL_WORDLEVEL
                     ? kiln_train_words(&job.words, training, &learned, err)
                     : kiln_train_bpe(
                           &job.words, training, trained->prefix != NULL ? trained->prefix : "",
                           trained->suffix != NULL ? trained->suffix : "", poll, &learned, err);
    }
    if (status >= 0)
        status = check_size(&learned, training, err);
    if (status >= 0) {
        json_t *model = part_of(job.json, "model");

        kiln_json_put(&model, "vocab", vocab_json(&learned.vocab));
        if (json_object_get(model, "merges") != NULL)
            kiln_json_put(&model, "merges", merges_json(&learned));
        status = build(&job, model, training->special_tokens, training->n_special_tokens, ret, err);
    }
    kiln_learned_release(&learned);
    end(&job);
    return status;
}

KilnStatus kiln_token_pipeline_train_unigram(const char *definition,
                                             const KilnUnigramTraining *training,
                                             const KilnTexts *texts, const KilnPoll *poll,
                                             KilnTokenPipeline **ret, KilnError *err)
{
    const char *unk = training->unk_token;
    Job job = { 0 };
    KilnLearned learned = { 0 };
    KilnStatus status = begin(definition, texts, poll, true, &job, err);

    if (status >= 0)
        status = kiln_train_unigram(&job.words, training, poll, &learned, err);
    if (status >= 0) {
        const int32_t id = unk != NULL ? kiln_vocab_find(&learned.vocab, unk, strlen(unk)) : -1;
        json_t *model = part_of(job.json, "model");

        kiln_json_put(&model, "unk_id", id >= 0 ? json_integer(id) : json_null());
        kiln_json_put(&model, "vocab", scores_json(&learned));
        status = build(&job, model, training->special_tokens, training->n_special_tokens, ret, err);
    }
    kiln_learned_release(&learned);
    end(&job);
    return status;
}
