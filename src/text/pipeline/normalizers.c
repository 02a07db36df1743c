/* Normalizers: each changes the characters of the pieces and keeps their alignment. */
#include <string.h>

#include "text/pipeline/pipeline_steps.h"
#include "text/unicode/characters.h"

static bool is_ascii(const char *text, size_t n)
{
    unsigned char any = 0;

    for (size_t i = 0; i < n; i++)
        any |= (unsigned char)text[i];
    return any < 0x80;
}

static bool change_form(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                        size_t *ret_removed)
{
    const char *text = pieces->text + piece->at;

    (void)ret_removed;
    if (is_ascii(text, piece->n))
        return false;
    kiln_normal_form(((const KilnNormalizer *)ctx)->form, text, piece->n, &pieces->changes);
    return true;
}

static bool change_lower(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                         size_t *ret_removed)
{
    (void)ctx;
    (void)ret_removed;
    for (size_t at = 0; at < piece->n;) {
        uint32_t c, lower[2];

        at += kiln_utf8_read(pieces->text + piece->at + at, &c);
        const int n = kiln_char_lower(c, lower);
        for (int i = 0; i < n; i++)
            kiln_char_changes_add(&pieces->changes, lower[i], i > 0);
    }
    return true;
}

/* ---- Removing characters --------------------------------------------------------------------- */

/* Map a character; UINT32_MAX removes it. */
typedef uint32_t Mapper(uint32_t c);

/* A removed character counts with the last one kept, and those before the first are `ret_removed`.
 */
static bool change_filtered(Mapper *map, KilnPieces *pieces, const KilnTextPiece *piece,
                            size_t *ret_removed)
{
    KilnCharChanges *changes = &pieces->changes;
    bool changed = false;

    for (size_t at = 0; at < piece->n && !changes->failed;) {
        uint32_t c;

        at += kiln_utf8_read(pieces->text + piece->at + at, &c);
        const uint32_t to = map(c);

        changed = changed || to != c;
        if (to != UINT32_MAX)
            kiln_char_changes_add(changes, to, 0);
        else if (changes->n > 0)
            changes->items[changes->n - 1].change--;
        else
            ++*ret_removed;
    }
    return changed;
}

static uint32_t without_marks(uint32_t c)
{
    return kiln_char_is_mark(c) ? UINT32_MAX : c;
}

static uint32_t without_nonspacing(uint32_t c)
{
    return kiln_char_is_nonspacing(c) ? UINT32_MAX : c;
}

static uint32_t bert_clean(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r')
        return ' ';
    if (c == 0 || c == 0xfffd || kiln_char_is_other(c))
        return UINT32_MAX;
    return kiln_char_is_space(c) ? ' ' : c;
}

static uint32_t nmt(uint32_t c)
{
    if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
        c == 0x9f)
        return UINT32_MAX;
    if (c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
        c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd)
        return ' ';
    return c;
}

#define FILTER(name, map)                                                                          \
    static bool name(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,              \
                     size_t *ret_removed)                                                          \
    {                                                                                              \
        (void)ctx;                                                                                 \
        return change_filtered(map, pieces, piece, ret_removed);                                   \
    }
FILTER(change_marks, without_marks)
FILTER(change_nonspacing, without_nonspacing)
FILTER(change_clean, bert_clean)
FILTER(change_nmt, nmt)

static bool change_strip(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                         size_t *ret_removed)
{
    const KilnNormalizer *step = ctx;
    const char *text = pieces->text + piece->at;
    size_t begin = 0, end = piece->n, trailing = 0;
    uint32_t c;

    while (step->left && begin < end) {
        const size_t length = kiln_utf8_read(text + begin, &c);

        if (!kiln_char_is_space(c))
            break;
        begin += length;
        ++*ret_removed;
    }
    while (step->right && end > begin) {
        const size_t length = kiln_utf8_read_last(text, end, &c);

        if (!kiln_char_is_space(c))
            break;
        end -= length;
        trailing++;
    }
    for (size_t at = begin; at < end;) {
        at += kiln_utf8_read(text + at, &c);
        kiln_char_changes_add(&pieces->changes, c, at == end ? -(int32_t)trailing : 0);
    }
    return begin > 0 || end < piece->n;
}

/* ---- BertNormalizer -------------------------------------------------------------------------- */

static bool is_chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool change_chinese(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                           size_t *ret_removed)
{
    const char *text = pieces->text + piece->at;
    bool changed = false;

    (void)ctx;
    (void)ret_removed;
    if (is_ascii(text, piece->n))
        return false;
    for (size_t at = 0; at < piece->n;) {
        uint32_t c;

        at += kiln_utf8_read(text + at, &c);
        const bool spaced = is_chinese(c);

        changed = changed || spaced;
        if (spaced)
            kiln_char_changes_add(&pieces->changes, ' ', 0);
        kiln_char_changes_add(&pieces->changes, c, spaced);
        if (spaced)
            kiln_char_changes_add(&pieces->changes, ' ', 1);
    }
    return changed;
}

static void apply_bert(const KilnNormalizer *step, KilnPieces *pieces)
{
    const KilnNormalizer decompose = { .form = KILN_NFD };

    if (step->clean_text)
        kiln_pieces_change(pieces, change_clean, NULL);
    if (step->handle_chinese_chars)
        kiln_pieces_change(pieces, change_chinese, NULL);
    if (step->strip_accents) {
        kiln_pieces_change(pieces, change_form, &decompose);
        kiln_pieces_change(pieces, change_nonspacing, NULL);
    }
    if (step->lowercase)
        kiln_pieces_change(pieces, change_lower, NULL);
}

/* ---- The others ------------------------------------------------------------------------------ */

static bool change_prepend(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                           size_t *ret_removed)
{
    const char *content = ((const KilnNormalizer *)ctx)->content;

    (void)ret_removed;
    if (*content == '\0')
        return false;
    kiln_pieces_prefix(pieces, piece, content);
    return true;
}

/* Replace `n` bytes of text by `content`. */
static void replace_part(KilnCharChanges *changes, const char *text, size_t n, const char *content)
{
    const size_t length = strlen(content);
    const size_t old_count = kiln_utf8_count(text, n), count = kiln_utf8_count(content, length);
    const size_t added = count > old_count ? count - old_count : 0;
    size_t i = 0;

    for (size_t at = 0; at < length; i++) {
        uint32_t c;

        at += kiln_utf8_read(content + at, &c);
        kiln_char_changes_add(changes, c, i >= count - added);
    }
    if (count < old_count && changes->n > 0)
        changes->items[changes->n - 1].change -= (int32_t)(old_count - count);
}

static bool change_precompiled(const void *ctx, KilnPieces *pieces, const KilnTextPiece *piece,
                               size_t *ret_removed)
{
    const KilnCharsmap *map = &((const KilnNormalizer *)ctx)->charsmap;
    const char *text = pieces->text + piece->at;
    bool changed = false;

    (void)ret_removed;
    for (size_t at = 0, length; at < piece->n; at += length) {
        length = kiln_grapheme_length(text + at, piece->n - at);
        const char *content = length < 6 ? kiln_charsmap_find(map, text + at, length) : NULL;

        changed = changed || content != NULL;
        if (content != NULL) {
            replace_part(&pieces->changes, text + at, length, content);
            continue;
        }
        for (size_t i = 0, n; i < length; i += n) {
            uint32_t c;

            n = kiln_utf8_read(text + at + i, &c);
            content = kiln_charsmap_find(map, text + at + i, n);
            changed = changed || content != NULL;
            if (content != NULL)
                replace_part(&pieces->changes, text + at + i, n, content);
            else
                kiln_char_changes_add(&pieces->changes, c, 0);
        }
    }
    return changed;
}

KilnStatus kiln_normalizer_apply(const KilnNormalizer *normalizer, KilnPieces *pieces,
                                 KilnError *err)
{
    switch (normalizer->type) {
    case KILN_NORMALIZE_FORM:
        kiln_pieces_change(pieces, change_form, normalizer);
        break;
    case KILN_NORMALIZE_LOWERCASE:
        kiln_pieces_change(pieces, change_lower, NULL);
        break;
    case KILN_NORMALIZE_STRIP:
        kiln_pieces_change(pieces, change_strip, normalizer);
        break;
    case KILN_NORMALIZE_STRIP_ACCENTS:
        kiln_pieces_change(pieces, change_marks, NULL);
        break;
    case KILN_NORMALIZE_BERT:
        apply_bert(normalizer, pieces);
        break;
    case KILN_NORMALIZE_REPLACE:
        return kiln_pieces_substitute(pieces, kiln_regex_matches, normalizer->regex,
                                      normalizer->content, err);
    case KILN_NORMALIZE_PREPEND:
        kiln_pieces_change(pieces, change_prepend, normalizer);
        break;
    case KILN_NORMALIZE_NMT:
        kiln_pieces_change(pieces, change_nmt, NULL);
        break;
    case KILN_NORMALIZE_PRECOMPILED:
        kiln_pieces_change(pieces, change_precompiled, normalizer);
        break;
    }
    return KILN_OK;
}
