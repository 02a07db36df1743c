/* The whole of a tokenizer.json, ready to use. */
#ifndef KILN_TEXT_PIPELINE_PIPELINE_H
#define KILN_TEXT_PIPELINE_PIPELINE_H

#include <jansson.h>

#include "kiln/tools/token_pipeline.h"
#include "text/pipeline/pipeline_steps.h"

typedef struct KilnAddedToken {
    char *content;
    size_t length;
    char *pattern; /* the content, normalized if it is searched in normalized text */
    size_t pattern_length;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} KilnAddedToken;

typedef struct KilnAddedTokens {
    KilnAddedToken *items;
    size_t n, capacity;
    KilnVocab by_content; /* ids of added tokens only */
    int32_t *index;       /* of an id in items, -1: none; as long as by_content.n */
    bool starts[2][256];  /* first bytes of patterns: of the original, of normalized text */
} KilnAddedTokens;

/* Leading and trailing spaces of a token that offsets leave out. */
typedef struct KilnTokenTrim {
    uint16_t leading, trailing;
} KilnTokenTrim;

struct KilnTokenPipeline {
    json_t *document; /* as it was read, for saving */
    uint64_t fingerprint;
    KilnNormalizer *normalizers;
    size_t n_normalizers, normalizers_capacity;
    KilnPreTokenizer *pre_tokenizers;
    size_t n_pre_tokenizers, pre_tokenizers_capacity;
    KilnTokenModel model;
    KilnProcessor *processors;
    size_t n_processors, processors_capacity;
    KilnDecoder *decoders;
    size_t n_decoders, decoders_capacity;
    KilnAddedTokens added;
    bool trims;          /* a post-processor trims offsets */
    KilnTokenTrim *trim; /* by id of the model's vocabulary; NULL unless `trims` */
    bool gpt2;           /* pre-tokenizing is GPT-2's regular expression alone, on raw bytes */
    int32_t special[5];  /* by KilnSpecialToken */
};

/* Build a pipeline from the JSON of a file, which is consumed. `name`: the file, for messages. */
KILN_NODISCARD KilnStatus kiln_pipeline_build(json_t *document, const char *name,
                                              KilnTokenPipeline **ret, KilnError *err);
/* Ready for use after everything was read: trims, special tokens, patterns of added tokens. */
KILN_NODISCARD KilnStatus kiln_pipeline_prepare(KilnTokenPipeline *pipeline, KilnError *err);

/* Split the pieces at added tokens that are searched in the original or in normalized text. */
void kiln_added_tokens_split(const KilnAddedTokens *added, bool normalized, KilnPieces *pieces);
/* The added token with an id; NULL: none. */
const KilnAddedToken *kiln_added_token_at(const KilnAddedTokens *added, int64_t id);

/* The pieces of a text that the model gets. KILN_E_FORMAT: not UTF-8. */
KILN_NODISCARD KilnStatus kiln_pipeline_pieces(const KilnTokenPipeline *pipeline, KilnString text,
                                               KilnPieces *pieces, KilnError *err);
KilnTokenTrim kiln_token_trim(const char *token, size_t n);

#endif
