/* Keeps the alignment of a text while it is changed and split, as Hugging Face's NormalizedString
 * does. */
#include "text/pipeline/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/unicode/characters.h"

void kiln_pieces_start(KilnPieces *pieces, KilnString text)
{
    pieces->text = text.data;
    pieces->begin = pieces->end = NULL;
    pieces->n_text = text.length;
    pieces->n = pieces->n_next = 0;
    pieces->failed = false;
    if (text.length == 0)
        return;
    if (!KILN_RESERVE(pieces->items, pieces->capacity, 1)) {
        pieces->failed = true;
        return;
    }
    pieces->items[pieces->n++] = (KilnTextPiece) { .n = text.length, .id = -1 };
}

void kiln_pieces_release(KilnPieces *pieces)
{
    for (int i = 0; i < 2; i++) {
        free(pieces->buffers[i].text);
        free(pieces->buffers[i].begin);
        free(pieces->buffers[i].end);
    }
    free(pieces->items);
    free(pieces->next);
    free(pieces->matches);
    free(pieces->changes.items);
    *pieces = (KilnPieces) { 0 };
}

uint32_t kiln_pieces_begin(const KilnPieces *pieces, size_t at)
{
    if (pieces->begin != NULL)
        return pieces->begin[at];
    while (at > 0 && ((unsigned char)pieces->text[at] & 0xc0) == 0x80)
        at--;
    return (uint32_t)at;
}

uint32_t kiln_pieces_end(const KilnPieces *pieces, size_t at)
{
    if (pieces->end != NULL)
        return pieces->end[at];
    for (at++; at < pieces->n_text && ((unsigned char)pieces->text[at] & 0xc0) == 0x80;)
        at++;
    return (uint32_t)at;
}

/* ---- Splitting ------------------------------------------------------------------------------- */

static void put_match(KilnPieces *pieces, size_t begin, size_t end, bool matches)
{
    if (!KILN_RESERVE(pieces->matches, pieces->matches_capacity, pieces->n_matches + 1)) {
        pieces->failed = true;
        return;
    }
    pieces->matches[pieces->n_matches++] = (KilnMatch) { begin, end, matches };
}

void kiln_pieces_match(KilnPieces *pieces, size_t begin, size_t end, bool invert)
{
    const size_t before = pieces->n_matches > 0 ? pieces->matches[pieces->n_matches - 1].end : 0;

    if (before < begin)
        put_match(pieces, before, begin, invert);
    put_match(pieces, begin, end, !invert);
}

static KilnStatus find_matches(KilnPieces *pieces, KilnMatcher *find, const void *ctx, bool invert,
                               const KilnTextPiece *piece, KilnError *err)
{
    pieces->n_matches = 0;
    KilnStatus status = find(ctx, pieces, pieces->text + piece->at, piece->n, invert, err);
    if (status < 0 || pieces->failed)
        return status;
    const size_t last = pieces->n_matches > 0 ? pieces->matches[pieces->n_matches - 1].end : 0;

    if (last < piece->n)
        put_match(pieces, last, piece->n, invert);
    return KILN_OK;
}

/* Join matches to their neighbours in place. */
static void join_matches(KilnPieces *pieces, KilnSplitBehavior behavior)
{
    const bool backward = behavior == KILN_SPLIT_MERGED_WITH_NEXT;
    const size_t n = pieces->n_matches;
    KilnMatch *list = pieces->matches;
    bool previous = false;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        const KilnMatch item = list[backward ? n - 1 - i : i];
        const bool joins = behavior == KILN_SPLIT_CONTIGUOUS ? item.matches == previous
                                                             : item.matches && !previous;
        KilnMatch *last = kept == 0 ? NULL : backward ? &list[n - kept] : &list[kept - 1];

        previous = item.matches;
        if (joins && last != NULL && backward)
            last->begin = item.begin;
        else if (joins && last != NULL)
            last->end = item.end;
        else
            list[backward ? n - 1 - kept++ : kept++] = item;
    }
    if (backward)
        memmove(list, list + (n - kept), kept * sizeof(*list));
    pieces->n_matches = kept;
}

void kiln_pieces_add(KilnPieces *pieces, const KilnTextPiece *whole, size_t begin, size_t end,
                     int32_t id)
{
    if (begin == end)
        return;
    if (!KILN_RESERVE(pieces->next, pieces->next_capacity, pieces->n_next + 1)) {
        pieces->failed = true;
        return;
    }
    pieces->next[pieces->n_next++] = (KilnTextPiece) {
        .at = whole->at + begin,
        .n = end - begin,
        .origin = kiln_pieces_begin(pieces, whole->at + begin),
        .id = id,
    };
}

void kiln_pieces_replace(KilnPieces *pieces)
{
    KilnTextPiece *items = pieces->items;
    const size_t capacity = pieces->capacity;

    pieces->items = pieces->next;
    pieces->capacity = pieces->next_capacity;
    pieces->n = pieces->n_next;
    pieces->next = items;
    pieces->next_capacity = capacity;
    pieces->n_next = 0;
}

KilnStatus kiln_pieces_split(KilnPieces *pieces, KilnMatcher *find, const void *ctx, bool invert,
                             KilnSplitBehavior behavior, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < pieces->n && status >= 0 && !pieces->failed; i++) {
        const KilnTextPiece piece = pieces->items[i];

        if (piece.id >= 0) {
            kiln_pieces_add(pieces, &piece, 0, piece.n, piece.id);
            continue;
        }
        if (piece.n == 0)
            continue;
        status = find_matches(pieces, find, ctx, invert, &piece, err);
        if (behavior >= KILN_SPLIT_MERGED_WITH_PREVIOUS && status >= 0)
            join_matches(pieces, behavior);
        for (size_t k = 0; k < pieces->n_matches && status >= 0; k++)
            if (behavior != KILN_SPLIT_REMOVED || !pieces->matches[k].matches)
                kiln_pieces_add(pieces, &piece, pieces->matches[k].begin, pieces->matches[k].end,
                                -1);
    }
    kiln_pieces_replace(pieces);
    return status;
}

/* ---- Changing -------------------------------------------------------------------------------- */

/* Room for `n` more bytes. */
static bool reserve(KilnPieces *pieces, KilnAlignedText *out, size_t n)
{
    if (KILN_RESERVE(out->text, out->capacity, out->n + n) &&
        KILN_RESERVE(out->begin, out->begin_capacity, out->n + n) &&
        KILN_RESERVE(out->end, out->end_capacity, out->n + n))
        return true;
    pieces->failed = true;
    return false;
}

static void copy_bytes(KilnPieces *pieces, KilnAlignedText *out, size_t at, size_t n)
{
    if (n == 0 || !reserve(pieces, out, n))
        return;
    memcpy(out->text + out->n, pieces->text + at, n);
    for (size_t i = 0; i < n; i++) {
        out->begin[out->n + i] = kiln_pieces_begin(pieces, at + i);
        out->end[out->n + i] = kiln_pieces_end(pieces, at + i);
    }
    out->n += n;
}

static void put_char(KilnPieces *pieces, KilnAlignedText *out, uint32_t character, uint32_t begin,
                     uint32_t end)
{
    if (!reserve(pieces, out, 4))
        return;
    const size_t length = kiln_utf8_write(character, out->text + out->n);

    for (size_t i = 0; i < length; i++) {
        out->begin[out->n + i] = begin;
        out->end[out->n + i] = end;
    }
    out->n += length;
}

/* Bytes of the next `count` characters of the piece from byte `from` on. */
static size_t bytes_of(const KilnPieces *pieces, const KilnTextPiece *piece, size_t from,
                       size_t count)
{
    size_t at = from;
    uint32_t c;

    while (count-- > 0 && at < piece->n)
        at += kiln_utf8_read(pieces->text + piece->at + at, &c);
    return at - from;
}

static void apply(KilnPieces *pieces, KilnAlignedText *out, const KilnTextPiece *piece,
                  size_t removed)
{
    size_t at = bytes_of(pieces, piece, 0, removed); /* in the piece */

    for (size_t i = 0; i < pieces->changes.n && !pieces->failed; i++) {
        const KilnCharChange change = pieces->changes.items[i];
        const bool added = change.change > 0;
        uint32_t begin = piece->origin, end = begin;

        if (!added || at > 0) {
            const size_t from = piece->at + (added ? at - 1 : at);

            begin = kiln_pieces_begin(pieces, from);
            end = kiln_pieces_end(pieces, from);
        }
        put_char(pieces, out, change.character, begin, end);
        if (!added)
            at += bytes_of(pieces, piece, at, 1 + (size_t)-change.change);
    }
}

/* The buffer that is not in use, emptied. */
static KilnAlignedText *other_buffer(KilnPieces *pieces)
{
    KilnAlignedText *out = &pieces->buffers[pieces->begin == NULL ? 0 : 1 - pieces->current];

    out->n = 0;
    return out;
}

static void use_buffer(KilnPieces *pieces, KilnAlignedText *out)
{
    pieces->current = (int)(out - pieces->buffers);
    pieces->text = out->text;
    pieces->begin = out->begin;
    pieces->end = out->end;
    pieces->n_text = out->n;
}

/* Copy pieces as they are. */
static void copy_pieces(KilnPieces *pieces, KilnAlignedText *out, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const size_t at = out->n;

        copy_bytes(pieces, out, pieces->items[i].at, pieces->items[i].n);
        pieces->items[i].at = at;
    }
}

void kiln_pieces_change(KilnPieces *pieces, KilnChanger *change, const void *ctx)
{
    KilnAlignedText *out = other_buffer(pieces);
    bool changed = false;

    for (size_t i = 0; i < pieces->n && !pieces->failed; i++) {
        const KilnTextPiece piece = pieces->items[i];
        size_t removed = 0;

        pieces->changes.n = 0;
        const bool changes = piece.id < 0 && piece.n > 0 && change(ctx, pieces, &piece, &removed);
        if (changes && !changed)
            copy_pieces(pieces, out, 0, i);
        changed = changed || changes;
        if (changes) {
            pieces->items[i].at = out->n;
            apply(pieces, out, &piece, removed);
            pieces->items[i].n = out->n - pieces->items[i].at;
        } else if (changed) {
            copy_pieces(pieces, out, i, i + 1);
        }
        pieces->failed = pieces->failed || pieces->changes.failed;
    }
    if (changed && reserve(pieces, out, 1))
        use_buffer(pieces, out);
}

KilnStatus kiln_pieces_substitute(KilnPieces *pieces, KilnMatcher *find, const void *ctx,
                                  const char *content, KilnError *err)
{
    KilnAlignedText *out = other_buffer(pieces);
    const size_t length = strlen(content);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < pieces->n && status >= 0 && !pieces->failed; i++) {
        KilnTextPiece *piece = &pieces->items[i];
        const size_t at = out->n;

        pieces->n_matches = 0;
        if (piece->id < 0 && piece->n > 0)
            status = find_matches(pieces, find, ctx, false, piece, err);
        else
            put_match(pieces, 0, piece->n, false);
        for (size_t k = 0; k < pieces->n_matches && status >= 0 && !pieces->failed; k++) {
            const KilnMatch match = pieces->matches[k];
            const size_t last = piece->at + match.end - 1;
            uint32_t c;

            if (!match.matches)
                copy_bytes(pieces, out, piece->at + match.begin, match.end - match.begin);
            for (size_t b = 0; match.matches && b < length;) {
                b += kiln_utf8_read(content + b, &c);
                put_char(pieces, out, c,
                         match.end > 0 ? kiln_pieces_begin(pieces, last) : piece->origin,
                         match.end > 0 ? kiln_pieces_end(pieces, last) : piece->origin);
            }
        }
        piece->at = at;
        piece->n = out->n - at;
    }
    if (status >= 0 && reserve(pieces, out, 1))
        use_buffer(pieces, out);
    return status;
}

void kiln_pieces_prefix(KilnPieces *pieces, const KilnTextPiece *piece, const char *prefix)
{
    uint32_t c;

    /* The prefix takes the place of the first character, which is added after it. */
    for (const char *p = prefix; *p != '\0';) {
        const bool first = p == prefix;

        p += kiln_utf8_read(p, &c);
        kiln_char_changes_add(&pieces->changes, c, first ? 0 : 1);
    }
    for (size_t at = 0; at < piece->n;) {
        const bool first = at == 0;

        at += kiln_utf8_read(pieces->text + piece->at + at, &c);
        kiln_char_changes_add(&pieces->changes, c, first ? 1 : 0);
    }
}
