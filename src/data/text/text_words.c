/* The words of a sentence (kiln/tools/text_words.h). */
#include "kiln/tools/text_words.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"

bool kiln_value_is_list(KilnString value)
{
    return memchr(value.data, KILN_RECORDS_ITEM_END, value.length) != NULL;
}

bool kiln_value_next_item(KilnString *rest, bool list, KilnString *ret)
{
    size_t n, space;

    if (list)
        return kiln_record_next_item(rest, ret);
    while ((space = kiln_space_at(rest->data, rest->length)) > 0)
        *rest = (KilnString) { rest->data + space, rest->length - space };
    for (n = 0; n < rest->length && kiln_space_at(rest->data + n, rest->length - n) == 0;)
        n++;
    *ret = (KilnString) { rest->data, n };
    *rest = (KilnString) { rest->data + n, rest->length - n };
    return n > 0;
}

static int32_t count_characters(const char *text, size_t n)
{
    int32_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* Add the word of some bytes of words->text, after the last one. */
static KilnStatus add_word(KilnWords *words, size_t at, size_t length, KilnError *err)
{
    const KilnWord *last = words->n > 0 ? &words->list[words->n - 1] : NULL;
    const size_t from = last != NULL ? last->at + last->length : 0;

    if (words->text.failed || !KILN_RESERVE(words->list, words->capacity, words->n + 1))
        return kiln_error_nomem(err, words->text.length);
    last = words->n > 0 ? &words->list[words->n - 1] : NULL;
    const int32_t begin = (last != NULL ? last->end : 0) +
                          count_characters(words->text.data + from, at - from);
    words->list[words->n++] =
        (KilnWord) { at, length, begin, begin + count_characters(words->text.data + at, length) };
    return KILN_OK;
}

KilnStatus kiln_words_of_value(KilnWords *words, KilnString value, KilnError *err)
{
    const bool list = kiln_value_is_list(value);
    KilnString rest = value, item;
    KilnStatus status = KILN_OK;

    kiln_text_clear(&words->text);
    words->n = 0;
    if (!list)
        kiln_text_append_n(&words->text, value.data, value.length);
    while (status >= 0 && kiln_value_next_item(&rest, list, &item)) {
        size_t at = (size_t)(item.data - value.data);

        if (list) {
            if (words->n > 0)
                kiln_text_char(&words->text, ' ');
            at = words->text.length;
            kiln_text_append_n(&words->text, item.data, item.length);
        }
        status = add_word(words, at, item.length, err);
    }
    return status;
}

KilnStatus kiln_words_of_text(KilnWords *words, const KilnInstance *splitter, KilnString text,
                              KilnError *err)
{
    const KilnTokenizerInput input = { .text = text, .offsets = KILN_OFFSETS_BYTES };
    KilnEncoding encoding = { 0 };

    if (splitter == NULL)
        return kiln_words_of_value(words, text, err);
    kiln_text_clear(&words->text);
    words->n = 0;
    KilnStatus status = kiln_tokenizer_encode(splitter, &input, &encoding, err);
    kiln_text_append_n(&words->text, text.data, text.length);
    for (size_t i = 0; i < encoding.n && status >= 0; i++) {
        const KilnTokenSpan span = encoding.spans[i];

        if (span.end > span.begin)
            status = add_word(words, span.begin, span.end - span.begin, err);
    }
    kiln_encoding_release(&encoding);
    return status;
}

KilnStatus kiln_words_check(const KilnWords *words, int64_t max_length, KilnError *err)
{
    if (words->n == 0)
        return kiln_error_set(err, KILN_E_MISSING, "there are no words");
    if ((int64_t)words->n > max_length)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%zu words; datamodule.max_length allows %lld per sentence", words->n,
                              (long long)max_length);
    for (size_t i = 0; i < words->n; i++)
        if (words->list[i].length == 0)
            return kiln_error_set(err, KILN_E_MISSING, "word %zu is empty", i + 1);
    return KILN_OK;
}

KilnStatus kiln_words_text_of_value(KilnString value, char **ret, KilnError *err)
{
    KilnWords words = { 0 };
    KilnStatus status = kiln_words_of_value(&words, value, err);

    if (status >= 0 && (*ret = kiln_text_take(&words.text)) == NULL)
        status = kiln_error_nomem(err, value.length);
    kiln_words_release(&words);
    return status;
}

KilnStatus kiln_words_check_tag(const KilnWords *words, size_t i, KilnString tag, KilnError *err)
{
    enum { SHOWN = 64 };

    if (i >= words->n)
        return kiln_error_set(err, KILN_E_FORMAT, "there are more tags than the %zu words",
                              words->n);
    const KilnString word = kiln_words_at(words, i);
    const int word_shown = (int)(word.length < SHOWN ? word.length : SHOWN);
    if (tag.length == 0)
        return kiln_error_set(err, KILN_E_MISSING, "word %zu \"%.*s\": the tag is empty", i + 1,
                              word_shown, word.data);
    for (size_t c = 0; c < tag.length; c++)
        if (kiln_space_at(tag.data + c, tag.length - c) > 0)
            return kiln_error_set(err, KILN_E_TYPE,
                                  "word %zu \"%.*s\": the tag \"%.*s\" has white space in it",
                                  i + 1, word_shown, word.data,
                                  (int)(tag.length < SHOWN ? tag.length : SHOWN), tag.data);
    return KILN_OK;
}

void kiln_words_release(KilnWords *words)
{
    kiln_text_release(&words->text);
    free(words->list);
    *words = (KilnWords) { 0 };
}

KilnString kiln_words_at(const KilnWords *words, size_t i)
{
    return (KilnString) { words->text.data + words->list[i].at, words->list[i].length };
}

/* ---- Ids --------------------------------------------------------------------------------------
 */

/* A name for a message: at most 64 bytes. */
static int shown(KilnString name)
{
    return name.length < 64 ? (int)name.length : 64;
}

/* Make room for one more sentence, word, and some tokens and characters. */
static KilnStatus reserve(KilnWordIds *to, size_t tokens, size_t characters, KilnError *err)
{
    const size_t words = (size_t)to->n_words;

    return KILN_RESERVE(to->first_word, to->room[0], (size_t)to->n + 2) &&
                   KILN_RESERVE(to->first_token, to->room[1], (size_t)to->n + 2) &&
                   KILN_RESERVE(to->tokens, to->room[2], (size_t)to->n_tokens + tokens) &&
                   KILN_RESERVE(to->first_tokens, to->room[3], words + 1) &&
                   KILN_RESERVE(to->spans, to->room[4], 2 * words + 2) &&
                   KILN_RESERVE(to->first_character, to->room[5], words + 2) &&
                   KILN_RESERVE(to->characters, to->room[6], (size_t)to->n_characters + characters)
               ? KILN_OK
               : kiln_error_nomem(err, words);
}

KilnFeature kiln_word_ids_feature(const KilnWordEncode *encode, KilnWordFeature feature)
{
    const int64_t pad = kiln_tokenizer_special(encode->tokenizer, KILN_TOKEN_PAD);
    KilnFeature ret = { .dtype = KILN_I32,
                        .shape = KILN_SHAPE(encode->max_length),
                        .varies = true };

    switch (feature) {
    case KILN_WORD_TOKENS:
        ret.name = "tokens";
        ret.content = KILN_TOKENS;
        ret.pad = pad >= 0 ? (double)pad : 0.0;
        ret.n_ids = kiln_tokenizer_size(encode->tokenizer);
        break;
    case KILN_WORD_FIRST_TOKENS:
        ret.name = "first_tokens";
        ret.content = KILN_TOKENS;
        ret.n_ids = encode->max_length;
        break;
    case KILN_WORD_CHARACTERS:
        ret.name = "characters";
        ret.content = KILN_SEQUENCE;
        ret.shape = KILN_SHAPE(encode->max_length, encode->word_length);
        ret.n_ids = encode->characters != NULL ? kiln_tokenizer_size(encode->characters) : 0;
        break;
    case KILN_WORD_SPANS:
        ret.name = "words";
        ret.content = KILN_SEQUENCE;
        ret.shape = KILN_SHAPE(encode->max_length, 2);
        break;
    }
    return ret;
}

void kiln_word_ids_write(const KilnWordIds *ids, const KilnWordEncode *encode, int64_t i,
                         const KilnWordFeatures *ret)
{
    const int64_t first = ids->first_word[i], token = ids->first_token[i];
    const size_t words = (size_t)(ids->first_word[i + 1] - first);
    const size_t tokens = (size_t)(ids->first_token[i + 1] - token);

    if (ret->tokens != NULL)
        memcpy(ret->tokens, ids->tokens + token, tokens * sizeof(int32_t));
    if (ret->first_tokens != NULL)
        memcpy(ret->first_tokens, ids->first_tokens + first, words * sizeof(int32_t));
    if (ret->spans != NULL)
        memcpy(ret->spans, ids->spans + 2 * first, words * 2 * sizeof(int32_t));
    if (ret->characters != NULL)
        kiln_word_ids_characters(ids, encode, i, ret->characters);
}

void kiln_word_ids_release(KilnWordIds *ids)
{
    free(ids->first_word);
    free(ids->first_token);
    free(ids->tokens);
    free(ids->first_tokens);
    free(ids->spans);
    free(ids->first_character);
    free(ids->characters);
    kiln_encoding_release(&ids->work[0]);
    kiln_encoding_release(&ids->work[1]);
    *ids = (KilnWordIds) { 0 };
}

/* The ids of a word; at least one. */
static KilnStatus encode_text(const KilnInstance *tokenizer, KilnString text, KilnEncoding *ret,
                              KilnError *err)
{
    const KilnTokenizerInput input = { .text = text };
    KilnStatus status = kiln_tokenizer_encode(tokenizer, &input, ret, err);

    if (status >= 0 && ret->n == 0) {
        const int64_t unknown = kiln_tokenizer_special(tokenizer, KILN_TOKEN_UNK);

        status = kiln_encoding_reserve(ret, 1, err);
        if (status >= 0)
            ret->ids[ret->n++] = unknown >= 0 ? (int32_t)unknown : 0;
    }
    return status;
}

static KilnStatus encode_word(KilnWordIds *to, const KilnWordEncode *encode, const KilnWords *words,
                              size_t i, KilnError *err)
{
    const KilnWord *word = &words->list[i];
    const KilnString text = kiln_words_at(words, i);
    KilnEncoding *tokens = &to->work[0], *characters = &to->work[1];
    const int64_t sentence = to->first_token[to->n];
    KilnStatus status = encode_text(encode->tokenizer, text, tokens, err);

    if (status >= 0 && encode->characters != NULL)
        status = encode_text(encode->characters, text, characters, err);
    if (status >= 0 && !encode->pieces && tokens->n > 1)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "word %zu \"%.*s\" is %zu tokens: set "
                              "datamodule.tokenizer.split=white_space for one token per word, or "
                              "datamodule.pieces=true",
                              i + 1, shown(text), text.data, tokens->n);
    if (status >= 0 && to->n_tokens - sentence + (int64_t)tokens->n > encode->max_length)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%zu of %zu words have more than %lld tokens; datamodule.max_length "
                              "allows no more per sentence",
                              i + 1, words->n, (long long)encode->max_length);
    const size_t cut = characters->n < (size_t)encode->word_length ? characters->n
                                                                   : (size_t)encode->word_length;
    if (status >= 0)
        status = reserve(to, tokens->n, cut, err);
    if (status < 0)
        return status;
    to->first_tokens[to->n_words] = (int32_t)(to->n_tokens - sentence);
    memcpy(to->tokens + to->n_tokens, tokens->ids, tokens->n * sizeof(*to->tokens));
    to->n_tokens += (int64_t)tokens->n;
    if (cut > 0)
        memcpy(to->characters + to->n_characters, characters->ids, cut * sizeof(*to->characters));
    to->n_characters += (int64_t)cut;
    to->spans[2 * to->n_words] = word->begin;
    to->spans[2 * to->n_words + 1] = word->end;
    to->first_character[++to->n_words] = to->n_characters;
    return KILN_OK;
}

KilnStatus kiln_word_ids_append(KilnWordIds *to, const KilnWordEncode *encode,
                                const KilnWords *words, KilnError *err)
{
    const int64_t n_words = to->n_words, n_tokens = to->n_tokens, n_characters = to->n_characters;
    KilnStatus status = reserve(to, 0, 0, err);

    if (status >= 0 && to->n == 0)
        to->first_word[0] = to->first_token[0] = to->first_character[0] = 0;
    for (size_t i = 0; i < words->n && status >= 0; i++)
        status = encode_word(to, encode, words, i, err);
    if (status < 0) {
        to->n_words = n_words;
        to->n_tokens = n_tokens;
        to->n_characters = n_characters;
        return status;
    }
    to->n++;
    to->first_word[to->n] = to->n_words;
    to->first_token[to->n] = to->n_tokens;
    return KILN_OK;
}

void kiln_word_ids_characters(const KilnWordIds *ids, const KilnWordEncode *encode, int64_t i,
                              int32_t *ret)
{
    const int64_t first = ids->first_word[i], end = ids->first_word[i + 1];
    const int64_t length = encode->word_length;

    memset(ret, 0, (size_t)((end - first) * length) * sizeof(*ret));
    for (int64_t word = first; word < end; word++, ret += length) {
        const int64_t at = ids->first_character[word];

        memcpy(ret, ids->characters + at,
               (size_t)(ids->first_character[word + 1] - at) * sizeof(*ret));
    }
}
