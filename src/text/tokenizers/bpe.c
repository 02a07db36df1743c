/* Byte-level BPE, as GPT-2's. */
#include "kiln.h"

typedef struct Opts {
    int64_t vocab_size, min_frequency;
    bool add_prefix_space;
    char **special_tokens;
    size_t special_tokens_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, vocab_size, "30000", 257, 10000000, "the most tokens"),
    KILN_FIELD_I64(Opts, min_frequency, "2", 1, 1e15, "how often a merged pair must occur"),
    KILN_FIELD_BOOL(Opts, add_prefix_space, "false",
                    "put a space before a text that begins without one"),
    KILN_FIELD_STR_LIST(Opts, special_tokens, "[<|endoftext|>]", "tokens with the first ids"),
    KILN_FIELD_END,
};

static KilnStatus train(KilnInstance *self, const KilnTexts *texts, const KilnPoll *poll,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const char *space = opts->add_prefix_space ? "true" : "false";
    const KilnTokenTraining training = {
        .vocab_size = opts->vocab_size,
        .min_frequency = opts->min_frequency,
        .special_tokens = (const char *const *)opts->special_tokens,
        .n_special_tokens = opts->special_tokens_count,
        .byte_alphabet = true,
    };
    KilnText text = { 0 };

    kiln_text_printf(
        &text,
        "{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": %s, \"trim_offsets\": "
        "true, "
        "\"use_regex\": true}, "
        "\"post_processor\": {\"type\": \"ByteLevel\", \"add_prefix_space\": %s, \"trim_offsets\": "
        "false, "
        "\"use_regex\": true}, "
        "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": %s, \"trim_offsets\": true, "
        "\"use_regex\": true}, "
        "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
        "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
        "\"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false, "
        "\"vocab\": {}, \"merges\": []}}",
        space, space, space);
    return kiln_pipeline_tokenizer_train(self, &text, &training, texts, poll, err);
}

static const KilnTokenizerOps ops = KILN_PIPELINE_TOKENIZER_OPS(train);

const KilnComponent kiln_tokenizer_bpe = {
    .kind = KILN_KIND_TOKENIZER,
    .name = "bpe",
    .summary = "Byte-level BPE, as GPT-2's: any text, no unknown tokens",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnPipelineTokenizer),
    .release = kiln_pipeline_tokenizer_release,
    .ops.tokenizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_tokenizer_bpe, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
