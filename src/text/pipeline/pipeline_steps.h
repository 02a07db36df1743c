/* The parts of a pipeline beside its model. Each step is one entry of a Sequence. */
#ifndef KILN_TEXT_PIPELINE_PIPELINE_STEPS_H
#define KILN_TEXT_PIPELINE_PIPELINE_STEPS_H

#include "text/pipeline/token_model.h"
#include "text/pipeline/pieces.h"
#include "text/unicode/regex.h"

typedef enum KilnNormalizerType {
    KILN_NORMALIZE_FORM,
    KILN_NORMALIZE_LOWERCASE,
    KILN_NORMALIZE_STRIP,
    KILN_NORMALIZE_STRIP_ACCENTS,
    KILN_NORMALIZE_BERT,
    KILN_NORMALIZE_REPLACE,
    KILN_NORMALIZE_PREPEND,
    KILN_NORMALIZE_NMT,
    KILN_NORMALIZE_PRECOMPILED
} KilnNormalizerType;

/* SentencePiece's precompiled_charsmap: a double array trie from characters to offsets of their
 * replacements. */
typedef struct KilnCharsmap {
    uint32_t *units;
    size_t n_units;
    char *texts; /* each ends with NUL */
    size_t n_texts;
} KilnCharsmap;

typedef struct KilnNormalizer {
    KilnNormalizerType type;
    KilnNormalForm form;
    bool left, right; /* Strip */
    bool clean_text, handle_chinese_chars, strip_accents, lowercase;
    KilnRegex *regex;
    char *content; /* of Replace, Prepend */
    KilnCharsmap charsmap;
} KilnNormalizer;

typedef enum KilnPreTokenizerType {
    KILN_PRE_BYTE_LEVEL,
    KILN_PRE_BERT,
    KILN_PRE_WHITESPACE,
    KILN_PRE_WHITESPACE_SPLIT,
    KILN_PRE_METASPACE,
    KILN_PRE_SPLIT,
    KILN_PRE_PUNCTUATION,
    KILN_PRE_DIGITS,
    KILN_PRE_CHAR_DELIMITER_SPLIT
} KilnPreTokenizerType;

typedef enum KilnPrependScheme {
    KILN_PREPEND_FIRST,
    KILN_PREPEND_NEVER,
    KILN_PREPEND_ALWAYS
} KilnPrependScheme;

typedef struct KilnPreTokenizer {
    KilnPreTokenizerType type;
    bool add_prefix_space, use_regex; /* ByteLevel */
    bool raw;                         /* ByteLevel: the model takes bytes */
    char replacement[8];              /* Metaspace, CharDelimiterSplit: a character */
    KilnPrependScheme prepend;
    bool split, invert, individual_digits;
    KilnRegex *regex;
    KilnSplitBehavior behavior;
} KilnPreTokenizer;

typedef enum KilnProcessorType {
    KILN_PROCESS_TEMPLATE,
    KILN_PROCESS_BERT,
    KILN_PROCESS_ROBERTA,
    KILN_PROCESS_BYTE_LEVEL
} KilnProcessorType;

/* An entry of a template: a sequence, or special tokens. */
typedef struct KilnTemplatePiece {
    int sequence; /* 0, 1; -1: the special tokens `ids` */
    uint8_t type;
    int32_t *ids;
    size_t n_ids;
} KilnTemplatePiece;

typedef struct KilnTemplate {
    KilnTemplatePiece *items;
    size_t n, capacity;
} KilnTemplate;

typedef struct KilnProcessor {
    KilnProcessorType type;
    bool trim_offsets, add_prefix_space;
    int32_t cls, sep;
    KilnTemplate single, pair;
} KilnProcessor;

typedef enum KilnDecoderType {
    KILN_DECODE_BYTE_LEVEL,
    KILN_DECODE_WORDPIECE,
    KILN_DECODE_METASPACE,
    KILN_DECODE_BPE,
    KILN_DECODE_REPLACE,
    KILN_DECODE_FUSE,
    KILN_DECODE_STRIP,
    KILN_DECODE_BYTE_FALLBACK
} KilnDecoderType;

typedef struct KilnDecoder {
    KilnDecoderType type;
    char *text;    /* the prefix of WordPiece, the suffix of BPEDecoder, the content of Replace */
    bool cleanup;  /* WordPiece */
    bool prepends; /* Metaspace */
    char character[8];   /* Metaspace, Strip */
    int64_t start, stop; /* Strip */
    KilnRegex *regex;
} KilnDecoder;

/* Apply a step to all pieces of text. */
KILN_NODISCARD KilnStatus kiln_normalizer_apply(const KilnNormalizer *normalizer,
                                                KilnPieces *pieces, KilnError *err);
KILN_NODISCARD KilnStatus kiln_pre_tokenizer_apply(const KilnPreTokenizer *step, KilnPieces *pieces,
                                                   KilnError *err);
/* A KilnMatcher whose ctx is a KilnRegex. */
KilnStatus kiln_regex_matches(const void *ctx, KilnPieces *pieces, const char *text, size_t n,
                              bool invert, KilnError *err);
/* Read a precompiled_charsmap: false if it is damaged or memory ran out. */
KILN_NODISCARD bool kiln_charsmap_read(const unsigned char *data, size_t n, KilnCharsmap *ret);
/* The replacement of a text; NULL: none. */
const char *kiln_charsmap_find(const KilnCharsmap *map, const char *text, size_t n);

/* The tokens of a text while they are decoded. */
typedef struct KilnTokenTexts {
    KilnText text; /* all of them */
    size_t *ends;
    size_t n, capacity;
    bool failed;
} KilnTokenTexts;

void kiln_token_texts_add(KilnTokenTexts *texts, const char *token, size_t n);
/* The i-th token, borrowed until the next change. */
KilnString kiln_token_texts_at(const KilnTokenTexts *texts, size_t i);
void kiln_token_texts_release(KilnTokenTexts *texts);
/* Decode `in` to `out`, which is empty. */
KILN_NODISCARD KilnStatus kiln_decoder_apply(const KilnDecoder *decoder, const KilnTokenTexts *in,
                                             KilnTokenTexts *out, KilnError *err);

#endif
