/* Pre-tokenizers: each splits the pieces into smaller ones. */
#include <string.h>

#include "text/pipeline/byte_level.h"
#include "text/pipeline/pipeline_steps.h"
#include "text/unicode/characters.h"

/* ---- Matchers -------------------------------------------------------------------------------- */

KilnStatus kiln_regex_matches(const void *ctx, KilnPieces *pieces, const char *text, size_t n,
                              bool invert, KilnError *err)
{
    KilnStatus status = KILN_OK;
    size_t last = SIZE_MAX; /* the end of the match before */

    for (size_t from = 0; from <= n && status >= 0;) {
        bool found = false;
        size_t begin = 0, end = 0;

        status = kiln_regex_find(ctx, text, n, from, &found, &begin, &end, err);
        if (status < 0 || !found)
            break;
        if (end > begin || begin != last)
            kiln_pieces_match(pieces, begin, end, invert);
        last = from = end;
        if (end == begin) { /* an empty match: continue after the next character */
            uint32_t c;

            from += end < n ? kiln_utf8_read(text + end, &c) : 1;
        }
    }
    return status;
}

typedef bool Class(uint32_t c);

/* Each character of a class is a match. */
static KilnStatus match_class(Class *class, KilnPieces *pieces, const char *text, size_t n,
                              bool invert)
{
    for (size_t at = 0, length; at < n; at += length) {
        uint32_t c;

        length = kiln_utf8_read(text + at, &c);
        if (class(c))
            kiln_pieces_match(pieces, at, at + length, invert);
    }
    return KILN_OK;
}

#define MATCHER(name, class)                                                                       \
    static KilnStatus name(const void *ctx, KilnPieces *pieces, const char *text, size_t n,        \
                           bool invert, KilnError *err)                                            \
    {                                                                                              \
        (void)ctx;                                                                                 \
        (void)err;                                                                                 \
        return match_class(class, pieces, text, n, invert);                                        \
    }
MATCHER(match_spaces, kiln_char_is_space)
MATCHER(match_punctuation, kiln_char_is_punctuation)
MATCHER(match_digits, kiln_char_is_number)

/* Each occurrence of the step's character. */
static KilnStatus match_character(const void *ctx, KilnPieces *pieces, const char *text, size_t n,
                                  bool invert, KilnError *err)
{
    const char *character = ((const KilnPreTokenizer *)ctx)->replacement;
    const size_t length = strlen(character);

    (void)err;
    for (size_t at = 0; at + length <= n; at++)
        if (memcmp(text + at, character, length) == 0)
            kiln_pieces_match(pieces, at, at + length, invert);
    return KILN_OK;
}

/* \w+|[^\w\s]+ */
static KilnStatus match_words(const void *ctx, KilnPieces *pieces, const char *text, size_t n,
                              bool invert, KilnError *err)
{
    size_t begin = 0;
    int last = 0; /* the class of the run that began there: 0 space, 1 word, 2 other */

    (void)ctx;
    (void)err;
    for (size_t at = 0, length; at < n; at += length) {
        uint32_t c;

        length = kiln_utf8_read(text + at, &c);
        const int class = kiln_char_is_word(c) ? 1 : kiln_char_is_space(c) ? 0 : 2;
        if (class == last)
            continue;
        if (last != 0)
            kiln_pieces_match(pieces, begin, at, invert);
        begin = at;
        last = class;
    }
    if (last != 0)
        kiln_pieces_match(pieces, begin, n, invert);
    return KILN_OK;
}

static KilnStatus match_gpt2(const void *ctx, KilnPieces *pieces, const char *text, size_t n,
                             bool invert, KilnError *err)
{
    (void)ctx;
    (void)err;
    for (size_t at = 0; at < n;) {
        const size_t end = kiln_gpt2_word(text, n, at);

        kiln_pieces_match(pieces, at, end, invert);
        at = end;
    }
    return KILN_OK;
}

/* ---- ByteLevel ------------------------------------------------------------------------------- */

static bool change_prefix_space(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                                size_t *ret_removed)
{
    (void)ctx;
    (void)ret_removed;
    if (pieces->text[piece->at] == ' ')
        return false;
    kiln_pieces_prefix(pieces, piece, " ");
    return true;
}

/* Each byte as the character that stands for it. */
static bool change_to_bytes(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                            size_t *ret_removed)
{
    (void)ctx;
    (void)ret_removed;
    for (size_t i = 0; i < piece->n; i++) {
        const uint8_t byte = (uint8_t)pieces->text[piece->at + i];
        char character[4];
        uint32_t c;

        kiln_byte_char(byte, character);
        kiln_utf8_read(character, &c);
        kiln_char_changes_add(&pieces->changes, c, (byte & 0xc0) == 0x80);
    }
    return true;
}

static KilnStatus apply_byte_level(const KilnPreTokenizer *step, KilnPieces *pieces, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (step->add_prefix_space)
        kiln_pieces_change(pieces, change_prefix_space, NULL);
    if (step->use_regex)
        status = kiln_pieces_split(pieces, match_gpt2, NULL, false, KILN_SPLIT_ISOLATED, err);
    if (status >= 0 && !step->raw)
        kiln_pieces_change(pieces, change_to_bytes, NULL);
    return status;
}

/* ---- Metaspace ------------------------------------------------------------------------------- */

static KilnStatus match_space(const void *ctx, KilnPieces *pieces, const char *text, size_t n,
                              bool invert, KilnError *err)
{
    (void)ctx;
    (void)err;
    for (size_t at = 0; at < n; at++)
        if (text[at] == ' ')
            kiln_pieces_match(pieces, at, at + 1, invert);
    return KILN_OK;
}

static bool change_metaspace_prefix(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                                    size_t *ret_removed)
{
    const KilnPreTokenizer *step = ctx;
    const size_t length = strlen(step->replacement);

    (void)ret_removed;
    if (step->prepend == KILN_PREPEND_FIRST && piece->origin != 0)
        return false;
    if (piece->n >= length && memcmp(pieces->text + piece->at, step->replacement, length) == 0)
        return false;
    kiln_pieces_prefix(pieces, piece, step->replacement);
    return true;
}

static KilnStatus apply_metaspace(const KilnPreTokenizer *step, KilnPieces *pieces, KilnError *err)
{
    KilnStatus status = kiln_pieces_substitute(pieces, match_space, NULL, step->replacement, err);

    if (status >= 0 && step->prepend != KILN_PREPEND_NEVER)
        kiln_pieces_change(pieces, change_metaspace_prefix, step);
    if (status >= 0 && step->split)
        status = kiln_pieces_split(pieces, match_character, step, false,
                                   KILN_SPLIT_MERGED_WITH_NEXT, err);
    return status;
}

KilnStatus kiln_pre_tokenizer_apply(const KilnPreTokenizer *step, KilnPieces *pieces,
                                    KilnError *err)
{
    KilnStatus status;

    switch (step->type) {
    case KILN_PRE_BYTE_LEVEL:
        return apply_byte_level(step, pieces, err);
    case KILN_PRE_BERT:
        status = kiln_pieces_split(pieces, match_spaces, NULL, false, KILN_SPLIT_REMOVED, err);
        return status < 0 ? status
                          : kiln_pieces_split(pieces, match_punctuation, NULL, false,
                                              KILN_SPLIT_ISOLATED, err);
    case KILN_PRE_WHITESPACE:
        return kiln_pieces_split(pieces, match_words, NULL, true, KILN_SPLIT_REMOVED, err);
    case KILN_PRE_WHITESPACE_SPLIT:
        return kiln_pieces_split(pieces, match_spaces, NULL, false, KILN_SPLIT_REMOVED, err);
    case KILN_PRE_METASPACE:
        return apply_metaspace(step, pieces, err);
    case KILN_PRE_SPLIT:
        return kiln_pieces_split(pieces, kiln_regex_matches, step->regex, step->invert,
                                 step->behavior, err);
    case KILN_PRE_PUNCTUATION:
        return kiln_pieces_split(pieces, match_punctuation, NULL, false, step->behavior, err);
    case KILN_PRE_DIGITS:
        return kiln_pieces_split(
            pieces, match_digits, NULL, false,
            step->individual_digits ? KILN_SPLIT_ISOLATED : KILN_SPLIT_CONTIGUOUS, err);
    default:
        return kiln_pieces_split(pieces, match_character, step, false, KILN_SPLIT_REMOVED, err);
    }
}
