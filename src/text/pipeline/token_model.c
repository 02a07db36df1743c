/* What all models share, and the two small ones: WordPiece (the longest token first) and WordLevel
 * (whole words). */
#include "text/pipeline/token_model.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/unicode/characters.h"

void kiln_model_put(KilnModelWork *work, int32_t id, size_t begin, size_t end)
{
    if (!KILN_RESERVE(work->tokens, work->tokens_capacity, work->n_tokens + 1)) {
        work->failed = true;
        return;
    }
    work->tokens[work->n_tokens++] = (KilnPieceToken) { id, (uint32_t)begin, (uint32_t)end };
}

KilnStatus kiln_model_no_unk(const KilnTokenModel *model, KilnError *err)
{
    return kiln_error_set(
        err, KILN_E_MISSING,
        "the text has a word that the vocabulary lacks, and the vocabulary has no "
        "%s to stand for it",
        model->unk_token != NULL ? model->unk_token : "unknown token");
}

/* ---- WordPiece ------------------------------------------------------------------------------- */

/* The end of the longest token that begins at `start`; `start`: none. */
static size_t longest_token(const KilnTokenModel *model, KilnModelWork *work, const char *text,
                            size_t n, size_t start, int32_t *ret_id)
{
    const size_t prefix = start > 0 && model->prefix != NULL ? strlen(model->prefix) : 0;
    size_t end = n;

    memcpy(work->text, prefix > 0 ? model->prefix : "", prefix);
    memcpy(work->text + prefix, text + start, n - start);
    while (end > start) {
        uint32_t c;

        *ret_id = kiln_vocab_find(&model->vocab, work->text, prefix + (end - start));
        if (*ret_id >= 0)
            return end;
        end -= kiln_utf8_read_last(text, end, &c);
    }
    return start;
}

static KilnStatus tokenize_wordpiece(const KilnTokenModel *model, KilnModelWork *work,
                                     const char *text, size_t n, KilnError *err)
{
    const size_t first = work->n_tokens, prefix = model->prefix != NULL ? strlen(model->prefix) : 0;
    bool known = n <= model->max_chars || kiln_utf8_count(text, n) <= model->max_chars;

    if (!KILN_RESERVE(work->text, work->text_capacity, n + prefix)) {
        work->failed = true;
        return KILN_OK;
    }
    for (size_t start = 0; known && start < n;) {
        int32_t id = -1;
        const size_t end = longest_token(model, work, text, n, start, &id);

        known = end > start;
        if (known)
            kiln_model_put(work, id, start, end);
        start = end;
    }
    if (known)
        return KILN_OK;
    if (model->unk < 0)
        return kiln_model_no_unk(model, err);
    work->n_tokens = first;
    kiln_model_put(work, model->unk, 0, n);
    return KILN_OK;
}

static KilnStatus tokenize_wordlevel(const KilnTokenModel *model, KilnModelWork *work,
                                     const char *text, size_t n, KilnError *err)
{
    const int32_t id = kiln_vocab_find(&model->vocab, text, n);

    if (id < 0 && model->unk < 0)
        return kiln_model_no_unk(model, err);
    kiln_model_put(work, id >= 0 ? id : model->unk, 0, n);
    return KILN_OK;
}

KilnStatus kiln_model_tokenize(const KilnTokenModel *model, KilnModelWork *work, const char *text,
                               size_t n, KilnError *err)
{
    switch (model->type) {
    case KILN_MODEL_BPE:
        return kiln_bpe_tokenize(model, work, text, n, err);
    case KILN_MODEL_WORDPIECE:
        return tokenize_wordpiece(model, work, text, n, err);
    case KILN_MODEL_UNIGRAM:
        return kiln_unigram_tokenize(model, work, text, n, err);
    default:
        return tokenize_wordlevel(model, work, text, n, err);
    }
}

/* ---- ByteLevel's alphabet -------------------------------------------------------------------- */

/* Bytes that stand for themselves as Latin-1 characters; the others get characters from U+0100 on,
 * in their order. */
static bool is_printable(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

size_t kiln_byte_char(uint8_t byte, char ret[4])
{
    uint32_t c = byte;

    if (!is_printable(byte))
        c = byte <= ' ' ? 0x100u + byte : byte == 0xad ? 0x143 : 0x121u + (byte - 0x7fu);
    return kiln_utf8_write(c, ret);
}

int kiln_char_byte(uint32_t c)
{
    if (c < 0x100)
        return is_printable((int)c) ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    if (c <= 0x142)
        return (int)(c - 0x121 + 0x7f);
    return c == 0x143 ? 0xad : -1;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

void kiln_model_work_release(KilnModelWork *work)
{
    free(work->tokens);
    free(work->symbols);
    free(work->heap);
    free(work->path);
    free(work->text);
    *work = (KilnModelWork) { 0 };
}

void kiln_model_release(KilnTokenModel *model)
{
    kiln_vocab_release(&model->vocab);
    free(model->unk_token);
    free(model->prefix);
    free(model->suffix);
    free(model->merges);
    free(model->merge_list);
    free(model->scores);
    kiln_trie_release(&model->trie);
    *model = (KilnTokenModel) { 0 };
}
