/* Unigram, as the tokenizers of T5 and ALBERT. */
#include <string.h>

#include "kiln.h"

typedef struct Opts {
    int64_t vocab_size, max_piece_length, n_sub_iterations;
    double shrinking_factor;
    bool lowercase;
    char **special_tokens;
    size_t special_tokens_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, vocab_size, "8000", 2, 10000000, "the most tokens"),
    KILN_FIELD_I64(Opts, max_piece_length, "16", 1, 1000, "the most characters of a token"),
    KILN_FIELD_F64(Opts, shrinking_factor, "0.75", 0.01, 0.99,
                   "share of the tokens that each round of training keeps"),
    KILN_FIELD_I64(Opts, n_sub_iterations, "2", 1, 100,
                   "steps of expectation maximization in each round of training"),
    KILN_FIELD_BOOL(Opts, lowercase, "false", "make texts lower case"),
    KILN_FIELD_STR_LIST(Opts, special_tokens, "[<pad>, </s>, <unk>]",
                        "tokens with the first ids; <unk> stands for characters that the "
                        "vocabulary lacks"),
    KILN_FIELD_END,
};

static const char unk[] = "<unk>", eos[] = "</s>";

/* The id of a special token; SIZE_MAX: it is none. */
static size_t special_id(const Opts *opts, const char *token)
{
    for (size_t i = 0; i < opts->special_tokens_count; i++)
        if (strcmp(opts->special_tokens[i], token) == 0)
            return i;
    return SIZE_MAX;
}

/* text </s> second text </s>, if there is such a token. */
static void put_template(const Opts *opts, KilnText *text)
{
    const size_t id = special_id(opts, eos);

    if (id == SIZE_MAX) {
        kiln_text_append(text, "null");
        return;
    }
    kiln_text_printf(text,
                     "{\"type\": \"TemplateProcessing\", "
                     "\"single\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
                     "{\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 0}}], "
                     "\"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
                     "{\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 0}}, "
                     "{\"Sequence\": {\"id\": \"B\", \"type_id\": 0}}, "
                     "{\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 0}}], "
                     "\"special_tokens\": {\"</s>\": {\"id\": \"</s>\", \"ids\": [%zu], "
                     "\"tokens\": [\"</s>\"]}}}",
                     id);
}

static KilnStatus train(KilnInstance *self, const KilnTexts *texts, const KilnPoll *poll,
                        KilnError *err)
{
    static const char metaspace[] = "{\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", "
                                    "\"prepend_scheme\": \"always\", \"split\": true}";
    const Opts *opts = kiln_opts(self);
    const KilnUnigramTraining training = {
        .vocab_size = opts->vocab_size,
        .special_tokens = (const char *const *)opts->special_tokens,
        .n_special_tokens = opts->special_tokens_count,
        .unk_token = special_id(opts, unk) != SIZE_MAX ? unk : NULL,
        .max_piece_length = opts->max_piece_length,
        .shrinking_factor = opts->shrinking_factor,
        .n_sub_iterations = opts->n_sub_iterations,
    };
    KilnText text = { 0 };

    kiln_text_printf(&text,
                     "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": ["
                     "{\"type\": \"Nmt\"}, {\"type\": \"NFKC\"}, %s"
                     "{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}, "
                     "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, "
                     "\"content\": \" \"}]}, "
                     "\"pre_tokenizer\": %s, \"post_processor\": ",
                     opts->lowercase ? "{\"type\": \"Lowercase\"}, " : "", metaspace);
    put_template(opts, &text);
    kiln_text_printf(&text,
                     ", \"decoder\": %s, \"model\": {\"type\": \"Unigram\", \"unk_id\": null, "
                     "\"vocab\": [], \"byte_fallback\": false}}",
                     metaspace);
    return kiln_pipeline_tokenizer_train_unigram(self, &text, &training, texts, poll, err);
}

static const KilnTokenizerOps ops = KILN_PIPELINE_TOKENIZER_OPS(train);

const KilnComponent kiln_tokenizer_unigram = {
    .kind = KILN_KIND_TOKENIZER,
    .name = "unigram",
    .summary = "Unigram, as T5's and ALBERT's: the most probable pieces of words",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnPipelineTokenizer),
    .release = kiln_pipeline_tokenizer_release,
    .ops.tokenizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_tokenizer_unigram, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
