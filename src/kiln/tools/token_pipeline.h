/* Tokenizers as Hugging Face's tokenizer.json describes them: normalizer, pre-tokenizer, model,
 * post-processor, decoder, added tokens. The built-in tokenizers are such pipelines; a component
 * that needs another combination of the same parts describes it as JSON text. */
#ifndef KILN_TOKEN_PIPELINE_H
#define KILN_TOKEN_PIPELINE_H

#include "kiln/tokenizer.h"

/* Immutable; any number of threads may use one at once. */
typedef struct KilnTokenPipeline KilnTokenPipeline;

/* Read a tokenizer.json. KILN_E_FORMAT names the file and the key: it is damaged, or needs a part
 * that kiln lacks. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_token_pipeline_open(const char *path,
                                                            KilnTokenPipeline **ret,
                                                            KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_token_pipeline_free(KilnTokenPipeline *pipeline);
/* Write a tokenizer.json, atomically. */
KILN_API KILN_NODISCARD KilnStatus kiln_token_pipeline_save(const KilnTokenPipeline *pipeline,
                                                            const char *path, KilnError *err);

/* How a vocabulary is learned; the names are those of Hugging Face's trainers. */
typedef struct KilnTokenTraining {
    int64_t vocab_size;                /* the most tokens */
    int64_t min_frequency;             /* occurrences that a token or merge needs */
    const char *const *special_tokens; /* get the first ids, in this order */
    size_t n_special_tokens;
    int64_t limit_alphabet;   /* BPE, WordPiece: the most single characters; 0: no limit */
    int64_t max_token_length; /* BPE: the most characters of a token; 0: no limit */
    bool byte_alphabet;       /* all 256 bytes of ByteLevel are in the vocabulary */
} KilnTokenTraining;

/* Train the model of `definition`: a tokenizer.json whose model has an empty vocabulary; BPE,
 * WordPiece or WordLevel. Words are what its normalizer and pre-tokenizer make of the texts. Owned
 * by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_token_pipeline_train(
    const char *definition, const KilnTokenTraining *training, const KilnTexts *texts,
    const KilnPoll *poll, KilnTokenPipeline **ret, KilnError *err);

/* How a Unigram vocabulary is learned; the names are those of Hugging Face's UnigramTrainer. */
typedef struct KilnUnigramTraining {
    int64_t vocab_size;                /* the most tokens */
    const char *const *special_tokens; /* get the first ids, in this order */
    size_t n_special_tokens;
    const char *unk_token;    /* the one of them that stands for unknown characters; NULL: none */
    int64_t max_piece_length; /* the most characters of a token */
    double shrinking_factor;  /* share of the pieces that each round keeps, above 0 and below 1 */
    int64_t n_sub_iterations; /* steps of expectation maximization in each round, at least 1 */
} KilnUnigramTraining;

/* Train a `definition` whose model is Unigram, by Kudo's (2018) algorithm: all characters and at
 * most a million substrings of words are the first pieces; rounds of expectation maximization
 * estimate their probabilities and leave out those that matter least. The same texts always give
 * the same vocabulary. KILN_E_RANGE: vocab_size is less than the number of different characters and
 * special tokens. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_token_pipeline_train_unigram(
    const char *definition, const KilnUnigramTraining *training, const KilnTexts *texts,
    const KilnPoll *poll, KilnTokenPipeline **ret, KilnError *err);

/* As the functions of KilnTokenizerOps. */
KILN_API KILN_NODISCARD KilnStatus kiln_token_pipeline_encode(const KilnTokenPipeline *pipeline,
                                                              const KilnTokenizerInput *input,
                                                              KilnEncoding *ret, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_token_pipeline_decode(const KilnTokenPipeline *pipeline,
                                                              const int32_t *ids, size_t n,
                                                              bool skip_special, KilnText *ret,
                                                              KilnError *err);
KILN_API int64_t kiln_token_pipeline_size(const KilnTokenPipeline *pipeline);
KILN_API KilnString kiln_token_pipeline_token(const KilnTokenPipeline *pipeline, int64_t id);
KILN_API int64_t kiln_token_pipeline_id(const KilnTokenPipeline *pipeline, KilnString token);
KILN_API int64_t kiln_token_pipeline_special(const KilnTokenPipeline *pipeline,
                                             KilnSpecialToken role);
/* "BPE", "WordPiece", "Unigram", "WordLevel". */
KILN_API const char *kiln_token_pipeline_model(const KilnTokenPipeline *pipeline);

/* ---- Components that are pipelines ----------------------------------------------------------- */

/* The state of such a component. */
typedef struct KilnPipelineTokenizer {
    KilnTokenPipeline *pipeline; /* NULL: not trained or opened yet */
} KilnPipelineTokenizer;

/* The functions of its table; only `train` is its own. */
KILN_API KilnStatus kiln_pipeline_tokenizer_open(KilnInstance *self, const char *path,
                                                 KilnError *err);
KILN_API KilnStatus kiln_pipeline_tokenizer_save(const KilnInstance *self, const char *path,
                                                 KilnError *err);
KILN_API KilnStatus kiln_pipeline_tokenizer_encode(const KilnInstance *self,
                                                   const KilnTokenizerInput *input,
                                                   KilnEncoding *ret, KilnError *err);
KILN_API KilnStatus kiln_pipeline_tokenizer_decode(const KilnInstance *self, const int32_t *ids,
                                                   size_t n, bool skip_special, KilnText *ret,
                                                   KilnError *err);
KILN_API int64_t kiln_pipeline_tokenizer_size(const KilnInstance *self);
KILN_API KilnString kiln_pipeline_tokenizer_token(const KilnInstance *self, int64_t id);
KILN_API int64_t kiln_pipeline_tokenizer_id(const KilnInstance *self, KilnString token);
KILN_API int64_t kiln_pipeline_tokenizer_special(const KilnInstance *self, KilnSpecialToken role);
KILN_API void kiln_pipeline_tokenizer_release(KilnInstance *self);
/* The body of `train`: kiln_token_pipeline_train() or kiln_token_pipeline_train_unigram() with the
 * definition, whose memory is released. */
KILN_API KilnStatus kiln_pipeline_tokenizer_train(KilnInstance *self, KilnText *definition,
                                                  const KilnTokenTraining *training,
                                                  const KilnTexts *texts, const KilnPoll *poll,
                                                  KilnError *err);
KILN_API KilnStatus kiln_pipeline_tokenizer_train_unigram(KilnInstance *self, KilnText *definition,
                                                          const KilnUnigramTraining *training,
                                                          const KilnTexts *texts,
                                                          const KilnPoll *poll, KilnError *err);

#define KILN_PIPELINE_TOKENIZER_OPS(train_)                                                        \
    {                                                                                              \
        .train = train_, .open = kiln_pipeline_tokenizer_open,                                     \
        .save = kiln_pipeline_tokenizer_save, .encode = kiln_pipeline_tokenizer_encode,            \
        .decode = kiln_pipeline_tokenizer_decode, .size = kiln_pipeline_tokenizer_size,            \
        .token = kiln_pipeline_tokenizer_token, .id = kiln_pipeline_tokenizer_id,                  \
        .special = kiln_pipeline_tokenizer_special                                                 \
    }

#endif
