/* Words: runs of word characters, and runs of other characters that are no spaces; or whatever
 * white space separates. */
#include "kiln.h"

typedef struct Opts {
    int64_t vocab_size, min_frequency;
    bool lowercase, digits;
    int64_t split;
    char **special_tokens;
    size_t special_tokens_count;
} Opts;

enum { SPLIT_WORDS, SPLIT_WHITE_SPACE };

static const KilnChoice splits[] = {
    { "words", SPLIT_WORDS },
    { "white_space", SPLIT_WHITE_SPACE },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, vocab_size, "30000", 2, 10000000, "the most tokens"),
    KILN_FIELD_I64(Opts, min_frequency, "1", 1, 1e15, "how often a word must occur"),
    KILN_FIELD_BOOL(Opts, lowercase, "false", "make texts lower case"),
    KILN_FIELD_STR_LIST(Opts, special_tokens, "[<pad>, <unk>]", "tokens with the first ids"),
    KILN_FIELD_ENUM(Opts, split, "words", splits,
                    "words: runs of letters, digits, marks and connectors, and runs of other "
                    "characters; white_space: what white space separates"),
    KILN_FIELD_BOOL(Opts, digits, "false", "make every digit 0, so that numbers share tokens"),
    KILN_FIELD_END,
};

static KilnStatus train(KilnInstance *self, const KilnTexts *texts, const KilnPoll *poll,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnTokenTraining training = {
        .vocab_size = opts->vocab_size,
        .min_frequency = opts->min_frequency,
        .special_tokens = (const char *const *)opts->special_tokens,
        .n_special_tokens = opts->special_tokens_count,
    };
    const bool both = opts->lowercase && opts->digits;
    KilnText text = { 0 };

    kiln_text_printf(
        &text,
        "{\"normalizer\": %s%s%s%s%s, "
        "\"pre_tokenizer\": {\"type\": \"%s\"}, "
        "\"model\": {\"type\": \"WordLevel\", \"vocab\": {}, \"unk_token\": \"<unk>\"}}",
        both ? "{\"type\": \"Sequence\", \"normalizers\": [" : "",
        opts->lowercase ? "{\"type\": \"Lowercase\"}"
        : !opts->digits ? "null"
                        : "",
        both ? ", " : "",
        opts->digits ? "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"\\\\d\"}, "
                       "\"content\": \"0\"}"
                     : "",
        both ? "]}" : "", opts->split == SPLIT_WORDS ? "Whitespace" : "WhitespaceSplit");
    return kiln_pipeline_tokenizer_train(self, &text, &training, texts, poll, err);
}

static const KilnTokenizerOps ops = KILN_PIPELINE_TOKENIZER_OPS(train);

const KilnComponent kiln_tokenizer_words = {
    .kind = KILN_KIND_TOKENIZER,
    .name = "words",
    .summary = "Words: runs of letters and digits, and runs of other characters",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnPipelineTokenizer),
    .release = kiln_pipeline_tokenizer_release,
    .ops.tokenizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_tokenizer_words, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
