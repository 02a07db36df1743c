/* Words: runs of word characters, and runs of other characters that are no spaces. */
#include "kiln.h"

typedef struct Opts {
    int64_t vocab_size, min_frequency;
    bool lowercase;
    char **special_tokens;
    size_t special_tokens_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, vocab_size, "30000", 2, 10000000, "the most tokens"),
    KILN_FIELD_I64(Opts, min_frequency, "1", 1, 1e15, "how often a word must occur"),
    KILN_FIELD_BOOL(Opts, lowercase, "false", "make texts lower case"),
    KILN_FIELD_STR_LIST(Opts, special_tokens, "[<pad>, <unk>]", "tokens with the first ids"),
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
    KilnText text = { 0 };

    kiln_text_printf(
        &text,
        "{\"normalizer\": %s, "
        "\"pre_tokenizer\": {\"type\": \"Whitespace\"}, "
        "\"model\": {\"type\": \"WordLevel\", \"vocab\": {}, \"unk_token\": \"<unk>\"}}",
        opts->lowercase ? "{\"type\": \"Lowercase\"}" : "null");
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
