/* WordPiece, as BERT's. */
#include <string.h>

#include "kiln.h"

typedef struct Opts {
    int64_t vocab_size, min_frequency, limit_alphabet;
    bool lowercase;
    char **special_tokens;
    size_t special_tokens_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, vocab_size, "30000", 2, 10000000, "the most tokens"),
    KILN_FIELD_I64(Opts, min_frequency, "2", 1, 1e15, "how often a merged pair must occur"),
    KILN_FIELD_I64(Opts, limit_alphabet, "1000", 1, 1200000, "the most single characters"),
    KILN_FIELD_BOOL(Opts, lowercase, "true", "make texts lower case and remove accents"),
    KILN_FIELD_STR_LIST(Opts, special_tokens, "['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']",
                        "tokens with the first ids"),
    KILN_FIELD_END,
};

/* The id of a special token; SIZE_MAX: it is none. */
static size_t special_id(const Opts *opts, const char *token)
{
    for (size_t i = 0; i < opts->special_tokens_count; i++)
        if (strcmp(opts->special_tokens[i], token) == 0)
            return i;
    return SIZE_MAX;
}

/* [CLS] text [SEP] second text [SEP], if there are such tokens. */
static void put_template(const Opts *opts, KilnText *text)
{
    const size_t cls = special_id(opts, "[CLS]"), sep = special_id(opts, "[SEP]");

    if (cls == SIZE_MAX || sep == SIZE_MAX) {
        kiln_text_append(text, "null");
        return;
    }
    kiln_text_printf(text,
                     "{\"type\": \"TemplateProcessing\", "
                     "\"single\": [{\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": 0}}, "
                     "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
                     "{\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 0}}], "
                     "\"pair\": [{\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": 0}}, "
                     "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
                     "{\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 0}}, "
                     "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}, "
                     "{\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 1}}], "
                     "\"special_tokens\": {\"[CLS]\": {\"id\": \"[CLS]\", \"ids\": [%zu], "
                     "\"tokens\": [\"[CLS]\"]}, "
                     "\"[SEP]\": {\"id\": \"[SEP]\", \"ids\": [%zu], \"tokens\": [\"[SEP]\"]}}}",
                     cls, sep);
}

static KilnStatus train(KilnInstance *self, const KilnTexts *texts, const KilnPoll *poll,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnTokenTraining training = {
        .vocab_size = opts->vocab_size,
        .min_frequency = opts->min_frequency,
        .limit_alphabet = opts->limit_alphabet,
        .special_tokens = (const char *const *)opts->special_tokens,
        .n_special_tokens = opts->special_tokens_count,
    };
    KilnText text = { 0 };

    kiln_text_printf(&text,
                     "{\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, "
                     "\"handle_chinese_chars\": true, "
                     "\"strip_accents\": null, \"lowercase\": %s}, "
                     "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "
                     "\"post_processor\": ",
                     opts->lowercase ? "true" : "false");
    put_template(opts, &text);
    kiln_text_append(
        &text, ", \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}, "
               "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", "
               "\"continuing_subword_prefix\": \"##\", "
               "\"max_input_chars_per_word\": 100, \"vocab\": {}}}");
    return kiln_pipeline_tokenizer_train(self, &text, &training, texts, poll, err);
}

static const KilnTokenizerOps ops = KILN_PIPELINE_TOKENIZER_OPS(train);

const KilnComponent kiln_tokenizer_wordpiece = {
    .kind = KILN_KIND_TOKENIZER,
    .name = "wordpiece",
    .summary = "WordPiece, as BERT's",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnPipelineTokenizer),
    .release = kiln_pipeline_tokenizer_release,
    .ops.tokenizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_tokenizer_wordpiece, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
