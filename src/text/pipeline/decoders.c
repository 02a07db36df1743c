/* Decoders: from tokens back to text. */
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/pipeline/pipeline_steps.h"
#include "text/unicode/characters.h"

void kiln_token_texts_add(KilnTokenTexts *texts, const char *token, size_t n)
{
    kiln_text_append_n(&texts->text, token, n);
    if (texts->text.failed || !KILN_RESERVE(texts->ends, texts->capacity, texts->n + 1)) {
        texts->failed = true;
        return;
    }
    texts->ends[texts->n++] = texts->text.length;
}

KilnString kiln_token_texts_at(const KilnTokenTexts *texts, size_t i)
{
    const size_t begin = i > 0 ? texts->ends[i - 1] : 0;

    return (KilnString) { texts->text.data != NULL ? texts->text.data + begin : "",
                          texts->ends[i] - begin };
}

void kiln_token_texts_release(KilnTokenTexts *texts)
{
    kiln_text_release(&texts->text);
    free(texts->ends);
    *texts = (KilnTokenTexts) { 0 };
}

/* ---- ByteLevel ------------------------------------------------------------------------------- */

/* Append the bytes that a token's characters stand for, or the token if one stands for none. */
static void put_bytes(KilnText *text, KilnString token)
{
    const size_t before = text->length;

    for (size_t at = 0; at < token.length;) {
        uint32_t c;

        at += kiln_utf8_read(token.data + at, &c);
        const int byte = kiln_char_byte(c);
        if (byte < 0) {
            text->length = text->failed ? text->length : before;
            kiln_text_append_n(text, token.data, token.length);
            return;
        }
        kiln_text_char(text, (char)byte);
    }
}

static bool in_range(unsigned char c, unsigned char low, unsigned char high)
{
    return c >= low && c <= high;
}

/* Bytes at `t`, which begins no valid character, that one U+FFFD replaces: a character's beginning
 * as far as it is valid. */
static size_t invalid_length(const unsigned char *t, size_t n)
{
    const unsigned char c = t[0];
    const unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;

    if (c < 0xe0 || c > 0xf4 || n < 2 || !in_range(t[1], low, high))
        return 1;
    return c >= 0xf0 && n >= 3 && in_range(t[2], 0x80, 0xbf) ? 3 : 2;
}

/* Append bytes as UTF-8, with U+FFFD for what is none. */
static void put_lossy(KilnText *text, const char *data, size_t n)
{
    while (n > 0) {
        const size_t valid = kiln_utf8_invalid(data, n);

        kiln_text_append_n(text, data, valid);
        data += valid;
        n -= valid;
        if (n == 0)
            break;
        const size_t skip = invalid_length((const unsigned char *)data, n);
        kiln_text_append(text, "\xef\xbf\xbd");
        data += skip;
        n -= skip;
    }
}

static void decode_byte_level(const KilnTokenTexts *in, KilnTokenTexts *out)
{
    KilnText bytes = { 0 }, text = { 0 };

    for (size_t i = 0; i < in->n; i++)
        put_bytes(&bytes, kiln_token_texts_at(in, i));
    put_lossy(&text, bytes.data, bytes.length);
    out->failed = out->failed || bytes.failed || text.failed;
    kiln_token_texts_add(out, text.data != NULL ? text.data : "", text.length);
    kiln_text_release(&bytes);
    kiln_text_release(&text);
}

/* ---- WordPiece ------------------------------------------------------------------------------- */

/* Append `text` with all occurrences of `from` replaced. */
static void put_replaced(KilnText *ret, const char *text, size_t n, const char *from,
                         const char *to)
{
    const size_t length = strlen(from);

    for (size_t at = 0; at < n;) {
        if (length > 0 && n - at >= length && memcmp(text + at, from, length) == 0) {
            kiln_text_append(ret, to);
            at += length;
        } else {
            kiln_text_char(ret, text[at++]);
        }
    }
}

/* Remove the spaces that stand between words and punctuation. */
static void clean_up(KilnText *text)
{
    static const char *const pairs[][2] = {
        { " .", "." },   { " ?", "?" },     { " !", "!" },     { " ,", "," },
        { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },   { " do not", " don't" },
        { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
    };

    for (size_t i = 0; i < KILN_COUNT(pairs) && !text->failed; i++) {
        KilnText next = { 0 };

        put_replaced(&next, text->data, text->length, pairs[i][0], pairs[i][1]);
        kiln_text_release(text);
        *text = next;
    }
}

static void decode_wordpiece(const KilnDecoder *decoder, const KilnTokenTexts *in,
                             KilnTokenTexts *out)
{
    const size_t prefix = strlen(decoder->text);

    for (size_t i = 0; i < in->n; i++) {
        const KilnString token = kiln_token_texts_at(in, i);
        KilnText text = { 0 };

        const bool joins = i > 0 && token.length >= prefix &&
                           memcmp(token.data, decoder->text, prefix) == 0;
        if (i > 0 && !joins)
            kiln_text_char(&text, ' ');
        kiln_text_append_n(&text, token.data + (joins ? prefix : 0),
                           token.length - (joins ? prefix : 0));
        if (decoder->cleanup)
            clean_up(&text);
        out->failed = out->failed || text.failed;
        kiln_token_texts_add(out, text.data != NULL ? text.data : "", text.length);
        kiln_text_release(&text);
    }
}

/* ---- The others ------------------------------------------------------------------------------ */

static void put_token(KilnTokenTexts *out, KilnText *text)
{
    out->failed = out->failed || text->failed;
    kiln_token_texts_add(out, text->data != NULL ? text->data : "", text->length);
    kiln_text_clear(text);
}

static void decode_metaspace(const KilnDecoder *decoder, const KilnTokenTexts *in,
                             KilnTokenTexts *out)
{
    KilnText text = { 0 };

    for (size_t i = 0; i < in->n; i++) {
        const KilnString token = kiln_token_texts_at(in, i);

        put_replaced(&text, token.data, token.length, decoder->character,
                     i == 0 && decoder->prepends ? "" : " ");
        put_token(out, &text);
    }
    kiln_text_release(&text);
}

static void decode_bpe(const KilnDecoder *decoder, const KilnTokenTexts *in, KilnTokenTexts *out)
{
    KilnText text = { 0 };

    for (size_t i = 0; i < in->n; i++) {
        const KilnString token = kiln_token_texts_at(in, i);

        put_replaced(&text, token.data, token.length, decoder->text, i + 1 == in->n ? "" : " ");
        put_token(out, &text);
    }
    kiln_text_release(&text);
}

static KilnStatus decode_replace(const KilnDecoder *decoder, const KilnTokenTexts *in,
                                 KilnTokenTexts *out, KilnError *err)
{
    KilnPieces pieces = { 0 };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < in->n && status >= 0; i++) {
        kiln_pieces_start(&pieces, kiln_token_texts_at(in, i));
        if (pieces.n > 0)
            status = kiln_pieces_substitute(&pieces, kiln_regex_matches, decoder->regex,
                                            decoder->text, err);
        out->failed = out->failed || pieces.failed;
        kiln_token_texts_add(out, pieces.n > 0 ? pieces.text : "",
                             pieces.n > 0 ? pieces.n_text : 0);
    }
    kiln_pieces_release(&pieces);
    return status;
}

/* Remove up to `start` and `stop` characters of the content at the ends of each token. */
static void decode_strip(const KilnDecoder *decoder, const KilnTokenTexts *in, KilnTokenTexts *out)
{
    const size_t length = strlen(decoder->character);

    for (size_t i = 0; i < in->n; i++) {
        KilnString token = kiln_token_texts_at(in, i);

        for (int64_t k = 0; k < decoder->start && token.length >= length &&
                            memcmp(token.data, decoder->character, length) == 0;
             k++) {
            token.data += length;
            token.length -= length;
        }
        for (int64_t k = 0;
             k < decoder->stop && token.length >= length &&
             memcmp(token.data + token.length - length, decoder->character, length) == 0;
             k++)
            token.length -= length;
        kiln_token_texts_add(out, token.data, token.length);
    }
}

/* The byte of a token <0x..>; -1: it is another. */
static int fallback_byte(KilnString token)
{
    static const char digits[] = "0123456789ABCDEFabcdef";
    int value = 0;

    if (token.length != 6 || memcmp(token.data, "<0x", 3) != 0 || token.data[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        const char *digit = memchr(digits, token.data[i], 22);

        if (digit == NULL)
            return -1;
        value = value * 16 + (int)(digit - digits) - (digit - digits >= 16 ? 6 : 0);
    }
    return value;
}

/* Bytes that follow each other are one text, or a U+FFFD each if they are not UTF-8. */
static void put_fallback(KilnTokenTexts *out, KilnText *bytes)
{
    const bool valid = kiln_utf8_invalid(bytes->data, bytes->length) == bytes->length;

    for (size_t i = 0; i < bytes->length && !valid; i++)
        kiln_token_texts_add(out, "\xef\xbf\xbd", 3);
    if (valid && bytes->length > 0)
        put_token(out, bytes);
    kiln_text_clear(bytes);
}

static void decode_byte_fallback(const KilnTokenTexts *in, KilnTokenTexts *out)
{
    KilnText bytes = { 0 };

    for (size_t i = 0; i < in->n; i++) {
        const KilnString token = kiln_token_texts_at(in, i);
        const int byte = fallback_byte(token);

        if (byte >= 0) {
            kiln_text_char(&bytes, (char)byte);
            continue;
        }
        put_fallback(out, &bytes);
        kiln_token_texts_add(out, token.data, token.length);
    }
    put_fallback(out, &bytes);
    kiln_text_release(&bytes);
}

KilnStatus kiln_decoder_apply(const KilnDecoder *decoder, const KilnTokenTexts *in,
                              KilnTokenTexts *out, KilnError *err)
{
    switch (decoder->type) {
    case KILN_DECODE_BYTE_LEVEL:
        decode_byte_level(in, out);
        break;
    case KILN_DECODE_WORDPIECE:
        decode_wordpiece(decoder, in, out);
        break;
    case KILN_DECODE_METASPACE:
        decode_metaspace(decoder, in, out);
        break;
    case KILN_DECODE_BPE:
        decode_bpe(decoder, in, out);
        break;
    case KILN_DECODE_REPLACE:
        return decode_replace(decoder, in, out, err);
    case KILN_DECODE_FUSE:
        kiln_token_texts_add(out, in->text.data != NULL ? in->text.data : "", in->text.length);
        break;
    case KILN_DECODE_STRIP:
        decode_strip(decoder, in, out);
        break;
    case KILN_DECODE_BYTE_FALLBACK:
        decode_byte_fallback(in, out);
        break;
    }
    return KILN_OK;
}
