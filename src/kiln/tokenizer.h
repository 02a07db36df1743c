/* Tokenizers: components that turn text into ids and back (`tokenizer` of a datamodule,
 * `kiln tokenizer`). One learns its vocabulary from texts (`train`) or reads it from a file
 * (`open`); from then on it is immutable, and any number of threads may use it at once.
 *
 * All text is UTF-8. Lengths are in bytes and texts may contain NUL. Truncation and padding are up
 * to the caller. */
#ifndef KILN_TOKENIZER_H
#define KILN_TOKENIZER_H

#include "kiln/component.h"
#include "kiln/tools/text.h"

/* ---- Texts ----------------------------------------------------------------------------------- */

typedef struct KilnString {
    const char *data; /* may be NULL when length is 0 */
    size_t length;
} KilnString;

/* The texts that a tokenizer is trained on, one after the other. */
typedef struct KilnTexts {
    /* *ret: the next text, borrowed until the next call; false at the end, or on a failure, with
     * *ret_status (KILN_OK before the call) and err, which should say where the text is. */
    bool (*next)(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err);
    void *ctx;
} KilnTexts;

/* ---- Encodings ------------------------------------------------------------------------------- */

/* What offsets count; computing none is fastest. */
typedef enum KilnOffsets {
    KILN_OFFSETS_NONE,
    KILN_OFFSETS_BYTES,
    KILN_OFFSETS_CHARACTERS
} KilnOffsets;

/* What to encode. */
typedef struct KilnTokenizerInput {
    KilnString text;
    const KilnString *pair;  /* the second text of a pair; NULL: none */
    bool add_special_tokens; /* [CLS] text [SEP], or what the tokenizer's file defines */
    KilnOffsets offsets;
} KilnTokenizerInput;

/* The part of the text that a token stands for: [begin, end). Special tokens that were added have
 * 0 and 0. Offsets are those of the text or of the second text, see `types`. */
typedef struct KilnTokenSpan {
    uint32_t begin, end;
} KilnTokenSpan;

/* The tokens of a text. A zeroed one is ready. An encoding keeps its memory, and a cache of words,
 * for the next text: use one per thread for many texts. */
typedef struct KilnEncoding {
    int32_t *ids;
    KilnTokenSpan *spans; /* of KILN_OFFSETS_NONE: undefined */
    uint8_t *types;       /* type ids, mostly 0 for the first text and 1 for the second */
    uint8_t *special;     /* 1: a special token that was added */
    uint8_t *sequences;   /* 0 the first text, 1 the second; 255: an added special token */
    size_t n, capacity;
    struct KilnEncodingWork *work; /* the tokenizer's */
} KilnEncoding;

/* Make room for `n` tokens in all arrays; KILN_E_NOMEM. */
KILN_API KILN_NODISCARD KilnStatus kiln_encoding_reserve(KilnEncoding *encoding, size_t n,
                                                         KilnError *err);
/* Free the memory; zeroed afterwards. */
KILN_API void kiln_encoding_release(KilnEncoding *encoding);

/* ---- Components ------------------------------------------------------------------------------ */

/* Tokens with a role of their own. */
typedef enum KilnSpecialToken {
    KILN_TOKEN_PAD,
    KILN_TOKEN_BOS, /* begins a text */
    KILN_TOKEN_EOS, /* ends a text */
    KILN_TOKEN_UNK, /* stands for what the vocabulary lacks */
    KILN_TOKEN_MASK
} KilnSpecialToken;

/* All but `spell` are required. Functions with a const instance may be called from several threads
 * at once, after `train` or `open` has succeeded. */
struct KilnTokenizerOps {
    /* Learn the vocabulary. KILN_E_MISSING: there are no texts; KILN_E_FORMAT: not UTF-8. */
    KilnStatus (*train)(KilnInstance *self, const KilnTexts *texts, const KilnPoll *poll,
                        KilnError *err);
    /* Read what `save` wrote. */
    KilnStatus (*open)(KilnInstance *self, const char *path, KilnError *err);
    /* Write everything that encoding needs to a file, atomically. */
    KilnStatus (*save)(const KilnInstance *self, const char *path, KilnError *err);
    /* Replace the tokens in `ret`. KILN_E_FORMAT: not UTF-8, with the byte offset. */
    KilnStatus (*encode)(const KilnInstance *self, const KilnTokenizerInput *input,
                         KilnEncoding *ret, KilnError *err);
    /* Append the text of `n` ids, without special tokens if `skip_special`. Ids that the vocabulary
     * lacks are left out. */
    KilnStatus (*decode)(const KilnInstance *self, const int32_t *ids, size_t n, bool skip_special,
                         KilnText *ret, KilnError *err);
    /* Ids are 0 to size - 1. */
    int64_t (*size)(const KilnInstance *self);
    /* The token of an id, borrowed; length 0: there is none. */
    KilnString (*token)(const KilnInstance *self, int64_t id);
    /* The id of a token; -1: there is none. */
    int64_t (*id)(const KilnInstance *self, KilnString token);
    /* The id of the token with that role; -1: there is none. */
    int64_t (*special)(const KilnInstance *self, KilnSpecialToken role);
    /* Optional: append the text that each token of `encode` stands for, each followed by a NUL, for
     * people to read. For ids that are no text's alone, such as hash values. NULL: the text of an
     * id is that of `decode`, or its `token`. */
    KilnStatus (*spell)(const KilnInstance *self, const KilnTokenizerInput *input, KilnText *ret,
                        KilnError *err);
};

/* The functions of a tokenizer's table, for datamodules and tasks. */
KILN_API KILN_NODISCARD KilnStatus kiln_tokenizer_train(KilnInstance *tokenizer,
                                                        const KilnTexts *texts,
                                                        const KilnPoll *poll, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_tokenizer_open(KilnInstance *tokenizer, const char *path,
                                                       KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_tokenizer_save(const KilnInstance *tokenizer,
                                                       const char *path, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_tokenizer_encode(const KilnInstance *tokenizer,
                                                         const KilnTokenizerInput *input,
                                                         KilnEncoding *ret, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_tokenizer_decode(const KilnInstance *tokenizer,
                                                         const int32_t *ids, size_t n,
                                                         bool skip_special, KilnText *ret,
                                                         KilnError *err);
KILN_API int64_t kiln_tokenizer_size(const KilnInstance *tokenizer);
KILN_API KilnString kiln_tokenizer_token(const KilnInstance *tokenizer, int64_t id);
KILN_API int64_t kiln_tokenizer_id(const KilnInstance *tokenizer, KilnString token);
KILN_API int64_t kiln_tokenizer_special(const KilnInstance *tokenizer, KilnSpecialToken role);
/* Append the text of each token that kiln_tokenizer_encode makes of `input`, each followed by a
 * NUL. */
KILN_API KILN_NODISCARD KilnStatus kiln_tokenizer_spell(const KilnInstance *tokenizer,
                                                        const KilnTokenizerInput *input,
                                                        KilnText *ret, KilnError *err);
/* Append the text of one id: decoded, or its token where that is empty; nothing if it has none. */
KILN_API KILN_NODISCARD KilnStatus kiln_tokenizer_spell_id(const KilnInstance *tokenizer,
                                                           int32_t id, KilnText *ret,
                                                           KilnError *err);

/* ---- Decoding as tokens arrive --------------------------------------------------------------- */

/* The state of a text that is decoded token by token, such as a generated one. A zeroed one is
 * ready. */
typedef struct KilnDecodeStream {
    int32_t *ids; /* whose text is not complete, and some before them */
    size_t n, capacity, shown;
    KilnText before;
} KilnDecodeStream;

/* Append to `ret` the text that `id` completes; nothing while a character is incomplete. All parts
 * together are the text of all ids, except that an incomplete character at the end is missing. */
KILN_API KILN_NODISCARD KilnStatus kiln_tokenizer_decode_next(const KilnInstance *tokenizer,
                                                              KilnDecodeStream *stream, int32_t id,
                                                              bool skip_special, KilnText *ret,
                                                              KilnError *err);
KILN_API void kiln_decode_stream_release(KilnDecodeStream *stream);

#endif
