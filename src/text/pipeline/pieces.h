/* A text on its way to tokens: normalized, split into pieces, with the part of the original that
 * each byte came from. */
#ifndef KILN_TEXT_PIPELINE_PIECES_H
#define KILN_TEXT_PIPELINE_PIECES_H

#include "kiln/tokenizer.h"
#include "text/unicode/normal_form.h"

/* A part of the text that the model gets as a whole; or an added token. */
typedef struct KilnTextPiece {
    size_t at, n;    /* bytes of the normalized text */
    uint32_t origin; /* where it begins in the original */
    int32_t id;      /* an added token; -1: text */
} KilnTextPiece;

/* A part of a piece that a pattern matches, or one between matches. */
typedef struct KilnMatch {
    size_t begin, end;
    bool matches;
} KilnMatch;

/* A text in UTF-8, maybe with the original's bytes of the character that each byte came from. */
typedef struct KilnAlignedText {
    char *text;
    uint32_t *begin, *end;
    size_t n, capacity, begin_capacity, end_capacity;
} KilnAlignedText;

typedef struct KilnPieces {
    const char *text;            /* the original, or that of buffers[current] */
    const uint32_t *begin, *end; /* NULL: the text is the original */
    size_t n_text;
    KilnTextPiece *items, *next;
    size_t n, capacity, n_next, next_capacity;
    KilnAlignedText buffers[2];
    int current;
    KilnMatch *matches;
    size_t n_matches, matches_capacity;
    KilnCharChanges changes;
    bool failed; /* memory ran out */
} KilnPieces;

/* Begin with the whole text as one piece, without one if it is empty. Borrowed. */
void kiln_pieces_start(KilnPieces *pieces, KilnString text);
void kiln_pieces_release(KilnPieces *pieces);
/* The original's bytes of the character that byte `at` of the text came from. */
uint32_t kiln_pieces_begin(const KilnPieces *pieces, size_t at);
uint32_t kiln_pieces_end(const KilnPieces *pieces, size_t at);

/* ---- Splitting ------------------------------------------------------------------------------- */

typedef enum KilnSplitBehavior {
    KILN_SPLIT_REMOVED,
    KILN_SPLIT_ISOLATED,
    KILN_SPLIT_MERGED_WITH_PREVIOUS,
    KILN_SPLIT_MERGED_WITH_NEXT,
    KILN_SPLIT_CONTIGUOUS
} KilnSplitBehavior;

/* Append a match to pieces->matches, and the part between the last one and it. */
void kiln_pieces_match(KilnPieces *pieces, size_t begin, size_t end, bool invert);
/* Find the matches in a piece's text of `n` > 0 bytes; the part after the last is added by the
 * caller. */
typedef KilnStatus KilnMatcher(const void *ctx, KilnPieces *pieces, const char *text, size_t n,
                               bool invert, KilnError *err);
/* Split all pieces of text at the matches. */
KILN_NODISCARD KilnStatus kiln_pieces_split(KilnPieces *pieces, KilnMatcher *find, const void *ctx,
                                            bool invert, KilnSplitBehavior behavior,
                                            KilnError *err);
/* Append to the pieces that replace the current ones: a part of `whole`, an added token (id >= 0)
 * or text. kiln_pieces_replace then puts them in place. */
void kiln_pieces_add(KilnPieces *pieces, const KilnTextPiece *whole, size_t begin, size_t end,
                     int32_t id);
void kiln_pieces_replace(KilnPieces *pieces);

/* ---- Changing -------------------------------------------------------------------------------- */

/* Fill pieces->changes for a piece of text; *ret_removed: characters that are removed before the
 * first change. False: the piece stays as it is. */
typedef bool KilnChanger(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                         size_t *ret_removed);
void kiln_pieces_change(KilnPieces *pieces, KilnChanger *change, const void *ctx);
/* Replace the matches of a pattern in all pieces by `content`. */
KILN_NODISCARD KilnStatus kiln_pieces_substitute(KilnPieces *pieces, KilnMatcher *find,
                                                 const void *ctx, const char *content,
                                                 KilnError *err);
/* Put `prefix` before a piece, in its changes. */
void kiln_pieces_prefix(KilnPieces *pieces, const KilnTextPiece *piece, const char *prefix);

#endif
