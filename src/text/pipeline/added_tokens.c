/* Added tokens: found in the text before the model sees it. */
#include <string.h>

#include "text/pipeline/pipeline.h"
#include "text/unicode/characters.h"

const KilnAddedToken *kiln_added_token_at(const KilnAddedTokens *added, int64_t id)
{
    if (id < 0 || (size_t)id >= added->by_content.n || added->index[id] < 0)
        return NULL;
    return &added->items[added->index[id]];
}

/* The longest token that begins at `at`; NULL: none. */
static const KilnAddedToken *token_at(const KilnAddedTokens *added, bool normalized,
                                      const char *text, size_t n, size_t at)
{
    const KilnAddedToken *best = NULL;

    if (!added->starts[normalized][(unsigned char)text[at]])
        return NULL;
    for (size_t i = 0; i < added->n; i++) {
        const KilnAddedToken *token = &added->items[i];

        if (token->normalized == normalized && token->pattern_length <= n - at &&
            token->pattern_length > 0 &&
            (best == NULL || token->pattern_length > best->pattern_length) &&
            memcmp(text + at, token->pattern, token->pattern_length) == 0)
            best = token;
    }
    return best;
}

/* Whether no word character touches the token. */
static bool is_single(const char *text, size_t n, size_t begin, size_t end)
{
    uint32_t c;

    if (begin > 0) {
        kiln_utf8_read_last(text, begin, &c);
        if (kiln_char_is_word(c))
            return false;
    }
    if (end < n) {
        kiln_utf8_read(text + end, &c);
        if (kiln_char_is_word(c))
            return false;
    }
    return true;
}

/* Include the white space before `begin`, down to `least`, and that after `end`. */
static void widen(const KilnAddedToken *token, const char *text, size_t n, size_t least,
                  size_t *begin, size_t *end)
{
    uint32_t c;

    while (token->lstrip && *begin > least) {
        const size_t length = kiln_utf8_read_last(text, *begin, &c);

        if (!kiln_char_is_space(c))
            break;
        *begin -= length;
    }
    while (token->rstrip && *end < n) {
        const size_t length = kiln_utf8_read(text + *end, &c);

        if (!kiln_char_is_space(c))
            break;
        *end += length;
    }
}

static void split_piece(const KilnAddedTokens *added, bool normalized, KilnPieces *pieces,
                        const KilnTextPiece *piece)
{
    const char *text = pieces->text + piece->at;
    size_t done = 0;

    for (size_t at = 0; at < piece->n;) {
        const KilnAddedToken *token = token_at(added, normalized, text, piece->n, at);

        if (token == NULL) {
            at++;
            continue;
        }
        size_t begin = at, end = at + token->pattern_length;

        at = end;
        if (token->single_word && !is_single(text, piece->n, begin, end))
            continue;
        widen(token, text, piece->n, done, &begin, &end);
        if (done < begin)
            kiln_pieces_add(pieces, piece, done, begin, -1);
        kiln_pieces_add(pieces, piece, begin, end, token->id);
        done = end;
        at = at > end ? at : end;
    }
    kiln_pieces_add(pieces, piece, done, piece->n, -1);
}

void kiln_added_tokens_split(const KilnAddedTokens *added, bool normalized, KilnPieces *pieces)
{
    for (size_t i = 0; i < pieces->n && !pieces->failed; i++) {
        const KilnTextPiece piece = pieces->items[i];

        if (piece.id >= 0)
            kiln_pieces_add(pieces, &piece, 0, piece.n, piece.id);
        else
            split_piece(added, normalized, pieces, &piece);
    }
    kiln_pieces_replace(pieces);
}
