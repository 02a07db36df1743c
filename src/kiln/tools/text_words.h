/* The words of sentences, where they are in the text, and their ids; for datamodules that tag words
 * (datamodules/tagged_text.c). */
#ifndef KILN_TEXT_WORDS_H
#define KILN_TEXT_WORDS_H

#include "kiln/data.h"
#include "kiln/files/text_records.h"

/* A word in a text: bytes, and characters (code points) [begin, end). */
typedef struct KilnWord {
    size_t at, length;
    int32_t begin, end;
} KilnWord;

/* The words of a sentence. A zeroed one is ready; it keeps its memory for the next sentence. */
typedef struct KilnWords {
    KilnText text;
    KilnWord *list;
    size_t n, capacity;
} KilnWords;

/* True: a column's value is a list (KILN_RECORDS_ITEM_END). */
KILN_API bool kiln_value_is_list(KilnString value);
/* The next item of a column's value, which is a list or has items that white space separates:
 * advances *rest and returns true; false: there is none left. */
KILN_API bool kiln_value_next_item(KilnString *rest, bool list, KilnString *ret);

/* The words of a column's value; the text of a list is its items with spaces between them. */
KILN_API KILN_NODISCARD KilnStatus kiln_words_of_value(KilnWords *words, KilnString value,
                                                       KilnError *err);
/* Their text, owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_words_text_of_value(KilnString value, char **ret,
                                                            KilnError *err);
/* The words of a text: the tokens of `splitter`, or, if it is NULL, what white space separates. */
KILN_API KILN_NODISCARD KilnStatus kiln_words_of_text(KilnWords *words,
                                                      const KilnInstance *splitter, KilnString text,
                                                      KilnError *err);
/* KILN_E_MISSING if there is no word, or an empty one; KILN_E_RANGE if there are more than
 * `max_length`. */
KILN_API KILN_NODISCARD KilnStatus kiln_words_check(const KilnWords *words, int64_t max_length,
                                                    KilnError *err);
/* Word i, borrowed from `words`. */
KILN_API KilnString kiln_words_at(const KilnWords *words, size_t i);
/* Check the form of the tag of word i: KILN_E_FORMAT if there is no such word, KILN_E_MISSING if
 * the tag is empty, KILN_E_TYPE if it has white space in it. */
KILN_API KILN_NODISCARD KilnStatus kiln_words_check_tag(const KilnWords *words, size_t i,
                                                        KilnString tag, KilnError *err);
/* Free the memory; zeroed afterwards. */
KILN_API void kiln_words_release(KilnWords *words);

/* ---- Ids ------------------------------------------------------------------------------------- */

typedef struct KilnWordEncode {
    const KilnInstance *tokenizer;  /* makes the tokens of a word */
    const KilnInstance *characters; /* makes ids of its characters; NULL: there are none */
    bool pieces;                    /* a word may have several tokens, else it has one */
    int64_t max_length;             /* the most tokens of a sentence */
    int64_t word_length;            /* the most characters of a word; later ones are cut */
} KilnWordEncode;

/* Sentences as ids, one after the other. A zeroed one is ready. */
typedef struct KilnWordIds {
    int64_t n, n_words, n_tokens, n_characters;
    int64_t *first_word, *first_token; /* [n + 1]: of each sentence, its first word and token */
    int32_t *tokens;
    int32_t *first_tokens;    /* of each word: which token of its sentence its first one is */
    int32_t *spans;           /* of each word: its characters [begin, end) in the text */
    int64_t *first_character; /* [n_words + 1] */
    int32_t *characters;
    size_t room[7];
    KilnEncoding work[2];
} KilnWordIds;

/* Append a sentence. A word without tokens has that of KILN_TOKEN_UNK, or 0. KILN_E_FORMAT: a word
 * has several tokens, but no pieces; KILN_E_RANGE: there are too many. After a failure the
 * sentences are those before. */
KILN_API KILN_NODISCARD KilnStatus kiln_word_ids_append(KilnWordIds *to,
                                                        const KilnWordEncode *encode,
                                                        const KilnWords *words, KilnError *err);

/* The features of a sentence. */
typedef enum KilnWordFeature {
    KILN_WORD_TOKENS,       /* "tokens" i32 [tokens] */
    KILN_WORD_FIRST_TOKENS, /* "first_tokens" i32 [words] */
    KILN_WORD_CHARACTERS,   /* "characters" i32 [words, word_length] */
    KILN_WORD_SPANS,        /* "words" i32 [words, 2] */
} KilnWordFeature;
KILN_API KilnFeature kiln_word_ids_feature(const KilnWordEncode *encode, KilnWordFeature feature);
/* Where they go; NULL: not wanted. */
typedef struct KilnWordFeatures {
    int32_t *tokens, *first_tokens, *characters, *spans;
} KilnWordFeatures;
/* Write those of sentence i. */
KILN_API void kiln_word_ids_write(const KilnWordIds *ids, const KilnWordEncode *encode, int64_t i,
                                  const KilnWordFeatures *ret);
/* Write the characters of sentence i to ret[words, word_length], padded with 0. */
KILN_API void kiln_word_ids_characters(const KilnWordIds *ids, const KilnWordEncode *encode,
                                       int64_t i, int32_t *ret);
/* Free the memory; zeroed afterwards. */
KILN_API void kiln_word_ids_release(KilnWordIds *ids);

#endif
