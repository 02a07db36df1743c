/* Bytes: each byte is a token. */
#include "kiln.h"

typedef struct Opts {
    char **special_tokens;
    size_t special_tokens_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR_LIST(Opts, special_tokens, "[<pad>, <s>, </s>]", "tokens with the first ids"),
    KILN_FIELD_END,
};

static KilnStatus train(KilnInstance *self, const KilnTexts *texts, const KilnPoll *poll,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnTokenTraining training = {
        .vocab_size = INT32_MAX,
        .min_frequency = INT64_MAX, /* no merges */
        .byte_alphabet = true,
        .special_tokens = (const char *const *)opts->special_tokens,
        .n_special_tokens = opts->special_tokens_count,
    };
    KilnText text = { 0 };

    kiln_text_append(&text,
                     "{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "
                     "false, \"trim_offsets\": true, "
                     "\"use_regex\": false}, "
                     "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                     "\"trim_offsets\": true, "
                     "\"use_regex\": true}, "
                     "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
                     "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
                     "\"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false, "
                     "\"vocab\": {}, \"merges\": []}}");
    return kiln_pipeline_tokenizer_train(self, &text, &training, texts, poll, err);
}

static const KilnTokenizerOps ops = KILN_PIPELINE_TOKENIZER_OPS(train);

const KilnComponent kiln_tokenizer_bytes = {
    .kind = KILN_KIND_TOKENIZER,
    .name = "bytes",
    .summary = "Bytes: each is a token; nothing is unknown",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnPipelineTokenizer),
    .release = kiln_pipeline_tokenizer_release,
    .ops.tokenizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_tokenizer_bytes, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
