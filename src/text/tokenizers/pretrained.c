/* A tokenizer.json that exists already. */
#include "kiln.h"

typedef struct Opts {
    char *path;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_PATH(Opts, path, NULL, "the tokenizer.json"),
    KILN_FIELD_END,
};

/* There is nothing to learn: the texts are not read. */
static KilnStatus train(KilnInstance *self, const KilnTexts *texts, const KilnPoll *poll,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)texts;
    (void)poll;
    return kiln_pipeline_tokenizer_open(self, opts->path, err);
}

static const KilnTokenizerOps ops = KILN_PIPELINE_TOKENIZER_OPS(train);

const KilnComponent kiln_tokenizer_pretrained = {
    .kind = KILN_KIND_TOKENIZER,
    .name = "pretrained",
    .summary = "A tokenizer.json of Hugging Face, or one that kiln trained",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnPipelineTokenizer),
    .release = kiln_pipeline_tokenizer_release,
    .ops.tokenizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_tokenizer_pretrained, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
